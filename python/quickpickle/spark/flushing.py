"""A worker's streams where output is to be sent in time: large buffers, and none held back for long.

Spark's JVM reads a worker's output until a buffer of its own is full, of the size that the setting
``spark.sql.execution.pandas.udf.buffer.size`` gives, and passes that size on to the worker as ``SPARK_BUFFER_SIZE``.
Small batches wait there, unless that setting is small; but then a worker's own buffers are as small, and each of its
writes is a call of the kernel. So where the setting is small, the worker gets buffers of 64 KiB for itself, and a
writer (``crates/quickpickle-python/src/spark/writer.rs``) that sends what it holds after some milliseconds.

Left to others: making the setting (``settings``). What must stay true: streams that are not those of a worker's socket
stay as they are; no thread exists before a worker writes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from quickpickle import _native

__all__ = ["INTERVAL", "timely_main"]

#: Milliseconds that output waits at most; an environment variable of workers.
INTERVAL: Final = "QUICKPICKLE_SPARK_FLUSH_MS"
# Below this, the setting was made small on purpose.
_SMALL: Final = 1024
_SIZE: Final = 65_536


def timely_main(stock: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    """``pyspark.worker.main``."""
    prepared = _prepared

    def main(infile: Any, outfile: Any) -> Any:
        streams = prepared(infile, outfile)
        if streams is None:
            return stock(infile, outfile)
        reader, writer = streams
        try:
            return stock(reader, writer)
        finally:
            # The descriptors are the caller's.
            writer.close()

    return main


class _Output(io.BufferedIOBase):
    """The native writer, as a stream that other code takes for one."""

    def __init__(self, descriptor: int, interval: float) -> None:
        self._writer = _native.TimelyWriter(descriptor, _SIZE, interval)
        self._descriptor = descriptor
        self.write = self._writer.write  # type: ignore[method-assign]
        self.flush = self._writer.flush  # type: ignore[method-assign]

    def close(self) -> None:
        if not self.closed:
            try:
                self._writer.close()
            finally:
                super().close()

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True


def _prepared(infile: Any, outfile: Any) -> tuple[io.BufferedReader, _Output] | None:
    """Streams in the place of a worker's own; None where those are to stay."""
    try:
        small = int(os.environ.get("SPARK_BUFFER_SIZE", _SIZE)) < _SMALL
        if not small or type(infile) is not io.BufferedReader or type(outfile) is not io.BufferedWriter:
            return None
        interval = float(os.environ.get(INTERVAL, "10")) / 1000
        if interval <= 0:
            return None
        outfile.flush()
        output = _Output(outfile.fileno(), interval)
        return io.BufferedReader(_Input(_held(infile), infile.raw), _SIZE), output
    except (OSError, ValueError):
        return None


class _Input(io.RawIOBase):
    """What a stream held, then what comes after it."""

    def __init__(self, held: bytes, rest: Any) -> None:
        self._held = held
        self._rest = rest

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        number: int = self._rest.fileno()
        return number

    def readinto(self, buffer: Any, /) -> int | None:
        if self._held:
            count = min(len(buffer), len(self._held))
            buffer[:count], self._held = self._held[:count], self._held[count:]
            return count
        found: int | None = self._rest.readinto(buffer)
        return found


def _held(stream: io.BufferedReader) -> bytes:
    """What has been read that nobody has asked for yet, without waiting for more."""
    descriptor = stream.fileno()
    os.set_blocking(descriptor, False)
    try:
        # Reads if it holds nothing; what that finds is held from then on.
        return stream.read(len(stream.peek(1)))
    finally:
        os.set_blocking(descriptor, True)
