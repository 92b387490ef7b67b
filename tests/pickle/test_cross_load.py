"""Loads agree: types, values, sharing; from memory, from files of several kinds, with and without buffers."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import corpus
from tests.equality import Difference, assert_same_graph, same_graph
from tests.outcomes import Raised, Returned, outcome
from tests.pickle.test_same_bytes import GROUPS, PROTOCOLS, every_value


def pickles(group: str, protocol: int) -> list[tuple[str, bytes]]:
    """Return the reference's pickles of a group."""
    out = []
    for name, value in every_value(group):
        got = outcome(pickle.dumps, value, protocol)
        if isinstance(got, Returned):
            out.append((name, got.value))
    return out


def assert_loads_agree(name: str, mine: Any, theirs: Any) -> None:
    """Compare what came of two loads."""
    if isinstance(theirs, Raised) or isinstance(mine, Raised):
        assert mine == theirs, name
        return
    try:
        assert_same_graph(mine.value, theirs.value)
    except Difference as difference:
        pytest.fail(f"{name}: {difference}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_loads_reference_pickles(ours: ModuleType, group: str, protocol: int) -> None:
    for name, data in pickles(group, protocol):
        assert_loads_agree(name, outcome(ours.loads, data), outcome(pickle.loads, data))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_trip_is_the_value(ours: ModuleType, group: str, protocol: int) -> None:
    """Our loads of our dumps gives the original wherever the reference's own round trip does."""
    for name, value in every_value(group):
        data = outcome(pickle.dumps, value, protocol)
        if isinstance(data, Raised) or name.startswith(("reduce 4", "reduce 5", "reduce 6")):
            continue
        back = outcome(pickle.loads, data.value)
        if isinstance(back, Returned) and same_graph(value, back.value):
            assert_same_graph(ours.loads(ours.dumps(value, protocol)), value)


class Trickle:
    """A stream whose read gives no more than asked for and has nothing but read and readline."""

    def __init__(self, data: bytes) -> None:
        self._stream = io.BytesIO(data)

    def read(self, n: int = -1) -> bytes:
        """Read."""
        return self._stream.read(n)

    def readline(self) -> bytes:
        """Read a line."""
        return self._stream.readline()


class WithReadInto(Trickle):
    """Has readinto besides."""

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        return self._stream.readinto(buffer)


class WithPeek(WithReadInto):
    """Has peek besides, which gives less than asked for."""

    def peek(self, n: int = 0) -> bytes:
        """Look ahead."""
        at = self._stream.tell()
        data = self._stream.read(max(1, n // 2))
        self._stream.seek(at)
        return data


class PickyPeek(WithReadInto):
    """Has a peek that raises NotImplementedError, as some wrappers do."""

    def peek(self, n: int = 0) -> bytes:
        """Refuse."""
        raise NotImplementedError


STREAMS: list[Callable[[bytes], Any]] = [
    io.BytesIO,
    Trickle,
    WithReadInto,
    WithPeek,
    PickyPeek,
    lambda data: io.BufferedReader(io.BytesIO(data), buffer_size=16),  # type: ignore[arg-type]
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stream", STREAMS, ids=["BytesIO", "read", "readinto", "peek", "picky", "buffered"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_load_from_streams(ours: ModuleType, protocol: int, stream: Callable[[bytes], Any]) -> None:
    """The stream stands right behind STOP afterwards, wherever that can be seen."""
    for group in ("atoms", "containers", "graphs"):
        for name, data in pickles(group, protocol):
            if len(data) > 4000 and "frame" not in name:
                continue
            file = stream(data + b"rest")
            theirs = outcome(pickle.loads, data)
            assert_loads_agree(name, outcome(ours.load, file), theirs)
            assert isinstance(theirs, Raised) or file.read() == b"rest", name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("buffering", [0, 1 << 13])
def test_many_loads_from_a_real_file(ours: ModuleType, tmp_path: Path, buffering: int) -> None:
    """Pickles of all protocols one after the other, by one-off loads and by one Unpickler."""
    data = [d for p in PROTOCOLS for group in ("atoms", "graphs") for _, d in pickles(group, p)]
    path = tmp_path / "many"
    path.write_bytes(b"".join(data))
    with path.open("rb", buffering=buffering) as f:
        for one in data:
            assert_same_graph(ours.load(f), pickle.loads(one))
        with pytest.raises(EOFError):
            ours.load(f)
    # One Unpickler keeps its memo, and MEMOIZE numbers on from there, so only explicit PUTs allow strangers' pickles.
    data = [d for p in (1, 2, 3) for group in ("atoms", "graphs") for _, d in pickles(group, p)]
    path.write_bytes(b"".join(data))
    with path.open("rb", buffering=buffering) as f, path.open("rb") as g:
        mine, theirs = ours.Unpickler(f), pickle.Unpickler(g)
        for _ in data:
            assert_same_graph(mine.load(), theirs.load())
        with pytest.raises(EOFError):
            mine.load()


def test_position_after_load(ours: ModuleType, tmp_path: Path) -> None:
    """load() may read ahead only where it can give back: f.read() afterwards sees what follows."""
    path = tmp_path / "file"
    for protocol in PROTOCOLS:
        one = pickle.dumps([list(range(50)), "text" * 20], protocol)
        path.write_bytes(one + b"tail\n" + one + b"end")
        for buffering in (0, 7, 4096):
            with path.open("rb", buffering=buffering) as f:
                ours.load(f)
                assert f.readline() == b"tail\n"
                ours.load(f)
                assert f.read() == b"end"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("provider", [bytes, bytearray, memoryview])
def test_out_of_band_both_ways(ours: ModuleType, group: str, provider: type) -> None:
    """Buffers dumped by one are taken by the other, read-only and writable ones."""
    for name, value in every_value(group):
        buffers: list[Any] = []
        data = outcome(pickle.dumps, value, 5, buffer_callback=buffers.append)
        if isinstance(data, Raised) or not buffers:
            continue
        raw = [bytes(b.raw()) for b in buffers]
        given = [[provider(bytearray(r)) for r in raw] for _ in range(2)]
        mine = outcome(ours.loads, data.value, buffers=given[0])
        theirs = outcome(pickle.loads, data.value, buffers=iter(given[1]))
        assert_loads_agree(name, mine, theirs)


def test_loads_takes_any_buffer(implementation: ModuleType) -> None:
    data = pickle.dumps({"a": [1, 2]}, 4)
    padded = memoryview(b"xx" + data + b"yy")[2:-2]
    for given in (data, bytearray(data), memoryview(data), padded, pickle.PickleBuffer(data)):
        assert implementation.loads(given) == {"a": [1, 2]}
    with pytest.raises(TypeError):
        implementation.loads("text")
    with pytest.raises(BufferError):
        implementation.loads(memoryview(data + data)[::2])


def test_what_follows_stop_is_ignored(implementation: ModuleType) -> None:
    assert implementation.loads(pickle.dumps([1]) + b"\xff garbage") == [1]


@pytest.mark.parametrize("protocol", [4, 5])
def test_frames_may_be_missing_or_odd(ours: ModuleType, protocol: int) -> None:
    """Frames are optional, may be empty, and may cover any whole opcodes."""
    plain = pickle._dumps([1, "two", b"three"], protocol)  # type: ignore[attr-defined]
    header, body = plain[:2], plain[11:]
    assert ours.loads(header + body) == [1, "two", b"three"]
    for cut in (0, 1):
        streams = [header]
        rest = body[cut:]
        streams.append(b"\x95" + cut.to_bytes(8, "little") + body[:cut])
        streams.append(b"\x95" + len(rest).to_bytes(8, "little") + rest)
        data = b"".join(streams)
        assert outcome(ours.loads, data) == outcome(pickle.loads, data)
        for stream in STREAMS:
            assert outcome(ours.load, stream(data)) == outcome(pickle.load, stream(data))


def test_memo_sharing_across_loads(implementation: ModuleType) -> None:
    """One Unpickler on one stream keeps its memo, as one Pickler does."""
    file = io.BytesIO()
    pickler = implementation.Pickler(file, 2)
    shared = ["shared"]
    for value in ([shared, 1], [shared, 2], shared):
        pickler.dump(value)
    unpickler = implementation.Unpickler(io.BytesIO(file.getvalue()))
    first, second, third = (unpickler.load() for _ in range(3))
    assert first[0] is second[0] is third


def test_corpus_is_wide() -> None:
    """The corpus reaches every opcode that a modern pickler writes."""
    import pickletools

    seen = set()
    for protocol in PROTOCOLS:
        for group in corpus.GROUPS:
            for _, data in pickles(group, protocol):
                if len(data) < 40_000:
                    seen |= {op.name for op, _, _ in pickletools.genops(data)}
    loads_only = {"BINSTRING", "SHORT_BINSTRING", "STRING", "INST", "OBJ", "POP", "POP_MARK", "DUP"}
    elsewhere = {"PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER"}
    giant = {"BINUNICODE8", "BINBYTES8"}
    every = {op.name for op in pickletools.opcodes}
    missing = every - seen - loads_only - elsewhere - giant
    assert missing <= {"LONG4", "LONG", "BINBYTES"} - seen, missing
