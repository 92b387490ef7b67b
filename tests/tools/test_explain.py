"""Explanations: bytes add up, parts are where they are, functions by value are recognised, and nothing is run."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys

import pytest

import quickpickle
from quickpickle import tools
from tests.tools import malicious, pickles


def part(found: tools.Explanation, path: str, kind: str | None = None) -> tools.Part:
    return next(part for where, part in found.walk() if where == path and kind in (None, part.kind))


def test_records_are_one_part():
    records = [{"id": i, "name": f"name {i}", "blob": bytes([i % 256]) * 100} for i in range(5000)]
    data = pickle.dumps({"rows": records})
    found = tools.explain(data)
    assert found.bytes == len(data)
    rows = part(found, '["rows"][*]')
    assert (rows.kind, rows.count) == ("dict", 5000)
    assert part(found, '["rows"][*]["blob"]').kind == "bytes"
    assert part(found, '["rows"][*]["blob"]').count == 5000
    assert found.top(1)[0][0] == '["rows"][*]["blob"]'
    assert sum(1 for _ in found.walk()) < 15


def test_bytes_add_up():
    """No part has more than what holds it; what frames and the end take is all that is missing."""
    for data in pickles.sound():
        found = tools.explain(data)
        assert found.bytes == len(data)
        assert found.root.bytes <= len(data)
        for _, some in found.walk():
            assert some.own >= 0
            assert some.largest <= some.bytes


def test_nothing_is_lost():
    value = [{"k": (1, [b"abc" * 50, "x" * 300]), "s": {1.5, 2}}] * 1 + list(range(1000))
    for protocol in range(6):
        data = pickle.dumps(value, protocol)
        # PROTO, a frame or two, STOP.
        assert len(data) - tools.explain(data).root.bytes <= 2 + 2 * 9 + 1


def test_shared_and_duplicate_objects():
    shared = b"s" * 500
    equal = [list(range(100)) for _ in range(7)]
    found = tools.explain(pickle.dumps([shared, shared, shared, *equal]))
    assert ("bytes", 3) in {(one.kind, one.count) for one in found.shared}
    assert ("list", 7) in {(one.kind, one.count) for one in found.duplicates}
    assert found.duplicates[0].repeated_bytes > 6 * 200
    assert "bytes" not in {one.kind for one in found.duplicates}


def test_attributes_and_globals():
    import decimal

    found = tools.explain(pickle.dumps([decimal.Decimal("1.5"), ValueError("x")]))
    assert {named.name for named in found.globals} == {"Decimal", "ValueError"}
    assert "decimal" in found.modules
    assert next(named for named in found.globals if named.name == "Decimal").calls == 1


def test_functions_and_classes_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")
    weights = b"w" * 4000

    def predict(x):
        return weights, x

    class Model:
        def run(self):
            return predict

    found = tools.explain(cloudpickle.dumps([predict, Model(), Model()]))
    kinds = {some.kind.rpartition(".")[2] if "function" in some.kind else some.kind for some in found.by_value}
    assert any(kind.endswith("predict") for kind in kinds)
    assert any(kind.startswith("class Model") for kind in kinds)
    assert any(some.kind == "instance of Model" for _, some in found.walk())
    path, top = found.top(1)[0]
    assert top.own >= 4000
    assert '["__closure__"]' in path


def test_objects_are_pickled_first():
    assert quickpickle.explain({"a": [1, 2]}).root.kind == "dict"
    assert quickpickle.explain(lambda: 1).by_value
    assert quickpickle.explain(pickle.dumps((1, 2))).root.kind == "tuple"
    assert quickpickle.explain is tools.explain


def test_malformed_pickles():
    with pytest.raises(tools.MalformedPickle, match="byte 3"):
        tools.explain(b"N0N")
    rng = random.Random(3)
    some = [*pickles.sound()[:200], *malicious.PICKLES.values()]
    for _ in range(1500):
        try:
            tools.explain(pickles.mutated(rng.choice(some), rng))
        except tools.MalformedPickle:
            continue


def test_deep_and_wide_pickles_stay_small():
    deep = b"]" * 100_000 + b"a" * 99_999 + b"."
    found = tools.explain(deep)
    assert found.root.bytes == len(deep) - 1
    assert sum(1 for _ in found.walk()) < 100
    wide = pickle.dumps({f"key {i}": i for i in range(20_000)})
    assert sum(1 for _ in tools.explain(wide).walk()) < 500


def test_text_json_and_page(tmp_path):
    data = pickle.dumps({"</script><b>": ["x\x1b[31m", 1]})
    found = tools.explain(data)
    assert "\x1b" not in str(found)
    assert json.loads(json.dumps(found.to_dict()))["root"]["kind"] == "dict"
    page = found.html("<title>")
    assert "</script><b>" not in page
    assert page.count("<script>") == 1
    assert "http" not in page.replace("http-equiv", "")
    assert "&lt;title&gt;" in page
    assert found._repr_html_().startswith("<pre>")


def test_progress_can_stop_it():
    data = pickle.dumps([0] * 3_000_000)
    seen = []
    tools.explain(data, progress=seen.append)
    assert seen == sorted(seen)
    assert seen

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tools.explain(data, progress=stop)


def test_the_command_line(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"rows": [{"a": i} for i in range(100)]}) + b"tail")

    def run(*arguments):
        command = [sys.executable, "-m", "quickpickle", "explain", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(str(path))
    assert done.returncode == 0
    assert '|- ["rows"] list' in done.stdout
    assert "4 more bytes" in done.stderr
    assert json.loads(run("--json", str(path)).stdout)["objects"] > 100
    assert run("--html", str(tmp_path / "a.html"), str(path)).returncode == 0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert run(str(tmp_path / "a.html")).returncode == 1
