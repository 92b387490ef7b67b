"""One suite, every engine: a store is a mapping whose assignments last."""

import os
from pathlib import Path

import pytest

from quickpickle import recovery

STRANGE_NAMES = [
    "",
    " ",
    ".",
    "..",
    "/",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "A",
    "a",
    "nul\0inside",
    "line\nbreak",
    "e\u0301",
    "\u00e9",
    "\U0001f980",
    "x" * 10_000,
]


def test_objects_come_back_as_they_were(open_store):
    value = {"host": "10.0.0.7", "cores": 16, "tags": ("a", None, 2.5), "nested": [{"x": b"\0\xff"}]}
    store = open_store()
    store["worker_1"] = value
    assert store["worker_1"] == value
    assert store["worker_1"] is not store["worker_1"]
    store.close()
    assert open_store()["worker_1"] == value


def test_it_behaves_as_a_dict_does(open_store):
    store = open_store()
    assert len(store) == 0
    assert list(store) == []
    assert store
    store["b"] = 1
    store["a"] = 2
    store["b"] = 3
    assert len(store) == 2
    assert list(store) == ["a", "b"]
    assert dict(store) == {"a": 2, "b": 3}
    assert "a" in store
    assert "c" not in store
    assert 5 not in store
    assert store.get("c", "nothing") == "nothing"
    assert store.setdefault("a", 9) == 2
    assert store.pop("a") == 2
    assert store.pop("a", None) is None
    with pytest.raises(KeyError, match="'a'"):
        store["a"]
    with pytest.raises(KeyError, match="'a'"):
        del store["a"]
    assert store.popitem() == ("b", 3)
    with pytest.raises(TypeError):
        store[5] = 1


def test_views_by_prefix(open_store):
    store = open_store()
    store.update({f"worker_{number}": number for number in range(10)}, app_1="one")
    store["drive"] = "short"
    assert list(store.keys("worker_")) == [f"worker_{number}" for number in range(10)]
    assert list(store.values("worker_")) == list(range(10))
    assert dict(store.items("app_")) == {"app_1": "one"}
    assert store.read("driver_") == []
    assert [len(view) for view in (store.keys("worker_"), store.items("worker_"), store.values("a"))] == [10, 10, 1]
    assert "app_1" in store.keys("app")
    assert "app_1" not in store.keys("worker_")
    assert ("app_1", "one") in store.items()
    assert ("app_1", "two") not in store.items()
    assert ("app_1", "one") not in store.items("worker")
    assert 3 in store.values("worker_")
    assert "one" not in store.values("worker_")
    assert store.keys("app") | {"x"} == {"app_1", "x"}
    assert len(store) == 12
    store.clear("worker_")
    assert list(store) == ["app_1", "drive"]
    store.clear()
    assert list(store) == []


def test_update_takes_what_dicts_take_and_the_last_write_wins(open_store):
    store = open_store()
    store.update([("a", 1), ("b", 2), ("a", 3)])
    store.update({"b": 4}, c=5)
    store.update()
    assert dict(store) == {"a": 3, "b": 4, "c": 5}


def test_masters_words(open_store):
    store = open_store()
    store.persist("app_1", [1])
    store.unpersist("app_1")
    store.unpersist("app_1")
    store.unpersist("never there")
    assert store.read("app_") == []


def test_strange_names(open_store):
    store = open_store()
    for number, name in enumerate(STRANGE_NAMES):
        store[name] = number
    assert {name: store[name] for name in STRANGE_NAMES} == {name: at for at, name in enumerate(STRANGE_NAMES)}
    assert sorted(store) == sorted(STRANGE_NAMES)
    store.close()
    store = open_store()
    assert dict(store) == {name: at for at, name in enumerate(STRANGE_NAMES)}
    for name in STRANGE_NAMES:
        del store[name]
    assert list(store) == []


def test_a_name_must_be_text(open_store):
    store = open_store()
    with pytest.raises(UnicodeEncodeError):
        store["half \ud800 a pair"] = 1
    assert "half \ud800 a pair" not in store
    assert list(store) == []


@pytest.mark.parametrize("size", [0, 1, 100, 70_000, 3_000_000])
def test_values_of_all_sizes(open_store, size):
    value = os.urandom(size)
    store = open_store(serializer="bytes")
    store["it"] = value
    store["it"] = value
    store.close()
    assert open_store(serializer="bytes")["it"] == value


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compression_is_undone_whatever_the_setting(open_store, compression):
    value = b"worker " * 10_000
    store = open_store(serializer="bytes", compression=compression)
    store["packed"] = value
    store["short"] = b"x"
    assert store.stats().live_bytes < len(value) / 10
    store.close()
    store = open_store(serializer="bytes")
    assert store["packed"] == value
    store["plain"] = value
    assert [entry.codec for entry in store.entries()] == ["raw"] * 3
    assert store.stats().live_bytes > len(value)


def test_what_a_store_says_of_itself(open_store, url):
    store = open_store()
    for _ in range(4):
        store.update({f"n{number}": "x" * 500 for number in range(20)})
    store.clear("n1")
    stats = store.stats()
    assert stats.engine == url.partition(":")[0]
    assert (stats.entries, stats.poisoned, stats.sync) == (9, False, "always")
    assert len(stats.store_id) == 32
    assert url.partition(":")[2].strip("/").partition("/")[0] in stats.location
    done = store.compact()
    assert done.entries == 9
    assert 9 * 500 < done.bytes_after <= done.bytes_before
    assert done.bytes_after < 9 * 1000
    report = store.verify()
    assert report.is_sound
    assert report.entries == 9
    store.sync()
    store.close()
    store = open_store(strict=True)
    assert store.opening_report.entries == 9
    assert store.opening_report.closed_cleanly
    assert store.stats().store_id == stats.store_id


def test_closing(open_store):
    store = open_store()
    store["a"] = 1
    assert not store.closed
    store.close()
    store.close()
    assert store.closed
    assert " closed>" in repr(store)
    for use in (
        lambda: store["a"],
        lambda: store.update(b=1),
        lambda: list(store),
        store.stats,
        store.verify,
        store.compact,
        store.sync,
    ):
        with pytest.raises(recovery.ClosedError, match="closed"):
            use()
    with pytest.raises(ValueError, match="closed"):
        store["a"] = 2


def test_the_context_closes_whatever_happens(url):
    with pytest.raises(ZeroDivisionError), recovery.open(url) as store:
        store["a"] = 1
        1 / 0
    assert store.closed
    with recovery.open(url) as store:
        assert store["a"] == 1


def test_read_only_takes_no_lock_and_changes_nothing(open_store):
    store = open_store()
    store["a"] = 1
    looking = open_store(read_only=True)
    assert looking["a"] == 1
    for change in (lambda: looking.persist("a", 2), lambda: looking.update(a=2), lambda: looking.clear()):
        with pytest.raises(recovery.ReadOnlyError) as raised:
            change()
        assert isinstance(raised.value, PermissionError)
    assert looking["a"] == 1
    store["b"] = 2


def test_identity_and_pickling(open_store):
    import quickpickle

    store = open_store()
    assert store == store
    assert store != {}
    assert {store: 1}[store] == 1
    with pytest.raises(TypeError, match="cannot be pickled"):
        quickpickle.dumps(store)


def test_a_store_left_open_warns_and_closes(url):
    store = recovery.open(url)
    store["a"] = 1
    with pytest.warns(ResourceWarning, match="was not closed"):
        del store
    with recovery.open(url) as store:
        assert store["a"] == 1


@pytest.mark.parametrize("sync", ["always", "group", "group(5)", "none"])
def test_every_level_is_readable_at_once_and_after_closing(open_store, sync, url):
    store = open_store(sync=sync)
    store.update({str(number): number for number in range(30)})
    store["0"] = "again"
    assert store["0"] == "again"
    store.sync()
    store.close()
    assert len(open_store()) == 30


def test_a_black_hole_keeps_nothing():
    for url in ("blackhole:", "black_hole:"):
        with recovery.open(url) as store:
            store["a"] = 1
            assert "a" not in store
            assert store.stats().engine == "black_hole"


def test_paths_and_urls(tmp_path):
    odd = tmp_path / "log:not a url"
    with recovery.open(odd) as store:
        store["a"] = 1
    assert odd.is_dir()
    with recovery.open(str(tmp_path / "plain"), engine="file_system") as store:
        assert store.stats().engine == "file_system"
    with recovery.open(tmp_path / "plain") as store:
        assert store.stats().engine == "file_system"
    undecodable = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with recovery.open(undecodable) as store:
        store["a"] = 1
    assert undecodable.is_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path_or_url": "ftp://host/x"}, "ftp: is not known"),
        ({"path_or_url": "log:"}, "names no directory"),
        ({"path_or_url": "log:x", "engine": "file_system"}, "another engine"),
        ({"path_or_url": "x", "engine": "paper"}, "not an engine"),
        ({"path_or_url": "x", "sync": "sometimes"}, "not a durability level"),
        ({"path_or_url": "x", "compression": "gzip"}, "use none, lz4 or zstd"),
        ({"path_or_url": "x", "serializer": "xml"}, "not a serialiser"),
        ({"path_or_url": "x", "segment_bytes": 10}, "4096 or more"),
        ({"path_or_url": "x", "wait": -1.0}, "not a time"),
    ],
)
def test_settings_that_make_no_sense(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(recovery.ConfigError, match=message) as raised:
        recovery.open(**arguments)
    assert isinstance(raised.value, ValueError)
    assert list(tmp_path.iterdir()) == []


def test_files_are_for_their_owner_only(open_store, url):
    if url.startswith("zookeeper"):
        pytest.skip("has no files")
    with open_store() as store:
        store["a"] = 1
    root = Path(url.partition(":")[2])
    assert root.stat().st_mode & 0o777 == 0o700
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
