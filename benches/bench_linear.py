"""Does cost grow with the number of records and no faster? A thousand to ten million records, ten times more each step.

    python -m benches.bench_linear [--most 10000000] [--plot OUT.png] [--record DIR]

A record is ``(i, "name i")``. Each size runs in a process of its own, for ours and for C; the figure is nanoseconds a
record at the minimum of several rounds. From one size to the next it may grow by 15%: the caches of the machine are
left behind on the way, which is why C's own curve is drawn beside ours.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches import measure

HERE = Path(__file__).resolve().parent
CHILD = """
import gc, json, sys, time
from benches import implementations
module, n = implementations.get(sys.argv[1]), int(sys.argv[2])
gc.disable()
records = [(i, f"name {i}") for i in range(n)]
gc.enable()
gc.freeze()
rounds = max(3, min(200, 2_000_000 // n))
def times(call):
    out = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        result = call()
        out.append(time.perf_counter_ns() - start)
        del result
    return out
dumps = times(lambda: module.dumps(records))
blob = module.dumps(records)
del records
gc.unfreeze()
gc.collect()
loads = times(lambda: module.loads(blob))
loaded = module.loads(blob)
assert len(loaded) == n and loaded[-1] == (n - 1, f"name {n - 1}")
print(json.dumps({"dumps_ns": dumps, "loads_ns": loads, "bytes": len(blob)}))
"""


def run(implementation: str, n: int) -> dict[str, Any]:
    """Measure one size in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, implementation, str(n)],
        cwd=measure.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def per_record(result: dict[str, Any], who: str, direction: str) -> list[tuple[int, float]]:
    """Return (records, nanoseconds a record at the minimum) for each size."""
    return [(size["records"], min(size[who][f"{direction}_ns"]) / size["records"]) for size in result["sizes"]]


def table(result: dict[str, Any]) -> str:
    """Return Markdown with the growth from each size to the next."""
    out = ["| records | direction | ours ns/record | growth | C ns/record | growth |", "|---:|---|---:|---:|---:|---:|"]
    for direction in ("dumps", "loads"):
        mine, theirs = (per_record(result, who, direction) for who in ("ours", "reference"))
        for i, ((n, a), (_, b)) in enumerate(zip(mine, theirs, strict=True)):
            grown = [f"{x / y[i - 1][1] - 1:+.0%}" if i else "" for x, y in ((a, mine), (b, theirs))]
            mark = " over 15%" if i and a / mine[i - 1][1] > 1.15 else ""
            out.append(f"| {n:,} | {direction} | {a:.1f} | {grown[0]}{mark} | {b:.1f} | {grown[1]} |")
    return "\n".join(out)


def plot(result: dict[str, Any], path: Path) -> None:
    """Draw time against records, both axes logarithmic, with exact proportion as a dotted line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
    for axis, direction in zip(axes, ("dumps", "loads"), strict=True):
        for who, label in (("ours", "quickpickle"), ("reference", "C pickle")):
            points = per_record(result, who, direction)
            axis.loglog([n for n, _ in points], [n * t / 1e9 for n, t in points], "o-", label=label)
        n, t = per_record(result, "ours", direction)[0]
        ends = [p[0] for p in per_record(result, "ours", direction)]
        axis.loglog(ends, [e * t / 1e9 for e in ends], ":", color="gray", label="in exact proportion")
        axis.set_title(f"{direction}, CPython {result['machine']['python']}")
        axis.set_xlabel("records")
        axis.set_ylabel("seconds")
        axis.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, record, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default="quickpickle")
    parser.add_argument("--reference", default="pickle")
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--record", type=Path, default=HERE / "record")
    options = parser.parse_args()
    sizes = []
    n = 1_000
    while n <= options.most:
        sizes.append({"records": n, "ours": run(options.ours, n), "reference": run(options.reference, n)})
        print(f"{n:,} records done", flush=True)
        n *= 10
    result = {
        "benchmark": "linear",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": measure.machine(),
        "sizes": sizes,
    }
    print(table(result))
    info = result["machine"]
    kind = "debian" if info["debian_python"] else "pyenv"
    measure.save(result, options.record / f"linear-{kind}{info['python']}-{result['date'][:10]}.json")
    if options.plot:
        plot(result, options.plot)


if __name__ == "__main__":
    main()
