"""A real Spark, and what of ours its master loads: from the installed wheel, as users have it.

QUICKPICKLE_SPARK_PYTHON names an interpreter with PySpark. `make test` sets it for the main interpreter only, because
Spark is the same whichever of ours asks; without it everything here is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quickpickle

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from spark_recovery.cluster import Cluster, ZooKeeper  # noqa: E402

SPARK_PYTHON = os.environ.get("QUICKPICKLE_SPARK_PYTHON", "")
LIBRARY = Path(quickpickle.__file__).parent / "recovery_spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(800))
            if not SPARK_PYTHON:
                item.add_marker(pytest.mark.skip(reason="QUICKPICKLE_SPARK_PYTHON names no interpreter with PySpark"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(Path(SPARK_PYTHON), LIBRARY, tmp_path) as cluster:
        yield cluster


@pytest.fixture
def zookeeper(cluster: Cluster) -> ZooKeeper:
    if not ZooKeeper.is_there():
        pytest.skip("no ZooKeeper server: install Debian's package zookeeper")
    return ZooKeeper(cluster)


Checks = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    """Runs checks and tools of `Checks.java`, compiled once: `checks(names, directory, *arguments)`."""
    classes = tmp_path_factory.mktemp("classes")
    cluster = Cluster(Path(SPARK_PYTHON), LIBRARY, tmp_path_factory.mktemp("checks"))
    sources = sorted((ROOT / "java" / "src" / "test").rglob("*.java"))
    compile_ = [
        "javac",
        "-nowarn",
        "--release",
        "17",
        "-d",
        str(classes),
        "-cp",
        cluster.classpath(),
        *map(str, sources),
    ]
    compiled = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr

    def run(names: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["-cp", f"{classes}:{cluster.classpath()}", "io.quickpickle.recovery.Checks", names, str(directory)]
        return subprocess.run(
            cluster.java([*command, *arguments]),
            env=cluster.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )

    return run
