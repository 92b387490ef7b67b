"""Verdicts on published techniques and on clean pickles: ours beside picklescan's and fickling's.

    python -m benches.compare_scanners --others PYTHON [--record FILE]

``--others`` is a Python with picklescan and fickling. Nothing is loaded; payloads are harmless anyway.
"""

from __future__ import annotations

import argparse
import base64
import json
import pickle
import subprocess
import sys
from pathlib import Path

import tests.corpus
from tests.tools import malicious

from quickpickle import tools

OTHERS = """
import base64, io, json, sys, os, tempfile, logging
logging.disable(logging.CRITICAL)
answers, sys.stdout = sys.stdout, open(os.devnull, "w")
from picklescan import scanner
from fickling.fickle import Pickled
from fickling.analysis import check_safety
def picklescan(name, data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        open(path, "wb").write(data)
        try:
            found = scanner.scan_file_path(path)
        except Exception as error:
            return "error"
        # It reports what it cannot parse as an error of the scan, beside the globals that it found until then.
        return "dangerous" if found.issues_count else "error" if found.scan_err else "passed"
def fickling(name, data):
    try:
        found = check_safety(Pickled.load(io.BytesIO(data)))
    except Exception as error:
        return "error"
    return "passed" if found.severity.name == "LIKELY_SAFE" else found.severity.name.lower()
for line in sys.stdin:
    name, data = json.loads(line)
    data = base64.b64decode(data)
    print(json.dumps([picklescan(name, data), fickling(name, data)]), file=answers, flush=True)
"""


def samples() -> list[tuple[str, str, str, bytes]]:
    """Group, description, file name and content."""
    found = [("technique", name, "x.pkl", data) for name, data in malicious.PICKLES.items()]
    packed = malicious.files(malicious.SYSTEM).items()
    found += [("packed", name, file, data) for name, (file, data) in packed]
    for name, value in tests.corpus.values():
        try:
            found.append(("clean", name, "x.pkl", pickle.dumps(value)))
        except Exception:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", default=sys.executable)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    all_samples = samples()
    lines = "".join(json.dumps([file, base64.b64encode(data).decode()]) + "\n" for _, _, file, data in all_samples)
    done = subprocess.run([options.others, "-c", OTHERS], input=lines, capture_output=True, text=True, check=True)
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [
        {
            "group": group,
            "name": name,
            "quickpickle": tools.scan(data, name=file).verdict.value,
            "picklescan": a,
            "fickling": b,
        }
        for (group, name, file, data), (a, b) in zip(all_samples, theirs, strict=True)
    ]
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        for tool in ("quickpickle", "picklescan", "fickling"):
            per = counts.setdefault(row["group"], {}).setdefault(tool, {})
            per[row[tool]] = per.get(row[tool], 0) + 1
    print(json.dumps(counts, indent=1))
    if options.record:
        options.record.write_text(json.dumps({"counts": counts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
