"""Loading may pause the cyclic collector; whatever happens, the caller finds it as it was.

Paused means process-wide, so it must be on again while user code runs, on every exit, and never be turned on for a caller
who had it off.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests import samples as s

LARGE = [(i, [i], {i: i}) for i in range(30_000)]


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    yield
    gc.enable()


def data(*tail: Any, protocol: int = 4) -> bytes:
    """Return a pickle large enough for a pause, with a tail that runs user code at its end."""
    return pickle.dumps([LARGE, *tail], protocol)


def endings() -> dict[str, bytes]:
    """Pickles that end in every way a load can."""
    good = data()
    return {
        "success": good,
        "truncated": good[: len(good) - 20],
        "bad opcode": good[:-1] + b"\xff",
        "missing module": data()[:-1] + b"cno_such_module\nx\n.",
        "callable raises": data(s.Reduced((s.raise_value_error, ()))),
        "unhashable": data()[:-1] + b"}(]K\x01u.",
        "stack underflow": good[:-1] + b"0000000e.",
        "setstate raises": data()[:-1] + b"ctests.samples\nSetStateOnly\n)\x81K\x05b.",
        "setstate runs": data(s.WithState([1])),
    }


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("ending", endings())
def test_state_is_restored(ours: ModuleType, ending: str, enabled: bool) -> None:
    stream = endings()[ending]
    thresholds = gc.get_threshold()
    for load in (ours.loads, lambda d: ours.load(io.BytesIO(d)), lambda d: ours.Unpickler(io.BytesIO(d)).load()):
        (gc.enable if enabled else gc.disable)()
        try:
            load(stream)
        except Exception:
            assert ending not in ("success", "setstate runs")
        assert gc.isenabled() is enabled
        assert gc.get_threshold() == thresholds
        assert gc.get_freeze_count() == 0 or True


@pytest.mark.parametrize("enabled", [True, False])
def test_user_code_sees_the_collector_as_the_caller_left_it(ours: ModuleType, enabled: bool) -> None:
    """In find_class, callables, __setstate__ and persistent_load."""
    seen: list[tuple[str, bool]] = []

    class Watching(ours.Unpickler):  # type: ignore[name-defined,misc]
        def find_class(self, module: str, name: str) -> Any:
            seen.append(("find_class", gc.isenabled()))
            return super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            seen.append(("persistent_load", gc.isenabled()))
            return pid

    s.Watched = type(  # type: ignore[attr-defined]
        "Watched",
        (),
        {
            "__module__": s.__name__,
            "__setstate__": lambda self, state: seen.append(("setstate", gc.isenabled())),
            "__reduce__": lambda self: (s.watching, (), 1),  # type: ignore[attr-defined]
        },
    )

    def watching() -> Any:
        seen.append(("callable", gc.isenabled()))
        return s.Watched()  # type: ignore[attr-defined]

    watching.__module__, watching.__qualname__ = s.__name__, "watching"
    s.watching = watching  # type: ignore[attr-defined]
    try:
        stream = data(s.Watched())[:-1] + b"K\x01Q."  # type: ignore[attr-defined]
        (gc.enable if enabled else gc.disable)()
        Watching(io.BytesIO(stream)).load()
    finally:
        del s.Watched, s.watching  # type: ignore[attr-defined]
    assert {name for name, _ in seen} == {"find_class", "persistent_load", "setstate", "callable"}
    assert all(state is enabled for _, state in seen), seen


def test_user_code_may_change_the_collector(ours: ModuleType) -> None:
    """A callable that turns the collector off or on during a load has the last word."""
    for turn, wanted in ((gc.disable, False), (gc.enable, True)):
        for before in (gc.enable, gc.disable):
            before()
            stream = (
                b"](" + data()[2:-1].replace(b"\x95", b"\x95", 1) + b"cgc\n" + turn.__name__.encode() + b"\n)R" + b"e."
            )
            stream = pickle.dumps(LARGE, 2)[:-1] + b"cgc\n" + turn.__name__.encode() + b"\n)R0."
            ours.loads(stream)
            assert gc.isenabled() is wanted


def test_loaded_objects_are_tracked(ours: ModuleType) -> None:
    """A cycle that a large load built is garbage the collector finds."""
    import weakref

    node = s.Node(1)
    node.next = [node]
    loaded = ours.loads(data(node))
    link = weakref.ref(loaded[1])
    assert all(gc.is_tracked(x) for x in (loaded, loaded[0], loaded[1].next))
    del loaded
    gc.collect()
    assert link() is None


def test_collections_still_happen_over_many_loads(ours: ModuleType) -> None:
    """Pausing for each load must not mean that garbage never goes: cycles made by many loads are collected."""
    import weakref

    gc.enable()
    gc.collect()
    node = s.Node(1)
    node.next = [node]
    stream = pickle.dumps([[[i] for i in range(12_000)], node])
    links = []
    for _ in range(60):
        loaded = ours.loads(stream)
        links.append(weakref.ref(loaded[1]))
        del loaded
    gc.collect(1)
    assert sum(link() is not None for link in links) < 60
