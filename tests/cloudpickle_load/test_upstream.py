"""cloudpickle's own test suite passes with quickpickle in the place of cloudpickle, in all its processes.

Only in the main interpreter's environment, which has what the suite needs, and where the suite can be fetched; see
``scripts/upstream_cloudpickle.py``. Stock passes all of it, which the long tests see.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

# Looked for, not imported: distributed has tblib register reducers for every exception there is.
for needed in ("psutil", "numpy", "distributed"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}", allow_module_level=True)

SCRIPT = Path(__file__).parents[2] / "scripts" / "upstream_cloudpickle.py"

#: What differs from stock, and why.
DIFFERENCES = {
    "test_importing_multiprocessing_does_not_impact_whichmodule": (
        "asks in which module cloudpickle.dumps is: ours is a function of quickpickle's extension module, and says so"
    ),
}


def results(report: Path, *arguments: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), f"--junit={report}", *arguments], capture_output=True, text=True, timeout=3600
    )
    if not report.exists():
        pytest.skip(f"the suite cannot be fetched here: {done.stderr.strip()[-200:]}")
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}.{case.get('name')}"] = kinds.pop() if kinds else "passed"
    return found


def test_ours(tmp_path: Path) -> None:
    found = results(tmp_path / "ours.xml")
    assert sum(result == "passed" for result in found.values()) > 250
    failed = {name for name, result in found.items() if result in ("failure", "error")}
    assert {name for name in failed if name.rpartition(".")[2] not in DIFFERENCES} == set()
    # A difference that is no more is to be struck off.
    assert {name.rpartition(".")[2] for name in failed} == set(DIFFERENCES)


@pytest.mark.long
def test_stock_has_the_same_results_but_for_these(tmp_path: Path) -> None:
    stock, ours = results(tmp_path / "stock.xml", "--stock"), results(tmp_path / "ours.xml")
    different = {name for name in stock | ours if stock.get(name) != ours.get(name)}
    assert {name.rpartition(".")[2] for name in different} == set(DIFFERENCES)
