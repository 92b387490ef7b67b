"""Bad input fails like the reference: the same exception class and message for every opcode on every kind of stack.

Where both succeed the results must be equal too, so these tables also state what odd but legal input means. What ours
adds are notes; what it does better than the reference is listed in ``BETTER`` with the reason.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import quickpickle
from tests import programs
from tests import samples as s
from tests.equality import Difference, assert_same_graph
from tests.outcomes import Raised, Returned, as_reference, older_words, outcome

# Misuses whose outcome may differ, with the reason; `kind` differences only, never a crash.
BETTER: dict[str, str] = {}


def describe(result: Raised | Returned) -> str:
    """Return an outcome as text, with the extension module's own name made the reference's."""
    text = str(result) if isinstance(result, Raised) else f"value {result.value!r:.200}"
    return as_reference(text)


def differences(ours: ModuleType, table: Iterator[tuple[str, bytes]], stream: Any = io.BytesIO) -> list[str]:
    """Load each program by both and tell where they part."""
    mine, theirs = programs.guarded(ours), programs.guarded(pickle)
    out = []
    for name, data in table:
        a = outcome(lambda d=data: mine(stream(d)).load())
        b = outcome(lambda d=data: theirs(stream(d)).load())
        if name in BETTER or older_words(a, b):
            continue
        if isinstance(a, Returned) and isinstance(b, Returned):
            try:
                assert_same_graph(a.value, b.value)
            except Difference as difference:
                out.append(f"{name}: {data!r}: {difference}")
        elif describe(a) != describe(b):
            out.append(f"{name}: {data!r}\n    ours {describe(a)}\n    C    {describe(b)}")
    return out


def report(found: list[str]) -> str:
    """Return the first differences and how many there are."""
    return f"{len(found)} differ\n" + "\n".join(found[:25])


@pytest.mark.filterwarnings("ignore")
def test_every_opcode_on_every_stack(ours: ModuleType) -> None:
    found = differences(ours, programs.one_opcode_programs())
    assert not found, report(found)


@pytest.mark.filterwarnings("ignore")
def test_every_pair_of_operands(ours: ModuleType) -> None:
    found = differences(ours, programs.two_operand_programs())
    assert not found, report(found)


@pytest.mark.filterwarnings("ignore")
def test_without_hooks(ours: ModuleType) -> None:
    """The plain functions: names not found, no persistent_load, no buffers."""
    found = []
    for name, data in programs.one_opcode_programs():
        if b"exec" in data:
            continue
        a, b = outcome(ours.loads, data), outcome(pickle.loads, data)
        if (isinstance(a, Returned) and isinstance(b, Returned)) or older_words(a, b):
            continue
        if describe(a) != describe(b):
            found.append(f"{name}: {data!r}\n    ours {describe(a)}\n    C    {describe(b)}")
    assert not found, report(found)


MISUSES: dict[str, Any] = {
    "no arguments": lambda m: m.loads(),
    "int": lambda m: m.loads(5),
    "text": lambda m: m.loads("text"),
    "none": lambda m: m.loads(None),
    "empty": lambda m: m.loads(b""),
    "unknown keyword": lambda m: m.loads(b"N.", nothing=1),
    "positional encoding": lambda m: m.loads(b"N.", "ascii"),
    "encoding int": lambda m: m.loads(b"N.", encoding=5),
    "encoding unknown, unused": lambda m: m.loads(b"N.", encoding="no-such"),
    "encoding unknown, used": lambda m: m.loads(b"U\x01\xe9.", encoding="no-such"),
    "encoding null": lambda m: m.loads(b"N.", encoding="a\0b"),
    "errors unknown, used": lambda m: m.loads(b"U\x01\xe9.", errors="no-such"),
    "errors int": lambda m: m.loads(b"N.", errors=5),
    "buffers int": lambda m: m.loads(b"N.", buffers=5),
    "buffers exhausted": lambda m: m.loads(b"\x80\x05\x97.", buffers=[]),
    "buffers raise": lambda m: m.loads(b"\x80\x05\x97.", buffers=(1 / 0 for _ in [1])),
    "buffers of ints": lambda m: m.loads(b"\x80\x05\x97\x98.", buffers=[5]),
    "buffers of ints, plain": lambda m: m.loads(b"\x80\x05\x97.", buffers=[5]),
    "buffers none": lambda m: m.loads(b"\x80\x05\x97.", buffers=None),
    "load without file": lambda m: m.load(),
    "load int": lambda m: m.load(5),
    "load no readline": lambda m: m.load(_Stream(read=len)),
    "load no read": lambda m: m.load(_Stream(readline=len)),
    "read raises": lambda m: m.load(_Stream(read=s.raise_value_error, readline=s.raise_value_error)),
    "read text": lambda m: m.load(io.StringIO("N.")),
    "read none": lambda m: m.load(_Stream(read=lambda n: None, readline=lambda: b"")),
    "read int": lambda m: m.load(_Stream(read=lambda n: 5, readline=lambda: b"")),
    "read too short": lambda m: m.load(_Stream(read=_one_byte_at_a_time(b"J\x01"), readline=lambda: b"")),
    "read too much": lambda m: m.load(_Stream(read=_chunks(b"N.........", b""), readline=lambda: b"")),
    "read bytearray": lambda m: m.load(
        _Stream(read=_chunks(bytearray(b"N"), bytearray(b"."), b""), readline=lambda: b"")
    ),
    "readline text": lambda m: m.load(_Stream(read=io.BytesIO(b"I").read, readline=lambda: "1\n")),
    "readline no newline": lambda m: m.load(_Stream(read=io.BytesIO(b"I").read, readline=lambda: b"1")),
    "peek raises": lambda m: m.load(
        _Stream(read=io.BytesIO(b"N.").read, readline=lambda: b"", peek=s.raise_value_error)
    ),
    "closed": lambda m: m.load(_closed()),
    "unpickler no arguments": lambda m: m.Unpickler(),
    "unpickler int": lambda m: m.Unpickler(5),
    "not initialised": lambda m: m.Unpickler.__new__(m.Unpickler).load(),
    "subclass not initialised": lambda m: type("U", (m.Unpickler,), {"__init__": lambda self: None})().load(),
    "load with argument": lambda m: m.Unpickler(io.BytesIO(b"N.")).load(1),
    "find_class without arguments": lambda m: m.Unpickler(io.BytesIO(b"N.")).find_class(),
    "find_class missing module": lambda m: m.Unpickler(io.BytesIO(b"N.")).find_class("no_such", "x"),
    "find_class missing name": lambda m: m.Unpickler(io.BytesIO(b"N.")).find_class("builtins", "no_such"),
    "find_class dotted": lambda m: _with_protocol(m, 2).find_class("tests.samples", "Outer.Inner"),
    "find_class dotted 4": lambda m: _with_protocol(m, 4).find_class("tests.samples", "Outer.Inner"),
    "find_class dotted missing 4": lambda m: _with_protocol(m, 4).find_class("tests.samples", "Outer.Nope.X"),
    "find_class locals 4": lambda m: _with_protocol(m, 4).find_class("tests.samples", "f.<locals>.g"),
    "find_class int": lambda m: m.Unpickler(io.BytesIO(b"N.")).find_class(1, 2),
    "find_class raises": lambda m: _hooked(m, b"ca\nb\n.", find_class=s.raise_value_error),
    "find_class not callable": lambda m: _hooked(m, b"ca\nb\n.", find_class=5),
    "persistent_load missing": lambda m: m.loads(b"Pid\n."),
    "persistent_load missing, binary": lambda m: m.loads(b"K\x01Q."),
    "persistent_load raises": lambda m: _hooked(m, b"Pid\n.", persistent_load=s.raise_value_error),
    "persistent_load not ascii": lambda m: _hooked(m, b"P\xe9\n.", persistent_load=lambda self, x: x),
    "setstate raises": lambda m: m.loads(b"ctests.samples\nSetStateOnly\n)\x81K\x05b."),
    "reduce raises": lambda m: m.loads(b"ctests.samples\nraise_value_error\n)R."),
    "hash raises": lambda m: m.loads(b"}(]K\x01u."),
    "hash raises in set": lambda m: m.loads(b"\x8f(]\x90."),
    "hash raises in frozenset": lambda m: m.loads(b"(]\x91."),
    "python 2 text": lambda m: m.loads(b"\x80\x02U\x03\xe9\xff\x81q\x00."),
    "python 2 text, utf-8": lambda m: m.loads(b"\x80\x02U\x03\xe9\xff\x81q\x00.", encoding="utf-8"),
    "python 2 text, replaced": lambda m: m.loads(b"\x80\x02U\x03\xe9\xff\x81q\x00.", errors="replace"),
    "python 2 text, latin1": lambda m: m.loads(b"\x80\x02U\x03\xe9\xff\x81q\x00.", encoding="latin1"),
    "python 2 text, bytes": lambda m: m.loads(b"\x80\x02U\x03\xe9\xff\x81q\x00.", encoding="bytes"),
    "python 2 datetime, latin1": lambda m: m.loads(
        b"cdatetime\ndatetime\n(U\n\x07\xe8\x02\x1d\x0c\x1e\x0f\x01\xe2\x40tR.", encoding="latin1"
    ),
    "python 2 datetime, bytes": lambda m: m.loads(
        b"cdatetime\ndatetime\n(U\n\x07\xe8\x02\x1d\x0c\x1e\x0f\x01\xe2\x40tR.", encoding="bytes"
    ),
    "gzip": lambda m: m.loads(b"\x1f\x8b\x08\x00" + bytes(20)),
    "html": lambda m: m.loads(b"<!DOCTYPE html><html></html>"),
    "lfs pointer": lambda m: m.loads(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
    "json": lambda m: m.loads(b'{"a": 1}'),
}
for _name in ("memo", "persistent_load", "find_class", "nothing"):
    for _given in (5, None, "x", {}, {1: 2}, {"a": 1}, {-1: 2}, {1.5: 2}, {2**70: 1}):
        MISUSES[f"set {_name} to {_given!r}"] = lambda m, n=_name, g=_given: _set_then_load(m, n, g)
    MISUSES[f"delete {_name}"] = lambda m, n=_name: delattr(m.Unpickler(io.BytesIO(b"N.")), n)


# Misuse of a signature: who parses arguments words it, so only the class has to agree.
SIGNATURE = {
    *("no arguments", "unknown keyword", "positional encoding", "load without file", "unpickler no arguments"),
    *("load with argument", "find_class without arguments"),
}


class _Stream:
    """A stream made of given methods."""

    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


def _chunks(*chunks: Any) -> Any:
    """Return a read function that hands out what it was given, whatever is asked for, and then nothing."""
    left = list(chunks)
    return lambda n: left.pop(0) if left else b""


def _one_byte_at_a_time(data: bytes) -> Any:
    """Return a read function that is always short, as a socket's may be."""
    return _chunks(*(data[i : i + 1] for i in range(len(data))))


def _closed() -> io.BytesIO:
    file = io.BytesIO(b"N.")
    file.close()
    return file


def _with_protocol(module: ModuleType, protocol: int) -> Any:
    unpickler = module.Unpickler(io.BytesIO(b"\x80" + bytes([protocol]) + b"N."))
    unpickler.load()
    return unpickler


def _hooked(module: ModuleType, data: bytes, **hooks: Any) -> Any:
    return type("Hooked", (module.Unpickler,), hooks)(io.BytesIO(data)).load()


def _set_then_load(module: ModuleType, name: str, value: Any) -> Any:
    unpickler = module.Unpickler(io.BytesIO(b"N."))
    setattr(unpickler, name, value)
    return unpickler.load()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISUSES)
def test_misuse_fails_like_the_reference(ours: ModuleType, name: str) -> None:
    mine, theirs = outcome(MISUSES[name], ours), outcome(MISUSES[name], pickle)
    if isinstance(mine, Returned) and isinstance(theirs, Returned):
        assert_same_graph(mine.value, theirs.value)
    elif name in SIGNATURE:
        assert isinstance(mine, Raised)
        assert isinstance(theirs, Raised)
        assert mine.kind is theirs.kind
    else:
        assert describe(mine) == describe(theirs)


def test_exceptions_are_the_reference_s_own(ours: ModuleType) -> None:
    """Code that catches pickle.UnpicklingError must catch ours."""
    for name in ("PickleError", "PicklingError", "UnpicklingError"):
        assert getattr(ours, name) is getattr(pickle, name)


def test_an_odd_item_in_a_state(ours: ModuleType) -> None:
    """A value without a name, in the state of an instance whose class is known, was once left out without a word."""
    head = (
        b"\x80\x04\x8c\rtests.samples\x94\x8c\x05Point\x94\x93\x94)\x81\x94}\x94(\x8c\x01x\x94K\x01\x8c\x01y\x94K\x02"
    )
    assert vars(ours.loads(head + b"ub.")) == {"x": 1, "y": 2}
    for module in (pickle, ours):
        with pytest.raises(pickle.UnpicklingError, match="odd number of items for SETITEMS"):
            module.loads(head + b"K\x03ub.")


INT_LINES = [
    *(b"-0 +0 +1 00 01 -1 10 0 1 0x1 1_0 0o _1 __ 08 09 0a".split(b" ")),
    *(bytes([char]) + digit for char in (*range(10), *range(11, 33), 0xA0) for digit in (b"0", b"1", b"2", b"")),
    *(digit + bytes([char]) for char in (*range(10), *range(11, 33), 0xA0) for digit in (b"0", b"1", b"2")),
    b"1\0abc",
    b"\0abc",
    b" \0",
]


def test_int_lines() -> None:
    for line in INT_LINES:
        data = b"I" + line + b"\n."
        ours, theirs = outcome(quickpickle.loads, data), outcome(pickle.loads, data)
        assert ours == theirs, line
        assert type(getattr(ours, "value", None)) is type(getattr(theirs, "value", None)), line
