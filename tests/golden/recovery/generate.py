"""Writes a folder of recovery stores as Python programs leave them, for a new version of their format.

``python -m tests.golden.recovery.generate tests/golden/recovery/format_N``. Folders that are there are never written
anew: they are what earlier releases wrote, and must keep loading.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

from quickpickle import recovery


class Reversed:
    """A serialiser of the user's own."""

    serializer_name = "reversed"

    def dumps(self, obj: Any, /) -> bytes:
        """The text backwards."""
        return str(obj)[::-1].encode()

    def loads(self, data: bytes, /) -> Any:
        """The text forwards."""
        return data.decode()[::-1]


SHARED = ["one", "list"]
#: What each serialiser wrote, in every store of a folder.
WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "pickle": (
        "pickle",
        {
            "worker_1": {"host": "10.0.0.1", "cores": 8, "started": datetime.datetime(2026, 11, 30, 12, 0)},
            "worker_2": {"host": "10.0.0.2", "cores": None, "big": 2**100, "floats": (0.1, float("inf"))},
            "shared": (SHARED, SHARED),
            "Ünïcode 🦀/../\0": {frozenset({1, 2}), "set"},
        },
    ),
    "json": ("json", {"lease_1": {"owner": "Ünï", "until": 1.5, "tags": [None, True]}, "": "the empty name"}),
    "bytes": ("bytes", {"raw": bytes(range(256)), "n" * 300: b"", "shrinks": b"text again and again " * 100}),
    "reversed": (Reversed(), {"own": "a serialiser of one's own"}),
}
EXPECTED = {name: value for _, values in WRITTEN.values() for name, value in values.items()}
STORES = ("log", "log_lz4", "log_zstd", "file_system")


def write(folder: Path) -> None:
    """All stores of a folder: each value over an older one, some removed, half of the log compacted."""
    for store in STORES:
        engine, _, compression = store.partition("_") if store.startswith("log") else (store, "", "")
        for at, (serializer, values) in enumerate(WRITTEN.values()):
            with recovery.open(
                folder / store,
                engine=engine,  # type: ignore[arg-type]
                serializer=serializer,
                compression=compression or None,  # type: ignore[arg-type]
            ) as opened:
                if at == 0:
                    opened.update(gone={}, worker_1="older")
                opened.update(values)
                if at == 1:
                    opened.unpersist("gone")
                    opened.compact()
        (folder / store / "LOCK").unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
