"""Since 3.14 the reference says on an exception where in the object it came from; the notes are the same, in the same order."""

from __future__ import annotations

import io
import pickle
import sys
import threading
from collections import OrderedDict, deque
from types import ModuleType
from typing import Any

import pytest

from tests import samples as s

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="the reference has no notes")

LOCK = threading.Lock()


class Setter:
    """Its state goes through a function."""

    def __init__(self, state: Any, setter: Any = setattr) -> None:
        self.state, self.setter = state, setter

    def __reduce__(self) -> Any:
        return Setter, (1,), self.state, None, None, self.setter


class Holder:
    """Hashable, whatever it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held


class Called(Holder):
    """Callable."""

    def __call__(self, *args: Any) -> Any:
        return args


class Raising:
    """Raises an exception of its own."""

    def __reduce__(self) -> Any:
        raise ValueError("no")


def _raising(count: int, item: Any) -> Any:
    yield from (item,) * count
    raise LookupError("iterator")


def _point(value: Any) -> Any:
    point = s.Point(1, value)
    point.z = 2
    return point


def _with_dict(value: Any) -> Any:
    point = _point(value)
    vars(point)["more"] = 3
    return point


WRAPPERS: dict[str, Any] = {
    "list": lambda x: [x],
    "list later": lambda x: [1, "a", [2], x, 3],
    "list third batch": lambda x: [*range(2_500), x, 1],
    "tuple": lambda x: (1, x),
    "wide tuple": lambda x: (1, 2, 3, 4, x),
    "dict value": lambda x: {"k": x},
    "dict value later": lambda x: {1: 2, "k": x, 3: [4]},
    "dict value second batch": lambda x: {**dict.fromkeys(range(1_400), 0), "k": x},
    "dict key": lambda x: {(1, Holder(x)): 2, 3: 4},
    "set": lambda x: {Holder(x)},
    "frozenset": lambda x: frozenset([Holder(x)]),
    "instance": _point,
    "instance with a dict": _with_dict,
    "instances": lambda x: [_point(1), _point(x)],
    "slots": lambda x: s.Slots(x),
    "list child": lambda x: s.ListChild([1, x, 2]),
    "list child alone": lambda x: s.ListChild([x]),
    "list child second batch": lambda x: s.ListChild([*range(1_500), x]),
    "dict child": lambda x: s.DictChild(a=1, b=x),
    "dict child key": lambda x: s.DictChild({(Holder(x),): 1}),
    "ordered dict": lambda x: OrderedDict(a=1, b=x),
    "deque": lambda x: deque([1, x]),
    "new arguments": lambda x: s.NewArgs(1, x),
    "new arguments by name": lambda x: s.NewArgsEx(1, k=x),
    "reduce arguments": lambda x: s.Reduced((list, ((1, x),))),
    "reduce state": lambda x: s.Reduced((s.Plain, (), {"a": x})),
    "reduce list items": lambda x: s.Reduced((list, (), None, iter([1, x]))),
    "reduce dict items": lambda x: s.Reduced((dict, (), None, None, iter([(1, 2), (3, x)]))),
    "state through a setter": lambda x: Setter([x]),
    "setter": lambda x: Setter(1, Called(x)),
    "reconstructor": lambda x: s.Reduced((Called(x), (1,))),
    "setstate": lambda x: s.WithState([x]),
}
WRONG: dict[str, Any] = {
    "lock": lambda: LOCK,
    "lambda": lambda: lambda: 1,
    "raising": Raising,
    "not a tuple": lambda: s.Reduced(5),
    "short": lambda: s.Reduced((1,)),
    "not callable": lambda: s.Reduced((5, ())),
    "arguments": lambda: s.Reduced((list, 5)),
    "list items": lambda: s.Reduced((list, (), None, 5)),
    "iterator raises": lambda: s.Reduced((list, (), None, _raising(3, 1))),
    "iterator raises at once": lambda: s.Reduced((dict, (), None, None, _raising(0, 1))),
    "pairs": lambda: s.Reduced((dict, (), None, None, iter([(1, 2), 3]))),
}


def notes_of(module: ModuleType, value: Any, protocol: int, how: str) -> Any:
    try:
        if how == "dumps":
            module.dumps(value, protocol)
        else:
            module.Pickler(io.BytesIO(), protocol).dump(value)
    except Exception as exc:
        return type(exc), getattr(exc, "__notes__", None)
    return None


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrong", WRONG)
def test_notes(ours: ModuleType, wrong: str, protocol: int) -> None:
    made = 0
    for outer in WRAPPERS:
        for inner in (None, *WRAPPERS):
            if inner is not None and "batch" in outer + inner:
                continue

            def value(outer: str = outer, inner: str | None = inner) -> Any:
                content = WRONG[wrong]()
                return WRAPPERS[outer](content if inner is None else WRAPPERS[inner](content))

            try:
                first, second = value(), value()
            except TypeError:  # unhashable in a set
                continue
            theirs = notes_of(pickle, first, protocol, "dumps")
            mine = notes_of(ours, second, protocol, "dumps")
            assert theirs is not None
            assert mine == theirs, (outer, inner)
            made += 1
    assert made > 500
