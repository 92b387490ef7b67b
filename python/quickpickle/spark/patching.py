"""Puts our replacements into PySpark, and takes them out again.

Methods and attributes of modules are set in place, so that PySpark's classes, and the instances that modules have made
of them meanwhile, stay what they are. Before a method is replaced its outline is compared with what is known of that
version (``versions``); where they differ, that part stays PySpark's own and this is said once, as a ``RuntimeWarning``.

Left to others: what replaces (``serializers``), what is where (``versions``), telling when a module comes (``hook``).
What must stay true: each change is undone by ``stop``; nothing here raises into PySpark's import.
"""

from __future__ import annotations

import importlib
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

from quickpickle.spark import versions
from quickpickle.spark.hook import Watch

__all__ = ["OURS", "PENDING", "is_ours", "parts", "pyspark_version", "start", "started", "stop"]

OURS: Final = "quickpickle"
PENDING: Final = "not imported yet"

_lock = threading.RLock()
_watch = Watch()
_undo: list[Callable[[], None]] = []
_parts: dict[str, str] = {}
_said: set[str] = set()
_started = False


def start() -> None:
    """Replace what is imported of PySpark, and the rest as it comes; a second time is fine."""
    global _started
    with _lock:
        if _started:
            return
        _started = True
        for module in versions.MODULES:
            _watch.when_imported(module, lambda module=module: _arrived(module))  # type: ignore[misc]


def stop() -> None:
    """Put PySpark's own methods back, where nobody else has changed them meanwhile."""
    global _started
    with _lock:
        _watch.stop()
        while _undo:
            _undo.pop()()
        _parts.clear()
        _started = False


def started() -> bool:
    """Whether PySpark has been patched, or is going to be as it is imported."""
    return _started


def parts() -> dict[str, str]:
    """Each part, and :data:`OURS`, :data:`PENDING` or why it is PySpark's own; empty before PySpark is imported."""
    with _lock:
        version = pyspark_version()
        if not _started or version is None:
            return {}
        return {part.name: _parts.get(part.name, PENDING) for part in versions.parts(version)}


def pyspark_version() -> str | None:
    """The version of the PySpark that is imported, None if there is none."""
    if "pyspark" not in sys.modules:
        return None
    try:
        # A module of one line; PySpark itself imports it last.
        return str(importlib.import_module("pyspark.version").__version__)
    except (ImportError, AttributeError):
        return "unknown"


def is_ours(function: object) -> bool:
    """Whether a function is one of our replacements."""
    code = getattr(function, "__code__", None)
    return getattr(code, "co_filename", "").startswith(_FOLDER)


_FOLDER: Final = __file__[: -len("patching.py")]


def _arrived(module: str) -> None:
    """A module has been imported: replace what is ours in it."""
    try:
        version = pyspark_version() or "unknown"
        if not versions.parts(version):
            _say(f"PySpark {version} is not among the versions known here ({versions.KNOWN}), so all of it is its own")
            return
        _replace_all([part for part in versions.parts(version) if part.module == module])
    except Exception as error:
        _say(f"{module} stays PySpark's own: {error!r}")


def _replace_all(wanted: list[versions.Part]) -> None:
    with _lock:
        for part in wanted:
            try:
                _parts[part.name] = _replace(part) or OURS
            except Exception as error:
                _parts[part.name] = f"{type(error).__name__}: {error}"
            if _parts[part.name] != OURS and part.skip is None:
                _say(f"{part.name} stays PySpark's own: {_parts[part.name]}")


def _replace(part: versions.Part) -> str | None:
    """Replace a part; why not, if not."""
    from quickpickle.spark.serializers import MAKERS

    if part.skip is not None:
        return part.skip
    module = sys.modules[part.module]
    holder, name = _holder(module, part.attribute)
    stock = vars(holder).get(name)
    if stock is None:
        return f"there is no {part.module}.{part.attribute}"
    reason = versions.surprise(part, stock)
    if reason is not None:
        return reason
    made = MAKERS[part.maker](stock, module)
    ours = _looking_like(made, stock, module)
    _set(holder, name, stock, ours)
    # A package that has yet to take the name from its module will take ours.
    for place in part.also:
        _set_in_module(place, name, stock, ours)
    if part.maker == "register_by_value":
        _register_listed(module, ours)
    return None


def _register_listed(module: types.ModuleType, register: Callable[[Any], None]) -> None:
    """Modules that were registered before we came."""
    for name in getattr(module, "_PICKLE_BY_VALUE_MODULES", ()):
        if name in sys.modules:
            register(sys.modules[name])


def _holder(module: types.ModuleType, attribute: str) -> tuple[Any, str]:
    owner, dot, name = attribute.rpartition(".")
    return (vars(module)[owner] if dot else module), name


def _looking_like(made: Callable[..., Any], stock: Any, module: types.ModuleType) -> types.FunctionType:
    """The same code with the globals, name, module and text of what it replaces."""
    scope = getattr(stock, "__globals__", vars(module))
    ours = types.FunctionType(made.__code__, scope, stock.__name__, made.__defaults__, made.__closure__)
    ours.__kwdefaults__ = made.__kwdefaults__
    # pickle's own functions become functions of the module they are looked up in, so that a function of a user that
    # mentions them is pickled by a name every receiver has.
    own = isinstance(stock, types.FunctionType)
    ours.__module__ = stock.__module__ if own else module.__name__
    ours.__qualname__ = stock.__qualname__
    ours.__doc__ = stock.__doc__ if own else made.__doc__
    if own:
        ours.__annotations__ = dict(stock.__annotations__)
    return ours


def _set(where: Any, name: str, stock: Any, ours: Any) -> None:
    setattr(where, name, ours)

    def undo() -> None:
        if vars(where).get(name) is ours:
            setattr(where, name, stock)

    _undo.append(undo)


def _set_in_module(module: str, name: str, stock: Any, ours: Any) -> None:
    def change(old: Any, new: Any) -> None:
        where = sys.modules.get(module)
        if where is not None and vars(where).get(name) is old:
            setattr(where, name, new)

    change(stock, ours)
    _undo.append(lambda: change(ours, stock))


def _say(text: str) -> None:
    if text in _said:
        return
    _said.add(text)
    try:
        warnings.warn(f"quickpickle: {text}", RuntimeWarning, stacklevel=3)
    except Exception:  # a filter that makes errors of warnings
        sys.stderr.write(f"quickpickle: {text}\n")
