"""What :func:`quickpickle.spark.check` runs in a session's processes.

Sent as source and pickled by value, because a process to look at may lack quickpickle; so this imports the standard
library and PySpark only, and those inside of its functions. What must stay true: it changes nothing in a process, and
does not start quickpickle where it is not.
"""

from __future__ import annotations

from typing import Any


def samples() -> dict[str, Any]:
    """Objects to pickle: builtins, a function that closes over a value, an instance of a class made here."""
    offset = 39

    def keep(self: Any, x: Any) -> None:
        self.x = x

    def tell(self: Any, y: Any) -> tuple[str, Any, Any]:
        return (type(self).__name__, self.x, y)

    # Not by a class statement, of which type checkers make a name of this module.
    point = type("Point", (), {"__init__": keep, "__call__": tell, "__module__": "quickpickle_probe"})
    return {
        "builtins": [1, -(2**40), 1.5, "text", b"bytes", None, True, {"key": (1, 2)}, {3}],
        "function": lambda x: x + offset,
        "instance": point([1, 2]),
    }


def answer(sample: Any) -> str:
    """What a sample that arrived says, as text."""
    return repr(sample(3) if callable(sample) else sample)


def packed(ours: bool) -> dict[str, str]:
    """The samples pickled by the serialiser as it is here (``ours``), or by the unpatched class beside it; as hex."""
    import io

    from pyspark import cloudpickle
    from pyspark.serializers import CloudPickleSerializer

    def stock(sample: Any) -> bytes:
        file = io.BytesIO()
        cloudpickle.CloudPickler(file).dump(sample)
        return file.getvalue()

    dumps = CloudPickleSerializer().dumps if ours else stock
    return {name: dumps(sample).hex() for name, sample in samples().items()}


def problems_of(pickles: dict[str, str]) -> list[str]:
    """What goes wrong when these samples are loaded, by the serialiser as it is here and by pickle."""
    import pickle

    from pyspark.serializers import CloudPickleSerializer

    problems = []
    expected = samples()
    for name, text in pickles.items():
        for how, loads in (("the serialiser", CloudPickleSerializer().loads), ("pickle", pickle.loads)):
            try:
                got = answer(loads(bytes.fromhex(text)))
                if got != answer(expected[name]):
                    problems.append(f"{name} loaded by {how} is {got}")
            except Exception as error:
                problems.append(f"{name} loaded by {how}: {error!r}")
    return problems


def look(kind: str, arrived: list[dict[str, str]]) -> str:
    """Look at the process this runs in: a JSON text. ``arrived`` are samples pickled elsewhere."""
    import json
    import os
    import platform
    import socket
    import sys

    import pyspark.version

    patching = sys.modules.get("quickpickle.spark.patching")
    engine = sys.modules.get("quickpickle")
    found: dict[str, Any] = {
        "kind": kind,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "executable": sys.executable,
        "python": platform.python_version(),
        "pyspark": pyspark.version.__version__,
        "quickpickle": getattr(engine, "__version__", None),
        "parts": patching.parts() if patching is not None else {},
        "problems": [],
        "sent": {},
    }
    try:
        for pickles in (*arrived, packed(True), packed(False)):
            found["problems"] += problems_of(pickles)
        found["sent"] = packed(True)
    except Exception as error:
        found["problems"].append(repr(error))
    return json.dumps(found)


def in_tasks(spark: Any, count: int, arrived: list[dict[str, str]]) -> list[str]:
    """One report from each of ``count`` tasks."""
    from pyspark.sql.functions import udf

    probe = udf(lambda _: look("task", arrived), "string", useArrow=False)
    return [row[0] for row in spark.range(0, count, 1, count).select(probe("id")).collect()]


def in_planner(spark: Any, arrived: list[dict[str, str]]) -> list[str]:
    """The report of a worker that analyses a table function, which it answers as the name of a column."""
    from pyspark.sql.functions import udtf
    from pyspark.sql.types import StructType

    def analyze() -> Any:
        from pyspark.sql.udtf import AnalyzeResult

        return AnalyzeResult(StructType().add("x" + look("planner", arrived).encode().hex(), "string"))

    def evaluate(self: Any) -> Any:
        yield ("",)

    made = {"analyze": staticmethod(analyze), "eval": evaluate, "__module__": "quickpickle_probe"}
    function: Any = udtf(type("Probe", (), made))
    return [bytes.fromhex(function().columns[0][1:]).decode()]


def in_foreach_batch(spark: Any, view: str, seconds: float, arrived: list[dict[str, str]]) -> list[str]:
    """The report of whatever runs ``foreachBatch``, which it leaves in a global temporary view."""

    def batch(frame: Any, _: int) -> None:
        from pyspark.sql.functions import lit

        report = frame.sparkSession.range(1).select(lit(look("foreachBatch", arrived)).alias("report"))
        report.createOrReplaceGlobalTempView(view)

    stream = spark.readStream.format("rate").load()
    query = stream.writeStream.foreachBatch(batch).trigger(availableNow=True).start()
    try:
        query.awaitTermination(seconds)
    finally:
        query.stop()
    try:
        return [row[0] for row in spark.table(f"global_temp.{view}").collect()]
    finally:
        spark.catalog.dropGlobalTempView(view)
