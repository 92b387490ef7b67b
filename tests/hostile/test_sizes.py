"""Lengths and memo indexes in a stream are claims: nothing is allocated on their word alone.

Each case is a few bytes that ask for gigabytes, run in a child with little address space to spare. Failing must be quick
and clean; where the bytes are a valid pickle they must load.
"""

from __future__ import annotations

import pytest

from tests import child

pytestmark = pytest.mark.beyond_reference

CAP = 200 * child.MIB

HUGE_LENGTHS = {
    "BINSTRING": "b'T\\xff\\xff\\xff\\x7f'",
    "BINBYTES": "b'B\\xff\\xff\\xff\\xff'",
    "BINBYTES8": "b'\\x8e' + (2**40).to_bytes(8, 'little')",
    "BINBYTES8 over": "b'\\x8e' + (2**64 - 1).to_bytes(8, 'little')",
    "BYTEARRAY8": "b'\\x96' + (2**40).to_bytes(8, 'little')",
    "BYTEARRAY8 max": "b'\\x96' + (2**63 - 1).to_bytes(8, 'little')",
    "BINUNICODE": "b'X\\xff\\xff\\xff\\xff'",
    "BINUNICODE8": "b'\\x8d' + (2**40).to_bytes(8, 'little')",
    "LONG4": "b'\\x8b\\xff\\xff\\xff\\x7f'",
    "LONG4 negative": "b'\\x8b\\xff\\xff\\xff\\xff'",
    "FRAME": "b'\\x80\\x04\\x95' + (2**40).to_bytes(8, 'little') + b'N.'",
    "FRAME max": "b'\\x80\\x04\\x95' + (2**63 - 1).to_bytes(8, 'little')",
}


@pytest.mark.parametrize("name", HUGE_LENGTHS)
def test_huge_lengths(name: str) -> None:
    """From memory, from a file and from a stream that never says how much it has."""
    child.check(
        f"""
        data = {HUGE_LENGTHS[name]}
        for tail in (b"", b"x" * 100, b"x" * 100_000):
            class Stream:
                def __init__(self):
                    self.file = io.BytesIO(data + tail)
                    self.read, self.readline = self.file.read, self.file.readline
            for call in (lambda: P.loads(data + tail), lambda: P.load(io.BytesIO(data + tail)), lambda: P.load(Stream())):
                try:
                    call()
                except (P.UnpicklingError, EOFError):
                    continue
                except (OverflowError, ValueError) as exc:
                    assert "exceed" in str(exc) or "size" in str(exc), exc
                else:
                    raise SystemExit("loaded")
        """,
        cap=CAP,
        timeout=30,
    )


@pytest.mark.parametrize("length", [1 << 31, 1 << 40])
def test_a_stream_that_lies_about_readinto(length: int) -> None:
    """readinto is given a buffer no larger than what has been seen to arrive."""
    child.check(
        f"""
        class Stream:
            def __init__(self):
                self.file = io.BytesIO(b"\\x8e" + ({length}).to_bytes(8, "little") + b"x" * 300_000)
                self.read, self.readline = self.file.read, self.file.readline
            def readinto(self, buffer):
                return self.file.readinto(buffer)
        try:
            P.load(Stream())
        except (P.UnpicklingError, EOFError):
            pass
        else:
            raise SystemExit("loaded")
        """,
        cap=CAP,
        timeout=30,
    )


def test_a_large_body_that_does_arrive() -> None:
    """Growing as data arrives must still give the whole of it."""
    child.check(
        """
        body = bytes(range(256)) * 40_000
        for data in (P.dumps(body, 4), P.dumps(bytearray(body), 5), P.dumps(body.decode("latin1"), 4), P.dumps(body, 3)):
            for kind in ("plain", "readinto", "peek"):
                class Stream:
                    def __init__(self):
                        self.file = io.BufferedReader(io.BytesIO(data), 100)
                        self.readline = self.file.readline
                        if kind != "plain": self.readinto = self.file.readinto
                        if kind == "peek": self.peek = self.file.peek
                    def read(self, n):
                        return self.file.read(n)
                assert P.load(Stream()) == P.loads(data)
        """,
    )


@pytest.mark.parametrize("index", [0x20000000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_huge_memo_indexes(index: int) -> None:
    """A ten-byte pickle whose LONG_BINPUT names a huge slot loads, and the slot can be read back."""
    child.check(
        f"""
        index = ({index}).to_bytes(4, "little")
        assert P.loads(b"\\x80\\x04K\\x07r" + index + b".") == 7
        assert P.loads(b"\\x80\\x02](K\\x05r" + index + b"j" + index + b"e.") == [5, 5]
        assert P.loads(b"K\\x07p" + str({index}).encode() + b"\\n0g" + str({index}).encode() + b"\\n.") == 7
        assert P.loads(b"\\x80\\x04K\\x07r" + index + b"K\\x08\\x940h\\x01.") in (7, 8)
        assert len(P.loads(P.dumps([[i] for i in range(1000)]))) == 1000
        """,
        cap=CAP,
        timeout=30,
    )


def test_huge_and_odd_text_indexes() -> None:
    child.check(
        """
        for index in (2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -1, -2**70):
            data = b"K\\x07p" + str(index).encode() + b"\\n0g" + str(index).encode() + b"\\n."
            try:
                assert P.loads(data) == 7
            except (P.UnpicklingError, ValueError, OverflowError):
                pass
        """,
        cap=CAP,
        timeout=30,
    )


def test_many_scattered_memo_indexes() -> None:
    """A sparse memo must neither allocate the gaps nor become quadratic."""
    child.check(
        """
        import struct
        body = b"".join(b"N" + b"r" + struct.pack("<I", (i * 2654435761) & 0xFFFFFFFF) + b"0" for i in range(100_000))
        assert P.loads(b"\\x80\\x02" + body + b"K\\x01.") == 1
        body = b"".join(b"N" + b"r" + struct.pack("<I", 2**32 - 1 - i) + b"0" for i in range(100_000))
        assert P.loads(b"\\x80\\x02" + body + b"K\\x01.") == 1
        body = b"".join(b"N" + b"r" + struct.pack("<I", i << 12) + b"0" for i in range(100_000))
        assert P.loads(b"\\x80\\x02" + body + b"K\\x01.") == 1
        """,
        cap=CAP,
        timeout=60,
    )


def test_assigned_memo_with_huge_index() -> None:
    child.check(
        """
        u = P.Unpickler(io.BytesIO(b"j\\xff\\xff\\xff\\x7f."))
        u.memo = {0x7FFFFFFF: "far"}
        assert u.load() == "far"
        p = P.Pickler(io.BytesIO(), 2)
        key = ["k"]
        p.memo = {id(key): (2**31, key)}
        p.dump(key)
        """,
        cap=CAP,
        timeout=30,
    )


def test_digits_are_not_quadratic_or_refused() -> None:
    """Ints beyond the interpreter's digit limit travel in every protocol; absurd literals end in good time."""
    child.check(
        """
        n = 10 ** 6000 + 7
        for value in (n, -n, 10 ** 4300, 10 ** 4299, -(10 ** 4300)):
            for protocol in range(6):
                assert P.loads(P.dumps(value, protocol)) == value, protocol
        limit = getattr(sys, "get_int_max_str_digits", lambda: 0)()
        assert limit == getattr(sys, "get_int_max_str_digits", lambda: 0)()
        """,
        timeout=60,
    )


def test_many_opens_of_marks_and_dups() -> None:
    """Stack growth is linear in the input."""
    child.check(
        """
        P.loads(b"N" + b"2" * 2_000_000 + b".")
        try:
            P.loads(b"(" * 2_000_000 + b".")
        except P.UnpicklingError:
            pass
        P.loads(b"(" + b"N" * 2_000_000 + b"t.")
        """,
        cap=400 * child.MIB,
        timeout=60,
    )


def test_exponential_sharing_is_linear_to_load() -> None:
    """Thirty levels of a list holding itself-to-be twice load at once; hashing such tuples is the caller's own doing."""
    child.check(
        """
        value = ["leaf"]
        for _ in range(60):
            value = [value, value]
        data = P.dumps(value)
        assert len(data) < 1000
        P.loads(data)
        """,
        cap=CAP,
        timeout=30,
    )


@pytest.mark.parametrize("order", ["inner first", "outer first"])
def test_states_asked_for_while_they_are_read(order: str) -> None:
    """Instances nested in each other's states, whose state dicts are fetched before they are complete: linear too."""
    child.check(
        f"""
        import struct
        from tests import samples as s
        depth = 120_000
        begin = b"h\\x00)\\x81\\x94}}\\x94(\\x8c\\x01x"
        numbers = range(2, 2 + 2 * depth, 2)
        if {order!r} == "inner first":
            numbers = reversed(numbers)
        gets = b"".join(b"j" + struct.pack("<I", n) + b"0" for n in numbers)
        data = b"\\x80\\x04\\x8c\\x0dtests.samples\\x8c\\x05Plain\\x93\\x94" + begin * depth + gets + b"N" + b"ub" * depth + b"."
        value, levels = P.loads(data), 0
        while value is not None:
            value, levels = value.x, levels + 1
        assert levels == depth
        """,
        timeout=30,
    )
