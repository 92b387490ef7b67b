"""PySpark without and with quickpickle: what its serialiser does, and seven jobs from end to end.

    python -m benches.bench_spark --python ENV/bin/python --record benches/record/spark.json --plot benches/record/spark.png
    python -m benches.bench_spark --show benches/record/spark.json

ENV has PySpark and quickpickle, enabled (``scripts/demo_spark.sh`` makes one). The jobs run in two Spark sessions,
``local[2]`` each, one with ``QUICKPICKLE_SPARK=0``; both live throughout and take turns job by job, so that whatever else
the machine does falls on both. Each job checks its answer. The serialiser is timed in one process, both ways interleaved
(``benches.measure``). Ratios of jobs are of medians, of the serialiser of minima; ranges and all samples are kept.
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

#: What is wanted: how many times as fast at least; None is no slower beyond noise.
TARGETS: dict[str, float | None] = {
    "arrow_udf": None,
    "pickled_udf": None,
    "map_reduce": None,
    "collect_instances": 1.8,
    "parallelize_collect": 1.1,
    "many_tasks": None,
    "broadcast_dict": 1.5,
}
TITLES = {
    "arrow_udf": "Arrow UDF, 2M rows",
    "pickled_udf": "pickled UDF, 500k rows",
    "map_reduce": "map + reduceByKey, 1M tuples",
    "collect_instances": "collect, 200k instances",
    "parallelize_collect": "parallelize + collect, 500k",
    "many_tasks": "400 tasks with a closure",
    "broadcast_dict": "broadcast, dict of 1M",
}


#: State values: what share of PySpark's median ours may take at most.
STATE_TARGETS = {
    "int": 0.4,
    "float": 0.4,
    "np.float64": 0.35,
    "np.datetime64": 0.25,
    "pd.Timestamp": 0.25,
    "10 x float": 0.35,
    "10 x np.float64": 0.2,
    "np.float64, np.int64, str, pd.Timestamp": 0.25,
    "loading a row": 0.35,
}


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
        script = str(ROOT / "benches" / "spark_jobs.py")
        self.process = subprocess.Popen(
            [str(python), script],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.about = self._answer()
        if self.about["ours"] != ours or self.about["workers"] != [ours]:
            raise SystemExit(f"wanted {'quickpickle' if ours else 'stock'}, found {self.about}: enable the environment")

    def run(self, job: str) -> float:
        """Seconds that a job took."""
        assert self.process.stdin is not None
        self.process.stdin.write(job + "\n")
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
            raise SystemExit(f"a Spark session ended:\n{self.process.communicate()[1][-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def run_jobs(python: Path, jobs: list[str], rounds: int, warmup: int) -> dict[str, Any]:
    """Samples of each job: seconds, both ways, in the order they were taken."""
    drivers = [Driver(python, False), Driver(python, True)]
    samples: dict[str, tuple[list[float], list[float]]] = {job: ([], []) for job in jobs}
    try:
        for number in range(-warmup, rounds):
            for at, job in enumerate(jobs):
                order = (0, 1) if (number + at) % 2 == 0 else (1, 0)
                for which in order:
                    seconds = drivers[which].run(job)
                    if number >= 0:
                        samples[job][which].append(seconds)
            print(f"\rround {number + 1} of {rounds}   ", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    finally:
        for driver in drivers:
            driver.close()
    return {
        "about": drivers[1].about,
        "jobs": {job: {"stock_s": both[0], "ours_s": both[1]} for job, both in samples.items()},
    }


def run_micro(python: Path, seconds: float) -> dict[str, Any]:
    """Samples of the serialiser and of state values, from a process with PySpark."""
    env = {**os.environ, "QUICKPICKLE_SPARK": "0", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [str(python), "-m", "benches.spark_serializer", str(seconds)]
    done = subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def spread(samples: list[float]) -> str:
    """Median and range, in milliseconds."""
    low, middle, high = (1e3 * value for value in (min(samples), statistics.median(samples), max(samples)))
    return f"{middle:6.0f} [{low:.0f}..{high:.0f}]"


def percentiles(samples: list[float]) -> tuple[float, float, float]:
    """Median, 95th and 99th percentile."""
    ordered = sorted(samples)
    return statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))], ordered[int(0.99 * (len(ordered) - 1))]


def verdict(job: str, stock: list[float], ours: list[float]) -> str:
    """Whether the target is reached."""
    wanted, ratio = TARGETS[job], statistics.median(stock) / statistics.median(ours)
    if wanted is not None:
        return f"wanted {wanted:g}: {'reached' if ratio >= wanted else 'MISSED'}"
    apart = min(ours) > max(stock)
    return "wanted not slower: " + ("SLOWER" if apart else "reached" if ratio >= 1 else "within noise")


def table(result: dict[str, Any]) -> list[str]:
    """Both tables."""
    lines = []
    if result.get("micro"):
        lines.append(
            f"{'through CloudPickleSerializer, µs (best)':48}{'dumps: PySpark':>16}{'ours':>9}{'':>8}{'loads: PySpark':>16}{'ours':>9}"
        )
        for name, case in result["micro"].items():
            line = f"{name:48}"
            for what in ("dumps", "loads"):
                stock, ours = (min(case[what][which]) / 1e3 for which in ("stock_ns", "ours_ns"))
                line += f"{stock:16.2f}{ours:9.2f}{stock / ours:7.2f}x"
            lines.append(line)
        lines.append("")
    if result.get("state"):
        lines.append(
            f"{'state values, µs: median, 95th, 99th percentile':48}{'PySpark':>24}{'ours':>24}   ours/PySpark"
        )
        for name, case in result["state"].items():
            stock, ours = (percentiles(case[key]) for key in ("stock_ns", "ours_ns"))
            share, wanted = ours[0] / stock[0], STATE_TARGETS[name]
            texts = ("".join(f"{value / 1e3:8.2f}" for value in each) for each in (stock, ours))
            told = "reached" if share <= wanted else "MISSED"
            lines.append(f"{name:48}{''.join(texts)}   {share:.3f}, wanted {wanted:g}: {told}")
        lines.append("")
    if result.get("jobs"):
        lines.append(f"{'from end to end, local[2], ms: median [range]':48}{'PySpark':>22}{'with quickpickle':>22}")
        for job, both in result["jobs"].items():
            stock, ours = both["stock_s"], both["ours_s"]
            ratio = statistics.median(stock) / statistics.median(ours)
            lines.append(
                f"{TITLES[job]:48}{spread(stock):>22}{spread(ours):>22}{ratio:7.2f}x  {verdict(job, stock, ours)}"
            )
    return lines


def plot(result: dict[str, Any], path: Path) -> None:
    """Jobs as bars with all samples; the serialiser's ratios below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    jobs, micro = result.get("jobs", {}), result.get("micro", {})
    heights = [max(1, len(jobs)), max(1, len(micro))]
    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(10, 0.5 * sum(heights) + 2), height_ratios=heights, layout="constrained"
    )
    for at, both in enumerate(jobs.values()):
        for shift, key, colour, label in (
            (-0.2, "stock_s", "#8c8c8c", "PySpark"),
            (0.2, "ours_s", "#4c72b0", "with quickpickle"),
        ):
            samples = [1e3 * value for value in both[key]]
            upper.barh(at + shift, statistics.median(samples), 0.38, color=colour, label=label if at == 0 else None)
            upper.plot(samples, [at + shift] * len(samples), "k|", markersize=6, alpha=0.5)
    upper.set_yticks(range(len(jobs)), [TITLES[job] for job in jobs])
    upper.invert_yaxis()
    upper.set_xlabel("milliseconds (bars: medians; ticks: all samples)")
    upper.set_title(f"PySpark {result['about']['spark']}, local[2], Python {result['about']['python']}" if jobs else "")
    if jobs:
        upper.legend()
    for at, case in enumerate(micro.values()):
        for shift, what, colour in ((-0.2, "dumps", "#4c72b0"), (0.2, "loads", "#dd8452")):
            ratio = min(case[what]["stock_ns"]) / min(case[what]["ours_ns"])
            lower.barh(at + shift, ratio, 0.38, color=colour, label=what if at == 0 else None)
    lower.axvline(1, color="black", linewidth=0.8)
    lower.set_xscale("log")
    lower.set_yticks(range(len(micro)), list(micro))
    lower.invert_yaxis()
    lower.set_xlabel("times as fast as PySpark's own, through CloudPickleSerializer (best samples)")
    if micro:
        lower.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", type=Path, help="an interpreter with PySpark, and quickpickle enabled")
    parser.add_argument("--rounds", type=int, default=11, help="samples of each job (default: 11)")
    parser.add_argument("--warmup", type=int, default=2, help="rounds before the first sample (default: 2)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each case of the serialiser (default: 1)")
    parser.add_argument("--only", default="", help="jobs whose name has this in it")
    parser.add_argument("--no-jobs", action="store_true", help="the serialiser alone")
    parser.add_argument("--record", type=Path, help="where to keep the samples")
    parser.add_argument("--show", type=Path, help="show a record instead of measuring")
    parser.add_argument("--plot", type=Path, help="draw a plot")
    options = parser.parse_args()
    if options.show:
        result = json.loads(options.show.read_text())
    elif options.python is None:
        parser.error("--python is needed to measure")
    else:
        python = options.python.absolute()
        jobs = [job for job in TITLES if options.only in job]
        before = os.getloadavg()
        result = {"benchmark": "spark", **run_micro(python, options.seconds)}
        result |= {} if options.no_jobs else run_jobs(python, jobs, options.rounds, options.warmup)
        result["machine"] = {**machine(), "load_average_before": before}
    if options.record:
        options.record.write_text(json.dumps(result) + "\n")
    print("\n".join(table(result)))
    if options.plot:
        plot(result, options.plot)
        print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
