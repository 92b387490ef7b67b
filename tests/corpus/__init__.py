"""The wide corpus: named values that reach every opcode, boundary and reduce rule.

``values()`` yields ``(name, value)`` pairs, built afresh at each call. Values are small enough that the whole corpus goes
through all protocols in seconds; what needs gigabytes is in tests/cpython's big-memory tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.corpus import atoms, classes, containers, graphs, library, third_party

GROUPS = {
    "atoms": atoms.values,
    "containers": containers.values,
    "graphs": graphs.values,
    "classes": classes.values,
    "library": library.values,
    "third_party": third_party.values,
}


def values(*groups: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of the named groups, or of all."""
    for group in groups or GROUPS:
        for name, value in GROUPS[group]():
            yield f"{group}/{name}", value
