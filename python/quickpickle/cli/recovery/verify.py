"""``quickpickle recovery verify``: whether all of a store can be read."""

from __future__ import annotations

import argparse
from typing import Any, Final

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.recovery import add_json, add_store, add_timeout
from quickpickle.cli.recovery.stores import plural, reading, report_json, show_report, shown
from quickpickle.cli.terminal import Terminal
from quickpickle.recovery import RecoveryError, Store

SUMMARY: Final = "whether all of a store can be read"
DESCRIPTION: Final = (
    "Reads a whole store and checks every byte of it. Takes no lock, changes nothing and loads no pickle. Ends with 0 "
    "if the store is sound and with 1 if something is damaged or missing. What a crash in the middle of the last write "
    "leaves is no damage."
)
EXAMPLES: Final = (
    ("quickpickle recovery verify /var/lib/coordinator", "one line if it is sound, else every damaged place"),
    ("quickpickle recovery verify --values DIR", "undo the compression of every value as well"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser)
    parser.add_argument("--values", action="store_true", help="read every value and undo its compression")
    add_timeout(parser)
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Opening reads and checks everything already."""
    with reading(options.store, options) as store:
        report = store.opening_report
        unreadable = _unreadable_values(store, terminal) if options.values else []
    if options.json:
        document: dict[str, Any] = {"store": options.store, "report": report_json(report)}
        if options.values:
            document["unreadable_values"] = [{"name": name, "error": error} for name, error in unreadable]
        terminal.json(document)
    else:
        show_report(terminal, options.store, report)
        if unreadable:
            terminal.line()
            terminal.line(f"{plural(len(unreadable), 'value')} cannot be read:")
            terminal.table(("name", "why"), [(shown(name), error) for name, error in unreadable])
        if not report.is_sound:
            terminal.note(f"'quickpickle recovery repair {options.store}' says what can be done about it")
    return ExitCode.OK if report.is_sound and not unreadable else ExitCode.FOUND


def _unreadable_values(store: Store, terminal: Terminal) -> list[tuple[str, str]]:
    names = list(store)
    found = []
    for done, name in enumerate(names, 1):
        terminal.progress(done, len(names), "values")
        try:
            store.engine.get(name)
        except RecoveryError as error:
            found.append((name, str(error)))
    return found
