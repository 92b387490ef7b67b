"""Misuse while dumping fails like the reference: the same exception class, the same message, the same chain.

Each misuse is a function of the implementation, so that one table serves both; notes that ours adds are not compared.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
import threading
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests import samples as s
from tests.outcomes import Raised, as_reference, outcome

Misuse = Callable[[ModuleType, int], Any]
MISUSES: dict[str, Misuse] = {}


def misuse(function: Misuse) -> Misuse:
    """Enter a misuse into the table."""
    MISUSES[function.__name__] = function
    return function


def dumping(name: str, make: Callable[[], Any]) -> None:
    """Enter a value that must not pickle, or pickles only in some protocols."""
    MISUSES[name] = lambda module, protocol: module.dumps(make(), protocol)


def _named(name: str, module: str | None = None, qualname: str | None = None) -> Any:
    """Return a function that claims a name under which it is not found."""

    def claims() -> None: ...

    claims.__name__ = name
    claims.__qualname__ = qualname or name
    claims.__module__ = module  # type: ignore[assignment]
    return claims


class Uncallable:
    """__reduce_ex__ that cannot be called."""

    __reduce_ex__ = None  # type: ignore[assignment]


class NoReduce:
    """Neither __reduce_ex__ nor __reduce__."""

    __reduce_ex__ = property(lambda self: _missing("__reduce_ex__"))  # type: ignore[assignment]
    __reduce__ = property(lambda self: _missing("__reduce__"))  # type: ignore[assignment]


def _missing(name: str) -> Any:
    raise AttributeError(name)


class Raising:
    """A __reduce__ that raises."""

    def __reduce__(self) -> Any:
        raise LookupError("from __reduce__", 5)


class RaisingGetState:
    """A __getstate__ that raises."""

    def __getstate__(self) -> Any:
        raise LookupError("from __getstate__")


class NewArgsReturning:
    """A __getnewargs__ that returns what it is told."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getnewargs__(self) -> Any:
        return self.value


class NewArgsExReturning:
    """A __getnewargs_ex__ that returns what it is told."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getnewargs_ex__(self) -> Any:
        return self.value


class BadSlots:
    """__slotnames__ of a wrong type."""

    __slots__ = ("a",)
    __slotnames__ = "text"  # type: ignore[assignment]


class RaisingBool:
    """Not a reduce value by any reading."""

    def __len__(self) -> int:
        raise LookupError("no length")


LOCAL_CLASS = type("Local", (), {"__qualname__": "somewhere.<locals>.Local", "__module__": __name__})

dumping("lambda", lambda: lambda: None)
dumping("nested function", lambda: (lambda: lambda: None)())
dumping("local class", lambda: LOCAL_CLASS)
dumping("instance of local class", lambda: LOCAL_CLASS())
dumping("generator", lambda: s.numbers(3))
dumping("lock", threading.Lock)
dumping("lock deep inside", lambda: {"jobs": [(), {"guard": (threading.Lock(),)}]})
dumping("lock in instance", lambda: s.Point(1, s.Point(threading.Lock(), 2)))
dumping("module", lambda: sys)
dumping("memoryview", lambda: memoryview(b"x"))
dumping("code", lambda: s.function.__code__)
dumping("frame", lambda: sys._getframe())
dumping("stream", lambda: sys.__stdout__)
dumping("mappingproxy", lambda: types.MappingProxyType({}))
dumping("property", lambda: property())
dumping("cell", lambda: types.CellType(1))
dumping("dict keys", lambda: {}.keys())
dumping("weakref", lambda: __import__("weakref").ref(s.Point))
dumping("slots type", lambda: type("Q", (), {"__slots__": ("a",), "__module__": "tests.samples"}))
dumping("missing module", lambda: _named("f", "no_such_module"))
dumping("missing module deep", lambda: [_named("f", "no_such_module.sub")])
dumping("missing submodule", lambda: _named("f", "json.no_such"))
dumping("missing name", lambda: _named("no_such", "tests.samples"))
dumping("missing dotted name", lambda: _named("x", "tests.samples", "Point.no_such"))
dumping("locals in name", lambda: _named("x", "tests.samples", "outer.<locals>.x"))
dumping("another object there", lambda: _named("function", "tests.samples"))
dumping("module none", lambda: _named("no_such_name_anywhere"))
dumping("surrogate name", lambda: _named("\ud800", "tests.samples"))
dumping("non-ascii name", lambda: _named("f\xe9", "tests.samples"))
dumping("name with newline", lambda: _named("a\nb", "tests.samples"))
dumping("module not str", lambda: _named("f", 5))  # type: ignore[arg-type]

dumping("reduce raises", Raising)
dumping("reduce raises deep", lambda: [1, {"a": (Raising(),)}])
dumping("getstate raises", RaisingGetState)
dumping("getstate raises in list", lambda: [s.Point(1, RaisingGetState())])
dumping("reduce_ex none", Uncallable)
dumping("no reduce", NoReduce)
for _label, _value in {
    "int": 5,
    "none": None,
    "list": [s.function, ()],
    "empty tuple": (),
    "1-tuple": (s.function,),
    "7-tuple": (s.function, (), None, None, None, None, None),
    "callable not callable": (5, ()),
    "callable none": (None, ()),
    "args list": (s.function, []),
    "args none": (s.function, None),
    "args int": (s.function, 5),
    "listitems int": (s.function, (), None, 5),
    "listitems list": (s.function, (), None, [1]),
    "dictitems int": (s.function, (), None, None, 5),
    "dictitems dict": (s.function, (), None, None, {1: 2}),
    "state setter int": (s.function, (), {}, None, None, 5),
    "callable lambda": (lambda: None, ()),
    "args lambda": (s.function, (lambda: None,)),
    "state lambda": (s.function, (), lambda: None),
    "bytes name": b"name",
    "str missing": "no_such_global",
    "str dotted missing": "Point.no_such",
    "str of another": "Point",
    "str empty": "",
    "newobj no args": (copyreg.__newobj__, ()),
    "newobj not class": (copyreg.__newobj__, (5,)),
    "newobj other class": (copyreg.__newobj__, (s.Point,)),
    "newobj no new": (copyreg.__newobj__, (types.SimpleNamespace(),)),
    "newobj lambda arg": (copyreg.__newobj__, (s.Reduced, lambda: None)),
    "newobj_ex no args": (copyreg.__newobj_ex__, ()),  # type: ignore[attr-defined]
    "newobj_ex two": (copyreg.__newobj_ex__, (s.Reduced, ())),  # type: ignore[attr-defined]
    "newobj_ex not class": (copyreg.__newobj_ex__, (5, (), {})),  # type: ignore[attr-defined]
    "newobj_ex other class": (copyreg.__newobj_ex__, (s.Point, (), {})),  # type: ignore[attr-defined]
    "newobj_ex args list": (copyreg.__newobj_ex__, (s.Reduced, [], {})),  # type: ignore[attr-defined]
    "newobj_ex kwargs list": (copyreg.__newobj_ex__, (s.Reduced, (), [])),  # type: ignore[attr-defined]
    "newobj_ex kwargs none": (copyreg.__newobj_ex__, (s.Reduced, (), None)),  # type: ignore[attr-defined]
}.items():
    dumping(f"reduce gives {_label}", lambda v=_value: s.Reduced(v))  # type: ignore[misc]
    dumping(f"reduce_ex gives {_label}", lambda v=_value: s.ReducedEx(v))  # type: ignore[misc]
dumping("dictitems of one", lambda: s.Reduced((dict, (), None, None, iter([1]))))
dumping("dictitems of 1-tuples", lambda: s.Reduced((dict, (), None, None, iter([(1,)]))))
dumping("dictitems of 1-tuples later", lambda: s.Reduced((dict, (), None, None, iter([(1, 2), (1,)]))))
dumping("dictitems of lists", lambda: s.Reduced((dict, (), None, None, iter([[1, 2], [3, 4]]))))
dumping("listitems raising", lambda: s.Reduced((list, (), None, _raising_iterator(2))))
dumping("listitems raising at once", lambda: s.Reduced((list, (), None, _raising_iterator(0))))
dumping("dictitems raising", lambda: s.Reduced((dict, (), None, None, _raising_iterator(1, pair=True))))
for _args in (5, None, [1], "ab", {}):
    dumping(f"getnewargs {_args!r}", lambda v=_args: NewArgsReturning(v))  # type: ignore[misc]
for _pair in (5, (), (1,), (1, 2), ((), []), ([], {}), ((), {}, 3), [(), {}], ((), {1: 2})):
    dumping(f"getnewargs_ex {_pair!r}", lambda v=_pair: NewArgsExReturning(v))  # type: ignore[misc]
dumping("slotnames text", BadSlots)
dumping("buffer below protocol 5", lambda: pickle.PickleBuffer(b"x"))
dumping("buffer not contiguous", lambda: pickle.PickleBuffer(memoryview(b"xxxx")[::2]))
dumping("buffer released", lambda: _released())
dumping("nested class", lambda: s.Outer.Inner)
dumping("newargs_ex in old protocols", lambda: s.NewArgsEx(1, k=2))


def _raising_iterator(after: int, pair: bool = False) -> Any:
    for i in range(after):
        yield (i, i) if pair else i
    raise LookupError("from an iterator")


def _released() -> Any:
    buffer = pickle.PickleBuffer(b"x")
    buffer.release()
    return buffer


@misuse
def protocol_too_high(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, 6)


@misuse
def protocol_not_int(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, "4")


@misuse
def protocol_huge(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, 2**70)


@misuse
def no_arguments(module: ModuleType, protocol: int) -> Any:
    return module.dumps()


@misuse
def unknown_keyword(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, nothing=1)


@misuse
def too_many_arguments(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, 2, 3)


@misuse
def dump_without_file(module: ModuleType, protocol: int) -> Any:
    return module.dump(1)


@misuse
def file_without_write(module: ModuleType, protocol: int) -> Any:
    return module.dump(1, 5, protocol)


@misuse
def pickler_without_write(module: ModuleType, protocol: int) -> Any:
    return module.Pickler(object(), protocol)


@misuse
def pickler_without_arguments(module: ModuleType, protocol: int) -> Any:
    return module.Pickler()


@misuse
def write_raises(module: ModuleType, protocol: int) -> Any:
    file = types.SimpleNamespace(write=s.raise_value_error)
    return module.dump([1], file, protocol)


@misuse
def write_not_callable(module: ModuleType, protocol: int) -> Any:
    return module.dump([1], types.SimpleNamespace(write=5), protocol)


@misuse
def write_closed(module: ModuleType, protocol: int) -> Any:
    file = io.BytesIO()
    file.close()
    return module.dump([1], file, protocol)


@misuse
def write_text_file(module: ModuleType, protocol: int) -> Any:
    return module.dump([1], io.StringIO(), protocol)


@misuse
def buffer_callback_below_5(module: ModuleType, protocol: int) -> Any:
    return module.dumps(1, protocol, buffer_callback=print)


@misuse
def buffer_callback_raises(module: ModuleType, protocol: int) -> Any:
    return module.dumps(pickle.PickleBuffer(b"x"), 5, buffer_callback=s.raise_value_error)


@misuse
def buffer_callback_not_callable(module: ModuleType, protocol: int) -> Any:
    return module.dumps(pickle.PickleBuffer(b"x"), 5, buffer_callback=7)


@misuse
def init_not_called(module: ModuleType, protocol: int) -> Any:
    class Pickler(module.Pickler):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            pass

    return Pickler().dump(1)


@misuse
def new_without_init(module: ModuleType, protocol: int) -> Any:
    return module.Pickler.__new__(module.Pickler).dump(1)


@misuse
def persistent_id_raises(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, persistent_id=s.raise_value_error)


@misuse
def persistent_id_not_ascii(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, persistent_id=lambda self, obj: "\xe9")


@misuse
def persistent_id_newline(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, persistent_id=lambda self, obj: "a\nb")


@misuse
def persistent_id_unpicklable(module: ModuleType, protocol: int) -> Any:
    return _hooked(
        module,
        protocol,
        persistent_id=lambda self, obj: (s.numbers(1) if protocol else "numbers") if obj == [] else None,
    )


@misuse
def reducer_override_raises(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.function, reducer_override=s.raise_value_error)


@misuse
def reducer_override_bad_value(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.function, reducer_override=lambda self, obj: 5)


@misuse
def reducer_override_none(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.function, reducer_override=lambda self, obj: None)


@misuse
def reducer_override_not_callable(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.function, reducer_override=7)


@misuse
def dispatch_table_not_mapping(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.Plain(), dispatch_table=5)


@misuse
def dispatch_table_value_not_callable(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.Plain(), dispatch_table={s.Plain: 5})


@misuse
def dispatch_table_raises(module: ModuleType, protocol: int) -> Any:
    return _hooked(module, protocol, s.Plain(), dispatch_table={s.Plain: s.raise_value_error})


@misuse
def dispatch_table_lookup_raises(module: ModuleType, protocol: int) -> Any:
    class Table:
        def __getitem__(self, key: Any) -> Any:
            raise ZeroDivisionError("from the table")

    return _hooked(module, protocol, s.Plain(), dispatch_table=Table())


def _hooked(module: ModuleType, protocol: int, value: Any = [], **hooks: Any) -> bytes:
    """Dump through a subclass that has the given class attributes."""
    file = io.BytesIO()
    type("Hooked", (module.Pickler,), hooks)(file, protocol).dump(value)
    return file.getvalue()


def _set(name: str, value: Any) -> Misuse:
    def attempt(module: ModuleType, protocol: int) -> Any:
        pickler = module.Pickler(io.BytesIO(), protocol)
        setattr(pickler, name, value)
        return pickler.dump([[], ()])

    return attempt


for _name in ("memo", "persistent_id", "dispatch_table", "reducer_override", "bin", "fast", "nothing"):
    for _given in (5, None, "x", {}, {1: 2}, {1: (2,)}, {1: (2, 3)}, {"a": (1, "b")}, {1: (-1, [])}):
        MISUSES[f"set {_name} to {_given!r}"] = _set(_name, _given)


def _delete(name: str) -> Misuse:
    def attempt(module: ModuleType, protocol: int) -> Any:
        pickler = module.Pickler(io.BytesIO(), protocol)
        delattr(pickler, name)
        return pickler.dump([])

    return attempt


for _name in ("memo", "persistent_id", "dispatch_table", "bin", "fast", "nothing", "dump", "clear_memo"):
    MISUSES[f"delete {_name}"] = _delete(_name)


@misuse
def dump_no_argument(module: ModuleType, protocol: int) -> Any:
    return module.Pickler(io.BytesIO(), protocol).dump()


@misuse
def dump_two_arguments(module: ModuleType, protocol: int) -> Any:
    return module.Pickler(io.BytesIO(), protocol).dump(1, 2)


@misuse
def dict_grows(module: ModuleType, protocol: int) -> Any:
    box: dict[Any, Any] = {}
    box.update({i: s.Calling(lambda: (int, (box.setdefault(len(box), 1),))) for i in range(3)})
    return module.dumps(box, protocol)


@misuse
def set_grows(module: ModuleType, protocol: int) -> Any:
    box: set[Any] = set()
    box.update(s.Calling(lambda: (int, (box.add(len(box)) or 1,))) for _ in range(3))
    return module.dumps(box, protocol)


@misuse
def fast_mode_cycle(module: ModuleType, protocol: int) -> Any:
    pickler = module.Pickler(io.BytesIO(), protocol)
    pickler.fast = True
    loop: list[Any] = []
    loop.append(loop)
    return pickler.dump(loop)


@misuse
def fast_mode_cycle_dict(module: ModuleType, protocol: int) -> Any:
    pickler = module.Pickler(io.BytesIO(), protocol)
    pickler.fast = True
    loop: dict[int, Any] = {}
    loop[1] = [loop]
    return pickler.dump(loop)


@misuse
def fast_mode_cycle_instance(module: ModuleType, protocol: int) -> Any:
    pickler = module.Pickler(io.BytesIO(), protocol)
    pickler.fast = True
    node = s.Node()
    node.next = node
    return pickler.dump(node)


@misuse
def copyreg_not_callable(module: ModuleType, protocol: int) -> Any:
    copyreg.dispatch_table[s.Plain] = 5  # type: ignore[assignment]
    try:
        return module.dumps(s.Plain(), protocol)
    finally:
        del copyreg.dispatch_table[s.Plain]


@misuse
def copyreg_returns_none(module: ModuleType, protocol: int) -> Any:
    copyreg.dispatch_table[s.Plain] = lambda item: None  # type: ignore[assignment,return-value]
    try:
        return module.dumps(s.Plain(), protocol)
    finally:
        del copyreg.dispatch_table[s.Plain]


def _extension(code: Any) -> Misuse:
    def attempt(module: ModuleType, protocol: int) -> Any:
        key = ("tests.samples", "Point")
        copyreg._extension_registry[key] = code  # type: ignore[attr-defined]
        try:
            return module.dumps(s.Point, protocol)
        finally:
            del copyreg._extension_registry[key]  # type: ignore[attr-defined]

    return attempt


for _code in (0, 1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -1, "x", None, 2**70, 1.5):
    MISUSES[f"extension code {_code!r}"] = _extension(_code)


# Misuse of a signature: who parses arguments words it, so only the class has to agree.
SIGNATURE = {
    *("no_arguments", "too_many_arguments", "unknown_keyword", "dump_without_file", "pickler_without_arguments"),
    *("dump_no_argument", "dump_two_arguments"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("name", MISUSES)
def test_fails_like_the_reference(ours: ModuleType, name: str, protocol: int) -> None:
    mine, theirs = outcome(MISUSES[name], ours, protocol), outcome(MISUSES[name], pickle, protocol)
    if isinstance(mine, Raised) and isinstance(theirs, Raised):
        # Only the extension module's own name may differ, and the words about a call's own arguments.
        if name not in SIGNATURE:
            assert as_reference(mine) == as_reference(theirs)
        assert mine.kind is theirs.kind
    else:
        assert mine == theirs


def test_most_of_these_are_misuses() -> None:
    """A table whose entries succeed would compare nothing of interest."""
    failing = [n for n, m in MISUSES.items() if isinstance(outcome(m, pickle, 2), Raised)]
    assert len(failing) > 0.6 * len(MISUSES)
