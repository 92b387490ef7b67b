"""Writes payloads of functions and classes by value, as this interpreter's cloudpickle makes them.

``generate.sh`` runs it with cloudpickle 2.2.1, 3.0.0 and 3.1.3 under each of CPython 3.10 to 3.13. It writes one file, ``cloudpickle_VERSION_cpython_3xx``: a pickle of plain data, a dict from the
names in CHECKS to payloads. Files stay for ever: what was written once is to be loaded by every later release.

CHECKS says of each payload what its object does once loaded. A function loads only where the same minor version wrote it.
"""

import abc
import asyncio
import collections
import dataclasses
import enum
import functools
import pathlib
import pickle
import sys
import types
import typing

HERE = pathlib.Path(__file__).parent
SCALE = 7


def helper(x):
    return x + SCALE


def make_closure(y):
    def inner(x, *, k=2):
        """Uses a global, a helper, a closure, a default."""
        return helper(x) + y + SCALE + k

    inner.note = ["attribute"]
    return inner


def make_counter():
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    def read():
        return count

    return bump, read


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def numbers(n):
    for i in range(n):
        try:
            yield i
        finally:
            pass


async def answer(value=42):
    await asyncio.sleep(0)
    return value


class Point:
    """A class with a bit of everything."""

    made = 0

    def __init__(self, x, y):
        self.x, self.y = x, y

    def sum(self):
        return self.x + self.y

    @property
    def twice(self):
        return 2 * self.x

    @staticmethod
    def plus_one(x):
        return x + 1

    @classmethod
    def name(cls):
        return cls.__name__


class Child(Point):
    def sum(self):
        return super().sum() + 100


class Meta(type):
    def __new__(cls, name, bases, namespace):
        made = super().__new__(cls, name, bases, namespace)
        made.tag = "of " + name
        return made


class WithMeta(metaclass=Meta):
    pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


class Concrete(Abstract):
    def f(self):
        return 5


@Abstract.register
class Registered:
    pass


class Color(enum.Enum):
    RED = 1
    GREEN = "green"

    def shout(self):
        return self.name.upper() + "!"


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


@dataclasses.dataclass
class Record:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: typing.ClassVar[int] = 3


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, content):
        self.content = content

    def get(self) -> T:
        return self.content


def dynamic_module():
    made = types.ModuleType("made_at_run_time")
    exec("value = 3\ndef triple(x): return x * value\n", made.__dict__)
    return made


#: name -> (what is dumped, what is true of it once it is loaded)
CHECKS = {
    "lambda": (lambda: lambda x: x + 1, lambda f: f(1) == 2 and f.__name__ == "<lambda>"),
    "closure": (lambda: make_closure(3), lambda f: (f(1), f(1, k=0), f.note) == (20, 18, ["attribute"])),
    "shared cell": (make_counter, lambda pair: (pair[0](), pair[0](), pair[1]()) == (1, 2, 2)),
    "recursive": (lambda: factorial, lambda f: f(5) == 120),
    "generator": (lambda: numbers, lambda f: list(f(3)) == [0, 1, 2]),
    "coroutine": (lambda: answer, lambda f: asyncio.run(f()) == 42),
    "partial": (lambda: functools.partial(make_closure(1), 1), lambda f: f() == 18),
    "method": (lambda: Point(1, 2).sum, lambda f: f() == 3),
    "class": (lambda: Point, lambda c: c(1, 2).sum() == 3 and c(3, 0).twice == 6 and c.plus_one(1) == 2),
    "instance": (
        lambda: Point(1, 2),
        lambda p: p.sum() == 3 and p.name() == "Point" and type(p).__doc__.endswith("thing."),
    ),
    "child": (lambda: [Child(1, 2), Point(0, 0)], lambda v: v[0].sum() == 103 and isinstance(v[0], type(v[1]))),
    "metaclass": (lambda: WithMeta, lambda c: c.tag == "of WithMeta" and type(c).__name__ == "Meta"),
    "abstract": (
        lambda: (Abstract, Concrete, Registered),
        lambda v: v[1]().f() == 5 and issubclass(v[2], v[0]) and v[0].__abstractmethods__ == {"f"},
    ),
    "enum": (
        lambda: (Color, Color.GREEN),
        lambda v: v[0].GREEN is v[1] and v[1].shout() == "GREEN!" and len(v[0]) == 2,
    ),
    "flag": (lambda: Bits.TWO, lambda b: b == 2 and (b | type(b).ONE) == 3),
    "dataclass": (
        lambda: Record(1, [2]),
        lambda r: r == type(r)(1, [2]) and [f.name for f in dataclasses.fields(r)] == ["a", "b"],
    ),
    "generic": (lambda: (T, Box[T], Box(5)), lambda v: v[1].__parameters__ == (v[0],) and v[2].get() == 5),
    "module": (dynamic_module, lambda m: m.triple(2) == 6 and m.__name__ == "made_at_run_time"),
    "import": (lambda: [asyncio, collections.abc], lambda v: v == [asyncio, collections.abc]),
    "views": (
        lambda: [{1: 2}.keys(), {1: 2}.values(), {1: 2}.items()],
        lambda v: [list(view) for view in v] == [[1], [2], [(1, 2)]],
    ),
    "ordered views": (
        lambda: [getattr(collections.OrderedDict(a=1), name)() for name in ("keys", "values", "items")],
        lambda v: [list(view) for view in v] == [["a"], [1], [("a", 1)]],
    ),
    "builtin types": (lambda: [types.FunctionType, types.CodeType, type(None)], lambda v: v[0] is types.FunctionType),
    "many": (
        lambda: [Point(i, -i) for i in range(100)],
        lambda v: all(p.sum() == 0 for p in v) and len({type(p) for p in v}) == 1,
    ),
}


def main():
    import cloudpickle

    payloads = {}
    for name, (make, _) in CHECKS.items():
        try:
            payload = cloudpickle.dumps(make(), protocol=4)
            # Code of the standard library's says where that is; as many other characters say nothing.
            place = sys.base_prefix.encode()
            payloads[name] = payload.replace(place, b"/" + b"_" * (len(place) - 1))
        except Exception as error:  # what that release cannot do, such as enums of a later Python
            print(f"cloudpickle {cloudpickle.__version__} cannot dump {name}: {error}", file=sys.stderr)
    target = HERE / f"cloudpickle_{cloudpickle.__version__}_cpython_{sys.version_info[0]}{sys.version_info[1]}"
    target.write_bytes(pickle.dumps(payloads, 4))


if __name__ == "__main__":
    main()
