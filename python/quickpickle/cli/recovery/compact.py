"""``quickpickle recovery compact``: give back the space of what was replaced and removed."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Final

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.recovery import add_json, add_store, add_timeout, add_wait
from quickpickle.cli.recovery.stores import opened, plural, reading
from quickpickle.cli.terminal import Terminal, size_text

SUMMARY: Final = "give back the space of what was replaced and removed"
DESCRIPTION: Final = (
    "Writes what is alive into a new file and drops the old ones. Needs the store's lock, so its master must not run; "
    "a running master compacts by itself. Refuses a damaged store: see repair."
)
EXAMPLES: Final = (
    ("quickpickle recovery compact /var/lib/coordinator", "how much it was, how much it is"),
    ("quickpickle recovery compact --wait 60 DIR", "stand by for a minute if it is in use"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser)
    add_wait(parser)
    add_timeout(parser)
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Make sure there is a store, then compact it."""
    with reading(options.store, options):
        pass
    with opened(options.store, options, wait=options.wait, strict=True) as store:
        done = store.compact()
    if options.json:
        terminal.json(asdict(done))
    else:
        entries = plural(done.entries, "entry", "entries")
        terminal.line(f"{size_text(done.bytes_before)} before, {size_text(done.bytes_after)} now, {entries} kept")
    return ExitCode.OK
