"""What is in a pickle, why it is so large and what it drags in: a tree that is found without loading it.

Like parts are shown together: all records of a list are one line, ``[*]``, with their number. The numbers are bytes of
the pickle, those of everything a part holds included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from quickpickle import _native
from quickpickle.tools._input import Data, located

__all__ = ["Explanation", "Named", "Part", "Repeated", "explain"]


@dataclass(frozen=True)
class Part:
    """Objects that play the same role, and what they hold."""

    role: str
    """What they are for what holds them: ``["key"]``, ``[*]``, ``.attribute``, ``arguments``; empty for the root."""
    kind: str
    """What they are."""
    count: int
    """How many."""
    bytes: int
    """What they take, parts included."""
    offset: int
    """Where the first begins."""
    largest: int
    """Bytes of the largest one."""
    largest_offset: int
    """Where that begins."""
    by_value: bool
    """Whether their code travels in the pickle."""
    children: tuple[Part, ...]
    """Their parts, most bytes first."""

    @property
    def own(self) -> int:
        """Bytes without those of the parts."""
        return self.bytes - sum(child.bytes for child in self.children)


@dataclass(frozen=True)
class Named:
    """A global that the pickle names: by reference, imported when it is loaded."""

    module: str
    name: str
    count: int
    """How often it is used."""
    calls: int
    """How often it is called."""
    offset: int
    """Where it is named first."""


@dataclass(frozen=True)
class Repeated:
    """An object with several places."""

    kind: str
    bytes: int
    """Of one."""
    count: int
    """Places, the first one included."""
    offset: int
    """Where the first is."""

    @property
    def repeated_bytes(self) -> int:
        """What all places but the first take, or would take."""
        return self.bytes * (self.count - 1)


@dataclass(frozen=True)
class Explanation:
    """Everything about one pickle. ``print`` it, or let a notebook show it."""

    bytes: int
    """Up to and including STOP."""
    objects: int
    """Objects in it."""
    root: Part
    """What loading returns."""
    globals: tuple[Named, ...]
    """What it names, most used first."""
    shared: tuple[Repeated, ...]
    """Objects that are in the pickle once and referred to from several places."""
    duplicates: tuple[Repeated, ...]
    """Equal objects that are in it several times, and could be shared."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that loading imports."""
        return tuple(sorted({named.module for named in self.globals}))

    @property
    def by_value(self) -> tuple[Part, ...]:
        """Functions and classes whose code is in the pickle, most bytes first."""
        found = [part for _, part in self.walk() if part.by_value and not part.kind.startswith("code of ")]
        return tuple(sorted(found, key=lambda part: -part.bytes))

    def walk(self) -> Iterator[tuple[str, Part]]:
        """Every part with its path from the root."""
        stack = [("", self.root)]
        while stack:
            path, part = stack.pop()
            yield path, part
            for child in reversed(part.children):
                role = child.role if child.role.startswith(("[", ".")) else f" {child.role}"
                stack.append((path + role, child))

    def top(self, count: int = 10) -> list[tuple[str, Part]]:
        """The parts that take most bytes by themselves, with their paths."""
        return sorted(self.walk(), key=lambda found: -found[1].own)[:count]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for ``json.dump``."""
        return {**asdict(self), "modules": self.modules}

    def html(self, title: str = "pickle") -> str:
        """A page of its own with a flame graph to click through; it loads nothing from elsewhere."""
        from quickpickle.tools._flame import page

        return page(self, title)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        from quickpickle.tools._explain_text import text

        return text(self)


def explain(obj: Any, *, progress: Callable[[int], object] | None = None) -> Explanation:
    """Say what is in a pickle and what takes its bytes. Nothing in it is run.

    Args:
        obj: bytes (or anything with a buffer) that hold a pickle, or else an object, which is pickled first: by
            reference if that goes, and otherwise with its functions and classes by value.
        progress: called now and then with the bytes that are done.

    Raises:
        MalformedPickle: the pickle cannot be read to its end.
        PicklingError, TypeError: the object cannot be pickled.
    """
    data: Data = obj if _holds_bytes(obj) else _pickled(obj)
    with located():
        found = _native.tools_explain(data, progress)
    return Explanation(
        found["bytes"],
        found["objects"],
        _part(found["root"]),
        tuple(Named(*row) for row in found["globals"]),
        tuple(Repeated(*row) for row in found["shared"]),
        tuple(Repeated(*row) for row in found["duplicates"]),
    )


def _holds_bytes(obj: Any) -> bool:
    from mmap import mmap

    return isinstance(obj, bytes | bytearray | memoryview | mmap)


def _pickled(obj: Any) -> bytes:
    from pickle import PicklingError

    try:
        return _native.dumps(obj)
    except (PicklingError, AttributeError, TypeError):
        return _native.cloud_dumps(obj)


def _part(found: dict[str, Any]) -> Part:
    return Part(**{**found, "children": tuple(_part(child) for child in found["children"])})
