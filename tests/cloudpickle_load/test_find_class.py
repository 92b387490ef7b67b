"""What restricts loading sees every global, though none is imported for cloudpickle's names."""

from __future__ import annotations

import io
import pickle

import pytest

from tests import child

cloudpickle = pytest.importorskip("cloudpickle")


def payload() -> bytes:
    namespace = {"__name__": "not_importable"}
    exec("class K:\n  def f(self): return 1\nmade = [K(), lambda x: x]", namespace)
    return cloudpickle.dumps(namespace["made"])


def test_an_overridden_find_class_is_asked_for_each(ours) -> None:
    def asked(base: type) -> list[tuple[str, str]]:
        seen = []

        class Asking(base):
            def find_class(self, module, name):
                seen.append((module, name))
                return super().find_class(module, name)

        Asking(io.BytesIO(data)).load()
        return seen

    data = payload()
    mine = asked(ours.Unpickler)
    assert mine == asked(pickle.Unpickler)
    assert ("cloudpickle.cloudpickle", "_make_function") in mine


def test_one_that_refuses_is_heeded(ours) -> None:
    class Refusing(ours.Unpickler):
        def find_class(self, module, name):
            if "cloudpickle" in module:
                raise pickle.UnpicklingError(f"{module}.{name} is forbidden")
            return super().find_class(module, name)

    with pytest.raises(pickle.UnpicklingError, match="forbidden"):
        Refusing(io.BytesIO(payload())).load()


def test_one_that_gives_something_else_is_believed(ours) -> None:
    class Other(ours.Unpickler):
        def find_class(self, module, name):
            return (lambda *args: args) if name == "_make_cell" else super().find_class(module, name)

    data = b"\x80\x04\x8c\x17cloudpickle.cloudpickle\x8c\n_make_cell\x93K\x05\x85R."
    assert Other(io.BytesIO(data)).load() == (5,)
    assert ours.loads(data).cell_contents == 5


def test_audit_hooks_see_what_they_see_of_pickle() -> None:
    data = payload()
    code = f"""
    data = {data!r}
    events = []
    def hook(event, args):
        if event in ("pickle.find_class", "code.__new__", "function.__new__"):
            events.append((event, args[:2] if event == "pickle.find_class" else args[-1:]))
    sys.addaudithook(hook)
    P.loads(data); mine = events[:]; events.clear()
    import cloudpickle.cloudpickle
    events.clear()
    pickle.loads(data); stock = events[:]
    named = lambda events: sorted(e for e in events if e[0] == "pickle.find_class")
    assert named(mine) == named(stock), (named(mine), named(stock))
    count = lambda events, name: sum(e[0] == name for e in events)
    # Stock makes functions of its own on the way.
    assert count(mine, "code.__new__") == count(stock, "code.__new__") > 0
    assert 0 < count(mine, "function.__new__") <= count(stock, "function.__new__")
    """
    child.check(code)


def test_names_that_are_not_built_here_come_from_cloudpickle(ours) -> None:
    data = b"\x80\x04\x8c\x17cloudpickle.cloudpickle\x8c\x11_empty_cell_value\x93."
    assert ours.loads(data) is cloudpickle.cloudpickle._empty_cell_value
    with pytest.raises(AttributeError, match="no_such_name"):
        ours.loads(b"ccloudpickle.cloudpickle\nno_such_name\n.")
    with pytest.raises(ModuleNotFoundError, match="vendored"):
        ours.loads(b"cvendored.cloudpickle.cloudpickle\n_make_cell\n.")
