"""What a store says about itself. Fields and their names are those of the Rust crate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """An entry as it is stored."""

    name: str
    codec: str
    """What wrote the value: ``pickle``, ``raw``, ``json``, ``java``, ..."""
    value: bytes


@dataclass(frozen=True)
class Damage:
    """A stretch of stored bytes that could not be used."""

    place: str
    """The file or node."""
    offset: int
    """Where it begins, in bytes from the start of the file."""
    length: int
    """How many bytes it has."""
    reason: str
    """What is wrong with it."""
    quarantined_to: str | None
    """Where its bytes were put aside, if they were."""


@dataclass(frozen=True)
class Report:
    """What opening or verifying a store found."""

    entries: int
    """Entries alive."""
    records: int
    """Records, files or nodes found good."""
    bytes_scanned: int
    """Bytes looked at."""
    torn_tail_bytes: int
    """Bytes of an incomplete last write, which were dropped: what a crash in the middle of a write leaves."""
    damage: tuple[Damage, ...]
    """Damage that is not a torn tail."""
    missing_records: int
    """Records known to be missing, from gaps in the sequence numbers."""
    closed_cleanly: bool
    """Whoever had the store last closed it in good order."""
    notes: tuple[str, ...]
    """Remarks that need no action."""

    @property
    def is_sound(self) -> bool:
        """No damage and nothing missing. A torn tail is no damage: it was never acknowledged."""
        return not self.damage and not self.missing_records


@dataclass(frozen=True)
class Stats:
    """How much a store holds."""

    engine: str
    """``log``, ``file_system``, ``zookeeper`` or ``black_hole``."""
    location: str
    """The directory or the servers."""
    sync: str
    """The durability level in force."""
    store_id: str
    """Drawn when the store was created; in hex."""
    format_version: int
    """Version of the format on disk."""
    entries: int
    """Entries alive."""
    live_bytes: int
    """Bytes they take."""
    total_bytes: int
    """Bytes the store takes."""
    files: int
    """Files or nodes the store consists of."""
    poisoned: bool
    """An earlier failure stops all writing."""


@dataclass(frozen=True)
class Compaction:
    """What a compaction did."""

    bytes_before: int
    """Bytes the store took before."""
    bytes_after: int
    """Bytes it takes now."""
    entries: int
    """Entries kept."""


def report_of(found: dict[str, Any]) -> Report:
    """The report that Rust gave as a dict."""
    damage = tuple(Damage(**stretch) for stretch in found.pop("damage"))
    return Report(damage=damage, notes=tuple(found.pop("notes")), **found)
