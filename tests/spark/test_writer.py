"""The writer that sends in time: on pipes and sockets, with busy callers, closed ends, forks, and no thread left."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from quickpickle._native import TimelyWriter
from tests import child


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def threads(expected: int) -> int:
    """The count of this process's threads; one that was joined stays in the kernel's list for a moment more."""
    deadline = time.monotonic() + 20
    while (count := len(os.listdir("/proc/self/task"))) != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return count


def readable(end: socket.socket, seconds: float) -> bool:
    return bool(select.select([end], [], [], seconds)[0])


def received(end: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = end.recv(1 << 20)
        if not part:
            break
        data += part
    return data


def test_small_writes_are_held_and_then_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = TimelyWriter(ends[0].fileno(), interval=60)
    assert writer.write(b"abc") == 3
    assert writer.write(bytearray(b"de")) == 2
    assert writer.write(memoryview(b"xyz")[1:]) == 2
    assert not readable(ends[1], 0.05)
    writer.flush()
    assert received(ends[1], 7) == b"abcdeyz"
    writer.close()


def test_sent_in_time_while_python_is_busy(ends: tuple[socket.socket, socket.socket]) -> None:
    """Waiting in C with the GIL held, as a user's function may."""
    writer = TimelyWriter(ends[0].fileno(), interval=0.01)

    pid = os.fork()
    if pid == 0:
        # The time is taken in another process, which no GIL of ours delays.
        code = 1
        try:
            started = time.monotonic()
            if ends[1].recv(10) == b"in time" and time.monotonic() - started < 3:
                code = 0
        finally:
            os._exit(code)
    writer.write(b"in time")
    _hold_the_gil(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    writer.close()


def _hold_the_gil(seconds: float) -> None:
    # A regular expression that runs in C: it gives the GIL up to nobody.
    import re

    end = time.monotonic() + seconds
    size = 18
    while time.monotonic() < end:
        re.match(r"(a+)+$", "a" * size + "b")
        size = min(size + 1, 22)


def test_order_and_completeness_of_writes_of_all_sizes(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = TimelyWriter(ends[0].fileno(), capacity=1000, interval=0.0005)
    parts = [bytes([i % 251]) * (i * 37 % 2600) for i in range(3000)]
    got: list[bytes] = []
    total = sum(map(len, parts))
    thread = threading.Thread(target=lambda: got.append(received(ends[1], total)))
    thread.start()
    for part in parts:
        assert writer.write(part) == len(part)
    writer.flush()
    thread.join(60)
    assert got[0] == b"".join(parts)
    writer.close()


def test_large_writes_go_straight_through(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = TimelyWriter(ends[0].fileno(), interval=60)
    data = os.urandom(8 << 20)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(received(ends[1], len(data) + 1)))
    thread.start()
    writer.write(b"1")
    writer.write(data)
    thread.join(60)
    assert got[0] == b"1" + data
    writer.close()


def test_no_thread_before_the_first_write_and_none_after_closing(ends: tuple[socket.socket, socket.socket]) -> None:
    before, descriptors = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        writer = TimelyWriter(ends[0].fileno())
        assert threads(before) == before
        writer.write(b"x")
        assert threads(before + 1) == before + 1
        writer.close()
        writer.close()
        assert writer.closed
    assert threads(before) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert received(ends[1], 50) == b"x" * 50
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"x")
    # What was given is still open.
    ends[0].sendall(b"y")
    assert ends[1].recv(1) == b"y"


def test_an_end_that_is_closed_is_said_by_the_next_call(ends: tuple[socket.socket, socket.socket]) -> None:
    """Also when the thread was the one to meet it."""
    writer = TimelyWriter(ends[0].fileno(), interval=0.001)
    ends[1].close()
    with pytest.raises(OSError) as raised:
        for _ in range(1000):
            writer.write(b"x" * 100)
            time.sleep(0.005)
    assert isinstance(raised.value, (BrokenPipeError, ConnectionResetError))
    with pytest.raises(OSError):
        writer.flush()
    with pytest.raises(OSError):
        writer.close()
    assert writer.closed


def test_a_half_closed_socket(ends: tuple[socket.socket, socket.socket]) -> None:
    """An end that no longer sends still receives; one that no longer receives is an error."""
    writer = TimelyWriter(ends[0].fileno(), interval=60)
    ends[1].shutdown(socket.SHUT_WR)
    writer.write(b"still")
    writer.flush()
    assert ends[1].recv(10) == b"still"
    ends[1].shutdown(socket.SHUT_RD)
    writer.write(b"lost")
    with pytest.raises(BrokenPipeError):
        writer.flush()


def test_a_descriptor_that_is_none() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        TimelyWriter(10**6)
    with pytest.raises(ValueError):
        TimelyWriter(1, interval=-1.0)
    with pytest.raises(ValueError):
        TimelyWriter(1, interval=float("nan"))


def test_fork_while_something_is_held() -> None:
    """The child sends nothing of the parent's, and may write itself."""
    child.check("""
    import os, socket
    from quickpickle._native import TimelyWriter
    left, right = socket.socketpair()
    writer = TimelyWriter(left.fileno(), interval=60)
    writer.write(b"parent")
    pid = os.fork()
    if pid == 0:
        writer.write(b"child")
        writer.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert right.recv(100) == b"child"
    writer.close()
    assert right.recv(100) == b"parent"
    """)


def test_signals_are_handled_while_it_waits() -> None:
    """A handler that raises ends a write to an end that does not read."""
    child.check("""
    import signal, socket, time
    from quickpickle._native import TimelyWriter
    left, right = socket.socketpair()
    writer = TimelyWriter(left.fileno(), interval=60)
    class Stop(Exception):
        pass
    def stop(*_):
        raise Stop
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        writer.write(b"x" * (64 << 20))
    except Stop:
        print("stopped")
    """)
