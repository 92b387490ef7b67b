"""Runs when a Python process starts that a process with ``quickpickle.install(children=True)`` has started.

Installs the same stand-in there, or waits for PySpark where ``QUICKPICKLE_SPARK`` says so, then runs the
``sitecustomize`` that this one hides, if there is one. Without the environment variables, or without quickpickle, it
only does the latter.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _install() -> None:
    wanted = os.environ.get("QUICKPICKLE_STANDIN")
    if not wanted:
        return
    names = wanted.split(",")
    try:
        from quickpickle.standin import install
    except ImportError:
        # Another interpreter, or an environment that does not have quickpickle: pickles are the same without.
        return
    install(cloudpickle="cloudpickle" in names, pickle="pickle" in names)


def _wait_for_pyspark() -> None:
    if os.environ.get("QUICKPICKLE_SPARK", "").strip().lower() in ("", "0", "off", "no", "false"):
        return
    # By its path, because importing quickpickle is what it puts off.
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "spark", "start.py")
    try:
        spec = importlib.util.spec_from_file_location("_quickpickle_spark_start", path)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        sys.stderr.write(f"quickpickle: PySpark runs without it: {error!r}\n")


def _run_hidden() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_install()
_wait_for_pyspark()
_run_hidden()
