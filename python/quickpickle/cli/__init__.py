"""The command line: ``quickpickle COMMAND ...``, also ``python -m quickpickle COMMAND ...``.

This file knows which commands there are, chooses one and turns what goes wrong into a line for people and an exit
code for scripts. Each command is a module of its own beside this file, named like it (``-`` becomes ``_``), with

    ``add_arguments(parser)``   declares its arguments and ends in ``parser.set_defaults(run=...)``
    ``run(options, terminal)``  does the work, writes through the terminal, returns an :class:`ExitCode`

and a line in :data:`COMMANDS`. What must stay true: a command's module is imported only when that command runs, so
that none pays for another's imports; and only this package prints.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from argparse import REMAINDER, SUPPRESS, Action, ArgumentParser
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.parsing import EXIT_CODES, Parser
from quickpickle.cli.terminal import Terminal

__all__ = ["COMMANDS", "Command", "CommandError", "ExitCode", "command_parser", "main"]


class Command(NamedTuple):
    """A line of the table: what ``quickpickle --help`` says without importing anything."""

    name: str
    summary: str

    @property
    def module(self) -> str:
        """Where it lives."""
        return f"{__name__}.{self.name.replace('-', '_')}"


COMMANDS: Final = (
    Command("dis", "list the operations of a pickle, as pickletools does"),
    Command("stats", "count what a pickle is made of"),
    Command("scan", "say whether files are safe to load, in archives too"),
    Command("explain", "show what is in a pickle, and what takes its bytes"),
    Command("optimize", "drop memo writes that nothing reads"),
    Command("recovery", "look into, check, repair, compact and move recovery stores"),
    Command("run", "run a script with quickpickle standing in for cloudpickle and pickle"),
    Command("spark", "have an unmodified PySpark pickle with quickpickle, and check that it does"),
    Command("completion", "print a script that lets a shell complete commands and options"),
)


def command_parser(command: Command) -> Parser:
    """The complete parser of one command; imports its module."""
    parser = Parser(prog=f"quickpickle {command.name}", description=_sentence(command.summary))
    importlib.import_module(command.module).add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` (or the process's arguments) names; returns its exit code and never exits."""
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except SystemExit as stop:  # how argparse ends for --help, --version and wrong usage
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:
        # Whoever read our output has seen enough, such as `head`. Keep the interpreter from complaining at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE


def _run(argv: list[str]) -> int:
    top = _top_parser().parse_args(argv)
    terminal = Terminal(color=top.color)
    commands = {command.name: command for command in COMMANDS}
    command = commands.get(top.command)
    if command is None:
        close = difflib.get_close_matches(top.command, commands, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(commands)}"
        return _failed(terminal, CommandError(f"no command {top.command!r}; {hint}", code=ExitCode.USAGE))
    options = command_parser(command).parse_args(top.arguments)
    try:
        code = options.run(options, terminal)
        sys.stdout.flush()
    except CommandError as error:
        return _failed(terminal, error)
    except KeyboardInterrupt:
        terminal.error("interrupted")
        return ExitCode.INTERRUPTED
    return int(code)


def _failed(terminal: Terminal, error: CommandError) -> int:
    terminal.error(str(error))
    if error.hint:
        terminal.hint(error.hint)
    return error.code


def _top_parser() -> Parser:
    width = max((len(command.name) for command in COMMANDS), default=0)
    listed = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    parser = Parser(
        prog="quickpickle",
        usage="quickpickle [--color WHEN] COMMAND ...",
        description="Tools around Python's pickle, and the recovery store.",
        epilog=f"commands:\n{listed}\n\n'quickpickle COMMAND --help' says more about each.\n\n{EXIT_CODES}",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="auto (on terminals only, the default; NO_COLOR and FORCE_COLOR are heeded), always or never",
    )
    parser.add_argument("command", help=SUPPRESS)
    parser.add_argument("arguments", nargs=REMAINDER, help=SUPPRESS)
    return parser


class _ShowVersion(Action):
    """Imports the package for its version only when asked for it."""

    def __call__(self, parser: ArgumentParser, *_: object) -> NoReturn:
        from quickpickle import __version__

        sys.stdout.write(f"quickpickle {__version__}\n")
        parser.exit()


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
