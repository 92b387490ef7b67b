"""Importable classes and functions for pickles to name: one class for each way an object can ask to be rebuilt.

Everything here is found by module and name, so it travels by reference; nothing depends on which pickler is at work.
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import datetime
import enum
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Point:
    """Two attributes in an instance dict: the commonest shape of all."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x = x
        self.y = y

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return 7


class Plain:
    """No attribute of its own and identity equality; tests hang attributes on it."""


class Node:
    """A link of a chain or graph."""

    def __init__(self, label: Any = None) -> None:
        self.label = label
        self.next: Any = None


class Child(Point):
    """Inherits everything and adds an attribute."""

    def __init__(self, x: Any, y: Any, z: Any) -> None:
        super().__init__(x, y)
        self.z = z


class Outer:
    """Holds a class whose qualified name has a dot."""

    class Inner:
        """Named ``Outer.Inner``."""

        class Deepest:
            """Named ``Outer.Inner.Deepest``."""

        def method(self) -> str:
            """Return a fixed text."""
            return "inner"

    @staticmethod
    def static() -> str:
        """Return a fixed text."""
        return "static"

    @classmethod
    def make(cls) -> str:
        """Return the class's name."""
        return cls.__name__


class Slots:
    """Slots and no dict."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any = None) -> None:
        self.a = a
        if b is not None:
            self.b = b


class SlotsChild(Slots):
    """Slots over slots."""

    __slots__ = ("c",)


class SlotsAndDict(Slots):
    """Slots from the base, a dict from here."""


class WeakSlots:
    """Slots with a weak reference slot and a dict slot."""

    __slots__ = ("__dict__", "__weakref__", "a")


class PrivateSlots:
    """A slot whose name is mangled."""

    __slots__ = ("__hidden",)

    def __init__(self, hidden: Any) -> None:
        self.__hidden = hidden


class ListChild(list):  # type: ignore[type-arg]
    """A list with attributes."""


class DictChild(dict):  # type: ignore[type-arg]
    """A dict with attributes."""


class SetChild(set):  # type: ignore[type-arg]
    """A set with attributes."""


class FrozenSetChild(frozenset):  # type: ignore[type-arg]
    """A frozenset with attributes."""


class TupleChild(tuple):  # type: ignore[type-arg]
    """A tuple with attributes."""


class IntChild(int):
    """An int with attributes."""


class FloatChild(float):
    """A float with attributes."""


class ComplexChild(complex):
    """A complex number with attributes."""


class StrChild(str):
    """A str with attributes."""


class BytesChild(bytes):
    """A bytes object with attributes."""


class ByteArrayChild(bytearray):
    """A bytearray with attributes."""


class SlottedList(list):  # type: ignore[type-arg]
    """A list with a slot."""

    __slots__ = ("tag",)


class ListWithExtend(list):  # type: ignore[type-arg]
    """Counts what a load calls on a list subclass."""

    def append(self, item: Any) -> None:
        """Append, as a subclass may."""
        super().append(item)

    def extend(self, items: Any) -> None:
        """Extend, as a subclass may."""
        super().extend(items)


class Pair(NamedTuple):
    """A typed named tuple."""

    first: Any
    second: Any = 0


Coordinates = collections.namedtuple("Coordinates", "lat lon")


@dataclasses.dataclass
class Record:
    """A plain dataclass."""

    name: str
    score: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class FrozenRecord:
    """A frozen dataclass."""

    name: str
    score: float = 0.0


@dataclasses.dataclass(slots=True)
class SlotsRecord:
    """A dataclass with slots."""

    name: str
    score: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StrictRecord:
    """Frozen, slots, keywords only: sets its own __getstate__ and __setstate__."""

    name: str
    score: float = 0.0


class Color(enum.Enum):
    """Plain members."""

    RED = 1
    GREEN = "two"


class Number(enum.IntEnum):
    """Members that are ints."""

    ONE = 1
    TWO = 2


class Access(enum.Flag):
    """Members that combine."""

    READ = 1
    WRITE = 2


class IntAccess(enum.IntFlag):
    """Members that combine and are ints."""

    READ = 1
    WRITE = 2


class Word(str, enum.Enum):
    """Members that are strings."""

    YES = "yes"
    NO = "no"


class WithState:
    """__getstate__ and __setstate__ returning what the instance was told to."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __getstate__(self) -> Any:
        return self.state

    def __setstate__(self, state: Any) -> None:
        self.state = ("set", state)


class GetStateOnly:
    """__getstate__ without __setstate__: the state goes to BUILD's default."""

    def __init__(self, state: Any) -> None:
        self.kept = state

    def __getstate__(self) -> Any:
        return self.kept


class SetStateOnly:
    """__setstate__ alone."""

    def __init__(self) -> None:
        self.a = 1

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.restored = True


class NewArgs:
    """__getnewargs__."""

    def __new__(cls, *args: Any) -> NewArgs:
        self = super().__new__(cls)
        self.args = args
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.args


class NewArgsEx:
    """__getnewargs_ex__ with keywords."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NewArgsEx:
        self = super().__new__(cls)
        self.args = args
        self.kwargs = kwargs
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.args, self.kwargs


class IntNewArgs(int):
    """An int subclass that says how to be made."""

    def __new__(cls, value: int, note: str = "") -> IntNewArgs:
        self = super().__new__(cls, value)
        self.note = note
        return self

    def __getnewargs__(self) -> tuple[int, str]:
        return int(self), self.note


class Reduced:
    """Reduces to whatever it was given; two to six items, or a global's name."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return self.value


class ReducedEx:
    """Like :class:`Reduced` through __reduce_ex__, and remembers the protocols asked for."""

    asked: list[int] = []

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.asked.append(protocol)
        return self.value


class Calling:
    """Reduces to what a function returns at the time."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return self.function()


class Registered:
    """Pickled through copyreg's table."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registered) and self.value == other.value


def _reduce_registered(item: Registered) -> tuple[Any, ...]:
    return Registered, (item.value,)


copyreg.pickle(Registered, _reduce_registered)


class Meta(type):
    """A metaclass; its classes are still found by name."""


class Made(metaclass=Meta):
    """A class with a metaclass."""

    def __init__(self) -> None:
        self.a = 1


class Proxy:
    """Answers any attribute, dunder ones too, with another proxy: a mock-like object."""

    def __init__(self, target: Any) -> None:
        object.__setattr__(self, "_target", target)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_target"), name)


class DefaultAttributes:
    """Gives a value for any missing attribute that is not a dunder."""

    def __init__(self) -> None:
        self.real = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"default {name}"


class RaisingAttributes:
    """Raises something other than AttributeError for a missing attribute."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class GetAttribute:
    """Overrides __getattribute__ and lets everything through."""

    def __init__(self) -> None:
        self.a = 1

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Descriptor:
    """A data descriptor that shadows an entry of the instance dict."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return "from descriptor"

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__["_kept"] = value


class Described:
    """An instance whose class holds a data descriptor named like an attribute of its state."""

    value = Descriptor()

    def __init__(self) -> None:
        self.value = 3
        self.other = 4


class SetAttr:
    """Records what goes through __setattr__."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, ("through setattr", value))


class Hashed:
    """Hashes on an attribute that BUILD restores."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.name == other.name


class Member:
    """Keeps a set that holds the instance itself, and hashes on an attribute."""

    def __init__(self, name: str) -> None:
        self.club: set[Any] = set()
        self.name = name
        self.club.add(self)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and self.name == other.name


class AppError(Exception):
    """An exception with attributes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.extra = {"seen": len(args)}


class QuotaError(Exception):
    """An exception whose __init__ does not take what Exception hands back."""

    def __init__(self, used: int, limit: int) -> None:
        super().__init__("over quota")
        self.used = used
        self.limit = limit


class Zone(datetime.tzinfo):
    """A time zone class of our own."""

    def __init__(self, hours: int = 0) -> None:
        self.hours = hours

    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        """Return the fixed offset."""
        return datetime.timedelta(hours=self.hours)

    def dst(self, when: datetime.datetime | None) -> None:
        """Return None: no rule."""

    def tzname(self, when: datetime.datetime | None) -> str:
        """Return a name made of the offset."""
        return f"zone{self.hours}"

    def __getinitargs__(self) -> tuple[int]:
        return (self.hours,)


class Stamp(datetime.datetime):
    """A datetime subclass."""


class Bag:
    """Rebuilt through append/extend and item assignment without being a list or dict."""

    def __init__(self, items: Any = (), pairs: Any = ()) -> None:
        self.items = list(items)
        self.pairs = list(pairs)

    def append(self, item: Any) -> None:
        """Keep an item."""
        self.items.append(item)

    def extend(self, items: Any) -> None:
        """Keep several."""
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs.append((key, value))

    def __reduce__(self) -> tuple[Any, ...]:
        return Bag, (), None, iter(self.items), iter(self.pairs)


class AppendOnlyBag:
    """A list-like without extend: APPENDS has to call append for each item."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def append(self, item: Any) -> None:
        """Keep an item."""
        self.items.append(item)

    def __reduce__(self) -> tuple[Any, ...]:
        return AppendOnlyBag, (), None, iter(self.items)


class AddOnlySet:
    """A set-like that is not a set: ADDITEMS has to call add."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def add(self, item: Any) -> None:
        """Keep an item."""
        self.items.append(item)


def function(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Return what it was given: a callable for REDUCE."""
    return args, kwargs


def numbers(n: int) -> Iterator[int]:
    """Yield n numbers: a generator, which cannot be pickled."""
    yield from range(n)


def set_state(item: Any, state: Any) -> None:
    """Serve as a state setter: the sixth item of a reduce value."""
    item.by_setter = state


def raise_value_error(*args: Any) -> None:
    """Raise; for REDUCE and find_class."""
    raise ValueError("raised by a callable of the pickle")


class LyingClass:
    """Claims another class through a property."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        return Plain


class SlotNames:
    """Names its own slots for pickling; copyreg takes the list as it is."""

    __slots__ = ("a", "b")
    __slotnames__ = ["a"]


class StrSlots:
    """One slot, named by a plain string."""

    __slots__ = "only"


class DictProperty:
    """Hides the instance dict behind a property."""

    def __init__(self) -> None:
        self.kept = 1

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {"shown": 2}


class NeedsArguments:
    """Cannot be made without arguments; pickling must not call it."""

    def __new__(cls, a: Any, b: Any) -> NeedsArguments:
        self = super().__new__(cls)
        self.ab = (a, b)
        return self


class CallMeta(type):
    """A metaclass that makes calling its classes do something else."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        self = cls.__new__(cls)
        self.called = (args, kwargs)
        return self


class MetaCall(metaclass=CallMeta):
    """An instance made through such a metaclass."""


class ClassAttributes:
    """Attributes on the class only."""

    a = 1
    b = [2]


def reduce_to_text(*args: Any) -> tuple[Any, ...]:
    """Serve as a reduce method found in an instance dict."""
    return str, ("from the instance",)


HERE = sys.modules[__name__]
SINGLETON = Reduced("SINGLETON")
