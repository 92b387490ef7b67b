"""Runs CPython's own C-pickler tests over the module under test; see reference_suite for how."""

from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("test.test_pickle", reason="this interpreter has no test package", exc_type=ImportError)

from tests.cpython import reference_suite

if os.environ.get("QUICKPICKLE_BIGMEM"):  # for example 20G; runs the tests of objects over 2 and 4 GiB
    from test import support

    support.set_memlimit(os.environ["QUICKPICKLE_BIGMEM"])

_classes = reference_suite.suite()
globals().update(_classes)

EXPECTED = {
    "CPickleTests",
    "CUnpicklerTests",
    "CPicklerTests",
    "CPersPicklerTests",
    "CIdPersPicklerTests",
    "CDumpPickle_LoadPickle",
    "DumpPickle_CLoadPickle",
    "CPicklerUnpicklerObjectTests",
    "CDispatchTableTests",
    "CChainDispatchTableTests",
    "CPicklerHookTests",
    "InMemoryPickleTests",
    "SizeofTests",
}
if sys.version_info >= (3, 12):
    EXPECTED.add("HeapTypesTests")
if sys.version_info >= (3, 13):
    EXPECTED.add("CPicklingErrorTests")


def test_every_c_class_was_found() -> None:
    """A renamed class upstream must not silently drop out."""
    assert set(_classes) >= EXPECTED, EXPECTED - set(_classes)


def test_ours_is_in_every_class() -> None:
    """No class may go on testing the reference."""
    import _pickle

    theirs = {id(getattr(_pickle, name)) for name in ("dump", "dumps", "load", "loads")}
    for name in EXPECTED - {"DumpPickle_CLoadPickle"}:
        case = _classes[name]
        if reference_suite.OURS.__name__ != "pickle":
            for attribute in ("pickler", "unpickler", "pickler_class", "unpickler_class", "dumps", "loads"):
                assert id(getattr(case, attribute, None)) not in theirs, (name, attribute)
                value = getattr(case, attribute, None)
                assert value not in (_pickle.Pickler, _pickle.Unpickler), (name, attribute)
