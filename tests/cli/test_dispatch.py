"""Choosing a command, help, and the exit code of every way a command can end."""

import argparse
import json
import os
import subprocess
import sys
import types

import pytest

from quickpickle import __version__, cli
from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.terminal import Terminal, size_text


@pytest.fixture
def command(monkeypatch):
    """A command made for the test: does what ``endings`` has under its argument."""

    def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
        ending = endings[options.ending]
        if isinstance(ending, BaseException):
            raise ending
        terminal.line(f"ran {options.ending}")
        return ending

    def add_arguments(parser):
        parser.add_argument("ending")
        parser.add_argument("--long-option")
        parser.show_examples(("quickpickle probe well", "ends well"))
        parser.set_defaults(run=run)

    endings = {
        "well": ExitCode.OK,
        "found": ExitCode.FOUND,
        "badly": CommandError("the disk is full", hint="make room"),
        "interrupted": KeyboardInterrupt(),
    }
    module = types.ModuleType("quickpickle.cli.probe")
    module.add_arguments = add_arguments
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "COMMANDS", (cli.Command("probe", "try every ending"),))


@pytest.mark.parametrize(
    ("ending", "code", "out", "err"),
    [
        ("well", 0, "ran well\n", ""),
        ("found", 1, "ran found\n", ""),
        ("badly", 3, "", "quickpickle: error: the disk is full\nmake room\n"),
        ("interrupted", 130, "", "quickpickle: error: interrupted\n"),
    ],
)
def test_every_ending_has_its_exit_code(command, capsys, ending, code, out, err):
    assert cli.main(["probe", ending]) == code
    assert capsys.readouterr() == (out, err)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["prob"], "no command 'prob'; did you mean probe?"),
        (["zzzz"], "no command 'zzzz'; there are probe"),
        ([], "required: command"),
        (["probe"], "required: ending"),
        (["probe", "well", "--long"], "unrecognized arguments: --long"),
        (["--color", "sometimes", "probe", "well"], "invalid choice: 'sometimes'"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_reason(command, capsys, argv, message):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_help_lists_commands_and_exit_codes(command, capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "  probe  try every ending\n" in out
    assert "  3    it could not be done" in out
    assert cli.main(["probe", "--help"]) == 0
    out = capsys.readouterr().out
    assert "usage: quickpickle probe" in out
    assert "quickpickle probe well\n      ends well" in out


def test_every_command_has_help_with_examples(capsys):
    for command in cli.COMMANDS:
        assert cli.main([command.name, "--help"]) == 0
        assert "examples:" in capsys.readouterr().out, command.name


def test_colors_appear_on_request_only(command, capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert cli.main(["--color", "always", "probe", "badly"]) == 3
    assert "\x1b[1;31merror:\x1b[0m the disk" in capsys.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["probe", "badly"]) == 3
    assert "\x1b[" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["probe", "badly"]) == 3
    assert "\x1b[" not in capsys.readouterr().err


def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "quickpickle", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"quickpickle {__version__}\n", "")
    done = subprocess.run([sys.executable, "-m", "quickpickle", "--nonsense"], capture_output=True, text=True)
    assert done.returncode == 2


def test_help_imports_no_command_and_no_engine():
    program = (
        "import sys; from quickpickle import cli; code = cli.main(['--help']);"
        "print(*(name for name in sys.modules if name.startswith('quickpickle.')), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    known = {"quickpickle._native", "quickpickle.cli"}
    known |= {f"quickpickle.cli.{name}" for name in ("outcome", "parsing", "terminal")}
    assert set(done.stderr.split()) == known


def test_a_reader_that_leaves_is_no_error():
    program = (
        "import sys, time, types; from quickpickle import cli\n"
        "def run(options, terminal):\n"
        "    for number in range(100_000): terminal.line(str(number))\n"
        "module = types.ModuleType('quickpickle.cli.count')\n"
        "module.add_arguments = lambda parser: parser.set_defaults(run=run)\n"
        "sys.modules[module.__name__] = module\n"
        "cli.COMMANDS = (cli.Command('count', 'count'),)\n"
        "sys.exit(cli.main(['count']))\n"
    )
    read, write = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", program], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 10)
    os.close(read)
    assert child.communicate()[1] == b""
    assert child.returncode == ExitCode.BROKEN_PIPE


def test_tables_and_json(capsys):
    terminal = Terminal("never")
    terminal.table(("name", "bytes"), [("a", "5"), ("longer", "1234")], right=[1])
    terminal.json({"é": [1, None]})
    out = capsys.readouterr().out
    assert out.startswith("name    bytes\na           5\nlonger   1234\n")
    assert json.loads(out.split("\n", 3)[3]) == {"é": [1, None]}


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 << 20, "1.5 GiB"), (5000 << 40, "5000.0 TiB")],
)
def test_sizes_as_people_say_them(count, text):
    assert size_text(count) == text
