"""A long fuzzer of the Unpickler: mutated pickles and random programs, globals limited to an allowed list.

    python -m tests.fuzz.unpickler --minutes 30 --seed 1 [--compare] [--replay FILE]

Meant for a build with debug assertions (``maturin develop --profile checked``). Each input goes to loads-like and
stream-like readers; with ``--compare`` (the default) the C unpickler loads it as well and outcomes must agree. The process
writes each input to a journal before it loads it, so after a crash the last line of the journal is the find; memory is
capped, and an input that takes more than ten seconds of the processor's time ends the process. (Not under PYTHONDEVMODE:
the C unpickler allocates what a length says, and the debugging allocator fills it.)
"""

from __future__ import annotations

import argparse
import collections
import gc
import importlib
import io
import os
import random
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests import programs
from tests.outcomes import Raised, outcome
from tests.pickle.test_cross_load import Trickle, WithPeek, WithReadInto
from tests.properties.test_programs import compare, seeds


class Journal:
    """The input at work, kept where it survives a crash; a slot in a file that is overwritten."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Replace what is there."""
        self._file.seek(0)
        self._file.write(len(data).to_bytes(8, "little") + data)

    @staticmethod
    def read(path: Path) -> bytes:
        """Return the input that was at work."""
        raw = path.read_bytes()
        return raw[8 : 8 + int.from_bytes(raw[:8], "little")]


def next_input(rng: random.Random, known: list[bytes]) -> bytes:
    """Choose one: mutations of a seed, of two spliced seeds, of a program, or a program as it is."""
    kind = rng.randrange(10)
    if kind < 4:
        return programs.mutate(rng, rng.choice(known))
    if kind < 6:
        a, b = rng.choice(known), rng.choice(known)
        return programs.mutate(rng, a[: rng.randrange(len(a) + 1)] + b[rng.randrange(len(b) + 1) :])
    if kind < 8:
        return programs.random_program(rng, 80)
    return programs.mutate(rng, programs.random_program(rng, 60))


def try_one(module: Any, data: bytes, with_reference: bool, rng: random.Random) -> str | None:
    """Load an input every way; return what is wrong, if anything is."""
    stream = rng.choice((io.BytesIO, Trickle, WithReadInto, WithPeek))
    result = outcome(lambda: programs.guarded(module)(stream(data)).load())
    if isinstance(result, Raised) and result.kind.__name__ in ("SystemError", "PanicException"):
        return str(result)
    return compare(module, data) if with_reference else None


def main() -> int:
    """Fuzz until time is up; exit 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", default=os.environ.get("QUICKPICKLE_OURS", "quickpickle"))
    parser.add_argument("--no-compare", action="store_true", help="do not load by the C unpickler as well")
    parser.add_argument("--journal", type=Path, default=Path("fuzz-journal.bin"))
    parser.add_argument("--replay", type=Path, help="load the input of a journal and stop")
    parser.add_argument("--gigabytes", type=float, default=1.5, help="cap on address space")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    module = importlib.import_module(options.module)
    rng = random.Random(options.seed)
    if options.replay:
        data = Journal.read(options.replay)
        print(repr(data))
        print(try_one(module, data, not options.no_compare, rng))
        return 0
    cap = int(options.gigabytes * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
    journal = Journal(options.journal)
    known = seeds()
    found: dict[str, bytes] = {}
    tried, end = 0, time.monotonic() + 60 * options.minutes
    counts: collections.Counter[str] = collections.Counter()
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # a hang ends the process, and the journal has its input
    while time.monotonic() < end:
        data = next_input(rng, known)
        journal.write(data)
        signal.setitimer(signal.ITIMER_VIRTUAL, 10)
        wrong = try_one(module, data, not options.no_compare, rng)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        tried += 1
        if wrong:
            key = wrong[:80]
            counts[key] += 1
            if key not in found or len(data) < len(found[key]):
                found[key] = data
        if tried % 20_000 == 0:
            gc.collect()
            print(f"{tried} inputs, {len(found)} kinds of difference", flush=True)
    print(f"{tried} inputs, seed {options.seed}, {len(found)} kinds of difference")
    for key, data in sorted(found.items(), key=lambda item: len(item[1])):
        print(f"{counts[key]}x {data!r}\n    {key}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
