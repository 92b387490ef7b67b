"""Nesting is bounded by memory and a stated limit, not by the C stack or the interpreter's recursion limit.

The reference stops at 498 nested lists on 3.11 and about 5,000 on 3.13, so these run over ours alone; its own shallow
pickles must still be the same bytes. Deep objects are taken apart iteratively, because deallocating is CPython's.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests import child
from tests import samples as s

pytestmark = pytest.mark.beyond_reference

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def nested(step: Callable[[Any], Any], depth: int, leaf: Any) -> Any:
    """Wrap a leaf ``depth`` times."""
    value = leaf
    for _ in range(depth):
        value = step(value)
    return value


def _point(inner: Any) -> Any:
    return s.Point(inner, None)


def _slots(inner: Any) -> Any:
    return s.Slots(inner)


def _list_child(inner: Any) -> Any:
    return s.ListChild([inner])


def _dict_child(inner: Any) -> Any:
    return s.DictChild(a=inner)


SHAPES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = {
    "list": (lambda x: [x], lambda x: x[0], 50_000),
    "list with siblings": (lambda x: [1, x, "s"], lambda x: x[1], 50_000),
    "dict": (lambda x: {"k": x}, lambda x: x["k"], 50_000),
    "dict with siblings": (lambda x: {"a": 1, "k": x, "b": 2}, lambda x: x["k"], 50_000),
    "tuple": (lambda x: (x,), lambda x: x[0], 50_000),
    "wide tuple": (lambda x: (1, 2, 3, x), lambda x: x[3], 50_000),
    "tuple and list": (lambda x: ([x], 1), lambda x: x[0][0], 30_000),
    "frozenset": (lambda x: frozenset([x]), lambda x: next(iter(x)), 2_000),
    "instance": (_point, lambda x: x.x, 5_000),
    "slots": (_slots, lambda x: x.a, 5_000),
    "reduce arguments": (lambda x: s.Reduced((list, ((x,),))), lambda x: x[0], 5_000),
    "reduce state": (lambda x: s.Reduced((s.Plain, (), {"a": x})), lambda x: x.a, 5_000),
    "reduce list items": (lambda x: s.Reduced((list, (), None, iter([x]))), lambda x: x[0], 5_000),
    "reduce dict items": (lambda x: s.Reduced((dict, (), None, None, iter([(1, x)]))), lambda x: x[1], 5_000),
    "list child": (_list_child, lambda x: x[0], 5_000),
    "dict child": (_dict_child, lambda x: x["a"], 5_000),
    "setstate": (lambda x: s.WithState([x]), lambda x: x.state[1][0], 5_000),
    "getnewargs": (lambda x: s.NewArgs(x), lambda x: x.args[0], 5_000),
    "dataclass": (lambda x: s.Record("n", 0.0, [x]), lambda x: x.tags[0], 5_000),
}
ONE_SHOT = ("reduce list items", "reduce dict items")


def depth_of(value: Any, inside: Callable[[Any], Any], leaf: Any) -> int:
    """Count levels without recursion."""
    depth = 0
    while value != leaf if isinstance(value, str) else True:
        value = inside(value)
        depth += 1
    return depth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_deep_values_round_trip(ours: ModuleType, shape: str, protocol: int) -> None:
    step, inside, depth = SHAPES[shape]
    if protocol == 0 and shape == "slots":
        pytest.skip("protocol 0 has no slots")
    depth = min(depth, 2_000 if sys.version_info >= (3, 12) and shape == "frozenset" else depth)
    value = nested(step, depth, "leaf")
    assert sys.getrecursionlimit() <= 3_000, "the recursion limit is nobody's to raise"
    loaded = ours.loads(ours.dumps(value, protocol))
    assert depth_of(loaded, inside, "leaf") == depth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_at_the_reference_s_own_depth_the_bytes_are_its_own(ours: ModuleType, shape: str, protocol: int) -> None:
    step, _, _ = SHAPES[shape]
    if protocol < 2 and shape == "slots":
        pytest.skip("protocols 0 and 1 have no slots")
    for depth in (1, 2, 3, 40):
        value, again = nested(step, depth, "leaf"), nested(step, depth, "leaf")
        assert ours.dumps(value, protocol) == pickle.dumps(again if shape in ONE_SHOT else value, protocol)


def test_chain_of_linked_instances(ours: ModuleType) -> None:
    """5,000 nodes linked by an attribute, with a link back to the first."""
    first = last = s.Node(0)
    for i in range(1, 5_000):
        last.next = s.Node(i)
        last = last.next
    last.next = first
    loaded = ours.loads(ours.dumps(first))
    count, node = 1, loaded
    while node.next is not loaded:
        assert node.next.label == node.label + 1
        node = node.next
        count += 1
    assert count == 5_000
    node.next = last.next = None


def test_deep_through_hooks(ours: ModuleType) -> None:
    """persistent_id and find_class do not bring the limit back."""
    import io

    class Dumps(ours.Pickler):  # type: ignore[name-defined,misc]
        def persistent_id(self, obj: Any) -> None:
            return None

        def reducer_override(self, obj: Any) -> Any:
            return NotImplemented

    class Loads(ours.Unpickler):  # type: ignore[name-defined,misc]
        def find_class(self, module: str, name: str) -> Any:
            return super().find_class(module, name)

    value = nested(_point, 5_000, "leaf")
    file = io.BytesIO()
    Dumps(file).dump([value, nested(lambda x: [x], 20_000, "leaf")])
    file.seek(0)
    loaded = Loads(file).load()
    assert depth_of(loaded[0], lambda x: x.x, "leaf") == 5_000
    assert depth_of(loaded[1], lambda x: x[0], "leaf") == 20_000


def test_a_million_levels() -> None:
    """The default limit is at least 1,000,000, in a thread with a small stack too."""
    child.check(
        """
        import threading
        def work():
            for step, inside in ((lambda x: [x], lambda x: x[0]), (lambda x: {1: x}, lambda x: x[1]), (lambda x: (x,), lambda x: x[0])):
                value = "leaf"
                for _ in range(999_990):
                    value = step(value)
                data = P.dumps(value)
                while value != "leaf":
                    value = inside(value)
                value, depth = P.loads(data), 0
                while value != "leaf":
                    value = inside(value)
                    depth += 1
                assert depth == 999_990
        work()
        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        print("done")
        """,
        timeout=120,
    ).strip().endswith("done")


def test_endless_reduce_ends_in_a_recursion_error() -> None:
    """An object that reduces to ever new objects is stopped by the stated limit and not by the machine's memory."""
    out = child.check(
        """
        class Endless:
            def __reduce__(self):
                return Endless, (Endless(),)
        for protocol in (0, 2, 4):
            try:
                P.dumps(Endless(), protocol)
            except RecursionError as exc:
                print(type(exc).__name__, str(exc)[:200])
            else:
                raise SystemExit("ended")
        assert P.loads(P.dumps([1, [2]])) == [1, [2]]
        """,
        cap=3 << 30,
        timeout=120,
    )
    assert out.count("RecursionError") == 3


def test_endless_depth_in_a_stream_is_stopped() -> None:
    """Millions of opening opcodes give an error in good time, with memory in proportion to the input."""
    child.check(
        """
        for piece, close in ((b"]", b"a"), (b"(", b"t"), (b"}K\\x01", b"s"), (b"(K\\x01", b"l")):
            data = piece * 3_000_000
            try:
                P.loads(data + close * 3_000_000 + b".")
            except (RecursionError, P.UnpicklingError, MemoryError, TypeError):
                pass
            try:
                P.loads(data)
            except (EOFError, P.UnpicklingError, RecursionError):
                pass
            else:
                raise SystemExit("loaded")
        """,
        cap=2 << 30,
        timeout=120,
    )


def test_user_code_that_recurses_too_far_gets_its_own_error(ours: ModuleType) -> None:
    """A __getstate__ that recurses without end raises RecursionError; the pickler stays usable."""

    class Loops:
        def __reduce__(self) -> Any:
            return self.__reduce__()

    with pytest.raises(RecursionError):
        ours.dumps(Loops())
    assert ours.loads(ours.dumps([1])) == [1]


def test_dumps_within_dumps(ours: ModuleType) -> None:
    """A __reduce__ that dumps again, 50 deep: each call has scratch state of its own."""

    def dump(level: int) -> Any:
        if not level:
            return s.function, ([1],)
        return s.function, (ours.dumps([s.Calling(lambda: dump(level - 1)), level]), [level])

    data = ours.dumps([s.Calling(lambda: dump(50))])
    for level in range(50, 0, -1):
        (args, _), *_ = ours.loads(data)
        data, own = args
        assert own == [level]
