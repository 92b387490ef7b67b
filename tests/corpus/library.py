"""Objects of the standard library that people put into pickles."""

from __future__ import annotations

import array
import ast
import asyncio
import codecs
import collections
import datetime as dt
import decimal
import email.message
import fractions
import functools
import io
import ipaddress
import itertools
import json
import logging
import math
import operator
import pathlib
import random
import re
import statistics
import string
import subprocess
import sys
import time
import types
import typing
import uuid
import zoneinfo
from collections.abc import Iterator
from typing import Any

from tests import samples as s


def values() -> Iterator[tuple[str, Any]]:
    """Yield the objects."""
    yield from _times()
    yield from _numbers()
    yield from _collections()
    yield from _exceptions()
    yield from _typing()
    yield from _others()
    yield from _iterators()


def _times() -> Iterator[tuple[str, Any]]:
    yield "date", dt.date(2024, 2, 29)
    yield "dates", [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(100)]
    yield "time", dt.time(23, 59, 59, 999999)
    yield "time fold", dt.time(1, 30, fold=1)
    yield "time utc", dt.time(1, 30, tzinfo=dt.timezone.utc)
    yield "datetime", dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
    yield "datetime utc", dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)
    yield "datetime fold", dt.datetime(2024, 10, 27, 2, 30, fold=1)
    yield "datetime offset", dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=-5), "EST"))
    yield "datetime own zone", dt.datetime(2024, 2, 29, tzinfo=s.Zone(2))
    yield "datetimes", [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=i) for i in range(300)]
    yield "datetime subclass", s.Stamp(2024, 2, 29)
    yield "timedelta", [dt.timedelta(1, 2, 3), -dt.timedelta(5), dt.timedelta.max]
    yield "timezone", [dt.timezone.utc, dt.timezone(dt.timedelta(hours=1))]
    yield "struct_time", time.gmtime(0)
    try:
        yield "zoneinfo", [zoneinfo.ZoneInfo("UTC"), zoneinfo.ZoneInfo("Europe/Paris")]
    except zoneinfo.ZoneInfoNotFoundError:
        pass


def _numbers() -> Iterator[tuple[str, Any]]:
    yield "decimals", [decimal.Decimal(x) for x in ("0", "-0", "1.50", "1E+50", "NaN", "sNaN", "Infinity")]
    yield "decimals many", [decimal.Decimal(i) / 7 for i in range(200)]
    yield "decimal context", decimal.Context(prec=5, rounding=decimal.ROUND_UP)
    yield "fraction", [fractions.Fraction(1, 3), fractions.Fraction(-7)]
    yield "ranges", [range(0), range(5), range(1, 10, 3), range(10, 0, -1), range(2**70)]
    yield "slices", [slice(1), slice(1, 2), slice(None, None, -1), slice("a", "b")]
    yield "normal dist", statistics.NormalDist(1, 2)
    yield "random", random.Random(5).getstate()


def _collections() -> Iterator[tuple[str, Any]]:
    yield "OrderedDict", collections.OrderedDict([("z", 1), ("a", [2])])
    yield "OrderedDict subclass", _attributes(collections.OrderedDict(a=1))
    yield "defaultdict", collections.defaultdict(list, {"a": [1]})
    yield "defaultdict none", collections.defaultdict(None, {"a": 1})
    yield "Counter", collections.Counter("abracadabra")
    yield "ChainMap", collections.ChainMap({"a": 1}, {"b": 2})
    yield "UserDict", collections.UserDict({"a": 1})
    yield "UserList", collections.UserList([1, 2])
    yield "UserString", collections.UserString("s")
    yield "deque maxlen", collections.deque([1, 2, 3], maxlen=3)
    yield "SimpleNamespace", types.SimpleNamespace(a=1, b=[2])
    yield "arrays", [array.array("i", [1, 2]), array.array("d", [1.5]), array.array("u", "text"), array.array("b")]
    yield "dict views copied", [list({}.items()), tuple({"a": 1}.keys())]


def _attributes(item: Any) -> Any:
    item.extra = 1
    return item


def _exceptions() -> Iterator[tuple[str, Any]]:
    yield "exceptions", [ValueError("v", 1), KeyError("k"), Exception(), StopIteration(3)]
    yield "oserror", OSError(2, "No such file", "name")
    yield "oserror two names", OSError(2, "No such file", "name", None, "other")
    yield "file not found", FileNotFoundError(2, "No such file", "name")
    yield (
        "unicode errors",
        [
            UnicodeDecodeError("ascii", b"\xff", 0, 1, "why"),
            UnicodeEncodeError("ascii", "\xff", 0, 1, "why"),
            UnicodeTranslateError("\xff", 0, 1, "why"),
        ],
    )
    yield "syntax error", SyntaxError("bad", ("f.py", 1, 2, "text"))
    yield "import error", ImportError("no", name="m", path="p")
    yield "app error", s.AppError("a", 1)
    noted = ValueError("noted")
    noted.__dict__["__notes__"] = ["note"]
    yield "exception with notes", noted
    caught: BaseException
    try:
        try:
            raise KeyError("first")
        except KeyError as exc:
            raise ValueError("second") from exc
    except ValueError as exc:
        caught = exc
    yield "exception raised and chained", caught
    if sys.version_info >= (3, 11):
        yield "exception group", ExceptionGroup("many", [ValueError(1), TypeError(2)])  # noqa: F821
    yield "called process error", subprocess.CalledProcessError(1, ["cmd"], b"out")
    yield "cancelled", asyncio.CancelledError("why")
    try:
        json.loads("{")
    except json.JSONDecodeError as exc:
        yield "json error", exc


def _typing() -> Iterator[tuple[str, Any]]:
    yield "generic alias", [list[int], dict[str, list[int]], tuple[int, ...]]
    yield "union", [int | str, typing.Optional[int], typing.Union[int, None, str]]
    yield "typing", [typing.Any, typing.List[int], typing.Callable[[int], str], typing.ClassVar]
    yield "literal", typing.Literal["a", 1]
    yield "forward", typing.ForwardRef("Later")
    yield "anystr", typing.AnyStr


def _others() -> Iterator[tuple[str, Any]]:
    yield "uuids", [uuid.UUID(int=5), uuid.UUID(int=2**127)]
    yield "paths", [pathlib.PurePosixPath("/a/b"), pathlib.PureWindowsPath("c:/x"), pathlib.Path("rel/p")]
    yield "patterns", [re.compile("a+"), re.compile(b"b", re.I), re.compile("(?P<n>x)", re.X)]
    yield "partials", [functools.partial(int, base=2), functools.partial(print, 1, sep="")]
    partial = functools.partial(max, 1)
    partial.note = [partial]  # type: ignore[attr-defined]
    yield "partial with itself", partial
    yield "operators", [operator.itemgetter(1, 2), operator.attrgetter("a.b"), operator.methodcaller("f", 1, k=2)]
    yield "functions", [math.sin, json.dumps, functools.reduce, codecs.encode, os_path_join()]
    yield "addresses", [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_network("::/64")]
    yield "ast", ast.parse("x = [1, 'two', b'three', 4.0]\ndef f(a, *b): return a")
    yield "template", string.Template("$a")
    yield "bytesio", _positioned(io.BytesIO(b"content"))
    yield "stringio", _positioned(io.StringIO("content"))
    message = email.message.Message()
    message["Subject"] = "hello"
    message.set_payload("body")
    yield "email", message
    record = logging.LogRecord("n", 20, "p.py", 5, "msg %s", ("a",), None)
    record.created = record.msecs = record.relativeCreated = 0.0
    record.thread = record.process = 1
    yield "log record", record
    yield "os.stat_result", type(__import__("os").stat("/"))(range(10))
    yield "flags enum", [re.I | re.M, re.RegexFlag(0)]
    yield "modules' classes", [collections.OrderedDict, decimal.Decimal, pathlib.Path, types.FunctionType]


def os_path_join() -> Any:
    """Return a function whose module's real name differs from the one people import."""
    import os.path

    return os.path.join


def _positioned(stream: Any) -> Any:
    stream.read(3)
    return stream


def _iterators() -> Iterator[tuple[str, Any]]:
    """Iterators pickle their position."""
    half = iter([1, 2, 3, 4])
    next(half)
    yield "list iterator", half
    yield "list iterators", [iter([]), iter((1, 2)), iter("str"), iter(b"by"), iter(range(5)), iter(range(2**70))]
    yield "dict iterators", [iter({"a": 1}), iter({"a": 1}.items()), iter({"a": 1}.values())]
    yield "set iterator", iter({1})
    yield "reversed", [reversed([1, 2]), reversed((1, 2))]
    yield "enumerate", enumerate(["a"], 5)
    yield "zip and map", [zip([1], [2]), map(str, [1]), filter(None, [0, 1])]
    yield "deque iterator", iter(collections.deque([1, 2]))
    if sys.version_info < (3, 12):  # deprecated from there on, gone in 3.14
        yield "itertools", [itertools.count(3), itertools.chain([1], [2]), itertools.repeat(1, 3)]


def protocol_2_up() -> Iterator[tuple[str, Any]]:
    """Yield what protocols 0 and 1 cannot hold."""
    yield "array empty", array.array("i")
