"""PySpark's serialiser and state values, as PySpark has them and as we replace them; a part of ``bench_spark``.

Both are interleaved in one process. Prints the samples as JSON. What is pickled is defined in ``__main__`` of this program, so that it travels by value.
"""

from __future__ import annotations

import functools
import json
import pickle
import sys
import types
from typing import Any

from benches import measure

SOURCE = """
import math

SCALE = 3
OFFSETS = [1, 2, 3]


def helper(x):
    return x * SCALE


def make_closure():
    base = 5

    def closure(x):
        return helper(x) + math.floor(base) + len(OFFSETS)

    return closure


class Config:
    def __init__(self):
        self.table = {f"key{i}": i for i in range(100)}

    def get(self, name):
        return self.table[name]


def make_udf():
    config = Config()

    def udf(x):
        return config.get("key7") + x

    return udf


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)
"""


def cases() -> dict[str, Any]:
    """The rows of the table."""
    from pyspark.sql.types import IntegerType, StringType

    scope = vars(sys.modules["__main__"])
    exec(SOURCE, scope)
    many = [eval(f"lambda x: x + {i}", scope) for i in range(1000)]
    return {
        "lambda": eval("lambda x: x + 1", scope),
        "closure using globals and a helper": scope["make_closure"](),
        "1,000 distinct lambdas": many,
        "UDF command, lambda": (eval("lambda x: x + 1", scope), StringType()),
        "UDF command, closure over an instance": (scope["make_udf"](), IntegerType()),
        "RDD batch, 1,024 ints": list(range(1024)),
        "RDD batch, 1,024 (i % 100, i)": [(i % 100, i) for i in range(1024)],
        "RDD batch, 1,024 dicts": [{"id": i, "name": str(i)} for i in range(1024)],
        "RDD batch, 1,024 instances": [scope["Point"](i, -i) for i in range(1024)],
    }


def told(value: Any) -> Any:
    """What a value does, for comparing."""
    if isinstance(value, types.FunctionType):
        return value(7)
    if isinstance(value, (list, tuple)):
        return [told(item) for item in value]
    return value


def state_cases() -> dict[str, tuple[Any, Any]]:
    """Schemas and rows of SPARK-57760's table."""
    import datetime

    import numpy as np
    import pandas as pd
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

    def schema(*kinds: Any) -> Any:
        return StructType([StructField(f"c{at}", kind) for at, kind in enumerate(kinds)])

    when = datetime.datetime(2024, 2, 29, 12, 30, 0, 123456)
    mixed = schema(DoubleType(), LongType(), StringType(), TimestampType())
    return {
        "int": (schema(LongType()), (7,)),
        "float": (schema(DoubleType()), (1.5,)),
        "np.float64": (schema(DoubleType()), (np.float64(1.5),)),
        "np.datetime64": (schema(TimestampType()), (np.datetime64(when),)),
        "pd.Timestamp": (schema(TimestampType()), (pd.Timestamp(when),)),
        "10 x float": (schema(*[DoubleType()] * 10), tuple(i / 7 for i in range(10))),
        "10 x np.float64": (schema(*[DoubleType()] * 10), tuple(np.float64(i / 7) for i in range(10))),
        "np.float64, np.int64, str, pd.Timestamp": (mixed, (np.float64(1.5), np.int64(2), "text", pd.Timestamp(when))),
    }


def state_samples(seconds: float) -> dict[str, Any]:
    """Serialising each, and loading a row as the JVM writes it."""
    import pyspark.sql.streaming.stateful_processor_api_client as module
    from pyspark.serializers import PickleSerializer

    from quickpickle.spark import state

    client = types.SimpleNamespace(pickleSer=PickleSerializer())
    own = vars(module.StatefulProcessorApiClient)
    stock = own["_serialize_to_bytes"], own["_deserialize_from_bytes"]
    ours = state.state_dumps(stock[0], module), state.state_loads(stock[1], module)
    found: dict[str, Any] = {}

    def time_both(name: str, which: int, *arguments: Any) -> None:
        # One call with one argument is what can be interleaved; the partial costs both the same.
        calls = [functools.partial(both[which], client, *arguments[:-1]) for both in (stock, ours)]
        assert calls[0](arguments[-1]) == calls[1](arguments[-1]), name
        theirs, mine, _ = measure.interleave((calls[0], arguments[-1]), (calls[1], arguments[-1]), seconds)
        found[name] = {"stock_ns": theirs, "ours_ns": mine}

    for name, (schema, row) in state_cases().items():
        time_both(name, 0, schema, row)
    text = state_cases()["np.float64, np.int64, str, pd.Timestamp"][0].json().encode()
    head = (
        b"\x80\x02cpyspark.sql.types\n_create_row_inbound_converter\ncpyspark.sql.types\n_parse_datatype_json_string\n"
    )
    values = b"G?\xf8\x00\x00\x00\x00\x00\x00K\x02X\x04\x00\x00\x00text\x8a\x07@\xe2\xc1\xd5\xaf\x10\x06"
    time_both(
        "loading a row", 1, head + b"X" + len(text).to_bytes(4, "little") + text + b"\x85R\x85R(" + values + b"tR."
    )
    return found


def main() -> None:
    import pyspark.serializers as module

    from quickpickle.spark import patching, serializers, versions

    seconds = float(sys.argv[1])
    serializer = module.CloudPickleSerializer()
    parts = {part.attribute: part for part in versions.parts(patching.pyspark_version() or "")}
    both: dict[str, list[Any]] = {}
    for name in ("dumps", "loads"):
        stock = vars(module.CloudPickleSerializer)[name]
        assert stock.__code__.co_filename.endswith("pyspark/serializers.py"), "run with QUICKPICKLE_SPARK=0"
        made = serializers.MAKERS[parts[f"CloudPickleSerializer.{name}"].maker](stock, module)
        both[name] = [types.MethodType(function, serializer) for function in (stock, made)]
    found: dict[str, Any] = {}
    for name, value in cases().items():
        payloads = [dumps(value) for dumps in both["dumps"]]
        for payload in payloads:
            for loads in (*both["loads"], pickle.loads):
                assert told(loads(payload)) == told(value), name
        found[name] = {"bytes": len(payloads[0]), "same_bytes": payloads[0] == payloads[1]}
        for what, argument in (("dumps", value), ("loads", payloads[0])):
            stock, ours, _ = measure.interleave((both[what][0], argument), (both[what][1], argument), seconds)
            found[name][what] = {"stock_ns": stock, "ours_ns": ours}
    print(json.dumps({"micro": found, "state": state_samples(seconds)}))


if __name__ == "__main__":
    main()
