"""Opening stores for the command line, and saying what is wrong with them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.recovery import (
    ClosedError,
    ConfigError,
    LockedError,
    RecoveryError,
    Report,
    Stats,
    Store,
    UnavailableError,
)
from quickpickle.recovery import open as open_store

# Longest name shown in a table.
_SHOWN: Final = 60
# Damaged stretches shown to people; JSON has all of them.
_STRETCHES: Final = 20


@contextmanager
def opened(place: str, options: argparse.Namespace, **settings: Any) -> Iterator[Store]:
    """A store, closed at the end; its errors, then and meanwhile, are the command's."""
    try:
        with open_store(place, serializer="bytes", operation_timeout=options.timeout, **settings) as store:
            yield store
    except RecoveryError as error:
        raise _explained(error) from error


@contextmanager
def reading(place: str, options: argparse.Namespace) -> Iterator[Store]:
    """A store opened to look at: no lock, no change, and an error if there is none."""
    with opened(place, options, read_only=True) as store:
        stats = store.stats()
        if stats.engine == "log" and not stats.files:
            raise CommandError(f"{place}: there is no store here")
        yield store


def _explained(error: RecoveryError) -> CommandError:
    hint, code = None, ExitCode.FAILED
    if isinstance(error, LockedError):
        hint = "stop the process that holds it, or give --wait SECONDS"
    elif isinstance(error, UnavailableError):
        hint = "are the servers running, and is the address right?"
    elif isinstance(error, ConfigError) and not isinstance(error, ClosedError):
        code = ExitCode.USAGE
    return CommandError(str(error), hint=hint, code=code)


def report_json(report: Report) -> dict[str, Any]:
    """A report for ``--json``."""
    return {"is_sound": report.is_sound, **asdict(report)}


def show_report(terminal: Terminal, place: str, report: Report) -> None:
    """A report for people."""
    read = f"{plural(report.entries, 'entry', 'entries')} in {plural(report.records, 'good record')}"
    read += f", {size_text(report.bytes_scanned)} read"
    if report.is_sound:
        terminal.line(f"{place}: {terminal.style('sound', 'bold', 'green')}: {read}")
    else:
        terminal.line(f"{place}: {terminal.style('damaged', 'bold', 'red')}: {read}")
    if report.torn_tail_bytes:
        size = size_text(report.torn_tail_bytes)
        terminal.line(f"{size} of an incomplete last write, never acknowledged as durable; opening drops them")
    if report.missing_records:
        terminal.line(f"{plural(report.missing_records, 'record is', 'records are')} missing")
    if report.damage:
        terminal.line()
        rows = [
            (damage.place, str(damage.offset), str(damage.length), damage.reason)
            for damage in report.damage[:_STRETCHES]
        ]
        terminal.table(("damaged", "at byte", "bytes", "what is wrong"), rows, right=(1, 2))
        if len(report.damage) > _STRETCHES:
            terminal.line(f"... and {len(report.damage) - _STRETCHES} more; --json has all of them")
    for note in report.notes:
        terminal.line(f"note: {note}")


def show_stats(terminal: Terminal, stats: Stats) -> None:
    """How much a store holds, for people."""
    rows = [
        ("engine", stats.engine),
        ("location", stats.location),
        ("store id", stats.store_id or "none"),
        ("format", str(stats.format_version)),
        ("entries", str(stats.entries)),
        ("alive", size_text(stats.live_bytes)),
        ("on disk", f"{size_text(stats.total_bytes)} in {plural(stats.files, 'file')}"),
    ]
    for label, text in rows:
        terminal.line(f"{terminal.style(label.ljust(10), 'dim')}{text}")


def shown(name: str) -> str:
    """A name fit for a terminal: no control characters, not too long."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name[: _SHOWN + 1])
    return f"{text[:_SHOWN]}..." if len(text) > _SHOWN else text


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"
