"""Shared and recursive structures: cycles through every container, and the same object met by several ways."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

from tests import samples as s


def values() -> Iterator[tuple[str, Any]]:
    """Yield the graphs."""
    yield from _sharing()
    yield from _self_reference()
    yield from _recursive_tuples()
    yield from _objects()


def _sharing() -> Iterator[tuple[str, Any]]:
    for name, shared in (
        *(("list", [1]), ("dict", {1: 2}), ("set", {1}), ("tuple", (1, 2)), ("long tuple", (1, 2, 3, 4))),
        *(("str", "shared"), ("bytes", b"shared"), ("bytearray", bytearray(b"shared")), ("int", 10**30)),
        *(("frozenset", frozenset([1])), ("float", 1.25), ("class", s.Point), ("function", s.function)),
        *(("instance", s.Point(1, 2)), ("empty tuple", ()), ("big", b"x" * 70_000)),
    ):
        yield f"shared {name}", [shared, shared, (shared, [shared]), {"k": shared, "l": [shared]}]
    common: list[int] = []
    yield "diamond", ([common, 1], [common, 2], {"c": common})
    level: Any = ["leaf"]
    for _ in range(20):
        level = [level, level]
    yield "doubling lists", level
    level = ("leaf",)
    for _ in range(20):
        level = (level, level)
    yield "doubling tuples", level
    level = {}
    for _ in range(15):
        level = {"l": level, "r": level}
    yield "doubling dicts", level


def _self_reference() -> Iterator[tuple[str, Any]]:
    loop: list[Any] = []
    loop.append(loop)
    yield "list in itself", loop
    table: dict[Any, Any] = {}
    table["me"] = table
    yield "dict in itself", table
    ring: list[Any] = [1]
    second: dict[str, Any] = {"ring": ring}
    ring += [second, (ring, second)]
    yield "ring of list, dict, tuple", ring
    queue: collections.deque[Any] = collections.deque()
    queue.append(queue)
    yield "deque in itself", queue
    ordered: Any = collections.OrderedDict()
    ordered["me"] = [ordered]
    yield "OrderedDict in itself", ordered
    for kind in (s.ListChild, s.DictChild, s.SetChild):
        item: Any = kind()
        item.me = item
        yield f"{kind.__name__} with itself as attribute", item
    key: Any = s.Point(1, 2)
    key.table = {key: 1}
    yield "instance as key of its own dict", key


def _recursive_tuples() -> Iterator[tuple[str, Any]]:
    """A tuple is memoised after its items, so one inside itself is met again before it has a memo entry."""
    for width in range(1, 6):
        inner: list[Any] = []
        t = tuple([inner] + list(range(width - 1)))
        inner.append(t)
        yield f"recursive tuple {width} from tuple", t
        yield f"recursive tuple {width} from list", inner
    for width in (1, 2, 4):
        table: dict[str, Any] = {}
        t = tuple([table] * width)
        table["t"] = t
        yield f"recursive tuple {width} through dict", t
        holder = s.Plain()
        t = tuple([holder] * width)
        holder.t = t
        yield f"recursive tuple {width} through instance", t
    inner = []
    inner += [(inner, [7]), ([8], inner), ((inner,), [9])]
    yield "recursive tuples with fresh siblings", inner
    fresh: list[Any] = []
    t = ([1, 2], {"a": [3]}, fresh, ("x", [4]))
    fresh.append(t)
    yield "recursive tuple of fresh children", t
    a: list[Any] = []
    b = (a, ([5], a))
    a += [b, b]
    yield "recursive tuple twice", (b, a, b)
    items: set[Any] = set()
    member = s.Plain()
    member.of = items
    items.add(member)
    yield "set through instance", items
    frozen_member = s.Plain()
    frozen = frozenset([frozen_member])
    frozen_member.of = frozen
    yield "frozenset through instance", frozen
    yield "frozenset through instance, from it", frozen_member
    many = [s.Node(i) for i in range(3)]
    frozen = frozenset(many)
    for m in many:
        m.next = (frozen, [frozen])
    yield "frozenset of three through instances", [frozen, many]


def _objects() -> Iterator[tuple[str, Any]]:
    a, b = s.Node("a"), s.Node("b")
    a.next, b.next = b, a
    yield "two nodes", a
    node = s.Node(0)
    node.next = node
    yield "node to itself", [node, node]
    chain = last = s.Node(0)
    for i in range(100):
        last.next = s.Node(i)
        last = last.next
    yield "chain of nodes", chain
    state = {"x": 1}
    one, two = s.Plain(), s.Plain()
    one.__dict__ = two.__dict__ = state
    yield "two instances with one dict", [one, two]
    yield "two instances with one dict, and the dict", [one, state, two]
    yield "the dict before its instances", [state, one, two]
    point = s.Point([], {})
    point.x.append(point)
    point.y[point] = point
    yield "instance inside its own values", point
    slots = s.Slots(1, [])
    slots.b.append(slots)
    yield "slots inside its own values", slots
    args: list[Any] = []
    made = s.NewArgs(args)
    args.append(1)
    yield "newargs shared with value", [made, args]
    key = ("k",)
    yield "shared key", [{key: 1}, {key: 2}, key]
    yield "same attribute names", [s.Point(i, -i) for i in range(50)]
    yield "same attribute names and values", [s.Point("v", "w") for _ in range(50)]
