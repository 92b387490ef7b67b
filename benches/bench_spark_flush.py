"""Two Python workers one after the other: whether they overlap, and what that costs when they are fast.

    python -m benches.bench_spark_flush --python ENV/bin/python --record benches/record/spark-flush.json

ENV has PySpark and quickpickle, enabled. Thirty batches of one row go through two functions that wait 0.1 s each: at best they
take as long as one function alone, the floor; in turns, twice that. Then rows and batches of SPARK-27870's table, scaled down,
through functions that do nothing. One session is PySpark's own, the other has quickpickle and ``conf(timely=True)``; they take
turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches.measure import ROOT, machine

FORMS = ("two_arguments", "map_in_pandas", "map_in_arrow", "filter_then_select")
WAITING = {"rows": 30, "batch": 1, "sleep": 0.1, "partitions": 1}
#: Rows and rows in a batch; a fiftieth of the table's.
THROUGHPUT = ((2_000_000, 10_000), (2_000_000, 1_000), (200_000, 100), (20_000, 10), (2_000, 1))
TIMELY = {"spark.sql.execution.pandas.udf.buffer.size": "4"}


class Driver:
    """A Spark session in a process of its own."""

    def __init__(self, python: Path, ours: bool) -> None:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        env |= {
            "PYSPARK_PYTHON": str(python),
            "PYTHONWARNINGS": "ignore",
            "QUICKPICKLE_SPARK": "1" if ours else "0",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self.settings = TIMELY if ours else {}
        command = [str(python), str(ROOT / "benches" / "spark_flush.py")]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.about = self._answer()

    def run(self, **asked: Any) -> float:
        """Seconds that a query took."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"settings": self.settings, **asked}) + "\n")
        self.process.stdin.flush()
        seconds: float = self._answer()["seconds"]
        return seconds

    def close(self) -> None:
        """End the session."""
        self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a Spark session ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(python: Path, rounds: int, forms: list[str], throughput: bool) -> dict[str, Any]:
    """All samples."""
    stock, ours = Driver(python, False), Driver(python, True)
    waiting: dict[str, dict[str, list[float]]] = {form: {"floor": [], "stock": [], "ours": []} for form in forms}
    rows: list[dict[str, Any]] = [
        {"rows": count, "batch": batch, "stages": stages, "stock": [], "ours": []}
        for count, batch in (THROUGHPUT if throughput else ())
        for stages in (1, 2)
    ]
    try:
        for number in range(-1, rounds):
            for form, kept in waiting.items():
                # The first round warms up, with one row.
                asked = {"form": form, **WAITING, **({"rows": 1} if number < 0 else {})}
                took = {
                    "floor": stock.run(stages=1, **asked),
                    "stock": stock.run(stages=2, **asked),
                    "ours": ours.run(stages=2, **asked),
                }
                if number >= 0:
                    for which, seconds in took.items():
                        kept[which].append(seconds)
            for at, row in enumerate(rows):
                asked = {"form": "two_arguments", "sleep": 0, "partitions": 2}
                asked |= {key: row[key] for key in ("rows", "batch", "stages")}
                order = ("stock", "ours") if (number + at) % 2 else ("ours", "stock")
                for which in order:
                    seconds = (stock if which == "stock" else ours).run(**asked)
                    if number >= 0:
                        row[which].append(seconds)
            print(f"\rround {number + 1} of {rounds}   ", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    finally:
        stock.close()
        ours.close()
    return {"about": ours.about, "waiting": waiting, "throughput": rows}


def spread(samples: list[float]) -> str:
    """Median and range, in seconds."""
    return f"{statistics.median(samples):.2f} [{min(samples):.2f}..{max(samples):.2f}]"


def table(result: dict[str, Any]) -> list[str]:
    """Both tables, in seconds."""
    lines = [
        f"{'30 batches of a row, 0.1 s each; s, median [range]':52}{'one function':>20}{'two: PySpark':>20}{'with us':>20}"
    ]
    for form, kept in result["waiting"].items():
        share = statistics.median(kept["ours"]) / statistics.median(kept["floor"])
        told = "reached" if share <= 1.08 else "MISSED"
        cells = "".join(f"{spread(kept[key]):>20}" for key in ("floor", "stock", "ours"))
        lines.append(f"{form:52}{cells}   {share:.2f} of the floor, wanted 1.08: {told}")
    lines += ["", f"{'functions that do nothing; s, median [range]':52}{'PySpark':>20}{'with us':>20}"]
    for row in result["throughput"]:
        name = f"{row['rows']:,} rows, batches of {row['batch']:,}, {row['stages']} function{'s' * (row['stages'] - 1)}"
        share = statistics.median(row["ours"]) / statistics.median(row["stock"])
        apart = min(row["ours"]) > max(row["stock"])
        told = "SLOWER" if apart else "faster" if share < 1 else "within noise"
        lines.append(f"{name:52}{spread(row['stock']):>20}{spread(row['ours']):>20}   {share:.2f}, {told}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", type=Path, help="an interpreter with PySpark, and quickpickle enabled")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each (default: 5)")
    parser.add_argument("--only", default="", help="forms whose name has this in it")
    parser.add_argument("--no-throughput", action="store_true", help="the waiting functions alone")
    parser.add_argument("--record", type=Path, help="where to keep the samples")
    parser.add_argument("--show", type=Path, help="show a record instead of measuring")
    options = parser.parse_args()
    if options.show:
        result = json.loads(options.show.read_text())
    elif options.python is None:
        parser.error("--python is needed to measure")
    else:
        forms = [form for form in FORMS if options.only in form]
        before = os.getloadavg()
        result = measure(options.python.absolute(), options.rounds, forms, not options.no_throughput)
        result |= {"benchmark": "spark-flush", "machine": {**machine(), "load_average_before": before}}
    if options.record:
        options.record.write_text(json.dumps(result) + "\n")
    print("\n".join(table(result)))


if __name__ == "__main__":
    main()
