"""``CloudPickleSerializer`` as PySpark has it and as we replace it, interleaved in one process; a part of ``bench_spark``.

Prints the samples as JSON. What is pickled is defined in ``__main__`` of this program, so that it travels by value.
"""

from __future__ import annotations

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
    print(json.dumps(found))


if __name__ == "__main__":
    main()
