"""Reading a pickle without running it: ours against pickletools, picklescan and fickling, on one large pickle.

    python -m benches.bench_tools [--megabytes 100] [--only NAME ...] [--others PYTHON] [--record FILE]

Every tool runs in a process of its own and the figure is its processor time, start of the interpreter left out. The
pickle is a list of records. picklescan and fickling are looked for in the interpreter that ``--others`` names; their
verdicts and ours are compared. Listings go to a writer that drops them.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benches import measure

HEAD = """
import json, sys, time
class Drop:
    def write(self, text):
        return len(text)
data = open(sys.argv[1], "rb").read()
"""
TAIL = """
start = time.process_time()
answer = run()
print(json.dumps([time.process_time() - start, answer]))
"""
#: name -> (program, whether it is ours, what it answers for a plain pickle)
TOOLS: dict[str, tuple[str, bool]] = {
    "quickpickle dis": ("from quickpickle import tools\nrun = lambda: tools.dis(data, Drop())", True),
    "pickletools.dis": ("import pickletools\nrun = lambda: pickletools.dis(data, Drop())", False),
    "pickletools.genops": ("import pickletools\nrun = lambda: sum(1 for _ in pickletools.genops(data))", False),
    "quickpickle scan": ("from quickpickle import tools\nrun = lambda: tools.scan(data).verdict.value", True),
    "picklescan": (
        "import io\nfrom picklescan import scanner\n"
        "run = lambda: 'ok' if scanner.scan_pickle_bytes(io.BytesIO(data), 'x').issues_count == 0 else 'issues'",
        False,
    ),
    "fickling": (
        "from fickling.fickle import Pickled\nfrom fickling.analysis import check_safety\n"
        "run = lambda: str(check_safety(Pickled.load(data)).severity)",
        False,
    ),
    "quickpickle explain": ("import quickpickle\nrun = lambda: quickpickle.explain(data).objects", True),
    "quickpickle loads": ("import quickpickle\nrun = lambda: len(quickpickle.loads(data))", True),
    "pickle loads": ("import pickle\nrun = lambda: len(pickle.loads(data))", False),
}


def make(megabytes: float) -> bytes:
    """A pickle of records of about this size."""
    count = round(megabytes * 1e6 / 48.3)
    return pickle.dumps([{"id": i, "name": f"name {i}", "x": i * 0.5, "t": (i, None)} for i in range(count)])


def seconds(name: str, path: Path, others: str, timeout: float) -> dict[str, Any]:
    """Run one tool; what it took and answered."""
    program, ours = TOOLS[name]
    python = others if name in ("picklescan", "fickling") else sys.executable
    rounds = 3 if ours else 1
    took, answer = [], None
    for _ in range(rounds):
        command = [python, "-c", HEAD + program + TAIL, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return {"seconds": None, "why": f"not done after {timeout:.0f} s"}
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            return {"seconds": None, "why": last[0]}
        one, answer = json.loads(done.stdout)
        took.append(one)
    return {"seconds": min(took), "answer": answer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--only", nargs="*", choices=list(TOOLS), default=list(TOOLS))
    parser.add_argument("--others", default=sys.executable, help="the Python that has picklescan and fickling")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one tool")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--build", default="release", help="how the extension was built, for the record")
    options = parser.parse_args()
    data = make(options.megabytes)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.pickle"
        path.write_bytes(data)
        for name in options.only:
            results[name] = seconds(name, path, options.others, options.timeout)
            print(f"{name:22} {results[name]}", flush=True)
    if options.record:
        about = {"bytes": len(data), "build": options.build, "machine": measure.machine()}
        measure.save({**about, "results": results}, options.record)


if __name__ == "__main__":
    main()
