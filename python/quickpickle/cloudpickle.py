"""cloudpickle on the engine of quickpickle: the same names, the same bytes where those are right.

``import quickpickle.cloudpickle as cloudpickle`` is meant to be the only change a program needs.
Payloads name cloudpickle's own helpers, so whoever has cloudpickle can load them; quickpickle loads
them without importing it.

Left to others: ``quickpickle._native`` does the work, and ``quickpickle._reducers`` holds what
programs that look inside of cloudpickle ask for; it is imported when they do. What must stay true:
importing this module imports neither cloudpickle nor what it would import.

Loading a pickle can run any code its author chose. Never load data you do not trust.
"""

from quickpickle import HIGHEST_PROTOCOL as DEFAULT_PROTOCOL
from quickpickle import load, loads
from quickpickle._native import CloudPickler as _CloudPickler
from quickpickle._native import DefaultTable as _DefaultTable
from quickpickle._native import cloud_dump as dump
from quickpickle._native import cloud_dumps as dumps
from quickpickle._native import (
    list_registry_pickle_by_value,
    register_pickle_by_value,
    reset_classes,
    unregister_pickle_by_value,
)

# Importing typing takes longer than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "3.1.3"
"""The release of cloudpickle whose behaviour this follows."""

__all__ = [
    "DEFAULT_PROTOCOL",
    "CloudPickler",
    "Pickler",
    "__version__",
    "dump",
    "dumps",
    "list_registry_pickle_by_value",
    "load",
    "loads",
    "register_pickle_by_value",
    "reset_classes",
    "unregister_pickle_by_value",
]


class _TableSlot(_CloudPickler):
    # A slot gives a member descriptor, through which loky sets the table of one pickler.
    __slots__ = ("dispatch_table",)


class Pickler(_TableSlot):
    """Writes pickles of any object to a file, by value where the receiver could not import it.

    As ``cloudpickle.CloudPickler``. Subclasses may define ``reducer_override``, in which
    ``super().reducer_override(obj)`` means the way built in, and ``persistent_id``. A
    ``dispatch_table`` set on an instance is that instance's alone.
    """

    if TYPE_CHECKING:
        dispatch: Any
        _dispatch_table: Any
    else:
        dispatch_table = _DefaultTable("dispatch_table")
        dispatch = _DefaultTable("dispatch_table")
        _dispatch_table = _DefaultTable("_dispatch_table")


CloudPickler = Pickler


def __getattr__(name: str) -> "Any":
    # What payloads call, and what programs that look inside of cloudpickle import from it.
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from quickpickle import _native, _reducers

    for module in (_reducers, _native):
        try:
            return getattr(module, name)
        except AttributeError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
