"""``import quickpickle as pickle`` finds every name, and exceptions and constants are pickle's own."""

import inspect
import pickle
import subprocess
import sys

import pytest

import quickpickle

OURS = {"Pickler", "Unpickler", "dump", "dumps", "load", "loads"}
BEYOND_ALL = [
    "bytes_types",
    "compatible_formats",
    "decode_long",
    "dispatch_table",
    "encode_long",
    "format_version",
    "whichmodule",
]


def test_same_public_names() -> None:
    assert sorted(quickpickle.__all__) == sorted(pickle.__all__)


@pytest.mark.parametrize("name", sorted(set(pickle.__all__) - OURS) + BEYOND_ALL)
def test_everything_but_the_engine_is_the_same_object(name: str) -> None:
    assert getattr(quickpickle, name) is getattr(pickle, name)


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_engine_is_our_own(name: str) -> None:
    ours = getattr(quickpickle, name)
    assert ours is not getattr(pickle, name)
    assert not issubclass(type(ours), type) or pickle.__dict__[name] not in ours.__mro__


@pytest.mark.parametrize("name", sorted(OURS))
def test_arguments_are_named_and_defaulted_alike(name: str) -> None:
    expected = inspect.signature(getattr(pickle, name))
    found = inspect.signature(getattr(quickpickle, name))
    assert str(found) == str(expected)


@pytest.mark.parametrize("name", sorted(OURS))
def test_help_has_something_to_say(name: str) -> None:
    assert len(inspect.getdoc(getattr(quickpickle, name)) or "") > 40


def test_import_loads_nothing_beyond_pickle_and_the_extension() -> None:
    """Importing must stay cheap; counted in modules, because times are for benchmarks."""
    program = (
        "import pickle, sys; before = set(sys.modules); import quickpickle; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"quickpickle", "quickpickle._native", "_compat_pickle", "copyreg"}
