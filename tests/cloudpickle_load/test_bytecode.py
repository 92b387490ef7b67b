"""Bytecode of another Python version is refused, naming both versions; that of the running one is always taken."""

from __future__ import annotations

import os
import pickle
import sys
import types
from pathlib import Path

import pytest

RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
FIELDS = (
    "argcount posonlyargcount kwonlyargcount nlocals stacksize flags code consts names varnames filename name".split()
)
LATE = (
    "qualname firstlineno linetable exceptiontable freevars cellvars"
    if sys.version_info >= (3, 11)
    else "firstlineno linetable freevars cellvars"
).split()


def arguments(code: types.CodeType, /, **changed) -> tuple:
    values = {name: getattr(code, f"co_{name}") for name in FIELDS + LATE}
    # Constants that are code cannot be pickled here, and do not matter.
    values["consts"] = tuple(None if isinstance(const, types.CodeType) else const for const in code.co_consts)
    return tuple({**values, **changed}.values())


def payload(args: tuple) -> bytes:
    """A pickle that makes a code object of these arguments."""
    return b"\x80\x03ctypes\nCodeType\n" + pickle.dumps(args, 3)[2:-1] + b"R."


def all_code(code: types.CodeType):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from all_code(const)


def test_own_code_is_taken(ours) -> None:
    """Every function of a good part of the standard library."""
    library = Path(os.__file__).parent
    count = 0
    for name in ("asyncio", "collections", "concurrent", "email", "json", "unittest", "xml", "."):
        for path in sorted((library / name).glob("*.py"))[:60]:
            source = path.read_bytes()
            for code in all_code(compile(source, path.name, "exec", dont_inherit=True)):
                if any(type(const) not in PLAIN for const in code.co_consts):
                    continue
                args = arguments(code, filename="x")
                loaded = ours.loads(payload(args))
                assert loaded == types.CodeType(*args)
                count += 1
    assert count > 3000


PLAIN = {type(None), bool, int, float, str, bytes, tuple, complex, frozenset, types.CodeType}


def function(x, y=2):
    total = 0
    for item in [x, y]:
        try:
            total += item["n"]
        except KeyError:
            total -= 1
    return total


#: The instructions of ``lambda x: x.a`` as each version writes them.
ATTRIBUTE = {
    "3.8": "7c006a005300",
    "3.10": "7c006a005300",
    "3.11": "97007c006a0000000000000000005300",
    "3.12": "97007c006a00000000000000000000000000000000000000" + "5300",
    "3.13": "95005500520000000000000000000000000000000000000024" + "00",
    "3.14": "8000560050000000000000000000000000000000000000002300",
}


@pytest.mark.parametrize("version", ATTRIBUTE)
def test_foreign_code_is_named(ours, version: str) -> None:
    code = bytes.fromhex(ATTRIBUTE[version])
    base = (1, 0, 0, 1, 1, 3 | 64, code, (None,), ("a",), ("x",), "file", "it")
    if version in ("3.8", "3.10"):
        args = (*base, 1, b"" if version == "3.8" else bytes([len(code), 0]), (), ())
    else:
        args = (*base, "it", 1, b"", b"", (), ())
    if version == RUNNING:
        assert isinstance(ours.loads(payload(args)), types.CodeType)
        return
    with pytest.raises(pickle.UnpicklingError) as caught:
        ours.loads(payload(args))
    assert f"CPython {RUNNING}" in str(caught.value)
    assert version in str(caught.value)
    assert "'it'" in str(caught.value).replace('"', "'")


def test_code_before_3_8(ours) -> None:
    args = (1, 0, 1, 1, 67, b"|\x00S\x00", (None,), (), ("x",), "file", "it", 1, b"", (), ())
    with pytest.raises(pickle.UnpicklingError, match=r"3\.7 or older"):
        ours.loads(payload(args))


def test_code_that_is_none(ours) -> None:
    with pytest.raises(pickle.UnpicklingError, match="not known"):
        ours.loads(payload(arguments(function.__code__, code=b"\xff\xff" * 20)))


@pytest.mark.parametrize(
    "changed",
    [
        {"argcount": -1},
        {"argcount": "text"},
        {"nlocals": 99},
        {"posonlyargcount": 5},
        {"kwonlyargcount": 1000},
        {"stacksize": -5},
        {"flags": -1},
        {"names": (1, 2, 3, 4, 5)},
        {"varnames": (b"a", b"b", b"c", b"d")},
        {"freevars": (None,)},
        {"name": b"bytes"},
        {"consts": []},
        {"code": "text"},
        {"linetable": None},
        {"firstlineno": 1 << 40},
    ],
    ids=str,
)
def test_arguments_that_are_wrong_get_the_error_of_the_constructor(ours, changed) -> None:
    args = arguments(function.__code__, **changed)
    errors = []
    for make in (lambda: types.CodeType(*args), lambda: ours.loads(payload(args))):
        try:
            make()
        except Exception as error:
            errors.append((type(error), str(error)))
        else:
            errors.append(None)
    assert errors[0] == errors[1] or errors[1][0] is pickle.UnpicklingError


#: Code that the tables of 3.11 and 3.12 both have opcodes for, with the version that wrote it: a loop that jumps back by
#: opcode 176, a tuple made by opcode 173, a coroutine whose handler ends in 173. Source, instructions, depth, flags, table.
NEARLY_ALIKE = {
    "loop": ((3, 11), "97007c0072077c0064017a0900007d007c00b0077c005300", 2, 3, ""),
    "tuple": ((3, 12), "9700640167017c00a201ad065300", 2, 3, ""),
    "coroutine": ((3, 12), "4b00010097007c005300ad037701", 2, 131, "82030501"),
}


@pytest.mark.skipif(sys.version_info[:2] not in ((3, 11), (3, 12)), reason="only these two are nearly alike")
@pytest.mark.parametrize("name", NEARLY_ALIKE)
def test_code_that_fits_both_3_11_and_3_12(ours, name: str) -> None:
    """Opcodes 173 to 176 are jumps in 3.11 and intrinsic functions in 3.12; the stack tells which was meant."""
    writer, code, depth, flags, table = NEARLY_ALIKE[name]
    args = (1, 0, 0, 1, depth, flags, bytes.fromhex(code), (None, 1), (), ("x",), "file", "it", "it", 1, b"")
    data = payload((*args, bytes.fromhex(table), (), ()))
    if writer == sys.version_info[:2]:
        assert isinstance(ours.loads(data), types.CodeType)
    else:
        with pytest.raises(pickle.UnpicklingError, match=f"CPython {writer[0]}.{writer[1]} and cannot"):
            ours.loads(data)
