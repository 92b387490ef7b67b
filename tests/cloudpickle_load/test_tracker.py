"""The same dynamic class in, the same class out: within a process, with stock cloudpickle in it or not; and no leaks."""

from __future__ import annotations

import gc
import io
import pickle
import sys
import weakref

import pytest

from quickpickle import _native
from tests import child

cloudpickle = pytest.importorskip("cloudpickle")


def make(**attributes) -> type:
    return type("Made", (), {"__module__": "not_importable", **attributes})


def test_a_class_keeps_its_id() -> None:
    cls = make()
    identity = _native._get_or_create_tracker_id(cls)
    assert len(identity) == 32
    assert int(identity, 16)
    assert _native._get_or_create_tracker_id(cls) == identity
    assert _native._lookup_class_or_track(identity, make()) is cls
    assert _native._get_or_create_tracker_id(make()) != identity


def test_ids_are_shared_with_stock_both_ways() -> None:
    stock = cloudpickle.cloudpickle
    cls = make()
    assert stock._get_or_create_tracker_id(cls) == _native._get_or_create_tracker_id(cls)
    cls = make()
    assert _native._get_or_create_tracker_id(cls) == stock._get_or_create_tracker_id(cls)
    cls = make()
    identity = stock._get_or_create_tracker_id(cls)
    assert _native._lookup_class_or_track(identity, make()) is cls
    cls = make()
    _native._lookup_class_or_track("an id of its own", cls)
    assert stock._lookup_class_or_track("an id of its own", make()) is cls


def test_stock_that_is_imported_later_is_told() -> None:
    child.check("""
    from quickpickle import _native
    class K: pass
    identity = _native._get_or_create_tracker_id(K)
    assert "cloudpickle" not in sys.modules
    import cloudpickle.cloudpickle as stock
    class L: pass
    _native._get_or_create_tracker_id(L)
    assert stock._get_or_create_tracker_id(K) == identity
    """)


def test_ours_loads_what_stock_has_loaded_and_the_other_way_round(ours) -> None:
    payload = cloudpickle.dumps([make()()])
    known = type(ours.loads(payload)[0])
    assert type(pickle.loads(payload)[0]) is known
    del known
    gc.collect()


def test_metaclasses_that_cannot_be_compared_or_hashed(ours) -> None:
    class Meta(type):
        def __eq__(cls, other):
            raise RuntimeError("compared")

        __hash__ = None

    cls = Meta("Made", (), {})
    identity = _native._get_or_create_tracker_id(cls)
    assert _native._get_or_create_tracker_id(cls) == identity
    assert _native._lookup_class_or_track(identity, make()) is cls


def test_ids_that_are_no_ids() -> None:
    cls = make()
    assert _native._lookup_class_or_track(None, cls) is cls
    for wrong in (5, b"bytes", ["list"]):
        with pytest.raises(TypeError, match="class tracker id"):
            _native._lookup_class_or_track(wrong, cls)
    with pytest.raises(TypeError, match="weak reference"):
        _native._get_or_create_tracker_id(5)


def test_dead_classes_go() -> None:
    """10,000 classes and functions are loaded and dropped; neither they nor their entries stay."""
    child.check(
        """
    import cloudpickle, gc, weakref, resource
    def make(i):
        class K:
            n = i
            def f(self): return self.n
        return K
    payload = cloudpickle.dumps([make(1)(), lambda x: x + 1])
    import cloudpickle.cloudpickle as stock
    identity = stock._get_or_create_tracker_id(stock._DYNAMIC_CLASS_TRACKER_BY_CLASS and make(1))
    ids = [i for i in dict(stock._DYNAMIC_CLASS_TRACKER_BY_ID)]
    old = next(i for i in ids if i.encode() in payload)
    def load(n):
        return P.loads(payload.replace(old.encode(), b"%032x" % n))
    refs = []
    for n in range(1, 1001):
        refs.append(weakref.ref(type(load(n)[0])))
    gc.collect()
    alive = sum(ref() is not None for ref in refs)
    assert alive <= 1, alive
    del refs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(1001, 10001):
        load(n)
    gc.collect()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4096, grown  # KiB; a class alone takes more than one
    """,
        timeout=120,
    )


def test_one_class_loaded_again_and_again_stays_one(ours) -> None:
    payload = cloudpickle.dumps(make(f=lambda self: 1)())
    first = type(ours.loads(payload))
    references = sys.getrefcount(first)
    for _ in range(2000):
        assert type(ours.loads(payload)) is first
    gc.collect()
    assert sys.getrefcount(first) < references + 10


@pytest.fixture
def no_reset():
    before = _native.reset_classes(False)
    yield
    _native.reset_classes(before)


def test_class_attributes_are_wound_back_unless_asked_not_to_be(ours) -> None:
    """cloudpickle does so, and so do we by default."""
    cls = make(count=0)
    payload = cloudpickle.dumps(cls())
    cls.count = 10
    ours.loads(payload)
    assert cls.count == 0


def test_class_attributes_stay_where_asked_for(ours, no_reset) -> None:
    cls = make(count=0)
    # A class that only stock knows may be one that it is filling at the moment, and so is filled once more.
    _native._get_or_create_tracker_id(cls)
    payload = cloudpickle.dumps(cls())
    cls.count = 10
    assert type(ours.loads(payload)) is cls
    assert cls.count == 10
    # A class that is new here gets its attributes, and keeps them.
    identity = _native._get_or_create_tracker_id(cls).encode()
    elsewhere = payload.replace(identity, b"0123456789abcdef0123456789abcdef")
    other = type(ours.loads(elsewhere))
    assert other is not cls
    assert other.count == 0
    other.count = 5
    assert type(ours.loads(elsewhere)) is other
    assert other.count == 5


def test_collected_while_loading(ours) -> None:
    cls = make()
    payload = cloudpickle.dumps(cls)
    gone = weakref.ref(cls)
    del cls
    gc.collect()
    assert gone() is None
    again = ours.loads(payload)
    assert again.__name__ == "Made"
    assert ours.loads(payload) is again


def test_a_class_that_changes_while_its_instances_are_made(ours) -> None:
    """Loaded more often than the interpreter has version tags for a class, which since 3.13 are a thousand."""
    cls = make()
    _native._get_or_create_tracker_id(cls)
    one, two = cls(), cls()
    one.a, two.a = 1, 2
    payload = cloudpickle.dumps([one, cloudpickle.dumps, two])
    for number in range(1200):
        cls.changed = number
        cls.changed  # noqa: B018  # looking it up takes a tag
        assert [item.a for item in ours.loads(payload)[::2]] == [1, 2]

    class Changing(ours.Unpickler):
        def find_class(self, module, name):
            if name == "dumps":
                cls.__setstate__ = lambda self, state: vars(self).update(a="by __setstate__")
            return super().find_class(module, name)

    # Other code, in the middle of the load, gives the class a way of its own to take a state.
    assert [item.a for item in Changing(io.BytesIO(payload)).load()[::2]] == [1, "by __setstate__"]
