"""Lists, tuples, dicts and sets around batch sizes, memo index widths and frame ends."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

SIZES = (0, 1, 2, 3, 4, 5, 255, 256, 257, 998, 999, 1000, 1001, 1002, 1999, 2000, 2001, 3000)


def values() -> Iterator[tuple[str, Any]]:
    """Yield the containers."""
    for n in SIZES:
        yield f"list {n}", list(range(n))
        yield f"tuple {n}", tuple(range(n))
        yield f"dict {n}", {i: str(i) for i in range(n)}
        yield f"set {n}", {i * 7 for i in range(n)}
        yield f"frozenset {n}", frozenset(i * 7 for i in range(n))
        yield f"OrderedDict {n}", collections.OrderedDict((i, None) for i in range(n))
        yield f"deque {n}", collections.deque(range(n))
    yield "list of none", [None] * 5
    yield "list mixed", [None, True, 1, 1.5, "s", b"b", (), [], {}, set(), frozenset(), ...]
    yield "dict mixed keys", {None: 1, 1: 2, "a": 3, b"b": 4, (1, 2): 5, 1.5: 6, frozenset([1]): 7}
    yield "dict str keys", {"id": 1, "name": "x", "tags": ["a", "b"]}
    yield "records", [{"id": i, "name": str(i), "tags": ("a", i % 3)} for i in range(300)]
    yield "dict of tuple keys", {(x, "a"): x for x in range(1200)}
    yield "pairs", [(i % 100, i) for i in range(1024)]
    yield "floats", [i / 7 for i in range(1024)]
    yield "strs", [f"s{i}" for i in range(1024)]
    yield "equal strs", ["same"] * 20 + ["".join(["sa", "me"]) for _ in range(20)]
    yield "equal bytes", [b"same"] * 20
    yield "equal ints", [12345678901] * 20
    yield "nested lists", [[[[[[]]]]], [[], [[]]]]
    yield "nested tuples", ((((((),),),),), ((), ((),)))
    yield "nested dicts", {"a": {"b": {"c": {"d": {}}}}}
    yield "nested sets", frozenset([frozenset([frozenset()]), frozenset([1])])
    yield from _memo_widths()
    yield from _frames()


def _memo_widths() -> Iterator[tuple[str, Any]]:
    """BINPUT and BINGET hold one byte; from index 256 the LONG_ forms take over."""
    for n in (254, 255, 256, 257, 258, 300):
        inner: list[list[int]] = [[i] for i in range(n)]
        yield f"memo {n}", [inner, inner[:]]
    wide: list[list[int]] = [[] for _ in range(66_000)]
    yield "memo 66000", [wide, wide[65_530:65_540], wide[0], wide[-1]]


def _frames() -> Iterator[tuple[str, Any]]:
    """Protocol 4 closes a frame once it holds 64 KiB, and leaves larger objects outside frames."""
    for n in (65_500, 65_515, 65_520, 65_525, 65_526, 65_527, 65_528, 65_529, 65_530, 65_531, 65_532):
        yield f"frame bytes {n}", [b"q" * n, 1, "tail"]
        yield f"frame str {n}", ["q" * n, 1, "tail"]
    yield "frames many small", [bytes([i % 256]) * 100 for i in range(2000)]
    yield "frames many strs", ["%06d" % i for i in range(30_000)]
    for pad in range(8):
        yield f"frame edge {pad}", ["x" * (65_521 + pad)] + list(range(300)) + ["end" * 50]
    yield "frames small big small", ["a", b"B" * 70_000, "c", "D" * 70_000, "e", bytearray(70_000), "f"]
    yield "frames big in dict", {"k": b"B" * 66_000, "l": {"m": "M" * 66_000}}
    yield "frames big only", b"x" * 300_000
    yield "frames twice the same", [blob := b"y" * 80_000, blob]
