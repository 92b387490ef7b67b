"""Mutated pickles and random programs: both unpicklers fail, or both give equal results.

What may differ is classified here and nowhere else: :func:`allowed`.
"""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests import corpus, programs
from tests.conftest import LONG
from tests.equality import Difference, assert_same_graph
from tests.outcomes import Raised, Returned, as_reference, frames_lie, little_memory, older_words, outcome

ROUNDS = 400_000 if LONG else 12_000


def allowed(mine: Raised | Returned, theirs: Raised | Returned, data: bytes) -> str | None:
    """Name the reason why outcomes may differ, or return None.

    - depth: the reference runs into the recursion limit where ours goes on.
    - memory: the reference allocates on the word of an index or a length.
    - frames: a frame that ends inside an operation.
    - words: older patch releases have one message for two faults.
    - self-hash: ours rebuilds objects whose hash needs state that comes later; the reference fails with AttributeError.
    """
    if frames_lie(data):
        return "frames"
    if older_words(mine, theirs):
        return "words"
    if isinstance(theirs, Raised):
        if theirs.kind is RecursionError:
            return "depth"
        if theirs.kind in (MemoryError, OverflowError) and isinstance(mine, (Raised, Returned)):
            return "memory"
        if theirs.kind is AttributeError and isinstance(mine, Returned):
            return "self-hash"
    return None


def compare(ours: ModuleType, data: bytes) -> str | None:
    """Load by both; return what is wrong, if anything is."""
    mine = outcome(lambda: programs.guarded(ours)(io.BytesIO(data)).load())
    theirs = outcome(lambda: programs.guarded(pickle)(io.BytesIO(data)).load())
    if isinstance(mine, Returned) and isinstance(theirs, Returned):
        try:
            assert_same_graph(mine.value, theirs.value)
        except Difference as difference:
            return None if allowed(mine, theirs, data) else str(difference)
        except RecursionError:
            pass
        return None
    if allowed(mine, theirs, data):
        return None
    if type(mine) is not type(theirs):
        return f"ours {str(mine)[:200]}, C {str(theirs)[:200]}"
    a, b = (as_reference(x) for x in (mine, theirs))
    return None if a == b else f"ours {a[:200]}, C {b[:200]}"


def seeds() -> list[bytes]:
    """Return short pickles of everything that only needs allowed globals."""
    out = []
    for group in ("atoms", "containers", "graphs", "classes"):
        for _, value in corpus.GROUPS[group]():
            for protocol in (0, 1, 2, 4, 5):
                data = outcome(pickle.dumps, value, protocol)
                if isinstance(data, Returned) and len(data.value) < 300:
                    out.append(data.value)
    out += [d for d in (data for _, data in programs.two_operand_programs()) if len(d) < 100][::7]
    return out


def report(found: list[tuple[bytes, str]], tried: int) -> str:
    """Return the shortest finds."""
    found.sort(key=lambda f: len(f[0]))
    return f"{len(found)} of {tried} differ\n" + "\n".join(f"{d!r}\n    {w}" for d, w in found[:15])


@pytest.fixture(autouse=True)
def _capped() -> Iterator[None]:
    with little_memory():
        yield


@pytest.mark.filterwarnings("ignore")
def test_mutated_pickles(ours: ModuleType) -> None:
    rng = random.Random(20_240_229)
    known = seeds()
    assert len(known) > 500
    found = []
    for _ in range(ROUNDS):
        data = programs.mutate(rng, rng.choice(known))
        wrong = compare(ours, data)
        if wrong:
            found.append((data, wrong))
    assert not found, report(found, ROUNDS)


@pytest.mark.filterwarnings("ignore")
def test_random_programs(ours: ModuleType) -> None:
    rng = random.Random(20_240_301)
    found, loaded = [], 0
    for _ in range(ROUNDS):
        data = programs.random_program(rng)
        wrong = compare(ours, data)
        if wrong:
            found.append((data, wrong))
        loaded += isinstance(outcome(lambda d=data: programs.guarded(pickle)(io.BytesIO(d)).load()), Returned)
    assert not found, report(found, ROUNDS)
    assert loaded > ROUNDS // 4, "programs that never load test little"


@pytest.mark.filterwarnings("ignore")
def test_finds(ours: ModuleType) -> None:
    """What fuzzing has found, kept: see tests/fuzz/finds.py."""
    from tests.fuzz.finds import FINDS

    found = [(data, wrong) for _, data in FINDS for wrong in [compare(ours, data)] if wrong]
    assert not found, report(found, len(FINDS))


def test_the_comparison_can_fail(ours: ModuleType) -> None:
    """A difference in type, value, sharing or error is a difference."""

    class Wrong:
        """Loads the wrong thing."""

        class Unpickler(pickle.Unpickler):
            def load(self) -> Any:
                value = super().load()
                return (
                    float(value) if type(value) is int else [list(x) for x in value] if type(value) is list else value
                )

    assert compare(Wrong, b"K\x05.") is not None  # type: ignore[arg-type]
    assert compare(Wrong, b"](]q\x00h\x00e.") is not None  # type: ignore[arg-type]
    assert compare(Wrong, b"N.") is None  # type: ignore[arg-type]
    assert compare(Wrong, b"](N1.") is None  # type: ignore[arg-type]
