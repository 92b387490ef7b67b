"""CPython's tests of other modules, with ours in place of ``pickle``: what uses pickle must not notice.

A test may fail only if it fails with the reference as well. The short list is about pickling itself; the long one
(QUICKPICKLE_LONG_TESTS=1) goes through the library types that define how they pickle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.child import PATIENCE, ROOT

pytest.importorskip("test.test_pickle", reason="this interpreter has no test package", exc_type=ImportError)

SHORT = ["test_pickle", "test_pickletools", "test_picklebuffer", "test_copyreg", "test_copy"]
LONG = [
    *("test_datetime", "test_decimal", "test_fractions", "test_enum", "test_dataclasses", "test_functools"),
    *("test_collections", "test_deque", "test_ordered_dict", "test_defaultdict", "test_userdict", "test_userlist"),
    *(
        "test_itertools",
        "test_iter",
        "test_enumerate",
        "test_range",
        "test_slice",
        "test_set",
        "test_dict",
        "test_list",
    ),
    *(
        "test_tuple",
        "test_bytes",
        "test_array",
        "test_types",
        "test_typing",
        "test_genericalias",
        "test_uuid",
        "test_re",
    ),
    *("test_random", "test_exceptions", "test_exception_group", "test_baseexception", "test_zoneinfo", "test_pathlib"),
    *(
        "test_ipaddress",
        "test_descr",
        "test_struct",
        "test_structseq",
        "test_operator",
        "test_statistics",
        "test_shelve",
    ),
    *("test_io", "test_memoryio", "test_logging", "test_xml_etree", "test_email", "test_ast", "test_coroutines"),
    *("test_complex", "test_float", "test_reprlib", "test_configparser", "test_http_cookies", "test_urlparse"),
    *("test_collections", "test_dictviews", "test_unicode", "test_descrtut"),
]
ALLOWED = ("SizeofTests.test_pickler", "SizeofTests.test_unpickler")


def run(*arguments: str) -> dict[str, object]:
    """Run the modules in a child."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cpython.drop_in", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800 * PATIENCE / 5,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"ran"')]
    assert lines, f"exit {done.returncode}\n{done.stderr[-2000:]}"
    result: dict[str, object] = json.loads(lines[-1])
    return result


def check(modules: list[str], least: int) -> None:
    """Require that nothing fails that does not fail with the reference."""
    mine = run(*modules)
    assert mine["ran"] >= least, mine  # type: ignore[operator]
    failed = [f for f in mine["failed"] if not f.endswith(ALLOWED)]  # type: ignore[attr-defined]
    if failed:
        theirs = run("--baseline", *modules)
        failed = [f for f in failed if f not in theirs["failed"]]  # type: ignore[operator]
    assert not failed, {f: mine["texts"][f] for f in failed[:5]}  # type: ignore[index]


def test_modules_about_pickling() -> None:
    check(SHORT, 500)


@pytest.mark.long
@pytest.mark.parametrize("module", sorted(set(LONG)))
def test_modules_that_pickle(module: str) -> None:
    check([module], 0)
