"""The same dynamic class in, the same class out: within a process, with stock cloudpickle in it or not; and no leaks."""

from __future__ import annotations

import collections
import gc
import io
import pickle
import sys
import uuid
import weakref

import pytest

import quickpickle.cloudpickle
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
def resets():
    before = _native.reset_classes()
    assert before == "changed"
    yield _native.reset_classes
    _native.reset_classes(before)


def test_a_class_that_is_at_home_stays_as_it_is(ours) -> None:
    """Loading a payload with a class winds nothing back of the class that it was made from."""
    cls = make(count=0, items=[], f=lambda self: 1)
    payload = quickpickle.cloudpickle.dumps(cls())
    cls.count = 10
    cls.items.append(1)
    cls.f = patched = lambda self: 2
    assert type(ours.loads(payload)) is cls
    assert (cls.count, cls.items, cls.f) == (10, [1], patched)


def test_a_class_that_only_stock_knows_is_filled_once_more(ours) -> None:
    """It may be one that stock is filling at the moment, in another thread."""
    cls = make(count=0)
    payload = cloudpickle.dumps(cls())
    cls.count = 10
    ours.loads(payload)
    assert cls.count == 0
    cls.count = 10
    ours.loads(payload)
    assert cls.count == 10


def elsewhere(payload: bytes, cls: type) -> bytes:
    """The payload as if it came from another process: the class has an id that is not known here."""
    return payload.replace(_native._get_or_create_tracker_id(cls).encode(), uuid.uuid4().hex.encode())


def test_what_the_sender_changes_arrives_and_what_is_changed_here_stays(ours) -> None:
    """A worker that is sent a class with every job: its own counters, caches and patches live on."""

    class Box:
        def __init__(self) -> None:
            self.n = 0

    attributes = {
        "count": 0,
        "items": [],
        "table": {},
        "seen": set(),
        "groups": collections.defaultdict(list),
        "box": Box(),
        "limit": 1,
        "f": lambda self: 1,
        "g": lambda self: 1,
        "made": classmethod(lambda cls: cls()),
        "p": property(lambda self: 1),
    }
    cls = make(**attributes)
    first = quickpickle.cloudpickle.dumps(cls)
    cls.limit = 2
    cls.g = lambda self: 2
    cls.new = 1
    second = quickpickle.cloudpickle.dumps(cls)
    identity = uuid.uuid4().hex.encode()
    first, second = (
        payload.replace(_native._get_or_create_tracker_id(cls).encode(), identity) for payload in (first, second)
    )
    here = ours.loads(first)
    assert here is not cls
    here.count += 1
    here.items.append(1)
    here.table["a"] = 1
    here.seen.add(1)
    here.groups["a"].append(1)
    here.box.n = 1
    here.f = patched = lambda self: 3
    here.own = 1
    for payload in (first, second, first):
        assert ours.loads(payload) is here
        assert (here.count, here.items, here.table, here.seen, here.groups) == (1, [1], {"a": 1}, {1}, {"a": [1]})
        assert (here.box.n, here.f, here.own) == (1, patched, 1)
        assert (here.limit, here().g()) == ((2, 2) if payload is second else (1, 1))
        assert type(here.made()) is here
        assert here().p == 1
    assert here.new == 1


def test_functions_of_a_class_share_globals_with_what_they_were_sent_with(ours) -> None:
    """A class that is known is given its functions anew, so that they see the globals of this payload."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec("n = 0\nclass K:\n    def get(self): return n\ndef bump():\n    global n\n    n += 1", names)
    payload = elsewhere(quickpickle.cloudpickle.dumps((names["K"], names["bump"])), names["K"])
    for _ in range(3):
        cls, bump = ours.loads(payload)
        bump()
        assert cls().get() == 1


def test_a_forked_child_is_no_home(ours) -> None:
    child.check("""
    import os, quickpickle.cloudpickle as P
    class K: limit = 1
    P.dumps(K)
    down, up = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        P.loads(os.read(down[0], 65536))
        os.write(up[1], b"%d" % K.limit)
        os._exit(0)
    K.limit = 2
    os.write(down[1], P.dumps(K))
    assert os.read(up[0], 10) == b"2"
    os.waitpid(pid, 0)
    """)


def test_resetting_is_an_option(ours, resets) -> None:
    cls = make(count=0)
    payload = quickpickle.cloudpickle.dumps(cls)
    other = elsewhere(payload, cls)
    assert resets(True) == "changed"
    loaded = ours.loads(other)
    for known, of in ((cls, payload), (loaded, other)):
        known.count = 10
        assert ours.loads(of) is known
        assert known.count == 0
    assert resets(False) is True
    # A class that is new here gets its attributes, and keeps them.
    again = elsewhere(payload, cls)
    new = ours.loads(again)
    assert new.count == 0
    for known, of in ((cls, payload), (loaded, other), (new, again)):
        known.count = 10
        assert ours.loads(of) is known
        assert known.count == 10
    for wrong in (1, "never", None.__class__):
        with pytest.raises(ValueError, match="changed"):
            resets(wrong)
    assert resets("changed") is False


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
