"""The fuzzers run for a moment in every test run, so that they stay usable and early differences show at once."""

from __future__ import annotations

import gc
import random
from types import ModuleType

import pytest

from tests.fuzz import pickler, unpickler
from tests.outcomes import little_memory
from tests.properties.test_programs import seeds


@pytest.mark.filterwarnings("ignore")
def test_pickler_seeds(ours: ModuleType) -> None:
    gc.collect()
    gc.freeze()
    try:
        found = [(seed, wrong) for seed in range(2_500) for wrong in [pickler.check(ours, seed)] if wrong]
    finally:
        gc.unfreeze()
    assert not found, (len(found), found[:5])


@pytest.mark.filterwarnings("ignore")
def test_unpickler_inputs(ours: ModuleType) -> None:
    rng, known = random.Random(3), seeds()
    found = []
    with little_memory():
        for _ in range(4_000):
            data = unpickler.next_input(rng, known)
            wrong = unpickler.try_one(ours, data, True, rng)
            if wrong:
                found.append((data, wrong))
    found.sort(key=lambda f: len(f[0]))
    assert not found, (len(found), found[:5])
