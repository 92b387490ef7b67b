"""A long differential fuzzer of the Pickler: random graphs whose objects run user code while they are dumped.

    python -m tests.fuzz.pickler --minutes 30 --seed 1

A graph is built from a seed, once for each implementation, so that reference counts and addresses are alike. Its objects
keep each other alive, reach each other by weak references and registries, and their hooks mutate, collect garbage and
dump again. Bytes must be the reference's; where user code changes containers under way, both may raise or the dump must
load. Reference counts of the outside world must be what they were. Meant for a build with debug assertions.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import pickle
import random
import sys
import time
import warnings
import weakref
from typing import Any

from tests import samples as s
from tests.equality import Difference, assert_same_graph
from tests.outcomes import Raised, Returned, outcome


class Builder:
    """Builds one graph from a seed; the same seed gives the same graph."""

    def __init__(self, seed: int, module: Any, mutating: bool) -> None:
        self.rng = random.Random(seed)
        self.module = module
        self.mutating = mutating
        self.weak: list[weakref.ref[Any]] = []
        self.strong: list[Any] = []
        self.late: list[Any] = []
        self.budget = 60
        self.hook_budget = 200

    def build(self) -> Any:
        """Return the root."""
        rng = self.rng
        root = [self.value(0) for _ in range(rng.randrange(1, 5))]
        for container in self.late:
            if rng.random() < 0.3:
                self.add(container, rng.choice(self.late))
        if rng.random() < 0.3:
            root.append(root)
        if rng.random() < 0.5:
            self.strong.clear()
        return root if rng.random() < 0.7 else tuple(root)

    def add(self, container: Any, item: Any) -> None:
        """Put something into a container after it was made, which is how cycles come about."""
        if isinstance(container, (s.ListChild, s.DictChild)):
            # Protocols 0 and 1 copy a subclass's items into its reduce value: a cycle through those never ends.
            container.own = item
        elif isinstance(container, list):
            container.append(item)
        elif isinstance(container, dict):
            container[self.rng.choice("abcdef")] = item
        elif isinstance(container, (s.Plain, s.Node, s.Point)):
            setattr(container, self.rng.choice("abcxy"), item)

    def value(self, depth: int) -> Any:
        """Return an atom, a container, an instance, something seen before, or an object with a hook."""
        rng = self.rng
        self.budget -= 1
        if self.budget < 0 or depth > 8 or rng.random() < 0.25:
            return self.atom()
        if self.late and rng.random() < 0.1:
            return rng.choice(self.late)
        made = self.container(depth + 1)
        if rng.random() < 0.2:
            self.strong.append(made)
        try:
            self.weak.append(weakref.ref(made))
        except TypeError:
            pass
        return made

    def atom(self) -> Any:
        """Return something without children; strings and bytes are made anew, so that nobody else holds them."""
        rng = self.rng
        pick = rng.randrange(11)
        n = rng.choice((0, 1, 255, 256, 65535, 65536, -1, 2**31, 2**40, rng.getrandbits(70)))
        if pick < 3:
            return n
        if pick == 3:
            return rng.choice((None, True, False, 1.5, -0.0, float("nan")))
        if pick == 4:
            return f"fresh {n}"
        if pick == 5:
            return b"fresh %d" % n
        if pick == 6:
            return rng.choice(("interned", "x", "", "\xe9\u4e2d"))
        if pick == 7:
            return bytearray(b"fresh")
        if pick == 8:
            return rng.choice((s.Point, s.function, len, s.Color.RED, int))
        if pick == 9:
            return "z" * rng.choice((10, 255, 256, 5_000, 66_000))
        return rng.choice(((), frozenset(), (1, 2), frozenset([3])))

    def container(self, depth: int) -> Any:
        """Return a container or instance with children, or a hooked object."""
        rng = self.rng
        kind = rng.randrange(20)
        children = [self.value(depth) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 5)))]
        made: Any
        if kind < 3:
            made = children
        elif kind < 6:
            return tuple(children)
        elif kind < 8:
            made = {rng.choice((i, f"k{i}", (i,))): c for i, c in enumerate(children)}
        elif kind == 8:
            return {c for c in map(_hashable, children)}
        elif kind == 9:
            return frozenset(map(_hashable, children))
        elif kind < 12:
            made = s.Plain()
            for i, child in enumerate(children):
                setattr(made, f"a{rng.randrange(6)}" if rng.random() < 0.5 else f"a{i}", child)
        elif kind == 12:
            made = s.Node(rng.randrange(5))
            made.next = children
        elif kind == 13:
            made = s.ListChild(children)
        elif kind == 14:
            made = s.DictChild((i, c) for i, c in enumerate(children))
        elif kind == 15:
            return s.Reduced((s.function, tuple(children)))
        elif kind == 16:
            return s.Reduced((s.Plain, (), {"state": children}))
        elif kind == 17:
            return s.Bag(children, [(1, c) for c in children])
        else:
            return s.Calling(self.hook(children))
        self.late.append(made)
        return made

    def hook(self, children: list[Any]) -> Any:
        """Return a __reduce__ that runs user code of some kind."""
        rng = self.rng
        what = rng.randrange(8)
        choice = rng.random()

        def reduce() -> Any:
            self.hook_budget -= 1
            if self.hook_budget < 0:
                return s.function, ()
            alive = [o for o in (link() for link in self.weak) if o is not None]
            if what == 0 and alive:
                return s.function, (alive[int(choice * len(alive))], [1])
            if what == 1 and alive:
                return s.function, tuple(alive[int(choice * len(alive)) :][:3])
            if what == 2:
                gc.collect()
                return s.function, (children, [len(children)])
            if what == 3:
                self.module.dumps([children, {"again": [children]}])
                return s.function, (children,)
            if what == 4:
                return s.Plain, (), {"fresh": [[], {}, ("t", [1])], "children": children}
            if what == 5 and self.mutating and self.late:
                target = self.late[int(choice * len(self.late))]
                if isinstance(target, (list, dict)):
                    target.clear()
                gc.collect(0)
                return s.function, ([1],)
            if what == 6 and self.mutating and self.late:
                self.add(self.late[int(choice * len(self.late))], [choice])
                return list, (), None, iter(children)
            return list, (), None, iter(children)

        return reduce


def _hashable(value: Any) -> Any:
    """Keep what hashes the same in every graph of a seed; addresses would change the order of sets."""
    return value if type(value) in (int, str, bytes, type(None), bool) else 5


def dump(module: Any, seed: int, protocol: int, mutating: bool, way: int) -> tuple[Any, Any]:
    """Build the graph of a seed and dump it; return the outcome and the graph."""
    builder = Builder(seed, module, mutating)
    graph = builder.build()
    if way == 0:
        return outcome(module.dumps, graph, protocol), graph
    file = io.BytesIO()
    if way == 1:
        pickler = module.Pickler(file, protocol)
    else:
        seen: list[Any] = []

        class Hooked(module.Pickler):  # type: ignore[name-defined,misc]
            def persistent_id(self, obj: Any) -> Any:
                if len(seen) < 20:
                    seen.append(obj)
                return None

            def reducer_override(self, obj: Any) -> Any:
                if type(obj) is s.Node and seen:
                    return s.function, (seen[len(seen) // 2], seen[0])
                return NotImplemented

        pickler = Hooked(file, protocol)
    first = outcome(pickler.dump, graph)
    second = outcome(pickler.dump, [graph]) if isinstance(first, Returned) else None
    return (first, second, file.getvalue()) if isinstance(first, Raised) else Returned(file.getvalue()), graph


def check(module: Any, seed: int) -> str | None:
    """Run one seed; return what is wrong, if anything is."""
    rng = random.Random(seed ^ 0x5EED)
    protocol, mutating, way = rng.randrange(6), rng.random() < 0.25, rng.randrange(3)
    enabled = gc.isenabled()
    gc.disable()  # which weak references still live must not depend on when the collector runs
    try:
        mine, _ = dump(module, seed, protocol, mutating, way)
        theirs, _ = dump(pickle, seed, protocol, mutating, way)
    finally:
        if enabled:
            gc.enable()
    if isinstance(mine, tuple):
        mine = mine[0]
    if isinstance(theirs, tuple):
        theirs = theirs[0]
    if mutating and isinstance(theirs, Raised):
        # What the reference makes of a graph that changes under it differs from release to release.
        return None
    if isinstance(mine, Raised) and isinstance(theirs, Raised):
        return None if mine == theirs or RecursionError in (mine.kind, theirs.kind) else f"{mine} / {theirs}"
    if isinstance(theirs, Raised) and theirs.kind is RecursionError:
        return None
    if mine != theirs:
        if mutating and isinstance(mine, Raised) and mine.kind is RuntimeError:
            return None
        return f"protocol {protocol}, way {way}, mutating {mutating}: {str(mine)[:150]} / {str(theirs)[:150]}"
    a, b = outcome(module.loads, mine.value), outcome(pickle.loads, mine.value)
    if isinstance(a, Raised) or isinstance(b, Raised):
        return None if a == b else f"load: {str(a)[:150]} / {str(b)[:150]}"
    try:
        assert_same_graph(a.value, b.value)
    except Difference as difference:
        return f"load: {difference}"
    return None


def main() -> int:
    """Fuzz until time is up; exit 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this one seed and stop")
    parser.add_argument("--module", default=os.environ.get("QUICKPICKLE_OURS", "quickpickle"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    module = importlib.import_module(options.module)
    if options.only is not None:
        print(check(module, options.only))
        return 0
    gc.collect()
    gc.freeze()  # the hooks collect; they need not walk the imports each time
    found: list[tuple[int, str]] = []
    seed, end = options.seed * 10_000_000, time.monotonic() + 60 * options.minutes
    start = seed
    while time.monotonic() < end:
        print(seed, end="\r", flush=True)
        wrong = check(module, seed)
        if wrong:
            found.append((seed, wrong))
            print(f"seed {seed}: {wrong}", flush=True)
        seed += 1
    print(f"{seed - start} graphs from seed {start}, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
