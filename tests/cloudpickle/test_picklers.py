"""CloudPickler as programs use it: subclasses, tables of reducers, options, what is imported and what is not."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import types

import pytest

import quickpickle.cloudpickle as ours
from tests.child import ROOT


def dumped(pickler_class, value: object, **kwargs) -> bytes:
    file = io.BytesIO()
    pickler_class(file, **kwargs).dump(value)
    return file.getvalue()


class Thing:
    pass


def custom(obj: object) -> tuple:
    return str.upper, ("custom",)


def test_table_of_one_instance_is_its_own() -> None:
    file = io.BytesIO()
    pickler = ours.CloudPickler(file)
    pickler.dispatch_table = {Thing: custom}
    pickler.dump([Thing(), lambda: 5])
    text, function = pickle.loads(file.getvalue())
    assert text == "CUSTOM"
    assert function() == 5
    assert isinstance(pickle.loads(dumped(ours.CloudPickler, Thing())), Thing)


def test_table_through_the_member_descriptor_of_a_base() -> None:
    # What loky does: it looks for a member descriptor along the bases, and sets the table through that.
    members = [vars(c).get("dispatch_table") for c in ours.CloudPickler.__mro__]
    (member,) = [m for m in members if isinstance(m, types.MemberDescriptorType)]
    file = io.BytesIO()
    pickler = ours.CloudPickler(file)
    table = dict(pickler.dispatch_table)
    table[Thing] = custom
    member.__set__(pickler, table)
    pickler.dump([Thing(), (lambda n: lambda: n)(6), Thing.__init__, {1: 2}.keys()])
    text, function, _, keys = pickle.loads(file.getvalue())
    assert text == "CUSTOM"
    assert function() == 6
    assert list(keys) == [1]
    assert isinstance(pickle.loads(dumped(ours.CloudPickler, Thing())), Thing)


def test_table_of_a_subclass() -> None:
    class Own(ours.CloudPickler):
        dispatch_table = {Thing: custom}

    assert pickle.loads(dumped(Own, Thing())) == "CUSTOM"
    assert pickle.loads(dumped(Own, lambda: 5))() == 5


def test_changes_of_the_shared_table_reach_every_pickler() -> None:
    ours.CloudPickler.dispatch_table[Thing] = custom
    try:
        assert pickle.loads(dumped(ours.CloudPickler, Thing())) == "CUSTOM"
        assert pickle.loads(ours.dumps(Thing())) == "CUSTOM"
    finally:
        del ours.CloudPickler.dispatch_table[Thing]
    assert isinstance(pickle.loads(ours.dumps(Thing())), Thing)


def test_shared_table_serves_a_plain_pickler() -> None:
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = ours.CloudPickler.dispatch_table
    pickler.dump([{1: 2}.keys(), memoryview(b"x"), types, int.real, property(len)])
    keys, data, module, real, prop = pickle.loads(file.getvalue())
    assert list(keys) == [1]
    assert (data, module, real, prop.fget) == (b"x", types, int.real, len)


def test_reducer_override_comes_first_and_super_means_the_way_built_in() -> None:
    met = []

    class Own(ours.CloudPickler):
        def reducer_override(self, obj):
            met.append(obj)
            if type(obj) is Thing:
                return custom(obj)
            return super().reducer_override(obj)

    value = [Thing(), lambda: 5]
    text, function = pickle.loads(dumped(Own, value))
    assert text == "CUSTOM"
    assert function() == 5
    assert value[1] in met
    assert dumped(Own, value[1]) == dumped(ours.CloudPickler, value[1])


def test_persistent_ids() -> None:
    class Own(ours.CloudPickler):
        def persistent_id(self, obj):
            return "thing" if isinstance(obj, Thing) else None

    class Reader(pickle.Unpickler):
        def persistent_load(self, pid):
            return pid

    thing = Thing()
    data = dumped(Own, lambda: thing)
    assert Reader(io.BytesIO(data)).load()() == "thing"


def test_dispatch_is_not_for_the_engine() -> None:
    class Own(ours.CloudPickler):
        dispatch = {Thing: custom}

    assert isinstance(pickle.loads(dumped(Own, Thing())), Thing)


def test_class_methods_of_importable_classes_are_references(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home.py").write_text(
        "import contextvars\nvar = contextvars.ContextVar('var', default=3)\n"
        "class Task:\n    @classmethod\n    def run(cls): return cls.__name__, var.get()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    home = __import__("home")
    for value in (home.Task.run, home.Task.run.__func__, home.var):
        data = ours.dumps(value)
        assert len(data) < 200
        assert pickle.loads(data) == value


def test_a_class_that_its_only_instance_took_the_name_of(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its methods are found bound to the instance, which is pickled by its class: they travel by value with that."""
    (tmp_path / "sentinels.py").write_text(
        "class missing:\n    def __repr__(self): return '<missing>'\nmissing = missing()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    missing = __import__("sentinels").missing
    assert repr(pickle.loads(ours.dumps(missing))) == "<missing>"
    assert repr(pickle.loads(ours.dumps(lambda x=missing: x))()) == "<missing>"


def test_namespace() -> None:
    data = ours.dumps(lambda: 5, namespace="pyspark.cloudpickle.cloudpickle")
    assert b"pyspark.cloudpickle.cloudpickle" in data
    assert b"\x17cloudpickle.cloudpickle" not in data
    assert ours.loads(data)() == 5
    with pytest.raises(ValueError, match="name of a module"):
        ours.dumps(1, namespace="a\nb")


def test_names_of_files_stay_when_asked_for() -> None:
    def function() -> None: ...

    assert __file__.encode() not in ours.dumps(function.__code__)
    assert ours.loads(ours.dumps(function.__code__)).co_filename == "<dynamic-code>"
    assert ours.loads(ours.dumps(function.__code__, keep_filenames=True)).co_filename == __file__


def test_buffers_out_of_band() -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = ours.dumps([pickle.PickleBuffer(b"abc" * 100), lambda: 1], buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert bytes(ours.loads(data, buffers=buffers)[0]) == b"abc" * 100


def test_depth() -> None:
    function = None
    for _ in range(20_000):
        function = (lambda inner: lambda: inner)(function)
    loaded = ours.loads(ours.dumps(function))
    for _ in range(20_000):
        loaded = loaded()
    assert loaded is None


SCRIPT = """
import sys, math, json, os
import quickpickle.cloudpickle as P
A, B = 1, {"one", "two", "three"}
class Box:
    kinds = frozenset(["x", "y", "z"])
    def get(self): return A
class Child(Box): pass
def f(x, *, k=2):
    def inner(y):
        return math.sqrt(y) + A in {"alpha", "beta", "gamma"}
    return inner(x), json.dumps, os.path.join, B, Child
sys.stdout.buffer.write(P.dumps(%s))
"""


def outputs(arguments: str) -> set[bytes]:
    return {
        subprocess.run(
            [sys.executable, "-c", SCRIPT % arguments],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env=dict(os.environ, PYTHONHASHSEED=seed),
        ).stdout
        for seed in ("1", "2", "3")
    }


def test_deterministic_in_any_process() -> None:
    (data,) = outputs("(f, Child()), deterministic=True")
    f, child = ours.loads(data)
    assert f(1)[3] == {"one", "two", "three"}
    assert type(child) is f(1)[4]
    again = ours.loads(data)
    assert type(again[1]) is type(child)


def test_constants_are_in_a_fixed_order_without_being_asked() -> None:
    assert len(outputs("f.__code__")) == 1


def test_importing_is_light() -> None:
    heavy = ("cloudpickle", "dataclasses", "logging", "inspect", "typing", "uuid", "dis")
    code = f"import quickpickle.cloudpickle, sys; print([m for m in {heavy!r} if m in sys.modules])"
    run = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; " + code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_names_that_programs_import() -> None:
    from quickpickle.cloudpickle import (
        _extract_class_dict,
        _extract_code_globals,
        _lookup_module_and_qualname,
        _should_pickle_by_reference,
        _whichmodule,
        is_tornado_coroutine,
    )

    class Local:
        level = 1

    assert _extract_class_dict(Local)["level"] == 1
    assert "__weakref__" in _extract_class_dict(Local)
    assert list(_extract_code_globals((lambda: (Thing, pickle)).__code__)) == ["Thing", "pickle"]
    assert _lookup_module_and_qualname(Thing) == (sys.modules[__name__], "Thing")
    assert _lookup_module_and_qualname(Local) is None
    assert _should_pickle_by_reference(Thing)
    assert not _should_pickle_by_reference(Local)
    assert _should_pickle_by_reference(pickle)
    assert not _should_pickle_by_reference(types.ModuleType("made"))
    assert _whichmodule(Thing, "Thing") == __name__
    with pytest.raises(TypeError, match="importability"):
        _should_pickle_by_reference(3)
    with pytest.warns(DeprecationWarning, match="tornado"):
        assert not is_tornado_coroutine(test_depth)
    with pytest.raises(AttributeError, match="no_such"):
        ours.no_such
