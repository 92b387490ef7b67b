"""Threads with picklers of their own do not disturb each other; one pickler shared by two is refused or works.

Each test runs in a child with a tiny switch interval, so that a crash is a failure here and races have a chance to show.
"""

from __future__ import annotations

import sysconfig
import textwrap

import pytest

from tests import child

HEAD = """
import threading, random
from tests import samples as s
sys.setswitchinterval(1e-6)
failures = []
def run(*targets):
    def guard(target):
        try:
            target()
        except BaseException as exc:
            failures.append(repr(exc))
    threads = [threading.Thread(target=guard, args=(t,)) for t in targets]
    for t in threads: t.start()
    for t in threads: t.join(500)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    assert not failures, failures
"""


def check(body: str) -> None:
    """Run a test body in a child."""
    child.check(HEAD + textwrap.dedent(body), timeout=120)


def test_each_thread_its_own() -> None:
    """User code in the middle of dumps and loads hands the interpreter to another thread."""
    check(
        """
        import time
        class Yields:
            def __init__(self, n): self.n = n
            def __reduce__(self):
                time.sleep(0)
                return make, (self.n, [self.n])
        def make(n, items):
            time.sleep(0)
            return (n, items)
        main = sys.modules["__main__"]
        main.Yields, main.make = Yields, make
        def work(seed):
            rng = random.Random(seed)
            for _ in range(150):
                n = rng.randrange(10**6)
                shared = [n]
                value = [shared, {"k": shared, "y": Yields(n)}, (n, s.Point(n, shared)), [Yields(i) for i in range(5)], "t%d" % n]
                got = P.loads(P.dumps(value, rng.randrange(6)))
                assert got[0] == [n] and got[0] is got[1]["k"] is got[2][1].y, got
                assert got[1]["y"] == (n, [n]) and got[3] == [(i, [i]) for i in range(5)] and got[4] == "t%d" % n
        run(*[lambda i=i: work(i) for i in range(4)])
        """
    )


def test_large_values_at_once() -> None:
    check(
        """
        def work(k):
            value = [{"id": i, "name": f"{k}-{i}", "tags": (k, [i])} for i in range(4000)]
            expected = pickle.dumps(value)
            for _ in range(8):
                assert P.dumps(value) == expected
                assert P.loads(expected) == value
        run(lambda: work(1), lambda: work(2), lambda: work(3))
        """
    )


def test_collector_state_with_threads() -> None:
    """Loads that overlap in two threads leave the collector on."""
    check(
        """
        import gc, time
        class Slow:
            def __reduce__(self): return pause, ()
        def pause():
            time.sleep(0.001)
            return 1
        main = sys.modules["__main__"]
        main.Slow, main.pause = Slow, pause
        blob = pickle.dumps([[(i, [i]) for i in range(15_000)], [Slow() for _ in range(10)], [[i] for i in range(15_000)]])
        def work():
            for _ in range(6):
                P.loads(blob)
                try:
                    P.loads(blob[:-30])
                except Exception:
                    pass
        run(work, work, work)
        assert gc.isenabled()
        gc.disable()
        run(work, work)
        assert not gc.isenabled()
        """
    )


@pytest.mark.beyond_reference
def test_one_pickler_shared() -> None:
    """Two threads in one Pickler or Unpickler: an error that says so, or a right result; never a crash."""
    check(
        """
        import time
        class Yields:
            def __reduce__(self):
                time.sleep(0.0005)
                return str, ("y",)
        sys.modules["__main__"].Yields = Yields
        outcomes = set()
        class Writes:
            def write(self, data): return len(data)
        p = P.Pickler(Writes())
        value = [[Yields(), [1], {"a": Yields()}] for _ in range(5)]
        def dump():
            for _ in range(40):
                try:
                    p.dump(value)
                    outcomes.add("dumped")
                except (RuntimeError, P.PicklingError) as exc:
                    outcomes.add(type(exc).__name__)
        def clear():
            for _ in range(200):
                try:
                    p.clear_memo(); p.memo.copy(); p.memo = {}
                except (RuntimeError, P.PicklingError):
                    pass
                time.sleep(0.0002)
        run(dump, dump, clear)
        assert "dumped" in outcomes
        def slow():
            time.sleep(0.0005)
            return [1]
        sys.modules["__main__"].slow = slow
        blob = pickle.dumps([s.Reduced((slow, ())) for _ in range(10)] + [[i] for i in range(100)])
        u = P.Unpickler(io.BytesIO(blob * 300))
        def load():
            for _ in range(40):
                try:
                    u.load()
                    outcomes.add("loaded")
                except Exception as exc:
                    outcomes.add(type(exc).__name__)
        def look():
            for _ in range(200):
                try:
                    u.memo.copy()
                except RuntimeError as exc:
                    assert "already" in str(exc), exc
        run(load, load, look)
        """
    )


def test_one_value_dumped_by_two() -> None:
    """A container shared by threads, one of which changes it: an error or a loadable pickle."""
    check(
        """
        import time
        sys.setswitchinterval(1e-4)
        table = {i: [i] for i in range(2000)}
        items = [[i] for i in range(2000)]
        stop = []
        def change():
            n = 0
            while not stop:
                n += 1
                if n % 20 == 0: time.sleep(0)
                table[f"n{n % 50}"] = [n]
                table.pop(f"n{(n + 25) % 50}", None)
                if n % 3: items.append([n])
                elif len(items) > 1000: items.pop()
        def dump():
            try:
                for _ in range(60):
                    try:
                        blob = P.dumps([items, table])
                    except RuntimeError as exc:
                        assert "changed" in str(exc), exc
                        continue
                    P.loads(blob)
            finally:
                stop.append(1)
        run(change, dump)
        """
    )


def test_fork_and_subinterpreter_threads() -> None:
    """A forked child of a threaded process can pickle; daemon threads may be at work when the process ends."""
    check(
        """
        import os, time
        def busy():
            while True:
                P.loads(P.dumps([[i] for i in range(100)]))
        for _ in range(2):
            threading.Thread(target=busy, daemon=True).start()
        time.sleep(0.05)
        for _ in range(5):
            pid = os.fork()
            if not pid:
                ok = P.loads(P.dumps({"a": [1]})) == {"a": [1]}
                os._exit(0 if ok else 1)
            assert os.waitpid(pid, 0)[1] == 0
        """
    )


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded build")
def test_free_threaded_builds_are_refused_clearly() -> None:
    """Importing tells what is wrong, until free threading has been tested."""
    done = child.run("print('imported')")
    if done.returncode:
        assert "free-threaded" in done.stderr


@pytest.mark.parametrize("doing", ["dumping", "loading", "reading"])
def test_daemon_threads_end_with_the_process(doing: str) -> None:
    """A thread that is in user code below us when the interpreter shuts down neither crashes nor keeps the process.

    Up to 3.13 the interpreter ends such threads by unwinding their stacks, which once ran our clean-up without the GIL.
    """
    body = """
        import time
        class Slow:
            def __reduce__(self):
                time.sleep(0.001)
                return rebuild, ()
        def rebuild():
            time.sleep(0.001)
        class File:
            def read(self, n):
                time.sleep(0.001)
                return b"N" * n
            def readline(self):
                return b""
        main = sys.modules["__main__"]
        main.Slow, main.rebuild = Slow, rebuild
        blob = pickle.dumps([Slow() for _ in range(50)])
        def work():
            while True:
                if DOING == "dumping": P.dumps([Slow() for _ in range(50)])
                elif DOING == "loading": P.loads(blob)
                else: P.load(File())
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        """
    for _ in range(5):
        check(f"DOING = {doing!r}\n" + textwrap.dedent(body))
