"""``quickpickle dis``: the operations of a pickle, one a line, as ``python -m pickletools`` lists them."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.pickles import add_file, explained, opened, shown_path
from quickpickle.cli.terminal import Terminal
from quickpickle.tools import Data, dis

__all__ = ["add_arguments", "run"]

# Where annotations begin if no column is given; that of pickletools.
_COLUMN: Final = 30


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    add_file(parser, many=True)
    parser.add_argument("-a", "--annotate", action="store_true", help="say on each line what its operation does")
    parser.add_argument(
        "--column", type=int, default=_COLUMN, metavar="N", help=f"where annotations begin (default: {_COLUMN})"
    )
    parser.add_argument("-s", "--stack", action="store_true", help="show the stack and the memo after each operation")
    parser.add_argument(
        "-l", "--indentlevel", type=int, default=4, metavar="N", help="blanks for each open mark (default: 4)"
    )
    parser.add_argument("--start", type=int, default=0, metavar="BYTE", help="where the pickle begins (default: 0)")
    parser.add_argument("--all", action="store_true", help="list every pickle of the file, not only the first")
    parser.show_examples(
        ("quickpickle dis model.pkl", "what python -m pickletools model.pkl prints, faster"),
        ("quickpickle dis --annotate --stack small.pkl | less", "with what each operation does, and to what"),
        ("curl -s https://example.org/x.pkl | quickpickle dis -", "standard input; nothing in it is run"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """List every file; a malformed one is listed as far as it goes."""
    if options.start < 0 or options.indentlevel < 0 or options.column < 0:
        raise CommandError("numbers of bytes, blanks and columns cannot be negative", code=ExitCode.USAGE)
    code = ExitCode.OK
    for path in options.files:
        if len(options.files) > 1:
            terminal.line(f"==> {path} <==")
        with opened(path) as data:
            try:
                with explained(path, data):
                    _list(data, path, options, terminal)
            except CommandError as error:
                if error.code is not ExitCode.FOUND:
                    raise
                sys.stdout.flush()
                terminal.error(str(error))
                if error.hint:
                    terminal.hint(error.hint)
                code = ExitCode.FOUND
    return code


def _list(data: Data, path: str, options: argparse.Namespace, terminal: Terminal) -> None:
    end = options.start
    while True:
        end = dis(
            data,
            start=end,
            indent=options.indentlevel,
            annotate=options.column if options.annotate else None,
            stack=options.stack,
        )
        left = len(data) - end
        if not left or not options.all:
            break
        terminal.line()
    if left:
        sys.stdout.flush()
        terminal.note(f"{shown_path(path)}: {left} more bytes follow the pickle, which ends at byte {end}")
