"""The job that is under way while its master is killed: `job.py MASTER-URL DIRECTORY`.

Adds up squares in a few tasks on one core. Each task leaves a file when it starts and waits for the file `go`, so the
job ends when it is let, and only with executors that a master gave it.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark import SparkConf, SparkContext

NUMBERS = 20_000
TASKS = 4


def main(url: str, directory: Path) -> None:
    """Run the job and print its answer."""
    conf = SparkConf().setMaster(url).setAppName("sum of squares")
    conf.set("spark.cores.max", "1").set("spark.ui.enabled", "false")
    conf.set("spark.driver.memory", "512m").set("spark.executor.memory", "512m")
    for process in ("driver", "executor"):
        conf.set(f"spark.{process}.extraJavaOptions", "-XX:TieredStopAtLevel=1")

    def squares(part: int, numbers: Iterable[int]) -> Iterator[int]:
        (directory / f"task-{part}").touch()
        deadline = time.monotonic() + 300
        while not (directory / "go").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("nobody said go")
            time.sleep(0.05)
        return (number * number for number in numbers)

    with SparkContext(conf=conf) as context:
        answer = context.parallelize(range(NUMBERS), TASKS).mapPartitionsWithIndex(squares).sum()
    print(f"ANSWER {answer}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
