"""The scripts behind the Makefile: which interpreters are used, and that no run passes with no test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(script: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_an_environment_leads_to_the_interpreter_behind_it() -> None:
    """The same interpreter under two names is found once."""
    done = run("interpreters.py", sys.executable, QUICKPICKLE_INTERPRETERS=f"{sys.executable} {sys.executable}")
    assert done.returncode == 0, done.stderr
    name, path, about = done.stdout.strip().split("\t")
    assert name.startswith(sys.version.split()[0])
    assert os.path.realpath(path) == os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    assert about == f"CPython {sys.version.split()[0]}"


def test_paths_that_do_not_run_are_passed_over() -> None:
    done = run("interpreters.py", sys.executable, QUICKPICKLE_INTERPRETERS="/nonexistent/python3 /bin/false")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_an_unusable_first_choice_is_an_error() -> None:
    done = run("interpreters.py", "/nonexistent/python3", QUICKPICKLE_INTERPRETERS="")
    assert done.returncode != 0
    assert "/nonexistent/python3" in done.stderr


JUNIT = '<testsuites><testsuite tests="{}" failures="1" errors="1" skipped="2"/></testsuites>'
CARGO = "running 3 tests\ntest result: ok. {} passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n"


def test_summary_adds_up(tmp_path: Path) -> None:
    (tmp_path / "cargo.log").write_text(CARGO.format(3) + CARGO.format(4))
    (tmp_path / "3.11.2.xml").write_text(JUNIT.format(10))
    (tmp_path / "3.13.0.xml").write_text(JUNIT.format(20))
    done = run("summary.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "29 passed, 4 failed, 6 skipped"


def test_summary_refuses_a_suite_that_ran_nothing(tmp_path: Path) -> None:
    (tmp_path / "cargo.log").write_text("error: nothing was built\n")
    (tmp_path / "3.11.2.xml").write_text(JUNIT.format(10))
    done = run("summary.py", str(tmp_path))
    assert done.returncode != 0
    assert "Rust: no test ran" in done.stderr
