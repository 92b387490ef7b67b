"""The pickles are the reference's, byte for byte: every value of the corpus, every protocol, every way to dump."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import corpus
from tests.corpus import classes, library
from tests.outcomes import Raised, Returned, outcome

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
GROUPS = list(corpus.GROUPS)


def every_value(group: str) -> Iterator[tuple[str, Any]]:
    """Yield a group's values, those of protocol 2 and up too: both must then refuse 0 and 1 alike."""
    yield from corpus.GROUPS[group]()
    if group == "classes":
        yield from classes.protocol_2_up()
    if group == "library":
        yield from library.protocol_2_up()


def one_shot(name: str) -> bool:
    """Tell whether dumping uses the value up: reduce values that hold an iterator."""
    return name.startswith(("reduce 4", "reduce 5", "reduce 6"))


def fresh_pairs(group: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each value twice; as one object unless dumping it uses it up."""
    for (name, a), (_, b) in zip(every_value(group), every_value(group), strict=True):
        yield name, a, b if one_shot(name) else a


class Chunks:
    """A file that keeps each write, as type and bytes."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []

    def write(self, data: Any) -> int:
        """Keep a chunk."""
        self.written.append((type(data).__name__, bytes(data)))
        return len(data)


def dump_chunks(module: ModuleType, value: Any, protocol: int, **options: Any) -> list[tuple[str, bytes]]:
    """Return what dump() hands to write(), call by call."""
    file = Chunks()
    module.dump(value, file, protocol, **options)
    return file.written


def assert_same(name: str, mine: Any, theirs: Any) -> None:
    """Compare two outcomes; long bytes are shown where they part."""
    if mine == theirs:
        return
    if isinstance(mine, Raised) and isinstance(theirs, Raised):
        if mine.kind is theirs.kind is RecursionError:
            return  # an endless reduce: the depth at which each gives up is its own
    if isinstance(mine, Returned) and isinstance(theirs, Returned):
        a, b = mine.value, theirs.value
        if isinstance(a, bytes) and isinstance(b, bytes):
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            window = slice(max(0, at - 20), at + 40)
            pytest.fail(f"{name}: byte {at} of {len(a)} / {len(b)}\nours {a[window]!r}\nC    {b[window]!r}")
    pytest.fail(f"{name}:\nours {str(mine)[:300]}\nC    {str(theirs)[:300]}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dumps(ours: ModuleType, group: str, protocol: int) -> None:
    count = refused = 0
    for name, a, b in fresh_pairs(group):
        theirs = outcome(pickle.dumps, b, protocol)
        assert_same(name, outcome(ours.dumps, a, protocol), theirs)
        count += 1
        refused += isinstance(theirs, Raised)
    if group != "third_party":
        assert count > 60
        assert refused <= (20 if protocol < 2 else 8), "a corpus that cannot be pickled tests nothing"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dump_writes_the_same_chunks(ours: ModuleType, group: str, protocol: int) -> None:
    """Frames go out one by one, and a large buffer is handed over as the object itself."""
    for name, a, b in fresh_pairs(group):
        theirs = outcome(dump_chunks, pickle, b, protocol)
        assert_same(name, outcome(dump_chunks, ours, a, protocol), theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_dump_to_files(ours: ModuleType, group: str, tmp_path: Path) -> None:
    protocol = 4
    mine, theirs, memory = tmp_path / "ours", tmp_path / "reference", io.BytesIO()
    a = [value for name, value in every_value(group) if not one_shot(name)]
    a = [v for v in a if isinstance(outcome(pickle.dumps, v, protocol), Returned)]
    with mine.open("wb") as f, theirs.open("wb") as g:
        for value in a:
            ours.dump(value, f, protocol)
            ours.dump(value, memory, protocol)
            pickle.dump(value, g, protocol)
    assert mine.read_bytes() == theirs.read_bytes()
    assert memory.getvalue() == theirs.read_bytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_pickler_for_many(ours: ModuleType, group: str, protocol: int) -> None:
    """One Pickler keeps its memo from dump to dump, so a second dump of a value is a GET."""
    values = [value for name, value in every_value(group) if not one_shot(name)]
    values = [v for v in values if isinstance(outcome(pickle.dumps, v, protocol), Returned)][:150]
    values += values[:20]
    got = []
    for module in (ours, pickle):
        file = io.BytesIO()
        pickler = module.Pickler(file, protocol)
        ends = []
        for i, value in enumerate(values):
            pickler.dump(value)
            ends.append(file.tell())
            if i == len(values) // 2:
                pickler.clear_memo()
        got.append((file.getvalue(), ends))
    assert got[0] == got[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_out_of_band(ours: ModuleType, group: str) -> None:
    """With a buffer_callback the stream and the buffers are the same."""
    for name, a, b in fresh_pairs(group):
        got = []
        for module, value in ((ours, a), (pickle, b)):
            buffers: list[Any] = []
            stream = outcome(module.dumps, value, 5, buffer_callback=buffers.append)
            got.append((stream, [bytes(x.raw()) for x in buffers]))
        assert got[0] == got[1], name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fix_imports", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fix_imports(ours: ModuleType, protocol: int, fix_imports: bool) -> None:
    for group in ("classes", "library"):
        for name, a, b in fresh_pairs(group):
            mine = outcome(ours.dumps, a, protocol, fix_imports=fix_imports)
            assert_same(name, mine, outcome(pickle.dumps, b, protocol, fix_imports=fix_imports))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fast_mode(ours: ModuleType, protocol: int) -> None:
    """``fast`` leaves the memo out."""
    for group in ("atoms", "containers", "classes"):
        for name, a, b in fresh_pairs(group):
            if name == "memo 66000":
                continue
            got = []
            for module, value in ((ours, a), (pickle, b)):
                file = io.BytesIO()
                pickler = module.Pickler(file, protocol)
                pickler.fast = True
                result = outcome(pickler.dump, value)
                # What is written before an error is as much as the depth reached.
                got.append((result, b"" if isinstance(result, Raised) else file.getvalue()))
            assert_same(name, got[0], got[1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_do_not_depend_on_outside_references(ours: ModuleType, protocol: int) -> None:
    """A temporary that nobody else holds pickles like one that is held."""
    held = [[1, 2], (3, [4]), {"a": [5]}, "text" * 3, b"bytes" * 3]
    assert ours.dumps(held, protocol) == pickle.dumps(held, protocol)
    fresh = ours.dumps([[1, 2], (3, [4]), {"a": [5]}, "text" * 3, b"bytes" * 3], protocol)
    assert fresh == pickle.dumps(held, protocol)


def test_default_protocol(ours: ModuleType) -> None:
    for protocol in (None, -1, -5):
        assert ours.dumps([1], protocol) == pickle.dumps([1], protocol)
    assert ours.dumps([1]) == pickle.dumps([1])


def test_warnings_are_errors_alike(ours: ModuleType) -> None:
    """An iterator whose pickling warns does so under us too (3.12 and 3.13 deprecate itertools)."""
    import itertools

    for value in (itertools.count(1), itertools.chain([1])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert outcome(ours.dumps, value) == outcome(pickle.dumps, value)
