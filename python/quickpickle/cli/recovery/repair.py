"""``quickpickle recovery repair``: says what repairing would do, and does it once it is told to."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from quickpickle.cli.outcome import CommandError, ExitCode
from quickpickle.cli.recovery import add_json, add_store, add_timeout, add_wait
from quickpickle.cli.recovery.stores import opened, plural, reading, report_json, show_report
from quickpickle.cli.terminal import Terminal, size_text
from quickpickle.recovery import Report

SUMMARY: Final = "make a damaged store sound again, keeping what is damaged aside"
DESCRIPTION: Final = (
    "Says what is wrong with a store and what repairing would do; then asks, unless --yes was given. Damaged bytes are "
    "kept in the store's quarantine, everything that can be read stays, and what is missing cannot be brought back. "
    "Opening a store without strict does the same; this is for looking first."
)
EXAMPLES: Final = (
    ("quickpickle recovery repair /var/lib/coordinator", "explain, and ask"),
    ("quickpickle recovery repair --dry-run DIR", "only explain"),
    ("quickpickle recovery repair --yes --json DIR", "for programs"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this action."""
    add_store(parser)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--yes", action="store_true", help="do it without asking")
    choice.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_wait(parser)
    add_timeout(parser)
    add_json(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Look without touching, explain, ask, act, look again."""
    with reading(options.store, options) as store:
        before = store.opening_report
    plan = _plan(before)
    document: dict[str, Any] = {"store": options.store, "before": report_json(before), "plan": plan, "repaired": False}
    if not options.json:
        show_report(terminal, options.store, before)
        terminal.line()
        terminal.line("repairing would:" if plan else "there is nothing to repair")
        for step in plan:
            terminal.line(f"  - {step}")
    if plan and not options.dry_run and (options.yes or _confirmed(options, terminal)):
        with opened(options.store, options, wait=options.wait) as store:
            done = store.opening_report
        with reading(options.store, options) as store:
            after = store.opening_report
        document.update(repaired=True, done=report_json(done), after=report_json(after))
        if not options.json:
            for damage in done.damage:
                if damage.quarantined_to:
                    terminal.line(f"kept {size_text(damage.length)} in {damage.quarantined_to}")
            show_report(terminal, options.store, after)
    if options.json:
        terminal.json(document)
    sound = after.is_sound if document["repaired"] else before.is_sound
    return ExitCode.OK if sound else ExitCode.FOUND


def _confirmed(options: argparse.Namespace, terminal: Terminal) -> bool:
    if options.json or not sys.stdin.isatty():
        raise CommandError(
            "nothing was done: there is nobody to ask", hint="give --yes to repair, or --dry-run to be only told"
        )
    sys.stderr.write("Do it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    terminal.note("nothing was done")
    return False


def _plan(report: Report) -> list[str]:
    steps = []
    damaged = [damage for damage in report.damage if damage.length]
    if damaged:
        size = size_text(sum(damage.length for damage in damaged))
        steps.append(f"put {plural(len(damaged), 'damaged stretch', 'damaged stretches')} ({size}) into quarantine")
    if not report.is_sound:
        steps.append(f"keep {plural(report.entries, 'entry', 'entries')}, written anew where the engine needs it")
    if report.missing_records:
        steps.append(
            f"accept that {plural(report.missing_records, 'record is', 'records are')} missing: an entry may be gone "
            "or have an older value, a removed one may be back"
        )
    if report.torn_tail_bytes:
        steps.append(f"cut off {size_text(report.torn_tail_bytes)} of an incomplete last write")
    return steps
