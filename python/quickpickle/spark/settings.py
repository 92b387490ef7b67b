"""The settings of a session that help, and a session that has them.

Left to others: what they switch on. What must stay true: settings that the user has made are kept.
"""

from __future__ import annotations

from typing import Any

from quickpickle.spark import environment
from quickpickle.spark.installing import SITE, install

__all__ = ["conf", "session"]


def conf(*, workers: bool = True, timely: bool = False) -> dict[str, str]:
    """Settings of Spark that go with quickpickle, for ``SparkConf`` or ``--conf``.

    workers: executors start Python with us, where their Python finds quickpickle in the same folder as here. This
        reaches task workers only; ``quickpickle spark enable`` in their environment reaches all.
    timely: small batches are handed on at once instead of waiting until a buffer is full: for slow functions after one
        another, and for streams. The setting may be made in a session too. It is small for the JVM, which waits for
        whole buffers; workers that have quickpickle take buffers of 64 KiB for themselves.
    """
    found: dict[str, str] = {}
    if workers:
        found |= {"spark.executorEnv.PYTHONPATH": SITE, f"spark.executorEnv.{environment.VARIABLE}": "1"}
    if timely:
        found["spark.sql.execution.pandas.udf.buffer.size"] = "4"
    return found


def session(builder: Any, *, workers: bool = True, timely: bool = False) -> Any:
    """``builder.getOrCreate()`` with quickpickle here and in the workers that this process can reach.

    builder: ``SparkSession.builder``, with what you have set; settings that you have made win. With a Spark Connect
        builder only this process is changed: the server's environment is its own.
    workers, timely: as for :func:`conf`.
    """
    install(workers=workers)
    options = getattr(builder, "_options", {})
    remote = "spark.remote" in options or "spark.api.mode" in options
    for key, value in ({} if remote else conf(workers=workers, timely=timely)).items():
        if key not in options:
            builder = builder.config(key, value)
    return builder.getOrCreate()
