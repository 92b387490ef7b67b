"""Pickles as commands get them: files, mapped where they are large, or standard input as ``-``."""

from __future__ import annotations

import argparse
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.tools import Data, MalformedPickle
from quickpickle.tools._input import guess

# Smaller files are read: mapping one that another process cuts short would end this one.
_MAPPED: Final = 64 << 20


def add_file(parser: argparse.ArgumentParser, *, many: bool = False) -> None:
    """The argument that says which pickle."""
    parser.add_argument(
        "files" if many else "file",
        nargs="+" if many else None,
        metavar="FILE",
        help="a file with a pickle, or - for standard input",
    )


@contextmanager
def opened(path: str) -> Iterator[Data]:
    """The content of a file."""
    if path == "-":
        yield sys.stdin.buffer.read()
        return
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _MAPPED:
                yield file.read()
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
    except OSError as error:
        if error.filename != path and error.filename is not None:
            raise
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def explained(path: str, data: Data) -> Iterator[None]:
    """Turn a malformed pickle into the command's end, with a guess at what the file is instead."""
    try:
        yield
    except MalformedPickle as error:
        what = guess(data)
        hint = f"the file looks like {what}" if what else None
        if what == "empty":
            hint = "the file is empty"
        raise CommandError(f"{shown_path(path)}: {error}", hint=hint, code=ExitCode.FOUND) from error


def shown_path(path: str) -> str:
    """How messages name it."""
    return "standard input" if path == "-" else path


def add_output(parser: argparse.ArgumentParser) -> None:
    """The argument that says where a pickle goes."""
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write it (default: standard output)"
    )


def write_output(path: str, content: bytes) -> None:
    """Write a whole file, or to standard output if that is no terminal; a file appears complete or not at all."""
    if path == "-":
        if sys.stdout.isatty():
            raise CommandError("a pickle is not for terminals; give -o FILE", code=ExitCode.USAGE)
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
