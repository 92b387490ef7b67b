"""What no implementation can go below: the least that the interpreter takes for the same objects, beside C's time and ours.

    python -m benches.bench_floors [--seconds 1] [--only TEXT] [--record DIR]

A floor makes the objects of a workload by the fastest means that Python has, without reading or writing any pickle: for
a dump one new bytes object of that content, and for a file the bytes written or read; for a load the same objects, made
by builtins that loop in C, and freed again. C/floor is the best ratio that can be had where the objects are what costs.
"""

from __future__ import annotations

import argparse
import array
import datetime
import decimal
import itertools
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benches import data, measure, report
from benches.implementations import Implementation, get

HERE = Path(__file__).resolve().parent
Case = tuple[str, str, measure.Call, measure.Call, measure.Call]  # workload, direction, floor, ours, reference


def plain(call: Callable[[], Any]) -> measure.Call:
    """Wrap what takes no argument."""
    return (lambda _: call()), None


def small(ours: Implementation, reference: Implementation) -> Iterator[Case]:
    """A function of one argument that makes a bytes object."""
    for name, value in (("int", 5), ("1-tuple", (1,)), ("str", "abc"), ("1-dict", {"a": 1})):
        blob = reference.dumps(value)
        yield name, "dumps", (bytes.swapcase, blob), (ours.dumps, value), (reference.dumps, value)


def loads(ours: Implementation, reference: Implementation) -> Iterator[Case]:
    """Builtins that make the objects of a load."""
    made = {w.name: w.make() for w in data.WORKLOADS if w.name.startswith("1024") or w.group == "reduce"}
    made["tuple-keyed dict"] = next(w for w in data.WORKLOADS if w.name == "tuple-keyed dict").make()
    floats = array.array("d", made["1024 floats"])
    text = " ".join(made["1024 strs"])
    left, right = (list(column) for column in zip(*made["1024 tuples"], strict=True))
    size = len(made["tuple-keyed dict"])
    states = [value.__reduce__()[1][0] for value in made["100000 datetimes"]]
    numbers = [str(value) for value in made["100000 decimals"]]
    floors: dict[str, Callable[[], Any]] = {
        "1024 ints": lambda: list(range(1024)),
        "1024 floats": floats.tolist,
        "1024 strs": text.split,
        "1024 tuples": lambda: list(zip(left, right, strict=False)),
        "1024 dicts": lambda: list(map(dict, made["1024 dicts"])),
        "tuple-keyed dict": lambda: dict(zip(zip(range(size), itertools.repeat("a")), range(size), strict=False)),
        "100000 datetimes": lambda: list(map(datetime.datetime, states)),
        "100000 decimals": lambda: list(map(decimal.Decimal, numbers)),
    }
    for name, floor in floors.items():
        blob = reference.dumps(made[name])
        if floor() != reference.loads(blob):
            raise SystemExit(f"{name}: the floor makes something else")
        yield name, "loads", plain(floor), (ours.loads, blob), (reference.loads, blob)


def files(ours: Implementation, reference: Implementation, scratch: Path) -> Iterator[Case]:
    """The bytes written to a file and read from it, in the buffered pieces that a pickler writes."""
    for workload in (w for w in data.WORKLOADS if w.file):
        value = workload.make()
        blob = reference.dumps(value)
        path = scratch / "floor.pickle"
        path.write_bytes(blob)
        file = path.open("r+b")

        def write(file: Any = file, blob: bytes = blob) -> None:
            file.seek(0)
            file.write(blob)
            file.flush()

        def read(file: Any = file) -> bytes:
            file.seek(0)
            return file.read()

        def dump(m: Implementation, file: Any = file, value: Any = value) -> Callable[[], None]:
            def call() -> None:
                file.seek(0)
                m.dump(value, file)
                file.flush()

            return call

        def load(m: Implementation, file: Any = file) -> Callable[[], Any]:
            def call() -> Any:
                file.seek(0)
                return m.load(file)

            return call

        yield workload.name, "file dump", plain(write), plain(dump(ours)), plain(dump(reference))
        yield workload.name, "file load", plain(read), plain(load(ours)), plain(load(reference))
        file.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds for each pair of implementations")
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--record", default=str(HERE / "record"), help="folder for raw samples; - for none")
    options = parser.parse_args()
    ours, reference = get("quickpickle"), get("pickle")
    rows = []
    print("| workload | direction | floor | ours | C | C/ours | C/floor |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        cases = itertools.chain(small(ours, reference), loads(ours, reference), files(ours, reference, Path(scratch)))
        for name, direction, floor, mine, theirs in cases:
            if options.only not in name:
                continue
            floor_ns, _, _ = measure.interleave(floor, mine, options.seconds)
            ours_ns, reference_ns, loops = measure.interleave(mine, theirs, options.seconds)
            least, fast, slow = min(floor_ns), min(ours_ns), min(reference_ns)
            cells = [
                name,
                direction,
                *map(report.nice, (least, fast, slow)),
                f"{slow / fast:.2f}",
                f"{slow / least:.2f}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
            rows.append(
                {
                    "workload": name,
                    "direction": direction,
                    "floor_ns": floor_ns,
                    "ours_ns": ours_ns,
                    "reference_ns": reference_ns,
                    "loops": loops,
                }
            )
    if options.record != "-":
        machine = measure.machine()
        kind = "debian" if machine["debian_python"] else "pyenv"
        name = re.sub(r"[^a-z0-9.-]", "", f"floors-{kind}-{machine['python']}.json")
        result = {"machine": machine, "quickpickle": ours.version, "rows": rows}
        (Path(options.record) / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
