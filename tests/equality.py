"""Structural equality of two object graphs: same types, same values to the bit, same sharing.

``==`` is too kind (1 == 1.0 == True) and too strict (nan != nan), and says nothing of which objects are one and the
same. :func:`assert_same_graph` walks two graphs side by side and requires a one-to-one relation between their mutable
objects and tuples. Sharing of atoms is not compared: an implementation may intern a str or an int.
"""

from __future__ import annotations

import pickle
import struct
import types
from collections.abc import Iterable
from typing import Any

ATOMS = (int, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented))
BY_REFERENCE = (
    type,
    types.FunctionType,
    types.ModuleType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


class Difference(AssertionError):
    """Where two graphs part."""


def assert_same_graph(left: Any, right: Any) -> None:
    """Raise :class:`Difference` unless both graphs have equal types, values and sharing."""
    pairs: list[tuple[Any, Any, str]] = [(left, right, "root")]
    matched: dict[int, int] = {}
    reverse: dict[int, int] = {}
    keep: list[Any] = []  # ids stay valid only while the objects live
    while pairs:
        a, b, where = pairs.pop()
        if type(a) is not type(b):
            raise Difference(f"{where}: {type(a)!r} is not {type(b)!r}")
        kind = type(a)
        if kind in ATOMS:
            if a != b:
                raise Difference(f"{where}: {a!r:.80} != {b!r:.80}")
            continue
        if kind is float:
            if struct.pack("d", a) != struct.pack("d", b):
                raise Difference(f"{where}: {a!r} and {b!r} differ in their bits")
            continue
        if kind is complex:
            if struct.pack("dd", a.real, a.imag) != struct.pack("dd", b.real, b.imag):
                raise Difference(f"{where}: {a!r} and {b!r} differ in their bits")
            continue
        if isinstance(a, BY_REFERENCE) and kind is not types.GenericAlias:
            if a is not b:
                raise Difference(f"{where}: {a!r} is not {b!r}")
            continue
        if kind not in (tuple, frozenset) or a:  # the empty ones are shared by everybody
            seen = matched.get(id(a)), reverse.get(id(b))
            if seen != (None, None):
                if seen != (id(b), id(a)):
                    raise Difference(f"{where}: shared differently ({kind.__name__})")
                continue
            matched[id(a)] = id(b)
            reverse[id(b)] = id(a)
            keep += (a, b)
        pairs += [(x, y, f"{where}{step}") for x, y, step in _children(a, b, where)]


def same_graph(left: Any, right: Any) -> bool:
    """Return whether :func:`assert_same_graph` would pass."""
    try:
        assert_same_graph(left, right)
    except Difference:
        return False
    return True


def _children(a: Any, b: Any, where: str) -> Iterable[tuple[Any, Any, str]]:
    """Pair up what two objects of one type hold."""
    kind = type(a)
    if kind in (list, tuple):
        _same_length(a, b, where)
        return [(x, y, f"[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
    if kind is dict:
        _same_length(a, b, where)
        keys = [(x, y, f".key{i}") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        values = [(x, y, f"[{k!r:.20}]") for (k, x), y in zip(a.items(), b.values(), strict=True)]
        return keys + values
    if isinstance(a, (set, frozenset)):
        _same_length(a, b, where)
        left, right = sorted(a, key=_set_key), sorted(b, key=_set_key)
        state = [(getattr(a, "__dict__", None), getattr(b, "__dict__", None), ".__dict__")]
        return [(x, y, "{element}") for x, y in zip(left, right, strict=True)] + state
    if kind is bytearray:
        if a != b:
            raise Difference(f"{where}: bytearrays differ")
        return []
    if isinstance(a, BaseException):
        # A chained exception keeps args and __dict__; its reduce value leaves out nothing else that a pickle carries.
        return [(a.args, b.args, ".args"), (a.__dict__, b.__dict__, ".__dict__")]
    return _reduced(a, b, where)


def _reduced(a: Any, b: Any, where: str) -> Iterable[tuple[Any, Any, str]]:
    """Pair up reduce values, which hold all that a pickle can carry of other objects."""
    try:
        left, right = a.__reduce_ex__(4), b.__reduce_ex__(4)
    except AttributeError:  # a __getstate__ that misses what a load never set; the object may have slots alone
        return [(getattr(a, "__dict__", None), getattr(b, "__dict__", None), ".__dict__")]
    except TypeError:
        if a != b:
            raise Difference(f"{where}: {a!r:.80} != {b!r:.80}") from None
        return []
    if not (isinstance(left, tuple) and isinstance(right, tuple)):
        return [(left, right, ".reduce")]
    _same_length(left, right, where)
    out = []
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        if i in (3, 4) and x is not None and y is not None:
            x, y = list(x), list(y)
        if isinstance(x, types.BuiltinFunctionType):
            if x != y:
                raise Difference(f"{where}: {x!r} != {y!r}")
            continue
        out.append((x, y, f".reduce{i}"))
    return out


def _same_length(a: Any, b: Any, where: str) -> None:
    if len(a) != len(b):
        raise Difference(f"{where}: lengths {len(a)} and {len(b)}")


def _set_key(item: Any) -> tuple[str, bytes]:
    """Order elements by what they are and not by where they live."""
    if hasattr(item, "label"):
        return type(item).__qualname__, repr(item.label).encode()
    try:
        return type(item).__qualname__, pickle.dumps(item, 2)
    except Exception:
        return type(item).__qualname__, repr(item).encode()
