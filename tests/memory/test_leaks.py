"""100,000 rounds leave nothing behind: no references, no blocks, no pages; on success and on every kind of error.

Each case runs in a child, which first warms every cache, then counts: the interpreter's allocated blocks, the resident
set, and the reference counts of what was passed in. Rust's own allocations show only in the resident set.
"""

from __future__ import annotations

import pytest

from tests import child

ROUNDS = 100_000

CASES = {
    "small values": """
value = [1, "two", (3, [4.5, None]), {"k": b"v", 2: {5}}, frozenset([6])]
def work():
    P.loads(P.dumps(value))
""",
    "instances": """
from tests import samples as s
value = [s.Point(1, [2]), s.SlotsRecord("n"), s.Registered(3), s.Color.RED, s.ListChild([1]), s.NewArgs(1)]
def work():
    P.loads(P.dumps(value, 4))
""",
    "recursive": """
from tests import samples as s
value = []; value.append((value, {"me": value}))
node = s.Node(1); node.next = (node, value)
def work():
    got = P.loads(P.dumps([value, node]))
    got[0].clear(); got[1].__dict__.clear()
""",
    "picklers and streams": """
value = ["text", ["shared"], {"a": 1}]
def work():
    file = io.BytesIO()
    p = P.Pickler(file, 4)
    p.dump(value); p.memo.copy(); p.dump(value); p.clear_memo(); p.memo = {}
    file.seek(0)
    u = P.Unpickler(file)
    u.load(); u.memo.copy(); u.load(); u.memo.clear()
""",
    "hooks": """
class H(P.Pickler):
    def persistent_id(self, obj): return None if obj != 5 else "five"
    def reducer_override(self, obj): return NotImplemented
class U(P.Unpickler):
    def persistent_load(self, pid): return [pid]
    def find_class(self, module, name): return super().find_class(module, name)
value = [5, len, [5, {"a": ValueError("x")}]]
def work():
    file = io.BytesIO()
    h = H(file, 4); h.dispatch_table = {}; h.cycle = h
    h.dump(value)
    del h.cycle
    u = U(io.BytesIO(file.getvalue()))
    u.load()
""",
    "dump errors": """
import threading
from tests import samples as s
bad = [[1, [2]], {"a": (s.Point(1, threading.Lock()),)}]
raising = [s.Reduced((5, ())), [s.Calling(s.raise_value_error)]]
generator = s.Reduced((list, (), None, 5))
def work():
    for value in (bad, raising, generator, lambda: 1):
        try:
            P.dumps(value)
        except Exception:
            pass
    try:
        P.dump([1], io.StringIO())
    except TypeError:
        pass
""",
    "load errors": """
from tests import samples as s
good = pickle.dumps([[1, "x"], s.Point(1, [2]), {"a": (1, [2])}, {3}], 4)
streams = [good[:40], good[:-1], b"", b"](K\\x01K\\x02", b"cno_such\\nx\\n.", b"}(]K\\x01u.", b"ctests.samples\\nraise_value_error\\n)R.",
           b"ctests.samples\\nPlain\\n)\\x81}(\\x8c\\x01aK\\x01", b"h\\x05.", b"\\x80\\x02U\\x01\\xe9.", b"(((((", b"\\xff",
           b"ctests.samples\\nPlain\\n)\\x81](K\\x01eb."]
def work():
    for data in streams:
        try:
            P.loads(data)
        except Exception:
            pass
    try:
        P.load(io.BytesIO(good[:30]))
    except Exception:
        pass
""",
    "buffers": """
def work():
    buffers = []
    data = P.dumps([P.PickleBuffer(b"abc" * 100), P.PickleBuffer(bytearray(b"x"))], 5, buffer_callback=buffers.append)
    P.loads(data, buffers=buffers)
    P.loads(P.dumps(P.PickleBuffer(b"abc"), 5))
    try:
        P.loads(data, buffers=[b"x"])
    except Exception:
        pass
""",
    "deep": """
from tests import samples as s
def work():
    value = "leaf"
    for _ in range(30):
        value = [s.Point((value,), {"k": value})]
    P.loads(P.dumps(value))
""",
    "classes that come and go": """
from tests import samples as s
def work():
    cls = type("Passing", (), {"__module__": "tests.samples"})
    s.Passing = cls
    item = cls(); item.a = 1
    P.loads(P.dumps([item, item]))
    del s.Passing
""",
}
ROUNDS_OF = {
    "deep": ROUNDS // 10,
    "dump errors": ROUNDS // 3,
    "load errors": ROUNDS // 5,
    "classes that come and go": ROUNDS // 10,
}

COUNT = """
import gc
%s
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096
def settle():
    # Up to 3.11 each unused place of the cache of type attributes counts as a reference to None, of 4,096 places.
    gc.collect()
    if sys.version_info < (3, 12):
        sys._clear_type_cache()
def counts():
    found = [v for v in list(globals().values()) if isinstance(v, (list, dict)) and not callable(v)]
    return [sys.getrefcount(v) for v in found]
rounds = %d
for _ in range(max(200, rounds // 20)):
    work()
settle()
refs, blocks, size = counts(), sys.getallocatedblocks(), rss()
singles = [sys.getrefcount(x) for x in (None, True, (), str, list, dict, int)]
for _ in range(rounds):
    work()
settle()
after = sys.getallocatedblocks()
assert after - blocks < 300 + rounds // 200, f"{after - blocks} blocks more after {rounds} rounds"
grown = rss() - size
assert grown < 3_000_000, f"{grown} bytes more after {rounds} rounds"
refs2 = counts()
assert all(b - a < 50 for a, b in zip(refs, refs2)), (refs, refs2)
for a, x in zip(singles, (None, True, (), str, list, dict, int)):
    if sys.version_info < (3, 12) or a < 2**31:  # immortal objects do not count
        assert abs(sys.getrefcount(x) - a) < 500, (x, a, sys.getrefcount(x))
"""


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_left_behind(case: str) -> None:
    rounds = ROUNDS_OF.get(case, ROUNDS)
    child.check(COUNT % (CASES[case], rounds), timeout=300)


def test_tracemalloc_sees_nothing_of_ours() -> None:
    """What Python code allocated for a dump is freed with it: compared by line after many rounds."""
    child.check(
        """
        import gc, tracemalloc
        from tests import samples as s
        value = [s.Point(i, [i]) for i in range(20)]
        def work():
            P.loads(P.dumps(value))
            try:
                P.loads(b"](")
            except Exception:
                pass
        for _ in range(500): work()
        gc.collect()
        tracemalloc.start()
        for _ in range(100): work()
        gc.collect()
        before = tracemalloc.take_snapshot()
        for _ in range(3_000): work()
        gc.collect()
        after = tracemalloc.take_snapshot()
        grown = sum(d.size_diff for d in after.compare_to(before, "filename") if "tracemalloc" not in str(d.traceback))
        assert grown < 20_000, grown
        """,
        timeout=120,
    )


def test_scratch_memory_is_bounded() -> None:
    """One giant dump must not leave its buffers with the process for ever."""
    child.check(
        """
        import gc
        def rss():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4096
        P.loads(P.dumps([1]))
        gc.collect()
        before = rss()
        for _ in range(2):
            value = [b"x" * 1000 for _ in range(100_000)] + [[i] for i in range(500_000)]
            data = P.dumps(value)
            got = P.loads(data)
            del value, data, got
        for _ in range(100):
            P.loads(P.dumps([1, [2]]))
        gc.collect()
        grown = rss() - before
        assert grown < 64 << 20, f"{grown >> 20} MiB kept"
        """,
        timeout=120,
    )


def test_objects_die_when_they_should() -> None:
    """Weakly referenced values, picklers with hooks in a cycle, and streams are collected."""
    child.check(
        """
        import gc, weakref
        class P2(P.Pickler):
            pass
        class U2(P.Unpickler):
            pass
        class File(io.BytesIO):
            pass
        file = File()
        p = P2(file)
        p.me = p
        p.dump([p.me is p, 1])
        u = U2(file); u.me = u
        u.persistent = lambda: u
        links = [weakref.ref(x) for x in (file, p, u)]
        del file, p, u
        gc.collect()
        assert [link() for link in links] == [None] * 3
        """
    )


def test_picklers_are_traversed() -> None:
    """A cycle through the memo, the file, persistent_id or dispatch_table of a pickler is garbage the collector finds."""
    child.check(
        """
        import gc, weakref
        class Token:
            pass
        sys.modules["__main__"].Token = Token
        class Pers(P.Pickler):
            def persistent_id(self, obj):
                return None
        class Writes:
            def write(self, data):
                return len(data)
        links = []
        for kind in (P.Pickler, Pers):
            token, out = Token(), Writes()
            p = kind(out)
            token.pickler = p if kind is Pers else None
            out.pickler = p
            p.dispatch_table = {Token: lambda t: (Token, ())}
            p.dispatch_table["self"] = p
            p.dump([token])
            links += [weakref.ref(token), weakref.ref(out)]
            del token, out, p
        class Reads:
            def __init__(self): self.f = io.BytesIO(pickle.dumps([Token()]))
            def read(self, n): return self.f.read(n)
            def readline(self): return self.f.readline()
        source = Reads()
        u = P.Unpickler(source)
        source.u = u
        got = u.load()
        got[0].u = u
        links += [weakref.ref(source), weakref.ref(got[0])]
        del source, u, got
        gc.collect()
        assert [link() for link in links] == [None] * len(links), links
        """
    )
