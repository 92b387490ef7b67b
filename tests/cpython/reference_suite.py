"""CPython's own C-pickler test classes, with the module under test in `_pickle`'s place.

The classes come from the running interpreter's ``test`` package and are derived from, never copied. Each class of
``test.test_pickle`` that names something of ``_pickle`` gets a subclass here whose attributes name ours instead; the few
that reach for a module global get that global replaced while they run. ``MIXED`` further pairs our pickler with the
pure-Python unpickler, the C one, and the other way round.
"""

from __future__ import annotations

import importlib
import os
import unittest
from types import ModuleType
from typing import Any
from unittest import mock

try:
    from test import pickletester, test_pickle
except ImportError as exc:  # Debian keeps the test package apart (libpython3-testsuite)
    raise unittest.SkipTest(f"this interpreter has no test package: {exc}") from exc

import _pickle

OURS: ModuleType = importlib.import_module(os.environ.get("QUICKPICKLE_OURS", "quickpickle"))

# Tests that cannot hold for another implementation, each with the reason. Anything else that fails is a fault.
EXCEPTED: dict[str, str] = {
    "SizeofTests.test_pickler": "adds up the sizes of the C pickler's own structs and tables",
    "SizeofTests.test_unpickler": "adds up the sizes of the C unpickler's own structs and tables",
}

# Classes that say nothing of the pickler: the 2/3 name tables belong to `_compat_pickle`.
UNRELATED = {"CompatPickleTests"}

SUBSTITUTES: dict[int, Any] = {
    id(getattr(_pickle, name)): getattr(OURS, name)
    for name in ("Pickler", "Unpickler", "dump", "dumps", "load", "loads")
}


def _substitute(value: Any) -> Any:
    """Return ours for something of `_pickle`'s, a derived class for one derived from it, None for the rest."""
    if id(value) in SUBSTITUTES:
        return SUBSTITUTES[id(value)]
    if isinstance(value, type) and not issubclass(value, unittest.TestCase):
        bases = tuple(SUBSTITUTES.get(id(base), base) for base in value.__bases__)
        if any(id(base) in SUBSTITUTES for base in value.__bases__):
            body = {k: v for k, v in vars(value).items() if k not in ("__dict__", "__weakref__")}
            return type(value.__name__, bases, body)
    return None


def _with_ours(case: type[unittest.TestCase]) -> type[unittest.TestCase] | None:
    """Derive from ``case`` with ours in place; None where it has nothing of the C implementation's."""
    body: dict[str, Any] = {}
    for name in dir(case):
        value = getattr(case, name)
        ours = _substitute(value)
        if ours is not None:
            callable_here = not isinstance(ours, type)
            body[name] = staticmethod(ours) if callable_here else ours
    if not body:
        return None
    return _finish(case, body)


def _finish(case: type[unittest.TestCase], body: dict[str, Any]) -> type[unittest.TestCase]:
    """Build the subclass, with excepted tests skipped for their reasons and globals replaced while tests run."""
    for test, reason in EXCEPTED.items():
        owner, _, method = test.partition(".")
        if owner == case.__name__ and hasattr(case, method):
            body[method] = unittest.skip(reason)(lambda self: None)

    def set_up(self: unittest.TestCase) -> None:
        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            for module in (test_pickle.pickle, _pickle):
                patch = mock.patch.object(module, name, getattr(OURS, name))
                patch.start()
                self.addCleanup(patch.stop)
        super(made, self).setUp()

    body.setdefault("setUp", set_up)
    body["__module__"] = __name__
    made: type[unittest.TestCase] = type(case.__name__, (case,), body)
    return made


def _mixed(name: str, pickler: Any, unpickler: Any) -> type[unittest.TestCase]:
    body = {"pickler": pickler, "unpickler": unpickler, "__module__": __name__}
    return type(name, (test_pickle.PyPicklerTests,), body)


def suite() -> dict[str, type[unittest.TestCase]]:
    """Return every class to run, by name."""
    classes: dict[str, type[unittest.TestCase]] = {}
    for name, case in vars(test_pickle).items():
        if not (isinstance(case, type) and issubclass(case, unittest.TestCase)) or name in UNRELATED:
            continue
        made = _with_ours(case)
        if made is not None:
            classes[name] = made
    # These name `pickle` or `_pickle` as module globals in their bodies; setUp's patches put ours there.
    for name in ("InMemoryPickleTests", "HeapTypesTests", "SizeofTests"):
        case = getattr(test_pickle, name, None)
        if case is not None:
            body = {}
            if name == "HeapTypesTests":
                body["setUp"] = _heap_types_set_up(case)
            classes[name] = _finish(case, body)
    pure = test_pickle.pickle
    classes["OursDumpsReferenceLoads"] = _mixed("OursDumpsReferenceLoads", OURS.Pickler, _pickle.Unpickler)
    classes["ReferenceDumpsOursLoads"] = _mixed("ReferenceDumpsOursLoads", _pickle.Pickler, OURS.Unpickler)
    classes["OursDumpsPythonLoads"] = _mixed("OursDumpsPythonLoads", OURS.Pickler, pure._Unpickler)
    classes["PythonDumpsOursLoads"] = _mixed("PythonDumpsOursLoads", pure._Pickler, OURS.Unpickler)
    return classes


def _heap_types_set_up(case: type[unittest.TestCase]) -> Any:
    """HeapTypesTests makes its objects in setUp, so the replacement has to be there by then."""

    def set_up(self: unittest.TestCase) -> None:
        for name in ("Pickler", "Unpickler"):
            patch = mock.patch.object(_pickle, name, getattr(OURS, name))
            patch.start()
            self.addCleanup(patch.stop)
        case.setUp(self)

    return set_up


__all__ = ["EXCEPTED", "OURS", "pickletester", "suite", "test_pickle"]
