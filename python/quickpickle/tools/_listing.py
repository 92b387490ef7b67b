"""Listings in the layout of ``pickletools.dis``, and pickles without needless memo writes."""

from __future__ import annotations

import sys
from typing import Protocol

from quickpickle import _native
from quickpickle.tools._input import Data, located

__all__ = ["dis", "optimize"]


class _Writer(Protocol):
    def write(self, text: str, /) -> object: ...


def dis(
    data: Data,
    out: _Writer | None = None,
    *,
    start: int = 0,
    indent: int = 4,
    annotate: int | None = None,
    stack: bool = False,
) -> int:
    """Write the listing of the pickle at ``start``; return where that pickle ends.

    The text is that of ``pickletools.dis``; ``docs/format.md`` lists the few differences.

    Args:
        data: bytes that hold the pickle.
        out: something with ``write(str)``; standard output if None.
        start: where the pickle begins.
        indent: blanks for each open mark.
        annotate: the column from which on lines say what their operation does; None for none.
        stack: show what kinds of objects are on the stack after each operation.

    Raises:
        MalformedPickle: it cannot be read to its end; what can be has been written.
    """
    write = (sys.stdout if out is None else out).write
    with located():
        return _native.tools_dis(data, write, start=start, indent=indent, annotate=annotate, stack=stack)


def optimize(data: Data) -> bytes:
    """Return the pickle without memo writes that nothing reads: what ``pickletools.optimize`` returns.

    Raises:
        MalformedPickle: it cannot be read to its end.
    """
    with located():
        return _native.tools_optimize(data)
