"""Several processes: kill -9, the lock, standing by, Ctrl-C, and children of a fork."""

import os
import random
import signal
import subprocess
import time

import pytest

from quickpickle import recovery

WRITER = """
    store = recovery.open(sys.argv[1], sync=sys.argv[2])
    print("open", flush=True)
    for number in range(1_000_000):
        store[f"n{number % 100}"] = {"number": number, "text": "x" * (number % 300)}
        if number % 7 == 0:
            store.unpersist(f"n{(number + 50) % 100}")
        print(number, flush=True)
"""


def expected(last):
    """What the writer has stored once it has acknowledged ``last``."""
    state = {}
    for number in range(last + 1):
        state[f"n{number % 100}"] = number
        if number % 7 == 0:
            state.pop(f"n{(number + 50) % 100}", None)
    return state


@pytest.mark.parametrize("sync", ["always", "group(5)", "none"])
@pytest.mark.parametrize("engine", ["log", "file_system"])
def test_kill_9_loses_nothing_that_was_acknowledged(child, tmp_path, engine, sync):
    """At random points; a killed process loses nothing at any level, since the operating system has the data."""
    generator = random.Random(f"{engine}{sync}")
    for attempt in range(3):
        url = f"{engine}:{tmp_path / str(attempt)}"
        writer = child(WRITER, url, sync)
        assert writer.line() == "open"
        time.sleep(generator.uniform(0, 0.2))
        writer.process.kill()
        acknowledged = writer.rest().split("\n")[:-1]
        last = int(acknowledged[-1]) if acknowledged else -1
        with recovery.open(url, strict=True) as store:
            found = {name: value["number"] for name, value in store.items()}
        # What was on its way when the signal came may be there or not: an assignment, and a removal after it.
        sure, next_one = expected(last), last + 1
        assigned = {**sure, f"n{next_one % 100}": next_one}
        assert found in (sure, assigned, expected(next_one)), (attempt, last)


def test_kill_9_with_zookeeper(child, zookeeper):
    url = f"zookeeper://{zookeeper.address}/killed"
    writer = child(WRITER, url, "always")
    assert writer.line() == "open"
    for _ in range(50):
        writer.line()
    writer.process.kill()
    acknowledged = writer.rest().split("\n")[:-1]
    last = int(acknowledged[-1]) if acknowledged else 49
    # The dead master's session, and with it its lock, lives on for a while: the standby waits for it.
    with recovery.open(url, strict=True, wait=60) as store:
        found = {name: value["number"] for name, value in store.items()}
    sure, next_one = expected(last), last + 1
    assert found in (sure, {**sure, f"n{next_one % 100}": next_one}, expected(next_one))


def test_zookeeper_killed_and_restarted_under_load(tmp_path_factory, zookeeper):
    """A server of its own, so that the shared one lives."""
    from .servers import Server

    server = Server(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        with recovery.open(f"zookeeper://{server.address}/x", operation_timeout=30) as store:
            store["before"] = b"x" * 1_000_000
            server.kill()
            server.start()
            store["after"] = 2
            assert store["before"] == b"x" * 1_000_000
        with recovery.open(f"zookeeper://{server.address}/x", strict=True, wait=30) as store:
            assert sorted(store) == ["after", "before"]
    finally:
        server.kill()


def test_one_writer(open_store, url, child):
    store = open_store()
    store["a"] = 1
    other = child(
        """
        try:
            recovery.open(sys.argv[1])
        except recovery.LockedError as error:
            print(isinstance(error, BlockingIOError), "holds this store" in str(error))
        """,
        url,
    )
    assert other.finish() == "True True\n"
    with pytest.raises(recovery.LockedError):
        recovery.open(url)
    with pytest.raises(recovery.LockedError):
        recovery.open(url, wait=0.3)
    store["b"] = 2


def test_a_standby_takes_over_when_the_master_is_killed(url, child):
    code = """
        store = recovery.open(sys.argv[1], wait=True, session_timeout=0.5)
        print("master", len(store), flush=True)
        store[f"by {os.getpid()}"] = 1
        sys.stdin.read()
    """
    first = child(code, url)
    assert first.line() == "master 0"
    standby = child(code, url)
    time.sleep(0.3)
    assert standby.process.poll() is None
    while len(list_names(url)) < 1:
        time.sleep(0.02)
    first.process.kill()
    assert standby.line() == "master 1"


def list_names(url):
    with recovery.open(url, read_only=True) as store:
        return list(store)


def test_ctrl_c_ends_a_standby(open_store, url, child):
    store = open_store()
    waiting = child(
        """
        import signal

        # A shell's background jobs, such as this may be, are born deaf to it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("waiting", flush=True)
        try:
            recovery.open(sys.argv[1], wait=True)
        except KeyboardInterrupt:
            print("stopped")
        """,
        url,
    )
    assert waiting.line() == "waiting"
    time.sleep(0.3)
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.finish() == "stopped\n"
    store["still"] = "ours"


def test_a_standby_that_was_stopped_leaves_the_lock_alone(open_store, url):
    """Whoever waits in this process and is interrupted must not take the lock afterwards."""
    store = open_store()

    def interrupt(*_):
        raise TimeoutError("enough")

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="enough"):
            recovery.open(url, wait=True)
    finally:
        signal.signal(signal.SIGALRM, previous)
    store["still"] = "ours"
    store.close()
    with recovery.open(url) as store:
        assert store["still"] == "ours"


@pytest.mark.parametrize("engine", ["log", "file_system"])
def test_a_forked_child_cannot_use_the_store_and_does_not_keep_its_lock(engine, tmp_path, child):
    """A coordinator forks workers; one that outlives it must not keep the standby from taking over."""
    url = f"{engine}:{tmp_path / 'store'}"
    parent = child(
        """
        store = recovery.open(sys.argv[1])
        store["a"] = 1
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                store["b"] = 2
            except recovery.ClosedError as error:
                assert "belongs to process" in str(error), error
                os.write(write, b"refused")
            store.close()
            del store
            os.close(1), os.close(2)
            time.sleep(600)
            os._exit(0)
        assert os.read(read, 100) == b"refused"
        store["c"] = 3
        print(pid, flush=True)
        sys.stdin.read()
        """,
        url,
    )
    forked = int(parent.line())
    try:
        with pytest.raises(recovery.LockedError):
            recovery.open(url)
        parent.process.kill()
        parent.process.wait()
        os.kill(forked, 0)
        with recovery.open(url, strict=True) as store:
            assert dict(store) == {"a": 1, "c": 3}
    finally:
        os.kill(forked, signal.SIGKILL)


@pytest.mark.parametrize("sync", ["always", "group(1)"])
def test_a_fork_in_the_middle_of_a_write_keeps_no_lock_either(sync, tmp_path, child):
    """Threads of the parent write all the time, so at the fork one of them holds the engine's own locks."""
    parent = child(
        """
        import threading

        store = recovery.open(sys.argv[1], sync=sys.argv[2])
        def write(thread):
            for number in range(10_000_000):
                store[f"{thread}_{number % 10}"] = number
        for thread in range(3):
            threading.Thread(target=write, args=(thread,), daemon=True).start()
        time.sleep(0.1)
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                os.close(1), os.close(2)
                time.sleep(600)
                os._exit(0)
            print(pid, flush=True)
            time.sleep(0.005)
        sys.stdin.read()
        """,
        str(tmp_path),
        sync,
    )
    forked = [int(parent.line()) for _ in range(8)]
    try:
        parent.process.kill()
        parent.process.wait()
        for pid in forked:
            os.kill(pid, 0)
        # The last child may not have run at all yet.
        with recovery.open(tmp_path, strict=True, wait=30) as store:
            assert len(store) > 0
    finally:
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_a_spawned_program_does_not_keep_the_lock(tmp_path):
    store = recovery.open(tmp_path)
    sleeper = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        store.close()
        with recovery.open(tmp_path) as store:
            store["a"] = 1
    finally:
        sleeper.kill()
        sleeper.wait()
