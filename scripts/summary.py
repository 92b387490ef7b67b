"""Add up the test reports of one run: a line for each suite, then the sum.

Reads what the test runners wrote (pytest's JUnit files, cargo test's output); a report that counts
no test is an error, because a suite that ran nothing proves nothing.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple


class Count(NamedTuple):
    """How many tests of a suite ended how."""

    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        """As test runners say it."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def from_junit(path: Path) -> Count:
    """Pytest's report: errors count as failures, expected failures as skipped."""
    total = failed = skipped = 0
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        total += int(suite.attrib["tests"])
        failed += int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        skipped += int(suite.attrib["skipped"])
    return Count(total - failed - skipped, failed, skipped)


def from_cargo(path: Path) -> Count:
    """Cargo's output: one result line for each test program and each crate's examples."""
    results = re.findall(
        r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored",
        path.read_text(encoding="utf-8", errors="replace"),
        re.MULTILINE,
    )
    columns = [sum(map(int, column)) for column in zip(*results, strict=True)] or [0, 0, 0]
    return Count(*columns)


def main() -> None:
    """Print the sums of the folder named on the command line."""
    folder = Path(sys.argv[1])
    suites = {"Rust": from_cargo(folder / "cargo.log")}
    for path in sorted(folder.glob("*.xml")):
        suites[f"CPython {path.stem}"] = from_junit(path)
    for name, count in suites.items():
        print(f"    {name}: {count}")
        if count.passed + count.failed == 0:
            sys.exit(f"{name}: no test ran")
    print(Count(*(sum(column) for column in zip(*suites.values(), strict=True))))


if __name__ == "__main__":
    main()
