"""Errors while loading say what was being rebuilt and where, as notes: class and message stay the reference's."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

from tests import samples as s
from tests.outcomes import text_of

pytestmark = pytest.mark.beyond_reference
notes = pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions carry notes from 3.11 on")


def error_of(module: ModuleType, data: bytes, **options: Any) -> BaseException:
    """Return what loads raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011, B017
        module.loads(data, **options)
    return caught.value


class Fragile:
    """Cannot take its state back."""

    def __init__(self) -> None:
        self.n = 1

    def __setstate__(self, state: Any) -> None:
        raise ValueError("bad state")


@notes
def test_setstate_that_raises(ours: ModuleType) -> None:
    """Type and message come through untouched, and the class is named."""
    exc = error_of(ours, pickle.dumps({"ok": 1, "items": [Fragile()]}, 4))
    assert type(exc) is ValueError
    assert str(exc) == "bad state"
    assert "Fragile" in text_of(exc)
    assert exc.__traceback__ is not None


@notes
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_missing_module_names_what_wanted_it(ours: ModuleType, protocol: int) -> None:
    data = {
        0: b"cno_such_pkg\nWidget\n)R.",
        2: b"\x80\x02cno_such_pkg\nWidget\n)\x81.",
        4: b"\x80\x04\x8c\x0bno_such_pkg\x8c\x06Widget\x93)\x81.",
    }[protocol]
    exc = error_of(ours, data)
    assert isinstance(exc, ModuleNotFoundError)
    assert str(exc) == "No module named 'no_such_pkg'"
    assert exc.name == "no_such_pkg"
    assert "Widget" in text_of(exc)


@notes
def test_python_2_text_hints_at_encoding(ours: ModuleType) -> None:
    data = b"\x80\x02U\x03\xe9\xff\x81q\x00."
    exc = error_of(ours, data)
    assert isinstance(exc, UnicodeDecodeError)
    assert "encoding=" in text_of(exc)
    assert ours.loads(data, encoding="latin1") == "\xe9\xff\x81"
    assert ours.loads(data, encoding="bytes") == b"\xe9\xff\x81"


@notes
def test_exception_that_cannot_be_rebuilt(ours: ModuleType) -> None:
    """QuotaError.__init__ takes two arguments, Exception hands back one: the error names the class and the cause."""
    data = pickle.dumps(s.QuotaError(3, 2))
    try:
        got = ours.loads(data)
    except TypeError as exc:
        said = text_of(exc)
        assert "QuotaError" in said
        assert "pickl" in said.lower() or "__reduce__" in said
    else:
        assert got.used == 3


@notes
def test_reduce_callable_that_raises_is_named(ours: ModuleType) -> None:
    exc = error_of(ours, pickle.dumps([1, s.Reduced((s.raise_value_error, (1,)))], 2))
    assert str(exc) == "raised by a callable of the pickle"
    assert "raise_value_error" in text_of(exc)


@notes
@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x1f\x8b\x08\x00" + bytes(20), "gzip"),
        (b"<!DOCTYPE html><html></html>", "html"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "lfs"),
        (b"", "empty"),
    ],
)
def test_what_is_plainly_something_else_is_named(ours: ModuleType, data: bytes, word: str) -> None:
    exc = error_of(ours, data)
    assert isinstance(exc, (pickle.UnpicklingError, EOFError))
    assert word in text_of(exc).lower()


@notes
def test_offset_of_a_bad_opcode(ours: ModuleType) -> None:
    """The byte offset is told: 13 bytes of good opcodes, then a bad one."""
    data = b"\x80\x04](K\x01K\x02K\x03e0\xff."
    exc = error_of(ours, data)
    assert isinstance(exc, pickle.UnpicklingError)
    assert str(data.index(b"\xff")) in text_of(exc)


def test_object_in_a_set_it_holds_itself(ours: ModuleType) -> None:
    """Hashing needs an attribute that BUILD brings only after the set was filled: such graphs must round-trip."""
    for protocol in range(6):
        member = s.Member("ann")
        for value in (member, [member], {"m": member.club}, (member, member.club)):
            got = ours.loads(ours.dumps(value, protocol))
            while not isinstance(got, s.Member):
                got = next(iter(got.values() if isinstance(got, dict) else got))
            assert got in got.club
            assert next(iter(got.club)) is got
            assert got.name == "ann"
