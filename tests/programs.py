"""Pickle programs for comparing unpicklers: every opcode on every kind of stack, and random sequences.

Only the globals in ``ALLOWED`` can be reached, so a program may be run whatever it says.
"""

from __future__ import annotations

import functools
import pickle
import random
import struct
from collections.abc import Iterator
from typing import Any

from tests import samples

ALLOWED = {
    *(("builtins", n) for n in ("list", "dict", "set", "frozenset", "int", "str", "tuple", "complex", "object")),
    *(("collections", n) for n in ("OrderedDict", "deque")),
    *(
        ("tests.samples", n)
        for n in (
            *("Point", "Plain", "Node", "Slots", "SlotsAndDict", "ListChild", "DictChild", "SetChild", "TupleChild"),
            *("IntChild", "StrChild", "WithState", "SetStateOnly", "NewArgs", "NewArgsEx", "SetAttr", "Bag", "Hashed"),
            *("AppendOnlyBag", "AddOnlySet", "Described", "NeedsArguments", "Record", "SlotsRecord", "StrictRecord"),
            *("function", "set_state", "raise_value_error", "Outer", "Outer.Inner", "Meta", "Made", "ListWithExtend"),
        )
    ),
}


@functools.cache
def guarded(module: Any) -> Any:
    """Return an Unpickler of ``module`` that resolves nothing but ALLOWED."""

    class Guarded(module.Unpickler):  # type: ignore[name-defined,misc]
        def find_class(self, module_name: str, name: str) -> Any:
            if (module_name, name) not in ALLOWED:
                raise pickle.UnpicklingError(f"blocked {module_name!r:.50} {name!r:.50}")
            return super().find_class(module_name, name)

        def persistent_load(self, pid: Any) -> Any:
            return ["persistent", pid]

    return Guarded


def _global(name: str) -> bytes:
    return b"ctests.samples\n" + name.encode() + b"\n"


VALUES: dict[str, bytes] = {
    "none": b"N",
    "true": b"\x88",
    "int": b"K\x05",
    "long": b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    "float": b"G?\xf8\x00\x00\x00\x00\x00\x00",
    "str": b"\x8c\x03abc",
    "bytes": b"C\x02xy",
    "bytearray": b"\x96\x02\x00\x00\x00\x00\x00\x00\x00xy",
    "unit": b")",
    "pair": b"K\x01K\x02\x86",
    "pair of dicts": b"}}\x86",
    "list": b"]",
    "list of 2": b"](K\x01K\x02e",
    "dict": b"}",
    "dict with str": b"}(\x8c\x01aK\x01u",
    "dict with int": b"}(K\x01K\x02u",
    "set": b"\x8f",
    "frozenset": b"((K\x01\x91\x91",
    "class": _global("Point"),
    "instance": _global("Plain") + b")\x81",
    "instance with slots": _global("SlotsAndDict") + b")\x81",
    "function": _global("function"),
    "list child": _global("ListChild") + b")\x81",
    "dict child": _global("DictChild") + b")\x81",
    "with setstate": _global("SetStateOnly") + b")\x81",
    "newargs": _global("NewArgs"),
    "newargs_ex": _global("NewArgsEx"),
    "slots only": _global("Slots") + b")\x81",
    "set child": _global("SetChild") + b")\x81",
    "bag": _global("Bag") + b")R",
    "add only": _global("AddOnlySet") + b")R",
    "append only": _global("AppendOnlyBag") + b")R",
}

STACKS: dict[str, bytes] = {
    "empty": b"",
    "mark": b"(",
    "two marks": b"((",
    **VALUES,
    **{f"{name}, mark": code + b"(" for name, code in VALUES.items()},
    **{f"mark, {name}": b"(" + code for name, code in VALUES.items()},
}


def _opcodes() -> dict[str, list[bytes]]:
    """Every opcode with good and bad arguments."""
    le4, le8 = struct.Struct("<I").pack, struct.Struct("<Q").pack
    simple = {
        name: [getattr(pickle, name)]
        for name in (
            *("MARK", "STOP", "POP", "POP_MARK", "DUP", "NONE", "REDUCE", "APPEND", "BUILD", "DICT", "EMPTY_DICT"),
            *("APPENDS", "LIST", "EMPTY_LIST", "OBJ", "SETITEM", "TUPLE", "EMPTY_TUPLE", "SETITEMS", "NEWOBJ"),
            *("TUPLE1", "TUPLE2", "TUPLE3", "NEWTRUE", "NEWFALSE", "EMPTY_SET", "ADDITEMS", "FROZENSET"),
            *("NEWOBJ_EX", "STACK_GLOBAL", "MEMOIZE", "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER"),
        )
    }
    lines = (
        b"",
        b"\n",
        b"0\n",
        b"1\n",
        b"-1\n",
        b"x\n",
        b"1",
        b" 7 \n",
        b"99\n",
        b"1L\n",
        b"\xff\n",
        b"1_0\n",
        b"00\n",
    )
    texts = (
        *(b"'a'\n", b'"b"\n', b"a\n", b"'\n", b"''\n", b"'a\"\n", b"'\\x41'\n", b"'\\'\n", b"'\\q'\n", b" 'a' \n"),
        *(
            b"'\xe9'\n",
            b"\\u0041\n",
            b"\\uZZ\n",
            b"\xe9\n",
            b"'a\\n'\n",
            b"'\\u0041'\n",
            b"'\\N{DASH}'\n",
            b"'\\400'\n",
        ),
    )
    counted = {
        "SHORT": [
            b"\x00",
            b"\x02ab",
            b"\x05ab",
            b"\x02\xc3\xa9",
            b"\x02\xff\xfe",
            b"\x03\xed\xa0\x80",
            b"\x03\xed\xa0",
            b"",
        ],
        "FOUR": [le4(0), le4(2) + b"ab", le4(5) + b"ab", le4(2) + b"\xff\xfe", le4(2**31), le4(2**32 - 1), b"\x01"],
        "EIGHT": [le8(0), le8(2) + b"ab", le8(5) + b"ab", le8(2) + b"\xff\xfe", le8(2**63), le8(2**64 - 1), b"\x01"],
    }
    widths = {
        "SHORT": ("SHORT_BINUNICODE", "SHORT_BINBYTES", "SHORT_BINSTRING", "LONG1"),
        "FOUR": ("BINUNICODE", "BINBYTES", "BINSTRING", "LONG4"),
        "EIGHT": ("BINUNICODE8", "BINBYTES8", "BYTEARRAY8"),
    }
    table = dict(simple)
    for width, names in widths.items():
        for name in names:
            table[name] = [getattr(pickle, name) + arg for arg in counted[width]]
    for name in ("INT", "LONG", "FLOAT", "GET", "PUT"):
        extra = [b"01\n", b"1.5\n", b"inf\n", b"nan\n", b"1e5\n", b"0x10\n", b"1 \n", b"18446744073709551616\n"]
        if name == "PUT":
            extra = [b"01\n", b"1.5\n", b"18446744073709551616\n", b"-18446744073709551616\n"]
        table[name] = [getattr(pickle, name) + arg for arg in (*lines, *extra)]
    for name in ("STRING", "UNICODE", "PERSID"):
        table[name] = [getattr(pickle, name) + arg for arg in texts]
    table["BININT"] = [b"J" + a for a in (b"\x01\x00\x00\x00", b"\xff\xff\xff\xff", b"\x01")]
    table["BININT1"] = [b"K\xff", b"K"]
    table["BININT2"] = [b"M\xff\xff", b"M\x01"]
    table["BINFLOAT"] = [b"G" + struct.pack(">d", f) for f in (0.0, -0.0, 1e300, float("nan"))] + [b"G\x00"]
    table["BINGET"] = [b"h\x00", b"h\x05", b"h"]
    table["LONG_BINGET"] = [b"j" + le4(0), b"j" + le4(9), b"j" + le4(2**32 - 1), b"j\x00"]
    table["BINPUT"] = [b"q\x00", b"q\xff", b"q"]
    table["LONG_BINPUT"] = [b"r" + le4(0), b"r" + le4(300), b"r\x00"]
    table["EXT1"] = [b"\x82\x00", b"\x82\xf0", b"\x82"]
    table["EXT2"] = [b"\x83\x00\x00", b"\x83\xf0\xf0", b"\x83\x00"]
    table["EXT4"] = [b"\x84" + le4(0), b"\x84" + le4(77), b"\x84" + le4(2**31), b"\x84\x00"]
    table["PROTO"] = [b"\x80" + bytes([p]) for p in (0, 2, 4, 5, 6, 255)] + [b"\x80"]
    table["FRAME"] = [b"\x95" + le8(n) for n in (0, 1, 2, 3, 2**20, 2**63, 2**64 - 1)] + [b"\x95\x01"]
    names = (
        b"tests.samples\nPoint\n",
        b"tests.samples\nnope\n",
        b"no_such\nx\n",
        b"\n\n",
        b"a\n",
        b"tests.samples\nfunction\n",
        b"tests.samples\nOuter.Inner\n",
        b"__builtin__\nlist\n",
        b"\xff\nx\n",
        b"builtins\nexec\n",
    )
    table["GLOBAL"] = [b"c" + n for n in names]
    table["INST"] = [b"i" + n for n in names]
    known = {code for codes in table.values() for code in (c[:1] for c in codes)}
    table["unknown"] = [bytes([b]) for b in range(256) if bytes([b]) not in known]
    return table


OPCODES = _opcodes()


def one_opcode_programs() -> Iterator[tuple[str, bytes]]:
    """Every opcode and argument on every stack, followed by STOP."""
    for op, codes in OPCODES.items():
        bad_arguments = len(codes) > 3
        for i, code in enumerate(codes):
            for stack, prefix in STACKS.items():
                if bad_arguments and stack not in ("empty", "mark", "int", "list", "str", "mark, str"):
                    continue
                yield f"{op} {i} on {stack}", prefix + code + b"."


def two_operand_programs() -> Iterator[tuple[str, bytes]]:
    """Opcodes that take two or three operands, on all pairs of values."""
    for a, first in VALUES.items():
        for b, second in VALUES.items():
            for op in (b"R", b"b", b"\x81", b"a", b"\x86", b"\x93", b"o"):
                yield f"{op!r} on {a}, {b}", first + second + op + b"."
            yield f"SETITEMS on {a}: {b}", first + b"(" + second + b"K\x01u."
            yield f"SETITEM on {a}: {b}", first + second + b"K\x01s."
            yield f"APPENDS on {a}: {b}", first + b"(" + second + b"e."
            yield f"ADDITEMS on {a}: {b}", first + b"(" + second + b"\x90."
            yield f"OBJ on {a}, {b}", b"(" + first + second + b"o."
            yield f"DICT on {a}, {b}", b"(" + first + second + b"d."
            yield f"FROZENSET on {a}, {b}", b"(" + first + second + b"\x91."
            yield f"NEWOBJ_EX on newargs_ex, {a}, {b}", VALUES["newargs_ex"] + first + second + b"\x92."
            yield f"BUILD on instance with ({a}, {b})", VALUES["instance"] + first + second + b"\x86b."
            yield f"BUILD on slots with ({a}, {b})", VALUES["instance with slots"] + first + second + b"\x86b."


_NAMES = ("a", "b", "x", "y", "name", "state", "label", "next", "__dict__", "__setstate__")
_CLASSES = ("Plain", "Point", "Node", "Slots", "SlotsAndDict", "ListChild", "DictChild", "SetChild", "WithState")
_CALLABLES = ("function", "Plain", "Bag", "AppendOnlyBag", "AddOnlySet")


class _Program:
    """Writes a program while keeping track of what is on the stack, so that most of it is well formed."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.code = bytearray(b"\x80" + bytes([rng.choice((2, 4, 5))]))
        self.stack: list[str] = []
        self.memo = 0

    def emit(self, code: bytes, pops: int = 0, push: str | None = None) -> None:
        """Write an opcode and do to the stack what it does."""
        self.code += code
        if pops:
            del self.stack[-pops:]
        if push is not None:
            self.stack.append(push)

    def value(self) -> None:
        """Push something."""
        rng = self.rng
        pick = rng.randrange(12)
        if pick < 3:
            self.emit(b"K" + bytes([rng.randrange(4)]), push="atom")
        elif pick < 6:
            name = rng.choice(_NAMES).encode()
            self.emit(b"\x8c" + bytes([len(name)]) + name, push="atom")
        elif pick == 6:
            self.emit(b"]", push="list")
        elif pick == 7:
            self.emit(b"}", push="dict")
        elif pick == 8:
            self.emit(b"\x8f", push="set")
        elif pick == 9:
            name = rng.choice(_CLASSES)
            kind = {"ListChild": "list", "DictChild": "dict", "SetChild": "set"}.get(name, "instance")
            self.emit(_global(name) + b")\x81", push=kind)
        elif pick == 10:
            self.emit(_global(rng.choice(_CALLABLES)) + b")R", push="instance")
        else:
            self.emit(rng.choice((b"N", b")", b"\x88")), push="atom")

    def step(self) -> None:
        """Write one opcode that fits, or now and then one that need not."""
        rng, stack = self.rng, self.stack
        above = len(stack) - 1 - max((i for i, k in enumerate(stack) if k == "mark"), default=-1)
        marked = "mark" in stack
        target = stack[-above - 2] if marked and above + 2 <= len(stack) else None
        moves: list[Any] = [self.value] * 3
        moves += [lambda: self.emit(b"(", push="mark")] * 2
        if stack and stack[-1] != "mark":
            moves += [lambda: self._memoise(), lambda: self.emit(b"2", push=stack[-1]), lambda: self.emit(b"0", 1)]
            moves += [lambda: self.emit(b"\x85", 1, "tuple")]
        if self.memo:
            moves += [lambda: self.emit(b"h" + bytes([rng.randrange(self.memo)]), push="any")] * 2
        if above >= 2:
            pair = stack[-2]
            moves += [lambda: self.emit(b"\x86", 2, "tuple")]
            if pair == "list":
                moves += [lambda: self.emit(b"a", 1)] * 3
            if pair == "instance" and (stack[-1] == "dict" or rng.random() < 0.05):
                moves += [lambda: self.emit(b"b", 1)] * 4
        if above >= 3 and stack[-3] == "dict" and stack[-2] == "atom":
            moves += [lambda: self.emit(b"s", 2)] * 4
        if marked:
            moves += [lambda: self.emit(b"t", above + 1, "tuple"), lambda: self.emit(b"l", above + 1, "list")]
            moves += [lambda: self.emit(b"1", above + 1)]
            if above % 2 == 0 and all(k == "atom" for k in stack[len(stack) - above :: 2] if above):
                moves += [lambda: self.emit(b"d", above + 1, "dict")]
                if target == "dict":
                    moves += [lambda: self.emit(b"u", above + 1)] * 5
            if target == "list":
                moves += [lambda: self.emit(b"e", above + 1)] * 5
            if target == "set" and all(k == "atom" for k in stack[len(stack) - above :] if above):
                moves += [lambda: self.emit(b"\x90", above + 1)] * 5
        if rng.random() < 0.02:
            moves = [lambda: self.emit(rng.choice((b"b", b"R", b"\x81", b"u", b"e", b"o", b"\x91", b"\x92", b"\x93")))]
        rng.choice(moves)()

    def _memoise(self) -> None:
        if self.rng.random() < 0.7 or self.memo < 3:
            self.emit(b"q" + bytes([self.memo]))
            self.memo += 1
        else:
            self.emit(b"q" + bytes([self.rng.randrange(self.memo)]))

    def finish(self) -> bytes:
        """Gather all that is left and stop."""
        while "mark" in self.stack:
            above = len(self.stack) - 1 - max(i for i, k in enumerate(self.stack) if k == "mark")
            self.emit(b"t", above + 1, "tuple")
        if not self.stack:
            self.emit(b"N", push="atom")
        while len(self.stack) > 1:
            self.emit(b"\x86", 2, "tuple")
        return bytes(self.code + b".")


def random_program(rng: random.Random, length: int = 40) -> bytes:
    """Return a program that is mostly well formed, so that it gets somewhere."""
    program = _Program(rng)
    for _ in range(rng.randrange(2, length)):
        program.step()
    return program.finish()


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change, drop, insert, copy or cut a few bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind < 3 and out:
            out[at % len(out)] = rng.choice((rng.randrange(256), rng.choice(b"().0123\x80\x81\x94\x95bRsueah}]")))
        elif kind == 3:
            del out[at : at + rng.randrange(1, 4)]
        elif kind == 4:
            out[at:at] = bytes([rng.choice(b"().012\x81\x94bRsuea}])Nhq"), rng.randrange(256)][: rng.randrange(1, 3)])
        elif kind == 5 and out:
            start = rng.randrange(len(out))
            out[at:at] = out[start : start + rng.randrange(1, 20)]
        elif kind == 6 and out:
            del out[rng.randrange(len(out)) :]
            out += rng.choice((b".", b"", b"b.", b"u."))
    return bytes(out)


__all__ = [
    "ALLOWED",
    "OPCODES",
    "STACKS",
    "VALUES",
    "guarded",
    "mutate",
    "one_opcode_programs",
    "random_program",
    "samples",
    "two_operand_programs",
]
