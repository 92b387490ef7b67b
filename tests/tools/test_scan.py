"""Scans: every published technique is flagged, clean pickles are not, and nothing is ever run."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import subprocess
import sys
import tarfile
import zipfile

import pytest

import tests.corpus
from quickpickle import tools
from quickpickle.tools import Verdict
from tests.format.test_listing import GOLDEN
from tests.tools import malicious, pickles


@pytest.mark.parametrize("name", malicious.PICKLES)
def test_every_technique_is_dangerous(name):
    found = tools.scan(malicious.PICKLES[name])
    assert found.verdict is Verdict.DANGEROUS, found
    assert found.findings[0].verdict is Verdict.DANGEROUS
    assert found.findings[0].message


@pytest.mark.parametrize("packed", malicious.files(malicious.SYSTEM))
@pytest.mark.parametrize("technique", ["reduce", "protocol 0", "broken after the call", "names from the memo"])
def test_however_it_is_packed(packed, technique, tmp_path):
    content = malicious.PICKLES[technique]
    if packed == "joblib, behind an array" and technique != "reduce":
        pytest.skip("made of the plain form")
    name, data = malicious.files(content)[packed]
    path = tmp_path / name
    path.write_bytes(data)
    found = tools.scan_file(path)
    assert found.verdict is Verdict.DANGEROUS, found


def clean():
    for name, value in tests.corpus.values():
        for protocol in range(6):
            try:
                yield f"{name} {protocol}", pickle.dumps(value, protocol)
            except Exception:
                continue


def test_the_clean_corpus_has_nothing_dangerous():
    found = {name: tools.scan(data) for name, data in clean()}
    dangerous = {name: scan.findings[0].message for name, scan in found.items() if scan.verdict is Verdict.DANGEROUS}
    assert dangerous == {}
    assert sum(scan.verdict is Verdict.OK for scan in found.values()) > len(found) / 2
    assert len(found) > 3000


def test_random_plain_data_is_ok():
    for data in pickles.sound():
        found = tools.scan(data)
        assert (
            found.verdict is Verdict.OK
            or "builtins" in found.findings[0].message
            or "__builtin__" in found.findings[0].message
        )
        assert found.pickles == 1


def test_functions_by_value_are_unknown():
    cloudpickle = pytest.importorskip("cloudpickle")
    import shutil

    def remove(path):
        return shutil.rmtree(os.path.join(path, "x"))

    class Job:
        def __setstate__(self, state):
            self.__dict__.update(state)

    for value in (remove, Job, Job(), [lambda: os], {"f": remove}):
        found = tools.scan(cloudpickle.dumps(value))
        assert found.verdict is Verdict.UNKNOWN, found.findings
        assert "code-by-value" in {finding.rule for finding in found.findings}


def test_allowing_names():
    data = malicious.call("some.package", "Thing")
    name = tools.scan(data).globals[0].module
    assert tools.scan(data).verdict is Verdict.UNKNOWN
    assert tools.scan(data, allow=[f"{name}.*"]).verdict is Verdict.OK
    assert tools.scan(malicious.SYSTEM, allow=["*"]).verdict is Verdict.DANGEROUS


def test_what_cannot_be_looked_into_is_not_ok(tmp_path):
    assert tools.scan(b"7z\xbc\xaf\x27\x1c" + b"\0" * 100).verdict is Verdict.UNKNOWN
    assert tools.scan(b"Rar!\x1a\x07\x01\x00" + b"\0" * 100).verdict is Verdict.UNKNOWN
    bomb = gzip.compress(b"\0" * 10_000_000)
    assert tools.scan(bomb, max_bytes=1_000_000).verdict is Verdict.UNKNOWN
    deep = malicious.SYSTEM
    for _ in range(10):
        deep = gzip.compress(deep)
    assert tools.scan(deep).verdict is Verdict.UNKNOWN
    assert tools.scan(b"\x80\x04]\x94(K\x01", name="x.pkl").verdict is Verdict.UNKNOWN
    truncated = gzip.compress(os.urandom(1000))[:8]
    assert tools.scan(truncated).verdict is Verdict.UNKNOWN


def test_files_that_are_no_pickles(tmp_path):
    texts = [
        b"",
        b"hello\n",
        b"# class\nimport os\nos.system('true')\n",
        b"class A:\n    pass\n",
        b"(a, b)\n",
        b"{}",
        b"\x00" * 1000,
    ]
    for number, content in enumerate(texts):
        found = tools.scan(content, name=f"{number}.txt")
        assert (found.verdict, found.pickles) == (Verdict.OK, 0), (content, found)
    source = [open(module.__file__, "rb").read() for module in (os, pickle, tarfile, zipfile)]
    assert all(tools.scan(content).verdict is Verdict.OK for content in source)
    rng = random.Random(5)
    assert all(tools.scan(rng.randbytes(200)).verdict is not Verdict.DANGEROUS for _ in range(3000))


def test_arrays_of_numpy_and_joblib(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "a.npz"
    numpy.savez_compressed(path, a=numpy.arange(1000.0), b=numpy.array(["x", None], dtype=object))
    assert tools.scan_file(path).verdict is Verdict.OK
    assert tools.scan_file(path).pickles == 1
    joblib = pytest.importorskip("joblib")
    value = {"a": numpy.arange(12.0).reshape(3, 4), "b": [numpy.zeros(3, "i4"), numpy.array([None, "x"])], "c": "end"}
    for compress in (0, 3, ("bz2", 3), ("xz", 1)):
        joblib.dump(value, tmp_path / "m.joblib", compress=compress)
        found = tools.scan_file(tmp_path / "m.joblib")
        assert (found.verdict, found.pickles) == (Verdict.OK, 1), found


def test_nothing_is_run_or_imported(tmp_path):
    """In a process whose audit hook ends it at the first import, call or file that a pickle asks for."""
    for number, data in enumerate(malicious.PICKLES.values()):
        (tmp_path / f"{number}.pkl").write_bytes(data)
    script = f"""
import glob, sys
from quickpickle import tools
tools.scan(b"N.")
data = [open(path, "rb").read() for path in glob.glob({str(tmp_path)!r} + "/*.pkl")]
def hook(event, arguments):
    if event.partition(".")[0] in ("import", "os", "exec", "subprocess", "open", "pickle", "socket"):
        raise SystemExit(event)
sys.addaudithook(hook)
for content in data:
    tools.scan(content)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_many_calls_stay_in_proportion():
    """Findings are counted, not listed again."""
    body = b"".join(malicious.text("a") + malicious.text("b") + b"\x93)R0" for _ in range(20_000))
    found = tools.scan(malicious.proto4(body + b"N"))
    assert [(finding.rule, finding.count) for finding in found.findings] == [("unknown-global", 1)]
    assert (found.globals[0].count, found.globals[0].calls) == (20_000, 20_000)


def test_sarif(tmp_path):
    scans = [tools.scan(malicious.SYSTEM, name="a b.pkl"), tools.scan(b"N.", name="ok.pkl")]
    document = json.loads(json.dumps(tools.sarif(scans, "1.0")))
    run = document["runs"][0]
    (result,) = run["results"]
    assert result["ruleId"] == "dangerous-global"
    assert result["level"] == "error"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "dangerous-global"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.pkl"


def run(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "quickpickle", "scan", *arguments], input=stdin, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_command_line(tmp_path):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([1]))
    (tmp_path / "b.pkl").write_bytes(malicious.call("some", "Thing"))
    code, out, err = run(str(tmp_path))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "2 files: 1 ok, 1 unknown"
    assert run(str(tmp_path), "--fail-on", "unknown")[0] == 1
    assert run(str(tmp_path), "--fail-on", "unknown", "--allow", "some.*")[0] == 0
    (tmp_path / "c.pkl").write_bytes(malicious.SYSTEM)
    code, out, _ = run(str(tmp_path), "--json")
    assert code == 1
    assert [file["verdict"] for file in json.loads(out)["files"]] == ["ok", "unknown", "dangerous"]
    code, out, _ = run("--sarif", "-", stdin=malicious.SYSTEM)
    assert (code, json.loads(out)["version"]) == (1, "2.1.0")
    code, out, err = run(str(tmp_path / "missing.pkl"))
    assert (code, "missing.pkl" in err) == (3, True)


def test_large_files_are_mapped(tmp_path):
    path = tmp_path / "large.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data/0", b"\0" * (70 << 20))
        archive.writestr("a/data.pkl", malicious.SYSTEM)
    assert tools.scan_file(path).verdict is Verdict.DANGEROUS


def test_golden_pickles_scan_to_their_end():
    for path in GOLDEN.glob("cpython_3*/*.pickle"):
        found = tools.scan(path.read_bytes())
        assert found.verdict is not Verdict.DANGEROUS
        assert found.pickles == 1


def test_mutated_pickles_never_raise():
    rng = random.Random(11)
    some = [*malicious.PICKLES.values(), *(data for _, data in malicious.files(malicious.SYSTEM).values())]
    for _ in range(3000):
        tools.scan(pickles.mutated(rng.choice(some), rng))
    with io.BytesIO() as out:
        out.write(b"PK\x03\x04")
        tools.scan(out.getvalue())
