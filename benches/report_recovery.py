"""The recovery log's raw record to tables and a plot: cost of opening from a thousand to a million records.

    cargo bench -p quickpickle-recovery --bench scale -- --dir DISK --dir RAM --record benches/record/recovery-scale.json
    python -m benches.report_recovery [FILE] [--plot OUT.png]

The plot has one panel for each file system: time against records, both axes logarithmic, with exact proportion as a
dotted line, and beside each curve what bounds it: reading the same files, and reading and checksumming them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]


RATES = ("open", "read_only", "read_and_checksum", "least")


def sizes(results: list[Row]) -> dict[str, dict[str, list[Row]]]:
    """Return the rows of the opening benchmark by file system and kind of record."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in results:
        if "records" in row:
            found[row["file_system"]][row["what"]].append(row)
    return found


def table(results: list[Row]) -> str:
    """Return Markdown: nanoseconds a record, growth from size to size, and rates."""
    out = [
        "| file system | records of | records | open ms | ns/record | growth | log GB/s | read GB/s | read + crc GB/s | crc + hash table GB/s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for system, kinds in sizes(results).items():
        for rows in kinds.values():
            before = None
            for row in rows:
                each = row["open"]["best"] / row["records"]
                growth = "" if before is None else f"{each / before - 1:+.0%}"
                before = each
                rates = (f"{row['bytes'] / row[key]['best']:.2f}" for key in RATES)
                out.append(
                    f"| {system} | {row['bytes'] // row['records']} bytes | {row['records']:,} "
                    f"| {row['open']['best'] / 1e6:.2f} | {each:.0f} | {growth} | {' | '.join(rates)} |"
                )
    return "\n".join(out)


def plot(results: list[Row], path: Path) -> None:
    """Draw it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = sizes(results)
    figure, axes = pyplot.subplots(1, len(found), figsize=(6.5 * len(found), 5), constrained_layout=True, squeeze=False)
    for axis, (system, kinds) in zip(axes[0], found.items(), strict=True):
        for color, rows in zip(("tab:blue", "tab:orange"), kinds.values(), strict=False):
            records = [row["records"] for row in rows]
            label = f"{rows[-1]['bytes'] // rows[-1]['records']} bytes a record"

            def seconds(key: str, rows: list[Row] = rows) -> list[float]:
                return [row[key]["best"] / 1e9 for row in rows]

            axis.loglog(records, seconds("open"), "o-", color=color, label=f"open, {label}")
            axis.loglog(
                records, seconds("read_and_checksum"), "--", color=color, label=f"only read and checksum, {label}"
            )
            first = seconds("open")[0] / records[0]
            axis.loglog(
                records, [first * n for n in records], ":", color=color, label="in exact proportion to the first"
            )
        axis.set_title(f"opening a log on {system}")
        axis.set_xlabel("records")
        axis.set_ylabel("seconds")
        axis.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=HERE / "record" / "recovery-scale.json")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    results = json.loads(options.file.read_text())["results"]
    print(table(results))
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
