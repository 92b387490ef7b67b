"""Small plain objects are written without an engine: the bytes are the same, at and around every limit of that way."""

from __future__ import annotations

import _pickle
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quickpickle

ATOMS: list[Any] = [
    None,
    True,
    0,
    -1,
    255,
    256,
    65536,
    -(2**31),
    2**31,
    1.5,
    "",
    "a",
    "é",
    "\udc80",
    b"",
    b"xy",
    (),
    1j,
]


def check(obj: object) -> None:
    assert quickpickle.dumps(obj) == _pickle.dumps(obj)


def inside_itself(depth: int) -> list[object]:
    """A list that holds itself in a tuple, so many levels down."""
    root: list[object] = []
    inner = root
    for _ in range(depth):
        inner.append([])
        inner = inner[0]  # type: ignore[assignment]
    inner.append((root,))
    return root


@pytest.mark.parametrize(
    "wrap", [lambda a: (a,), lambda a: [a], lambda a: {"k": a}, lambda a: {1: a, "a": [a, (a, a)]}]
)
@pytest.mark.parametrize("atom", ATOMS, ids=repr)
def test_atoms_in_containers(atom: object, wrap: Any) -> None:
    check(atom)
    check(wrap(atom))


@pytest.mark.parametrize("count", range(28))
def test_sizes(count: int) -> None:
    check(tuple(range(count)))
    check(list(range(count)))
    check({str(n): n for n in range(count)})
    check([[n] for n in range(count)])
    check([("s%d" % n) for n in range(count)] * 2)


@pytest.mark.parametrize("length", [*range(30, 70), *range(200, 270)])
def test_lengths(length: int) -> None:
    text = "x" * length
    for obj in (text, text.encode(), [text], (text, text), {text: 1}, [text.encode()]):
        check(obj)


@pytest.mark.parametrize("depth", range(8))
def test_depths(depth: int) -> None:
    obj: object = "leaf"
    for level in range(depth):
        obj = [obj] if level % 2 else (obj, level)
    check(obj)
    check(inside_itself(depth))


def test_a_tuple_inside_itself() -> None:
    inner: list[object] = []
    tuple_ = (inner,)
    inner.append(tuple_)
    check(tuple_)
    check(inner)
    mapping: dict[str, object] = {}
    mapping["self"] = (mapping, mapping)
    check(mapping)


def test_a_split_dict() -> None:
    class Point:
        def __init__(self) -> None:
            self.x, self.y = 1, 2

    one, two = Point(), Point()
    check(vars(one))
    check([vars(one), vars(two), vars(one)])


@given(
    st.recursive(
        st.sampled_from(ATOMS) | st.integers() | st.text(max_size=40) | st.binary(max_size=40) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=9)
            | st.lists(inner, max_size=9).map(tuple)
            | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=9)
        ),
        max_leaves=20,
    )
)
def test_any_plain_object(obj: object) -> None:
    check(obj)
    check([obj, obj])


def test_shared_objects() -> None:
    parts: list[Any] = ["word", b"data", [1], {"a": 1}, (1, "word"), 2.5]
    for chosen in itertools.product(parts, repeat=3):
        check(chosen)
        check(list(chosen))
