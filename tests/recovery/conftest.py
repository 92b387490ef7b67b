"""Stores of every engine to test, and a real ZooKeeper server for those that want one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from quickpickle import recovery

from .servers import Server, why_not

# What ZooKeeper does is the same for every interpreter, and slow to start.
SECONDARY = os.environ.get("QUICKPICKLE_SECONDARY_INTERPRETER", "") not in ("", "0")
ENGINES = ["log", "file_system"] if SECONDARY else ["log", "file_system", "zookeeper"]
_numbers = count()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server, shared; each test takes a node of its own."""
    if SECONDARY:
        pytest.skip("ZooKeeper is tested with the main interpreter")
    if missing := why_not():
        pytest.skip(missing)
    server = Server(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a store, of each engine in turn."""
    if request.param == "zookeeper":
        server = request.getfixturevalue("zookeeper")
        return f"zookeeper://{server.address}/test{next(_numbers)}"
    return f"{request.param}:{tmp_path / 'store'}"


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[..., recovery.Store]]:
    """Opens the place; what a test leaves open is closed, whether it passes or not."""
    opened: list[recovery.Store] = []

    def open_it(**settings: Any) -> recovery.Store:
        store = recovery.open(url, **settings)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        try:
            store.close()
        except recovery.RecoveryError:
            pass


class Child:
    """Another Python process with ``recovery``, ``os``, ``sys`` and ``time`` at hand, and lines to talk by."""

    def __init__(self, code: str, *arguments: str) -> None:
        head = "import os, sys, time\nfrom quickpickle import recovery\n"
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", head + textwrap.dedent(code), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line it prints."""
        line = self.process.stdout.readline()
        assert line, f"it ended: {self.process.stderr.read()}"
        return line.strip()

    def say(self, text: str = "") -> None:
        """Send it a line."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def rest(self) -> str:
        """What else it prints until its end. Not ``communicate``: that forgets what was read ahead by ``line``."""
        self.process.stdin.close()
        return self.process.stdout.read()

    def finish(self) -> str:
        """Wait for its end, require success and return the rest of what it printed."""
        out = self.rest()
        assert self.process.wait(timeout=60) == 0, self.process.stderr.read()
        return out


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """Starts children; they end with the test."""
    children: list[Child] = []

    def start(code: str, *arguments: str) -> Child:
        children.append(Child(code, *arguments))
        return children[-1]

    yield start
    for one in children:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:  # what it was sent last was never read
                pass
