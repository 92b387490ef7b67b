"""The driver of ``bench_spark_flush``: runs a query it is told, and says how long it took.

Reads lines of JSON: ``{"form", "stages", "rows", "batch", "sleep", "partitions", "settings"}``. Knows nothing of quickpickle.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def query(spark: Any, form: str, stages: int, rows: int, sleep: float, partitions: int) -> Any:
    """A frame that goes through one or two Python workers, each of which waits ``sleep`` seconds a row."""
    from pyspark.sql.functions import udf

    frame = spark.range(0, rows, 1, partitions)

    def waits(value: Any) -> Any:
        if sleep:
            time.sleep(sleep)
        return value

    def in_batches(batches: Any) -> Any:
        for batch in batches:
            yield waits(batch)

    if form == "map_in_pandas" or form == "map_in_arrow":
        for _ in range(stages):
            frame = getattr(frame, "mapInPandas" if form == "map_in_pandas" else "mapInArrow")(in_batches, "id long")
        return frame
    if form == "two_arguments":
        one = udf(waits, "long", useArrow=True)
        two = udf(lambda x, _: waits(x), "long", useArrow=True)
        column = one("id")
        return frame.select((two(column, "id") if stages == 2 else column).alias("id"))
    assert form == "filter_then_select"
    keep, after = udf(lambda x: waits(x) >= 0, "boolean", useArrow=True), udf(waits, "long", useArrow=True)
    if stages == 2:
        frame = frame.where(keep("id"))
    return frame.select(after("id").alias("id"))


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench_spark_flush")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answers, sys.stdout = sys.stdout, sys.stderr
    answers.write(json.dumps({"spark": spark.version, "python": sys.version.split()[0]}) + "\n")
    answers.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        chosen = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(asked["batch"]), **asked["settings"]}
        for key, value in chosen.items():
            spark.conf.set(key, value)
        frame = query(spark, asked["form"], asked["stages"], asked["rows"], asked["sleep"], asked["partitions"])
        began = time.perf_counter()
        got = frame.selectExpr("count(*)", "sum(id)").collect()[0]
        took = time.perf_counter() - began
        for key in chosen:
            spark.conf.unset(key)
        assert tuple(got) == (asked["rows"], asked["rows"] * (asked["rows"] - 1) // 2), got
        answers.write(json.dumps({"seconds": took}) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main()
