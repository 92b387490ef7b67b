"""Shortcuts that look at reference counts or skip what nobody else can see must not show.

A pickler may leave an object out of its memo table when it holds the only reference, and an unpickler may build an
instance without making its state dict. Every test here is a way for user code to see through such a shortcut; what the
reference does is asked of the reference.
"""

from __future__ import annotations

import gc
import io
import pickle
import sys
import weakref
from types import ModuleType
from typing import Any

import pytest

from tests import samples as s
from tests.equality import assert_same_graph
from tests.outcomes import as_reference, outcome

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
REGISTRY: dict[str, Any] = {}


def both(ours: ModuleType, make: Any, protocol: int) -> tuple[Any, Any]:
    """Dump what ``make`` returns by each implementation, fresh each time so that counts are alike."""
    return outcome(lambda: ours.dumps(make(), protocol)), outcome(lambda: pickle.dumps(make(), protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_recursive_tuples_of_temporaries(ours: ModuleType, protocol: int) -> None:
    """A tuple gets its memo entry after its items: a child that nobody else holds is visited twice."""

    def simple() -> Any:
        inner: list[Any] = []
        inner.append((inner, [1], {"a": [2]}, ([3],)))
        return inner

    def from_tuple() -> Any:
        inner: list[Any] = []
        outer = (inner, [1], ([2], {"k": [3]}))
        inner.append(outer)
        return outer

    def nested() -> Any:
        inner: list[Any] = []
        inner.append((([inner], [1]), [2], ((inner, [3]), [4])))
        return inner

    def deep() -> Any:
        inner: list[Any] = []
        t: Any = (inner, [0])
        for i in range(20):
            t = (t, [i], {"i": [i]})
        inner.append(t)
        return inner

    def through_instance() -> Any:
        node = s.Node([1])
        node.next = (node, [2], s.Node(([3], node)))
        return node

    def through_reduce() -> Any:
        args: list[Any] = []
        item = s.Reduced((s.function, (args, [1])))
        args.append((item, [2]))
        return item

    for make in (simple, from_tuple, nested, deep, through_instance):
        mine, theirs = both(ours, make, protocol)
        assert mine == theirs, make.__name__
        assert_same_graph(ours.loads(mine.value), make())
    mine, theirs = both(ours, through_reduce, protocol)
    assert mine == theirs or mine.kind is theirs.kind is RecursionError


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_reached_through_weak_references(ours: ModuleType, protocol: int) -> None:
    """A later __reduce__ finds an earlier object by weak reference; both mentions must be one object."""

    def make() -> Any:
        first = s.Node("first")
        link = weakref.ref(first)
        return [
            first,
            [s.Calling(lambda: (s.function, (link(), [1])))],
            {"again": s.Calling(lambda: (s.function, (link(),)))},
        ]

    mine, theirs = both(ours, make, protocol)
    assert mine == theirs
    loaded = ours.loads(mine.value)
    assert loaded[1][0][0][0] is loaded[0]
    assert loaded[2]["again"][0][0] is loaded[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_reached_through_registries(ours: ModuleType, protocol: int) -> None:
    """User code fishes objects out of gc.get_objects, gc.get_referents or a parent it holds."""

    def by_parent() -> Any:
        root: list[Any] = [[1], {"k": [2]}, (3, [4]), {5}, bytearray(b"6")]
        root.append(s.Calling(lambda: (s.function, (root[0], root[1]["k"], root[2], root[2][1], root[3], root[4]))))
        root.append([7])
        root.append(s.Calling(lambda: (s.function, (root[6], root[0]))))
        return root

    def by_referents() -> Any:
        holder = s.Point([1], [[2]])
        link = weakref.ref(holder)
        calling = s.Calling(lambda: (s.function, (link().x, link().y[0])))  # type: ignore[union-attr]
        return [holder, calling]

    def by_gc() -> Any:
        mark = s.Node("gc-mark")
        mark.next = ["found by gc"]

        def find() -> Any:
            found = [o for o in gc.get_objects() if type(o) is s.Node and o.label == "gc-mark"]
            return s.function, (found[-1].next,)

        return [mark, s.Calling(find)]

    for make in (by_parent, by_referents, by_gc):
        mine, theirs = both(ours, make, protocol)
        assert mine == theirs, make.__name__
    loaded = ours.loads(both(ours, by_parent, protocol)[0].value)
    assert loaded[5][0][0] is loaded[0]
    assert loaded[7][0][0] is loaded[6]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_hooks_keep_what_they_saw(ours: ModuleType, protocol: int) -> None:
    """persistent_id and reducer_override may keep an object and bring it back later in the same dump."""

    def dump(module: ModuleType, value: Any) -> bytes:
        kept: list[Any] = []

        class Keeps(module.Pickler):  # type: ignore[name-defined,misc]
            def persistent_id(self, obj: Any) -> Any:
                if type(obj) is list and len(kept) < 5:
                    kept.append(obj)
                return None

            def reducer_override(self, obj: Any) -> Any:
                if isinstance(obj, s.Plain):
                    return s.function, (kept[1], kept[2], kept)
                return NotImplemented

        file = io.BytesIO()
        Keeps(file, protocol).dump(value)
        return file.getvalue()

    def make() -> Any:
        return [[1], [2, [3]], s.Plain(), [4], s.Plain()]

    assert dump(ours, make()) == dump(pickle, make())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reused_addresses(ours: ModuleType, protocol: int) -> None:
    """Temporaries of reduce values die during the dump in careless picklers, and new ones take their address."""

    def make() -> Any:
        return [s.Calling(lambda i=i: (s.function, ([i], {"i": [i]}, (i, [i]), f"text {i}" * 2))) for i in range(200)]  # type: ignore[misc]

    mine, theirs = both(ours, make, protocol)
    assert mine == theirs
    loaded = ours.loads(mine.value)
    assert [args[0] for args, _ in loaded] == [[i] for i in range(200)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reduce_drops_and_clears_what_is_open(ours: ModuleType, protocol: int) -> None:
    """A __reduce__ empties the containers that are being saved around it; bytes agree or both raise."""

    def clearing(kind: str) -> Any:
        root: Any = [[1], [2]] if kind != "dict" else {"a": [1], "b": [2]}

        def clear() -> Any:
            root.clear()
            gc.collect()
            return s.function, ([9],)

        if kind == "dict":
            root["c"] = s.Calling(clear)
            root["d"] = [3]
        else:
            root.append(s.Calling(clear))
            root.append([3])
        return root

    for kind in ("list", "dict"):
        mine, theirs = both(ours, lambda k=kind: clearing(k), protocol)  # type: ignore[misc]
        assert mine == theirs, kind


def test_references_are_given_back(ours: ModuleType) -> None:
    """After a dump nothing is still held, whether it succeeded or not."""
    item = [s.Point([1], (2, [3])), {"k": s.Node("n")}, "text" * 5, ([4],) * 3]
    parts = [item, *item, item[0].x, item[0].y, item[1]["k"], item[1]["k"].__dict__, item[3][0]]
    bad = [item, s.numbers(1)]
    ours.dumps(item)
    before = [sys.getrefcount(p) for p in parts]
    for protocol in PROTOCOLS:
        ours.dumps(item, protocol)
        with pytest.raises(TypeError):
            ours.dumps(bad, protocol)
    del bad
    gc.collect()
    assert [sys.getrefcount(p) for p in parts] == [b - 1 if i == 0 else b for i, b in enumerate(before)]


def test_weakly_referenced_objects_die_after_a_dump(ours: ModuleType) -> None:
    for make in (lambda: s.Node([1]), lambda: s.SetChild({1}), lambda: s.Point(s.Node(1), s.Node(2))):
        item = make()
        link = weakref.ref(item)
        ours.dumps([item, [item]])
        del item
        assert link() is None


STATE_LOOKALIKES = {
    # After NEWOBJ, a `}` that BUILD does not take is a dict of its own.
    "sibling dict": b"(ctests.samples\nPlain\n)\x81}X\x01\x00\x00\x00aK\x01st.",
    "sibling dict by setitems": b"(ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01ut.",
    "sibling dict, then build": b"(ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01u}(X\x01\x00\x00\x00bK\x02ubt.",
    "two batches, then build": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01u(X\x01\x00\x00\x00bK\x02ub.",
    "setitem after setitems": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01uX\x01\x00\x00\x00bK\x02sb.",
    "memoised state": b"(ctests.samples\nPlain\n)\x81}q\x01(X\x01\x00\x00\x00aK\x01ubh\x01t.",
    "memoised state read before build": b"(ctests.samples\nPlain\n)\x81}q\x01(X\x01\x00\x00\x00aK\x01uh\x010bh\x01t.",
    "state that holds itself": b"(ctests.samples\nPlain\n)\x81}q\x01(X\x01\x00\x00\x00ah\x01ubh\x01t.",
    "state that holds the instance": b"(ctests.samples\nPlain\n)\x81q\x00}q\x01(X\x01\x00\x00\x00ah\x00ubh\x01t.",
    "state duplicated": b"(ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01u2bt.",
    "same state for two": b"(ctests.samples\nPlain\n)\x81}q\x01(X\x01\x00\x00\x00aK\x01ubctests.samples\nPlain\n)\x81h\x01bt.",
    "state changed after build": b"(ctests.samples\nPlain\n)\x81q\x00}q\x01(X\x01\x00\x00\x00aK\x01ubh\x01X\x01\x00\x00\x00bK\x02sh\x00t.",
    "built twice": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01ub}(X\x01\x00\x00\x00aK\x05X\x01\x00\x00\x00bK\x02ub.",
    "keys not str": b"ctests.samples\nPlain\n)\x81}(K\x01K\x01X\x01\x00\x00\x00aK\x01ub.",
    "key unhashable": b"ctests.samples\nPlain\n)\x81}(]K\x01ub.",
    "odd items": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aub.",
    "no items": b"ctests.samples\nPlain\n)\x81}(ub.",
    "empty state": b"ctests.samples\nPlain\n)\x81}b.",
    "repeated key": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00aK\x02ub.",
    "instance elsewhere": b"(ctests.samples\nPlain\n)\x81q\x00h\x00}(X\x01\x00\x00\x00aK\x01ubt.",
    "instance popped": b"(ctests.samples\nPlain\n)\x810}(X\x01\x00\x00\x00aK\x01ut.",
    "instance duplicated": b"(ctests.samples\nPlain\n)\x812}(X\x01\x00\x00\x00aK\x01ubt.",
    "mark between": b"ctests.samples\nPlain\n)\x81(}(X\x01\x00\x00\x00aK\x01u1b.",
    "dict for a list": b"](ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01ue.",
    "state popped": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01u0.",
    "state inside state": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00actests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00bK\x01ubub.",
    "inner without build": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00actests.samples\nPlain\n)\x81X\x01\x00\x00\x00b}(X\x01\x00\x00\x00cK\x01uub.",
    "inner instance in state, dict after": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00actests.samples\nPlain\n)\x81X\x01\x00\x00\x00b}ub.",
    "build on class": b"ctests.samples\nPlain\n}(X\x0a\x00\x00\x00built_hereK\x01ub.",
    "slots and dict": b"ctests.samples\nSlotsAndDict\n)\x81}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00zK\x02ub.",
    "slots without dict": b"ctests.samples\nSlots\n)\x81}(X\x01\x00\x00\x00aK\x01ub.",
    "list child": b"ctests.samples\nListChild\n)\x81}(X\x01\x00\x00\x00aK\x01ub.",
    "dict child": b"ctests.samples\nDictChild\n)\x81}(X\x01\x00\x00\x00aK\x01ub.",
    "dict child items": b"ctests.samples\nDictChild\n)\x81(X\x01\x00\x00\x00aK\x01u}(X\x01\x00\x00\x00bK\x01ub.",
    "described": b"ctests.samples\nDescribed\n)\x81}(X\x05\x00\x00\x00valueK\x01X\x05\x00\x00\x00otherK\x01ub.",
    "setattr": b"ctests.samples\nSetAttr\n)\x81}(X\x01\x00\x00\x00aK\x01ub.",
    "setstate": b"ctests.samples\nSetStateOnly\n)\x81}(X\x01\x00\x00\x00aK\x01ub.",
    "dunder dict key": b"ctests.samples\nPlain\n)\x81}(X\x08\x00\x00\x00__dict__K\x01X\x09\x00\x00\x00__class__K\x02ub.",
    "setstate in state": b"ctests.samples\nPlain\n)\x81}(X\x0c\x00\x00\x00__setstate__K\x01ub}(X\x01\x00\x00\x00aK\x01ub.",
    "many attributes": b"ctests.samples\nPlain\n)\x81}("
    + b"".join(b"X\x04\x00\x00\x00a%03dM%c%c" % (i, i & 255, i >> 8) for i in range(300))
    + b"ub.",
    "frozen dataclass": b"ctests.samples\nFrozenRecord\n)\x81}(X\x04\x00\x00\x00nameK\x01ub.",
    "exception": b"ctests.samples\nAppError\n)R}(X\x05\x00\x00\x00extraK\x01ub.",
    "frame ends inside state": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00ctests.samples\nPlain\n)\x81}(\x8c"
    b"\x95\x07\x00\x00\x00\x00\x00\x00\x00\x01aK\x01ub.",
    "truncated in state": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01u",
    "truncated before setitems": b"ctests.samples\nPlain\n)\x81}(X\x01\x00\x00\x00aK\x01",
}


@pytest.mark.parametrize("name", STATE_LOOKALIKES)
@pytest.mark.parametrize("from_file", [False, True])
def test_dicts_that_look_like_state(ours: ModuleType, name: str, from_file: bool) -> None:
    data = STATE_LOOKALIKES[name]

    def load(module: ModuleType) -> Any:
        return module.load(io.BytesIO(data)) if from_file else module.loads(data)

    def named(result: Any) -> Any:
        return as_reference(result)

    s.Plain.built_here = 0  # type: ignore[attr-defined]
    mine = outcome(load, ours)
    built = s.Plain.built_here  # type: ignore[attr-defined]
    s.Plain.built_here = 0  # type: ignore[attr-defined]
    theirs = outcome(load, pickle)
    assert built == s.Plain.built_here  # type: ignore[attr-defined]
    del s.Plain.built_here  # type: ignore[attr-defined]
    if hasattr(theirs, "value") and hasattr(mine, "value"):
        assert_same_graph(mine.value, theirs.value)
    else:
        assert named(mine) == named(theirs)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_instances_of_many_layouts_in_one_load(ours: ModuleType, protocol: int) -> None:
    """Attribute orders, counts and missing names that differ from instance to instance of one class."""
    items = []
    for i in range(200):
        item = s.Plain()
        for j in range(i % 7):
            setattr(item, f"a{(i * j) % 11}", [i, j])
        items.append(item)
    for i in range(40):
        point = s.Point(i, -i)
        if i % 3 == 0:
            point.x, point.extra = [point], i  # type: ignore[attr-defined]
        if i % 5 == 0:
            del point.y
        items.append(point)
    data = pickle.dumps(items, protocol)
    assert ours.dumps(items, protocol) == data
    loaded = ours.loads(data)
    assert_same_graph(loaded, pickle.loads(data))
    for item in loaded:  # still ordinary instances: attributes can be added, removed and listed
        item.later = 1
        del item.later
        assert "later" not in vars(item)
        assert not hasattr(item, "nothing")


@pytest.mark.parametrize("n", [999, 1000, 1001, 2000, 2001])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dict_of_exactly_a_thousand_items_gets_an_empty_batch(ours: ModuleType, protocol: int, n: int) -> None:
    """The C pickler ends such a dict with MARK SETITEMS; state dicts, dict subclasses and sets have rules of their own."""
    table = {i: i for i in range(n)}
    item = s.Plain()
    item.__dict__.update({f"a{i}": i for i in range(n)})
    for value in (table, item, s.DictChild(table), set(table), list(table), frozenset(table)):
        assert ours.dumps(value, protocol) == pickle.dumps(value, protocol)
    if n == 1000 and protocol > 0:
        assert b"(u" in ours.dumps(table, protocol)
