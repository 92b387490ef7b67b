"""Listing, counting and optimising from Python, against this interpreter's `pickletools`."""

from __future__ import annotations

import io
import pickle
import pickletools

import pytest

from quickpickle import tools
from tests.equality import same_graph
from tests.tools import pickles


def reference(data: bytes, **options: int) -> str:
    out = io.StringIO()
    pickletools.dis(data, out, **options)
    return out.getvalue()


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def listing(data: bytes, **options: int) -> str:
    out = io.StringIO()
    tools.dis(data, out, **options)
    return out.getvalue()


@pytest.mark.parametrize("options", [{}, {"indent": 1}, {"start": 0}])
def test_the_listing_is_that_of_pickletools(options):
    theirs = {"indentlevel" if key == "indent" else key: value for key, value in options.items() if key != "start"}
    for data in pickles.sound():
        assert listing(data, **options) == reference(data, **theirs)


def test_operations_are_those_of_genops():
    """On every pickle, sound or damaged, that both accept."""
    agreed = 0
    for data in pickles.sound() + pickles.golden() + pickles.broken():
        try:
            theirs = [(pos, op.name) for op, _, pos in pickletools.genops(data)]
            lines = listing(data).splitlines()[:-1]
        except (ValueError, IndexError):
            continue
        ours = []
        for line in lines:
            offset, rest = line.split(":", 1)
            ours.append((int(offset), rest.split()[1]))
        assert ours == theirs, data
        agreed += 1
    assert agreed > 1000


def test_several_pickles_in_a_row():
    data = pickle.dumps([1, 2]) + pickle.dumps("x" * 100_000) + b"N."
    out, end, ends = io.StringIO(), 0, []
    while end < len(data):
        end = tools.dis(data, out, start=end)
        ends.append(end)
    assert ends == [len(pickle.dumps([1, 2])), len(data) - 2, len(data)]
    assert out.getvalue().count("STOP") == 3


def test_a_malformed_pickle_is_listed_as_far_as_it_goes():
    out = io.StringIO()
    with pytest.raises(tools.MalformedPickle, match=r"0xff \(byte 2\)") as caught:
        tools.dis(b"N0\xff.", out)
    assert caught.value.offset == 2
    assert out.getvalue() == "    0: N    NONE\n    1: 0    POP\n"
    assert isinstance(caught.value, ValueError)


def test_what_write_raises_passes_through():
    class Full:
        def write(self, text: str) -> None:
            raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        tools.dis(b"N.", Full())


def test_optimize_is_that_of_pickletools():
    """Byte for byte, on every pickle that both accept."""
    agreed = smaller = 0
    for data in pickles.sound() + pickles.golden() + pickles.broken():
        try:
            theirs = pickletools.optimize(data)
            ours = tools.optimize(data)
        except (ValueError, IndexError, TypeError):
            continue
        assert ours == theirs, data
        agreed += 1
        smaller += len(ours) < len(data)
    assert agreed > 1000
    assert smaller > 500


def test_optimize_keeps_meaning():
    for data in pickles.sound():
        made = tools.optimize(data)
        assert len(made) <= len(data)
        assert same_graph(pickle.loads(made), pickle.loads(data))


def test_statistics_add_up():
    for data in pickles.sound():
        found = tools.stats(data)
        operations = list(pickletools.genops(data))
        assert found.bytes == len(data)
        assert found.operations == len(operations)
        assert sum(row.bytes for row in found.opcodes) == len(data)
        for row in found.opcodes:
            assert row.count == sum(op.name == row.name for op, _, _ in operations)
        gets = {arg for op, arg, _ in operations if "GET" in op.name}
        assert found.memo_used == len(gets)
        assert found.frames == sum(op.name == "FRAME" for op, _, _ in operations)


def test_the_stack_is_shown():
    out = io.StringIO()
    tools.dis(b"](K\x01e.", out, stack=True)
    assert out.getvalue().splitlines()[3].endswith("; [list] memo 0")
