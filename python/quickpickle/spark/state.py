"""What replaces methods of the client of ``transformWithState``'s state.

Serialising is native (``crates/quickpickle-python/src/spark/state.rs``); what that does not know goes the way of
PySpark's own method. Loading keeps the schemas that rows carry as JSON: PySpark parses one with every row. A schema
that is kept here is never given to anyone, because whoever has a ``StructType`` may change it; rows get names of their
own.

Left to others: as for ``serializers``. What must stay true: the bytes are PySpark's own, and so are the rows.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from quickpickle import _native

__all__ = ["state_dumps", "state_loads", "state_send"]

Function = Callable[..., Any]

# Schemas kept: as many as the states of some queries. A full table is begun anew.
_KEPT: Final = 256


def state_dumps(stock: Function, module: ModuleType) -> Function:
    """``StatefulProcessorApiClient._serialize_to_bytes``."""
    types = _types()
    _native.spark_state_prepare(types.StructType, types.TimestampType)
    dumps = _native.spark_state_dumps

    def _serialize_to_bytes(self: Any, schema: Any, data: Any) -> bytes:
        made: bytes | None = dumps(schema, data)
        return stock(self, schema, data) if made is None else made

    return _serialize_to_bytes


def state_loads(stock: Function, module: ModuleType) -> Function:
    """``StatefulProcessorApiClient._deserialize_from_bytes``."""
    types = _types()
    kept: dict[str, Function] = {}
    parse, converter = types._parse_datatype_json_string, types._create_row_inbound_converter
    row_type, new = types.Row, tuple.__new__

    def text_of(schema: Any) -> Any:
        # Parsed once its converter is wanted; anything but a text is for PySpark to complain about.
        return schema if type(schema) is str else parse(schema)

    def converter_of(schema: Any) -> Function:
        found = kept.get(schema) if type(schema) is str else converter(schema)
        if found is None:
            if len(kept) >= _KEPT:
                kept.clear()
            found = kept[schema] = make(parse(schema))
        return found

    def make(schema: Any) -> Function:
        if type(schema) is not types.StructType:
            made: Function = converter(schema)
            return made
        names, plain = tuple(schema.names), not schema._needSerializeAnyField

        def convert(*values: Any) -> Any:
            row = new(row_type, values) if plain else schema.fromInternal(values)
            row.__dict__["__fields__"] = [*names]
            return row

        return convert

    special = {
        ("pyspark.sql.types", "_parse_datatype_json_string"): text_of,
        ("pyspark.sql.types", "_create_row_inbound_converter"): converter_of,
        ("decimal", "Decimal"): decimal.Decimal,
    }

    def find(module: str, name: str) -> Any:
        found = special.get((module, name))
        if found is None:
            raise Unknown
        return found

    loads = _native.spark_state_loads

    def _deserialize_from_bytes(self: Any, value: bytes) -> Any:
        try:
            return loads(value, find)
        except Unknown:
            return stock(self, value)

    return _deserialize_from_bytes


class Unknown(Exception):
    """A row that mentions more than rows usually do."""


def state_send(stock: Function, module: ModuleType) -> Function:
    """``StatefulProcessorApiClient._send_proto_message``: version, length and message in one write."""
    head = struct.Struct("!ii").pack

    def _send_proto_message(self: Any, message: bytes) -> None:
        file = self.sockfile
        file.write(head(0, len(message)) + message)
        file.flush()

    return _send_proto_message


def _types() -> Any:
    import importlib

    return importlib.import_module("pyspark.sql.types")
