"""What commands write with: colours on terminals only, tables, JSON, progress.

Results go to standard output, everything about how the work goes to standard error, so that a pipe receives results
only. Small and of our own because a pickle library should not bring a terminal library into every installation.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TextIO

_CODES: Final[dict[str, str]] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")
# Seconds between two drawings of a progress line.
_REDRAW: Final = 0.1


class Terminal:
    """Standard output and standard error, each with colours if it wants them."""

    def __init__(self, color: Literal["auto", "always", "never"] = "auto") -> None:
        self._out_colored = _wants_color(sys.stdout, color)
        self._err_colored = _wants_color(sys.stderr, color)
        self._drawn = 0
        self._last = 0.0

    def style(self, text: str, *styles: str) -> str:
        """``text`` for standard output in these styles, if that shows them."""
        return _styled(text, styles) if self._out_colored else text

    def line(self, text: str = "") -> None:
        """One line of a result."""
        self.clear_progress()
        sys.stdout.write(text + "\n")

    def json(self, value: Any) -> None:
        """A result for programs: one JSON document."""
        self.clear_progress()
        json.dump(value, sys.stdout, indent=2, ensure_ascii=not _can_write(sys.stdout))
        sys.stdout.write("\n")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
        """Columns as wide as they need; those numbered in ``right`` are set to the right, as numbers are."""
        rows = [tuple(row) for row in rows]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        aligned = frozenset(right)

        def laid_out(row: Sequence[str]) -> str:
            cells = (
                cell.rjust(width) if at in aligned else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            return "  ".join(cells).rstrip()

        self.line(self.style(laid_out(header), "bold"))
        for row in rows:
            self.line(laid_out(row))

    def note(self, text: str) -> None:
        """A remark about the work, on standard error."""
        self.clear_progress()
        sys.stderr.write(text + "\n")

    def error(self, text: str) -> None:
        """What went wrong, on standard error."""
        self.clear_progress()
        prefix = _styled("error:", ("bold", "red")) if self._err_colored else "error:"
        sys.stderr.write(f"quickpickle: {prefix} {text}\n")

    def hint(self, text: str) -> None:
        """What to do about it, below an error."""
        sys.stderr.write(f"{_styled(text, ('dim',)) if self._err_colored else text}\n")

    def progress(self, done: int, total: int | None, what: str) -> None:
        """Draw how far the work is, on one line that the next output replaces; nothing unless on a terminal."""
        now = time.monotonic()
        if not sys.stderr.isatty() or (now - self._last < _REDRAW and done != total):
            return
        self._last = now
        width = shutil.get_terminal_size().columns
        if total:
            bar_width = max(10, min(40, width - 50))
            filled = bar_width * min(done, total) // total
            text = f"[{'#' * filled}{'.' * (bar_width - filled)}] {100 * min(done, total) // total:3}% {what}"
        else:
            text = f"{done} {what}"
        text = text[: width - 1]
        sys.stderr.write("\r" + text.ljust(self._drawn))
        sys.stderr.flush()
        self._drawn = len(text)

    def clear_progress(self) -> None:
        """Take the progress line away."""
        if self._drawn:
            sys.stderr.write("\r" + " " * self._drawn + "\r")
            sys.stderr.flush()
            self._drawn = 0


def size_text(count: int) -> str:
    """A number of bytes as people say it."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


def _wants_color(stream: TextIO, color: str) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _styled(text: str, styles: Iterable[str]) -> str:
    codes = ";".join(_CODES[style] for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _can_write(stream: TextIO) -> bool:
    """Whether the stream takes any character."""
    return (stream.encoding or "").replace("-", "").lower() == "utf8"
