"""The settings of a session that help, and a session that has them.

Left to others: what they switch on. What must stay true: settings that the user has made are kept.
"""

from __future__ import annotations

from typing import Any

from quickpickle.spark import environment
from quickpickle.spark.installing import SITE, install

__all__ = ["conf", "session"]


def conf(*, workers: bool = True) -> dict[str, str]:
    """Settings of Spark that go with quickpickle, for ``SparkConf`` or ``--conf``.

    workers: executors start Python with us, where their Python finds quickpickle in the same folder as here. This
        reaches task workers only; ``quickpickle spark enable`` in their environment reaches all.
    """
    if not workers:
        return {}
    return {"spark.executorEnv.PYTHONPATH": SITE, f"spark.executorEnv.{environment.VARIABLE}": "1"}


def session(builder: Any, *, workers: bool = True) -> Any:
    """``builder.getOrCreate()`` with quickpickle here and in the workers that this process can reach.

    builder: ``SparkSession.builder``, with what you have set; settings that you have made win. With a Spark Connect
        builder only this process is changed: the server's environment is its own.
    """
    install(workers=workers)
    options = getattr(builder, "_options", {})
    remote = "spark.remote" in options or "spark.api.mode" in options
    for key, value in ({} if remote else conf(workers=workers)).items():
        if key not in options:
            builder = builder.config(key, value)
    return builder.getOrCreate()
