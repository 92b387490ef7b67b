"""What tools are given, and the error for what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import Final, TypeAlias

__all__ = ["Data", "MalformedPickle", "guess", "located"]

Data: TypeAlias = bytes | bytearray | memoryview | mmap
"""What tools read: anything in memory, or a file mapped there."""

# First bytes of what is often taken for a pickle.
_SIGNATURES: Final = (
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x04\x22\x4d\x18", "lz4 data"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"version https://git-lfs", "a Git LFS pointer: fetch the file itself with 'git lfs pull'"),
    (b"<!DOCTYPE", "HTML"),
    (b"<!doctype", "HTML"),
    (b"<html", "HTML"),
    (b"{", "JSON"),
)


class MalformedPickle(ValueError):
    """A pickle that cannot be read to its end. ``offset`` is the byte at which reading stopped."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.message} (byte {self.offset})"


@contextmanager
def located() -> Iterator[None]:
    """Give the extension's ``ValueError(message, offset)`` its class."""
    try:
        yield
    except ValueError as error:
        match error.args:
            case (str(message), int(offset)):
                raise MalformedPickle(message, offset) from None
        raise


def guess(data: Data) -> str | None:
    """What bytes that are no pickle may be instead."""
    start = bytes(memoryview(data)[:64])
    if not start:
        return "empty"
    return next((what for signature, what in _SIGNATURES if start.startswith(signature)), None)
