"""The implementations under comparison, behind one interface.

A benchmark takes two of these and never imports either module itself, so a new contender is one entry here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Implementation:
    """A module with pickle's functions."""

    name: str
    dumps: Callable[..., bytes]
    loads: Callable[..., Any]
    dump: Callable[..., None]
    load: Callable[..., Any]
    version: str


def get(name: str) -> Implementation:
    """Import a module and take its functions.

    ``pickle`` is CPython's C implementation; a build without it is refused, because the comparison would be with the
    pure-Python one.
    """
    module = importlib.import_module(name)
    if name == "pickle" and type(module.dumps).__name__ != "builtin_function_or_method":
        raise SystemExit("this interpreter has no C implementation of pickle to compare with")
    return Implementation(
        name,
        module.dumps,
        module.loads,
        module.dump,
        module.load,
        getattr(module, "__version__", getattr(module, "format_version", "?")),
    )
