"""Numbers, strings and bytes on both sides of every opcode boundary."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterator
from typing import Any

INT_EDGES = [
    *(0, 1, 2, 10, 127, 128, 254, 255, 256, 257, 32767, 32768, 65534, 65535, 65536, 65537),
    *(2**24, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64),
    *(2**127, 2**128, 10**18, 10**19, 10**40, 10**400, 10**4000),
    # LONG1 holds up to 255 bytes of two's complement, LONG4 takes over from there.
    *(2 ** (8 * 254 - 1) - 1, 2 ** (8 * 254 - 1), 2 ** (8 * 255 - 1) - 1, 2 ** (8 * 255 - 1)),
    *(2 ** (8 * 255), 2 ** (8 * 256), 2 ** (15 * 7), 2 ** (30 * 5), 2 ** (30 * 5) - 1),
]
LENGTHS = (0, 1, 2, 3, 7, 8, 253, 254, 255, 256, 257, 511, 65534, 65535, 65536, 65537)


def values() -> Iterator[tuple[str, Any]]:
    """Yield the atoms."""
    yield from (("none", None), ("true", True), ("false", False))
    yield from (("ellipsis", ...), ("notimplemented", NotImplemented))
    for n in INT_EDGES:
        label = str(n) if abs(n) < 10**20 else f"{n.bit_length()}bits"
        yield f"int {label}", n
        yield f"int -{label}", -n
        yield f"int -{label}-1", -n - 1
    yield from _floats()
    yield "complex", complex(1.5, -0.0)
    yield "complex nan", complex(math.nan, math.inf)
    yield from _strings()
    yield from _bytes()


def _floats() -> Iterator[tuple[str, Any]]:
    for f in (0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 1e22, 1e23, 123456789.125, 1e-7, 1e16, 1e17):
        yield f"float {f!r}", f
    for f in (sys.float_info.max, sys.float_info.min, 5e-324, math.pi, math.inf, -math.inf, math.nan):
        yield f"float {f!r}", f
    yield "float nan payload", struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\x7f")[0]
    yield "float -nan", struct.unpack("<d", b"\x00\x00\x00\x00\x00\x00\xf8\xff")[0]


def _strings() -> Iterator[tuple[str, Any]]:
    for n in LENGTHS:
        yield f"str ascii {n}", "a" * n
        yield f"str latin1 {n}", "\xe9" * (n // 2) + "x" * (n % 2)
        yield f"str bmp {n}", "\u4e2d" * (n // 3) + "y" * (n % 3)
        yield f"str astral {n}", "\U0001f40d" * (n // 4) + "z" * (n % 4)
    for s in (
        *("\n", "\\", "\\u0041", "\\\\", "\r\n", "\0", "\x1a", "a\nb\\c\r\0\x1a", "\x7f\x80\xff"),
        *("\u0100", "\u2028", "\ufeff", "\uffff", "\U00010000", "\U0010ffff", "tab\t'\"quotes"),
        *("\ud800", "\udfff", "a\udc80b", "\ud83d\ude00", "mixed \xe9 \u4e2d \U0001f40d \udcff"),
    ):
        yield f"str {s!a}", s
    yield "str every latin1", "".join(map(chr, range(256)))
    yield "str every block", "".join(map(chr, range(0, 0x110000, 257)))


def _bytes() -> Iterator[tuple[str, Any]]:
    for n in LENGTHS:
        yield f"bytes {n}", bytes(i & 255 for i in range(n))
        yield f"bytearray {n}", bytearray(i & 255 for i in range(n))
    for n in (65500, 70000, 131072, 200_000):
        yield f"bytes {n}", b"\xab" * n
        yield f"bytearray {n}", bytearray(b"\xcd" * n)
        yield f"str {n}", "s" * n
    yield "bytes ascii", b"plain ascii"
    yield "bytes every", bytes(range(256))
