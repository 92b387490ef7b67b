"""A real Spark: two environments of one PySpark, with and without quickpickle, and the answers of its jobs.

QUICKPICKLE_SPARK_PYTHON names an interpreter with PySpark and without quickpickle, as ``tests/recovery_spark`` has it.
Beside it an environment is made that has the same PySpark and the installed quickpickle, and that is enabled. A session
of Spark takes half a minute to start and warm up, so each is started once and all its jobs are run in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import quickpickle

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from spark_recovery.cluster import JAR, Cluster, Master, die_with_parent, start_worker  # noqa: E402

SPARK_PYTHON = os.environ.get("QUICKPICKLE_SPARK_PYTHON", "")
# What needs no Spark.
ALONE = {"test_hook.py", "test_writer.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = Path(item.path)
        if path.parent == Path(__file__).parent and path.name not in ALONE and not SPARK_PYTHON:
            item.add_marker(pytest.mark.skip(reason="QUICKPICKLE_SPARK_PYTHON names no interpreter with PySpark"))


@dataclass
class Spark:
    """An interpreter with PySpark, and one that its workers run."""

    python: Path
    workers: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPARK_", "PYSPARK_", "QUICKPICKLE_")) and key not in ("PYTHONPATH", "PYTHONHOME")
        }
        clean |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(self.folder), "PYTHONWARNINGS": "ignore"}
        return {
            **clean,
            "PYSPARK_PYTHON": str(self.workers),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            **self.settings,
        }

    def run(self, *arguments: str, timeout: float = 700) -> subprocess.CompletedProcess[str]:
        """Run this interpreter in the project's folder."""
        return subprocess.run(
            [str(self.python), *arguments],
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            preexec_fn=die_with_parent,
        )

    def answers(self, master: str, *suites: str) -> dict[str, Any]:
        """What the jobs answer in one session."""
        output = self.folder / "answers.json"
        done = self.run(str(Path(__file__).with_name("jobs.py")), str(output), master, *suites)
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        answers: dict[str, Any] = json.loads(output.read_text())
        return answers


@pytest.fixture(scope="session")
def bare() -> Path:
    """An interpreter with PySpark and without quickpickle."""
    return Path(SPARK_PYTHON)


@pytest.fixture(scope="session")
def enabled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the same PySpark, the quickpickle that is installed here, and that enabled."""
    home = tmp_path_factory.mktemp("enabled") / "env"
    subprocess.run([SPARK_PYTHON, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    places = [
        Path(subprocess.check_output([str(each), "-c", ask], text=True).strip()) for each in (SPARK_PYTHON, python)
    ]
    (places[1] / "spark.pth").write_text(f"{places[0]}\n")
    shutil.copytree(
        Path(quickpickle.__file__).parent, places[1] / "quickpickle", ignore=shutil.ignore_patterns("*.jar")
    )
    done = subprocess.run([str(python), "-m", "quickpickle", "spark", "enable"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture
def spark(enabled: Path, tmp_path: Path) -> Spark:
    """Driver and workers with quickpickle."""
    return Spark(enabled, enabled, tmp_path)


@pytest.fixture(scope="session")
def stock(enabled: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What PySpark itself answers, in the environment that is enabled, where a variable says no."""
    spark = Spark(enabled, enabled, tmp_path_factory.mktemp("stock"), {"QUICKPICKLE_SPARK": "0"})
    answers = spark.answers("local[2,3]", "rdd", "frame", "fault")
    assert not [name for name, answer in answers.items() if answer.startswith("Traceback")], answers
    return answers


@pytest.fixture
def standalone(bare: Path, tmp_path: Path) -> Iterator[str]:
    """The URL of a master on this machine with one worker."""
    # The cluster wants the jar of a recovery store, of which this master has none.
    library = tmp_path / "library"
    library.mkdir()
    zipfile.ZipFile(library / JAR, "w").close()
    with Cluster(bare, library, tmp_path / "cluster") as cluster:
        cluster.env = {key: value for key, value in cluster.env.items() if not key.startswith("QUICKPICKLE_")}
        master = Master(cluster, {"spark.deploy.recoveryMode": "NONE"})
        start_worker(cluster, [master])
        master.wait_for("ALIVE", workers=1)
        yield master.url
