"""Timing two callables against each other in one process, and peak memory in processes of their own.

Samples of the two are interleaved and each pair's order alternates, so that whatever else the machine does falls on
both. The minimum is the figure to compare; the median and the raw samples tell how far to trust it.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_NS = 400_000
UNROLLED = 10
Call = tuple[Callable[[Any], Any], Any]  # a function and its one argument: no closure to pay for


def _run(what: Call, loops: int) -> int:
    """Time ``loops`` calls; many calls are unrolled, or the loop would be a third of the smallest ones."""
    clock = time.perf_counter_ns
    call, value = what
    if loops >= UNROLLED:
        rounds = range(loops // UNROLLED)
        start = clock()
        for _ in rounds:
            call(value), call(value), call(value), call(value), call(value)
            call(value), call(value), call(value), call(value), call(value)
        return clock() - start
    start = clock()
    for _ in range(loops):
        call(value)
    return clock() - start


def _loops(call: Call) -> int:
    """Choose how many calls make a sample long enough for the clock."""
    loops = 1
    while True:
        took = min(_run(call, loops) for _ in range(3))
        if took >= SAMPLE_NS:
            return loops
        grown = max(2 * loops, int(loops * SAMPLE_NS / max(took, 1)))
        loops = grown if grown < UNROLLED else -(-grown // UNROLLED) * UNROLLED


def interleave(first: Call, second: Call, seconds: float) -> tuple[list[float], list[float], int]:
    """Return nanoseconds a call, sample by sample, of both, and the calls in a sample."""
    loops = max(_loops(first), _loops(second))
    samples: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < end or turn < 10:
        for which in ((0, 1), (1, 0))[turn % 2]:
            gc.collect()
            samples[which].append(_run((first, second)[which], loops) / loops)
        turn += 1
    return samples[0], samples[1], loops


def summary(samples: list[float]) -> dict[str, float]:
    """Return minimum and median."""
    return {"min": min(samples), "median": statistics.median(samples)}


def machine() -> dict[str, Any]:
    """Describe what the figures depend on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "python_build": " ".join(platform.python_build()),
        "python_compiler": platform.python_compiler(),
        "python_flags": sysconfig.get_config_var("OPT") or "",
        # Without paths: where an interpreter lies says nothing of its speed.
        "python_configure": re.sub(r"[^ '=,]*/[^ ',]*", "...", sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "debian_python": sys.executable.startswith("/usr/bin/") or sys.base_prefix == "/usr",
    }


PEAK = """
import gc, sys, io, os
from benches import data, implementations
module = implementations.get(sys.argv[1])
workload = next(w for w in data.WORKLOADS if w.name == sys.argv[2])
direction = sys.argv[3]
value = workload.make()
def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))
module.loads(module.dumps([1, "warm", (2,)]))
options = {}
buffers = []
if workload.out_of_band:
    options = {"protocol": 5, "buffer_callback": buffers.append}
if direction == "loads":
    blob = module.dumps(value, **options)
    load_options = {"buffers": [bytes(b.raw()) for b in buffers]} if workload.out_of_band else {}
    del value
    buffers.clear()
    call = lambda: module.loads(blob, **load_options)
elif direction == "dumps":
    call = lambda: module.dumps(value, **options)
elif direction == "file dump":
    out = open(os.devnull, "wb")
    call = lambda: module.dump(value, out)
else:
    with open(sys.argv[4], "wb") as f:
        module.dump(value, f)
    del value
    source = open(sys.argv[4], "rb")
    call = lambda: module.load(source)
gc.collect()
try:
    import ctypes
    ctypes.CDLL(None).malloc_trim(0)
except (OSError, AttributeError):
    pass
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = status("VmRSS")
result = call()
print(status("VmHWM") - before)
"""


def peak_memory(implementation: str, workload: str, direction: str, scratch: Path) -> int:
    """Return the bytes by which one call raised the resident set at its highest, in a fresh process; best of three."""
    best = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, implementation, workload, direction, str(scratch)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        best.append(int(done.stdout))
    return min(best)


def save(result: dict[str, Any], path: Path) -> None:
    """Write raw results; one line a sample list keeps files readable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
