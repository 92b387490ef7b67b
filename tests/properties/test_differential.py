"""Properties over random graphs: the reference's bytes in every protocol, and equal loads both ways."""

from __future__ import annotations

import io
import pickle
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.equality import assert_same_graph
from tests.outcomes import Raised, outcome
from tests.properties import strategies

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
SETTINGS = settings(
    max_examples=20_000 if LONG else 500,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=not LONG,  # the same examples each time; the long run looks for new ones
)
any_value = strategies.trees | strategies.simple_trees | strategies.graphs()


def check_value(ours: ModuleType, value: Any, protocol: int) -> None:
    """Compare dumps, and loads of the dump, of one value."""
    mine, theirs = outcome(ours.dumps, value, protocol), outcome(pickle.dumps, value, protocol)
    if isinstance(mine, Raised) and isinstance(theirs, Raised):
        assert mine == theirs or mine.kind is theirs.kind is RecursionError
        return
    assert mine == theirs
    a, b = outcome(ours.loads, mine.value), outcome(pickle.loads, mine.value)
    if isinstance(b, Raised):
        assert a == b
        return
    assert_same_graph(a.value, b.value)


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(value=any_value, protocol=st.sampled_from(PROTOCOLS))
def test_bytes_and_loads(ours: ModuleType, value: Any, protocol: int) -> None:
    check_value(ours, value, protocol)


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(value=strategies.graphs(), protocol=st.sampled_from(PROTOCOLS))
def test_graphs(ours: ModuleType, value: Any, protocol: int) -> None:
    check_value(ours, value, protocol)


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(values=st.lists(any_value, min_size=1, max_size=4), protocol=st.sampled_from(PROTOCOLS), data=st.data())
def test_one_pickler_many_dumps(ours: ModuleType, values: list[Any], protocol: int, data: st.DataObject) -> None:
    """Dumps share a memo, errors in between leave the pickler as the reference's is left."""
    plan = [
        (data.draw(st.sampled_from(values)), data.draw(st.sampled_from(["dump", "dump", "clear", "fast"])))
        for _ in range(6)
    ]
    got = []
    for module in (ours, pickle):
        file = io.BytesIO()
        pickler = module.Pickler(file, protocol)
        log: list[Any] = []
        for value, action in plan:
            if action == "clear":
                pickler.clear_memo()
            pickler.fast = action == "fast"
            result = outcome(pickler.dump, value)
            log.append((result.kind if isinstance(result, Raised) else None, file.tell()))
            if isinstance(result, Raised):
                break  # what a failed dump leaves in the memo is the implementation's own
        got.append((log, file.getvalue()))
    if got[0][0] and got[0][0][-1][0] is RecursionError and got[1][0][-1][0] is RecursionError:
        return
    assert got[0] == got[1]


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(value=strategies.trees, data=st.data(), protocol=st.sampled_from(PROTOCOLS))
def test_hooks(ours: ModuleType, value: Any, data: st.DataObject, protocol: int) -> None:
    """persistent_id and reducer_override that answer for some types: same calls, same bytes."""
    persistent = data.draw(st.sampled_from([(), (list,), (dict, tuple), (int, str), (bytes,)]))
    # Not functions: their reducer here names a function, which is endless.
    overridden = data.draw(st.sampled_from([(), ("Point",), ("Plain", "Record")]))
    got = []
    for module in (ours, pickle):
        calls: list[str] = []

        class Hooked(module.Pickler):  # type: ignore[name-defined,misc]
            def persistent_id(self, obj: Any, calls: list[str] = calls) -> Any:
                calls.append(type(obj).__name__)
                return f"pid-{len(calls)}" if type(obj) in persistent else None

            def reducer_override(self, obj: Any, calls: list[str] = calls) -> Any:
                calls.append("override " + type(obj).__name__)
                return (str, (type(obj).__name__,)) if type(obj).__name__ in overridden else NotImplemented

        file = io.BytesIO()
        result = outcome(Hooked(file, protocol).dump, value)
        got.append((result, calls, file.getvalue()))
    if isinstance(got[0][0], Raised) and isinstance(got[1][0], Raised):
        assert got[0][0] == got[1][0] or got[0][0].kind is got[1][0].kind is RecursionError
    else:
        assert got[0] == got[1]


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(value=any_value, protocol=st.sampled_from(PROTOCOLS), size=st.integers(1, 200))
def test_streams_give_what_memory_gives(ours: ModuleType, value: Any, protocol: int, size: int) -> None:
    """A stream that hands out few bytes at a time loads to the same thing and is left right behind STOP."""
    data = outcome(pickle.dumps, value, protocol)
    if isinstance(data, Raised) or isinstance(outcome(pickle.loads, data.value), Raised):
        return
    file = io.BufferedReader(io.BytesIO(data.value + b"rest"), size)  # type: ignore[arg-type]
    assert_same_graph(ours.load(file), pickle.loads(data.value))
    assert file.read() == b"rest"
