"""Every difference between PySpark versions that this package knows of.

A *part* is a function of PySpark that we replace: where it is, what replaces it, and its *outline*, the names its code
uses and its parameters. Outlines are the same whichever Python compiled the code, and change when what a function does
changes; a part whose outline is not the one written down stays PySpark's own. Minor versions are listed once they have
been looked at and tried; ``docs/spark.md`` says how far.

Left to others: everything that is done with this.
"""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["KNOWN", "MODULES", "Part", "outline", "parts", "surprise"]

KNOWN: Final = "3.5 and 4.0 to 4.3"

_SERIALIZERS: Final = "pyspark.serializers"
_COPY: Final = "pyspark.cloudpickle.cloudpickle"
_PACKAGE: Final = "pyspark.cloudpickle"


@dataclass(frozen=True)
class Part:
    """One function of PySpark."""

    module: str
    """The module it is in."""
    attribute: str
    """Its name there, ``Class.method`` or ``function``."""
    maker: str
    """Which function of ``serializers`` makes the replacement."""
    outline: str | None
    """The names its code uses, None for a function that is one of pickle's own; in brackets its parameters alone, where
    the replacement calls it and nothing else of it matters."""
    also: tuple[str, ...] = ()
    """Modules that have it under the same name, if they are imported."""
    needs: tuple[tuple[str, str, str], ...] = ()
    """Modules, names and outlines of other functions that the replacement takes the place of."""
    skip: str | None = None
    """Why it is not replaced in this version."""

    @property
    def name(self) -> str:
        """What users are told it is."""
        return f"{self.module.removeprefix('pyspark.')}.{self.attribute}"


_DUMPS_BY_VALUE: Final = (
    "Exception PickleError PicklingError __class__ __name__ cloudpickle dumps obj pickle pickle_protocol print_exec "
    "pyspark.util self stderr str sys"
)
_BROADCAST_DUMP: Final = (
    "Exception PickleError PicklingError __class__ __name__ close dump f pickle pickle_protocol print_exec self stderr "
    "str sys value"
)

_DUMPS: Final = "BytesIO Pickler buffer_callback dump getvalue io obj protocol"

_PLAIN: Final = (
    Part(_SERIALIZERS, "PickleSerializer.dumps", "dump_plain", "dumps obj pickle pickle_protocol self"),
    Part(_SERIALIZERS, "PickleSerializer.loads", "load_plain", "encoding loads obj pickle self"),
)
_BY_VALUE: Final = (
    Part(_SERIALIZERS, "CloudPickleSerializer.dumps", "dump_by_value", _DUMPS_BY_VALUE),
    Part(
        _COPY,
        "dumps",
        "cloudpickle_dumps",
        "BytesIO Pickler buffer_callback dump getvalue io obj protocol",
        (_PACKAGE,),
    ),
    Part(_COPY, "dump", "cloudpickle_dump", "Pickler buffer_callback dump file obj protocol", (_PACKAGE,)),
    Part(_COPY, "loads", "cloudpickle_loads", None, (_PACKAGE,)),
    Part(_COPY, "load", "cloudpickle_load", None, (_PACKAGE,)),
    Part(
        _COPY,
        "register_pickle_by_value",
        "register_by_value",
        "ModuleType ValueError _PICKLE_BY_VALUE_MODULES __name__ add isinstance module modules str sys types",
        (_PACKAGE,),
    ),
    Part(
        _COPY,
        "unregister_pickle_by_value",
        "unregister_by_value",
        "ModuleType ValueError _PICKLE_BY_VALUE_MODULES __name__ isinstance module remove str types",
        (_PACKAGE,),
    ),
)
_LOADS_4_0: Final = Part(
    _SERIALIZERS, "CloudPickleSerializer.loads", "load_plain", "cloudpickle encoding loads obj self"
)
# 4.3 can restrict which names a payload may mention.
_LOADS_4_3: Final = Part(
    _SERIALIZERS,
    "CloudPickleSerializer.loads",
    "load_unless_restricted",
    "BytesIO _RestrictedUnpickler allowed_names cloudpickle encoding io load loads obj self",
)


_TYPES: Final = "pyspark.sql.types"
_STRUCT_TO_INTERNAL: Final = (
    "PySparkValueError VariantVal __dict__ _needConversion _needSerializeAnyField dict fields hasattr isinstance list "
    "names obj self str tuple zip"
)
_TIME_TO_INTERNAL: Final = "calendar dt int microsecond mktime self time timegm timetuple tzinfo utctimetuple"
_TO_INTERNAL: Final = (
    (_TYPES, "StructType.toInternal", _STRUCT_TO_INTERNAL),
    (_TYPES, "StructField.toInternal", "dataType obj self toInternal"),
    (_TYPES, "TimestampType.toInternal", _TIME_TO_INTERNAL),
)
_ROWS: Final = (
    (_TYPES, "_create_row_inbound_converter", "dataType"),
    (_TYPES, "_create_row", "Row __fields__ fields values"),
    (_TYPES, "Row.__setattr__", "PySparkRuntimeError __dict__ key self value"),
)


def _state(serialize: str) -> tuple[Part, ...]:
    module, client = "pyspark.sql.streaming.stateful_processor_api_client", "StatefulProcessorApiClient"
    return (
        Part(module, f"{client}._serialize_to_bytes", "state_dumps", serialize, needs=_TO_INTERNAL),
        Part(module, f"{client}._deserialize_from_bytes", "state_loads", "loads pickleSer self value", needs=_ROWS),
        Part(module, f"{client}._send_proto_message", "state_send", "flush len message self sockfile write write_int"),
    )


# How a row is made plain before its schema converts it, which comes to the same in all.
_STATE_4_0: Final = _state(
    "Any Row data dict dumps fields have_numpy list numpy pickleSer pyspark.testing.utils schema self toInternal zip"
)
_STATE_4_2: Final = _state(
    "Any data dumps have_numpy numpy pickleSer pyspark.testing.utils schema self toInternal tuple"
)
_STATE_4_3: Final = _state(
    "_load_numpy _normalize_state_value data dumps has_numpy map pickleSer schema self toInternal tuple"
)


def _broadcast(module: str) -> tuple[Part, ...]:
    return (
        Part(module, "Broadcast.dump", "broadcast_dump", _BROADCAST_DUMP),
        Part(module, "Broadcast.load", "broadcast_load", "disable enable file gc load pickle self"),
    )


_BROADCAST: Final = _broadcast("pyspark.core.broadcast")
_WORKER: Final = (Part("pyspark.worker", "main", "timely_main", "(infile outfile)"),)

_PARTS: Final[dict[str, tuple[Part, ...]]] = {
    # The copy of cloudpickle 2.2 in 3.5 has its names in two modules, and lacks some that our payloads mention: a
    # worker without quickpickle could not read them.
    "3.5": (
        Part(
            _SERIALIZERS,
            "CloudPickleSerializer.dumps",
            "dump_by_value",
            None,
            skip="PySpark 3.5's own cloudpickle could not load what is pickled here by value",
        ),
        _LOADS_4_0,
        *_PLAIN,
        *_broadcast("pyspark.broadcast"),
    ),
    "4.0": (*_BY_VALUE, _LOADS_4_0, *_PLAIN, *_BROADCAST, *_STATE_4_0, *_WORKER),
    "4.1": (*_BY_VALUE, _LOADS_4_0, *_PLAIN, *_BROADCAST, *_STATE_4_0, *_WORKER),
    "4.2": (*_BY_VALUE, _LOADS_4_0, *_PLAIN, *_BROADCAST, *_STATE_4_2, *_WORKER),
    "4.3": (*_BY_VALUE, _LOADS_4_3, *_PLAIN, *_BROADCAST, *_STATE_4_3, *_WORKER),
}

MODULES: Final = tuple(dict.fromkeys(part.module for parts in _PARTS.values() for part in parts))
"""The modules that are patched in any version."""


def parts(version: str) -> tuple[Part, ...]:
    """What is replaced in a version such as ``"4.3.0"``; empty if it is not known."""
    return _PARTS.get(".".join(version.split(".")[:2]), ())


def surprise(part: Part, stock: Any) -> str | None:
    """Why a function is not the one that is written down here, None if it is."""
    if part.outline is None:
        return None if stock is getattr(pickle, part.attribute, None) else "it is not pickle's own function"
    found = outline(stock)
    if part.outline.startswith("("):
        found = f"({' '.join(_parameters(_wrapped(stock)))})"
    if found == part.outline:
        return _needed(part)
    return f"its code is not the one known here, but uses {found}" if found else "it is not a function of Python code"


def _needed(part: Part) -> str | None:
    for module, attribute, expected in part.needs:
        holder: Any = importlib.import_module(module)
        for name in attribute.split("."):
            holder = getattr(holder, name, None)
        if outline(holder) != expected:
            return f"{module}.{attribute} is not the one known here, but uses {outline(holder)}"
    return None


def outline(function: Any) -> str:
    """The names a function's code uses, and its parameters; empty if it has no code."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return " ".join(sorted({*code.co_names, *_parameters(function)}))


def _wrapped(function: Any) -> Any:
    """The function inside of decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _parameters(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
