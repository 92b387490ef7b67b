"""``quickpickle optimize``: a pickle without the memo writes that nothing reads."""

from __future__ import annotations

import argparse

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.pickles import add_file, add_output, explained, opened, write_output
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.tools import optimize

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    add_file(parser)
    add_output(parser)
    parser.show_examples(
        ("quickpickle optimize model.pkl -o smaller.pkl", "the bytes that pickletools.optimize would make"),
        ("quickpickle optimize - < a.pkl > b.pkl", "from standard input to standard output"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Read, leave out, write."""
    with opened(options.file) as data:
        before = len(data)
        with explained(options.file, data):
            made = optimize(data)
    write_output(options.output, made)
    terminal.note(f"{size_text(before)} before, {size_text(len(made))} now")
    return ExitCode.OK
