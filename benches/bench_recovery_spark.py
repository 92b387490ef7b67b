"""A master's recovery state: Spark's own engines and ours, with the same serialisers, in one JVM.

Persist 1,000 workers, read them all, remove them all, as Spark's own benchmark of SPARK-46205 does. The work is done by
`java/src/bench`; this compiles it, runs it on a disk and on a RAM disk, keeps every sample and prints what they say.

    python -m benches.bench_recovery_spark --spark-python .venvs/spark/bin/python
    python -m benches.bench_recovery_spark --show benches/record/recovery-spark.json --plot recovery-spark.png
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.measure import ROOT, machine

sys.path.insert(0, str(ROOT / "examples"))

from spark_recovery.cluster import Cluster, ZooKeeper

SERIALIZERS = ("java", "kryo")
MEDIA = ("memory", "disk", "RAM disk", "ZooKeeper")
PARTS = ("persist", "read", "remove")
PACKAGES = ("sun.nio.ch", "java.nio", "java.lang", "java.lang.invoke", "java.io", "java.net", "java.util")


def library() -> Path:
    """Where the jar is: in the installed package, or where `make spark-jar` leaves it."""
    import quickpickle

    installed = Path(quickpickle.__file__).parent / "recovery_spark"
    return installed if installed.is_dir() else ROOT / "python" / "quickpickle" / "recovery_spark"


def file_system(path: Path) -> str:
    """Kind of the file system under a directory."""
    return subprocess.check_output(["stat", "-f", "-c", "%T", str(path)], text=True).strip()


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Compile and run; the record with all samples."""
    with (
        tempfile.TemporaryDirectory(prefix=".recovery-bench-", dir=options.disk) as disk,
        tempfile.TemporaryDirectory(prefix=".recovery-bench-", dir=options.ram) as ram,
        tempfile.TemporaryDirectory() as scratch,
        Cluster(Path(options.spark_python).absolute(), options.library or library(), Path(scratch)) as cluster,
    ):
        classes = Path(scratch) / "classes"
        sources = sorted((ROOT / "java" / "src" / "bench").rglob("*.java"))
        path = cluster.classpath()
        javac = ["javac", "-nowarn", "--release", "17", "-d", str(classes), "-cp", path, *map(str, sources)]
        subprocess.run(javac, check=True, stderr=subprocess.DEVNULL)
        zookeeper = "-"
        if not options.no_zookeeper and ZooKeeper.is_there():
            zookeeper = ZooKeeper(cluster).address
        output = Path(scratch) / "samples.json"
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in PACKAGES]
        (classes / "log4j2.properties").write_text("rootLogger.level = error\n")
        command = ["java", "-Xms1g", "-Xmx1g", *opened, "-cp", f"{classes}:{path}", "io.quickpickle.recovery.Benchmark"]
        command += [str(output), disk, ram, zookeeper, str(options.rounds), str(options.warmup), str(options.records)]
        command += [str(options.slow_every), options.only]
        before = os.getloadavg()
        done = subprocess.Popen(command, env=cluster.env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert done.stderr is not None
        said = []
        for line in done.stderr:
            said.append(line)
            if line.startswith("round "):
                print(f"\r{line.strip()}   ", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        if done.wait() != 0:
            raise SystemExit("".join(said[-40:]))
        result: dict[str, Any] = json.loads(output.read_text())
        places = {"disk": file_system(Path(disk)), "RAM disk": file_system(Path(ram))}
    about = machine() | {"load_average_before": before, "file_systems": places}
    return {"benchmark": "recovery-spark", "machine": about, **result}


def totals(case: dict[str, Any]) -> list[float]:
    """Milliseconds of each sample's three parts together."""
    return [sum(sample) / 1e6 for sample in case["samples_ns"]]


def best(case: dict[str, Any]) -> float:
    """Milliseconds of the best sample."""
    return min(totals(case))


def find(result: dict[str, Any], engine: str, serializer: str, medium: str) -> dict[str, Any] | None:
    """One case of a record."""
    for case in result["cases"]:
        if (case["engine"], case["serializer"], case["medium"]) == (engine, serializer, medium) and case["samples_ns"]:
            return case
    return None


def engines(result: dict[str, Any], medium: str) -> list[str]:
    """Engines measured there, in order."""
    return list(dict.fromkeys(case["engine"] for case in result["cases"] if case["medium"] == medium))


def number(value: float) -> str:
    """Milliseconds, to three digits or so."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table(result: dict[str, Any]) -> Iterator[str]:
    """Best, average and standard deviation as in Spark's table, then the best of each part."""
    yield f"{result['records']} workers: persist, read all, remove all; milliseconds; best / average / standard deviation"
    yield f"Spark {result['spark']}'s engines by that name; the others are ours, and file_system writes a correct file for each"
    yield f"{'':30}{'Java, ' + str(result['java_bytes']) + ' bytes':>24}{'Kryo, ' + str(result['kryo_bytes']) + ' bytes':>24}"
    for medium in MEDIA:
        for engine in engines(result, medium):
            line = f"{medium:10}{engine:20}"
            for serializer in SERIALIZERS:
                case = find(result, engine, serializer, medium) or find(result, engine, "-", medium)
                if case is not None:
                    all_ = totals(case)
                    line += (
                        f"{' / '.join(map(number, (min(all_), statistics.mean(all_), statistics.pstdev(all_)))):>24}"
                    )
            yield line
    yield ""
    yield "best persist / read / remove"
    for medium in MEDIA:
        for engine in engines(result, medium):
            line = f"{medium:10}{engine:20}"
            for serializer in SERIALIZERS:
                case = find(result, engine, serializer, medium) or find(result, engine, "-", medium)
                if case is not None:
                    parts = (min(sample[part] for sample in case["samples_ns"]) / 1e6 for part in range(3))
                    line += f"{' / '.join(map(number, parts)):>24}"
            yield line


#: What we want: our engine, the other, where, and how many times as fast.
TARGETS = (
    ("log none", "Spark RocksDB", "disk", 2.0),
    ("log none", "Spark FileSystem", "disk", 10.0),
    ("log always", "file_system", "disk", 3.0),
    ("log always", "Spark FileSystem", "disk", 1.0),
)


#: What no store can be faster than, where that is measured, and whether it is for those that sync.
FLOORS = (("serialiser alone", "memory", False), ("write", "disk", False), ("write+fdatasync", "disk", True))


def verdicts(result: dict[str, Any]) -> Iterator[str]:
    """The targets, and how far each is reached: of the best samples, and of the medians."""
    for ours, other, medium, wanted in TARGETS:
        for serializer in SERIALIZERS:
            mine, theirs = find(result, ours, serializer, medium), find(result, other, serializer, medium)
            if mine is None or theirs is None:
                continue
            ratio = best(theirs) / best(mine)
            medians = statistics.median(totals(theirs)) / statistics.median(totals(mine))
            line = f"{ours:11} against {other:17} {medium}, {serializer}: {ratio:5.1f} times as fast (medians {medians:.1f})"
            line += f", wanted {wanted:g}: " + ("reached" if ratio >= wanted else "MISSED")
            if ratio < wanted:
                for floor, place, for_syncs in FLOORS:
                    least = find(result, floor, serializer, place)
                    if least is not None and for_syncs == (ours == "log always"):
                        line += f"; {floor} would be {best(theirs) / best(least):.1f}"
            yield line
    for serializer in SERIALIZERS:
        mine = find(result, "log always", serializer, "disk")
        least = find(result, "write+fdatasync", serializer, "disk")
        if mine is not None and least is not None:
            over = statistics.median(totals(mine)) / statistics.median(totals(least))
            yield f"log always takes {best(mine) / best(least):.2f} times (medians {over:.2f}) a bare write and fdatasync, disk, {serializer}"


def plot(result: dict[str, Any], path: Path) -> None:
    """Best samples as bars, all samples as dots."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    media = [medium for medium in MEDIA if engines(result, medium)]
    rows = [(medium, engine) for medium in media for engine in engines(result, medium)]
    figure, axes = pyplot.subplots(figsize=(10, 0.34 * len(rows) + 1.8), layout="constrained")
    for at, (medium, engine) in enumerate(rows):
        for shift, serializer, colour in ((-0.19, "java", "#4c72b0"), (0.19, "kryo", "#dd8452")):
            case = find(result, engine, serializer, medium) or find(result, engine, "-", medium)
            if case is None:
                continue
            label = {"java": "Java", "kryo": "Kryo"}[serializer] + " serialiser" if at == 0 else None
            axes.barh(at + shift, best(case), 0.36, color=colour, label=label)
            axes.plot(totals(case), [at + shift] * len(case["samples_ns"]), "k|", markersize=5, alpha=0.35)
    axes.set_yticks(range(len(rows)), [f"{engine}, {medium}" for medium, engine in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(
        f"milliseconds for {result['records']} workers: persist, read, remove (bars: best; ticks: all samples)"
    )
    axes.set_title(f"Spark {result['spark']}'s recovery engines and ours, in one JVM")
    axes.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run, or show a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark-python", default=".venvs/spark/bin/python", help="an interpreter with PySpark")
    parser.add_argument("--library", type=Path, help="where the jar and the library are")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=20, help="rounds that are not counted")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument(
        "--slow-every", type=int, default=3, help="in which rounds those take part that wait for a disk or a server"
    )
    parser.add_argument("--only", default="", help="a pattern for ENGINE/SERIALISER/MEDIUM; others are left out")
    parser.add_argument("--disk", default=str(ROOT), help="a directory on the disk to measure")
    parser.add_argument("--ram", default="/dev/shm", help="a directory on a RAM disk")
    parser.add_argument("--no-zookeeper", action="store_true")
    parser.add_argument("--record", default="", help="where to keep the samples")
    parser.add_argument("--show", type=Path, help="run nothing, show this record")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if shutil.which("javac") is None and options.show is None:
        raise SystemExit("no javac; Debian: apt-get install default-jdk-headless")
    result = json.loads(options.show.read_text()) if options.show else run(options)
    print("\n".join([*table(result), "", *verdicts(result)]))
    if options.record:
        Path(options.record).write_text(
            json.dumps(result, separators=(",", ":")).replace('{"engine"', '\n{"engine"') + "\n"
        )
    if options.plot:
        plot(result, options.plot)


if __name__ == "__main__":
    main()
