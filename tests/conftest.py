"""Fixtures every suite shares: which implementation a test body runs over.

``implementation`` runs a test twice, over the standard library's ``pickle`` and over ``quickpickle``: what a test
expects is then known to be the reference's behaviour and not only ours. ``ours`` is quickpickle alone, for
differential tests and for what the reference does not promise (depth, memory caps, notes on errors).

``--ours=pickle`` puts the reference in our place, which checks the tests themselves without a build.
"""

from __future__ import annotations

import copyreg
import importlib
import os
from collections.abc import Iterator
from types import ModuleType

import pytest

LONG = os.environ.get("QUICKPICKLE_LONG_TESTS", "") not in ("", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--ours``."""
    parser.addoption(
        "--ours",
        default=os.environ.get("QUICKPICKLE_OURS", "quickpickle"),
        help="module under test: quickpickle (default), or pickle to check the tests themselves",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hand the choice on to child processes and declare the markers."""
    os.environ["QUICKPICKLE_OURS"] = config.getoption("--ours")
    config.addinivalue_line("markers", "long: takes minutes; runs only with QUICKPICKLE_LONG_TESTS=1")
    config.addinivalue_line(
        "markers",
        "beyond_reference: states what the reference does not do; skipped when it stands in for us",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what does not apply to this run."""
    self_check = config.getoption("--ours") == "pickle"
    for item in items:
        if not LONG and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="set QUICKPICKLE_LONG_TESTS=1"))
        if self_check and item.get_closest_marker("beyond_reference"):
            item.add_marker(pytest.mark.skip(reason="the reference does not promise this"))


@pytest.fixture(autouse=True, scope="module")
def _own_table_of_reducers() -> Iterator[None]:
    """Undo what a module's tests, or the libraries they import, register in copyreg."""
    before = dict(copyreg.dispatch_table)
    yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(before)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that ask for ``implementation`` over the reference and over us."""
    if "implementation" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--ours")
        names = ["pickle"] if chosen == "pickle" else ["pickle", chosen]
        metafunc.parametrize("implementation", names, indirect=True)


@pytest.fixture
def implementation(request: pytest.FixtureRequest) -> ModuleType:
    """The reference or ours, by parameter."""
    return importlib.import_module(request.param)


@pytest.fixture
def ours(request: pytest.FixtureRequest) -> ModuleType:
    """The module under test."""
    return importlib.import_module(request.config.getoption("--ours"))
