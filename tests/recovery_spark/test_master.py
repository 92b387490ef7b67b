"""A real Spark master, worker and application on loopback: the master is killed, and comes back with both.

The application's tasks wait for a file, so it is under way for as long as a test needs. Its executor is killed after
the recovery: only a master whose recovered records work gives it another, without which the job cannot end.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_recovery.cluster import (
    ANSWER,
    Application,
    Cluster,
    Master,
    Process,
    ZooKeeper,
    executors,
    start_worker,
    wait_until,
)

from .conftest import Checks

CODECS = {"java": 3, "kryo": 4}
REGISTERED = "Successfully registered with master"


def properties(settings: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def entries(checks: Checks, directory: Path, settings: dict[str, str]) -> tuple[dict[str, int], bool]:
    """Names in a store with their codecs, and whether it was closed in good order."""
    listed = checks("list", directory, *properties(settings))
    assert listed.returncode == 0, listed.stdout
    found = {name: int(codec) for codec, name in re.findall(r"^entry (\d+) \d+ (.*)$", listed.stdout, re.MULTILINE)}
    return found, "closed true" in listed.stdout


def kill_executors(worker: Process) -> None:
    """Kill what the application has, and see that its master gives it another.

    Most often it is one. A worker that registers again before it is asked what it runs lets Spark complete the recovery
    without its executors, and start one too many.
    """
    old = executors(worker)
    assert old
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: set(executors(worker)) - set(old), "the application gets a new executor")


@pytest.fixture(params=["log", "zookeeper"])
def store(request: pytest.FixtureRequest, cluster: Cluster) -> dict[str, str]:
    """Settings of a store of each kind."""
    if request.param == "log":
        return {"spark.deploy.recoveryDirectory": str(cluster.directory / "store")}
    server: ZooKeeper = request.getfixturevalue("zookeeper")
    return {
        "spark.quickpickle.recovery.engine": "zookeeper",
        "spark.deploy.zookeeper.url": server.address,
        "spark.deploy.zookeeper.dir": "/test",
        "spark.quickpickle.recovery.sessionTimeout": "2000",
    }


@pytest.mark.parametrize("serializer", CODECS)
def test_a_killed_master_comes_back_with_worker_and_application(
    cluster: Cluster, checks: Checks, store: dict[str, str], serializer: str, tmp_path: Path
) -> None:
    settings = {**store, "spark.quickpickle.recovery.serializer": serializer}
    master = Master(cluster, settings)
    master.wait_for("ALIVE")
    worker = start_worker(cluster, [master])
    application = Application(cluster, [master])
    application.wait_for_task()
    before = master.wait_for("ALIVE", workers=1, apps=1)
    worker_id, application_id = before["workers"][0]["id"], before["activeapps"][0]["id"]

    master.process.kill()
    stored, closed = entries(checks, tmp_path, store)
    codec = CODECS[serializer]
    assert stored == {f"worker_{worker_id}": codec, f"app_{application_id}": codec}
    assert not closed or store.get("spark.quickpickle.recovery.engine") == "zookeeper"

    master.start()
    after = master.wait_for("ALIVE", workers=1, apps=1)
    assert after["workers"][0]["id"] == worker_id
    assert after["activeapps"][0]["id"] == application_id
    master.process.says("Recovery complete")
    assert "is open with 2 entries" in master.process.log()

    kill_executors(worker)
    assert application.answer() == ANSWER
    master.wait_for("ALIVE", workers=1, apps=0)

    master.process.terminate()
    stored, closed = entries(checks, tmp_path, store)
    assert stored == {f"worker_{worker_id}": codec}
    assert closed, "SIGTERM closes the store in good order"


def test_a_standby_takes_over_a_running_application(cluster: Cluster) -> None:
    settings = {"spark.deploy.recoveryDirectory": str(cluster.directory / "store")}
    first = Master(cluster, settings, "first")
    first.wait_for("ALIVE")
    second = Master(cluster, settings, "second")
    second.wait_for("STANDBY")
    second.process.says("Standing by: another master holds log at")
    worker = start_worker(cluster, [first, second])
    application = Application(cluster, [first, second])
    application.wait_for_task()
    before = first.wait_for("ALIVE", workers=1, apps=1)
    assert second.state()["status"] == "STANDBY"

    first.process.kill()
    after = second.wait_for("ALIVE", workers=1, apps=1)
    assert after["workers"][0]["id"] == before["workers"][0]["id"]
    assert after["activeapps"][0]["id"] == before["activeapps"][0]["id"]
    assert "Took over log at" in second.process.log()
    kill_executors(worker)
    assert application.answer() == ANSWER


def test_a_paused_master_that_was_overtaken_stops(cluster: Cluster, zookeeper: ZooKeeper) -> None:
    settings = {
        "spark.quickpickle.recovery.engine": "zookeeper",
        "spark.deploy.zookeeper.url": zookeeper.address,
        "spark.quickpickle.recovery.sessionTimeout": "2000",
    }
    first = Master(cluster, settings, "first")
    first.wait_for("ALIVE")
    second = Master(cluster, settings, "second")
    second.wait_for("STANDBY")
    # Longer than its session: the servers give its lock away, and it does not know.
    first.process.send(signal.SIGSTOP)
    second.wait_for("ALIVE")
    first.process.send(signal.SIGCONT)
    assert first.process.wait() == 75
    assert "Another master took over zookeeper at" in first.process.log()
    assert second.state()["status"] == "ALIVE"


def test_the_lines_of_spark_conf_are_all_a_master_needs(cluster: Cluster) -> None:
    directory = cluster.directory / "store"
    command = [sys.executable, "-m", "quickpickle", "recovery", "spark-conf", "--env", "--serializer", "kryo"]
    lines = subprocess.check_output([*command, str(directory)], text=True)
    # What this file exports goes over what the process was given.
    (cluster.directory / "conf" / "spark-env.sh").write_text(lines)
    master = Master(cluster, {"spark.deploy.recoveryMode": "NONE"})
    master.wait_for("ALIVE")
    master.process.says(f"This master leads: it holds log at {directory}")


def test_settings_that_make_no_sense_leave_no_leaderless_master(cluster: Cluster) -> None:
    settings = {
        "spark.deploy.recoveryDirectory": str(cluster.directory / "store"),
        "spark.quickpickle.recovery.sync": "sometimes",
    }
    master = Master(cluster, settings)
    assert master.process.wait() == 78
    assert '"sometimes" is not a durability level' in master.process.log()


@pytest.fixture
def ram_disk(tmp_path: Path) -> Iterator[Path]:
    """A RAM disk of one mebibyte."""
    directory = tmp_path / "disk"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(directory)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"cannot mount a RAM disk: {error}")
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a RAM disk: {mounted.stderr.strip()}")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all the space there is."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return path


def full_store(checks: Checks, disk: Path, sync: str, directory: Path) -> dict[str, str]:
    """Settings of a store that cannot take one more worker: its last page is used up, and the disk has no other."""
    store = {"spark.deploy.recoveryDirectory": str(disk / "store"), "spark.quickpickle.recovery.sync": sync}
    padded = checks("pad", directory, "3800", *properties(store))
    assert padded.returncode == 0, padded.stdout
    return store


def test_a_full_disk_ends_the_master(cluster: Cluster, checks: Checks, ram_disk: Path, tmp_path: Path) -> None:
    settings = full_store(checks, ram_disk, "always", tmp_path)
    fill(ram_disk)
    master = Master(cluster, settings)
    master.wait_for("ALIVE")
    worker = start_worker(cluster, [master])
    assert master.process.wait() == 74
    log = master.process.log()
    assert "Cannot store worker_" in log
    assert "No space left on device" in log
    assert "Ignoring error" not in log
    assert REGISTERED not in worker.log()


def test_a_full_disk_holds_the_master_up_until_there_is_space(
    cluster: Cluster, checks: Checks, ram_disk: Path, tmp_path: Path
) -> None:
    store = full_store(checks, ram_disk, "none", tmp_path)
    filler = fill(ram_disk)
    master = Master(cluster, {**store, "spark.quickpickle.recovery.onFailure": "retry"})
    master.wait_for("ALIVE")
    worker = start_worker(cluster, [master])
    master.process.says("(attempt 3); the master waits and tries again")
    time.sleep(1)
    assert master.process.running()
    assert REGISTERED not in worker.log()

    filler.unlink()
    worker.says(REGISTERED)
    (alive,) = master.wait_for("ALIVE", workers=1)["workers"]
    log = master.process.log()
    assert re.search(r"Could store worker_\S+ with attempt \d+", log), log[-3000:]
    assert "Ignoring error" not in log
    master.process.kill()
    stored, _ = entries(checks, tmp_path, store)
    assert set(stored) == {"padding", f"worker_{alive['id']}"}
