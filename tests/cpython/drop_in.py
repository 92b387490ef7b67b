"""Runs test modules of CPython's own test package with ours standing in for ``pickle`` in the whole process.

    python -m tests.cpython.drop_in [--baseline] test_pickletools test_picklebuffer ...

Prints one line of JSON: how many tests ran, and the ids of those that failed. ``--baseline`` leaves the reference in place,
for tests that fail on this machine whatever the pickler. A process of its own is needed because test modules bind
``pickle``'s names when they are imported.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import sys
import unittest
import warnings


def stand_in(name: str) -> None:
    """Put a module's functions and classes where ``import pickle`` finds them."""
    import _pickle
    import pickle

    ours = importlib.import_module(name)
    for attribute in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        setattr(pickle, attribute, getattr(ours, attribute))
        setattr(_pickle, attribute, getattr(ours, attribute))


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("modules", nargs="+")
    options = parser.parse_args()
    if not options.baseline:
        stand_in(os.environ.get("QUICKPICKLE_OURS", "quickpickle"))
    warnings.simplefilter("ignore")
    suite = unittest.TestSuite()
    missing = []
    for module in options.modules:
        try:
            imported = importlib.import_module(f"test.{module}")
        except (ImportError, unittest.SkipTest):
            missing.append(module)
            continue
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(imported))
    result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    failed = sorted({case.id() for case, _ in result.failures + result.errors})
    texts = {case.id(): text[-600:] for case, text in result.failures + result.errors}
    print(json.dumps({"ran": result.testsRun, "failed": failed, "missing": missing, "texts": texts}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
