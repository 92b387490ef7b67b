"""A crash-safe store for what must not be forgotten: objects under names, on disk or on ZooKeeper.

    from quickpickle import recovery

    with recovery.open("/var/lib/coordinator") as store:
        store["worker_1"] = {"host": "10.0.0.7", "cores": 16}
        for name, worker in store.items("worker_"):
            ...

Once an assignment has returned, the object is on the device: it survives the process, the kernel and the power.
Nothing is lost silently: an incomplete last write is dropped and reported, damage anywhere else is found, put aside and
reported, and after a failed write no later one succeeds until the store is opened again or revived.

Opening a store with ``serializer="pickle"`` (the default) and reading from it runs what its pickles say. Open
directories you do not trust with ``serializer="bytes"`` or ``"json"``.

Left to others: the engines, which are in Rust, and ``quickpickle recovery`` on the command line. What must stay true:
``import quickpickle`` does not import this package.
"""

from quickpickle.recovery.errors import (
    ClosedError,
    CodecError,
    ConfigError,
    CorruptError,
    FencedError,
    FullError,
    LockedError,
    PoisonedError,
    ReadOnlyError,
    RecoveryError,
    TooLargeError,
    UnavailableError,
    VersionError,
)
from quickpickle.recovery.reports import Compaction, Damage, Entry, Report, Stats
from quickpickle.recovery.serializers import Serializer
from quickpickle.recovery.store import Store, open  # noqa: A004 -- as in gzip and shelve

__all__ = [
    "ClosedError",
    "CodecError",
    "Compaction",
    "ConfigError",
    "CorruptError",
    "Damage",
    "Entry",
    "FencedError",
    "FullError",
    "LockedError",
    "PoisonedError",
    "ReadOnlyError",
    "RecoveryError",
    "Report",
    "Serializer",
    "Stats",
    "Store",
    "TooLargeError",
    "UnavailableError",
    "VersionError",
    "open",
]
