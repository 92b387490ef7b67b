"""An unmodified PySpark, faster: its driver and workers pickle with quickpickle.

    python -m quickpickle spark enable      # every Python process of this environment that imports PySpark
    quickpickle.spark.check(spark)          # which of a session's processes that reaches

or, by code, in this process and, with ``workers=True``, those started from it::

    import quickpickle.spark
    quickpickle.spark.install(workers=True)

Nothing of PySpark's files is changed: its methods are replaced in place when its modules are imported, and put back
by ``uninstall``. See ``docs/spark.md``.

Left to others: ``patching`` replaces; ``serializers``, ``state`` and ``flushing`` hold what replaces; ``versions``
knows PySpark's versions, ``environment`` enables an environment, ``checking`` looks at a session's processes. What must
stay true: importing this package changes nothing and imports neither PySpark nor much else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quickpickle.spark.checking import Process as Process
    from quickpickle.spark.checking import Report as Report
    from quickpickle.spark.checking import check as check
    from quickpickle.spark.environment import disable as disable
    from quickpickle.spark.environment import enable as enable
    from quickpickle.spark.environment import is_enabled as is_enabled
    from quickpickle.spark.installing import Status as Status
    from quickpickle.spark.installing import install as install
    from quickpickle.spark.installing import status as status
    from quickpickle.spark.installing import uninstall as uninstall
    from quickpickle.spark.settings import conf as conf
    from quickpickle.spark.settings import session as session

_HOMES = {
    "Process": "checking",
    "Report": "checking",
    "Status": "installing",
    "check": "checking",
    "conf": "settings",
    "disable": "environment",
    "enable": "environment",
    "install": "installing",
    "is_enabled": "environment",
    "session": "settings",
    "status": "installing",
    "uninstall": "installing",
}

__all__ = [
    "Process",
    "Report",
    "Status",
    "check",
    "conf",
    "disable",
    "enable",
    "install",
    "is_enabled",
    "session",
    "status",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    """What is imported only when it is asked for: workers need none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
