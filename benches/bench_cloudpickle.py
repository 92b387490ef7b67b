"""Pickling by value: ours and cloudpickle's, interleaved in one process.

    python -m benches.bench_cloudpickle [--seconds 1] [--only TEXT] [--record DIR]

What is pickled is defined in ``__main__`` of this program, or made by ``exec`` as if it were, so that it travels by
value. Loads are by ``quickpickle.cloudpickle.loads`` and by ``pickle.loads``, which is what a worker that has
cloudpickle calls. Answers are checked before anything is timed: both must write the same bytes, and what is loaded from
them must do what the original does. Ratios are of minima, cloudpickle's by ours, of processor time and of samples that
take both about as long: by the clock, and with as many calls for both, cloudpickle's samples are the ones that other
programs interrupt, and on a busy machine ratios come out several times too high. The last columns are what
``cloudpickle-rust`` 0.1.0 published of itself against cloudpickle 3.1.2 on CPython 3.14, on another machine.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import quickpickle.cloudpickle
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


class DataType:
    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


class StringType(DataType):
    pass


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def norm(self):
        return self.x * self.x + self.y * self.y


simple = lambda x: x + 1
"""


def main_names() -> dict[str, Any]:
    """Run the source as ``__main__``."""
    names: dict[str, Any] = {"__name__": "__main__", "__package__": None, "__file__": "job.py"}
    exec(compile(SOURCE, "job.py", "exec"), names)
    return names


NAMES = main_names()


def importable_string_type() -> Any:
    """An instance of a class that is pickled by reference, as pyspark.sql.types.StringType is."""
    module = type(sys)("benches_types")
    exec(SOURCE, module.__dict__)
    module.__dict__["__name__"] = "benches_types"
    for cls in (module.DataType, module.StringType):
        cls.__module__ = "benches_types"
    sys.modules["benches_types"] = module
    return module.StringType()


@dataclass(frozen=True)
class Workload:
    """What is pickled, how to check what arrives, and what the peer published (dumps, loads)."""

    name: str
    value: Any
    check: Callable[[Any], bool]
    peer: tuple[float, float] | None = None
    target: tuple[float, float] | None = None


def workloads() -> list[Workload]:
    """The rows of the table."""
    one_globals = dict(NAMES)
    lambdas = [eval(f"lambda x: x + {i}", one_globals) for i in range(1000)]
    point = NAMES["Point"]
    points = [point(i, -i) for i in range(1024)]
    return [
        Workload("lambda", NAMES["simple"], lambda f: f(2) == 3, (1.31, 1.03), (20, 3)),
        Workload(
            "closure using globals and a helper", NAMES["make_closure"](), lambda f: f(2) == 14, (1.39, 1.03), (20, 3)
        ),
        Workload(
            "1,000 distinct lambdas", lambdas, lambda fs: fs[7](1) == 8 and len(fs) == 1000, (1.49, 1.13), (20, 3)
        ),
        Workload(
            "(lambda, StringType())",
            (NAMES["simple"], importable_string_type()),
            lambda p: p[0](2) == 3 and type(p[1]).__name__ == "StringType",
            (1.31, 1.00),
            (20, 3),
        ),
        Workload(
            "closure over an instance of a dynamic class, 100-entry dict",
            (NAMES["make_udf"](), 1),
            lambda p: p[0](1) == 8,
            (1.34, 1.04),
            (12, 3),
        ),
        Workload("dynamic class", point, lambda c: c(3, 4).norm() == 25, None, (12, 3)),
        Workload(
            "1,024 instances of a dynamic class",
            points,
            lambda ps: len(ps) == 1024 and ps[-1].norm() == 2 * 1023**2 and len({type(p) for p in ps}) == 1,
            (1.48, 0.98),
            (20, 3),
        ),
        Workload("1,024 ints", list(range(1024)), lambda v: v == list(range(1024)), (1.00, 0.98), (3.5, 1.1)),
        Workload(
            "1,024 tuples", [(i % 100, i) for i in range(1024)], lambda v: v[-1] == (23, 1023), (1.00, 1.01), (3.5, 1.0)
        ),
        Workload(
            "1,024 dicts",
            [{"id": i, "name": str(i)} for i in range(1024)],
            lambda v: v[5] == {"id": 5, "name": "5"},
            (1.01, 1.01),
            (3.5, 1.0),
        ),
        Workload("one small dict", {"a": 1}, lambda v: v == {"a": 1}, None, (20, 1.0)),
        Workload(
            "10,000 timedeltas",
            [datetime.timedelta(i) for i in range(10_000)],
            lambda v: v[3].days == 3 and len(v) == 10_000,
        ),
    ]


def sample(call: tuple[Callable[[Any], Any], Any], calls: int) -> float:
    """Nanoseconds of processor time that one call takes, over several."""
    function, argument = call
    start = time.process_time_ns()
    for _ in range(calls):
        function(argument)
    return (time.process_time_ns() - start) / calls


def calls_for(call: tuple[Callable[[Any], Any], Any], nanoseconds: float = 4e6) -> int:
    """How many calls take that long."""
    calls = 1
    while sample(call, calls) * calls < nanoseconds:
        calls *= 2
    return calls


def interleave(
    first: tuple[Callable[[Any], Any], Any], second: tuple[Callable[[Any], Any], Any], seconds: float
) -> tuple[list[float], list[float], list[int]]:
    """Nanoseconds a call, sample by sample, of both, and the calls in a sample of each."""
    pair = (first, second)
    calls = [calls_for(call) for call in pair]
    samples: tuple[list[float], list[float]] = ([], [])
    end = time.process_time() + seconds
    turn = 0
    while time.process_time() < end or turn < 5:
        for which in ((0, 1), (1, 0))[turn % 2]:
            gc.collect()
            samples[which].append(sample(pair[which], calls[which]))
        turn += 1
    return samples[0], samples[1], calls


def row(workload: Workload, seconds: float) -> dict[str, Any]:
    """Check and time one workload."""
    value = workload.value
    cloudpickle.dumps(value)  # what pickling leaves behind in classes is there for both
    blob = cloudpickle.dumps(value)
    if quickpickle.cloudpickle.dumps(value) != blob:
        raise SystemExit(f"{workload.name}: the bytes differ from cloudpickle's")
    for loads in (pickle.loads, quickpickle.cloudpickle.loads):
        if not workload.check(loads(blob)):
            raise SystemExit(f"{workload.name}: what arrives is not what was sent")
    result: dict[str, Any] = {"name": workload.name, "peer": workload.peer, "target": workload.target}
    pairs = {
        "dumps": ((quickpickle.cloudpickle.dumps, value), (cloudpickle.dumps, value)),
        "loads": ((quickpickle.cloudpickle.loads, blob), (pickle.loads, blob)),
    }
    for direction, (ours, theirs) in pairs.items():
        mine, reference, calls = interleave(ours, theirs, seconds)
        result[direction] = {
            "clock": "process_time",
            "calls_a_sample": calls,
            "ours": measure.summary(mine),
            "cloudpickle": measure.summary(reference),
            "ratio": min(reference) / min(mine),
            "samples": {"ours": mine, "cloudpickle": reference},
        }
    return result


def show(result: dict[str, Any]) -> None:
    """Print one row, times in microseconds."""
    cells = []
    for at, direction in enumerate(("dumps", "loads")):
        timed = result[direction]
        peer = f"{result['peer'][at]:.2f}x" if result["peer"] else "-"
        wanted = f"{result['target'][at]:g}x" if result["target"] else "-"
        theirs, ours = timed["cloudpickle"]["min"] / 1000, timed["ours"]["min"] / 1000
        cells.append(f"{theirs:9.2f} {ours:9.2f} {timed['ratio']:6.1f}x {wanted:>6} {peer:>6}")
    print(f"{result['name'][:50]:50} |{cells[0]} |{cells[1]}", flush=True)


def main() -> None:
    """Run, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each direction of each workload")
    parser.add_argument("--only", default="", help="only workloads whose name holds this")
    parser.add_argument("--record", type=Path, help="write raw samples here")
    options = parser.parse_args()
    head = f"{'cloudpickle':>9} {'ours':>7} {'ratio':>7} {'target':>6} {'peer':>6}"
    print(f"cloudpickle {cloudpickle.__version__}, CPython {sys.version.split()[0]}; microseconds")
    print(f"{'':50} |{'dumps'.center(len(head))} |{'loads'.center(len(head))}\n{'':50} |{head} |{head}")
    results = []
    for workload in workloads():
        if options.only in workload.name:
            results.append(row(workload, options.seconds))
            show(results[-1])
    if options.record:
        options.record.mkdir(parents=True, exist_ok=True)
        name = f"cloudpickle-{'.'.join(map(str, sys.version_info[:2]))}.json"
        about = {"machine": measure.machine(), "cloudpickle": cloudpickle.__version__, "results": results}
        (options.record / name).write_text(json.dumps(about))


if __name__ == "__main__":
    main()
