"""Zip archives, read as loaders of models read them rather than as the standard library does.

Checks that one reader makes and another leaves out are where malicious members hide: flags that say "encrypted", wrong
checksums, sizes and methods that differ between a member and the directory, members the directory does not list. So
nothing is checked here: every place at which some reader could see a member is one, and its content is what
decompression yields.
"""

from __future__ import annotations

import bz2
import contextlib
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Member", "TooLarge", "content", "is_zip", "members"]

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_STORED, _DEFLATED, _BZIP2 = 0, 8, 12
# Members looked at in one archive.
_MEMBERS: Final = 200_000


class TooLarge(Exception):
    """More comes out than may."""


@dataclass(frozen=True)
class Member:
    """A place that some reader takes for a member."""

    name: str
    start: int
    """Where its bytes begin."""
    size: int
    """The largest number of bytes that any header gives it, 0 if none does."""
    methods: frozenset[int]
    """How it is compressed, by any header."""


def is_zip(data: memoryview) -> bool:
    """Whether some reader would take this for an archive: by its beginning or by its end."""
    return bytes(data[:4]) in (b"PK\x03\x04", b"PK\x05\x06") or _end_of(data) is not None


def members(data: memoryview) -> list[Member]:
    """Every member, by the directory and by what stands in the file."""
    found: dict[int, Member] = {}
    for member in _listed(data):
        found.setdefault(member.start, member)
        if len(found) >= _MEMBERS:
            break
    covered = sorted((member.start, member.start + member.size) for member in found.values())
    position = 0
    for match in re.finditer(rb"PK\x03\x04", data):
        at = match.start()
        while position < len(covered) and covered[position][1] <= at:
            position += 1
        if position < len(covered) and covered[position][0] <= at:
            continue  # inside a member that will be looked into as a whole
        unlisted = _local(data, at, 0, "", frozenset())
        if unlisted is not None:
            found.setdefault(unlisted.start, unlisted)
        if len(found) >= _MEMBERS:
            break
    return [found[start] for start in sorted(found)]


def content(data: memoryview, member: Member, most: int) -> Iterator[bytes | memoryview]:
    """What the member holds, in each way it can be read. TooLarge beyond ``most`` bytes."""
    raw = data[member.start :]
    if _DEFLATED in member.methods:
        yield from _inflated(raw, most)
    if _BZIP2 in member.methods:
        with contextlib.suppress(OSError):
            yield bz2.BZ2Decompressor().decompress(raw[: member.size or len(raw)], most)
    if member.methods - {_DEFLATED, _BZIP2}:
        yield raw[: member.size] if member.size else raw


def _inflated(raw: memoryview, most: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    made, at = bytearray(), 0
    try:
        while not inflate.eof and at < len(raw):
            made += inflate.decompress(raw[at : at + (1 << 20)], most + 1 - len(made))
            at += 1 << 20
            if len(made) > most:
                raise TooLarge
    except zlib.error:
        pass
    if made:
        yield bytes(made)


def _end_of(data: memoryview) -> int | None:
    """Where the end record is."""
    tail = bytes(data[-(65_535 + _END.size) :])
    at = tail.rfind(b"PK\x05\x06")
    return None if at < 0 or at + _END.size > len(tail) else len(data) - len(tail) + at


def _listed(data: memoryview) -> Iterator[Member]:
    end = _end_of(data)
    if end is None:
        return
    size, offset = _END.unpack_from(data, end)[5:7]
    bases = {0, end - size - offset}
    before = end - 20 - _END64.size
    if before >= 0 and bytes(data[before : before + 4]) == b"PK\x06\x06":
        size, offset = _END64.unpack_from(data, before)[8:10]
        bases.add(before - size - offset)
    for base in bases:
        at = base + offset
        while 0 <= at <= len(data) - _CENTRAL.size and bytes(data[at : at + 4]) == b"PK\x01\x02":
            fields = _CENTRAL.unpack_from(data, at)
            method, sizes, (name_size, extra_size, comment_size) = fields[4], fields[8:10], fields[10:13]
            name_at = at + _CENTRAL.size
            name = bytes(data[name_at : name_at + name_size]).decode("utf-8", "replace")
            extra = bytes(data[name_at + name_size : name_at + name_size + extra_size])
            largest, local_at = _wide(extra, sizes, fields[16])
            member = _local(data, base + local_at, largest, name, frozenset({method}))
            if member is not None:
                yield member
            at = name_at + name_size + extra_size + comment_size


def _wide(extra: bytes, sizes: tuple[int, ...], offset: int) -> tuple[int, int]:
    """Sizes and offset with what the zip64 field says in their place."""
    at, wide = 0, b""
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
            break
        at += 4 + length
    values = list(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
    # In the order of the format: uncompressed, compressed, offset; only those that do not fit above.
    known = [values.pop(0) if size == 0xFFFFFFFF and values else size for size in reversed(sizes)]
    if offset == 0xFFFFFFFF and values:
        offset = values.pop(0)
    return max(known), offset


def _local(data: memoryview, at: int, size: int, name: str, methods: frozenset[int]) -> Member | None:
    """The member whose own header is at a place."""
    if not 0 <= at <= len(data) - _LOCAL.size or bytes(data[at : at + 2]) != b"PK":
        return None
    fields = _LOCAL.unpack_from(data, at)
    name_size, extra_size = fields[9], fields[10]
    name_at = at + _LOCAL.size
    own = bytes(data[name_at : name_at + name_size]).decode("utf-8", "replace")
    start = name_at + name_size + extra_size
    sizes = [size, *(length for length in fields[7:9] if length != 0xFFFFFFFF)]
    return Member(name or own, start, min(max(sizes), len(data) - start), methods | {fields[3]})
