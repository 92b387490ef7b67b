"""Raw results to tables and a plot.

    python -m benches.report [FILE...] [--plot OUT.png]

Ratios are reference/ours, of minima: above 1 we are faster. Rows that miss their target or lose are marked, and losses
are listed on their own, so that nobody has to look for them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

from benches import data

HERE = Path(__file__).resolve().parent
NOISE = 0.03  # two runs of one and the same implementation differ by as much
Row = dict[str, Any]


def ratio(row: Row) -> float:
    """Return reference/ours of the minima."""
    return float(min(row["reference_ns"]) / min(row["ours_ns"]))


def nice(ns: float) -> str:
    """Write a duration with three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def line(row: Row) -> str:
    """Write one result as it comes."""
    text = (
        f"{row['workload']:<26}{row['direction']:<13}{nice(min(row['ours_ns'])):>10}"
        f"{nice(min(row['reference_ns'])):>10}{ratio(row):>8.2f}x"
    )
    if "ours_peak" in row:
        text += f"   peak {row['ours_peak'] / 1e6:9.2f} MB, C {row['reference_peak'] / 1e6:9.2f} MB"
    return text


def verdict(row: Row) -> str:
    """Say whether a row meets its own target."""
    wanted = data.target(row["workload"], row["group"], row["direction"])
    if wanted is None:
        return ""
    got = ratio(row)
    return f">= {wanted:g}" if got >= wanted - NOISE * (wanted <= 1) else f">= {wanted:g} MISSED"


def means(result: Row) -> dict[str, tuple[float, float]]:
    """Return each direction's geometric mean and its target on this interpreter."""
    debian = result["machine"]["debian_python"]
    out = {}
    for direction, target in data.MEANS.items():
        groups = data.GEOMETRIC_MEAN_GROUPS
        ratios = [ratio(r) for r in result["rows"] if r["direction"] == direction and r["group"] in groups]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            out[direction] = mean, target.debian if debian else target.pyenv
    return out


def tables(result: Row) -> str:
    """Return Markdown: every row, the means, memory, the collector, and where we lose."""
    info = result["machine"]
    out = [
        f"CPython {info['python']} ({'Debian' if info['debian_python'] else 'own build'}, {info['python_compiler']}),"
        f" {info['cpu']}, {info['cores']} cores, {result['date'][:10]}; {result['ours']['name']} {result['ours']['version']}",
        "",
        "| workload | direction | ours min | ours median | C min | C median | C/ours | target |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in result["rows"]:
        mine, theirs = row["ours_ns"], row["reference_ns"]
        out.append(
            f"| {row['workload']} | {row['direction']} | {nice(min(mine))} | {nice(statistics.median(mine))} "
            f"| {nice(min(theirs))} | {nice(statistics.median(theirs))} | {ratio(row):.2f} | {verdict(row)} |"
        )
    out += ["", "| geometric mean | C/ours | target |", "|---|---:|---|"]
    for direction, (mean, wanted) in means(result).items():
        out.append(f"| {direction} | {mean:.2f} | >= {wanted:g}{'' if mean >= wanted else ' MISSED'} |")
    with_peak = [r for r in result["rows"] if "ours_peak" in r]
    if with_peak:
        out += ["", "| peak memory | direction | ours MB | C MB | pickle MB |", "|---|---|---:|---:|---:|"]
        for row in with_peak:
            out.append(
                f"| {row['workload']} | {row['direction']} | {row['ours_peak'] / 1e6:.2f} "
                f"| {row['reference_peak'] / 1e6:.2f} | {row['bytes'] / 1e6:.2f} |"
            )
    if result.get("collector"):
        out += ["", "| loads of 360,000 small containers | collector on | off | on/off |", "|---|---:|---:|---:|"]
        for who in ("ours", "reference"):
            on, off = (min(result["collector"][state][f"{who}_ns"]) for state in ("on", "off"))
            out.append(f"| {who} | {nice(on)} | {nice(off)} | {on / off:.2f} |")
    out += ["", *losses(result)]
    return "\n".join(out)


def losses(result: Row) -> list[str]:
    """List what is slower than the reference, misses a target, or takes more memory."""
    found = []
    for row in result["rows"]:
        name = f"{row['workload']}, {row['direction']}"
        if ratio(row) < 1 + NOISE:
            word = "slower" if ratio(row) < 1 - NOISE else "level"
            found.append(f"- {word}: {name}: {ratio(row):.2f} {verdict(row)}")
        elif "MISSED" in verdict(row):
            found.append(f"- short of its target: {name}: {ratio(row):.2f} {verdict(row)}")
        # Pages and pools make small differences meaningless; 2% and 256 KiB on top are noise.
        if "ours_peak" in row and row["ours_peak"] > 1.02 * row["reference_peak"] + (1 << 18):
            found.append(
                f"- more memory: {name}: {row['ours_peak'] / 1e6:.2f} MB, C {row['reference_peak'] / 1e6:.2f} MB"
            )
    return ["Where we lose:", *(found or ["- nowhere in this run"])]


def plot(results: list[Row], path: Path) -> None:
    """Draw the ratios of every workload, a bar for each run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    directions = ["dumps", "loads", "file dump", "file load"]
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 9), constrained_layout=True)
    for axis, pair in zip(axes, (directions[::2], directions[1::2]), strict=True):
        labels: list[tuple[str, str]] = []
        for result in results:
            labels += [
                (r["workload"], r["direction"])
                for r in result["rows"]
                if r["direction"] in pair and (r["workload"], r["direction"]) not in labels
            ]
        height = 0.8 / len(results)
        for i, result in enumerate(results):
            rows = {(r["workload"], r["direction"]): ratio(r) for r in result["rows"]}
            places = [j + (i - (len(results) - 1) / 2) * height for j in range(len(labels))]
            info = result["machine"]
            label = f"CPython {info['python']}{' (Debian)' if info['debian_python'] else ''}"
            bars = axis.barh(places, [rows.get(name, 0) for name in labels], height, label=label)
            axis.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(range(len(labels)), [w if d in ("dumps", "loads") else f"{w} ({d})" for w, d in labels])
        axis.invert_yaxis()
        axis.set_xlabel("times as fast as C (minima)")
        axis.set_title(" and ".join(pair))
    axes[0].legend(loc="lower right")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print tables of recorded runs and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="recorded runs; all of benches/record/ by default")
    parser.add_argument("--plot", type=Path, help="write a plot")
    options = parser.parse_args()
    files = options.files or sorted((HERE / "record").glob("pickle-*.json"))
    results = [json.loads(f.read_text()) for f in files]
    print("\n\n".join(tables(r) for r in results))
    if options.plot and results:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
