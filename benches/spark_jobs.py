"""The driver of ``bench_spark``: one Spark session that runs jobs when it is told to, and says how long each took.

Reads lines ``JOB`` from standard input and answers each with a line of JSON. Knows nothing of quickpickle: whether driver
and workers have it is up to the environment it is started in.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

ROWS_ARROW = 2_000_000
ROWS_PICKLED = 500_000
PAIRS = 1_000_000
INSTANCES = 200_000
TUPLES = 500_000
TASKS = 400
ENTRIES = 1_000_000


class Point:
    """In ``__main__``, so it travels by value."""

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


class Config:
    """What the closure of many tasks holds."""

    def __init__(self) -> None:
        self.table = {f"key{i}": i for i in range(100)}

    def get(self, name: str) -> int:
        return self.table[name]


def arrow_udf(spark: Any) -> Any:
    """An Arrow UDF over 2M rows."""
    from pyspark.sql.functions import udf

    frame = spark.range(0, ROWS_ARROW, 1, 2).select(udf(lambda x: x + 1, "long", useArrow=True)("id").alias("v"))
    return frame.selectExpr("sum(v)").collect()[0][0]


def pickled_udf(spark: Any) -> Any:
    """A UDF over pickled rows that returns a struct, 500k rows."""
    from pyspark.sql.functions import udf

    struct = udf(lambda x: (x, str(x)), "a long, b string", useArrow=False)
    frame = spark.range(0, ROWS_PICKLED, 1, 2).select(struct("id").alias("s"))
    return frame.selectExpr("sum(s.a)", "sum(length(s.b))").collect()[0][0]


def map_reduce(spark: Any) -> Any:
    """Map and reduceByKey of 1M tuples."""
    rdd = spark.sparkContext.parallelize(range(PAIRS), 2)
    return sum(value for _, value in rdd.map(lambda i: (i % 100, i)).reduceByKey(lambda a, b: a + b).collect())


def collect_instances(spark: Any) -> Any:
    """Collect of 200k instances of a class of the program."""
    points = spark.sparkContext.parallelize(range(INSTANCES), 2).map(lambda i: Point(i, -i)).collect()
    assert type(points[7]) is Point
    return sum(point.x for point in points)


def parallelize_collect(spark: Any) -> Any:
    """Parallelize and collect of 500k tuples."""
    data = [(i % 100, i) for i in range(TUPLES)]
    return sum(value for _, value in spark.sparkContext.parallelize(data, 2).collect())


def many_tasks(spark: Any) -> Any:
    """400 tasks with a closure over an instance of a class of the program."""
    config = Config()
    rdd = spark.sparkContext.parallelize(range(TASKS), TASKS)
    return rdd.map(lambda i: config.get(f"key{i % 100}")).sum()


def broadcast_dict(spark: Any) -> Any:
    """Broadcast of a dict of 1M entries that 8 tasks read."""
    table = spark.sparkContext.broadcast({i: i + 1 for i in range(ENTRIES)})
    answer = spark.sparkContext.parallelize(range(8), 8).map(lambda i: table.value[i]).sum()
    table.destroy()
    return answer


JOBS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "arrow_udf": (arrow_udf, ROWS_ARROW * (ROWS_ARROW + 1) // 2),
    "pickled_udf": (pickled_udf, ROWS_PICKLED * (ROWS_PICKLED - 1) // 2),
    "map_reduce": (map_reduce, PAIRS * (PAIRS - 1) // 2),
    "collect_instances": (collect_instances, INSTANCES * (INSTANCES - 1) // 2),
    "parallelize_collect": (parallelize_collect, TUPLES * (TUPLES - 1) // 2),
    "many_tasks": (many_tasks, 4 * sum(range(100))),
    "broadcast_dict": (broadcast_dict, sum(range(1, 9))),
}


def main() -> None:
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench_spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    ours = "quickpickle" in CloudPickleSerializer.dumps.__code__.co_filename
    answers = sys.stdout
    sys.stdout = sys.stderr

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    # What workers say of themselves: the measurement is worth nothing if they have not what the driver has.
    def look(_: int) -> bool:
        from pyspark.serializers import CloudPickleSerializer

        return "quickpickle" in CloudPickleSerializer.dumps.__code__.co_filename

    workers = set(spark.sparkContext.parallelize(range(4), 4).map(look).collect())
    answer(ours=ours, workers=sorted(workers), spark=spark.version, python=sys.version.split()[0])
    for line in sys.stdin:
        run, expected = JOBS[line.strip()]
        began = time.perf_counter()
        got = run(spark)
        took = time.perf_counter() - began
        assert got == expected, (line, got, expected)
        answer(seconds=took)
    spark.stop()


if __name__ == "__main__":
    main()
