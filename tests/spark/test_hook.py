"""The start-up hook and the tables of versions, which need no PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quickpickle.spark import environment, versions


def python(code: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    head = f"import site, sys; site.addsitedir({str(place)!r}); sys.path.insert(0, {str(place)!r})\n"
    env = {"PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **variables}
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, env=env)


FINDERS = "print([type(f).__name__ for f in sys.meta_path if 'uickpickle' in type(f).__name__])"


def test_enabling_writes_two_files_and_disabling_removes_them(tmp_path: Path) -> None:
    assert environment.enable(tmp_path) == tmp_path / environment.PTH
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((environment.PTH, environment.START))
    environment.enable(tmp_path)
    done = python(FINDERS, tmp_path)
    assert (done.stdout, done.stderr) == ("['QuickpickleFinder']\n", "")
    assert python(FINDERS, tmp_path, QUICKPICKLE_SPARK="off").stdout == "[]\n"
    assert sorted(environment.disable(tmp_path)) == sorted([tmp_path / environment.PTH, tmp_path / environment.START])
    # Only what the interpreter has compiled remains.
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == []
    assert environment.disable(tmp_path) == []


def test_a_damaged_hook_does_not_keep_an_interpreter_from_starting(tmp_path: Path) -> None:
    environment.enable(tmp_path)
    for text in ("this is not Python", "raise RuntimeError", "import no_such_module"):
        (tmp_path / environment.START).write_text(text)
        done = python("print('started')", tmp_path, PYTHONDONTWRITEBYTECODE="1")
        assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
    (tmp_path / environment.START).unlink()
    done = python("print('started')", tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert (done.stdout, done.stderr) == ("started\n", "")


def test_a_package_of_the_name_that_is_no_pyspark(tmp_path: Path) -> None:
    """It is imported, and nothing happens to it but a remark."""
    environment.enable(tmp_path)
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("here = 1\n")
    (tmp_path / "pyspark" / "serializers.py").write_text("class CloudPickleSerializer: pass\n")
    done = python("import pyspark, pyspark.serializers; print(pyspark.here)", tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert done.stderr.count("PySpark unknown is not among the versions known here") == 1, done.stderr


def test_outlines_tell_one_function_from_another() -> None:
    def method(self, obj, encoding="bytes"):
        return pickle.loads(obj, encoding=encoding)  # noqa: F821

    def changed(self, obj, encoding="bytes"):
        return checked(pickle.loads(obj, encoding=encoding))  # noqa: F821

    part = next(part for part in versions.parts("4.3.0") if part.attribute == "PickleSerializer.loads")
    assert versions.surprise(part, method) is None
    assert "checked" in (versions.surprise(part, changed) or "")
    assert versions.surprise(part, len)


def test_every_version_names_its_parts_once() -> None:
    for minor in ("3.5", "4.0", "4.1", "4.2", "4.3"):
        names = [part.name for part in versions.parts(f"{minor}.7")]
        assert names
        assert len(set(names)) == len(names)
        assert {part.module for part in versions.parts(minor)} <= set(versions.MODULES)
    for unknown in ("3.4.1", "4.30.0", "5.0.0", "unknown", ""):
        assert versions.parts(unknown) == ()
