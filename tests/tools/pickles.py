"""Pickles for the tools' tests: the golden ones, random values, and damaged copies of both."""

from __future__ import annotations

import functools
import pickle
import random

from tests.format.test_listing import GOLDEN, damaged, generated


@functools.cache
def golden() -> list[bytes]:
    """Every golden pickle, sound or not."""
    found = [path.read_bytes() for path in sorted(GOLDEN.glob("*/*.pickle"))]
    assert len(found) > 300
    return found


@functools.cache
def sound() -> list[bytes]:
    """Pickles of random values in all protocols, and a few with sharing and large parts."""
    shared: list[object] = [["x"] * 3, {"k": ("v", 1)}]
    large = [b"b" * 70_000, "s" * 66_000, shared, shared, list(range(5000)), {str(i): i for i in range(3000)}]
    loop: list[object] = [1]
    loop.append(loop)
    made = [pickle.dumps(value, protocol) for value in (shared, large, loop, (loop, loop)) for protocol in range(6)]
    return generated(600) + made


@functools.cache
def broken() -> list[bytes]:
    """Damaged ones."""
    return damaged(3000)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One byte changed."""
    copy = bytearray(data)
    copy[rng.randrange(len(copy))] = rng.randrange(256)
    return bytes(copy)
