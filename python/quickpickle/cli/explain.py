"""``quickpickle explain``: what is in a pickle, why it is so large and what it drags in."""

from __future__ import annotations

import argparse

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.pickles import add_file, explained, opened, shown_path, write_output
from quickpickle.cli.terminal import Terminal
from quickpickle.tools import explain
from quickpickle.tools._explain_text import text

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    add_file(parser)
    parser.add_argument("--lines", type=int, default=40, metavar="N", help="lines of the tree (default: 40)")
    parser.add_argument("--levels", type=int, default=10, metavar="N", help="levels of the tree (default: 10)")
    parser.add_argument("--html", metavar="FILE", help="write a page with a flame graph to FILE instead")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output, for programs")
    parser.show_examples(
        ("quickpickle explain model.pkl", "a tree of parts with their bytes, imports, shared and duplicate objects"),
        ("quickpickle explain --html model.html model.pkl", "a flame graph to click through, in one file"),
        ("quickpickle explain --json - < model.pkl | jq .modules", "what loading would import"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Explain and show."""
    with opened(options.file) as data:
        total = len(data)
        with explained(options.file, data):
            found = explain(data, progress=lambda done: terminal.progress(done, total, shown_path(options.file)))
    if options.json:
        terminal.json(found.to_dict())
    elif options.html:
        terminal.clear_progress()
        write_output(options.html, found.html(shown_path(options.file)).encode())
    else:
        terminal.line(text(found, terminal.style, options.lines, options.levels))
        if total > found.bytes:
            terminal.note(f"{total - found.bytes} more bytes follow the pickle")
    return ExitCode.OK
