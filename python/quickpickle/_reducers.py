"""What programs reach for inside of cloudpickle: its questions, and its table of reducers.

None of this takes part in pickling unless a program asks for it: CloudPickler does what these
reducers say in Rust. They are here for programs that copy the table into one of their own (a copied
entry is recognised and done in Rust all the same), that add to it, or that call one.

What must stay true: a change to the table reaches every CloudPickler that has no table of its own.
"""

import abc
import copyreg
import dataclasses
import importlib
import io
import logging
import sys
import types
import typing
import warnings
import weakref
from collections import ChainMap, OrderedDict
from collections.abc import Callable
from typing import Any

from quickpickle import _native
from quickpickle._native import _extract_code_globals as _extract_code_globals
from quickpickle._native import _get_or_create_tracker_id as _get_or_create_tracker_id
from quickpickle._native import _lookup_class_or_track as _lookup_class_or_track

_Reducer = Callable[[Any], Any]

_PICKLE_BY_VALUE_MODULES = _native._pickle_by_value_modules()


def _should_pickle_by_reference(obj: Any, name: str | None = None) -> bool:
    """Whether a function, class or module is pickled as the name under which it can be imported."""
    if isinstance(obj, types.FunctionType | type | types.ModuleType):
        return _native._is_by_reference(obj, name)
    raise TypeError(f"cannot check importability of {type(obj).__name__} instances")


def _lookup_module_and_qualname(obj: Any, name: str | None = None) -> tuple[types.ModuleType, str] | None:
    """The module and the name under which ``obj`` can be imported."""
    found: tuple[types.ModuleType, str] | None = _native._lookup(obj, name)
    return found


def _whichmodule(obj: Any, name: str) -> str | None:
    """The name of the module in which ``obj`` is."""
    return _native._which_module(obj, name)


def _extract_class_dict(cls: type) -> dict[str, Any]:
    """The attributes of a class that are its own, by sorted name."""
    return dict(_native._class_items(cls))


def is_tornado_coroutine(func: Any) -> bool:
    """Whether ``func`` is one of Tornado's coroutine functions; deprecated by cloudpickle."""
    warnings.warn(
        "is_tornado_coroutine is deprecated; use tornado.gen.is_coroutine_function", DeprecationWarning, stacklevel=2
    )
    gen = sys.modules.get("tornado.gen")
    is_coroutine = getattr(gen, "is_coroutine_function", None)
    return bool(is_coroutine is not None and is_coroutine(func))


def _helper(name: str) -> Any:
    # cloudpickle's own, because that is what other picklers find under the name that payloads use.
    return getattr(importlib.import_module("cloudpickle.cloudpickle"), name)


def _classmethod_reduce(obj: Any) -> Any:
    return type(obj), (obj.__func__,)


def _property_reduce(obj: Any) -> Any:
    return property, (obj.fget, obj.fset, obj.fdel, obj.__doc__)


def _memoryview_reduce(obj: Any) -> Any:
    return bytes, (obj.tobytes(),)


def _cell_reduce(obj: Any) -> Any:
    try:
        content = obj.cell_contents
    except ValueError:
        return _helper("_make_empty_cell"), ()
    return _helper("_make_cell"), (content,)


def _code_reduce(obj: Any) -> Any:
    names = ["argcount", "posonlyargcount", "kwonlyargcount", "nlocals", "stacksize", "flags"]
    names += ["code", "consts", "names", "varnames"]
    late = ["firstlineno", "linetable"]
    if sys.version_info >= (3, 11):
        late = ["qualname", *late, "exceptiontable"]
    fields = [getattr(obj, f"co_{name}") for name in names]
    fields += ["<dynamic-code>", obj.co_name]
    fields += [getattr(obj, f"co_{name}") for name in [*late, "freevars", "cellvars"]]
    return types.CodeType, tuple(fields)


def _getset_descriptor_reduce(obj: Any) -> Any:
    return getattr, (obj.__objclass__, obj.__name__)


def _mappingproxy_reduce(obj: Any) -> Any:
    return types.MappingProxyType, (dict(obj),)


def _module_reduce(obj: Any) -> Any:
    if _should_pickle_by_reference(obj):
        return _helper("subimport"), (obj.__name__,)
    state = {name: value for name, value in vars(obj).items() if name != "__builtins__"}
    return _helper("dynamic_subimport"), (obj.__name__, state)


def _method_reduce(obj: Any) -> Any:
    return types.MethodType, (obj.__func__, obj.__self__)


def _logger_reduce(obj: Any) -> Any:
    return logging.getLogger, (obj.name,)


def _root_logger_reduce(obj: Any) -> Any:
    return logging.getLogger, ()


def _weakset_reduce(obj: Any) -> Any:
    return weakref.WeakSet, (list(obj),)


def _typevar_reduce(obj: Any) -> Any:
    found = _lookup_module_and_qualname(obj, obj.__name__)
    if found is not None and _should_pickle_by_reference(found[0]):
        return getattr, found
    identity = _get_or_create_tracker_id(obj)
    kind = (obj.__bound__, obj.__constraints__, obj.__covariant__, obj.__contravariant__)
    return _helper("_make_typevar"), (obj.__name__, *kind, identity)


def _dict_keys_reduce(obj: Any) -> Any:
    return _helper("_make_dict_keys"), (list(obj),)


def _dict_values_reduce(obj: Any) -> Any:
    return _helper("_make_dict_values"), (list(obj),)


def _dict_items_reduce(obj: Any) -> Any:
    return _helper("_make_dict_items"), (dict(obj),)


def _odict_keys_reduce(obj: Any) -> Any:
    return _helper("_make_dict_keys"), (list(obj), True)


def _odict_values_reduce(obj: Any) -> Any:
    return _helper("_make_dict_values"), (list(obj), True)


def _odict_items_reduce(obj: Any) -> Any:
    return _helper("_make_dict_items"), (dict(obj), True)


def _dataclass_field_base_reduce(obj: Any) -> Any:
    return _helper("_get_dataclass_field_type_sentinel"), (obj.name,)


def _file_reduce(obj: Any) -> Any:
    # What is to be read, and from where, is the one thing that takes more than a line; it is done in one place.
    function, args = _native._reduce_file(obj)
    return function, tuple(args)


_DEFAULTS: dict[Any, _Reducer] = {
    classmethod: _classmethod_reduce,
    io.TextIOWrapper: _file_reduce,
    logging.Logger: _logger_reduce,
    logging.RootLogger: _root_logger_reduce,
    memoryview: _memoryview_reduce,
    property: _property_reduce,
    staticmethod: _classmethod_reduce,
    types.CellType: _cell_reduce,
    types.CodeType: _code_reduce,
    types.GetSetDescriptorType: _getset_descriptor_reduce,
    types.ModuleType: _module_reduce,
    types.MethodType: _method_reduce,
    types.MappingProxyType: _mappingproxy_reduce,
    weakref.WeakSet: _weakset_reduce,
    typing.TypeVar: _typevar_reduce,
    type({}.keys()): _dict_keys_reduce,
    type({}.values()): _dict_values_reduce,
    type({}.items()): _dict_items_reduce,
    type(OrderedDict().keys()): _odict_keys_reduce,
    type(OrderedDict().values()): _odict_values_reduce,
    type(OrderedDict().items()): _odict_items_reduce,
    abc.abstractclassmethod: _classmethod_reduce,
    abc.abstractstaticmethod: _classmethod_reduce,
    abc.abstractproperty: _property_reduce,
    dataclasses._FIELD_BASE: _dataclass_field_base_reduce,  # type: ignore[attr-defined]
}


class _SharedTable(dict[Any, _Reducer]):
    """The reducers that all CloudPicklers have. Tells Rust of what a program changes in it."""

    def _tell(self) -> None:
        changed = {kind: reducer for kind, reducer in self.items() if _DEFAULTS.get(kind) is not reducer}
        _native._set_reducers(changed)

    def __setitem__(self, kind: Any, reducer: _Reducer) -> None:
        super().__setitem__(kind, reducer)
        self._tell()

    def __delitem__(self, kind: Any) -> None:
        super().__delitem__(kind)
        self._tell()

    def __ior__(self, other: Any) -> "_SharedTable":  # type: ignore[override,misc]
        self.update(other)
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)
        self._tell()

    def setdefault(self, kind: Any, reducer: Any = None) -> Any:
        found = super().setdefault(kind, reducer)
        self._tell()
        return found

    def pop(self, *args: Any) -> Any:
        found = super().pop(*args)
        self._tell()
        return found

    def popitem(self) -> tuple[Any, _Reducer]:
        found = super().popitem()
        self._tell()
        return found

    def clear(self) -> None:
        super().clear()
        self._tell()


_native._set_default_reducers(_DEFAULTS)
_dispatch_table = _SharedTable(_DEFAULTS)
dispatch_table: ChainMap[Any, Any] = ChainMap(_dispatch_table, copyreg.dispatch_table)
