"""Dumps while everything around them moves.

Tracing and profiling functions, collector callbacks and finalizers dump and load themselves; classes change, and
instances change class, get another dict or lose attributes, from inside ``__reduce__``. An exception is fine, a crash
is not, and what was written must load.
"""

from __future__ import annotations

import pytest

from tests import child

CODE = """
import gc, random
class A:
    def __init__(self, **attributes): self.__dict__.update(attributes)
class B:
    pass
main = sys.modules["__main__"]
main.A, main.B = A, B
depth = 0
def nested():
    # What the interpreter calls in the middle of a dump, or of anything.
    global depth
    if depth < 2 and random.random() < 0.3:
        depth += 1
        try:
            assert P.loads(P.dumps([1, {"k": (2, [3])}])) == [1, {"k": (2, [3])}]
        finally:
            depth -= 1
class Last:
    def __del__(self):
        nested()
        if containers and random.random() < 0.3:
            random.choice(containers).clear()
class Act:
    def __init__(self, seed): self.seed = seed
    def __reduce__(self):
        act(random.Random(self.seed))
        return list, ()
def act(rng):
    found = rng.choice(containers)
    kind = rng.randrange(10)
    if kind == 0:
        A.fresh = rng.random()
    elif kind == 1:
        A.__getstate__ = lambda self: {"state": 1}
    elif kind == 2 and "__getstate__" in vars(A):
        del A.__getstate__
    elif kind == 3:
        found.clear()
        gc.collect()
    elif kind == 4 and isinstance(found, dict):
        found[rng.random()] = [1]
    elif kind == 4:
        found.insert(0, [Last()])
    elif kind == 5:
        gc.collect()
    for item in instances:
        if kind == 6:
            item.__class__ = rng.choice([A, B])
        elif kind == 7:
            vars(item)
        elif kind == 8:
            item.__dict__ = {"z": [1], "a": (2,)}
        elif kind == 9:
            for name in list(vars(item))[:1]:
                delattr(item, name)
def make(rng, depth):
    kind = rng.randrange(10) if depth else 0
    def some(most): return [make(rng, depth - 1) for _ in range(rng.randrange(most))]
    if kind == 0:
        return rng.choice([1, "s%d" % rng.randrange(9), 2.5, None, b"x", (1, "a")])
    if kind < 3:
        containers.append(some(5))
        return containers[-1]
    if kind < 5:
        containers.append({"k%d" % i: item for i, item in enumerate(some(5))})
        return containers[-1]
    if kind == 5:
        return tuple(some(5))
    if kind < 8:
        instances.append(A(**{"n%d" % i: item for i, item in enumerate(some(4))}))
        return instances[-1]
    return Act(rng.random()) if kind == 8 else [Act(rng.random()), make(rng, depth - 1)]
def trace(frame, event, arg):
    nested()
    return trace
gc.callbacks.append(lambda phase, info: nested())
gc.set_threshold(50)
containers, instances, done, failed = [[]], [], 0, 0
for seed in range(SEEDS):
    rng = random.Random(seed)
    random.seed(seed)
    del containers[1:], instances[:]
    value = make(rng, 6)
    if seed % 4 == 1: sys.settrace(trace)
    if seed % 4 == 2: sys.setprofile(trace)
    for protocol in (0, 2, 4, 5):
        try:
            data = P.dumps(value, protocol)
        except RuntimeError:
            failed += 1
            continue
        P.loads(data)
        done += 1
    sys.settrace(None)
    sys.setprofile(None)
    if "__getstate__" in vars(A):
        del A.__getstate__
assert done > 3 * SEEDS, (done, failed)
assert P.loads(P.dumps([1, [2]])) == [1, [2]]
print("done")
"""


@pytest.mark.beyond_reference
def test_all_at_once() -> None:
    assert child.check("SEEDS = 300\n" + CODE, timeout=120).endswith("done\n")
