"""Instances of every shape in samples: subclasses of builtins, slots, dataclasses, enums, all reduce forms."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from typing import Any

from tests import samples as s


def _with(item: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(item, name, value)
    return item


def values() -> Iterator[tuple[str, Any]]:
    """Yield the instances."""
    yield from _plain()
    yield from _builtin_subclasses()
    yield from _state_rules()
    yield from _reduce_values()
    yield from _names()


def _plain() -> Iterator[tuple[str, Any]]:
    yield "object", object()
    yield "point", s.Point(1, -1)
    yield "point nested", s.Point(s.Point(1, "a"), [s.Point(2, b"b")])
    yield "points", [s.Point(i, -i) for i in range(1024)]
    yield "plain empty", s.Plain()
    yield "plain one", _with(s.Plain(), only=1)
    yield "plain many", _with(s.Plain(), **{f"a{i}": i for i in range(40)})
    yield "plain 1000", _with(s.Plain(), **{f"a{i}": i for i in range(1000)})
    yield "plain 1001", _with(s.Plain(), **{f"a{i}": i for i in range(1001)})
    deleted = s.Point(1, 2)
    del deleted.x
    yield "point with attribute deleted", deleted
    readded = s.Point(1, 2)
    del readded.x
    readded.x = 5
    yield "point with attribute added again", readded
    emptied = s.Point(1, 2)
    emptied.__dict__.clear()
    yield "point emptied", emptied
    replaced = s.Point(1, 2)
    replaced.__dict__ = {"y": 1, "q": 2}
    yield "point with another dict", replaced
    odd = s.Plain()
    odd.__dict__["not an identifier"] = 1
    odd.__dict__["\u00e9"] = 2
    yield "plain with odd names", odd
    nonstr = s.Plain()
    nonstr.__dict__ = {1: 2, None: 3, "a": 4}  # type: ignore[dict-item]
    yield "plain with keys that are not str", nonstr
    strkey = s.Plain()
    strkey.__dict__[s.StrChild("sub")] = 1
    yield "plain with a str subclass as key", strkey
    yield "child", s.Child(1, 2, 3)
    yield "inner class instance", s.Outer.Inner()
    yield "class with metaclass", [s.Made(), s.Made]
    yield "dataclass", s.Record("n", 1.5, ["t"])
    yield "dataclasses", [s.Record(f"n{i}", float(i), ["t"]) for i in range(100)]
    yield "frozen dataclass", s.FrozenRecord("n", 1.5)
    yield "slots dataclass", s.SlotsRecord("n", 1.5)
    yield "slots dataclasses", [s.SlotsRecord(f"n{i}", float(i)) for i in range(100)]
    yield "strict dataclass", s.StrictRecord(name="n")
    yield "named tuples", [s.Pair(1, 2), s.Pair([3]), s.Coordinates(1.5, 2.5)]
    yield "enums", [s.Color.RED, s.Color.GREEN, s.Number.TWO, s.Word.YES, s.Color.RED]
    yield "flags", [s.Access.READ, s.Access.READ | s.Access.WRITE, s.IntAccess(3), s.IntAccess(0)]


def _builtin_subclasses() -> Iterator[tuple[str, Any]]:
    for cls, arg in (
        *((s.ListChild, [1, [2]]), (s.DictChild, {"a": 1, 2: [3]}), (s.SetChild, {1, 2})),
        *((s.FrozenSetChild, [1, 2]), (s.TupleChild, (1, [2])), (s.IntChild, 300), (s.FloatChild, 1.5)),
        *((s.ComplexChild, 1j), (s.StrChild, "str"), (s.BytesChild, b"bytes"), (s.ByteArrayChild, b"ba")),
        *((s.ListWithExtend, [1, 2, 3]), (s.SlottedList, [1])),
    ):
        yield f"{cls.__name__}", cls(arg)  # type: ignore[operator]
        if cls is not s.SlottedList:
            yield f"{cls.__name__} with attributes", _with(cls(arg), tag=[1], own="v")  # type: ignore[operator]
        yield f"{cls.__name__} shared", [item := cls(arg), item]  # type: ignore[operator]
    yield "SlottedList with slot", _with(s.SlottedList([1, 2]), tag="t")
    yield "ListChild 1001", s.ListChild(range(1001))
    yield "DictChild 1000", s.DictChild((i, i) for i in range(1000))
    yield "DictChild 1001", s.DictChild((i, i) for i in range(1001))
    yield "bool-like keys", s.DictChild({True: 1, 2.0: 2})


def _state_rules() -> Iterator[tuple[str, Any]]:
    """What __getstate__ may return, and what default pickling makes of slots."""
    yield "slots", s.Slots(1, 2)
    yield "slots unset", s.Slots(1)
    yield "slots child", _with(s.SlotsChild(1, 2), c=[3])
    yield "slots and dict", _with(s.SlotsAndDict(1, 2), d=4)
    yield "slots and empty dict", s.SlotsAndDict(1)
    yield "weak slots", _with(s.WeakSlots(), a=1, other=2)
    yield "private slots", s.PrivateSlots([1])
    for state in (None, False, 0, 1, "", "text", (), (1, 2), (None, {"a": 1}), ({"a": 1}, {"b": 2}), [], {}, {"a": 1}):
        yield f"WithState {state!r}", s.WithState(state)
        if state is None or not state or isinstance(state, dict):
            yield f"GetStateOnly {state!r}", s.GetStateOnly(state)
    yield "GetStateOnly pair", s.GetStateOnly((None, {"kept": 1}))
    yield "GetStateOnly dict pair", s.GetStateOnly(({"a": 1}, {"kept": 1}))
    yield "SetStateOnly", s.SetStateOnly()
    yield "setattr", _with(s.SetAttr(), a=1)
    yield "described", s.Described()
    yield "default attributes", s.DefaultAttributes()
    yield "getattribute", s.GetAttribute()
    yield "registered", [s.Registered([1]), s.Registered("two")]
    yield "newargs", s.NewArgs(1, [2], "three")
    yield "newargs none", s.NewArgs()
    yield "int newargs", s.IntNewArgs(5, "five")
    yield "hashed in set", {s.Hashed("a"), s.Hashed("b")}
    yield "hashed in dict", {s.Hashed("a"): s.Hashed("b")}
    yield from _instance_attributes()


def _instance_attributes() -> Iterator[tuple[str, Any]]:
    """Protocol methods in the instance dict: some are honoured, some are not, by CPython's own lookups."""
    for name in (
        *("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__"),
        *("__getnewargs_ex__", "__slots__", "__class_getitem__"),
    ):
        yield f"instance has {name}", _with(s.Plain(), a=1, **{name: s.reduce_to_text})
        yield f"state has {name}", _with(s.WithState([1]), **{name: s.reduce_to_text})
    yield "instance has __dict__ entry", _with(s.Plain(), a=1, label=None)
    yield "lying __class__", s.LyingClass()
    yield "slotnames given", _with(s.SlotNames(), a=1, b=2)
    yield "slots as str", _with(s.StrSlots(), only=1)
    yield "dict property", s.DictProperty()
    yield "no default new", s.NeedsArguments(1, 2)
    yield "raising getattr", s.RaisingAttributes()
    yield "meta with call", s.MetaCall()
    yield "classvar only", s.ClassAttributes()
    yield "old getinitargs", s.Zone(1)


def _reduce_values() -> Iterator[tuple[str, Any]]:
    """Reduce values of two to six items, and those special callables turn into opcodes."""
    yield "reduce name", s.SINGLETON
    yield "reduce 2", s.Reduced((s.function, ()))
    yield "reduce 2 args", s.Reduced((s.function, (1, [2], {"k": 3})))
    yield "reduce 3", s.Reduced((s.Plain, (), {"a": 1}))
    yield "reduce 3 None", s.Reduced((s.Plain, (), None))
    yield "reduce 3 tuple state", s.Reduced((s.Plain, (), (None, {"a": 1})))
    yield "reduce 4", s.Reduced((list, (), None, iter([1, 2, 3])))
    yield "reduce 4 one", s.Reduced((list, (), None, iter([1])))
    yield "reduce 4 none", s.Reduced((list, (), None, iter([])))
    yield "reduce 5", s.Reduced((dict, (), None, None, iter([(1, 2), ("a", "b")])))
    yield "reduce 5 one", s.Reduced((dict, (), None, None, iter([(1, 2)])))
    yield "reduce 5 all", s.Reduced((s.Bag, (), {"n": 1}, iter([1, 2]), iter([(3, 4)])))
    yield "reduce 6", s.Reduced((s.Plain, (), {"a": 1}, None, None, s.set_state))
    yield "reduce 6 None state", s.Reduced((s.Plain, (), None, None, None, s.set_state))
    yield "reduce 6 all", s.Reduced((s.Bag, (), [1], iter([1]), iter([(2, 3)]), s.set_state))
    yield "reduce_ex", s.ReducedEx((s.function, (1,)))
    yield "reduce newobj", s.Reduced((copyreg.__newobj__, (s.Reduced,), {"value": 1}))
    yield "reduce many", [s.Reduced((s.function, (i, [i]))) for i in range(50)]
    shared = s.Reduced((s.function, ([],)))
    yield "reduce shared", [shared, shared]
    yield "bag", s.Bag(range(5), [(1, 2)])
    yield "bag 1001", s.Bag(range(1001), [(i, i) for i in range(1001)])
    yield "append only", _with(s.AppendOnlyBag(), items=list(range(5)))
    yield "local tzinfo", s.Zone(3)


def _names() -> Iterator[tuple[str, Any]]:
    """Globals: builtins, classes, functions, nested names, methods."""
    yield "builtins", [len, print, int, type, object, Exception, range, isinstance, map]
    yield "types of singletons", [type(None), type(...), type(NotImplemented)]
    yield "own", [s.Point, s.function, s.Outer, s.Meta, s.raise_value_error]
    yield "static method", s.Outer.static
    yield "class method", s.Outer.make
    yield "bound method", s.Outer.Inner().method
    yield "builtin method", ["a,b".split, [1].append, {}.get]
    yield "method descriptor", [str.upper, list.append, dict.fromkeys, int.from_bytes]


def protocol_2_up() -> Iterator[tuple[str, Any]]:
    """Yield what protocols 0 and 1 cannot hold."""
    yield "newargs_ex", s.NewArgsEx(1, 2, key=[3])
    yield "newargs_ex no keywords", s.NewArgsEx(1)
    yield "nested class", [s.Outer.Inner, s.Outer.Inner.Deepest]
    yield "newobj_ex", s.Reduced((copyreg.__newobj_ex__, (s.NewArgsEx, (1,), {"k": 2})))  # type: ignore[attr-defined]
