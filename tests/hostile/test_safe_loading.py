"""find_class sees every global a stream can name, each time, so that an override is a real gate."""

from __future__ import annotations

import copyreg
import io
import pickle
import random
from types import ModuleType
from typing import Any

import pytest

from tests import child, programs

CODE = 0x7F
STREAMS = {
    "GLOBAL": b"ccollections\nOrderedDict\n.",
    "INST": b"(icollections\nOrderedDict\n.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x0bcollections\x8c\x0bOrderedDict\x93.",
    "STACK_GLOBAL from memo": b"\x80\x04\x8c\x0bcollections\x940\x8c\x0bOrderedDict\x940h\x00h\x01\x93.",
    "STACK_GLOBAL with dotted name": b"\x80\x04\x8c\x0bcollections\x8c\x0bOrderedDict\x93.",
    "EXT1": b"\x80\x02\x82\x7f.",
    "EXT2": b"\x80\x02\x83\x7f\x00.",
    "EXT4": b"\x80\x02\x84\x7f\x00\x00\x00.",
    "GLOBAL, REDUCE": b"ccollections\nOrderedDict\n)R.",
    "GLOBAL, NEWOBJ, BUILD": b"\x80\x02ccollections\nOrderedDict\n)\x81}b.",
    "OBJ": b"(ccollections\nOrderedDict\no.",
}


@pytest.mark.beyond_reference
@pytest.mark.parametrize("name", STREAMS)
def test_an_override_is_asked_each_time(ours: ModuleType, name: str) -> None:
    """Also for an extension code that an earlier, trusting load has put into copyreg's cache."""
    asked: list[tuple[str, str]] = []

    class Guard(ours.Unpickler):  # type: ignore[name-defined,misc]
        def find_class(self, module: str, name: str) -> Any:
            asked.append((module, name))
            raise pickle.UnpicklingError("blocked")

    copyreg.add_extension("collections", "OrderedDict", CODE)
    try:
        pickle.loads(b"\x80\x02\x82\x7f.")
        ours.loads(b"\x80\x02\x82\x7f.")
        for _ in range(3):
            with pytest.raises(pickle.UnpicklingError, match="blocked"):
                Guard(io.BytesIO(STREAMS[name])).load()
        assert asked == [("collections", "OrderedDict")] * 3
    finally:
        copyreg.remove_extension("collections", "OrderedDict", CODE)
        copyreg._extension_cache.pop(CODE, None)  # type: ignore[attr-defined]


def test_assigned_find_class_is_a_gate_where_the_reference_has_it(ours: ModuleType) -> None:
    """Assigning find_class on an instance behaves as in the reference: ignored or refused, never half."""

    def attempt(module: ModuleType) -> Any:
        class Derived(module.Unpickler):  # type: ignore[name-defined,misc]
            pass

        unpickler = Derived(io.BytesIO(STREAMS["GLOBAL"]))
        unpickler.find_class = lambda module, name: (module, name)
        return unpickler.load()

    assert attempt(ours) == attempt(pickle)


def test_names_asked_for_match_the_reference(ours: ModuleType) -> None:
    """Random programs ask both implementations' find_class for the same names in the same order."""
    rng = random.Random(11)
    for _ in range(1500):
        data = programs.random_program(rng)
        logs = []
        for module in (ours, pickle):
            log: list[Any] = []

            class Logs(programs.guarded(module)):  # type: ignore[misc]
                def find_class(self, module_name: str, name: str, log: list[Any] = log) -> Any:
                    log.append((module_name, name))
                    return super().find_class(module_name, name)

            try:
                Logs(io.BytesIO(data)).load()
            except Exception:
                pass
            logs.append(log)
        assert logs[0] == logs[1], data


def test_blocked_globals_and_mutated_bytes() -> None:
    """Six thousand mutated pickles with every global blocked: no crash, no hang, little memory."""
    child.check(
        """
        import random
        from tests import programs
        class Guard(P.Unpickler):
            def find_class(self, module, name):
                raise P.UnpicklingError("blocked")
        rng = random.Random(7)
        value = {"k": [1, "s", b"b", (2, 3.5), {4}, frozenset([5])], "r": range(2), "big": 2**70, "b": bytearray(b"x")}
        seeds = [pickle.dumps(value, p) for p in range(6)]
        loaded = 0
        for i in range(6000):
            data = programs.mutate(rng, rng.choice(seeds))
            try:
                Guard(io.BytesIO(data)).load()
                loaded += 1
            except Exception:
                pass
        print(loaded)
        """,
        cap=1 << 30,
        timeout=120,
    )
