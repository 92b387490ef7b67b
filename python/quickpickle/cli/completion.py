"""``quickpickle completion``: commands and options completed by the shell.

The script that is printed has all words in it, so that completing starts no Python.
"""

from __future__ import annotations

import argparse
from typing import Final

from quickpickle.cli.outcome import ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.terminal import Terminal

__all__ = ["add_arguments", "run", "words"]

_SHELLS: Final = ("bash", "zsh", "fish")


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=_SHELLS, help="which shell")
    parser.show_examples(
        ('eval "$(quickpickle completion bash)"', "in ~/.bashrc; for zsh the same in ~/.zshrc, behind compinit"),
        ("quickpickle completion fish > ~/.config/fish/completions/quickpickle.fish", "for fish"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Print the script."""
    known = words()
    terminal.line(_fish(known) if options.shell == "fish" else _bash(known, options.shell))
    return ExitCode.OK


def words() -> dict[str, list[str]]:
    """What may follow each command: its options, and its own commands if it has any."""
    from quickpickle.cli import COMMANDS, command_parser

    found = {}
    for command in COMMANDS:
        known: list[str] = []
        # argparse has no public way to ask for what was declared.
        for action in command_parser(command)._actions:
            known += [option for option in action.option_strings if option.startswith("--")]
            if isinstance(action, argparse._SubParsersAction):
                known += action.choices
        found[command.name] = sorted(known)
    return found


def _bash(known: dict[str, list[str]], shell: str) -> str:
    cases = "\n".join(f'        {name}) words="{" ".join(options)}" ;;' for name, options in known.items())
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"""{first}_quickpickle() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(known)} --help --version --color" -- "$current"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _quickpickle quickpickle"""


def _fish(known: dict[str, list[str]]) -> str:
    lines = [f'complete -c quickpickle -n __fish_use_subcommand -a "{" ".join(known)}"']
    for name, options in known.items():
        seen = f'"__fish_seen_subcommand_from {name}"'
        for option in options:
            how = f"-l {option[2:]}" if option.startswith("--") else f"-a {option}"
            lines.append(f"complete -c quickpickle -n {seen} {how}")
    return "\n".join(lines)
