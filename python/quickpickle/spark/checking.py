"""Which of a session's processes pickle with quickpickle, asked of themselves.

A probe (``probe.py``) runs on the driver, in tasks, in a worker that analyses a table function and in
``foreachBatch``. Each loads what the others have pickled, by the serialiser it has and by plain pickle. Left to others:
what a process says of itself (``patching.parts``). What must stay true: looking changes nothing, and a kind of process
that could not be looked at is said to be so, not left out.
"""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from quickpickle.spark.patching import OURS, PENDING

__all__ = ["Process", "Report", "check"]

_HEADER: Final = ("process", "covered", "quickpickle", "PySpark", "Python", "where", "self-test")


@dataclass(frozen=True)
class Process:
    """One process as it was found."""

    kind: str
    """``driver``, ``task``, ``planner`` (which analyses table functions and data sources) or ``foreachBatch``."""
    host: str
    pid: int
    executable: str
    python: str
    pyspark: str
    quickpickle: str | None
    """The version it has loaded, None if it has not."""
    parts: dict[str, str]
    """Each function of PySpark that is replaced in this version, and by whom, or why not."""
    problems: tuple[str, ...] = ()
    """What went wrong when it loaded what others had pickled, or others what it had."""

    @property
    def ours(self) -> list[str]:
        """The functions of PySpark that are ours there."""
        return [name for name, state in self.parts.items() if state == OURS]

    @property
    def covered(self) -> bool:
        """Whether PySpark pickles with quickpickle there: all parts that are known and imported are ours."""
        return bool(self.ours) and all(state in (OURS, PENDING) for state in self.parts.values())


@dataclass
class Report:
    """What :func:`check` found. Its text is a table."""

    processes: list[Process] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Kinds of processes that could not be looked at, and why."""

    @property
    def ok(self) -> bool:
        """Whether every process was looked at, is covered and passed the self-test."""
        return not self.failed and bool(self.processes) and all(p.covered and not p.problems for p in self.processes)

    def as_dict(self) -> dict[str, Any]:
        """The same as a dict for JSON."""
        return {"ok": self.ok, **asdict(self)}

    def complaints(self) -> list[str]:
        """A sentence on everything that is not as it should be."""
        told = []
        for process in self.processes:
            where = f"{process.kind} (process {process.pid} on {process.host}, {process.executable})"
            if not process.ours:
                told.append(f"{where} runs without quickpickle")
            elif not process.covered:
                stock = [f"{name}: {why}" for name, why in process.parts.items() if why not in (OURS, PENDING)]
                told.append(f"{where} has parts of PySpark's own: {'; '.join(stock)}")
            told += [f"{where}: {problem}" for problem in process.problems]
        told += [f"{kind} could not be looked at: {why}" for kind, why in self.failed.items()]
        return list(dict.fromkeys(told))

    def rows(self) -> list[tuple[str, ...]]:
        """The table's rows."""
        rows: list[tuple[str, ...]] = []
        for p in self.processes:
            share = f"{len(p.ours)} of {len(p.parts)} parts" if p.parts else "no"
            test = "passed" if not p.problems else f"{len(p.problems)} failures"
            rows.append((p.kind, share, p.quickpickle or "-", p.pyspark, p.python, f"{p.host}:{p.pid}", test))
        rows += [(kind, "unknown", "-", "-", "-", "-", "not run") for kind in self.failed]
        return rows

    def __str__(self) -> str:
        rows = [_HEADER, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *(f"! {text}" for text in self.complaints())])


def check(spark: Any, *, tasks: int | None = None, streaming: bool = True, seconds: float = 60.0) -> Report:
    """Ask the driver and each kind of worker of a session whether PySpark pickles with quickpickle there.

    spark: a session, classic or of Spark Connect.
    tasks: how many tasks to look at; by default two for each slot of the session.
    streaming: also run a small streaming query, to look at what runs ``foreachBatch``.
    seconds: how long to wait for that.

    Warns with a ``RuntimeWarning`` where something is not covered or fails the self-test, and returns what was found.
    """
    probe = _probe()
    report = Report()
    here = [probe["packed"](True), probe["packed"](False)]
    _add(report, probe, "driver", lambda: [probe["look"]("driver", here)])
    _add(report, probe, "task", lambda: probe["in_tasks"](spark, tasks or _slots(spark), here))
    _add(report, probe, "planner", lambda: probe["in_planner"](spark, here))
    if streaming:
        view = f"quickpickle_check_{uuid.uuid4().hex}"
        _add(report, probe, "foreachBatch", lambda: probe["in_foreach_batch"](spark, view, seconds, here))
    for text in report.complaints():
        warnings.warn(f"quickpickle: {text}", RuntimeWarning, stacklevel=2)
    return report


def _probe() -> dict[str, Any]:
    """The probe's names, in a module that cannot be imported, so that they travel by value."""
    scope: dict[str, Any] = {"__name__": "quickpickle_probe"}
    path = Path(__file__).with_name("probe.py")
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope


def _slots(spark: Any) -> int:
    try:
        return 2 * int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return 4


def _add(report: Report, probe: dict[str, Any], kind: str, look: Callable[[], list[str]]) -> None:
    try:
        texts = look()
        if not texts:
            raise RuntimeError("it did not answer in time")
    except Exception as error:
        report.failed[kind] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        return
    seen = {(process.host, process.pid, process.kind) for process in report.processes}
    for text in texts:
        found = json.loads(text)
        # What it has pickled, loaded here.
        problems = (
            *found.pop("problems"),
            *(f"on the driver: {text}" for text in probe["problems_of"](found.pop("sent"))),
        )
        if (found["host"], found["pid"], found["kind"]) not in seen:
            seen.add((found["host"], found["pid"], found["kind"]))
            report.processes.append(Process(**found, problems=problems))
