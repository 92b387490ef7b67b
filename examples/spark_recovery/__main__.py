"""Kill a real Spark master while a job runs, and see it come back: ``make demo-recovery``.

``python -m spark_recovery LIBRARY`` in the folder examples, with an interpreter that has PySpark; LIBRARY is the folder
with the jar. Exits with an error if worker, application or answer are not what they should be.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from spark_recovery.cluster import ANSWER, Application, Cluster, Master, executors, start_worker, wait_until

BEGAN = time.monotonic()


def tell(text: str) -> None:
    """A line with the seconds since the start."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


def more(text: str) -> None:
    """A line that belongs to the one before."""
    print(f"{'':10}{text}", flush=True)


def kept(store: Path) -> str:
    """What is in the store's directory."""
    files = sorted(path for path in store.iterdir() if path.suffix == ".qlog")
    return ", ".join(f"{path.name} ({path.stat().st_size:,} bytes)" for path in files)


def check(found: object, wanted: object, what: str) -> None:
    """End the demo if something is not as it should be."""
    if found != wanted:
        raise SystemExit(f"{what} is {found!r} and should be {wanted!r}")


def main(library: Path) -> None:
    """Run it."""
    with (
        tempfile.TemporaryDirectory(prefix="spark-recovery-") as directory,
        Cluster(Path(sys.executable), library, Path(directory)) as cluster,
    ):
        store = Path(directory) / "store"
        settings = {
            "spark.deploy.recoveryDirectory": str(store),
            "spark.quickpickle.recovery.serializer": "kryo",
        }
        tell("starting a Spark master whose state is kept in a quickpickle log, and a worker")
        master = Master(cluster, settings)
        for key, value in master.settings.items():
            if "ecover" in key:
                more(f"{key}={value.replace(directory, '...')}")
        master.wait_for("ALIVE")
        worker = start_worker(cluster, [master])
        master.wait_for("ALIVE", workers=1)
        tell(f"master (process {master.process.pid}) and worker are up; starting a job")
        job = Application(cluster, [master])
        job.wait_for_task()
        before = master.wait_for("ALIVE", workers=1, apps=1)
        worker_id, job_id = before["workers"][0]["id"], before["activeapps"][0]["id"]
        (executor,) = executors(worker)
        tell(f"the job runs: {job_id} on {worker_id}")
        more(f"the master's state: {kept(store)}")

        tell(f"kill -9 {master.process.pid}: the master is gone; its last words:")
        master.process.kill()
        more(master.process.log().strip().splitlines()[-1][:110])
        tell("starting it again")
        master.start()
        after = master.wait_for("ALIVE", workers=1, apps=1)
        tell(f"master (process {master.process.pid}) is up, and has both back:")
        telling = ("is open with", "elected leader", "Trying to recover", "Recovery complete")
        for line in master.process.log().splitlines():
            if any(words in line for words in telling):
                more(line.split(" INFO ", 1)[-1].replace(directory, "...")[:110])
        check(after["workers"][0]["id"], worker_id, "the worker")
        check(after["activeapps"][0]["id"], job_id, "the application")

        tell(f"kill -9 {executor}: the job's only executor is gone; does the new master give it another?")
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: [pid for pid in executors(worker) if pid != executor], "a new executor")
        tell("it does; letting the job's tasks go on")
        answer = job.answer()
        check(answer, ANSWER, "the answer")
        tell(f"the job ends with the right answer: {answer:,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
