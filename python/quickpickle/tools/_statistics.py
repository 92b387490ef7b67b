"""What a pickle is made of, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from quickpickle import _native
from quickpickle.tools._input import Data, located

__all__ = ["OpcodeCount", "Statistics", "stats"]


@dataclass(frozen=True)
class OpcodeCount:
    """How often an opcode occurs."""

    name: str
    """Its name in ``pickletools``."""
    count: int
    """Operations."""
    bytes: int
    """Bytes of all of them with their arguments."""


@dataclass(frozen=True)
class Statistics:
    """The counts of one pickle."""

    bytes: int
    """Up to and including STOP."""
    operations: int
    """Operations of any kind."""
    protocol: int | None
    """What PROTO says; None where there is no PROTO."""
    highest_protocol: int
    """The newest protocol among the opcodes."""
    frames: int
    """Frames."""
    memo_writes: int
    """PUT and MEMOIZE operations."""
    memo_used: int
    """Memo entries that are fetched at least once."""
    memo_reads: int
    """GET operations."""
    unused_memo_bytes: int
    """Bytes of memo writes that nothing reads: about what ``optimize`` saves."""
    payload_bytes: int
    """Bytes of text, bytes and large integers, without opcodes and lengths."""
    largest_payload: tuple[int, int] | None
    """Bytes and offset of the largest of these."""
    deepest_marks: int
    """Most marks that are open at a time."""
    opcodes: tuple[OpcodeCount, ...]
    """The opcodes that occur, most bytes first."""


def stats(data: Data, *, start: int = 0) -> Statistics:
    """Count what the pickle at ``start`` is made of.

    Raises:
        MalformedPickle: it cannot be read to its end.
    """
    with located():
        found = _native.tools_stats(data, start=start)
    found["opcodes"] = tuple(OpcodeCount(*row) for row in found["opcodes"])
    return Statistics(**found)
