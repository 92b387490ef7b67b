"""Enabling a Python environment: two files in its site-packages, a ``.pth`` and what that imports.

The ``.pth`` runs whenever one of the environment's interpreters starts, which is the only way into every process that
Spark starts: task workers, workers that analyse table functions, ``foreachBatch`` workers of Spark Connect. What it
imports is a copy of ``start.py``, beside it, so that nothing of quickpickle is imported where PySpark is not.

Left to others: what happens in a process (``start``, ``patching``). What must stay true: ``disable`` removes both, an
environment without quickpickle starts as before with a stale pair, and nothing else of an environment is touched.
"""

from __future__ import annotations

import os
import site
import sysconfig
from pathlib import Path
from typing import Final

__all__ = ["PTH", "START", "VARIABLE", "disable", "enable", "is_enabled", "places", "variable"]

#: ``0`` keeps an enabled environment's process from starting us; ``1`` starts us where ``sitecustomize`` looks at it.
VARIABLE: Final = "QUICKPICKLE_SPARK"

PTH: Final = "quickpickle_spark.pth"
START: Final = "_quickpickle_spark_start.py"
# One line, because that is what a .pth file may have; guarded, because the interpreter's start must not fail.
_LINE: Final = 'import sys; exec("try:\\n    import _quickpickle_spark_start\\nexcept Exception:\\n    pass")\n'


def variable() -> bool | None:
    """What the environment variable says; None if nothing."""
    value = os.environ.get(VARIABLE, "").strip().lower()
    if not value:
        return None
    return value not in ("0", "off", "no", "false")


def places() -> list[Path]:
    """The folders of this interpreter in which ``.pth`` files run, the one ``enable`` takes first."""
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    return [Path(place) for place in dict.fromkeys(found)]


def enable(place: Path | None = None) -> Path:
    """Have every Python process of this environment that imports PySpark use quickpickle.

    place: a folder in which ``.pth`` files run, if not the environment's site-packages.

    Returns the ``.pth`` file. Raises ``OSError`` if it cannot be written.
    """
    place = places()[0] if place is None else place
    _write(place / START, (Path(__file__).parent / "start.py").read_text())
    # Last, so that no process finds it without what it imports.
    _write(place / PTH, _LINE)
    return place / PTH


def disable(place: Path | None = None) -> list[Path]:
    """Undo :func:`enable`, wherever it was done; returns the files that were removed, which may be none."""
    removed = []
    for folder in places() if place is None else [place]:
        for name in (PTH, START):
            path = folder / name
            if path.exists():
                path.unlink()
                removed.append(path)
    return removed


def is_enabled() -> bool:
    """Whether this environment is enabled, and the environment variable does not say no."""
    return variable() is not False and any((place / PTH).exists() for place in places())


def _write(path: Path, text: str) -> None:
    # A process that starts meanwhile sees the old file or the new one.
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(text)
        os.replace(scratch, path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
