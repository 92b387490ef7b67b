"""Run the demo: ``make demo``, or ``python -m demo`` in the folder examples.

Prints three tables; exits with an error if the two modules disagree about a single byte.
"""

from __future__ import annotations

import operator
import pickle
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import quickpickle
from demo import data, shipping
from demo.measure import Result, Times, compare, compare_out_of_band


def results() -> Iterator[tuple[str, Result]]:
    """Each shape of data, measured; the slow work happens between the items."""

    def frames_equal(left: Any, right: Any) -> bool:
        return bool(left.equals(right)) and list(left.dtypes) == list(right.dtypes)

    def arrays_equal(left: Any, right: Any) -> bool:
        return bool(np.array_equal(left, right)) and left.dtype == right.dtype

    jobs: list[tuple[str, Any, Callable[[Any, Any], bool]]] = [
        ("orders, dicts", data.order_dicts(), operator.eq),
        ("orders, dataclass", data.order_instances(), operator.eq),
        ("orders, DataFrame", data.order_table(), frames_equal),
        ("orders, NumPy", data.order_numbers(), arrays_equal),
        ("readings, datetimes", data.readings(), operator.eq),
    ]
    for name, obj, same in jobs:
        yield name, compare(pickle, quickpickle, obj, same)
    yield (
        "orders, out of band",
        compare_out_of_band(pickle, quickpickle, data.order_numbers(), arrays_equal),
    )


def duration(times: Times) -> str:
    """Best and median, to three digits."""
    unit, scale = ("ms", 1e3) if times.median >= 1e-3 else ("µs", 1e6)
    return f"{times.best * scale:.3g} ({times.median * scale:.3g}) {unit}"


def comparison(title: str, rows: list[tuple[str, int, tuple[Times, Times]]]) -> Table:
    """One operation as a table that fits a terminal of 80 columns."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("data", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("pickle", justify="right", no_wrap=True)
    table.add_column("quickpickle", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", style="bold", no_wrap=True)
    for name, size, (reference, ours) in rows:
        table.add_row(name, f"{size:,}", duration(reference), duration(ours), f"{reference.best / ours.best:.1f}x")
    return table


def processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def show_shipping(console: Console) -> None:
    """A closure over a dynamic class, run in fresh processes: cloudpickle and quickpickle side by side."""
    shipped = shipping.ship(data.order_dicts()[:100])
    table = comparison(
        "a closure over an instance of a dynamic class, by value, run in a fresh process",
        [("dumps, here", shipped.size, shipped.dumps), ("loads, there", shipped.size, shipped.loads)],
    )
    table.columns[2].header = "cloudpickle"
    console.print()
    console.print(table)
    answer = ", ".join(f"{name} {value:,.6g}" for name, value in list(shipped.answer.items())[:3])
    console.print(
        f"Both wrote the same bytes. Loaded by pickle with cloudpickle and by quickpickle, in four\n"
        f"processes, the closure answered the same: {answer}."
    )


def main() -> None:
    """Measure, and print a table for each direction."""
    console = Console()
    console.print(
        f"quickpickle {quickpickle.__version__}, {platform.python_implementation()} "
        f"{platform.python_version()}, {processor()}"
    )
    dumps: list[tuple[str, int, tuple[Times, Times]]] = []
    loads: list[tuple[str, int, tuple[Times, Times]]] = []
    for name, result in results():
        console.print(f"measured: {name}", style="dim")
        dumps.append((name, result.size, result.dumps))
        loads.append((name, result.size, result.loads))
    console.print()
    console.print(comparison("dumps: best (median) time of a call", dumps))
    console.print(comparison("loads: best (median) time of a call", loads))
    console.print(
        "Ratios compare best times. For every row the bytes were equal, and each module\n"
        "read back what the other wrote; in band, that was checked for protocols 0 to 5."
    )
    show_shipping(console)


if __name__ == "__main__":
    main()
