"""Running code in a process of its own, for what may crash, hang or eat memory.

The child gets ``P``, the module under test, plus ``io``, ``sys`` and ``pickle``; its crash is then a failed assertion
here and not the end of the test run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
# Time-outs are there to end what hangs. Slow machines, and valgrind, are not what they should find.
PATIENCE = float(os.environ.get("QUICKPICKLE_TEST_PATIENCE", "5"))


def run(
    code: str, *, cap: int | None = None, timeout: float = 60, flags: tuple[str, ...] = (), module: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with ``cap`` bytes of address space above what the imports took, in ``timeout`` seconds at ease."""
    name = module or os.environ.get("QUICKPICKLE_OURS", "quickpickle")
    head = f"import io, sys, pickle, importlib\nP = importlib.import_module({name!r})\n"
    if cap is not None:
        head += (
            "import resource\n"
            "with open('/proc/self/statm') as f: _size = int(f.read().split()[0]) * resource.getpagesize()\n"
            f"resource.setrlimit(resource.RLIMIT_AS, (_size + {cap}, _size + {cap}))\n"
        )
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *flags, "-c", head + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout * PATIENCE,
        cwd=ROOT,
    )


def check(
    code: str, *, cap: int | None = None, timeout: float = 60, flags: tuple[str, ...] = (), module: str | None = None
) -> str:
    """Run ``code``, require success and return what it printed."""
    result = run(code, cap=cap, timeout=timeout, flags=flags, module=module)
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout[-500:]}\n{result.stderr[-3000:]}"
    return result.stdout
