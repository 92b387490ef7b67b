"""What was dumped here arrives: at receivers that have cloudpickle and not quickpickle, and the other way round."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys

import pytest

import quickpickle.cloudpickle as ours
from tests.child import ROOT
from tests.cloudpickle.cases import BETTER, CHECKER, MORE, SAME, Case, current

stock = importlib.import_module("cloudpickle")

ALL = {**current(SAME), **current(BETTER), **current(MORE)}


def failures(payloads: dict[str, tuple[bytes, str]], receiver: str) -> dict[str, str]:
    """Load and check everything in one fresh process."""
    result = subprocess.run(
        [sys.executable, "-c", CHECKER, receiver],
        input=pickle.dumps(payloads),
        capture_output=True,
        timeout=120,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr.decode()[-2000:]
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def written() -> dict[str, tuple[bytes, str]]:
    return {name: (ours.dumps(case.make()), case.check) for name, case in ALL.items()}


@pytest.mark.parametrize("receiver", ["stock", "ours"])
def test_what_we_write_arrives(written: dict[str, tuple[bytes, str]], receiver: str) -> None:
    assert failures(written, receiver) == {}


def test_what_cloudpickle_writes_arrives() -> None:
    payloads = {name: (stock.dumps(case.make()), case.check) for name, case in current(SAME).items()}
    assert failures(payloads, "ours") == {}


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_older_protocols_arrive(protocol: int) -> None:
    payloads = {}
    for name, case in ALL.items():
        payloads[name] = (ours.dumps(case.make(), protocol), case.check)
    assert failures(payloads, "stock") == {}


def test_checks_can_fail() -> None:
    payloads = {"wrong": (ours.dumps(1), "assert x == 2")}
    assert "AssertionError" in failures(payloads, "stock")["wrong"]


def test_exceptions_that_never_call_their_class() -> None:
    """Asked for, a class is not called even where that would do."""
    case = Case(
        "class E(Exception):\n    made = 0\n    def __init__(self, n):\n        super().__init__(n)\n        type(self).made += 1",
        "E(5)",
        "assert x.args == (5,) and type(x).made == 1",
    )
    blob = ours.dumps(case.make(), exact_exceptions=True)
    assert failures({"e": (blob, case.check)}, "stock") == failures({"e": (blob, case.check)}, "ours") == {}
    assert "AssertionError" in failures({"e": (ours.dumps(case.make()), case.check)}, "stock")["e"]
