"""Recovery stores from Python: persist 1,000 workers, read them all, remove them all; beside what people use instead.

    python -m benches.bench_recovery [--dir DIR]... [--rounds 10] [--record FILE]

Each kind of store gets the same objects by the same serialiser, quickpickle's pickle. Kinds take turns within a round, so
that a busy moment of the machine hits all of them. Those that sync each change are one group, those that leave it to the
operating system the other; only within a group do figures compare. Every answer is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import shelve
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import quickpickle
from benches import measure
from quickpickle import recovery

HERE = Path(__file__).resolve().parent
COUNT = 1000
PARTS = ("persist", "read", "remove")


def worker(number: int) -> dict[str, Any]:
    """Return what a coordinator knows of a worker."""
    return {
        "id": f"worker-20240229123000-10.0.0.{number % 250}-{number}",
        "host": f"10.0.0.{number % 250}",
        "port": 40_000 + number,
        "cores": 16,
        "memory": 64 << 30,
        "address": f"http://10.0.0.{number % 250}:8081",
        "resources": {"gpu": ["0", "1"]},
        "state": "ALIVE",
        "executors": [],
        "heartbeat": 1_709_209_800.25 + number,
    }


class Kept(Protocol):
    """What every kind of store can do."""

    def persist(self, name: str, value: Any) -> None: ...

    def read(self) -> dict[str, Any]: ...

    def remove(self, name: str) -> None: ...

    def close(self) -> None: ...


class Ours:
    """A recovery store."""

    def __init__(self, folder: str, scheme: str, sync: str) -> None:
        self.store = recovery.open(f"{scheme}:{folder}/store", sync=sync)
        self.persist, self.remove, self.close = self.store.persist, self.store.unpersist, self.store.close

    def read(self) -> dict[str, Any]:
        return dict(self.store.items("worker_"))


class Sqlite:
    """A table of names and pickles, each change a transaction."""

    def __init__(self, folder: str, synchronous: str) -> None:
        self.db = sqlite3.connect(f"{folder}/db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(f"PRAGMA synchronous={synchronous}")
        self.db.execute("CREATE TABLE entries (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
        self.close = self.db.close

    def persist(self, name: str, value: Any) -> None:
        self.db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (name, quickpickle.dumps(value)))

    def read(self) -> dict[str, Any]:
        rows = self.db.execute(
            "SELECT name, value FROM entries WHERE name >= 'worker_' AND name < 'worker`' ORDER BY name"
        )
        return {name: quickpickle.loads(value) for name, value in rows}

    def remove(self, name: str) -> None:
        self.db.execute("DELETE FROM entries WHERE name = ?", (name,))


class Shelf:
    """The standard library's shelve; it syncs nothing."""

    def __init__(self, folder: str) -> None:
        self.shelf = shelve.open(f"{folder}/shelf")  # noqa: SIM115 -- closed by the round
        self.close = self.shelf.close

    def persist(self, name: str, value: Any) -> None:
        self.shelf[name] = value

    def read(self) -> dict[str, Any]:
        return {name: value for name, value in self.shelf.items() if name.startswith("worker_")}

    def remove(self, name: str) -> None:
        del self.shelf[name]


class Files:
    """A pickle file for each entry as it has to be written to survive: temporary file, fsync, rename, directory fsync."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.directory = os.open(folder, os.O_RDONLY)

    def persist(self, name: str, value: Any) -> None:
        with open(f"{self.folder}/.new", "wb") as file:
            quickpickle.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{self.folder}/.new", f"{self.folder}/{name}")
        os.fsync(self.directory)

    def read(self) -> dict[str, Any]:
        found = {}
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("worker_"):
                with open(f"{self.folder}/{name}", "rb") as file:
                    found[name] = quickpickle.load(file)
        return found

    def remove(self, name: str) -> None:
        os.unlink(f"{self.folder}/{name}")
        os.fsync(self.directory)

    def close(self) -> None:
        os.close(self.directory)


KINDS: dict[str, tuple[str, Callable[[str], Kept]]] = {
    "log, always": ("synced", lambda folder: Ours(folder, "log", "always")),
    "file for each, always": ("synced", lambda folder: Ours(folder, "file", "always")),
    "sqlite3, WAL, synchronous=FULL": ("synced", lambda folder: Sqlite(folder, "FULL")),
    "pickle files, fsync and rename": ("synced", Files),
    "log, none": ("not synced", lambda folder: Ours(folder, "log", "none")),
    "log, group(10)": ("not synced", lambda folder: Ours(folder, "log", "group(10)")),
    "file for each, none": ("not synced", lambda folder: Ours(folder, "file", "none")),
    "sqlite3, WAL, synchronous=OFF": ("not synced", lambda folder: Sqlite(folder, "OFF")),
    "shelve": ("not synced", Shelf),
}


def cycle(kind: str, directory: Path, workers: dict[str, Any]) -> Iterator[int]:
    """One round in a folder of its own; nanoseconds of each part."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        store = KINDS[kind][1](folder)
        start = time.perf_counter_ns()
        for name, value in workers.items():
            store.persist(name, value)
        yield time.perf_counter_ns() - start
        start = time.perf_counter_ns()
        found = store.read()
        yield time.perf_counter_ns() - start
        assert found == workers, kind
        start = time.perf_counter_ns()
        for name in workers:
            store.remove(name)
        yield time.perf_counter_ns() - start
        assert store.read() == {}, kind
        store.close()


def table(results: list[dict[str, Any]]) -> str:
    """Return Markdown: whole cycles as best, average and deviation, parts as best, all in ms."""
    out = [
        "| file system | store | best | avg | stdev | persist | read | remove |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in results:
        whole = [sum(parts) / 1e6 for parts in zip(*(row[part] for part in PARTS), strict=True)]
        best = " | ".join(f"{min(row[part]) / 1e6:.3g}" for part in PARTS)
        deviation = statistics.stdev(whole) if len(whole) > 1 else 0.0
        out.append(
            f"| {row['file_system']} | {row['store']} | {min(whole):.3g} | {statistics.mean(whole):.3g} "
            f"| {deviation:.3g} | {best} |"
        )
    return "\n".join(out)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, action="append", help="where; once for each file system")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    workers = {f"worker_{number:04}": worker(number) for number in range(COUNT)}
    results = []
    for directory in options.dir or [Path(tempfile.gettempdir())]:
        system = subprocess.check_output(["stat", "-f", "-c", "%T", str(directory)], text=True).strip()
        rows: dict[str, dict[str, Any]] = {
            kind: {"store": kind, "group": group, "file_system": system, **{part: [] for part in PARTS}}
            for kind, (group, _) in KINDS.items()
        }
        for _ in range(options.rounds):
            for kind, row in rows.items():
                for part, taken in zip(PARTS, cycle(kind, directory, workers), strict=True):
                    row[part].append(taken)
        results += rows.values()
    print(table(results))
    if options.record:
        # How the interpreter was configured matters for pickles, not here, and names folders of the machine.
        machine = {key: value for key, value in measure.machine().items() if key != "python_configure"}
        document = {"benchmark": "recovery from Python", "machine": machine, "results": results}
        options.record.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
