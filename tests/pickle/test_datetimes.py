"""datetime's values, which are written and made without asking their classes: bytes and values as C's, hostile ones too."""

from __future__ import annotations

import copyreg
import datetime as dt
import io
import pickle
import random
from typing import Any

import pytest

import quickpickle

PROTOCOLS = range(6)


def random_value(rng: random.Random) -> Any:
    day = (rng.randint(1, 9999), rng.randint(1, 12), rng.randint(1, 28))
    clock = (rng.randint(0, 23), rng.randint(0, 59), rng.randint(0, 59), rng.randint(0, 999_999))
    zone = rng.choice([dt.timezone.utc, dt.timezone(dt.timedelta(hours=2), "x")])
    return rng.choice(
        [
            lambda: dt.date(*day),
            lambda: dt.datetime(*day, *clock, fold=rng.randint(0, 1)),
            lambda: dt.time(*clock, fold=rng.randint(0, 1)),
            lambda: dt.timedelta(rng.randint(-999_999_998, 999_999_998), clock[0], clock[3]),
            lambda: dt.timedelta(rng.randint(-3, 3)),
            lambda: dt.datetime(*day, *clock, tzinfo=zone),
            lambda: dt.time(*clock, tzinfo=zone),
        ]
    )()


def described(value: Any) -> tuple[Any, ...]:
    return type(value), value, getattr(value, "fold", None), getattr(value, "tzinfo", None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [1, 2, 3, 40, 3000])
def test_bytes_and_values_are_the_references(protocol: int, count: int) -> None:
    rng = random.Random(count)
    values = [random_value(rng) for _ in range(count)]
    graph = [values, values[:3], {"a": values[0], "b": tuple(values[:2])}]
    blob = pickle.dumps(graph, protocol)
    assert quickpickle.dumps(graph, protocol) == blob
    got, wanted = quickpickle.loads(blob), pickle.loads(blob)
    assert [described(v) for v in got[0]] == [described(v) for v in wanted[0]]
    assert got[2]["a"] is got[0][0]
    assert quickpickle.dumps(got, protocol) == pickle.dumps(wanted, protocol)


class Subclass(dt.datetime):
    """Has a class of its own to be made by."""


def test_a_subclass_is_left_to_itself() -> None:
    values = [Subclass(2020, 1, 31, 4, 5), dt.datetime(2020, 1, 31, 4, 5)]
    blob = quickpickle.dumps(values)
    assert blob == pickle.dumps(values)
    assert [type(v) for v in quickpickle.loads(blob)] == [Subclass, dt.datetime]


def test_tables_of_reducers_come_first() -> None:
    def spoken(value: dt.date) -> tuple[Any, ...]:
        return str, (value.isoformat(),)

    values = [dt.date(2020, 1, 31), dt.datetime(2020, 1, 31)]

    def dump(module: Any) -> bytes:
        file = io.BytesIO()
        pickler = module.Pickler(file, 4)
        pickler.dispatch_table = {dt.date: spoken}
        pickler.dump(values)
        return file.getvalue()

    assert dump(quickpickle) == dump(pickle)
    assert quickpickle.loads(dump(quickpickle))[0] == "2020-01-31"
    plain = quickpickle.dumps(values)
    copyreg.pickle(dt.date, spoken)
    try:
        assert quickpickle.dumps(values) == pickle.dumps(values) != plain
    finally:
        del copyreg.dispatch_table[dt.date]
    assert quickpickle.dumps(values) == plain


def outcome(module: Any, blob: bytes) -> Any:
    try:
        value = module.loads(blob)
    except Exception as error:
        return type(error), str(error)
    return type(value), pickle.dumps(value), repr(getattr(value, "fold", None))


@pytest.mark.parametrize(("name", "size"), [("date", 4), ("datetime", 10), ("time", 6)])
def test_states_out_of_range_are_judged_by_the_class(name: str, size: int) -> None:
    rng = random.Random(size)
    edges = [0, 1, 2, 3, 7, 12, 13, 15, 16, 23, 24, 28, 29, 30, 31, 32, 39, 40, 59, 60, 127, 128, 200, 255]
    for _ in range(4000):
        state = bytes(rng.choice(edges) for _ in range(size + rng.choice([0, 0, 0, 0, 0, 1, -1])))
        blob = b"cdatetime\n%s\nC%c%s\x85R." % (name.encode(), len(state), state)
        assert outcome(quickpickle, blob) == outcome(pickle, blob), state


@pytest.mark.parametrize(
    "args",
    [
        (1, 2, 3),
        (10**9, 0, 0),
        (-(10**9), 0, 0),
        (0, -1, 0),
        (0, 86_400, 0),
        (0, 0, 10**6),
        (1,),
        (),
        (1.5, 2, 3),
        (True, 1, 1),
        (999_999_999, 86_399, 999_999),
        (2**40, 0, 0),
        ("1", 2, 3),
    ],
)
def test_timedelta_arguments_of_any_kind(args: tuple[Any, ...]) -> None:
    blob = b"cdatetime\ntimedelta\n" + pickle.dumps(args, 2)[2:-1] + b"R."
    assert outcome(quickpickle, blob) == outcome(pickle, blob)
