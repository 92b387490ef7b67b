"""The same bytes as cloudpickle's, where cloudpickle is right."""

from __future__ import annotations

import importlib
import io
import pickletools

import pytest

import quickpickle.cloudpickle as ours
from tests.cloudpickle.cases import SAME, current

stock = importlib.import_module("cloudpickle")

CASES = current(SAME)


def listing(data: bytes) -> list[str]:
    out = io.StringIO()
    pickletools.dis(data, out)
    return [line.split(":", 1)[-1] for line in out.getvalue().splitlines()]


def test_the_reference_is_the_release_we_follow() -> None:
    assert stock.__version__ == ours.__version__ == "3.1.3"


@pytest.mark.parametrize("name", CASES)
def test_same_bytes(name: str) -> None:
    value = CASES[name].make()
    # What pickling leaves behind in classes (the names of their slots) is to be there for both.
    stock.dumps(value)
    for protocol in (5, 4, 3, 2, None):
        expected, found = stock.dumps(value, protocol), ours.dumps(value, protocol)
        if found != expected:
            assert listing(found) == listing(expected), f"protocol {protocol}"
        assert found == expected, f"protocol {protocol}: operations are the same, their bytes are not"


@pytest.mark.parametrize("name", CASES)
def test_same_bytes_to_a_file(name: str) -> None:
    value = CASES[name].make()
    stock.dumps(value)
    theirs, mine, by_pickler = io.BytesIO(), io.BytesIO(), io.BytesIO()
    stock.dump(value, theirs)
    ours.dump(value, mine)
    ours.CloudPickler(by_pickler).dump(value)
    assert mine.getvalue() == theirs.getvalue() == by_pickler.getvalue()


def test_several_dumps_of_one_pickler() -> None:
    names = {"__name__": "__main__"}
    exec("N = 1\ndef f(): return N\ndef g(): return N, f\nclass K:\n    def m(self): return g", names)
    theirs, mine = io.BytesIO(), io.BytesIO()
    for module, file in ((stock, theirs), (ours, mine)):
        pickler = module.CloudPickler(file)
        for name in ("f", "g", "K", "f"):
            pickler.dump(names[name])
        pickler.clear_memo()
        pickler.dump(names["g"])
    assert mine.getvalue() == theirs.getvalue()


def test_registered_modules_travel_by_value(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "__init__.py").write_text("from .inner import helper, Kind\n")
    (tmp_path / "shipped" / "inner.py").write_text(
        "LIMIT = 10\nclass Kind:\n    def go(self): return LIMIT\ndef helper(v): return min(v, LIMIT), Kind().go()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shipped = importlib.import_module("shipped")
    value = [shipped.helper, shipped.Kind]
    assert len(ours.dumps(value)) < 150
    for module in (stock, ours):
        module.register_pickle_by_value(shipped)
    try:
        assert ours.list_registry_pickle_by_value() == {"shipped"}
        assert ours.dumps(value) == stock.dumps(value)
        assert len(ours.dumps(value)) > 500
    finally:
        for module in (stock, ours):
            module.unregister_pickle_by_value(shipped)
    assert ours.dumps(value) == stock.dumps(value)
    with pytest.raises(ValueError, match="not registered"):
        ours.unregister_pickle_by_value(shipped)
    with pytest.raises(ValueError, match="module object"):
        ours.register_pickle_by_value("shipped")
