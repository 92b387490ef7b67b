"""``quickpickle recovery copy``: all entries of one store into another, of whatever engine."""

from __future__ import annotations

import argparse
from typing import Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.recovery import add_json, add_store, add_timeout, add_wait
from quickpickle.cli.recovery.stores import opened, plural, reading, shown
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.recovery import Store

SUMMARY: Final = "all entries of one store into another, of whatever engine"
DESCRIPTION: Final = (
    "Copies every entry, byte for byte and with the tag of what wrote it, into another store; then reads the copy and "
    "compares. The source is opened for reading only. The destination must be empty, unless --merge is given."
)
EXAMPLES: Final = (
    ("quickpickle recovery copy log:/var/lib/a file:/var/lib/b", "from a log to a file for each entry"),
    (
        "quickpickle recovery copy /var/lib/a zookeeper://zk1:2181/spark",
        "from one machine's disk to a ZooKeeper ensemble",
    ),
    ("quickpickle recovery copy --compress zstd /var/lib/a /var/lib/c", "smaller"),
)
# Entries written at once, and bytes after which a batch is full.
_BATCH: Final = 500
_BATCH_BYTES: Final = 4 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser, "source", "where from")
    add_store(parser, "destination", "where to")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="only entries whose names start with this")
    parser.add_argument(
        "--merge", action="store_true", help="into a store with entries; those of the same name are replaced"
    )
    parser.add_argument("--compress", choices=("lz4", "zstd"), help="how the copy is compressed")
    add_wait(parser)
    add_timeout(parser)
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Copy, make durable, compare."""
    with (
        reading(options.source, options) as source,
        # One sync at the end makes all of it durable; until then nobody is told that it is.
        opened(
            options.destination, options, sync="none", compression=options.compress, wait=options.wait
        ) as destination,
    ):
        sound = source.opening_report.is_sound
        if not sound:
            terminal.note(f"{options.source} is damaged; what can be read of it is copied")
        if not options.merge and (present := len(destination)):
            entries = plural(present, "entry", "entries")
            raise CommandError(
                f"{options.destination} holds {entries} already",
                hint="give --merge to add to them and replace those of the same name",
            )
        names = list(source.keys(options.prefix))
        size = _copy(source, destination, names, terminal)
        destination.sync()
        different = _compare(source, destination, names, terminal)
    if different:
        raise CommandError(f"the copy of {shown(different[0])} and {len(different) - 1} others differs from its source")
    if options.json:
        document = {"source": options.source, "destination": options.destination, "entries": len(names), "bytes": size}
        terminal.json({**document, "source_is_sound": sound})
    else:
        terminal.line(f"{plural(len(names), 'entry', 'entries')} copied and compared, {size_text(size)} of values")
    return ExitCode.OK if sound else ExitCode.FOUND


def _copy(source: Store, destination: Store, names: list[str], terminal: Terminal) -> int:
    batch: list[tuple[str, int, bytes]] = []
    pending = size = 0
    for done, name in enumerate(names, 1):
        found = source.engine.get(name)
        if found is None:  # removed by a master that is running meanwhile
            continue
        batch.append((name, *found))
        pending += len(found[1])
        if len(batch) == _BATCH or pending >= _BATCH_BYTES or done == len(names):
            destination.engine.persist_batch(batch)
            size += pending
            pending = 0
            batch.clear()
        terminal.progress(done, len(names), f"entries copied, {size_text(size)}")
    if batch:
        destination.engine.persist_batch(batch)
    return size + pending


def _compare(source: Store, destination: Store, names: list[str], terminal: Terminal) -> list[str]:
    different = []
    for done, name in enumerate(names, 1):
        if source.engine.get(name) != destination.engine.get(name):
            different.append(name)
        terminal.progress(done, len(names), "entries compared")
    return different
