"""Jobs of a real Spark, each a function of a session that answers something which has a text.

Run as a script, ``python jobs.py OUTPUT MASTER [SUITE ...]``, by the interpreter that is to be the driver: the answers
go to a JSON file. Nothing here knows of quickpickle; whoever starts it decides whether driver and workers have it.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

RDD: dict[str, Callable[..., Any]] = {}
FRAME: dict[str, Callable[..., Any]] = {}
FAULT: dict[str, Callable[..., Any]] = {}
MANY: dict[str, Callable[..., Any]] = {}
TIMELY: dict[str, Callable[..., Any]] = {}
SUITES = {"rdd": RDD, "frame": FRAME, "fault": FAULT, "many": MANY, "timely": TIMELY}


def job(suite: dict[str, Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        suite[function.__name__] = function
        return function

    return add


class Point:
    """In ``__main__``, so it travels by value."""

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self) -> int:
        return hash((self.x, self.y))

    def __repr__(self) -> str:
        return f"Point({self.x}, {self.y})"


def helper(x: int) -> int:
    return x * 7


# RDDs ------------------------------------------------------------------------------------------------------------


@job(RDD)
def instances(spark):
    points = spark.sparkContext.parallelize(range(3000), 4).map(lambda i: Point(i, -i)).collect()
    assert all(type(point) is Point for point in points)
    return points[:3], len(points), sum(point.x for point in points)


@job(RDD)
def distinct_instances(spark):
    return sorted(
        repr(p) for p in spark.sparkContext.parallelize([Point(1, 2), Point(1, 2), Point(3, 4)], 3).distinct().collect()
    )


@job(RDD)
def edited_class(spark):
    """A class that is changed between two jobs arrives as it is, in workers that know it already."""
    rdd = spark.sparkContext.parallelize(range(4), 2)
    answers = []
    for value in (1, 2):
        Point.scale = value
        Point.scaled = lambda self: self.x * self.scale
        answers.append(rdd.map(lambda i: Point(i, i).scaled()).collect())
    del Point.scale, Point.scaled
    return answers


@job(RDD)
def joins(spark):
    sc = spark.sparkContext
    left = sc.parallelize([(i % 7, i) for i in range(60)], 3)
    right = sc.parallelize([(i, str(i)) for i in range(5)], 2)
    return (
        sorted(left.join(right).collect()),
        sorted(left.leftOuterJoin(right).collect(), key=repr),
        sorted((key, sorted(a), sorted(b)) for key, (a, b) in left.cogroup(right).collect()),
        sorted(left.reduceByKey(lambda a, b: a + b).collect()),
        sorted((key, sorted(values)) for key, values in left.groupByKey().collect()),
    )


@job(RDD)
def sorts(spark):
    rdd = spark.sparkContext.parallelize([(i * 7919 % 1009, i) for i in range(1009)], 5)
    return rdd.sortByKey().take(20), rdd.sortBy(lambda pair: -pair[1]).take(5), rdd.top(3), rdd.takeOrdered(3)


@job(RDD)
def zips_and_products(spark):
    sc = spark.sparkContext
    numbers = sc.parallelize(range(1000), 3)
    squares = numbers.map(lambda x: x * x)
    both = numbers.zip(squares).zip(numbers.map(helper))
    return both.take(3), both.count(), sorted(sc.parallelize([1, 2, 3], 2).cartesian(sc.parallelize("ab", 2)).collect())


@job(RDD)
def unions_of_serializers(spark):
    from pyspark.serializers import BatchedSerializer, CPickleSerializer, MarshalSerializer

    sc = spark.sparkContext
    one = sc.parallelize(range(10), 2)
    two = one.map(str)._reserialize(BatchedSerializer(CPickleSerializer(), 3))
    three = one._reserialize(MarshalSerializer())
    return one.union(two).union(three).collect(), two.glom().collect()


@job(RDD)
def accumulators(spark):
    from pyspark.accumulators import AccumulatorParam

    class Names(AccumulatorParam):
        def zero(self, value):
            return set()

        def addInPlace(self, left, right):  # noqa: N802
            return left | right

    sc = spark.sparkContext
    total, names = sc.accumulator(0), sc.accumulator(set(), Names())

    def add(x):
        total.add(x)
        names.add({str(x % 5)})

    sc.parallelize(range(200), 4).foreach(add)
    return total.value, sorted(names.value)


@job(RDD)
def broadcasts(spark):
    sc = spark.sparkContext
    table = sc.broadcast({i: (str(i), i / 3) for i in range(20_000)})
    points, nested = sc.broadcast((decimal.Decimal(7), {1, 2}, len)), sc.broadcast([{"deep": [None, b"x" * 100_000]}])
    rdd = sc.parallelize(range(8), 8)
    answer = rdd.map(lambda i: (table.value[i * 1000], len(nested.value[0]["deep"][1]))).collect()
    made = rdd.map(lambda i: points.value[0] + i).take(2)
    table.unpersist(blocking=True)
    again = rdd.map(lambda i: table.value[i]).take(1)
    table.destroy()
    return answer, made, again, nested.value[0]["deep"][0]


@job(RDD)
def large_command_is_broadcast(spark):
    text = os.urandom(0) + b"q" * (2 << 20)
    return spark.sparkContext.parallelize(range(4), 2).map(lambda i: len(text) + i).collect()


@job(RDD)
def files(spark):
    sc = spark.sparkContext
    with tempfile.TemporaryDirectory() as folder:
        sc.parallelize([Point(1, 2), {"k": [1.5, None]}, "text", b"bytes"], 2).saveAsPickleFile(f"{folder}/pickles")
        sc.parallelize(["one", "zwölf"], 2).saveAsTextFile(f"{folder}/text")
        sc.parallelize([(1, "a"), (2, "b")], 2).saveAsSequenceFile(f"{folder}/sequence")
        return (
            sorted(map(repr, sc.pickleFile(f"{folder}/pickles").collect())),
            sorted(sc.textFile(f"{folder}/text").collect()),
            sorted(sc.sequenceFile(f"{folder}/sequence").collect()),
        )


@job(RDD)
def from_the_jvm(spark):
    """What Spark's own pickler writes: rows, dates, decimals, nested types, from a data frame."""
    frame = spark.sql(
        "select 1 a, 1.5D b, cast(2.50 as decimal(9,2)) c, date'2024-02-29' d, timestamp'2024-02-29 12:30:00.123456' e, "
        "array(1,2) f, map('k', named_struct('x', 1, 'y', null)) g, binary('abc') h, null i, 9007199254740993 j"
    )
    return frame.rdd.map(lambda row: row).collect(), frame.rdd.map(lambda row: row.asDict(True)).collect()


@job(RDD)
def to_the_jvm(spark):
    from pyspark.sql import Row

    rows = [
        Row(
            a=i,
            b=i / 7,
            c=decimal.Decimal(i) / 4,
            d=datetime.date(2024, 2, 29),
            e=datetime.datetime(2024, 2, 29, 1, i),
            f=[i],
            g={"k": str(i)},
        )
        for i in range(30)
    ]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 3)).orderBy("a").collect()


@job(RDD)
def perf_profiler(spark):
    """The one serialiser that is restricted to some names."""
    from pyspark.sql.functions import udf

    spark.conf.set("spark.sql.pyspark.udf.profiler", "perf")
    try:
        spark.range(10).select(udf(lambda x: x + 1, "long")("id")).collect()
    finally:
        spark.conf.unset("spark.sql.pyspark.udf.profiler")
    found = spark._profiler_collector._perf_profile_results
    answer = sorted(type(stats).__name__ for stats in found.values())
    spark.profile.clear()
    return answer


# Data frames -----------------------------------------------------------------------------------------------------


def people(spark):
    return spark.range(0, 200, 1, 4).selectExpr(
        "id", "cast(id % 5 as int) as grp", "id * 1.5D as x", "concat('n', id) as name"
    )


@job(FRAME)
def pickled_udf(spark):
    from pyspark.sql.functions import udf

    offset = Point(3, 4)
    struct = udf(
        lambda i, n: (i + offset.x, f"{n}!", [helper(i)] * 2), "a long, b string, c array<long>", useArrow=False
    )
    return people(spark).select(struct("id", "name").alias("s")).orderBy("s.a").limit(20).collect()


@job(FRAME)
def arrow_udf(spark):
    from pyspark.sql.functions import udf

    return (
        people(spark)
        .select(udf(lambda i: helper(i) + 1, "long", useArrow=True)("id").alias("v"))
        .orderBy("v")
        .limit(20)
        .collect()
    )


@job(FRAME)
def pandas_udfs(spark):
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    # As objects, because pandas is imported in this function and the hints of this module are strings.
    def mean(x):
        return float(x.mean())

    def twice(x):
        return x * 2

    mean.__annotations__ = {"x": pd.Series, "return": float}
    twice.__annotations__ = {"x": pd.Series, "return": pd.Series}
    mean, twice = pandas_udf(mean, "double"), pandas_udf(twice, "double")

    frame = people(spark)
    return frame.groupBy("grp").agg(mean("x")).orderBy("grp").collect(), frame.select(twice("x").alias("v")).orderBy(
        "v"
    ).limit(5).collect()


@job(FRAME)
def apply_in_pandas(spark):
    frame = people(spark)

    def centred(pdf):
        return pdf.assign(x=pdf.x - pdf.x.mean())

    other = frame.selectExpr("grp", "id as other")

    def merged(left, right):
        return left.merge(right, on="grp").groupby("grp", as_index=False).agg(total=("other", "sum"))

    return (
        frame.groupBy("grp").applyInPandas(centred, frame.schema).orderBy("id").limit(10).collect(),
        frame.groupBy("grp")
        .cogroup(other.groupBy("grp"))
        .applyInPandas(merged, "grp int, total long")
        .orderBy("grp")
        .collect(),
    )


@job(FRAME)
def maps_in_batches(spark):
    import pyarrow.compute as pc

    def in_arrow(batches):
        for batch in batches:
            yield batch.filter(pc.equal(pc.field("grp"), 3))

    def in_pandas(frames):
        for frame in frames:
            yield frame[frame.grp == 2]

    frame = people(spark)
    return (
        frame.mapInArrow(in_arrow, frame.schema).orderBy("id").collect(),
        frame.mapInPandas(in_pandas, frame.schema).orderBy("id").limit(5).collect(),
    )


@job(FRAME)
def table_function(spark):
    from pyspark.sql.functions import lit, udtf

    class Counted:
        @staticmethod
        def analyze(count, word):
            from pyspark.sql.types import StructType
            from pyspark.sql.udtf import AnalyzeResult

            return AnalyzeResult(StructType().add("n", "integer").add(word.value, "string"))

        def eval(self, count, word):
            for number in range(count):
                yield helper(number), word * number

    frame = udtf(Counted)(lit(3), lit("ab"))
    return frame.columns, frame.collect()


@job(FRAME)
def values_of_all_kinds(spark):
    rows = [
        (
            1,
            "a",
            1.5,
            decimal.Decimal("1.25"),
            datetime.date(2024, 2, 29),
            datetime.datetime(2024, 2, 29, 12, 30, 0, 5),
            True,
            [1, None],
            {"k": 1},
        ),
        (None, None, None, None, None, None, None, None, None),
    ]
    schema = (
        "a long, b string, c double, d decimal(9,2), e date, f timestamp, g boolean, h array<long>, i map<string,long>"
    )
    return spark.createDataFrame(rows, schema).collect()


@job(FRAME)
def foreach_batch(spark):
    view = "quickpickle_batches"

    def batch(frame, number):
        frame.selectExpr("sum(id) as total", "count(*) as n").createOrReplaceGlobalTempView(view)

    with tempfile.TemporaryDirectory() as folder:
        people(spark).write.parquet(f"{folder}/in")
        stream = spark.readStream.schema(people(spark).schema).parquet(f"{folder}/in")
        query = (
            stream.writeStream.foreachBatch(batch)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert query.exception() is None, query.exception()
        # The view's rows are computed when asked for, from the files.
        return spark.table(f"global_temp.{view}").collect()


@job(FRAME)
def transform_with_state(spark):
    from pyspark.sql.streaming import StatefulProcessor

    class Window(StatefulProcessor):
        def init(self, handle):
            self.total = handle.getValueState("total", "n long, x double, at timestamp")
            self.last = handle.getListState("last", "x double")
            self.seen = handle.getMapState("seen", "k string", "v long")

        def handleInputRows(self, key, rows, timers):  # noqa: N802
            import numpy as np
            import pandas as pd

            n, x, at = self.total.get() if self.total.exists() else (0, 0.0, None)
            for frame in rows:
                for value in frame.x:
                    n, x = n + 1, x + value
                    self.last.appendValue((np.float64(value),))
                    self.seen.updateValue((str(int(value) % 3),), (np.int64(n),))
                    self.total.update((np.int64(n), np.float64(x), pd.Timestamp(2024, 2, 29, 12, n % 60)))
            n, x, at = self.total.get()
            seen = sorted((k[0], v[0]) for k, v in self.seen.iterator())
            listed = sum(item[0] for item in self.last.get())
            yield pd.DataFrame(
                {"grp": [key[0]], "n": [n], "x": [x], "listed": [listed], "at": [str(at)], "seen": [str(seen)]}
            )

        def close(self):
            pass

    with tempfile.TemporaryDirectory() as folder:
        frame = people(spark)
        frame.limit(40).coalesce(1).write.parquet(f"{folder}/in")
        stream = spark.readStream.schema(frame.schema).parquet(f"{folder}/in")
        done = stream.groupBy("grp").transformWithStateInPandas(
            Window(), "grp int, n long, x double, listed double, at string, seen string", "Update", "None"
        )
        query = (
            done.writeStream.format("memory")
            .queryName("states")
            .outputMode("update")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(180)
        assert query.exception() is None, query.exception()
        return spark.table("states").orderBy("grp").collect()


@job(FRAME)
def failing_udf(spark):
    from pyspark.sql.functions import udf

    def fails(x):
        raise KeyError(f"row {Point(x, x)}")

    try:
        spark.range(1).select(udf(fails, "long", useArrow=False)("id")).collect()
    except Exception as error:
        text = str(error)
        assert "in fails" in text, text
        assert "jobs.py" in text, text  # co_filename is kept
        return "KeyError: 'row Point(0, 0)'" in text
    return "no error"


# Faults ----------------------------------------------------------------------------------------------------------


@job(FAULT)
def cannot_be_pickled(spark):
    lock = threading.Lock()
    try:
        spark.sparkContext.parallelize([1]).map(lambda x: (lock, x)).collect()
    except Exception as error:
        return type(error).__name__, str(error)


@job(FAULT)
def answer_cannot_be_pickled(spark):
    try:
        spark.sparkContext.parallelize([1]).map(lambda x: threading.Lock()).collect()
    except Exception as error:
        return "cannot pickle '_thread.lock' object" in str(error)


@job(FAULT)
def broadcast_cannot_be_pickled(spark):
    try:
        spark.sparkContext.broadcast({"a": [threading.Lock()]})
    except Exception as error:
        return type(error).__name__, str(error)


@job(FAULT)
def context_in_a_function(spark):
    sc = spark.sparkContext
    try:
        sc.parallelize([1]).map(lambda x: sc).collect()
    except Exception as error:
        return type(error).__name__, "CONTEXT_ONLY_VALID_ON_DRIVER" in str(error)


@job(FAULT)
def worker_killed_in_a_batch(spark):
    """The task is tried again and ends well; needs a master with retries."""
    from pyspark import TaskContext

    def work(items):
        for item in items:
            if item == 700 and TaskContext.get().attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield Point(item, 0)

    return sum(p.x for p in spark.sparkContext.parallelize(range(1000), 1).mapPartitions(work).collect())


@job(FAULT)
def cancelled(spark):
    sc = spark.sparkContext
    failed = []

    def run():
        try:
            sc.setJobGroup("slow", "to be cancelled", True)
            sc.parallelize(range(2), 2).map(lambda x: time.sleep(60) or Point(x, x)).collect()
        except Exception as error:
            failed.append("cancelled" in str(error).lower())

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(2)
    started = time.monotonic()
    while thread.is_alive() and time.monotonic() - started < 60:
        sc.cancelAllJobs()
        thread.join(1)
    return failed, sc.parallelize(range(10), 2).map(lambda x: Point(x, x)).count()


@job(FAULT)
def fork_in_a_task(spark):
    import pickle

    def forked(x):
        from pyspark.serializers import CloudPickleSerializer

        serializer = CloudPickleSerializer()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if serializer.loads(serializer.dumps(lambda y: y + x))(1) == x + 1 else 2
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), pickle.loads(serializer.dumps({"x": x}))

    return spark.sparkContext.parallelize(range(4), 2).map(forked).collect()


@job(MANY)
def thousand_tasks(spark):
    """Neither threads nor descriptors grow in workers that live through many tasks."""

    def look(items):
        made = [Point(i, i) for i in items]
        with open("/proc/self/status") as status:
            threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
        yield os.getpid(), time.time(), len(os.listdir("/proc/self/fd")), threads, made

    tasks = spark.sparkContext.parallelize(range(1000), 1000).mapPartitions(look).collect()
    grown = []
    for pid in {task[0] for task in tasks}:
        mine = sorted(task[1:4] for task in tasks if task[0] == pid)
        grown.append(grows([each[1] for each in mine]) or grows([each[2] for each in mine]))
    return len(tasks), sum(point.x for task in tasks for point in task[4]), any(grown)


def grows(counts: list[int]) -> bool:
    """Whether a count has grown for good: what ends a moment later than its task may still be counted now and then."""
    quarter, half = len(counts) // 4, len(counts) // 2
    return quarter > 0 and min(counts[-quarter:]) > max(counts[:half])


# Streams that are sent in time -----------------------------------------------------------------------------------


SMALL = {"spark.sql.execution.pandas.udf.buffer.size": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "1"}


def with_settings(spark: Any, settings: dict[str, str], run: Callable[[], Any]) -> Any:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        return run()
    finally:
        for key in settings:
            spark.conf.unset(key)


def thread_names() -> str:
    tasks = Path("/proc/self/task").iterdir()
    return ",".join(sorted({(task / "comm").read_text().strip() for task in tasks}))


def last_thread_names(row: int) -> str:
    """Of the last row, when others have been written: a thread that has been started may take its time to begin."""
    names = thread_names()
    waited = 0
    while row == 5 and "quickpickle" not in names and waited < 400:
        time.sleep(0.05)
        names = thread_names()
        waited += 1
    return names


@job(TIMELY)
def small_batches(spark):
    """The thread that sends is there once something was written; all kinds of workers answer as they do without it."""
    from pyspark.sql.functions import udf

    def run():
        frame = spark.range(0, 6, 1, 1)
        names = frame.select(udf(last_thread_names, "string", useArrow=True)("id")).collect()
        plain = udf(lambda x: x + 1, "long", useArrow=False)
        arrow = udf(lambda x, y: x * y, "long", useArrow=True)

        def doubled(frames):
            for each in frames:
                yield each.assign(id=each.id * 2)

        return (
            "quickpickle" in names[-1][0],
            frame.select(arrow(plain("id"), "id")).collect(),
            frame.mapInPandas(doubled, "id long").mapInPandas(doubled, "id long").collect(),
            spark.range(0, 2000, 1, 1).select(plain("id").alias("v")).selectExpr("sum(v)").collect(),
        )

    return with_settings(spark, SMALL, run)


@job(TIMELY)
def cancelled_while_sending(spark):
    """Workers that are cut off while they write leave a session that works."""
    from pyspark.sql.functions import udf

    def run():
        endless = udf(lambda x: "x" * 5000 if time.sleep(0.002) is None else "", "string", useArrow=True)
        failed = []

        def collect():
            try:
                spark.range(0, 10**6, 1, 2).select(endless("id")).write.format("noop").mode("overwrite").save()
            except Exception as error:
                failed.append("cancel" in str(error).lower())

        thread = threading.Thread(target=collect)
        thread.start()
        time.sleep(3)
        began = time.monotonic()
        while thread.is_alive() and time.monotonic() - began < 60:
            spark.sparkContext.cancelAllJobs()
            thread.join(1)
        return failed, spark.range(5).select(udf(lambda x: x + 1, "long", useArrow=True)("id")).collect()

    return with_settings(spark, SMALL, run)


@job(TIMELY)
def failing_with_small_batches(spark):
    from pyspark.sql.functions import udf

    def fails(x):
        if x == 3:
            raise KeyError("row 3")
        return x

    def run():
        try:
            spark.range(0, 6, 1, 1).select(udf(fails, "long", useArrow=True)("id")).collect()
        except Exception as error:
            return "KeyError: 'row 3'" in str(error)

    return with_settings(spark, SMALL, run)


@job(TIMELY)
def many_tasks_with_small_batches(spark):
    """Neither threads nor descriptors remain of the tasks of a worker."""
    from pyspark.sql.functions import udf

    def look(_):
        return f"{os.getpid()} {len(os.listdir('/proc/self/fd'))} {len(os.listdir('/proc/self/task'))} {time.time()}"

    def run():
        rows = spark.range(0, 200, 1, 200).select(udf(look, "string", useArrow=False)("id")).collect()
        seen: dict[str, list[Any]] = {}
        for pid, descriptors, threads, when in (row[0].split() for row in rows):
            seen.setdefault(pid, []).append((float(when), int(descriptors), int(threads)))
        later = [sorted(each) for each in seen.values() if len(each) > 20]
        grown = [grows([one[at] for one in each]) for each in later for at in (1, 2)]
        return bool(later), any(grown)

    return with_settings(spark, SMALL, run)


def session(master: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("quickpickle tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.driver.memory": "768m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.log.level": "FATAL",
        "spark.driver.host": "127.0.0.1",
        "spark.python.worker.reuse": "true",
    }.items():
        builder = builder.config(key, value)
    if master.startswith("connect:"):
        return builder.remote(master.removeprefix("connect:")).getOrCreate()
    return builder.master(master).getOrCreate()


def main(output: str, master: str, *suites: str) -> None:
    spark = session(master)
    answers: dict[str, Any] = {}
    for suite in suites:
        if suite == "check":
            import quickpickle.spark

            answers["check"] = quickpickle.spark.check(spark).as_dict()
            continue
        for name, run in SUITES[suite].items():
            began = time.monotonic()
            try:
                answers[name] = repr(run(spark))
            except Exception:
                answers[name] = traceback.format_exc()
            sys.stderr.write(f"{name}: {time.monotonic() - began:.1f} s\n")
    Path(output).write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
