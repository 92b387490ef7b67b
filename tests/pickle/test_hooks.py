"""Hooks of Pickler and Unpickler: which objects they are asked about, in which order, and what their answers do.

Differential where a log of calls can be compared; over both implementations where the rule is plain enough to state.
"""

from __future__ import annotations

import collections
import copyreg
import io
import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests import samples as s
from tests.equality import assert_same_graph
from tests.outcomes import Raised, as_reference, outcome

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def graph() -> list[Any]:
    """Return a value with one of everything a hook may be asked about."""
    shared = [1]
    loop: list[Any] = [shared]
    loop.append((loop, {"k": loop}))
    return [
        *(None, True, 5, 2**70, 1.5, "text", b"bytes", bytearray(b"x"), (), (1,), [shared, shared], {1: shared}),
        *({1, 2}, frozenset([3]), s.Point(1, [2]), s.Point, s.function, s.Registered(4), s.StrictRecord(name="n")),
        *(s.ListChild([1]), s.Reduced((s.function, (shared,))), loop, s.Color.RED, collections.OrderedDict(a=1)),
    ]


def describe(obj: Any) -> str:
    """Name an object so that logs of equal graphs are equal."""
    return f"{type(obj).__name__} {obj!r}"[:60] if type(obj) in (int, str, bytes, tuple, list) else type(obj).__name__


def logged(module: ModuleType, protocol: int, value: Any, **hooks: Any) -> tuple[Any, list[str], bytes]:
    """Dump through a subclass whose hooks write down what they are asked about."""
    log: list[str] = []

    def wrap(name: str, hook: Any) -> Any:
        def method(self: Any, obj: Any) -> Any:
            log.append(f"{name} {describe(obj)}")
            return hook(obj)

        return method

    file = io.BytesIO()
    pickler = type("Logged", (module.Pickler,), {n: wrap(n, h) for n, h in hooks.items()})(file, protocol)
    return outcome(pickler.dump, value), log, file.getvalue()


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_persistent_id_is_asked_about_the_same_objects(ours: ModuleType, protocol: int) -> None:
    value = graph()
    mine = logged(ours, protocol, value, persistent_id=lambda obj: None)
    assert mine == logged(pickle, protocol, value, persistent_id=lambda obj: None)
    assert len(mine[1]) >= 50


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_persistent_ids_are_written_and_resolved(ours: ModuleType, protocol: int) -> None:
    value = graph() + [s.Plain()]

    def persistent_id(obj: Any) -> Any:
        return f"id{obj!r}" if type(obj) is int and obj > 1 else None

    def fixed(obj: Any) -> Any:
        return "plain" if type(obj) is s.Plain else persistent_id(obj)

    mine, theirs = (logged(m, protocol, value, persistent_id=fixed) for m in (ours, pickle))
    assert mine == theirs
    if not protocol:
        return  # text ids only, so the outcome above is an error

    def load(module: ModuleType) -> Any:
        class Loads(module.Unpickler):  # type: ignore[name-defined,misc]
            def persistent_load(self, pid: Any) -> Any:
                return ("loaded", pid)

        return Loads(io.BytesIO(mine[2])).load()

    assert_same_graph(load(ours), load(pickle))


@pytest.mark.parametrize("derived", [False, True])
def test_persistent_hooks_as_attributes(ours: ModuleType, derived: bool) -> None:
    """An assigned callable works like a method and replaces one, where the version at hand allows it."""

    def attempt(module: ModuleType) -> Any:
        file = io.BytesIO()
        made = type("P", (module.Pickler,), {}) if derived else module.Pickler
        pickler = made(file, 2)
        pickler.persistent_id = lambda obj: "five" if obj == 5 else None
        pickler.dump([5, 6])
        return file.getvalue()

    def load(module: ModuleType) -> Any:
        made = type("U", (module.Unpickler,), {}) if derived else module.Unpickler
        unpickler = made(io.BytesIO(b"\x80\x02](X\x04\x00\x00\x00fiveQK\x06e."))
        unpickler.persistent_load = lambda pid: pid.upper()
        return unpickler.load(), unpickler.persistent_load("x")

    for call in (attempt, load):
        mine, theirs = outcome(call, ours), outcome(call, pickle)
        assert as_reference(mine) == as_reference(theirs)
    if derived:
        assert load(ours) == (["FIVE", 6], "X")


def test_persistent_hooks_of_every_kind(implementation: ModuleType) -> None:
    """Plain, class and static methods, and one found through __getattr__'s absence."""

    class AsClassMethod(implementation.Pickler):  # type: ignore[name-defined,misc]
        @classmethod
        def persistent_id(cls, obj: Any) -> Any:
            return cls.__name__ if obj == 5 else None

    class AsStaticMethod(implementation.Pickler):  # type: ignore[name-defined,misc]
        @staticmethod
        def persistent_id(obj: Any) -> Any:
            return "static" if obj == 5 else None

    for cls, pid in ((AsClassMethod, "AsClassMethod"), (AsStaticMethod, "static")):
        file = io.BytesIO()
        cls(file, 2).dump([5])
        loads = type("U", (implementation.Unpickler,), {"persistent_load": lambda self, got: got})
        assert loads(io.BytesIO(file.getvalue())).load() == [pid]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reducer_override_is_asked_about_the_same_objects(ours: ModuleType, protocol: int) -> None:
    def reducer_override(obj: Any) -> Any:
        if obj is s.function:
            return s.function, ("was overridden",)
        if isinstance(obj, s.Point):
            return s.Plain, (), {"from": [obj.x]}
        if obj is s.Color.RED:
            return "SINGLETON"
        return NotImplemented

    value = graph()
    mine, theirs = (logged(m, protocol, value, reducer_override=reducer_override) for m in (ours, pickle))
    if mine[0] == theirs[0] == Raised(RecursionError, "maximum recursion depth exceeded"):
        # The function's reducer names the function: endless, and each ends at a depth of its own.
        shorter = min(len(mine[1]), len(theirs[1]))
        assert mine[1][:shorter] == theirs[1][:shorter]
    else:
        assert mine == theirs
    assert len(mine[1]) >= 7


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["dict", "ChainMap", "class attribute", "copyreg", "duck"])
def test_dispatch_table(ours: ModuleType, protocol: int, kind: str) -> None:
    """A private table replaces copyreg's; it may be any object with __getitem__."""
    table: Any = {
        s.Point: lambda p: (s.Plain, (), {"point": p.x}),
        s.Registered: lambda r: (s.function, (r.value,), None, iter(()), None),
        type(s.function): lambda f: (s.function, (f.__name__,)),
        s.Meta: lambda c: (s.function, ("meta", c.__name__)),
        list: lambda x: (s.function, ("never asked",)),
    }
    value = [*graph(), s.Made]

    class Duck:
        def __getitem__(self, key: Any) -> Any:
            return table[key]

    got = []
    for module in (ours, pickle):
        file = io.BytesIO()
        if kind == "class attribute":
            pickler = type("P", (module.Pickler,), {"dispatch_table": table})(file, protocol)
        else:
            pickler = module.Pickler(file, protocol)
        if kind == "copyreg":
            before = dict(copyreg.dispatch_table)
            copyreg.dispatch_table.update(table)
            try:
                pickler.dump(value)
            finally:
                copyreg.dispatch_table.clear()
                copyreg.dispatch_table.update(before)
        elif kind != "class attribute":
            tables = {"dict": table, "ChainMap": collections.ChainMap({}, table), "duck": Duck()}
            pickler.dispatch_table = tables[kind]
            pickler.dump(value)
        else:
            pickler.dump(value)
        got.append(file.getvalue())
    assert got[0] == got[1]
    assert b"never asked" not in got[0]


def test_verdicts_on_types_are_not_stale(ours: ModuleType) -> None:
    """A class dumped as an ordinary instance must be looked at again once the class or copyreg changes."""

    class Changing:
        pass

    Changing.__qualname__ = "Changing"
    Changing.__module__ = s.__name__
    s.Changing = Changing  # type: ignore[attr-defined]
    item = Changing()
    item.a = 1  # type: ignore[attr-defined]
    try:
        changes: list[Any] = [
            lambda: None,
            lambda: setattr(Changing, "__reduce__", lambda self: (s.function, ("reduced",))),
            lambda: delattr(Changing, "__reduce__"),
            lambda: setattr(Changing, "__getstate__", lambda self: {"state": 1}),
            lambda: delattr(Changing, "__getstate__"),
            lambda: setattr(Changing, "__getnewargs__", lambda self: (1,)),
            lambda: delattr(Changing, "__getnewargs__"),
            lambda: setattr(Changing, "__reduce_ex__", lambda self, p: (s.function, (p,))),
            lambda: delattr(Changing, "__reduce_ex__"),
            lambda: copyreg.pickle(Changing, lambda c: (s.function, ("registered",))),  # type: ignore[arg-type,return-value]
            lambda: copyreg.dispatch_table.pop(Changing),
            lambda: item.__dict__.update(__reduce_ex__=lambda p: (s.function, ("instance",))),
            lambda: item.__dict__.pop("__reduce_ex__"),
            lambda: setattr(Changing, "__slotnames__", []),
            lambda: setattr(Changing, "__getattr__", lambda self, name: s.raise_value_error()),
            lambda: delattr(Changing, "__getattr__"),
            lambda: setattr(item, "__class__", s.Plain),
        ]
        for change in changes:
            change()
            for protocol in PROTOCOLS:
                for _ in range(3):
                    assert outcome(ours.dumps, [item, item], protocol) == outcome(pickle.dumps, [item, item], protocol)
    finally:
        del s.Changing  # type: ignore[attr-defined]


def test_verdicts_on_loading_types_are_not_stale(ours: ModuleType) -> None:
    """Neither may BUILD or NEWOBJ remember what a class used to be."""
    data = pickle.dumps([s.Plain(), s.Plain()], 2)
    item = s.Plain()
    item.a = 1
    data = pickle.dumps([item, s.Plain(), item], 2)
    for _ in range(3):
        assert ours.loads(data)[0].a == 1
    s.Plain.__setstate__ = lambda self, state: setattr(self, "b", state)  # type: ignore[attr-defined]
    try:
        assert ours.loads(data)[0].b == {"a": 1}
    finally:
        del s.Plain.__setstate__  # type: ignore[attr-defined]
    s.Plain.__new__ = staticmethod(lambda cls, *args: s.Point(7, 8))  # type: ignore[assignment,method-assign]
    try:
        got = ours.loads(data)[0]
        assert type(got) is s.Point
        assert (got.x, got.a) == (7, 1)
    finally:
        del s.Plain.__new__
    s.Plain.__setattr__ = lambda self, name, value: object.__setattr__(self, name, "no")  # type: ignore[method-assign,assignment]
    try:
        assert ours.loads(data)[0].a == pickle.loads(data)[0].a
    finally:
        del s.Plain.__setattr__
    s.Plain.a = property(lambda self: "from the class")  # type: ignore[attr-defined]
    try:
        assert ours.loads(data)[0].__dict__ == {"a": 1}
    finally:
        del s.Plain.a  # type: ignore[attr-defined]
    assert ours.loads(data)[0].a == 1


def test_find_class_override_and_super(implementation: ModuleType) -> None:
    asked = []

    class Renaming(implementation.Unpickler):  # type: ignore[name-defined,misc]
        def find_class(self, module: str, name: str) -> Any:
            asked.append((module, name))
            return super().find_class("tests.samples", name)

    data = pickle.dumps(s.Point(1, 2), 4).replace(b"tests.samples", b"old_location_")
    assert Renaming(io.BytesIO(data)).load() == s.Point(1, 2)
    assert asked == [("old_location_", "Point")]


def test_find_class_imports_and_maps(ours: ModuleType) -> None:
    """The 2/3 name maps apply below protocol 3, unless fix_imports is off."""
    names = [("__builtin__", "list"), ("copy_reg", "_reconstructor"), ("cStringIO", "StringIO"), ("Queue", "Queue")]
    for module_name, name in [*names, ("itertools", "izip"), ("exceptions", "StandardError"), ("json", "dumps")]:
        for header in (b"", b"\x80\x02", b"\x80\x03", b"\x80\x04"):
            data = header + f"c{module_name}\n{name}\n.".encode()
            for fix in (True, False):
                mine = outcome(ours.loads, data, fix_imports=fix)
                assert mine == outcome(pickle.loads, data, fix_imports=fix), data
    sys.modules.pop("this", None)
    code = b"cwave\nopen\n."
    sys.modules.pop("wave", None)
    ours.loads(code)
    assert "wave" in sys.modules


def test_memo_of_a_pickler(ours: ModuleType) -> None:
    """The proxy copies as {id: (index, object)}, clears, and can be assigned from a dict or another proxy."""
    shared = ["shared"]
    got = []
    for module in (ours, pickle):
        file = io.BytesIO()
        pickler = module.Pickler(file, 2)
        pickler.dump([shared, "text", (shared, 5)])
        copied = pickler.memo.copy()
        assert all(id(obj) == key for key, (_, obj) in copied.items())
        log = [sorted(index for index, _ in copied.values())]
        other = module.Pickler(file, 2)
        other.memo = pickler.memo
        other.dump(shared)
        third = module.Pickler(file, 2)
        third.memo = copied
        third.dump([shared, ["new"]])
        third.memo.clear()
        third.dump(shared)
        third.memo = {}
        third.dump(shared)
        pickler.clear_memo()
        pickler.dump(shared)
        log.append(sorted(index for index, _ in pickler.memo.copy().values()))
        log.append(pickler.memo.__reduce__()[0])
        got.append((log, file.getvalue()))
    assert got[0] == got[1]


def test_memo_of_an_unpickler(implementation: ModuleType) -> None:
    data = pickle.dumps([["a"], {"b": ["c"]}], 2)
    unpickler = implementation.Unpickler(io.BytesIO(data))
    value = unpickler.load()
    memo = unpickler.memo.copy()
    assert memo[0] is value
    assert memo[1] is value[0]
    other = implementation.Unpickler(io.BytesIO(b"h\x01.h\x02."))
    other.memo = unpickler.memo
    assert other.load() is value[0]
    other.memo.clear()
    with pytest.raises(pickle.UnpicklingError, match="Memo value not found at index 2"):
        other.load()
    assert unpickler.memo.__reduce__() == (dict, (memo,))


@pytest.mark.beyond_reference
def test_memo_of_an_unpickler_from_a_dict(ours: ModuleType) -> None:
    """The reference accepts a dict and then loses it: it fills the memo that it is about to replace."""
    unpickler = ours.Unpickler(io.BytesIO(b"h\x09."))
    unpickler.memo = {0: "zero", 9: "nine"}
    assert unpickler.memo.copy() == {0: "zero", 9: "nine"}
    assert unpickler.load() == "nine"


def test_pickler_attributes(implementation: ModuleType) -> None:
    pickler = implementation.Pickler(io.BytesIO(), 2)
    assert (pickler.bin, bool(pickler.fast)) == (1, False)
    assert implementation.Pickler(io.BytesIO(), 0).bin == 0
    with pytest.raises(AttributeError):
        pickler.dispatch_table  # noqa: B018
    pickler.dispatch_table = {}
    assert pickler.dispatch_table == {}
    del pickler.dispatch_table
    with pytest.raises(AttributeError):
        pickler.dispatch_table  # noqa: B018


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_setting_bin(ours: ModuleType, protocol: int) -> None:
    """An obsolete switch: protocol 0 with it is written as protocol 1, protocol 1 without it as protocol 0.

    The reference mixes the two, opcode by opcode; what either writes loads alike.
    """
    value = [1, "text", (1, 2), {"a": 1.5}]
    for given in (0, 1, 7):
        file = io.BytesIO()
        pickler = ours.Pickler(file, protocol)
        pickler.bin = given
        pickler.dump(value)
        assert pickler.bin == given
        assert pickle.loads(file.getvalue()) == value
        as_protocol = min(given, 1) if protocol <= 1 else protocol
        assert file.getvalue() == pickle.dumps(value, as_protocol)


def test_reinitialising(ours: ModuleType) -> None:
    """__init__ may be called again: a fresh stream, a fresh memo."""
    got = []
    for module in (ours, pickle):
        shared = ["s"]
        first, second = io.BytesIO(), io.BytesIO()
        pickler = module.Pickler(first, 2)
        pickler.dump(shared)
        pickler.__init__(second, 4)
        pickler.dump(shared)
        unpickler = module.Unpickler(io.BytesIO(first.getvalue()))
        one = unpickler.load()
        unpickler.__init__(io.BytesIO(second.getvalue()))
        two = unpickler.load()
        got.append((first.getvalue(), second.getvalue(), one, two))
    assert got[0] == got[1]


def test_subclasses_carry_attributes(implementation: ModuleType) -> None:
    class Mine(implementation.Pickler):  # type: ignore[name-defined,misc]
        def __init__(self, file: Any, note: str) -> None:
            super().__init__(file, 4)
            self.note = note

        def dump(self, obj: Any) -> None:
            super().dump((self.note, obj))

    file = io.BytesIO()
    Mine(file, "n").dump(5)
    assert implementation.loads(file.getvalue()) == ("n", 5)
    for cls in (implementation.Pickler, implementation.Unpickler):
        with pytest.raises(TypeError):
            pickle.dumps(cls(io.BytesIO(b"")))


def test_audit_event_of_find_class(implementation: ModuleType) -> None:
    """Loading a global raises ``pickle.find_class`` with module and name, also for extension codes."""
    code = """
    import copyreg
    seen = []
    sys.addaudithook(lambda event, args: seen.append(args) if event == "pickle.find_class" else None)
    copyreg.add_extension("collections", "OrderedDict", 0x7E)
    P.loads(b"ccollections\\nCounter\\n.")
    P.loads(b"\\x80\\x04\\x8c\\x0bcollections\\x8c\\x05deque\\x93.")
    P.loads(b"(icollections\\nUserList\\n.")
    P.loads(b"\\x80\\x02\\x82\\x7e.")
    P.Unpickler(io.BytesIO(b"")).find_class("collections", "ChainMap")
    print(seen)
    """
    from tests import child

    expected = [("collections", n) for n in ("Counter", "deque", "UserList", "OrderedDict", "ChainMap")]
    assert child.check(code, module=implementation.__name__).strip() == str(expected)


def test_extension_codes(ours: ModuleType) -> None:
    for code in (1, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF):
        copyreg.add_extension("tests.samples", "Point", code)
        try:
            for protocol in PROTOCOLS:
                data = ours.dumps([s.Point, s.Point(1, 2)], protocol)
                assert data == pickle.dumps([s.Point, s.Point(1, 2)], protocol)
                for _ in range(2):  # the second time from copyreg's cache
                    assert ours.loads(data)[0] is s.Point
                    assert pickle.loads(data)[0] is s.Point
        finally:
            copyreg.remove_extension("tests.samples", "Point", code)
            copyreg._extension_cache.pop(code, None)  # type: ignore[attr-defined]


def test_reduce_ex_is_asked_with_the_protocol(ours: ModuleType) -> None:
    for protocol in PROTOCOLS:
        s.ReducedEx.asked.clear()
        ours.dumps(s.ReducedEx((s.function, ())), protocol)
        pickle.dumps(s.ReducedEx((s.function, ())), protocol)
        assert s.ReducedEx.asked == [protocol, protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_state_setter_gets_object_and_state(implementation: ModuleType, protocol: int) -> None:
    value = s.Reduced((s.Plain, (), {"a": 1}, None, None, s.set_state))
    loaded = implementation.loads(implementation.dumps(value, protocol))
    assert loaded.by_setter == {"a": 1}
    assert "a" not in loaded.__dict__


def test_proxies_without_reduce(ours: ModuleType) -> None:
    """A proxy that forwards attributes pickles by what its class and its __getattr__ answer, as in the reference."""
    for target in (s.Point(1, 2), [1], {"a": 1}, s.Slots(1), SimpleNamespace(a=1), s.WithState(5), object()):
        proxy = s.Proxy(target)
        for protocol in PROTOCOLS:
            assert outcome(ours.dumps, proxy, protocol) == outcome(pickle.dumps, proxy, protocol)


def test_getattr_on_half_built_instances(ours: ModuleType) -> None:
    """Loading asks a new instance for __setstate__ before it has any attribute; the same errors come of it."""
    for item in (s.DefaultAttributes(), s.Proxy(s.Point(1, 2)), s.Described(), s.GetAttribute(), s.SetAttr()):
        for protocol in PROTOCOLS:
            data = outcome(pickle.dumps, item, protocol)
            if not hasattr(data, "value"):
                continue
            mine, theirs = outcome(ours.loads, data.value), outcome(pickle.loads, data.value)
            if hasattr(mine, "value") and hasattr(theirs, "value"):
                assert type(mine.value) is type(theirs.value)
            elif not (getattr(mine, "kind", None) is getattr(theirs, "kind", None) is RecursionError):
                assert mine == theirs


def test_keys_of_state_are_interned(implementation: ModuleType) -> None:
    """Attribute names of a rebuilt instance are the interned strings, as setattr would make them."""
    name = "attribute_" + "never_spelt_out"
    data = pickle.dumps(s.Point(1, 2), 4).replace(b"\x8c\x01x", b"\x8c\x1f" + b"attribute_never_spelt_out_XXXXX")
    loaded = implementation.Unpickler(io.BytesIO(_without_frame(data))).load()
    key = next(k for k in loaded.__dict__ if k.startswith(name))
    assert key is sys.intern(key)


def _without_frame(data: bytes) -> bytes:
    return data[:2] + data[11:] if data[2:3] == b"\x95" else data
