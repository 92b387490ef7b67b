"""Files that hold other files: what they are by their first bytes, never by their names, and what is inside.

Each reader here yields ``(name, content)``. What cannot be looked into raises :class:`Opaque`, which says why; nobody
takes that for harmless.
"""

from __future__ import annotations

import ast
import bz2
import importlib
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

from quickpickle.tools import _zip

__all__ = ["Opaque", "inside"]

_Content: TypeAlias = bytes | memoryview
_Reader: TypeAlias = Callable[[memoryview, int], Iterator[tuple[str, _Content]]]


class Opaque(Exception):
    """Content that cannot be looked into."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: Any, max_length: int = ...) -> bytes: ...


def inside(data: memoryview, most: int) -> list[tuple[str, Iterator[tuple[str, _Content]]]]:
    """Every kind of container that this may be taken for, with what is inside.

    Args:
        data: the bytes.
        most: the largest number of bytes that a compressed member may grow to.
    """
    start = bytes(data[:512])
    return [(kind, read(data, most)) for kind, is_one, read in _KINDS if is_one(start, data)]


def _zip_members(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
    for member in _zip.members(data):
        try:
            for content in _zip.content(data, member, most):
                yield member.name, content
        except _zip.TooLarge:
            raise Opaque(f"{member.name} grows beyond {most} bytes") from None


def _tar_members(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is not None:
                    yield member.name, file.read()
    except (tarfile.TarError, OSError, ValueError) as error:
        raise Opaque(f"a tar archive that cannot be read to its end: {error}") from error


def _decompressed(make: Callable[[], _Decompressor]) -> _Reader:
    def read(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
        made, at, decompressor = bytearray(), 0, make()
        try:
            while at < len(data):
                if decompressor.eof:
                    break
                made += decompressor.decompress(data[at : at + (1 << 20)], most + 1 - len(made))
                at += 1 << 20
                if len(made) > most:
                    raise Opaque(f"it grows beyond {most} bytes")
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            # What comes out before the damage is what a loader would have seen too.
            if not made:
                raise Opaque(f"it cannot be decompressed: {error}") from error
        if not made and not decompressor.eof:
            raise Opaque("it ends before anything comes out")
        yield "", bytes(made)

    return read


def _optional(module: str, name: str) -> Callable[[], _Decompressor]:
    def make() -> _Decompressor:
        try:
            made: _Decompressor = getattr(importlib.import_module(module), name)()
        except ImportError:
            raise Opaque(f"it needs the module {module}") from None
        return made

    return make


def _old_joblib(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
    # "ZF", the length in hexadecimal padded to 19 characters, and zlib's stream.
    return _decompressed(zlib.decompressobj)(data[21:], most)


def _npy(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
    wide = data[6] >= 2
    size = int.from_bytes(data[8 : 12 if wide else 10], "little")
    start = (12 if wide else 10) + size
    header = bytes(data[start - size : start]).decode("latin-1")
    try:
        described = str(ast.literal_eval(header.strip())["descr"])
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        described = "O"
    if "O" in described:
        yield "", data[start:]


def _refused(why: str) -> _Reader:
    def read(data: memoryview, most: int) -> Iterator[tuple[str, _Content]]:
        # Only once somebody asks for what is inside.
        yield from _raise(why)

    return read


def _raise(why: str) -> Iterator[tuple[str, _Content]]:
    raise Opaque(why)


def _begins(*signatures: bytes) -> Callable[[bytes, memoryview], bool]:
    return lambda start, data: start.startswith(signatures)


def _is_zlib(start: bytes, data: memoryview) -> bool:
    if len(start) < 8 or start[0] != 0x78 or (start[0] * 256 + start[1]) % 31:
        return False
    try:
        zlib.decompressobj().decompress(start, 64)
    except zlib.error:
        return False
    return True


def _gzip() -> _Decompressor:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


_KINDS: Final[tuple[tuple[str, Callable[[bytes, memoryview], bool], _Reader], ...]] = (
    ("zip archive", lambda start, data: _zip.is_zip(data), _zip_members),
    ("tar archive", lambda start, data: start[257:262] == b"ustar", _tar_members),
    ("gzip", _begins(b"\x1f\x8b"), _decompressed(_gzip)),
    ("zlib", _is_zlib, _decompressed(zlib.decompressobj)),
    ("bzip2", _begins(b"BZh"), _decompressed(bz2.BZ2Decompressor)),
    ("xz", _begins(b"\xfd7zXZ\x00"), _decompressed(lzma.LZMADecompressor)),
    (
        "lzma",
        _begins(b"\x5d\x00\x00"),
        _decompressed(lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    ),
    ("lz4", _begins(b"\x04\x22\x4d\x18"), _decompressed(_optional("lz4.frame", "LZ4FrameDecompressor"))),
    ("zstd", _begins(b"\x28\xb5\x2f\xfd"), _decompressed(_optional("compression.zstd", "ZstdDecompressor"))),
    ("joblib's old compression", _begins(b"ZF0x"), _old_joblib),
    ("NumPy array", _begins(b"\x93NUMPY"), _npy),
    ("7z archive", _begins(b"7z\xbc\xaf\x27\x1c"), _refused("7z archives cannot be looked into")),
    ("rar archive", _begins(b"Rar!\x1a\x07"), _refused("rar archives cannot be looked into")),
)
