"""Time two pickle modules on one object, and check that they agree on it.

Both are timed in one process, in turns, so that a busy machine slows both alike; the order within a
turn alternates. Times are wall-clock seconds per call. The cyclic garbage collector stays on, as it
is in the programs that pickle such things.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

LEAST_ROUNDS = 9
MOST_ROUNDS = 300
SECONDS = 2.0


class DisagreementError(AssertionError):
    """The two modules differ in bytes, or an object did not survive the journey."""


@dataclass
class Times:
    """What one module needed for one operation, a figure for each round."""

    seconds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The quickest round: what the code costs when nothing disturbs it."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle round: what to expect on this machine as it is."""
        return statistics.median(self.seconds)


@dataclass
class Result:
    """Times of both modules for both operations, and the size of the pickle in bytes."""

    size: int
    dumps: tuple[Times, Times]
    loads: tuple[Times, Times]


def check(reference: ModuleType, ours: ModuleType, obj: Any, same: Callable[[Any, Any], bool]) -> None:
    """Raise DisagreementError unless the bytes are equal and each module reads both.

    All protocols are tried. ``same`` says whether a loaded object equals the original.
    """
    for protocol in range(reference.HIGHEST_PROTOCOL + 1):
        expected = reference.dumps(obj, protocol)
        written = ours.dumps(obj, protocol)
        if written != expected:
            raise DisagreementError(f"protocol {protocol}: the bytes differ")
        for reader in (reference, ours):
            if not same(reader.loads(written), obj):
                raise DisagreementError(f"protocol {protocol}: {reader.__name__} loads it wrong")


def in_turns(first: Callable[[], object], second: Callable[[], object]) -> tuple[Times, Times]:
    """Time two callables in turns for about SECONDS, LEAST_ROUNDS each at least."""
    times = (Times(), Times())
    contestants = [(first, times[0]), (second, times[1])]
    gc.collect()
    start = time.perf_counter()
    for turn in range(MOST_ROUNDS):
        for call, record in contestants if turn % 2 else reversed(contestants):
            before = time.perf_counter()
            answer = call()
            record.seconds.append(time.perf_counter() - before)
            del answer  # freeing it is not part of the time
        if turn + 1 >= LEAST_ROUNDS and time.perf_counter() - start > SECONDS:
            break
    return times


def compare(reference: ModuleType, ours: ModuleType, obj: Any, same: Callable[[Any, Any], bool]) -> Result:
    """Check and time both modules on ``obj`` with their default protocol."""
    check(reference, ours, obj, same)
    data = reference.dumps(obj)
    return Result(
        size=len(data),
        dumps=in_turns(lambda: reference.dumps(obj), lambda: ours.dumps(obj)),
        loads=in_turns(lambda: reference.loads(data), lambda: ours.loads(data)),
    )


def compare_out_of_band(reference: ModuleType, ours: ModuleType, obj: Any, same: Callable[[Any, Any], bool]) -> Result:
    """The same with protocol 5 and the object's buffers kept out of the pickle (PEP 574)."""

    def dump(module: ModuleType) -> tuple[bytes, list[Any]]:
        buffers: list[Any] = []
        data = module.dumps(obj, protocol=5, buffer_callback=buffers.append)
        return data, buffers

    data, buffers = dump(reference)
    written, our_buffers = dump(ours)
    if written != data or [bytes(b) for b in our_buffers] != [bytes(b) for b in buffers]:
        raise DisagreementError("out of band: the bytes differ")
    for reader in (reference, ours):
        if not same(reader.loads(data, buffers=our_buffers), obj):
            raise DisagreementError(f"out of band: {reader.__name__} loads it wrong")
    return Result(
        size=len(data),
        dumps=in_turns(lambda: dump(reference), lambda: dump(ours)),
        loads=in_turns(
            lambda: reference.loads(data, buffers=buffers),
            lambda: ours.loads(data, buffers=buffers),
        ),
    )
