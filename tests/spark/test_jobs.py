"""Jobs of a real Spark with quickpickle: the same answers as without, wherever driver and workers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Spark

pytestmark = pytest.mark.timeout(900)


TIMELY_ROWS = (
    ("<lambda>(<lambda>(id), id)", [(x + 1) * x for x in range(6)]),
    ("id", [4 * x for x in range(6)]),
    ("sum(v)", [sum(range(1, 2001))]),
)


def same(answers: dict[str, Any], stock: dict[str, Any]) -> None:
    different = {
        name: (stock[name], answers[name]) for name in stock if name in answers and answers[name] != stock[name]
    }
    assert not different


def covered(report: dict[str, Any]) -> None:
    assert report["failed"] == {}
    assert report["ok"], report
    found = {process["kind"] for process in report["processes"]}
    assert found == {"driver", "task", "planner", "foreachBatch"}
    for process in report["processes"]:
        assert process["problems"] in ([], ())
        # What a process has not imported is not there to be replaced.
        states = set(process["parts"].values())
        assert "quickpickle" in states, process
        assert states <= {"quickpickle", "not imported yet"}, process


def test_local(spark: Spark, stock: dict[str, Any]) -> None:
    answers = spark.answers("local[2,3]", "rdd", "frame", "fault", "many", "timely", "check")
    covered(answers.pop("check"))
    rows = [f"[{', '.join(f'Row({name}={value})' for value in values)}]" for name, values in TIMELY_ROWS]
    assert answers.pop("small_batches") == f"(True, {', '.join(rows)})"
    assert answers.pop("cancelled_while_sending").startswith("([True], [Row(")
    assert answers.pop("failing_with_small_batches") == "True"
    assert answers.pop("many_tasks_with_small_batches") == "(True, False)"
    # As many points, in workers that keep no thread or descriptor of a task.
    assert answers.pop("thousand_tasks") == "(1000, 499500, False)"
    assert answers.keys() == stock.keys()
    same(answers, stock)
    assert answers["worker_killed_in_a_batch"] == "499500"


def test_workers_without_quickpickle(enabled: Path, bare: Path, tmp_path: Path, stock: dict[str, Any]) -> None:
    answers = Spark(enabled, bare, tmp_path).answers("local[2,3]", "rdd", "frame", "check")
    report = answers.pop("check")
    same(answers, stock)
    assert not report["ok"]
    by_kind = {process["kind"]: process for process in report["processes"]}
    assert by_kind["driver"]["quickpickle"]
    for kind in ("task", "planner"):
        assert by_kind[kind]["quickpickle"] is None
        assert by_kind[kind]["parts"] == {}
        # What was pickled by ours is loaded there, and the other way round.
        assert by_kind[kind]["problems"] in ([], ())


def test_standalone(spark: Spark, standalone: str, stock: dict[str, Any]) -> None:
    answers = spark.answers(standalone, "rdd", "check")
    covered(answers.pop("check"))
    same(answers, stock)


def test_connect(spark: Spark, stock: dict[str, Any]) -> None:
    answers = spark.answers("connect:local[2]", "frame", "check")
    covered(answers.pop("check"))
    same(answers, stock)


def test_by_code(enabled: Path, tmp_path: Path) -> None:
    """Not enabled, but installed by code on the driver, which reaches the workers it starts."""
    code = """
import quickpickle.spark as ours
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "FATAL")
assert not ours.status().installed
spark = ours.session(builder)
assert ours.status().installed and ours.status().workers
report = ours.check(spark, streaming=False)
print(report)
assert report.ok
assert spark.sparkContext.parallelize([1, 2]).map(lambda x: x + 1).collect() == [2, 3]
spark.stop()
ours.uninstall()
assert not ours.status().installed and not ours.status().workers
from pyspark.serializers import CloudPickleSerializer
assert "quickpickle" not in CloudPickleSerializer.dumps.__code__.co_filename
"""
    # The variable keeps the environment's own hook off; by code it counts for less.
    done = Spark(enabled, enabled, tmp_path, {"QUICKPICKLE_SPARK": "0"}).run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
