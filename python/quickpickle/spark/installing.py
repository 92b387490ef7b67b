"""Installing by code, and what is installed.

Left to others: the replacing itself (``patching``), and whole environments (``environment``). What must stay true:
``uninstall`` leaves PySpark and this process's environment variables as they were before ``install``.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from typing import Any, Final

import quickpickle
from quickpickle.spark import environment, patching

__all__ = ["SITE", "Status", "install", "status", "uninstall"]

#: A folder for ``PYTHONPATH`` whose ``sitecustomize`` starts us where the environment variable says so.
SITE: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_standin_site")

_before: dict[str, str | None] = {}


@dataclass(frozen=True)
class Status:
    """What :func:`status` found in this process and its environment."""

    enabled: bool
    """Whether Python processes of this environment start with it."""
    installed: bool
    """Whether this process has it: PySpark's methods are replaced, or will be as it is imported."""
    workers: bool
    """Whether processes started from this one have it by an environment variable."""
    python: str
    """Version of Python."""
    pyspark: str | None
    """Version of PySpark, None if it is not imported."""
    quickpickle: str
    """Version of quickpickle."""
    parts: dict[str, str]
    """Each replaced function of PySpark: ``"quickpickle"``, or why not."""

    def as_dict(self) -> dict[str, Any]:
        """The same as a dict for JSON."""
        return asdict(self)


def install(*, workers: bool = False) -> Status:
    """Have PySpark pickle with quickpickle in this process, from now on.

    workers: Python processes that are started from this one, by way of the JVM or not, do the same, through
        ``PYTHONPATH`` and ``QUICKPICKLE_SPARK``. That reaches all workers of ``local[n]``, if no JVM runs yet; workers
        of a cluster get it with :func:`quickpickle.spark.conf` or, all of them, from ``quickpickle spark enable``.

    Returns what is installed. What an unknown version of PySpark has changed stays its own, with one
    ``RuntimeWarning`` each.
    """
    patching.start()
    if workers and not _before:
        path = os.environ.get("PYTHONPATH")
        _set("PYTHONPATH", os.pathsep.join([SITE, path] if path else [SITE]))
        _set(environment.VARIABLE, "1")
    return status()


def uninstall() -> None:
    """Put PySpark's own methods and the environment variables back; twice is fine."""
    patching.stop()
    while _before:
        name, value = _before.popitem()
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def status() -> Status:
    """What is installed here."""
    return Status(
        enabled=environment.is_enabled(),
        installed=patching.started(),
        workers=environment.variable() is True and SITE in os.environ.get("PYTHONPATH", "").split(os.pathsep),
        python=platform.python_version(),
        pyspark=patching.pyspark_version(),
        quickpickle=quickpickle.__version__,
        parts=patching.parts(),
    )


def _set(name: str, value: str) -> None:
    _before[name] = os.environ.get(name)
    os.environ[name] = value
