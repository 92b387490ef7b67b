"""Run the demo: ``make demo``, or ``python -m demo`` in the folder examples.

Prints one table; exits with an error if the two modules disagree about a single byte.
"""

from __future__ import annotations

import operator
import pickle
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import quickpickle
from demo import data
from demo.measure import Result, Times, compare, compare_out_of_band


def results() -> Iterator[tuple[str, Result]]:
    """Each shape of data, measured; the slow work happens between the items."""

    def frames_equal(left: Any, right: Any) -> bool:
        return bool(left.equals(right)) and list(left.dtypes) == list(right.dtypes)

    def arrays_equal(left: Any, right: Any) -> bool:
        return bool(np.array_equal(left, right)) and left.dtype == right.dtype

    jobs: list[tuple[str, Any, Callable[[Any, Any], bool]]] = [
        ("orders: dicts", data.order_dicts(), operator.eq),
        ("orders: dataclass instances", data.order_instances(), operator.eq),
        ("orders: pandas DataFrame", data.order_table(), frames_equal),
        ("orders: NumPy array", data.order_numbers(), arrays_equal),
        ("readings: tuples with datetimes", data.readings(), operator.eq),
    ]
    for name, obj, same in jobs:
        yield name, compare(pickle, quickpickle, obj, same)
    yield (
        "orders: NumPy array, out of band",
        compare_out_of_band(pickle, quickpickle, data.order_numbers(), arrays_equal),
    )


def duration(times: Times) -> str:
    """Best and median, in milliseconds or, where that reads badly, microseconds."""
    scale, unit = (1e3, "ms") if times.best >= 1e-3 else (1e6, "µs")
    return f"{times.best * scale:.2f} ({times.median * scale:.2f}) {unit}"


def processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def main() -> None:
    """Measure, and print the table."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    table = Table(
        title="pickle and quickpickle on the same objects: best (median) time of a call",
        caption="Ratios compare best times. Bytes were equal for protocols 0 to 5, and each module "
        "read what the other wrote.",
    )
    table.add_column("data", no_wrap=True)
    table.add_column("pickle size", justify="right")
    for operation in ("dumps", "loads"):
        table.add_column(f"{operation}: pickle", justify="right")
        table.add_column("quickpickle", justify="right")
        table.add_column("ratio", justify="right", style="bold")
    for name, result in results():
        row = [name, f"{result.size:,} B"]
        for reference, ours in (result.dumps, result.loads):
            row += [duration(reference), duration(ours), f"{reference.best / ours.best:.1f}x"]
        table.add_row(*row)
        if console.is_terminal:
            console.print(f"measured {name}", style="dim")
    console.print(
        f"quickpickle {quickpickle.__version__}, {platform.python_implementation()} "
        f"{platform.python_version()}, {processor()}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
