"""The completion scripts, run by the shells that are there."""

import shutil
import subprocess
import sys

import pytest

from quickpickle import cli
from quickpickle.cli.completion import words


def script(shell):
    command = [sys.executable, "-m", "quickpickle", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(*line):
    quoted = " ".join(f"'{word}'" for word in line)
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(line) - 1}; _quickpickle; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script("bash") + "\n" + ask], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_every_command_is_known():
    assert list(words()) == [command.name for command in cli.COMMANDS]
    assert "--annotate" in words()["dis"]
    assert "verify" in words()["recovery"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes():
    assert completed("quickpickle", "sc") == ["scan"]
    assert completed("quickpickle", "scan", "--sa") == ["--sarif"]
    assert completed("quickpickle", "recovery", "ver") == ["verify"]


def test_fish_has_all_commands():
    text = script("fish")
    assert all(command.name in text for command in cli.COMMANDS)
    assert "-l sarif" in text
