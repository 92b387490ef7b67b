"""The Rust listing against this interpreter's `pickletools.dis`, on generated pickles and on damaged ones.

The golden pickles are compared by the crate's own tests; here the inputs are many and made anew. The listing comes
from the crate's example ``dis``, which cargo builds first.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import pickle
import pickletools
import random
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

#: Where `pickletools` raises and the listing goes on, because the pickle loads: text that is not ASCII in protocol 0
#: operations, and integers beyond the digit limit.
GOES_ON = re.compile(r"'ascii' codec can't decode|Exceeds the limit")

#: `pickletools` takes a backslash in these lines for an escape. Unpicklers do not, and neither does the listing.
ESCAPED_NAME = re.compile(r" (GLOBAL|INST|PERSID) .*\\\\")


@pytest.fixture(scope="session")
def dis_program() -> pathlib.Path:
    """Build the example and return its path."""
    command = ["cargo", "build", "--quiet", "--package", "quickpickle-format", "--example", "dis"]
    command += ["--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return next(pathlib.Path(m["executable"]) for m in messages if m.get("executable"))


def ours(program: pathlib.Path, folder: pathlib.Path, pickles: list[bytes], *options: str) -> list[list[str]]:
    """Return the lines of each pickle's listing."""
    paths = []
    for number, data in enumerate(pickles):
        path = folder / str(number)
        path.write_bytes(data)
        paths.append(str(path))
    listings: list[list[str]] = []
    for start in range(0, len(paths), 500):
        # Two at least, or there are no headings.
        some = [*paths[start : start + 500], os.devnull]
        done = subprocess.run([program, *options, *some], capture_output=True, timeout=120, check=False)
        assert done.returncode in (0, 1), done.stderr.decode()
        parts = re.split(r"^==> .* <==\n", done.stdout.decode(), flags=re.MULTILINE)[1:-1]
        listings += [part.split("\n")[:-1] for part in parts]
    assert len(listings) == len(pickles)
    return listings


def reference(data: bytes, **options: int) -> tuple[list[str], Exception | None]:
    """Return the lines `pickletools` prints, and what it raised then."""
    out, error = io.StringIO(), None
    try:
        pickletools.dis(data, out, **options)
    except (ValueError, IndexError) as raised:
        error = raised
    # A line it had begun when an argument would not print does not count.
    return out.getvalue().split("\n")[:-1], error


def value(rng: random.Random, depth: int = 0) -> object:
    """A random value that pickles the same way in every run."""
    leaf = rng.randrange(9) if depth > 3 else rng.randrange(16)
    if leaf == 0:
        return rng.choice([None, True, False, len, 2.5j, range(3), ValueError("no", 1)])
    if leaf in (1, 2):
        return rng.randrange(-(2 ** rng.randrange(1, 90)), 2 ** rng.randrange(1, 90))
    if leaf in (3, 4):
        return rng.choice([rng.random(), rng.uniform(-1e20, 1e20), rng.random() * 10 ** rng.randrange(-320, 300)])
    if leaf in (5, 6):
        alphabet = "abc '\"\\\n\r\t\x00\x7f\xa0\xe9\u0301\u2603\u4e2d\ud800\U0001f600\U0010ffff"
        return "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 5, 300])))
    if leaf in (7, 8):
        data = rng.randbytes(rng.choice([0, 1, 5, 300]))
        return bytearray(data) if rng.random() < 0.3 else data
    children = [value(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 3, 7]))]
    if leaf in (9, 10):
        return children + children[:1]
    if leaf in (11, 12):
        return tuple(children)
    if leaf in (13, 14):
        return {rng.choice([str(i), i, (i,)]): child for i, child in enumerate(children)}
    return frozenset(range(len(children)))


def generated(count: int) -> list[bytes]:
    """Pickles of random values, all protocols."""
    rng = random.Random(20240229)
    return [pickle.dumps([value(rng), value(rng)], number % 6) for number in range(count)]


def damaged(count: int) -> list[bytes]:
    """Small pickles with bytes changed, cut out, doubled, or the end missing."""
    rng = random.Random(19700101)
    golden = [path.read_bytes() for path in sorted(GOLDEN.glob("*/*.pickle"))]
    small = [data for data in generated(400) + golden if len(data) < 400]
    assert len(small) > 300
    made = []
    for _ in range(count):
        data = bytearray(rng.choice(small))
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data) + 1)
            change = rng.randrange(5)
            if change == 0:
                data[at : at + 1] = rng.randbytes(1)
            elif change == 1:
                del data[at : at + rng.randrange(1, 4)]
            elif change == 2:
                data[at:at] = rng.choice(pickletools.opcodes).code.encode("latin-1")
            elif change == 3:
                other = rng.choice(small)
                data[at:at] = other[: rng.randrange(len(other) + 1)]
            else:
                del data[at:]
        made.append(bytes(data))
    return made


def test_generated_pickles(dis_program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Every line is the same, character by character."""
    pickles = generated(1500)
    for data, lines in zip(pickles, ours(dis_program, tmp_path, pickles), strict=True):
        expected, error = reference(data)
        assert error is None
        assert lines == expected, data


def test_annotations_stand_in_the_same_columns(dis_program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Annotations are in other words, but nothing around them differs."""
    pickles = generated(300)
    docs = {op.name: op.doc.split("\n", 1)[0] for op in pickletools.opcodes}
    for data, lines in zip(pickles, ours(dis_program, tmp_path, pickles, "--annotate"), strict=True):
        expected, error = reference(data, annotate=30)
        assert error is None
        assert len(lines) == len(expected)
        for line, (op, _, _), wanted in zip(lines[:-1], pickletools.genops(data), expected[:-1], strict=True):
            before = wanted.removesuffix(docs[op.name])
            assert before.endswith(" ")
            assert line.startswith(before)
            assert re.fullmatch(r"\S.*", line[len(before) :])
        assert lines[-1] == expected[-1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_damaged_pickles(dis_program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The same lines and then an error in both, or neither, apart from the differences that are meant."""
    pickles = damaged(6000)
    faults = agreed = 0
    for data, lines in zip(pickles, ours(dis_program, tmp_path, pickles), strict=True):
        expected, error = reference(data)
        fault = lines.pop() if lines and lines[-1].startswith("error: ") else None
        # What is printable depends on the Unicode version; escaped it is all the same.
        lines = [line.encode("ascii", "backslashreplace").decode() for line in lines]
        expected = [line.encode("ascii", "backslashreplace").decode() for line in expected]
        faults += error is not None
        if any(ESCAPED_NAME.search(line) for line in lines):
            continue
        if fault is not None and "filled twice" in fault and sys.version_info >= (3, 14):
            # `pickletools` has stopped minding that.
            assert lines == expected[: len(lines)], data
            continue
        if error is not None and GOES_ON.search(str(error)):
            assert lines[: len(expected)] == expected, data
        elif error is None and fault is not None:
            assert lines == expected[: len(lines)], data
            assert stricter(data, fault), (data, fault)
        elif isinstance(error, IndexError):
            # `pickletools` looks for a mark that another operation took for an object.
            assert (fault or "").startswith("error: no mark"), (data, fault)
            assert lines[: len(expected)] == expected, data
        else:
            assert lines == expected, data
            assert (fault is None) == (error is None), (data, fault, error)
            agreed += 1
    assert faults > 3000
    assert agreed > 5500


def stricter(data: bytes, fault: str) -> bool:
    """Tell whether the listing is right to refuse what `pickletools` lists: the unpickler refuses it too."""
    if "PUT is not an integer" in fault or "GET is not an integer" in fault:
        return re.search(rb"[pg](-|\d{19})", data) is not None
    return "STRING is not in matching quotes" in fault and re.search(rb"S['\"]\n", data) is not None
