"""Flipped bytes and cut files, as a Python program meets them: found, reported, put aside, refused if strict."""

import random
import shutil
from pathlib import Path

import pytest

from quickpickle import recovery


@pytest.fixture
def log(tmp_path):
    """A log of twenty entries, closed in good order: its directory, and its one segment."""
    place = tmp_path / "store"
    with recovery.open(place) as store:
        for number in range(20):
            store[f"n{number:02}"] = {"number": number, "text": "x" * 50}
    (segment,) = place.glob("*.qlog")
    return place, segment


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


def test_a_flipped_byte_is_found_reported_and_put_aside(log):
    place, segment = log
    size = segment.stat().st_size
    flip(segment, size // 2)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(recovery.CorruptError, match="strict mode refuses a damaged store"):
        recovery.open(place, strict=True)
    with recovery.open(place, read_only=True) as looking:
        assert not looking.opening_report.is_sound
        assert looking.opening_report.damage[0].quarantined_to is None
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    with recovery.open(place) as store:
        report = store.opening_report
        (damage,) = report.damage
        assert damage.offset <= size // 2 < damage.offset + damage.length
        assert (damage.place, report.missing_records, report.entries) == (segment.name, 1, 19)
        kept = Path(damage.quarantined_to).read_bytes()
        assert kept == before[segment.name][damage.offset : damage.offset + damage.length]
        assert len(store) == 19
        assert all(value == {"number": int(name[1:]), "text": "x" * 50} for name, value in store.items())
    with recovery.open(place, strict=True) as store:
        assert store.opening_report.is_sound
        assert len(store) == 19


def test_any_flipped_byte_costs_one_entry_at_most_and_never_shows_a_wrong_one(log, tmp_path):
    place, segment = log
    generator = random.Random(5)
    copy = tmp_path / "copy"
    for offset in generator.sample(range(segment.stat().st_size), 40):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        flip(copy / segment.name, offset)
        with recovery.open(copy) as store:
            report = store.opening_report
            assert report.damage or report.torn_tail_bytes, offset
            assert len(store) >= 19, offset
            assert all(value == {"number": int(name[1:]), "text": "x" * 50} for name, value in store.items()), offset


def test_a_cut_tail_is_dropped_and_reported(log):
    place, segment = log
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 50)
    with recovery.open(place, strict=True) as store:
        report = store.opening_report
        assert report.torn_tail_bytes > 0
        assert report.is_sound
        assert not report.closed_cleanly
        assert len(store) in (19, 20)
        store["after"] = 1
        assert store.verify().is_sound


def test_damage_while_open_is_found_by_verify_and_never_read(log):
    place, segment = log
    with recovery.open(place) as store:
        assert store.verify().is_sound
        flip(segment, segment.stat().st_size // 2)
        assert not store.verify().is_sound
        with pytest.raises(recovery.CorruptError):
            store.read()
        damaged = [name for name in store if not readable(store, name)]
        assert len(damaged) == 1
        # Asking for the name reads no value, so it can also be removed.
        assert damaged[0] in store
        del store[damaged[0]]
        assert damaged[0] not in store
        assert len(store.read()) == 19


def readable(store: recovery.Store, name: str) -> bool:
    try:
        return isinstance(store[name], dict)
    except recovery.CorruptError:
        return False


def test_a_damaged_file_is_put_aside(tmp_path):
    with recovery.open(f"file:{tmp_path}") as store:
        store.update(a=1, b=2)
    (path,) = tmp_path.glob("entries/a.entry")
    flip(path, path.stat().st_size - 1)
    with pytest.raises(recovery.CorruptError):
        recovery.open(tmp_path, strict=True)
    with recovery.open(tmp_path) as store:
        assert dict(store) == {"b": 2}
        assert Path(store.opening_report.damage[0].quarantined_to).exists()


def test_what_another_program_wrote_is_refused(log, tmp_path):
    place, segment = log
    data = bytearray(segment.read_bytes())
    with recovery.open(tmp_path / "other") as store:
        store["a"] = 1
        store.compact()
    *_, stray = sorted((tmp_path / "other").glob("*.qlog"))
    assert stray.name > segment.name
    shutil.copy(stray, place)
    with pytest.raises(recovery.VersionError, match="belongs to another store"):
        recovery.open(place)
    assert segment.read_bytes() == data
    with pytest.raises(recovery.VersionError, match="store of the log engine"):
        recovery.open(f"file:{place}")
