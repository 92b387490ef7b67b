"""The workloads and why each is there.

Groups carry the targets: ``small``, ``builtin``, ``instances`` and ``pyperformance`` make up the geometric means;
``reduce`` and ``buffers`` are judged on their own. Every value is made afresh by a function without arguments, and is
the same in every run.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

N = 1024
MIB = 1 << 20


class Point:
    """An importable class of the plainest kind."""

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


@dataclass(frozen=True)
class Workload:
    """A value to pickle, the group whose targets it has to meet, and the reason it is measured."""

    name: str
    group: str
    why: str
    make: Callable[[], Any]
    file: bool = False  # also dumped to and loaded from a real file and a BytesIO
    out_of_band: bool = False


def nested_records() -> list[dict[str, Any]]:
    """20,000 records as an application's API would hand them out: three levels, mixed types, repeated keys."""
    rng = random.Random(20_000)
    return [
        {
            "id": i,
            "name": f"user{i}",
            "score": rng.random(),
            "active": i % 3 == 0,
            "tags": ["a", f"t{i % 50}"],
            "address": {"street": f"{i} High Street", "city": f"city{i % 200}", "zip": (i % 90_000, "x")},
        }
        for i in range(20_000)
    ]


def profile(rng: random.Random | None = None) -> dict[str, Any]:
    """A social network user's profile as pyperformance describes it: some 25 short fields and a date.

    With ``rng`` a copy whose values are shuffled about, so that groups of profiles share keys and not values.
    """
    fields: dict[str, Any] = {
        "advert_flags": 0,
        "age": 34,
        "birthday": datetime.date(1990, 7, 14),
        "bulletins": 0,
        "comments": 0,
        "country": "BR",
        "quality_hash": "gc",
        "first_name": "SAM",
        "flags": 268_468_224,
        "friends": 12,
        "gender": "N",
        "gender_for_display": "Neutral",
        "id": 302_935_349,
        "is_custom": 0,
        "last_login": 0,
        "locale": "pt_BR",
        "has_picture": 1,
        "marital": 3,
        "name_flags": 0,
        "network": 17,
        "pictures": 0,
        "privacy": 1_073_741_834,
        "room": 0,
        "screen_name": "not Sam",
        "status": 0,
        "title": "",
        "updated": 1_152_214_712,
        "zip": "01310-100",
    }
    if rng is not None:
        values = list(fields.values())
        rng.shuffle(values)
        fields = dict(zip(fields, values, strict=True))
    return fields


def id_tuple() -> tuple[list[int], int]:
    """A list of thirty eight-digit ids and a count, as pyperformance describes it."""
    rng = random.Random(30)
    return [rng.randrange(2 * 10**8, 3 * 10**8) for _ in range(30)], 60


def pyperformance_pickle() -> list[Any]:
    """What the pickle and unpickle benchmarks go through: a profile, ids, and a group of three profiles."""
    rng = random.Random(5)
    return [profile(), id_tuple(), [profile(rng) for _ in range(3)]]


def pyperformance_list() -> list[Any]:
    """Ten pairs of ten-int lists."""
    return [[list(range(10)), list(range(10))] for _ in range(10)]


def pyperformance_dict() -> dict[int, Any]:
    """A hundred ten-key dicts of None."""
    return {key: dict.fromkeys(range(10)) for key in range(100)}


def datetimes() -> list[datetime.datetime]:
    """100,000 timestamps a minute apart."""
    start = datetime.datetime(2024, 1, 1, 12)
    return [start + datetime.timedelta(minutes=i) for i in range(100_000)]


def decimals() -> list[decimal.Decimal]:
    """100,000 amounts of money."""
    return [decimal.Decimal(i).scaleb(-2) for i in range(100_000)]


def array() -> Any:
    """8 MiB of float64; numpy is needed for this one only."""
    import numpy

    return numpy.arange(MIB, dtype="f8")


def small_containers() -> list[Any]:
    """Several hundred thousand little containers in one load: what wakes the cyclic collector."""
    return [(i, [i], {i: i}) for i in range(120_000)]


WORKLOADS = [
    Workload("int", "small", "the fixed cost of a call", lambda: 5),
    Workload("1-tuple", "small", "a call plus the smallest container", lambda: (1,)),
    Workload("str", "small", "a call plus the smallest memoised value", lambda: "abc"),
    Workload("1-dict", "small", "what a message or a cache entry starts from", lambda: {"a": 1}),
    Workload("1024 ints", "builtin", "atoms only: the inner loop", lambda: list(range(N))),
    Workload("1024 floats", "builtin", "atoms only, allocation bound to load", lambda: [i / 7 for i in range(N)]),
    Workload("1024 strs", "builtin", "memo writes and UTF-8", lambda: [f"s{i}" for i in range(N)]),
    Workload(
        "1024 tuples", "builtin", "a batch of pairs, as Spark ships them", lambda: [(i % 100, i) for i in range(N)]
    ),
    Workload(
        "1024 dicts",
        "builtin",
        "a batch of records: the commonest shape there is",
        lambda: [{"id": i, "name": str(i)} for i in range(N)],
        file=True,
    ),
    Workload("1024 points", "instances", "ordinary instances", lambda: [Point(i, -i) for i in range(N)]),
    Workload(
        "tuple-keyed dict",
        "builtin",
        "10,000 keys: the classic case of the C pickler's own history",
        lambda: {(x, "a"): x for x in range(10_000)},
        file=True,
    ),
    Workload("nested records", "builtin", "memory bound: a large memo, the collector", nested_records, file=True),
    Workload("pyperformance pickle", "pyperformance", "pyperformance's pickle and unpickle", pyperformance_pickle),
    Workload(
        "pyperformance list", "pyperformance", "pyperformance's pickle_list and unpickle_list", pyperformance_list
    ),
    Workload("pyperformance dict", "pyperformance", "pyperformance's pickle_dict", pyperformance_dict),
    Workload("64 MiB bytes", "buffers", "how often a large buffer is copied", lambda: bytes(64 * MIB), file=True),
    Workload("8 MiB array", "buffers", "numpy in band", array),
    Workload("8 MiB array, out of band", "buffers", "numpy through buffer_callback", array, out_of_band=True),
    Workload("100000 datetimes", "reduce", "a C __reduce_ex__ for each object", datetimes),
    Workload("100000 decimals", "reduce", "a method call and text for each object", decimals),
]
GEOMETRIC_MEAN_GROUPS = ("small", "builtin", "instances", "pyperformance")
ATOMS_ONLY = ("1024 ints", "1024 floats", "1024 strs")


@dataclass(frozen=True)
class Target:
    """A ratio reference/ours to reach, for pyenv builds and for Debian's."""

    what: str
    pyenv: float
    debian: float


def target(workload: str, group: str, direction: str) -> float | None:
    """Return the ratio that a single workload has to reach; None where only a mean has one."""
    if direction in ("file dump", "file load"):
        return 2.5 if direction == "file dump" and group != "buffers" else 1.8 if group != "buffers" else 1.0
    if group == "reduce":
        return 1.5
    if direction == "dumps":
        return {"small": 5.0, "builtin": 2.0, "instances": 8.0, "pyperformance": 2.0}.get(group)
    if workload in ATOMS_ONLY:
        return 1.1
    return {"instances": 3.0}.get(group, 1.0)


MEANS = {
    "dumps": Target("geometric mean of dumps", 4.5, 3.5),
    "loads": Target("geometric mean of loads", 2.3, 1.9),
    "file dump": Target("geometric mean of dump to a file", 2.5, 2.5),
    "file load": Target("geometric mean of load from a file", 1.8, 1.8),
}
