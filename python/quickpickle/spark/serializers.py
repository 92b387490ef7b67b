"""What replaces methods of PySpark's serialisers and broadcast variables.

Each function here makes one replacement from the method it replaces. Replacements are given to PySpark's own classes,
which keep their identity, and look like what they replace: same name, same module, same text. They use nothing but
what they close over, because ``patching`` has them made anew with the globals of PySpark's module, in which doctest,
inspect and by-reference pickling expect to find them.

Left to others: which version of PySpark has which method, and where (``versions``); putting them in place and back
(``patching``). What must stay true: errors have the classes and messages PySpark's own have; what a receiver without
quickpickle gets names PySpark's own helpers.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from quickpickle import _native
from quickpickle import dump as _dump
from quickpickle import dumps as _dumps
from quickpickle import load as _load
from quickpickle import loads as _loads
from quickpickle.spark import flushing, state

__all__ = ["MAKERS"]

Function = Callable[..., Any]

# What a receiver without quickpickle resolves: the copy of cloudpickle every PySpark carries. That copy keeps the names
# of files in code objects, which tracebacks of UDFs show.
NAMESPACE: Final = "pyspark.cloudpickle.cloudpickle"


def _failed(what: str) -> Callable[[Exception], pickle.PicklingError]:
    """Makes the error PySpark raises where pickling fails with anything but pickle's own errors."""
    to = pickle.PicklingError

    def error(cause: Exception) -> pickle.PicklingError:
        from pyspark.util import print_exec

        told = str(cause)
        if what == "object" and "'i' format requires" in told:
            message = f"Object too large to serialize: {told}"
        else:
            message = f"Could not serialize {what}: {type(cause).__name__}: {told}"
        print_exec(sys.stderr)
        made = to(message)
        # Where in the object it went wrong, which only our engine says.
        for note in getattr(cause, "__notes__", ()):
            add = getattr(made, "add_note", None)
            if add is not None:
                add(note)
        return made

    return error


def dump_by_value(stock: Function, module: ModuleType) -> Function:
    """``CloudPickleSerializer.dumps``."""
    to_bytes, error, own = _native.cloud_dumps, _failed("object"), pickle.PickleError
    protocol, namespace = module.pickle_protocol, NAMESPACE

    def dumps(self: Any, obj: Any) -> bytes:
        try:
            return to_bytes(obj, protocol, namespace=namespace, keep_filenames=True)
        except own:
            raise
        except Exception as cause:
            raise error(cause)  # noqa: B904 - as PySpark does, so that tracebacks read the same

    return dumps


def load_unless_restricted(stock: Function, module: ModuleType) -> Function:
    """``CloudPickleSerializer.loads``; an instance restricted to some names keeps PySpark's own way."""
    from_bytes = _loads

    def loads(self: Any, obj: Any, encoding: str = "bytes") -> Any:
        if self.allowed_names is not None:
            return stock(self, obj, encoding=encoding)
        return from_bytes(obj, encoding=encoding)

    return loads


def load_plain(stock: Function, module: ModuleType) -> Function:
    """``PickleSerializer.loads``, and ``CloudPickleSerializer.loads`` where that knows no restriction."""
    from_bytes = _loads

    def loads(self: Any, obj: Any, encoding: str = "bytes") -> Any:
        return from_bytes(obj, encoding=encoding)

    return loads


def dump_plain(stock: Function, module: ModuleType) -> Function:
    """``PickleSerializer.dumps``."""
    to_bytes, protocol = _dumps, module.pickle_protocol

    def dumps(self: Any, obj: Any) -> bytes:
        return to_bytes(obj, protocol)

    return dumps


def broadcast_dump(stock: Function, module: ModuleType) -> Function:
    """``Broadcast.dump``."""
    to_file, error, own = _dump, _failed("broadcast"), pickle.PickleError
    protocol = module.pickle_protocol

    def dump(self: Any, value: Any, f: Any) -> None:
        try:
            to_file(value, f, protocol)
        except own:
            raise
        except Exception as cause:
            raise error(cause)  # noqa: B904
        f.close()

    return dump


def broadcast_load(stock: Function, module: ModuleType) -> Function:
    """``Broadcast.load``, which leaves the collector on, whatever it was."""
    from_file, off, on = _load, gc.disable, gc.enable

    def load(self: Any, file: Any) -> Any:
        off()
        try:
            return from_file(file)
        finally:
            on()

    return load


def cloudpickle_dumps(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.dumps``."""
    to_bytes, namespace = _native.cloud_dumps, NAMESPACE

    def dumps(obj: Any, protocol: int | None = None, buffer_callback: Any = None) -> bytes:
        return to_bytes(obj, protocol, buffer_callback, namespace=namespace, keep_filenames=True)

    return dumps


def cloudpickle_dump(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.dump``."""
    to_file, namespace = _native.cloud_dump, NAMESPACE

    def dump(obj: Any, file: Any, protocol: int | None = None, buffer_callback: Any = None) -> None:
        to_file(obj, file, protocol, buffer_callback, namespace=namespace, keep_filenames=True)

    return dump


def cloudpickle_loads(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.loads``, which is ``pickle.loads``."""
    from_bytes = _loads

    def loads(data: Any, /, **settings: Any) -> Any:
        return from_bytes(data, **settings)

    return loads


def cloudpickle_load(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.load``, which is ``pickle.load``."""
    from_file = _load

    def load(file: Any, **settings: Any) -> Any:
        return from_file(file, **settings)

    return load


def register_by_value(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.register_pickle_by_value``: PySpark's list and ours."""
    ours = _native.register_pickle_by_value

    def register_pickle_by_value(module: Any) -> None:
        stock(module)
        ours(module)

    return register_pickle_by_value


def unregister_by_value(stock: Function, module: ModuleType) -> Function:
    """``pyspark.cloudpickle.unregister_pickle_by_value``: PySpark's list and ours."""
    ours, listed = _native.unregister_pickle_by_value, _native.list_registry_pickle_by_value

    def unregister_pickle_by_value(module: Any) -> None:
        stock(module)
        if module.__name__ in listed():
            ours(module)

    return unregister_pickle_by_value


#: What ``versions`` names.
MAKERS: Final[dict[str, Callable[[Function, ModuleType], Function]]] = {
    maker.__name__: maker
    for maker in (
        dump_by_value,
        load_unless_restricted,
        load_plain,
        dump_plain,
        broadcast_dump,
        broadcast_load,
        cloudpickle_dumps,
        cloudpickle_dump,
        cloudpickle_loads,
        cloudpickle_load,
        register_by_value,
        unregister_by_value,
        state.state_dumps,
        state.state_loads,
        state.state_send,
        flushing.timely_main,
    )
}
