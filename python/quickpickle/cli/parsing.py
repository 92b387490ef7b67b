"""Argument parsing as every command has it: help texts with examples, no abbreviated options."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any, Final

from quickpickle.cli.outcome import ExitCode

_WIDTH: Final = 79
EXIT_CODES: Final = f"""exit codes:
  {ExitCode.OK:<5}done, and nothing is wrong
  {ExitCode.FOUND:<5}done, and something is wrong with what was looked at
  {ExitCode.USAGE:<5}wrong usage; nothing was done
  {ExitCode.FAILED:<5}it could not be done; standard error says why
  {ExitCode.INTERRUPTED:<5}interrupted"""


class Parser(argparse.ArgumentParser):
    """argparse's parser with our defaults; parsers of subcommands are made of it too.

    ``examples`` are lines of (command, what it does), shown below the options. Options cannot be abbreviated: a new one
    would change the meaning of an old script.
    """

    def __init__(self, *, examples: tuple[tuple[str, str], ...] = (), **settings: Any) -> None:
        settings.setdefault("allow_abbrev", False)
        # Examples are laid out by us, so argparse must not; then the description is ours to wrap too.
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        if settings.get("description"):
            settings["description"] = textwrap.fill(settings["description"], _WIDTH)
        super().__init__(**settings)
        if examples:
            self.show_examples(*examples)

    def show_examples(self, *examples: tuple[str, str]) -> None:
        """Put examples below the options; a command's ``add_arguments`` calls this."""
        lines = "\n".join(f"  {command}\n      {meaning}" for command, meaning in examples)
        self.epilog = f"examples:\n{lines}\n\n{EXIT_CODES}"
