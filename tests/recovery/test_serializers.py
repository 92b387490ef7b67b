"""Records say what wrote them: changing the serialiser never misreads what is there."""

import json
import math
import pickle

import pytest

import quickpickle
from quickpickle import recovery


class Reversed:
    """A serialiser of one's own."""

    serializer_name = "reversed"

    @staticmethod
    def dumps(obj):
        return obj.encode()[::-1]

    @staticmethod
    def loads(data):
        return data[::-1].decode()


class Upper:
    """Another one, named after its class."""

    def dumps(self, obj):
        return obj.upper().encode()

    def loads(self, data):
        return data.decode().lower()


class Job:
    def __init__(self, number):
        self.number = number


@pytest.fixture
def place(tmp_path):
    return tmp_path / "store"


def stored(place, **settings):
    """Everything in the store, as it is read with these settings."""
    with recovery.open(place, **settings) as store:
        return dict(store.items())


def test_each_record_is_read_by_what_wrote_it(place):
    for name, serializer, value in [
        ("pickle", "pickle", (1, {2})),
        ("bytes", "bytes", b"\x80raw"),
        ("json", "json", {"a": [1, None, "\ud800"]}),
        ("mine", Reversed, "abc"),
        ("upper", Upper(), "abc"),
    ]:
        with recovery.open(place, serializer=serializer) as store:
            store[name] = value
    expected = {
        "pickle": (1, {2}),
        "bytes": b"\x80raw",
        "json": {"a": [1, None, "\ud800"]},
        "mine": "abc",
        "upper": "abc",
    }
    assert stored(place, readers=[Reversed(), Upper()]) == expected
    assert stored(place, serializer=Upper(), readers=["pickle", Reversed]) == expected
    with recovery.open(place, serializer="bytes") as store:
        codecs = {entry.name: entry.codec for entry in store.entries()}
        values = {entry.name: entry.value for entry in store.entries()}
    assert codecs == {
        "pickle": "pickle",
        "bytes": "raw",
        "json": "json",
        "mine": "reversed",
        "upper": f"{Upper.__module__}.Upper",
    }
    assert pickle.loads(values["pickle"]) == (1, {2})
    assert values["mine"] == b"\x08reversedcba"
    assert json.loads(values["json"]) == {"a": [1, None, "\ud800"]}


def test_a_pickle_is_loaded_only_by_those_who_asked_for_pickles(place):
    """Whoever chose json because the directory may be anybody's must not run code by reading it."""
    with recovery.open(place) as store:
        store["trap"] = Job(1)
    for serializer in ("json", "bytes", Reversed):
        with recovery.open(place, serializer=serializer) as store:
            with pytest.raises(recovery.CodecError, match="'trap' was written as pickle: loading a pickle runs code"):
                store["trap"]
            assert next(store.entries()).codec == "pickle"
    with recovery.open(place, serializer="json", readers=["pickle"]) as store:
        assert store["trap"].number == 1


def test_what_cannot_be_read_names_its_writer(place):
    with recovery.open(place, serializer=Reversed) as store:
        store["mine"] = "abc"
    with recovery.open(place) as store:
        with pytest.raises(recovery.CodecError, match="'mine' was written by the serialiser 'reversed'"):
            store["mine"]
        for number, writer in ((2, "compact"), (3, "java"), (4, "kryo"), (99, "codec-99")):
            store.engine.persist(writer, number, b"...")
            with pytest.raises(recovery.CodecError, match=f"'{writer}' was written as {writer}"):
                store[writer]
        for damaged in (b"", b"\0", b"\x05abc", b"\x02\xff\xff..."):
            store.engine.persist("nameless", 6, damaged)
            with pytest.raises(recovery.CodecError, match="does not say which serialiser wrote it"):
                store["nameless"]
        with pytest.raises(recovery.CodecError):
            store.read()
        assert len(list(store.entries())) == 6
        store.engine.persist("squeezed", 0x0900, b"...")
        with pytest.raises(recovery.CodecError, match="compression number 9 is not known"):
            store["squeezed"]


def test_a_value_that_does_not_load_names_the_entry_and_keeps_the_cause(place, monkeypatch):
    with recovery.open(place) as store:
        store["job_7"] = Job(7)
        monkeypatch.delattr(f"{__name__}.Job")
        with pytest.raises(
            recovery.CodecError, match="'job_7', written by pickle, cannot be read: AttributeError"
        ) as raised:
            store["job_7"]
        assert isinstance(raised.value.__cause__, AttributeError)


def test_a_serialisers_own_exceptions_pass_through_and_nothing_is_stored(place):
    with recovery.open(place) as store:
        store["a"] = 1
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            store["a"] = lambda: None
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            store.update(b=2, a=lambda: None)
        assert dict(store) == {"a": 1}
    with recovery.open(place, serializer="bytes") as store, pytest.raises(TypeError, match="stores bytes, not str"):
        store["a"] = "text"


def test_bytes_like_objects_are_stored_as_bytes(place):
    with recovery.open(place, serializer="bytes") as store:
        store["a"] = bytearray(b"abc")
        store["b"] = memoryview(b"abcdef")[::2]
        assert dict(store) == {"a": b"abc", "b": b"ace"}


def test_json_is_compact_text(place):
    with recovery.open(place, serializer="json") as store:
        store["a"] = {"é": [1, 2.5, math.inf]}
        assert next(store.entries()).value == '{"é":[1,2.5,Infinity]}'.encode()
        assert store["a"] == {"é": [1, 2.5, math.inf]}


def test_modules_are_serialisers(place):
    with recovery.open(place, serializer=pickle) as store:
        store["a"] = Job(1)
        assert next(store.entries()).codec == "pickle"
    with recovery.open(place, serializer=quickpickle) as store:
        assert store["a"].number == 1
    with recovery.open(place, serializer=json) as store:
        store["b"] = [1]
        assert [entry.codec for entry in store.entries("b")] == ["json"]


def test_what_is_no_serialiser(place):
    class Text:
        def dumps(self, obj):
            return str(obj)

        def loads(self, data):
            return data

    with pytest.raises(TypeError, match="has dumps and loads"):
        recovery.open(place, serializer=object())
    with recovery.open(place, serializer=Text()) as store, pytest.raises(TypeError, match="returned str, not bytes"):
        store["a"] = 1
    long = Text()
    long.serializer_name = "n" * 256
    with pytest.raises(recovery.ConfigError, match="1 to 255 bytes"):
        recovery.open(place, serializer=long)
