"""``quickpickle recovery ACTION``: look into, check, repair, compact and move recovery stores.

Each action is a module of its own beside this file with ``SUMMARY``, ``EXAMPLES``, ``add_arguments(parser)`` and
``run(options, terminal)``, and a line in :data:`ACTIONS`. ``stores`` opens stores for them and turns their errors into
the command line's. What must stay true: only ``repair``, ``compact`` and ``copy`` ever open a store for writing.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from quickpickle.cli.parsing import Parser

ACTIONS: Final = ("inspect", "verify", "repair", "compact", "copy", "spark-conf")


def add_arguments(parser: Parser) -> None:
    """The actions, each with its own arguments."""
    parser.show_examples(
        ("quickpickle recovery inspect /var/lib/coordinator", "what is in a store"),
        ("quickpickle recovery verify zookeeper://zk1:2181,zk2:2181/spark", "whether all of it can be read"),
        ("quickpickle recovery copy log:/var/lib/a file:/var/lib/b", "move between engines"),
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name in ACTIONS:
        module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
        action: Parser = actions.add_parser(name, help=module.SUMMARY, description=f"{module.DESCRIPTION}")
        action.show_examples(*module.EXAMPLES)
        module.add_arguments(action)
        action.set_defaults(run=module.run)


def add_store(parser: argparse.ArgumentParser, name: str = "store", what: str = "the store") -> None:
    """The argument every action has."""
    parser.add_argument(
        name,
        metavar=name.upper(),
        help=f"{what}: a directory, log:DIR, file:DIR or zookeeper://HOST:PORT,HOST:PORT/NODE",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output, for programs")


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """``--timeout``, for actions that talk to servers."""
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="longest any call to ZooKeeper takes (default: 15)"
    )


def add_wait(parser: argparse.ArgumentParser) -> None:
    """``--wait``, for actions that need the store's lock."""
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="stand by this long while another process holds it"
    )
