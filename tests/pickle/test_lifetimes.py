"""Objects that go away, or are met a second way, while the memo knows them by address. Each test is a fault that was there.

The pickler counts no references during a walk. These are the places where that could show: reducers whose answer is all that
holds an argument, files and hooks that drop what is being written, memos that outlive a dump.
"""

from __future__ import annotations

import collections
import gc
import io
import pickle
from types import ModuleType
from typing import Any

from tests import child


class Twice:
    """Reduces to a call with one new str, twice."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        text = str(self.args[0])
        return (Twice, (text, text))


class Stored:
    """Reduces to a tuple that it keeps."""

    answer: tuple[Any, ...]

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.answer


class Plain:
    """Nothing of its own."""


def test_an_argument_twice_in_a_reduce_value(ours: ModuleType) -> None:
    """Its str is dropped with the value; the next one may get its address, and must not be taken for it."""
    points = [Twice(i * 7919) for i in range(1000)]
    assert ours.dumps(points) == pickle.dumps(points)
    assert [p.args for p in ours.loads(ours.dumps(points))] == [(str(i * 7919),) * 2 for i in range(1000)]


def test_a_reduce_value_that_is_met_again(ours: ModuleType) -> None:
    stored = Stored()
    stored.answer = (Stored, ("a string %d" % 7, "b%d" % 7))
    for graph in ([Stored, stored, stored.answer], [Stored, stored, stored.answer[1]], [Stored, stored.answer, stored]):
        for protocol in range(6):
            assert ours.dumps(graph, protocol) == pickle.dumps(graph, protocol)


def test_reducer_override_that_drops_its_object() -> None:
    child.check(
        """
        class Point:
            __slots__ = ("i",)
            def __init__(self, i=0):
                self.i = i
        class Dropper(P.Pickler):
            def reducer_override(self, obj):
                if type(obj) is not Point:
                    return NotImplemented
                box[obj.i] = None
                return (Point, (obj.i,))
        for _ in range(200):
            box = [Point(i) for i in range(60)]
            pickler = Dropper(io.BytesIO(), 4)
            pickler.dump([Point, box])
            others = [Point(i) for i in range(200)]
            pickler.memo.copy()
        """
    )


def test_file_that_drops_what_it_is_given() -> None:
    child.check(
        """
        graph = []
        class File:
            def write(self, data):
                graph.clear()
                self.filler = [[object(), object()] for _ in range(3000)]
                return len(data)
        pickler = P.Pickler(File())
        for round in range(60):
            graph.extend([[round, i] for i in range(2000)])
            pickler.dump(graph)
            pickler.dump(graph)
            if round % 3 == 0:
                pickler.clear_memo()
        """
    )


def test_collector_started_by_a_lone_surrogate() -> None:
    """Up to 3.11 the exception for it could start a collection in the middle of a walk."""
    child.check(
        r"""
        import gc
        graph = []
        class Finalizer:
            def __init__(self):
                self.me = self
            def __del__(self):
                graph.clear()
        for kind in ("\ud800x%d", "\U00010000\ud800%d", "\xe9%d"):
            gc.disable()
            graph[:] = [[kind % i] for i in range(50)]
            Finalizer()
            gc.set_threshold(1)
            gc.enable()
            P.dumps(graph, 4)
        """
    )


def test_attributes_kept_in_a_subclass_of_dict(ours: ModuleType) -> None:
    plain = Plain()
    plain.__dict__ = collections.OrderedDict(a=1, b=2)
    for protocol in range(6):
        data = ours.dumps([plain, plain], protocol)
        assert data == pickle.dumps([plain, plain], protocol)
        assert ours.loads(data)[0].__dict__ == {"a": 1, "b": 2}


def test_memo_copied_and_set_again(ours: ModuleType) -> None:
    """Numbers of states that were never objects are not in the copy, and must not be given again."""
    for protocol in range(1, 6):
        instances = [Plain() for _ in range(4)]
        for i, instance in enumerate(instances):
            instance.number, instance.name = i, f"name {i}"
        file = io.BytesIO()
        first = ours.Pickler(file, protocol)
        first.dump(instances)
        second = ours.Pickler(file, protocol)
        second.memo = first.memo.copy()
        names = [f"new {i}" for i in range(6)]
        second.dump([names, names, instances])
        file.seek(0)
        unpickler = ours.Unpickler(file)
        one = unpickler.load()
        two = unpickler.load()
        assert two[0] == names
        assert two[0] is two[1]
        assert [instance.name for instance in one] == [f"name {i}" for i in range(4)]
        assert all(a is b for a, b in zip(one, two[2], strict=True))


def test_numbers_too_large_for_the_format(ours: ModuleType) -> None:
    """Such objects are written anew; the reference refuses to."""
    value: list[Any] = ["anew"]
    for number in (2**32 + 5, 2**40, -1):
        file = io.BytesIO()
        pickler = ours.Pickler(file, 4)
        pickler.memo = {1: (number, value)}
        pickler.dump(value)
        assert pickle.loads(file.getvalue()) == value


def test_state_changed_by_what_it_replaces(ours: ModuleType) -> None:
    """A value dropped while a state is set may change that state: an exception or none, but a Python one."""

    class Changes:
        def __del__(self) -> None:
            STATE["more"] = 1

    target = Plain()
    target.a = Changes()
    global TARGET, STATE
    TARGET, STATE = target, {"a": 1, "b": 2}
    data = b"\x80\x04" + b"c" + __name__.encode() + b"\nTARGET\nc" + __name__.encode() + b"\nSTATE\nb."
    assert ours.loads(data) is target
    assert target.b == 2


TARGET: Any = None
STATE: dict[str, Any] = {}


def test_unpickler_in_a_cycle_through_a_state(ours: ModuleType) -> None:
    import weakref

    instance = Plain()
    instance.a, instance.b = 1, 2
    unpickler = ours.Unpickler(io.BytesIO(pickle.dumps(instance, 4)))
    loaded = unpickler.load()
    loaded.unpickler = unpickler
    gone = weakref.ref(loaded)
    del loaded, unpickler
    gc.collect()
    assert gone() is None


def test_setstate_that_appears_while_the_state_is_read(ours: ModuleType) -> None:
    class_name = __name__.encode()
    data = (
        b"\x80\x04c"
        + class_name
        + b"\nLate\n)\x81\x94}\x94(\x8c\x01ac"
        + class_name
        + b"\nadd_setstate\n)R\x8c\x01bK\x02ub."
    )
    for module in (pickle, ours):
        if "__setstate__" in Late.__dict__:
            del Late.__setstate__
        early = Late()
        early.a, early.b = 1, 2
        assert module.loads(data).got == {"a": None, "b": 2}


class Late:
    """Gets a __setstate__ while one of its instances is loaded."""


def add_setstate() -> None:
    """Give Late a __setstate__."""

    def setstate(self: Any, state: dict[str, Any]) -> None:
        self.got = state

    Late.__setstate__ = setstate  # type: ignore[attr-defined]


def test_number_put_again_while_a_state_is_read(ours: ModuleType) -> None:
    name = __name__.encode()
    data = b"\x80\x04c" + name + b"\nPlain\n)\x81\x94}\x94(\x8c\x01aq\x01K\x01uh\x01\x86."
    assert ours.loads(data) == pickle.loads(data) == ({"a": 1}, "a")
