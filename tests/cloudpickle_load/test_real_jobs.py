"""joblib, loky, dask's distributed, multiprocessing and concurrent.futures do the same work with us standing in.

Only where these are installed, which is the main interpreter's environment.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

# Looked for, not imported: distributed has tblib register reducers for every exception there is.
for needed in ("distributed", "joblib", "loky"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}", allow_module_level=True)

SCRIPT = Path(__file__).with_name("real_jobs.py")


@functools.cache
def outcome(mode: str) -> dict:
    done = subprocess.run([sys.executable, str(SCRIPT), mode], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("mode", ["cloudpickle", "both"])
def test_same_results(mode: str) -> None:
    stock, ours = outcome("stock"), outcome(mode)
    assert stock["workers have"] == ["cloudpickle"]
    assert ours["workers have"] == ["quickpickle"]
    assert len(ours["results"]) == 8
    assert ours["results"] == stock["results"]


def test_quickpickle_run_does_it_too() -> None:
    command = [sys.executable, "-m", "quickpickle", "run", "--children", str(SCRIPT), "stock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    ours = json.loads(done.stdout.splitlines()[-1])
    assert ours["workers have"] == ["quickpickle"]
    assert ours["results"] == outcome("stock")["results"]
