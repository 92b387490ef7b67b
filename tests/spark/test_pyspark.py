"""What needs PySpark's modules but no session: bytes, errors, undoing, surprises, its own doctests, start-up."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.spark.conftest import Spark

pytestmark = pytest.mark.timeout(600)


def ok(spark: Spark, code: str) -> str:
    done = spark.run("-c", code)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_same_bytes_as_the_bundled_cloudpickle(spark: Spark) -> None:
    """PySpark's copy keeps the names of files in code objects, and is asked for by its own name."""
    told = ok(
        spark,
        """
import io, json, pickle
import quickpickle.cloudpickle
from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from tests.cloudpickle.cases import SAME, current
count, different = 0, {}
for name, case in current(SAME).items():
    value = case.make()
    CloudPickleSerializer().dumps(value)
    file = io.BytesIO()
    cloudpickle.CloudPickler(file, 5).dump(value)
    expected, found = file.getvalue(), CloudPickleSerializer().dumps(value)
    count += 1
    if found != expected:
        different[name] = [found.hex(), expected.hex()]
print(json.dumps([count, different]))
""",
    )
    count, different = json.loads(told)
    assert count > 20
    assert not different


def test_undone(spark: Spark) -> None:
    ok(
        spark,
        """
import pickle
import quickpickle.spark as ours
import pyspark, pyspark.cloudpickle as package, pyspark.cloudpickle.cloudpickle as inner
from pyspark.core.broadcast import Broadcast
from pyspark.serializers import CloudPickleSerializer, PickleSerializer
assert set(ours.status().parts.values()) <= {"quickpickle", "not imported yet"}, ours.status()
classes = CloudPickleSerializer, PickleSerializer, Broadcast
mine = [CloudPickleSerializer.dumps, package.dumps, inner.dumps, package.loads, Broadcast.load]
assert package.dumps is inner.dumps and package.loads is inner.loads is not pickle.loads
# By reference, under names that a process without quickpickle has.
for function in mine:
    assert b"quickpickle" not in CloudPickleSerializer().dumps(function), function
    assert pickle.loads(CloudPickleSerializer().dumps(function)) is function
package.register_pickle_by_value(colorsys := __import__("colorsys"))
assert b"_make_function" in CloudPickleSerializer().dumps(colorsys.rgb_to_hls)
ours.uninstall()
assert package.loads is inner.loads is pickle.loads
assert classes == (CloudPickleSerializer, PickleSerializer, Broadcast)
for function in mine:
    assert function not in (CloudPickleSerializer.dumps, package.dumps, Broadcast.load)
assert CloudPickleSerializer.dumps.__code__.co_filename.endswith("pyspark/serializers.py")
ours.install()
assert set(ours.status().parts.values()) <= {"quickpickle", "not imported yet"}, ours.status()
package.unregister_pickle_by_value(colorsys)
assert b"_make_function" not in CloudPickleSerializer().dumps(colorsys.rgb_to_hls)
""",
    )


def test_restricted_names_stay_restricted(spark: Spark) -> None:
    ok(
        spark,
        """
import collections, pickle
from pyspark.serializers import CloudPickleSerializer
free = CloudPickleSerializer()
# What the JVM sends with protocol 2 and 8-bit strings.
assert free.loads(b"\\x80\\x02U\\x02\\xe9a.") == b"\\xe9a"
# Restored by pickle, without __init__, as when it was sent by a driver of another version.
assert pickle.loads(pickle.dumps(free)).loads(free.dumps({1: b"x"})) == {1: b"x"}
if not hasattr(CloudPickleSerializer, "allowed_names"):
    raise SystemExit(0)  # PySpark knows no restriction before 4.3
bound = CloudPickleSerializer(allowed_names=[("collections", "OrderedDict")])
assert bound.loads(free.dumps(collections.OrderedDict(a=1))) == {"a": 1}
for forbidden in (collections.Counter(), print, lambda: 1):
    try:
        bound.loads(free.dumps(forbidden))
    except pickle.UnpicklingError as error:
        assert "is not allowed" in str(error)
    else:
        raise AssertionError(forbidden)
""",
    )


def test_changed_methods_stay_pysparks_own(spark: Spark) -> None:
    told = ok(
        spark,
        """
import warnings
import quickpickle.spark as ours
import pyspark.serializers as s
ours.uninstall()
def loads(self, obj, encoding="bytes"):
    return ("changed", obj)
s.CloudPickleSerializer.loads = loads
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ours.install()
    ours.install()
assert [str(w.message) for w in caught if "CloudPickleSerializer.loads" in str(w.message)] and len(caught) == 1, caught
assert s.CloudPickleSerializer().loads(b"") == ("changed", b"")
parts = ours.status().parts
assert parts.pop("serializers.CloudPickleSerializer.loads").startswith("its code is not the one known here")
assert set(parts.values()) <= {"quickpickle", "not imported yet"}
ours.uninstall()
import pyspark.version
pyspark.version.__version__ = "9.9.9"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ours.install()
assert len(caught) == 1 and "9.9.9" in str(caught[0].message), caught
assert s.CloudPickleSerializer.dumps.__code__.co_filename.endswith("pyspark/serializers.py")
ours.uninstall()
# Warnings that are errors break nothing.
pyspark.version.__version__ = "9.9.8"
with warnings.catch_warnings():
    warnings.simplefilter("error")
    ours.install()
print("ended")
""",
    )
    assert told.strip() == "ended"


def test_a_start_that_fails_is_said_and_nothing_more(enabled: Path, tmp_path: Path) -> None:
    """An extension that does not load, such as one for another Python, or a package that is gone."""
    broken = tmp_path / "quickpickle"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('wrong architecture')\n")
    spark = Spark(enabled, enabled, tmp_path, {"PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "default"})
    code = "import pyspark; from pyspark.serializers import *; print(CloudPickleSerializer().dumps(1)[:2])"
    done = spark.run("-c", code)
    assert done.returncode == 0
    assert done.stdout == "b'\\x80\\x05'\n"
    assert done.stderr.count("wrong architecture") == 1, done.stderr
    spark.settings["PYTHONWARNINGS"] = "error::RuntimeWarning"
    assert spark.run("-c", code).returncode == 0


def test_nothing_is_imported_before_pyspark(spark: Spark) -> None:
    ok(
        spark,
        """
import sys
mine = {name for name in sys.modules if "quickpickle" in name}
assert mine == {"_quickpickle_spark_start"}, mine
import pyspark
assert "quickpickle._native" in sys.modules and "quickpickle.spark.checking" not in sys.modules
assert not [f for f in sys.meta_path if type(f).__name__ == "QuickpickleFinder"]
spec = sys.modules["pyspark.serializers"].__spec__
assert type(spec.loader).__module__.startswith(("importlib", "_frozen_importlib")), spec
import linecache, inspect
assert "def load_stream" in inspect.getsource(sys.modules["pyspark.serializers"])
""",
    )


def test_importable_namedtuples_are_left_alone(spark: Spark) -> None:
    """Subclasses of namedtuples keep their class, methods and size once PySpark is imported."""
    ok(
        spark,
        """
import collections, pickle
Before = collections.namedtuple("Before", "a b")
import pyspark, pyspark.serializers
class Pt(collections.namedtuple("Pt", "x y")):
    def norm(self):
        return self.x + self.y
After = collections.namedtuple("After", "a b")
import quickpickle
for dumps, loads in ((pickle.dumps, pickle.loads), (quickpickle.dumps, quickpickle.loads)):
    for value in (Pt(1, 2), Before(1, 2), After(1, 2)):
        blob = dumps(value)
        got = loads(blob)
        assert type(got) is type(value) and got == value and len(blob) < 80
    assert loads(dumps(Pt(1, 2))).norm() == 3
""",
    )


def test_pysparks_own_doctests(spark: Spark) -> None:
    """All pass, and as many are found as without us: doctest looks at where a function's globals are."""
    modules = ("serializers", "shuffle", "core.broadcast")
    head = f"""
import doctest, importlib
modules = [importlib.import_module("pyspark." + name) for name in {modules}]
print("FOUND", sum(len(test.examples) for module in modules for test in doctest.DocTestFinder().find(module)))
import quickpickle.spark
print("PARTS", set(quickpickle.spark.status().parts.values()))
"""
    run = """
from pyspark.sql import SparkSession
for module in modules:
    globs = dict(vars(module))
    if module.__name__ == "pyspark.core.broadcast":
        globs["spark"] = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    found = doctest.testmod(module, globs=globs)
    print("RAN", module.__name__, found.failed, found.attempted)
globs["spark"].stop()
"""
    done = spark.run("-c", head + run)
    assert done.returncode == 0, done.stderr[-3000:]
    spark.settings["QUICKPICKLE_SPARK"] = "0"
    stock = spark.run("-c", head)
    assert stock.returncode == 0, stock.stderr[-3000:]
    assert re.search("^PARTS .*'quickpickle'", done.stdout, re.M)
    assert "PARTS set()" in stock.stdout
    found = [re.findall(r"^FOUND (\d+)$", each.stdout, re.M)[0] for each in (done, stock)]
    assert found[0] == found[1]
    ran = re.findall(r"^RAN \S+ (\d+) (\d+)$", done.stdout, re.M)
    assert [failed for failed, _ in ran] == ["0"] * len(modules), done.stdout
    assert sum(int(attempted) for _, attempted in ran) == int(found[0])


def test_the_command(spark: Spark, tmp_path: Path) -> None:
    done = spark.run("-m", "quickpickle", "spark", "status", "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["enabled"]
    assert "quickpickle" in set(status["parts"].values()) <= {"quickpickle", "not imported yet"}
    done = spark.run("-m", "quickpickle", "spark", "enable", "--site", str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert "nowhere" in done.stderr


def test_disabling(enabled: Path, tmp_path: Path) -> None:
    """In an environment of its own; what is left behind without quickpickle says so and does no harm."""
    home = tmp_path / "env"
    subprocess.run([str(enabled), "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    spark = Spark(python, python, tmp_path, {"PYTHONWARNINGS": "default"})
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place, other = (Path(each.run("-c", ask).stdout.strip()) for each in (spark, Spark(enabled, enabled, tmp_path)))
    (place / "other.pth").write_text(f"{other}\n{(other / 'spark.pth').read_text()}")
    started = "import sys; print('_quickpickle_spark_start' in sys.modules)"
    assert spark.run("-c", started).stdout == "False\n"  # .pth files of such a folder are not run
    assert "enabled by" in spark.run("-m", "quickpickle", "spark", "enable").stdout
    assert spark.run("-c", started).stdout == "True\n"
    (place / "other.pth").unlink()
    assert spark.run("-c", f"{started}; print(1)").stdout == "True\n1\n"
    (place / "other.pth").write_text(f"{other}\n")
    assert spark.run("-m", "quickpickle", "spark", "disable").stdout.count("removed") == 2
    assert spark.run("-c", started).stdout == "False\n"
    assert "was not enabled" in spark.run("-m", "quickpickle", "spark", "disable").stdout


def test_state_values(spark: Spark) -> None:
    """Bytes, rows, warnings and errors of states, against PySpark's own code in this process."""
    spark.settings["QUICKPICKLE_SPARK"] = "0"
    spark.settings["PYTHONPATH"] = "."
    done = spark.run("tests/spark/state_values.py")
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_part_is_replaced_once_it_is_imported(spark: Spark) -> None:
    """Whichever supported PySpark this is; what is left out on purpose says so."""
    told = ok(
        spark,
        """
import importlib, json, warnings
warnings.simplefilter("error")
import pyspark
from quickpickle.spark import status, versions
known = versions.parts(pyspark.__version__)
for part in known:
    importlib.import_module(part.module)
parts = status().parts
assert list(parts) == [part.name for part in known]
print(json.dumps([[part.skip, parts[part.name]] for part in known]))
""",
    )
    states = json.loads(told)
    assert len(states) >= 6
    for skip, state in states:
        assert state == (skip or "quickpickle")
