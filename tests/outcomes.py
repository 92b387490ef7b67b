"""What came of a call, as a value that two implementations can be compared by."""

from __future__ import annotations

import contextlib
import pickletools
import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class Raised:
    """An exception's class, message and chain, addresses taken out."""

    kind: type[BaseException]
    message: str
    cause: Raised | None = None

    def __str__(self) -> str:
        tail = f" <- {self.cause}" if self.cause else ""
        return f"{self.kind.__name__}: {self.message}{tail}"


@dataclass(frozen=True)
class Returned:
    """A value."""

    value: Any


def raised(exc: BaseException, depth: int = 3) -> Raised:
    """Describe an exception and what it was raised from."""
    cause = exc.__cause__
    if isinstance(exc, RecursionError):
        # Where the C stack ran out says nothing about pickling.
        return Raised(RecursionError, "maximum recursion depth exceeded")
    return Raised(
        type(exc), ADDRESS.sub("0x", str(exc)), raised(cause, depth - 1) if cause is not None and depth else None
    )


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Raised | Returned:
    """Call, and return what came of it; only interrupts pass through."""
    try:
        return Returned(call(*args, **kwargs))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as exc:
        return raised(exc)


def text_of(exc: BaseException | None) -> str:
    """All that a user can read off an exception: types, messages, notes, causes."""
    out: list[str] = []
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        out += [type(exc).__name__, str(exc), *getattr(exc, "__notes__", [])]
        exc = exc.__cause__ or exc.__context__
    return "\n".join(out)


@contextlib.contextmanager
def little_memory(spare: int = 1 << 30) -> Iterator[None]:
    """Let the process grow by no more than ``spare`` bytes of address space.

    The reference fills gigabytes on the word of a memo index; with this it raises MemoryError instead.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as f:
        size = int(f.read().split()[0]) * resource.getpagesize()
    limit = size + spare
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def as_reference(text: Any) -> str:
    """Return a message with the extension module's own name made the reference's; nothing else may differ."""
    return re.sub(r"\bquickpickle(\._native)?\.(?=[A-Z])", "_pickle.", str(text))


def older_words(mine: Raised | Returned, theirs: Raised | Returned) -> bool:
    """Whether the reference says of an empty stack what only its older patch releases say of it."""
    return (
        isinstance(mine, Raised)
        and isinstance(theirs, Raised)
        and mine.kind is theirs.kind
        and theirs.message == "STACK_GLOBAL requires str"
        and mine.message in ("unpickling stack underflow", "unexpected MARK found")
    )


def frames_lie(data: bytes) -> bool:
    """Whether a frame ends inside an operation: a stream's reference then reads on behind it, ours does not care."""
    end = None
    try:
        operations = [(op.name, arg, at) for op, arg, at in pickletools.genops(data)]
    except Exception:
        return b"\x95" in data
    for (name, arg, at), (_, _, after) in zip(operations, [*operations[1:], ("", None, len(data))], strict=True):
        if end is not None and at < end < after:
            return True
        if name == "FRAME":
            if end is not None and at < end:
                return True
            end = at + 9 + arg
    return end is not None and end > len(data)
