"""Stores that earlier releases wrote load with every value; those of a later one are refused and left as they are."""

import shutil
from pathlib import Path

import pytest

from quickpickle import recovery
from quickpickle.cli import main

from ..golden.recovery.generate import EXPECTED, STORES, Reversed

GOLDEN = Path(__file__).parent.parent / "golden" / "recovery"
FORMATS = sorted(folder.name for folder in GOLDEN.glob("format_*"))
READERS = ("pickle", "json", "bytes", Reversed())


def test_there_are_stores_to_read():
    assert FORMATS == ["format_1"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("version", FORMATS)
def test_what_an_earlier_release_wrote_loads_and_can_be_written(version, store, tmp_path):
    place = tmp_path / store
    shutil.copytree(GOLDEN / version / store, place)
    with recovery.open(place, readers=READERS, read_only=True, strict=True) as opened:
        assert dict(opened) == EXPECTED
        assert opened.opening_report.closed_cleanly
        first, second = opened["shared"]
        assert first is second
    with recovery.open(place, readers=READERS, strict=True) as opened:
        opened["new"] = {"written": "today"}
        del opened["raw"]
        opened.compact()
        assert opened.verify().is_sound
    with recovery.open(place, readers=READERS, strict=True) as opened:
        assert dict(opened) == {
            **{name: value for name, value in EXPECTED.items() if name != "raw"},
            "new": {"written": "today"},
        }


def crc32c(data: bytes) -> bytes:
    """The checksum of the format, bit by bit, in the order it has in a file."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def of_a_later_release(path: Path, version_at: int, checksum_at: int, covered: slice) -> None:
    """Raise the version in a file whose checksum is right, as a later release would write it."""
    data = bytearray(path.read_bytes())
    assert data[version_at] == 1
    assert data[checksum_at : checksum_at + 4] == crc32c(data[covered]), "not where docs/recovery-format.md says"
    data[version_at] = 2
    data[checksum_at : checksum_at + 4] = crc32c(data[covered])
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("store", "pattern", "version_at", "checksum_at", "covered"),
    [
        ("log", "*.qlog", 8, 60, slice(0, 60)),
        ("file_system", "STORE", 8, 28, slice(0, 28)),
        ("file_system", "entries/own.entry", 8, 4, slice(8, None)),
    ],
)
def test_what_a_later_release_wrote_is_refused_and_left_alone(
    store, pattern, version_at, checksum_at, covered, tmp_path, capsys
):
    place = tmp_path / store
    shutil.copytree(GOLDEN / "format_1" / store, place)
    of_a_later_release(sorted(place.glob(pattern))[-1], version_at, checksum_at, covered)
    (place / "LOCK").touch()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "LOCK"}
    for settings in ({}, {"read_only": True}, {"strict": True}):
        with pytest.raises(recovery.VersionError, match="newer"):
            recovery.open(place, **settings)
    for action in ("inspect", "verify", "compact"):
        assert main(["recovery", action, str(place)]) == 3
        assert "newer" in capsys.readouterr().err
    after = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "LOCK"}
    assert after == before
