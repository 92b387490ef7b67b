"""The Java side by itself: engine, codecs, policies and settings. The checks are in `java/src/test`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Checks

NAMES = (
    "names closed panic remaining blocks standby threads settings records serialisers sameBytes foreign versions skip afterClose "
    "election"
).split()


@pytest.fixture(scope="module")
def ran(checks: Checks, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """All checks that leave their process alive, in one JVM."""
    return checks(",".join(NAMES), tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("name", NAMES)
def test_check(ran: subprocess.CompletedProcess[str], name: str) -> None:
    assert f"passed {name}\n" in ran.stdout, ran.stdout[-20_000:]


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("exitOnUnreadable", 65, "Cannot read the record worker_bad of log"),
        (
            "exitOnOtherClass",
            65,
            "a org.apache.spark.deploy.master.WorkerInfo was asked for, and it is a java.lang.String",
        ),
        ("exitOnUnserialisable", 65, "Cannot encode worker_1"),
        ("exitOnSettings", 78, 'onFailure: "ignore" is not a choice; use halt or retry'),
    ],
)
def test_a_master_ends_rather_than_go_on_with_half_its_state(
    checks: Checks, tmp_path: Path, name: str, code: int, said: str
) -> None:
    ended = checks(name, tmp_path)
    assert (ended.returncode, said in ended.stdout) == (code, True), ended.stdout[-5000:]
    assert f"the master stops (exit code {code})" in ended.stdout
