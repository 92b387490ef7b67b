"""``quickpickle spark ACTION``: have PySpark in this Python environment pickle with quickpickle, or not, or look.

What enabling does is the business of :mod:`quickpickle.spark.environment`, what a check looks at that of
:mod:`quickpickle.spark.checking`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.terminal import Terminal

__all__ = ["add_arguments"]

# Asked of a process of its own, because what counts is how one starts.
_ASK: Final = "import sys; print('_quickpickle_spark_start' in sys.modules)"


def add_arguments(parser: Parser) -> None:
    """The actions, each with its own arguments."""
    parser.show_examples(
        ("quickpickle spark enable", "every Python process of this environment that imports PySpark uses quickpickle"),
        ("quickpickle spark check --master local[2]", "start a session and ask all kinds of its processes"),
        ("quickpickle spark disable", "as before"),
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, run, summary in (
        ("enable", _enable, "have PySpark in this environment use quickpickle"),
        ("disable", _disable, "undo enable"),
        ("status", _status, "whether this environment is enabled, and what is replaced in its PySpark"),
        ("check", _check, "start a session and ask its driver and workers"),
    ):
        action: Parser = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in ("enable", "disable"):
            action.add_argument(
                "--site", type=Path, metavar="DIR", help="the folder for .pth files, if not the environment's own"
            )
        else:
            action.add_argument("--json", action="store_true", help="one JSON document on standard output")
        if name == "check":
            action.add_argument("--master", default="local[2]", help="where Spark runs (default: local[2])")
            action.add_argument("--remote", metavar="URL", help="a Spark Connect server instead")
            action.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
        action.set_defaults(run=run)


def _enable(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    from quickpickle.spark import environment

    try:
        path = environment.enable(options.site)
    except OSError as error:
        raise CommandError(
            f"cannot write to {error.filename}: {error.strerror}", hint="name a folder with --site"
        ) from error
    terminal.line(f"enabled by {path}")
    if options.site is None and not _starts():
        raise CommandError(f"{sys.executable} does not read that file", hint="name a folder that it reads with --site")
    return ExitCode.OK


def _disable(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    from quickpickle.spark import environment

    try:
        removed = environment.disable(options.site)
    except OSError as error:
        raise CommandError(f"cannot remove {error.filename}: {error.strerror}") from error
    for path in removed:
        terminal.line(f"removed {path}")
    if not removed:
        terminal.line("was not enabled")
    return ExitCode.OK


def _status(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    from quickpickle.spark import installing

    starts = _starts()
    if importlib.util.find_spec("pyspark") is not None:
        # What would be replaced in its PySpark, in this process only.
        installing.install()
        importlib.import_module("pyspark")
        importlib.import_module("pyspark.serializers")
    status = installing.status()
    if options.json:
        terminal.json({**status.as_dict(), "enabled": starts})
        return ExitCode.OK
    terminal.line(f"{'enabled' if starts else 'not enabled'} in {sys.prefix}")
    terminal.line(
        f"quickpickle {status.quickpickle}, PySpark {status.pyspark or 'not installed'}, Python {status.python}"
    )
    if status.parts:
        terminal.table(("part of PySpark", "pickles with"), list(status.parts.items()))
    elif status.pyspark:
        terminal.line("nothing is replaced in this version of PySpark")
    return ExitCode.OK


def _check(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    from quickpickle.spark import checking

    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise CommandError(f"there is no PySpark here: {error}") from error
    builder = SparkSession.builder.appName("quickpickle check").config("spark.ui.enabled", "false")
    builder = builder.remote(options.remote) if options.remote else builder.master(options.master)
    for setting in options.conf:
        key, equals, value = setting.partition("=")
        if not equals:
            raise CommandError(f"--conf {setting}: write KEY=VALUE", code=ExitCode.USAGE)
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the table says the same
            report = checking.check(spark)
    finally:
        spark.stop()
    if options.json:
        terminal.json(report.as_dict())
    else:
        terminal.line(str(report))
    return ExitCode.OK if report.ok else ExitCode.FOUND


def _starts() -> bool:
    """Whether a process of this interpreter starts with us."""
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    return done.stdout.strip() == "True"
