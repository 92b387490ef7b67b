"""dumps, loads, dump and load of every workload, ours and the C implementation's, interleaved in one process.

    python -m benches.bench_pickle [--seconds 2] [--only TEXT] [--no-memory] [--record DIR]

Every answer is checked before it is timed: the bytes must be the reference's, and what we load must pickle to the same
bytes as what the reference loads. Raw samples go to benches/record/.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import io
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benches import data, measure, report
from benches.implementations import Implementation, get

HERE = Path(__file__).resolve().parent
Calls = tuple[str, measure.Call, measure.Call]


def check(ours: Implementation, reference: Implementation, workload: data.Workload, value: Any) -> bytes:
    """Return the pickle after making sure that both write it and that both read it to the same thing."""
    blob = reference.dumps(value)
    if ours.dumps(value) != blob:
        raise SystemExit(f"{workload.name}: the bytes differ from the reference's")
    if pickle.dumps(ours.loads(blob)) != pickle.dumps(reference.loads(blob)):
        raise SystemExit(f"{workload.name}: what is loaded differs from the reference's")
    file = io.BytesIO()
    ours.dump(value, file)
    if file.getvalue() != blob:
        raise SystemExit(f"{workload.name}: dump() writes other bytes than dumps()")
    return blob


def plain(call: Callable[[], Any]) -> measure.Call:
    """Wrap what takes no argument; only for calls of microseconds and more."""
    return (lambda _: call()), None


def calls(
    ours: Implementation, reference: Implementation, workload: data.Workload, value: Any, scratch: Path
) -> Iterator[Calls]:
    """Yield what to time: a direction, our call and the reference's."""
    blob = check(ours, reference, workload, value)
    if workload.out_of_band:
        yield from _out_of_band(ours, reference, value)
        return
    if workload.name == "pyperformance pickle":
        parts = [(v, reference.dumps(v)) for v in value]
        (a, x), (b, y), (c, z) = parts

        def dumps(m: Implementation) -> Callable[[], Any]:
            f = m.dumps
            return lambda: (f(a), f(b), f(c))

        def loads(m: Implementation) -> Callable[[], Any]:
            f = m.loads
            return lambda: (f(x), f(y), f(z))

        yield "dumps", plain(dumps(ours)), plain(dumps(reference))
        yield "loads", plain(loads(ours)), plain(loads(reference))
        return
    yield "dumps", (ours.dumps, value), (reference.dumps, value)
    yield "loads", (ours.loads, blob), (reference.loads, blob)
    if workload.file:
        yield from _files(ours, reference, value, blob, scratch)


def _out_of_band(ours: Implementation, reference: Implementation, value: Any) -> Iterator[Calls]:
    def dumps(m: Implementation) -> Callable[[], Any]:
        f = m.dumps

        def call() -> Any:
            buffers: list[Any] = []
            return f(value, 5, buffer_callback=buffers.append), buffers

        return call

    blob, buffers = dumps(reference)()
    mine, my_buffers = dumps(ours)()
    if mine != blob or [bytes(b.raw()) for b in my_buffers] != [bytes(b.raw()) for b in buffers]:
        raise SystemExit("out of band: the bytes differ from the reference's")

    def loads(m: Implementation) -> Callable[[], Any]:
        f = m.loads
        return lambda: f(blob, buffers=buffers)

    yield "dumps", plain(dumps(ours)), plain(dumps(reference))
    yield "loads", plain(loads(ours)), plain(loads(reference))


def _files(ours: Implementation, reference: Implementation, value: Any, blob: bytes, scratch: Path) -> Iterator[Calls]:
    """Yield dump and load through a real file and through BytesIO.

    The file is opened once and rewound for each call: making, emptying and closing files takes the file system as long
    for both, several times what the smaller workloads take to be pickled.
    """
    path = scratch / "file.pickle"
    path.touch()
    file = path.open("r+b")

    def dump(m: Implementation) -> Callable[[], Any]:
        f = m.dump

        def call() -> None:
            file.seek(0)
            f(value, file)
            file.flush()

        return call

    def load(m: Implementation) -> Callable[[], Any]:
        f = m.load

        def call() -> Any:
            file.seek(0)
            return f(file)

        return call

    def dump_memory(m: Implementation) -> Callable[[], Any]:
        f = m.dump
        return lambda: f(value, io.BytesIO())

    def load_memory(m: Implementation) -> Callable[[], Any]:
        f = m.load
        return lambda: f(io.BytesIO(blob))

    for module in (reference, ours):
        dump(module)()
        if path.read_bytes() != blob:
            raise SystemExit("a real file holds other bytes than dumps() gives")
        if pickle.dumps(load(module)()) != pickle.dumps(reference.loads(blob)):
            raise SystemExit("load() gives something else than loads()")
    yield "file dump", plain(dump(ours)), plain(dump(reference))
    yield "file load", plain(load(ours)), plain(load(reference))
    yield "BytesIO dump", plain(dump_memory(ours)), plain(dump_memory(reference))
    yield "BytesIO load", plain(load_memory(ours)), plain(load_memory(reference))


def collector(ours: Implementation, reference: Implementation, seconds: float) -> dict[str, Any]:
    """Time loads of many small containers with the cyclic collector on and off."""
    blob = pickle.dumps(data.small_containers())
    out: dict[str, Any] = {}
    for state in ("on", "off"):
        (gc.enable if state == "on" else gc.disable)()
        try:
            mine, theirs, loops = measure.interleave((ours.loads, blob), (reference.loads, blob), seconds)
        finally:
            gc.enable()
        out[state] = {"ours_ns": mine, "reference_ns": theirs, "loops": loops}
    return out


def main() -> None:
    """Measure, record and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default="quickpickle")
    parser.add_argument("--reference", default="pickle")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each workload and direction")
    parser.add_argument("--only", default="", help="workloads whose name holds this text")
    parser.add_argument("--no-memory", action="store_true", help="leave peak memory out")
    parser.add_argument("--record", type=Path, default=HERE / "record", help="where raw results go; - for nowhere")
    options = parser.parse_args()
    ours, reference = get(options.ours), get(options.reference)
    chosen = [w for w in data.WORKLOADS if options.only in w.name]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        for workload in chosen:
            try:
                value = workload.make()
            except ImportError as exc:
                print(f"left out {workload.name}: {exc}")
                continue
            for direction, mine, theirs in calls(ours, reference, workload, value, scratch):
                a, b, loops = measure.interleave(mine, theirs, options.seconds)
                row: dict[str, Any] = {
                    "workload": workload.name,
                    "group": workload.group,
                    "direction": direction,
                    "bytes": len(reference.dumps(value)),
                    "loops": loops,
                    "ours_ns": a,
                    "reference_ns": b,
                }
                if not options.no_memory and direction in ("dumps", "loads", "file dump", "file load"):
                    for key, module in (("ours_peak", ours), ("reference_peak", reference)):
                        row[key] = measure.peak_memory(module.name, workload.name, direction, scratch / "peak")
                rows.append(row)
                print(report.line(row), flush=True)
        gc_cost = None
        if options.only in "collector":
            gc_cost = collector(ours, reference, options.seconds)
    result = {
        "benchmark": "pickle",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": measure.machine(),
        "ours": {"name": ours.name, "version": ours.version},
        "reference": {"name": reference.name, "version": reference.version},
        "seconds": options.seconds,
        "rows": rows,
        "collector": gc_cost,
    }
    print()
    print(report.tables(result))
    if str(options.record) != "-":
        info = result["machine"]
        slug = re.sub(r"[^a-z0-9]+", "-", info["cpu"].lower()).strip("-")[:30]
        kind = "debian" if info["debian_python"] else "pyenv"
        path = options.record / f"pickle-{kind}{info['python']}-{slug}-{result['date'][:10]}.json"
        measure.save(result, path)
        print(f"raw samples: {path.name}")


if __name__ == "__main__":
    main()
