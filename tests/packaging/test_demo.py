"""The demo's own checks notice what they are there to notice."""

import operator
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import quickpickle

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    monkeypatch.syspath_prepend(ROOT / "examples")
    import demo.measure

    yield demo.measure
    for name in [name for name in sys.modules if name.partition(".")[0] == "demo"]:
        del sys.modules[name]


def altered(**changes: object) -> types.ModuleType:
    """A module that works like pickle but for the functions given."""
    module = types.ModuleType("altered")
    vars(module).update({**vars(pickle), **changes, "__name__": "altered"})
    return module


def test_agreement_passes_and_is_timed(measure: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
    data = [{"row": row} for row in range(10)]
    result = measure.compare(pickle, quickpickle, data, operator.eq)
    assert result.size == len(pickle.dumps(data))
    for times in (*result.dumps, *result.loads):
        assert len(times.seconds) == measure.LEAST_ROUNDS
        assert 0 < times.best <= times.median


def test_other_bytes_are_noticed(measure: types.ModuleType) -> None:
    wrong = altered(dumps=lambda obj, protocol=None: pickle.dumps([obj], protocol))
    with pytest.raises(measure.DisagreementError, match="bytes differ"):
        measure.check(pickle, wrong, "text", operator.eq)


def test_another_object_is_noticed(measure: types.ModuleType) -> None:
    wrong = altered(loads=lambda data: [pickle.loads(data)])
    with pytest.raises(measure.DisagreementError, match="altered loads it wrong"):
        measure.check(pickle, wrong, "text", operator.eq)


def test_other_buffers_are_noticed(measure: types.ModuleType) -> None:
    def dumps(obj: object, protocol: int, buffer_callback: object = None) -> bytes:
        return pickle.dumps(obj, protocol)

    with pytest.raises(measure.DisagreementError, match="out of band"):
        measure.compare_out_of_band(pickle, altered(dumps=dumps), pickle.PickleBuffer(b"data"), operator.eq)
