"""``quickpickle run``: a script or module, with quickpickle standing in for cloudpickle, and for pickle if asked to.

The script runs as ``python script.py`` would run it: as ``__main__``, with its own folder first on ``sys.path``, its
arguments in ``sys.argv``, its traceback and its exit code. What standing in means is the business of
:mod:`quickpickle.standin`.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import sys
import traceback
from types import CodeType, ModuleType

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.terminal import Terminal

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "quickpickle run [--pickle] [--children] [-m] SCRIPT [ARGUMENT ...]"
    parser.add_argument(
        "--pickle", action="store_true", help="stand in for the module pickle too, and so in multiprocessing"
    )
    parser.add_argument(
        "--children", action="store_true", help="do the same in Python processes that the script starts"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script, as they are"
    )
    parser.show_examples(
        ("quickpickle run train.py --epochs 3", "joblib and dask in train.py pickle with quickpickle"),
        ("quickpickle run --pickle --children -m package.job", "multiprocessing and its workers too"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode | int:
    """Run the script; its exit code is ours."""
    from quickpickle.standin import install

    code, main = _module(options.script) if options.module else _script(options.script)
    sys.argv[:] = [main.__file__ or options.script, *options.arguments]
    sys.modules["__main__"] = main
    install(pickle=options.pickle, children=options.children)
    return _execute(code, main)


def _script(path: str) -> tuple[CodeType, ModuleType]:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", code=ExitCode.USAGE) from error
    main = ModuleType("__main__")
    main.__file__ = path
    main.__dict__.update(__builtins__=__builtins__, __cached__=None)
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    return _compiled(source, path), main


def _module(name: str) -> tuple[CodeType, ModuleType]:
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise CommandError(f"cannot find module {name}: {error}", code=ExitCode.USAGE) from error
    loader = spec.loader if spec is not None else None
    if spec is None or not isinstance(loader, importlib.machinery.SourceFileLoader):
        raise CommandError(f"no module {name} that can be run", code=ExitCode.USAGE)
    main = ModuleType("__main__")
    main.__file__ = loader.path
    # By this, children that start anew import the module by its name and not from its file.
    main.__spec__ = spec
    main.__dict__.update(__builtins__=__builtins__, __cached__=spec.cached, __loader__=loader)
    main.__package__ = spec.parent
    return _compiled(loader.get_data(loader.path), loader.path), main


def _compiled(source: bytes, path: str) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        traceback.print_exception(type(error), error, None)
        raise SystemExit(1) from None


def _execute(code: CodeType, main: ModuleType) -> int:
    try:
        exec(code, main.__dict__)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        sys.stderr.write(f"{stop.code}\n")
        return 1
    except BaseException as error:
        # As the interpreter shows it: without the frames that led to the script.
        shown = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(shown), shown)
        return ExitCode.INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0
