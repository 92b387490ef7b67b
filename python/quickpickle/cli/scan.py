"""``quickpickle scan``: whether files are safe to load, for people and for continuous integration."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any, Final

from quickpickle import __version__
from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.parsing import Parser
from quickpickle.cli.terminal import Terminal
from quickpickle.tools import Finding, Scan, Verdict, scan, scan_files

__all__ = ["add_arguments", "run"]

_STYLES: Final = {Verdict.OK: ("green",), Verdict.UNKNOWN: ("yellow",), Verdict.DANGEROUS: ("bold", "red")}
# Findings shown for each file.
_SHOWN: Final = 8


def add_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.description = textwrap.fill(
        "Finds the pickles in files, folders and archives and says what they would import and call. Nothing is run. "
        "The verdict is ok, unknown (it names what no list has, or cannot be looked into) or dangerous. Ends with 1 "
        "if a file is dangerous, and with --fail-on unknown if one is not ok; with 3 if a file could not be read.",
        79,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders; - for standard input")
    parser.add_argument(
        "--fail-on",
        choices=("dangerous", "unknown"),
        default="dangerous",
        help="the verdict from which on the exit code is 1 (default: dangerous)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PATTERN",
        help="globals that are fine, such as 'sklearn.*'; may be given again. What is dangerous stays so",
    )
    parser.add_argument("--globals", action="store_true", help="list every global, harmless ones too")
    parser.add_argument("-q", "--quiet", action="store_true", help="only files that are not ok")
    parser.add_argument(
        "--max-bytes",
        type=int,
        default=2 << 30,
        metavar="N",
        help="bytes that a compressed member may grow to (default: 2 GiB)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON document on standard output, for programs")
    output.add_argument("--sarif", action="store_true", help="SARIF 2.1.0 on standard output, for code hosts")
    parser.show_examples(
        ("quickpickle scan models/", "every pickle below a folder, in archives too"),
        ("quickpickle scan --fail-on unknown --allow 'sklearn.*' model.joblib", "only what is known passes"),
        ("quickpickle scan --sarif . > pickles.sarif", "for the code scanning of a host"),
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Scan all, show, and say by the exit code how it went."""
    if options.max_bytes < 1:
        raise CommandError("--max-bytes must be at least 1", code=ExitCode.USAGE)
    scans: list[Scan] = []
    failures: list[str] = []

    def failed(path: str, error: OSError) -> None:
        failures.append(path)
        terminal.error(f"cannot read {path}: {error.strerror or error}")

    for found in _scans(options, failed):
        scans.append(found)
        terminal.progress(len(scans), None, f"files; {found.path}")
        if not (options.json or options.sarif):
            _show(found, options, terminal)
    if options.json:
        terminal.json({"version": 1, "files": [_document(found) for found in scans], "unreadable": failures})
    elif options.sarif:
        from quickpickle.tools import sarif

        terminal.json(sarif(scans, __version__))
    else:
        _summary(scans, terminal)
    if failures:
        return ExitCode.FAILED
    worst = max((found.verdict for found in scans), default=Verdict.OK, key=list(Verdict).index)
    return ExitCode.FOUND if worst >= Verdict(options.fail_on) else ExitCode.OK


def _scans(options: argparse.Namespace, failed: Any) -> Any:
    for path in options.paths:
        if path == "-":
            yield scan(sys.stdin.buffer.read(), name="-", allow=options.allow, max_bytes=options.max_bytes)
        else:
            yield from scan_files([path], allow=options.allow, max_bytes=options.max_bytes, failed=failed)


def _show(found: Scan, options: argparse.Namespace, terminal: Terminal) -> None:
    if options.quiet and found.verdict is Verdict.OK:
        return
    verdict = terminal.style(found.verdict.value.ljust(9), *_STYLES[found.verdict])
    kinds = ", ".join(found.kinds[:3])
    count = f"{found.pickles} {'pickle' if found.pickles == 1 else 'pickles'}"
    about = terminal.style(f"({kinds}; {count})" if kinds else f"({count})", "dim")
    terminal.line(f"{verdict}  {_printable(found.path)}  {about}")
    for finding in found.findings[:_SHOWN]:
        terminal.line(f"           {_reason(finding, terminal)}")
    if len(found.findings) > _SHOWN:
        terminal.line(f"           ... and {len(found.findings) - _SHOWN} more; --json has all")
    if options.globals:
        for use in found.globals:
            calls = f", called {use.calls} times" if use.calls else ""
            terminal.line(f"           {use.verdict.value:<9}  {_printable(use.module)}.{_printable(use.name)}{calls}")


def _reason(finding: Finding, terminal: Terminal) -> str:
    where = f"byte {finding.offset}" + (f" of {_printable(finding.member)}" if finding.member else "")
    again = f", {finding.count} times" if finding.count > 1 else ""
    style = _STYLES[finding.verdict] if finding.verdict is not Verdict.OK else ("dim",)
    rule, place = terminal.style(finding.rule, *style), terminal.style(f"({where}{again})", "dim")
    return f"{rule}: {_printable(finding.message)} {place}"


def _summary(scans: list[Scan], terminal: Terminal) -> None:
    counts = {verdict: sum(found.verdict is verdict for found in scans) for verdict in Verdict}
    present = [verdict for verdict in Verdict if counts[verdict]]
    parts = [terminal.style(f"{counts[verdict]} {verdict.value}", *_STYLES[verdict]) for verdict in present]
    files = f"{len(scans)} {'file' if len(scans) == 1 else 'files'}"
    terminal.line(f"{files}: {', '.join(parts) or 'nothing to scan'}")


def _document(found: Scan) -> dict[str, Any]:
    return {
        "path": found.path,
        "verdict": found.verdict.value,
        "kinds": found.kinds,
        "pickles": found.pickles,
        "findings": [
            {
                "verdict": finding.verdict.value,
                "rule": finding.rule,
                "message": finding.message,
                "member": finding.member,
                "offset": finding.offset,
                "count": finding.count,
            }
            for finding in found.findings
        ],
        "globals": [
            {
                "module": use.module,
                "name": use.name,
                "verdict": use.verdict.value,
                "member": use.member,
                "offset": use.offset,
                "count": use.count,
                "calls": use.calls,
            }
            for use in found.globals
        ],
    }


def _printable(text: str) -> str:
    """Names come from the pickle; a terminal must not obey them."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:300])
