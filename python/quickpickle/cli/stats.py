"""``quickpickle stats``: what a pickle is made of, in numbers."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.pickles import add_file, explained, opened
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.tools import Statistics, stats

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    add_file(parser)
    parser.add_argument("--start", type=int, default=0, metavar="BYTE", help="where the pickle begins (default: 0)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output, for programs")
    parser.show_examples(
        ("quickpickle stats model.pkl", "opcodes by bytes, use of the memo, the largest payload"),
        ("quickpickle stats --json model.pkl | jq .unused_memo_bytes", "what 'quickpickle optimize' would save"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Count and show."""
    with opened(options.file) as data, explained(options.file, data):
        found = stats(data, start=options.start)
    if options.json:
        terminal.json(asdict(found))
    else:
        _show(found, terminal)
    return ExitCode.OK


def _show(found: Statistics, terminal: Terminal) -> None:
    protocol = "none named" if found.protocol is None else str(found.protocol)
    largest = "none"
    if found.largest_payload:
        size, offset = found.largest_payload
        largest = f"{size_text(size)} at byte {offset}"
    rows = (
        ("bytes", f"{found.bytes} ({size_text(found.bytes)})"),
        ("operations", str(found.operations)),
        ("protocol", f"{protocol}; the newest opcode is of protocol {found.highest_protocol}"),
        ("frames", str(found.frames)),
        ("payload", f"{size_text(found.payload_bytes)} of text, bytes and large integers"),
        ("largest", largest),
        ("memo", f"{found.memo_writes} written, {found.memo_used} of them read, {found.memo_reads} reads"),
        ("unused", f"{size_text(found.unused_memo_bytes)} of memo writes that nothing reads"),
        ("nesting", f"{found.deepest_marks} marks open at most"),
    )
    for label, text in rows:
        terminal.line(f"{terminal.style(label.ljust(12), 'dim')}{text}")
    terminal.line()
    terminal.table(
        ("opcode", "count", "bytes", "share"),
        [(row.name, str(row.count), str(row.bytes), f"{100 * row.bytes / found.bytes:.1f}%") for row in found.opcodes],
        right=(1, 2, 3),
    )
