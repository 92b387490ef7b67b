"""Writes the golden pickles: bytes as this interpreter's own pickler makes them, with their `pickletools` listing.

Run with each supported interpreter, oldest first: ``python tests/golden/generate.py``. It fills the folder of its
version, ``cpython_3xx``, and ``hand``, which holds what no pickler of today writes: forms of Python 2, the eight-byte
lengths, and faults. A pickle that another folder has already, byte for byte, is not written again. Files stay for ever, so
that every release reads what earlier ones met.

A listing ends in a line ``error`` where `pickletools` raised after the lines before it.
"""

import collections
import copyreg
import datetime
import decimal
import fractions
import io
import pathlib
import pickle
import pickletools
import struct
import sys
import types

HERE = pathlib.Path(__file__).parent

#: A module for the classes below that exists only while they are pickled.
golden = types.ModuleType("golden")
sys.modules["golden"] = golden


def in_golden(cls):
    """Give a class or function the address ``golden.<name>``."""
    cls.__module__ = "golden"
    setattr(golden, cls.__name__, cls)
    return cls


@in_golden
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


@in_golden
class Slotted:
    __slots__ = ("a", "b")


@in_golden
class Keyword:
    """Built by NEWOBJ_EX in protocol 4 and later."""

    def __getnewargs_ex__(self):
        return (1,), {"key": "value"}

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


@in_golden
class Registered:
    """Named by an extension code instead of module and name."""


@in_golden
class Registered2(Registered):
    pass


@in_golden
class Registered4(Registered):
    pass


for cls, code in [(Registered, 0x7F), (Registered2, 0x7FFF), (Registered4, 0x7FFFFFFF)]:
    copyreg.add_extension("golden", cls.__name__, code)


@in_golden
class Stranger:
    """Stored by persistent id."""


class Keeper(pickle.Pickler):
    """A pickler that knows `Stranger` from outside the pickle."""

    def persistent_id(self, obj):
        return "stranger" if isinstance(obj, Stranger) else None


def slotted():
    value = Slotted()
    value.a, value.b = 1, [2]
    return value


def recursive_list():
    value = [1]
    value.append(value)
    return value


def recursive_tuple():
    value = ([],)
    value[0].append(value)
    return value


def recursive_dict():
    value = {}
    value["self"] = value
    return value


def recursive_instance():
    value = Point(None, [])
    value.x = value
    value.y.append(value)
    return value


def shared():
    word, items = "shared word", [1.5]
    return {"a": (word, items), "b": (word, items), word: items}


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value, 1]
    return value


#: Name -> value. No value may depend on the hash seed: sets have at most one str.
VALUES = {
    "none": None,
    "bools": [True, False],
    "ints": [0, 1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -1, -128, -(2**31), -(2**31) - 1],
    "long_ints": [2**63 - 1, 2**63, -(2**63), 2**64, -(2**64) - 1, 10**30],
    "huge_ints": [1 << (8 * 254), 1 << (8 * 255), -(1 << (8 * 255 - 1)), 3**3000],
    "floats": [
        0.0,
        -0.0,
        1.5,
        0.1,
        1e-4,
        9.999e-5,
        1e16,
        -1e22,
        5e-324,
        1.7976931348623157e308,
        float("inf"),
        float("-inf"),
        float("nan"),
    ],
    "str_empty": "",
    "str_ascii": "plain text",
    "str_quotes": ["it's", 'say "hi"', "both ' and \"", "back\\slash", "line\nand\ttab\r", "\x00\x1a\x7f"],
    "str_latin": "caf\xe9 \xa0\xad\xff",
    "str_wide": "snow \u2603, \u4e2d\u6587, e\u0301, \u200b\u2028",
    "str_astral": "grin \U0001f600 private \U0010ffff",
    "str_surrogates": ["\ud800", "\udfff\ud800", "\udcff"],
    "str_255": "a" * 255,
    "str_256": "a" * 256,
    "str_escapes": "\\u0041\\\\u0041\\U00000041\\x41",
    "bytes_empty": b"",
    "bytes_short": b'it\'s \x00\xff\n\t\r\\ "quoted"',
    "bytes_255": bytes(range(255)),
    "bytes_256": bytes(range(256)),
    "bytearray": [bytearray(), bytearray(b"it's \x80\"")],
    "lists": [[], [1], [1, 2], [[[]]]],
    "list_batches": [None] * 1001,
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((((),),),)],
    "dicts": [{}, {"a": 1}, {"a": 1, 2: (3,), None: {}}],
    "dict_batches": dict.fromkeys(range(1001)),
    "sets": [set(), {1}, {3, 1, 2}, {"one"}],
    "frozensets": [frozenset(), frozenset([1]), frozenset([(frozenset([2]), 3)])],
    "recursive_list": recursive_list(),
    "recursive_tuple": recursive_tuple(),
    "recursive_dict": recursive_dict(),
    "recursive_instance": recursive_instance(),
    "shared": shared(),
    "deep": deep(30),
    "memo_300": [[str(i)] for i in range(150)] * 2,
    "globals": [len, collections.OrderedDict, Point, dict.fromkeys, NotImplemented, Ellipsis, type(None)],
    "instance": Point(1, "two"),
    "instances": [Point(i, float(i)) for i in range(3)],
    "slotted": slotted(),
    "newobj_ex": Keyword(),
    "extensions": [Registered, Registered2(), Registered4],
    "persistent": [Stranger(), "text", Stranger()],
    "exception": ValueError("bad", 3),
    "complex": 1 + 2j,
    "range": range(1, 10, 2),
    "ordered_dict": collections.OrderedDict(a=1, b=[2]),
    "deque": collections.deque([1, 2], 5),
    "datetime": datetime.datetime(2024, 2, 29, 12, 30, 1, 5, datetime.timezone.utc),
    "decimal": decimal.Decimal("1.25"),
    "fraction": fractions.Fraction(1, 3),
    "frames": [letter * 33000 for letter in (b"a", b"b", b"c")],
}

#: The first protocol that can hold a value, where it is not 0.
OLDEST = {"slotted": 2, "frames": 4}

U64 = struct.Struct("<Q").pack
U32 = struct.Struct("<I").pack

#: Name -> bytes nobody writes any more, or nobody should.
HAND = {
    # Python 2 and unusual, but right.
    "inst": b"(cgolden\nPoint\np0\nI1\nigolden\nPoint\np1\n.",
    "inst_plain": b"(I1\nS'two'\nigolden\nPoint\n.",
    "obj": b"(cgolden\nPoint\nI1\nI2\no.",
    "string": b"(S'a\\'b\\n\\x41\\101'\nS\"it's\"\nS''\nt.",
    "binstring": b"(U\x03a\xe9\nT\x04\0\0\0it's" + b"t.",
    "list_text": b"(I1\nI01\nI00\nI-5\nL7L\nL-8\nF1.25\nF1e5\nF-inf\nl.",
    "dict_text": b"(Va\nI1\nVb\n(I2\nI3\ntd.",
    "int_forms": b"(I 7 \nI+7\nI-007\nI1_000\nL 5L\nL0L\nF 1_0.5 \nFnan\nFInfinity\nl.",
    "unicode_forms": b"(V\\u2603\\\\u2603\\n\xe9\nV\\U0001f600\\ud800\nt.",
    "dup": b"]2\x86.",
    "pop_mark": b"N(K\x01K\x021.",
    "pop_a_mark": b"(0N.",
    "pop": b"NK\x010.",
    "put_get_text": b"Np10\ng10\n\x86.",
    "long_memo": b"Nr\0\0\1\0j\0\0\1\0\x86.",
    "sparse_memo": b"Nr\xff\xff\xff\x7fj\xff\xff\xff\x7f\x86.",
    "unicode8": b"\x80\4\x8d" + U64(3) + "\u2603".encode() + b".",
    "bytes8": b"\x80\4\x8e" + U64(2) + b"ab.",
    "bytes4": b"\x80\3B" + U32(2) + b"ab.",
    "bytearray8": b"\x80\5\x96" + U64(3) + b"a'b.",
    "long1": b"(\x8a\0\x8a\1\xff\x8a\x0a" + b"\xff" * 9 + b"\0t.",
    "long4": b"\x8b" + U32(12) + b"\1" * 12 + b".",
    "buffers": b"\x80\5(\x97\x97\x98t.",
    "binpersid": b"K\x07Q.",
    "persid": b"Pan id\n.",
    "stack_global": b"\x80\4\x8c\2os\x8c\4path\x93.",
    "newobj": b"\x80\2cgolden\nPoint\n)\x81}Vx\nK\1sb.",
    "protocol_9": b"\x80\x09N.",
    "extensions": b"(\x82\1\x83\0\1\x84\0\0\1\0t.",
    "frame_too_long": b"\x80\4\x95" + U64(2**64 - 1) + b"N.",
    "frame_crossed": b"\x80\4\x95" + U64(2) + b"X\5\0\0\0abcde.",
    "trailing": b"N.N.",
    "empty_lines": b"(S''\nV\nP\nt.",
    # Wrong, though `pickletools` sees nothing wrong with it.
    "odd_mark_as_value": b"(.",
    # Wrong.
    "bad_empty": b"",
    "bad_no_stop": b"N",
    "bad_unknown": b"N\xff.",
    "bad_zero": b"\0.",
    "bad_stop_empty": b".",
    "bad_left": b"NN.",
    "bad_left_marks": b"(((1.",
    "bad_no_mark": b"Nt.",
    "bad_mark_twice": b"(dl.",
    "bad_pop": b"0.",
    "bad_underflow": b"N\x86.",
    "bad_newobj": b"\x81.",
    "bad_below_mark": b"(NNu.",
    "bad_get": b"h\0.",
    "bad_get_text": b"g5\n.",
    "bad_put_empty": b"q\0.",
    "bad_put_mark": b"(q\0.",
    "bad_put_twice": b"Nq\0q\0.",
    "bad_memoize": b"\x94.",
    "bad_int": b"Ix\n.",
    "bad_int_empty": b"I\n.",
    "bad_int_underscore": b"I1__0\n.",
    "bad_long": b"L1LL\n.",
    "bad_float": b"F1x\n.",
    "bad_float_hex": b"F0x1p3\n.",
    "bad_quotes": b"Sa\n.",
    "bad_quotes_mixed": b"S'a\"\n.",
    "bad_escape": b"S'\\x4'\n.",
    "bad_escape_end": b"S'\\'\n.",
    "bad_unicode_escape": b"V\\u12\n.",
    "bad_unicode_range": b"V\\U00110000\n.",
    "bad_utf8": b"X\1\0\0\0\xff.",
    "bad_utf8_short": b"\x8c\2\xc0\x80.",
    "bad_utf8_cut": b"\x8c\2\xe2\x98.",
    "bad_negative_string": b"T\xff\xff\xff\xff.",
    "bad_negative_long": b"\x8b\xff\xff\xff\xff.",
    "bad_length_8": b"\x8d" + U64(2**64 - 1) + b".",
    "bad_length_4": b"B" + U32(2**32 - 1) + b"abc.",
    "bad_length_1": b"C\5abc.",
    "bad_cut_int": b"J\0\0",
    "bad_cut_float": b"G\0\0\0\0",
    "bad_cut_line": b"I12",
    "bad_cut_global": b"cos\n",
    "bad_cut_frame": b"\x95\1\0",
}


def dumps(value, protocol):
    """The pickle of a value by this interpreter's C pickler."""
    out = io.BytesIO()
    Keeper(out, protocol).dump(value)
    return out.getvalue()


def listing(data):
    """What `pickletools` prints, with a line ``error`` where it raises."""
    out = io.StringIO()
    try:
        pickletools.dis(data, out)
    except ValueError:
        out.write("error\n")
    return out.getvalue()


def write(folder, pickles):
    """Write one folder, leaving out what other folders have."""
    others = {path.read_bytes() for path in HERE.glob("*/*.pickle") if path.parent != folder}
    for name, data in pickles.items():
        if data not in others:
            others.add(data)
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.pickle").write_bytes(data)
            (folder / f"{name}.listing").write_text(listing(data), encoding="utf-8", errors="strict")


def main():
    pickles = {
        f"{name}_{protocol}": dumps(value, protocol)
        for name, value in VALUES.items()
        for protocol in range(OLDEST.get(name, 0), pickle.HIGHEST_PROTOCOL + 1)
    }
    write(HERE / f"cpython_{sys.version_info.major}{sys.version_info.minor}", pickles)
    write(HERE / "hand", HAND)


if __name__ == "__main__":
    main()
