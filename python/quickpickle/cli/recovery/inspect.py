"""``quickpickle recovery inspect``: what is in a store."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.recovery import add_json, add_store, add_timeout
from quickpickle.cli.recovery.stores import reading, report_json, show_report, show_stats, shown
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.recovery import Entry

SUMMARY: Final = "what is in a store"
DESCRIPTION: Final = (
    "Shows what is in a store: how much, of which kinds, written by what. Takes no lock, changes nothing and loads no "
    "pickle, so it is safe beside a running master and on a store nobody trusts."
)
EXAMPLES: Final = (
    ("quickpickle recovery inspect /var/lib/coordinator", "a summary, entries counted by the beginning of their names"),
    ("quickpickle recovery inspect --entries --prefix worker_ DIR", "every worker, with codec and size"),
    ("quickpickle recovery inspect --json DIR | jq .stats.entries", "for programs"),
)
# Up to here a name says what kind of entry it is: worker_, app_, jobs/, ...
_KIND: Final = re.compile(r"[^\W_]*[\W_]")
# Kinds shown to people.
_KINDS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser)
    parser.add_argument("--entries", action="store_true", help="list every entry")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="only entries whose names start with this")
    add_timeout(parser)
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Read all of it and show it."""
    with reading(options.store, options) as store:
        stats, report = store.stats(), store.opening_report
        entries = list(store.entries(options.prefix))
    kinds = _kinds(entries)
    if options.json:
        document = {
            "stats": asdict(stats),
            "report": report_json(report),
            "kinds": [
                {"prefix": kind, "codec": codec, "entries": count, "bytes": size}
                for (kind, codec), (count, size) in kinds
            ],
        }
        if options.entries:
            document["entries"] = [
                {"name": entry.name, "codec": entry.codec, "bytes": len(entry.value)} for entry in entries
            ]
        terminal.json(document)
        return ExitCode.OK if report.is_sound else ExitCode.FOUND
    show_stats(terminal, stats)
    terminal.line()
    show_report(terminal, options.store, report)
    if options.entries and entries:
        terminal.line()
        rows = [(shown(entry.name), entry.codec, str(len(entry.value))) for entry in entries]
        terminal.table(("name", "codec", "bytes"), rows, right=(2,))
    elif entries:
        terminal.line()
        table = [
            (shown(kind) or '""', codec, str(count), size_text(size)) for (kind, codec), (count, size) in kinds[:_KINDS]
        ]
        terminal.table(("names begin with", "codec", "entries", "values"), table, right=(2, 3))
        if len(kinds) > _KINDS:
            terminal.line(f"... and {len(kinds) - _KINDS} more kinds; --entries lists all names")
    return ExitCode.OK if report.is_sound else ExitCode.FOUND


def _kinds(entries: Iterable[Entry]) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    """Entries and bytes by beginning and codec, most entries first."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for entry in entries:
        match = _KIND.match(entry.name)
        key = (match.group() if match else entry.name, entry.codec)
        count, size = found.get(key, (0, 0))
        found[key] = (count + 1, size + len(entry.value))
    return sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
