"""How a command can end: the exit codes, and the error that becomes one."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script can tell from a command's end. Written down in ``--help``; never renumber."""

    OK = 0
    """Done, and nothing is wrong with what was looked at."""
    FOUND = 1
    """Done, and something is wrong with what was looked at: damage, a dangerous pickle, a difference."""
    USAGE = 2
    """The command line makes no sense; nothing was done."""
    FAILED = 3
    """It could not be done: no such file, a held lock, a full disk, a server that does not answer."""
    INTERRUPTED = 130
    """Stopped with Ctrl-C."""
    BROKEN_PIPE = 141
    """Whoever read the output stopped reading."""


class CommandError(Exception):
    """Ends a command with a line on standard error, perhaps a hint below it, and an exit code."""

    def __init__(self, message: str, *, hint: str | None = None, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code
