"""Dicts whose tables are built in one go: keys of every plain type, equal keys, and what a dict must still do after."""

from __future__ import annotations

import gc
import pickle
import random
from typing import Any

import pytest

import quickpickle

KEYS: list[Any] = [
    *range(-6, 8),
    256,
    257,
    2**30 - 1,
    2**30,
    -(2**30),
    2**61 - 2,
    2**61 - 1,
    2**61,
    -(2**61),
    2**70,
    0.0,
    -0.0,
    1.0,
    2.5,
    float("inf"),
    1e300,
    True,
    False,
    b"",
    b"a",
    "a",
    "b" * 300,
    "\u00e9",
    "",
]
OTHER: list[Any] = [None, (), (1, 2), ("a", (2.5, None)), frozenset({1}), int, 3 + 4j]


def stream(pairs: list[tuple[Any, Any]], protocol: int) -> bytes:
    """Return a pickle whose dict is given ``pairs``, equal keys and all."""

    def body(value: Any) -> bytes:
        blob = pickle.dumps(value, protocol)
        start = 2 if protocol < 4 or blob[2:3] != b"\x95" else 11
        # Memo numbers are relative to the pickle: only values that have none, or none that is fetched, are put in here.
        return blob[start:-1]

    head = b"\x80" + bytes([protocol])
    return head + b"}(" + b"".join(body(key) + body(value) for key, value in pairs) + b"u."


def same(ours: dict[Any, Any], theirs: dict[Any, Any]) -> None:
    assert repr(list(ours.items())) == repr(list(theirs.items()))
    assert [type(k) for k in ours] == [type(k) for k in theirs]
    for key, value in theirs.items():
        assert key in ours
        assert repr(ours[key]) == repr(value)
    assert gc.is_tracked(ours) or not gc.is_tracked(theirs)
    copies = [d.copy() for d in (ours, theirs)]
    for d in (ours, theirs):
        for i in range(50):
            d[("later", i)] = i
        for key in list(d)[::3]:
            del d[key]
    assert repr(list(ours.items())) == repr(list(theirs.items()))
    assert repr(list(copies[0].items())) == repr(list(copies[1].items()))
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_of_keys(protocol: int, seed: int) -> None:
    rng = random.Random(seed)
    for count in [1, 2, 3, 5, 6, 7, 10, 11, 12, 21, 22, 30]:
        pool = KEYS if rng.random() < 0.6 else KEYS + OTHER
        pairs = [(rng.choice(pool), rng.choice([1, None, [], "v", (1, [])])) for _ in range(count)]
        blob = stream(pairs, protocol)
        same(quickpickle.loads(blob), pickle.loads(blob))


@pytest.mark.parametrize("size", [1, 5, 6, 10, 11, 21, 22, 42, 43, 85, 86, 170, 171, 1000, 1001])
@pytest.mark.parametrize("step", [1, 8, 1 << 20, -3])
def test_ints_that_fall_together(size: int, step: int) -> None:
    value = {at * step: str(at) for at in range(size)}
    blob = pickle.dumps(value)
    same(quickpickle.loads(blob), pickle.loads(blob))


def test_equal_keys_of_different_types_keep_the_first() -> None:
    blob = stream([(1, "int"), (True, "bool"), (1.0, "float"), (0, "zero"), (False, "no"), (-1, "a"), (-2, "b")], 4)
    got = quickpickle.loads(blob)
    assert list(got.items()) == [(1, "float"), (0, "no"), (-1, "a"), (-2, "b")]
    assert [type(k) for k in got] == [int, int, int, int]


def test_garbage_is_found_through_int_keys() -> None:
    gc.collect()
    loop: dict[int, Any] = {1: 2, 3: None}
    loop[3] = [loop]
    blob = pickle.dumps([loop] * 20)
    for _ in range(50):
        quickpickle.loads(blob)
    assert gc.collect() >= 2


def test_values_are_freed_with_the_dict() -> None:
    import sys

    marker = object.__new__(type("Marker", (), {}))
    before = sys.getrefcount(marker)

    class Loader(quickpickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return marker

    import io

    blob = b"\x80\x04}(K\x01K\x05QK\x02K\x06QK\x03K\x07Qu."
    for _ in range(100):
        got = Loader(io.BytesIO(blob)).load()
        assert got == {1: marker, 2: marker, 3: marker}
    del got
    assert sys.getrefcount(marker) == before
