"""State values both ways, PySpark's own code beside ours; run by an interpreter that has PySpark and quickpickle.

Prints nothing and ends with 0 if all is the same: bytes, errors, warnings, rows.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import os
import time
import types
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyspark.sql.streaming.stateful_processor_api_client as module
from pyspark.serializers import PickleSerializer
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from quickpickle.spark import state


class Weird(float):
    pass


Named = collections.namedtuple("Named", "a b")
DAY = datetime.datetime(2024, 2, 29, 12, 30, 59, 123456)
BERLIN = datetime.timezone(datetime.timedelta(hours=1))

LONG, DOUBLE, STRING, BINARY, TIME, DATE = (
    LongType(),
    DoubleType(),
    StringType(),
    BinaryType(),
    TimestampType(),
    DateType(),
)


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


# Schema, and rows under it.
CASES: list[tuple[StructType, list[Any]]] = [
    (
        struct(a=LONG),
        [
            (1,),
            (-(2**63),),
            (True,),
            (None,),
            (np.int64(7),),
            (np.int8(-3),),
            (np.uint64(2**64 - 1),),
            (np.bool_(True),),
            (2**70,),
        ],
    ),
    (
        struct(a=DOUBLE),
        [
            (1.5,),
            (float("nan"),),
            (np.float64(2.5),),
            (np.float32(0.1),),
            (np.float64("nan"),),
            (Weird(3.5),),
            (np.float16(1.5),),
        ],
    ),
    (struct(a=STRING, b=BINARY), [("x", b"y"), (np.str_("z"), np.bytes_(b"w")), ("", bytearray(b"q")), (None, None)]),
    (
        struct(a=TIME),
        [
            (DAY,),
            (None,),
            (pd.Timestamp(DAY),),
            (pd.Timestamp(DAY, tz="UTC"),),
            (pd.Timestamp(DAY, tz="Europe/Berlin"),),
            (DAY.replace(tzinfo=BERLIN),),
            (DAY.replace(fold=1),),
            (np.datetime64("2024-02-29T12:30:59.123456"),),
            (np.datetime64("2024-02-29T12:30:59"),),
            (np.datetime64("2024-02-29"),),
            (np.datetime64("2024-02-29T12:30:59.123456789"),),
            (np.datetime64("NaT"),),
            (pd.NaT,),
            (pd.Timestamp("2024-02-29 12:30:59.123456789"),),
            (datetime.datetime(1969, 12, 31, 23, 59, 59),),
            (datetime.datetime(1901, 1, 1, 3, 4, 5),),
            (datetime.datetime(1, 1, 1),),
            (datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),),
            (datetime.datetime(2024, 3, 31, 2, 30),),
            (datetime.datetime(2024, 10, 27, 2, 30),),
            (datetime.datetime(2024, 10, 27, 2, 30, fold=1),),
            (datetime.date(2024, 2, 29),),
            ("not a time",),
            (5,),
        ],
    ),
    (
        struct(a=TimestampNTZType(), b=DATE),
        [(DAY, datetime.date(2024, 2, 29)), (pd.Timestamp(DAY), None), (None, pd.Timestamp(DAY))],
    ),
    (
        struct(a=DayTimeIntervalType()),
        [(datetime.timedelta(1, 2, 3),), (pd.Timedelta("1 days 00:00:02"),), (np.timedelta64(5, "s"),), (pd.NaT,)],
    ),
    (struct(a=DecimalType(9, 2)), [(decimal.Decimal("1.25"),), (None,)]),
    (
        struct(a=ArrayType(DOUBLE), b=MapType(STRING, LONG)),
        [
            ([1.0, np.float64(2)], {"k": np.int64(1)}),
            ((np.float64(1),), {np.str_("k"): 1}),
            ([], {}),
            (None, None),
            (np.array([1.0, 2.0]), {}),
            ([[np.float64(1)]], {"a": [np.int64(2)]}),
        ],
    ),
    (
        struct(a=struct(x=LONG, y=TIME), b=ArrayType(TIME)),
        [
            ((np.int64(1), DAY), [pd.Timestamp(DAY), None]),
            (Row(x=np.int64(1), y=DAY), []),
            (Named(np.float64(1), DAY), [DAY]),
            ({"x": 1, "y": DAY}, None),
        ],
    ),
    (
        struct(a=DOUBLE, b=LONG, c=STRING, d=TIME),
        [
            (np.float64(1), np.int64(2), "x", pd.Timestamp(DAY)),
            Row(1.0, 2, "x", DAY),
            [1.0, 2, "x", DAY],
            (1.0, 2),
            (1.0, 2, "x", DAY, "more"),
            (),
            "abcd",
        ],
    ),
    (struct(**{f"c{i}": DOUBLE for i in range(10)}), [tuple(map(float, range(10))), tuple(map(np.float64, range(10)))]),
]


def client(pickler: Any) -> Any:
    return types.SimpleNamespace(pickleSer=pickler)


def outcome(call: Any) -> Any:
    """What a call gives, raises and warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = (type(error), str(error))
    return result, [(each.category, str(each.message)) for each in caught]


def main() -> None:
    own = vars(module.StatefulProcessorApiClient)
    stock_dumps, stock_loads = own["_serialize_to_bytes"], own["_deserialize_from_bytes"]
    assert stock_dumps.__code__.co_filename.endswith("stateful_processor_api_client.py"), "run with QUICKPICKLE_SPARK=0"
    dumps, loads = state.state_dumps(stock_dumps, module), state.state_loads(stock_loads, module)
    this = client(PickleSerializer())
    native = 0
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", None):
        # The last one is this machine's own.
        if zone is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = zone
        time.tzset()
        for schema, rows in CASES:
            for row in rows:
                expected = outcome(lambda row=row: stock_dumps(this, schema, row))
                found = outcome(lambda row=row: dumps(this, schema, row))
                assert found == expected, (zone, schema, row, found, expected)
                native += (
                    state._native.spark_state_dumps(schema, row) is not None
                    if not isinstance(expected[0], tuple)
                    else 0
                )
    assert native > 100, native
    # What was put in is not changed, and what is shared stays separate.
    listed = [np.float64(1)]
    dumps(this, struct(a=ArrayType(DOUBLE)), (listed,))
    assert type(listed[0]) is np.float64
    # A schema that is changed counts as it is now.
    schema = struct(a=LONG)
    assert dumps(this, schema, (1,)) == stock_dumps(this, schema, (1,))
    schema.add("b", "timestamp")
    assert dumps(this, schema, (1, DAY)) == stock_dumps(this, schema, (1, DAY))
    read(this, stock_loads, loads)


def read(this: Any, stock_loads: Any, loads: Any) -> None:
    """Rows as the JVM writes them: protocol 2, with their schema as JSON."""

    def row(schema: StructType, values: bytes) -> bytes:
        text = schema.json().encode()
        head = b"\x80\x02cpyspark.sql.types\n_create_row_inbound_converter\ncpyspark.sql.types\n_parse_datatype_json_string\n"
        return head + b"X" + len(text).to_bytes(4, "little") + text + b"\x85R\x85R(" + values + b"tR."

    payloads = [
        row(struct(a=LONG, b=DOUBLE), b"K\x01G?\xf8\x00\x00\x00\x00\x00\x00"),
        row(struct(a=TIME, b=DATE), b"\x8a\x07@\xe2\xc1\xd5\xaf\x10\x06M\x10M"),
        row(struct(a=STRING, b=BINARY), b"X\x02\x00\x00\x00\xc3\xa9U\x02\xe9a"),
        row(struct(a=struct(x=LONG), b=ArrayType(LONG)), b"(K\x01t]K\x02a"),
        row(struct(a=DecimalType(9, 2), b=DATE), b"cdecimal\nDecimal\nX\x04\x00\x00\x001.25\x85RM\x10M"),
        # Names that rows do not have as a rule go the way of PySpark.
        row(struct(a=LONG, b=LONG), b"cbuiltins\ncomplex\nK\x01K\x02\x86RK\x01"),
        b"\x80\x02K\x05.",
        b"\x80\x02]q\x00(K\x01K\x02e.",
    ]
    for payload in payloads * 2:
        expected, found = stock_loads(this, payload), loads(this, payload)
        assert repr(found) == repr(expected), (found, expected)
        assert type(found) is type(expected)
        if isinstance(expected, Row):
            assert found.__fields__ == expected.__fields__
            # Whoever changes a row's names changes no other row's.
            found.__fields__.append("changed")
    for broken in (b"", b"\x80\x02cpyspark.sql.types\n_create_row_inbound_converter\n\x85R.", payloads[0][:-9]):
        assert isinstance(outcome(lambda: loads(this, broken))[0], tuple)
    # More schemas than are kept.
    for number in range(600):
        assert loads(this, row(struct(**{f"c{number}": LONG}), b"K\x07")) == stock_loads(
            this, row(struct(**{f"c{number}": LONG}), b"K\x07")
        )


if __name__ == "__main__":
    main()
