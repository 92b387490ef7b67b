"""Object graphs for Hypothesis: nested, shared and recursive, of builtins, instances and awkward classes."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
from typing import Any

from hypothesis import strategies as st

from tests import samples as s

integers = st.one_of(
    st.integers(-5, 300),
    st.sampled_from([255, 256, 65535, 65536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, -(2**63)]),
    st.integers(),
    st.integers(-(2**2100), 2**2100),
)
text = st.one_of(
    st.sampled_from(["", "a", "key", "\n", "\\", "\ud800", "\xe9", "\U0001f40d", "x" * 255, "x" * 256]),
    st.text(max_size=30),
    st.text(st.characters(), max_size=30),
)
binary = st.one_of(st.binary(max_size=40), st.sampled_from([b"x" * 255, b"x" * 256, b"y" * 70_000]))
atoms = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.floats(),
    text,
    binary,
    st.complex_numbers(),
    binary.map(bytearray),
    st.just(...),
    st.sampled_from([s.Point, s.function, len, s.Color.RED, s.Number.TWO, s.Access.READ, s.SINGLETON]),
)
library = st.one_of(
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.ranges() if hasattr(st, "ranges") else st.builds(range, st.integers(-9, 9), st.integers(-9, 99)),
    st.builds(slice, st.none() | st.integers(), st.none() | st.integers()),
    st.builds(datetime.timezone, st.timedeltas(datetime.timedelta(-1, 1), datetime.timedelta(hours=23))),
    st.builds(decimal.Decimal, st.integers()),
    st.builds(fractions.Fraction, st.integers(), st.integers(1, 99)),
)
hashable = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.floats(),
    text,
    binary,
    st.tuples(text, integers),
    st.frozensets(integers, max_size=3),
    st.sampled_from([s.Color.RED, s.Point, ()]),
)
attributes = st.dictionaries(st.sampled_from(["a", "b", "x", "y", "label", "\xe9"]), st.integers(0, 5), max_size=4)


def _attributed(item: Any, values: dict[str, Any]) -> Any:
    item.__dict__.update(values)
    return item


def _bag(items: list[Any], pairs: list[Any]) -> Any:
    return s.Bag(items, pairs)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=6)
    tables = st.dictionaries(hashable, inner, max_size=6)
    named = st.dictionaries(st.sampled_from(["a", "b", "x", "y", "next", "label"]), inner, max_size=5)
    return st.one_of(
        lists,
        lists.map(tuple),
        tables,
        st.sets(hashable, max_size=6),
        st.frozensets(hashable, max_size=6),
        st.builds(s.Point, inner, inner),
        st.builds(s.Child, inner, inner, inner),
        named.map(lambda d: _attributed(s.Plain(), d)),
        st.builds(s.Record, text, st.floats(), lists),
        st.builds(s.FrozenRecord, text, inner),
        st.builds(lambda n, v: s.StrictRecord(name=n, score=v), text, inner),
        st.builds(s.Pair, inner, inner),
        lists.map(collections.deque),
        st.builds(collections.deque, lists, st.integers(0, 9)),
        tables.map(collections.OrderedDict),
        tables.map(lambda d: collections.defaultdict(list, d)),
        st.builds(lambda x, d: _attributed(s.ListChild(x), d), lists, named),
        st.builds(lambda x, d: _attributed(s.DictChild(x), d), tables, named),
        st.builds(lambda x, d: _attributed(s.SetChild(x), d), st.sets(hashable, max_size=4), named),
        st.builds(lambda x, d: _attributed(s.TupleChild(x), d), lists, named),
        st.builds(lambda x, d: _attributed(s.IntChild(x), d), integers, named),
        st.builds(lambda x, d: _attributed(s.StrChild(x), d), text, named),
        st.builds(lambda x, d: _attributed(s.BytesChild(x), d), binary, named),
        st.builds(lambda x, d: _attributed(s.FloatChild(x), d), st.floats(), named),
        st.builds(s.WithState, inner),
        st.builds(s.Registered, inner),
        st.builds(lambda x: s.NewArgs(*x), lists),
        st.builds(_bag, lists, st.lists(st.tuples(inner, inner), max_size=3)),
        st.builds(lambda x: s.Reduced((s.function, tuple(x))), lists),
        st.builds(lambda d: s.Reduced((s.Plain, (), d, None, None, s.set_state)), named),
        lists.map(lambda x: ValueError(*x)),
        lists.map(lambda x: s.AppError(*x)),
    )


trees = st.recursive(atoms | library, _containers, max_leaves=25)
simple_trees = st.recursive(
    st.none() | st.booleans() | integers | st.floats() | text | binary,
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(text | integers, inner, max_size=6)
    ),
    max_leaves=40,
)


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """Draw a graph: nodes of several kinds that hold each other, with cycles and sharing at random."""
    kinds = draw(
        st.lists(
            st.sampled_from(
                ["list", "dict", "plain", "point", "tuple", "tuple4", "listchild", "dictchild", "slots", "deque"]
            ),
            min_size=1,
            max_size=10,
        )
    )
    leaves = [draw(atoms) for _ in range(draw(st.integers(0, 4)))]
    nodes: list[Any] = []
    late: list[Any] = []
    for kind in kinds:
        pick = lambda: draw(st.sampled_from(nodes + leaves)) if nodes or leaves else None  # noqa: E731
        made: Any
        if kind in ("tuple", "tuple4"):  # tuples close cycles through what is filled in later
            made = tuple(pick() for _ in range(4 if kind == "tuple4" else draw(st.integers(0, 3))))
        else:
            made = {
                "list": list,
                "dict": dict,
                "plain": s.Plain,
                "point": lambda: s.Point(None, None),
                "listchild": s.ListChild,
                "dictchild": s.DictChild,
                "slots": lambda: s.Slots(None),
                "deque": collections.deque,
            }[kind]()
            late.append(made)
        nodes.append(made)
    for made in late:
        for i in range(draw(st.integers(0, 3))):
            other = draw(st.sampled_from(nodes + leaves))
            if isinstance(made, (s.ListChild, s.DictChild)):
                # Protocols 0 and 1 copy a subclass's items into its reduce value: a cycle through those never ends.
                made.own = other
                leaf = draw(st.sampled_from(leaves)) if leaves else None
                made.append(leaf) if isinstance(made, list) else made.update(k=leaf)
            elif isinstance(made, (list, collections.deque)):
                made.append(other)
            elif isinstance(made, dict):
                made[draw(st.sampled_from(["k", "l", 1, (1, 2)]))] = other
            elif isinstance(made, s.Slots):
                made.a = other
            else:
                setattr(made, draw(st.sampled_from(["x", "y", f"a{i}"])), other)
    root = draw(st.sampled_from(nodes))
    return draw(st.sampled_from([root, [root, nodes[0]], nodes, (root, root), {"r": root}]))
