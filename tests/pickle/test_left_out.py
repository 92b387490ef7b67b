"""Arguments that the memo keeps as values: a pickle that refers to them, or to their tuple, again gets objects."""

from __future__ import annotations

import _pickle
import io
import pickle
import sys
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

import quickpickle

from ..outcomes import Raised, Returned, outcome

# What is left out has number 3, its tuple 4, the object 5.
CALLS = {
    "datetime": (b"\x8c\x08datetime\x94\x8c\x08datetime\x94\x93\x94", datetime(2020, 1, 2, 3, 4, 5, 6)),
    "date": (b"\x8c\x08datetime\x94\x8c\x04date\x94\x93\x94", date(2020, 1, 2)),
    "time": (b"\x8c\x08datetime\x94\x8c\x04time\x94\x93\x94", time(3, 4, 5, 6)),
    "Decimal": (b"\x8c\x07decimal\x94\x8c\x07Decimal\x94\x93\x94", Decimal("1.25")),
}


def call(name: str) -> bytes:
    names, value = CALLS[name]
    (argument,) = value.__reduce__()[1]
    if isinstance(argument, bytes):
        payload = b"C" + bytes([len(argument)]) + argument
    else:
        payload = b"\x8c" + bytes([len(argument)]) + argument.encode()
    return b"\x80\x04" + names + payload + b"\x94\x85\x94R\x94"


TAILS = {
    "argument": b"h\x03.",
    "tuple": b"h\x04.",
    "tuple first": b"h\x04h\x03h\x04\x87.",
    "argument first": b"h\x03h\x04h\x03\x87.",
    "argument replaced": b"K\x05q\x030h\x03h\x04\x86.",
    "tuple replaced": b"K\x05q\x040h\x04h\x03\x86.",
    "both replaced": b"K\x05q\x03q\x040h\x04h\x03\x86.",
    "replaced after": b"h\x03K\x05q\x03h\x04\x87.",
    "object": b"h\x05\x86.",
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", CALLS)
def test_referred_to_again(name: str, tail: str) -> None:
    data = call(name) + TAILS[tail]
    assert quickpickle.loads(data) == _pickle.loads(data)
    assert quickpickle.load(io.BytesIO(data)) == _pickle.loads(data)


@pytest.mark.parametrize("name", CALLS)
def test_identity_is_kept(name: str) -> None:
    first, argument, again = quickpickle.loads(call(name) + TAILS["tuple first"])
    assert first is again
    assert first[0] is argument


@pytest.mark.parametrize("name", CALLS)
def test_the_memo_shows_them(name: str) -> None:
    data = call(name) + b"."
    ours, theirs = quickpickle.Unpickler(io.BytesIO(data)), _pickle.Unpickler(io.BytesIO(data))
    assert ours.load() == theirs.load()
    assert ours.memo.copy() == theirs.memo.copy()
    ours.memo = theirs.memo.copy()
    assert ours.memo.copy() == theirs.memo.copy()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_many(name: str, protocol: int) -> None:
    value: Any = CALLS[name][1]
    step = [value.replace(year=1 + n) for n in range(500)] if hasattr(value, "year") else [value] * 3
    data = _pickle.dumps(step, protocol)
    assert quickpickle.loads(data) == step
    for end in range(len(data)):
        assert isinstance(outcome(quickpickle.loads, data[:end]), Raised)


class Keeps:
    """A callable that keeps its argument, for the test to find."""

    kept: list[object] = []  # noqa: RUF012

    def __init__(self, text: str) -> None:
        self.kept.append(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Keeps, ("an argument",)


def test_a_callable_that_keeps_its_argument() -> None:
    Keeps.kept.clear()
    data = pickle.dumps(Keeps("x"), 4)
    # Without its frame and end, and with a reference to the argument put behind.
    data = data[:2] + data[11:-1] + b"h\x03\x86."
    _, argument = quickpickle.loads(data)
    assert Keeps.kept[-1] is argument


def test_a_callable_that_keeps_its_tuple() -> None:
    data = b"\x80\x04\x8c\x08builtins\x94\x8c\x0aValueError\x94\x93\x94\x8c\x06a text\x94\x85\x94R\x94h\x04h\x03\x87."
    error, args, text = quickpickle.loads(data)
    assert error.args is args
    assert args[0] is text


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x8c\x03abc\x94\x85\x94R\x94.",
        b"\x80\x04(\x8c\x03abc\x94\x85\x94R\x94.",
        b"\x80\x04K\x01\x8c\x03abc\x94\x85\x94R\x94.",
        b"\x80\x04K\x01(\x8c\x03abc\x94\x85\x94R\x94.",
        b"\x80\x04K\x01C\x04\x07\xe4\x01\x02\x94\x85\x94R\x94.",
        b"\x80\x04\x8c\x07decimal\x94\x8c\x07Decimal\x94\x93\x94\x8c\x03axx\x94\x85\x94R\x94.",
        b"\x80\x04\x8c\x08datetime\x94\x8c\x04date\x94\x93\x94C\x04\x07\xe4\x0d\x02\x94\x85\x94R\x94.",
        b"\x80\x04\x8c\x08datetime\x94\x8c\x04date\x94\x93\x94C\x04\x07\xe4\x02\x1e\x94\x85\x94R\x94.",
        b"\x80\x04\x8c\x08datetime\x94\x8c\x09timedelta\x94\x93\x94C\x04\x07\xe4\x02\x1e\x94\x85\x94R\x94.",
    ],
)
def test_calls_that_fail_or_are_none(data: bytes) -> None:
    assert outcome(quickpickle.loads, data) == outcome(_pickle.loads, data)


def test_calls_nested_in_calls() -> None:
    """The callable may load a pickle itself, with arguments of its own."""
    inner = pickle.dumps([Decimal("1.5"), Decimal("2.5")])
    INNER[:] = [inner]
    data = pickle.dumps([Nests("x"), Decimal("7.5"), Nests("y"), Decimal("8.5")])
    loaded = quickpickle.loads(data)
    assert loaded == [
        [Decimal("1.5"), Decimal("2.5"), "x"],
        Decimal("7.5"),
        [Decimal("1.5"), Decimal("2.5"), "y"],
        Decimal("8.5"),
    ]


class Nests:
    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return nests, (self.text,)


def nests(text: str) -> list[object]:
    return [*quickpickle.loads(INNER[0]), text]


INNER: list[bytes] = []


def test_references_are_given_back() -> None:
    texts = ["a text of %d" % n for n in range(20)]
    data = pickle.dumps([Decimal(n) for n in range(1000)] + texts)
    quickpickle.loads(data)
    before = sys.getrefcount(Decimal), sys.getrefcount(tuple)
    for _ in range(50):
        assert isinstance(outcome(quickpickle.loads, data), Returned)
    after = sys.getrefcount(Decimal), sys.getrefcount(tuple)
    assert all(abs(b - a) < 20 for a, b in zip(before, after, strict=True))
