"""Runs when a Python process starts that a process with ``quickpickle.install(children=True)`` has started.

Installs the same stand-in there, then runs the ``sitecustomize`` that this one hides, if there is one.
Without the environment variable, or without quickpickle, it only does the latter.
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


def _run_hidden() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_install()
_run_hidden()
