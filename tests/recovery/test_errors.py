"""Failures have classes that programs can catch, and what failed is never answered with success."""

import errno
import os
import pickle
import subprocess

import pytest

from quickpickle import recovery
from quickpickle.recovery.errors import of_kind

CLASSES = [
    recovery.RecoveryError,
    recovery.FullError,
    recovery.ReadOnlyError,
    recovery.LockedError,
    recovery.PoisonedError,
    recovery.ClosedError,
    recovery.CorruptError,
    recovery.VersionError,
    recovery.TooLargeError,
    recovery.FencedError,
    recovery.UnavailableError,
    recovery.ConfigError,
    recovery.CodecError,
]


@pytest.mark.parametrize("error", CLASSES)
def test_every_kind_has_a_class_that_survives_pickling(error):
    made = of_kind(error.kind, "it broke", "/a/place", errno.EIO)
    assert type(made) is error
    for same in (made, pickle.loads(pickle.dumps(made))):
        assert isinstance(same, OSError)
        assert (type(same), str(same), same.place, same.errno) == (error, "it broke", "/a/place", errno.EIO)


def test_kinds_of_a_newer_release_are_plain():
    assert type(of_kind("on_fire", "it burns", "", None)) is recovery.RecoveryError


def test_the_systems_number_is_kept(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(recovery.RecoveryError) as raised:
        recovery.open(tmp_path / "file" / "store")
    assert raised.value.errno == errno.ENOTDIR
    assert raised.value.place == str(tmp_path / "file" / "store")


def test_too_large(tmp_path):
    with recovery.open(tmp_path, serializer="bytes") as store:
        with pytest.raises(recovery.TooLargeError, match="the limit is 1048576"):
            store["n" * ((1 << 20) + 1)] = b""
        store["fine"] = b""
        assert list(store) == ["fine"]


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("engine", ["log", "file_system"])
def test_a_full_disk_poisons_until_there_is_room_again(tiny_disk, engine):
    with recovery.open(f"{engine}:{tiny_disk / 'store'}", serializer="bytes") as store:
        stored = 0
        with pytest.raises(recovery.FullError) as raised:
            for stored in range(10_000):
                store[f"n{stored}"] = b"x" * 2000
        assert raised.value.errno == errno.ENOSPC
        assert store.stats().poisoned
        with pytest.raises(recovery.PoisonedError, match="an earlier write failed"):
            store["small"] = b""
        with pytest.raises(recovery.PoisonedError):
            store.update(small=b"")
        names = set(store)
        assert names >= {f"n{number}" for number in range(stored)}
        assert all(store[name] == b"x" * 2000 for name in names)
        subprocess.run(["mount", "-o", "remount,size=8m", str(tiny_disk)], check=True)
        store.revive()
        store["small"] = b"now"
        assert not store.stats().poisoned
    with recovery.open(tiny_disk / "store", serializer="bytes", strict=True) as store:
        assert store["small"] == b"now"
        assert set(store) >= {f"n{number}" for number in range(stored)}


def test_leaving_a_poisoned_store_does_not_hide_why(tiny_disk):
    with pytest.raises(recovery.FullError), recovery.open(tiny_disk / "store", serializer="bytes") as store:
        store["large"] = b"x" * 3_000_000
    with pytest.raises(recovery.PoisonedError), recovery.open(tiny_disk / "store", serializer="bytes") as store:
        with pytest.raises(recovery.FullError):
            store["large"] = b"x" * 3_000_000


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(recovery.UnavailableError) as raised:
        recovery.open("zookeeper://127.0.0.1:1/x", operation_timeout=0.3)
    assert isinstance(raised.value, TimeoutError)
