"""Python's pickle, rebuilt in Rust: the same bytes, several times faster.

``import quickpickle as pickle`` is meant to be the only change a program needs. Functions and
classes that do work come from the extension module ``quickpickle._native``; exceptions,
``PickleBuffer`` and constants are the standard library's own objects, so that ``except
pickle.PicklingError`` catches what is raised here and ``isinstance`` answers alike.

Left to others: everything. This file only gives names to things. What must stay true: ``__all__``
equals ``pickle.__all__``, and importing this package loads no module that ``import pickle`` does
not load, save the extension.

Loading a pickle can run any code its author chose. Never load data you do not trust.
"""

from pickle import (
    ADDITEMS,
    APPEND,
    APPENDS,
    BINBYTES,
    BINBYTES8,
    BINFLOAT,
    BINGET,
    BININT,
    BININT1,
    BININT2,
    BINPERSID,
    BINPUT,
    BINSTRING,
    BINUNICODE,
    BINUNICODE8,
    BUILD,
    BYTEARRAY8,
    DEFAULT_PROTOCOL,
    DICT,
    DUP,
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_SET,
    EMPTY_TUPLE,
    EXT1,
    EXT2,
    EXT4,
    FALSE,
    FLOAT,
    FRAME,
    FROZENSET,
    GET,
    GLOBAL,
    HIGHEST_PROTOCOL,
    INST,
    INT,
    LIST,
    LONG,
    LONG1,
    LONG4,
    LONG_BINGET,
    LONG_BINPUT,
    MARK,
    MEMOIZE,
    NEWFALSE,
    NEWOBJ,
    NEWOBJ_EX,
    NEWTRUE,
    NEXT_BUFFER,
    NONE,
    OBJ,
    PERSID,
    POP,
    POP_MARK,
    PROTO,
    PUT,
    READONLY_BUFFER,
    REDUCE,
    SETITEM,
    SETITEMS,
    SHORT_BINBYTES,
    SHORT_BINSTRING,
    SHORT_BINUNICODE,
    STACK_GLOBAL,
    STOP,
    STRING,
    TRUE,
    TUPLE,
    TUPLE1,
    TUPLE2,
    TUPLE3,
    UNICODE,
    PickleBuffer,
    PickleError,
    PicklingError,
    UnpicklingError,
)

# Not in pickle's __all__, but programs reach for them as attributes of the module. Some are missing
# from the types that checkers have for pickle.
from pickle import bytes_types as bytes_types
from pickle import compatible_formats as compatible_formats  # type: ignore[attr-defined]
from pickle import decode_long as decode_long
from pickle import dispatch_table as dispatch_table  # type: ignore[attr-defined]
from pickle import encode_long as encode_long
from pickle import format_version as format_version  # type: ignore[attr-defined]
from pickle import whichmodule as whichmodule  # type: ignore[attr-defined]

from quickpickle._native import (
    Pickler,
    Unpickler,
    dump,
    dumps,
    load,
    loads,
)
from quickpickle._native import __version__ as __version__

# Type checkers know this name; importing it from typing would cost what pickle does not.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from quickpickle.standin import install as install
    from quickpickle.standin import status as status
    from quickpickle.standin import uninstall as uninstall
    from quickpickle.tools import explain as explain
else:

    def __getattr__(name):
        """What is imported only when it is asked for."""
        if name in ("install", "status", "uninstall"):
            from quickpickle import standin

            return getattr(standin, name)
        if name == "explain":
            from quickpickle.tools import explain

            return explain
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The standard library's list: what ``from pickle import *`` gives.
__all__ = [
    "ADDITEMS",
    "APPEND",
    "APPENDS",
    "BINBYTES",
    "BINBYTES8",
    "BINFLOAT",
    "BINGET",
    "BININT",
    "BININT1",
    "BININT2",
    "BINPERSID",
    "BINPUT",
    "BINSTRING",
    "BINUNICODE",
    "BINUNICODE8",
    "BUILD",
    "BYTEARRAY8",
    "DEFAULT_PROTOCOL",
    "DICT",
    "DUP",
    "EMPTY_DICT",
    "EMPTY_LIST",
    "EMPTY_SET",
    "EMPTY_TUPLE",
    "EXT1",
    "EXT2",
    "EXT4",
    "FALSE",
    "FLOAT",
    "FRAME",
    "FROZENSET",
    "GET",
    "GLOBAL",
    "HIGHEST_PROTOCOL",
    "INST",
    "INT",
    "LIST",
    "LONG",
    "LONG1",
    "LONG4",
    "LONG_BINGET",
    "LONG_BINPUT",
    "MARK",
    "MEMOIZE",
    "NEWFALSE",
    "NEWOBJ",
    "NEWOBJ_EX",
    "NEWTRUE",
    "NEXT_BUFFER",
    "NONE",
    "OBJ",
    "PERSID",
    "POP",
    "POP_MARK",
    "PROTO",
    "PUT",
    "READONLY_BUFFER",
    "REDUCE",
    "SETITEM",
    "SETITEMS",
    "SHORT_BINBYTES",
    "SHORT_BINSTRING",
    "SHORT_BINUNICODE",
    "STACK_GLOBAL",
    "STOP",
    "STRING",
    "TRUE",
    "TUPLE",
    "TUPLE1",
    "TUPLE2",
    "TUPLE3",
    "UNICODE",
    "PickleBuffer",
    "PickleError",
    "Pickler",
    "PicklingError",
    "Unpickler",
    "UnpicklingError",
    "dump",
    "dumps",
    "load",
    "loads",
]
