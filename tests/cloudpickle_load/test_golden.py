"""Payloads that releases of cloudpickle wrote years ago load, natively and without importing cloudpickle.

A payload of another minor version may hold bytecode, which then is refused with both versions named, or works because
that code is the same in both.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cloudpickle.generate import CHECKS

FOLDER = Path(__file__).parent.parent / "golden" / "cloudpickle"
FILES = sorted(FOLDER.glob("cloudpickle_*"))
OWN = f"cpython_{sys.version_info[0]}{sys.version_info[1]}"
OWN_FILES = [path for path in FILES if path.name.endswith(OWN)]
RUNNING = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"


def payloads(path: Path) -> dict[str, bytes]:
    return pickle.loads(path.read_bytes())


def written_by(path: Path) -> str:
    digits = path.name.rpartition("_")[2]
    return f"{digits[0]}.{digits[1:]}"


def test_there_are_payloads_of_each_release() -> None:
    assert len(FILES) == 12
    for path in FILES:
        assert set(payloads(path)) == set(CHECKS), path.name


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda path: path.name)
def test_own_version_loads_and_works(ours, path: Path) -> None:
    for name, payload in payloads(path).items():
        loaded = ours.loads(payload)
        if name == "dataclass" and path.name.startswith("cloudpickle_2"):
            # That release did not write which of the fields are fields.
            assert loaded == type(loaded)(1, [2])
        else:
            assert CHECKS[name][1](loaded), name


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda path: path.name)
def test_nothing_is_imported_for_it(path: Path) -> None:
    if path.name.startswith("cloudpickle_2"):
        pytest.skip("one release is enough")
    code = f"""
import pickle, sys, quickpickle
payloads = pickle.loads(open({str(path)!r}, "rb").read())
for payload in payloads.values():
    quickpickle.loads(payload)
assert not [name for name in sys.modules if "cloudpickle" in name]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("path", [path for path in FILES if path not in OWN_FILES], ids=lambda path: path.name)
def test_other_versions_work_or_are_named(ours, path: Path) -> None:
    refused = []
    for name, payload in payloads(path).items():
        try:
            loaded = ours.loads(payload)
        except pickle.UnpicklingError as error:
            refused.append(str(error))
        else:
            assert CHECKS[name][1](loaded), name
    assert [text for text in refused if RUNNING not in text or written_by(path) not in text] == []
    # Code in nearly all of them is of one version only; what holds none loads everywhere.
    assert 10 <= len(refused) < len(CHECKS)


@pytest.mark.parametrize("path", OWN_FILES[-1:], ids=lambda path: path.name)
@pytest.mark.parametrize("package", ["pyspark.cloudpickle", "ray.cloudpickle", "joblib.externals.cloudpickle"])
def test_vendored_copies_need_not_be_installed(ours, path: Path, package: str) -> None:
    short, module = b"\x8c\x17cloudpickle.cloudpickle", f"{package}.cloudpickle".encode()
    for name in ("closure", "class", "enum"):
        payload = payloads(path)[name]
        assert payload.count(short) == 1
        renamed = payload.replace(short, b"\x8c" + bytes([len(module)]) + module)
        # The frame's length no longer holds: take the frame out.
        assert renamed[2:3] == b"\x95"
        assert CHECKS[name][1](ours.loads(renamed[:2] + renamed[11:])), name


@pytest.mark.parametrize("path", OWN_FILES[-1:], ids=lambda path: path.name)
def test_names_of_the_old_module(ours, path: Path) -> None:
    short, module = b"\x8c\x17cloudpickle.cloudpickle", b"cloudpickle.cloudpickle_fast"
    payload = payloads(path)["class"]
    renamed = payload.replace(short, b"\x8c" + bytes([len(module)]) + module)
    assert CHECKS["class"][1](ours.loads(renamed[:2] + renamed[11:]))
