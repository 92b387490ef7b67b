"""``quickpickle recovery``: what each action prints, changes and ends with."""

import json
import os
import pty
import subprocess
import sys

import pytest

from quickpickle import recovery
from quickpickle.cli import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run an action; the exit code, and what it printed with places and ids made the same everywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run_it(*arguments):
        code = main(["recovery", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run_it


@pytest.fixture
def store(tmp_path):
    """A log of three kinds of entries, closed in good order."""
    place = tmp_path / "store"
    with recovery.open(place, serializer="bytes") as opened:
        opened.update({f"worker_{number:02}": b"w" * 100 for number in range(12)})
    with recovery.open(place, serializer="json") as opened:
        opened["app_1"] = {"name": "it"}
    with recovery.open(place) as opened:
        opened["driver_1"] = [1, 2]
        opened["odd\x1b[31m\nname"] = None
        del opened["worker_00"]
    return place


def damage(place):
    """Flip a byte in the middle of a record and return where."""
    (segment,) = place.glob("*.qlog")
    data = bytearray(segment.read_bytes())
    at = data.index(b"worker_05") + 50
    data[at] ^= 1
    segment.write_bytes(data)
    return at


def stats_of(place):
    with recovery.open(place, read_only=True) as opened:
        return opened.stats()


def test_inspect(run, store):
    code, out, err = run("inspect", "store")
    assert (code, err) == (0, "")
    assert out.replace(stats_of(store).store_id, "ID") == (
        "engine    log\n"
        "location  store\n"
        "store id  ID\n"
        "format    1\n"
        "entries   14\n"
        "alive     1.8 KiB\n"
        "on disk   2.2 KiB in 1 file\n"
        "\n"
        "store: sound: 14 entries in 19 good records, 2.2 KiB read\n"
        "\n"
        "names begin with  codec   entries   values\n"
        "worker_           raw          11  1.1 KiB\n"
        "app_              json          1     13 B\n"
        "driver_           pickle        1     20 B\n"
        "odd\\x1b           pickle        1      4 B\n"
    )


def test_inspect_entries(run, store):
    code, out, _ = run("inspect", "store", "--entries", "--prefix", "o")
    assert code == 0
    assert out.endswith("\n\nname               codec   bytes\nodd\\x1b[31m\\nname  pickle      4\n")
    code, out, _ = run("inspect", "store", "--entries", "--prefix", "worker_1")
    assert out.endswith("\n\nname       codec  bytes\nworker_10  raw      100\nworker_11  raw      100\n")


def test_inspect_json(run, store):
    code, out, _ = run("inspect", "--json", "--entries", "store")
    found = json.loads(out)
    assert code == 0
    assert found["stats"]["entries"] == 14
    assert found["stats"]["engine"] == "log"
    assert found["report"]["is_sound"] is True
    assert found["kinds"][0] == {"prefix": "worker_", "codec": "raw", "entries": 11, "bytes": 1100}
    assert {entry["name"] for entry in found["entries"]} >= {"app_1", "odd\x1b[31m\nname"}
    assert "entries" not in json.loads(run("inspect", "--json", "store")[1])


def test_inspecting_loads_no_pickle_and_takes_no_lock(run, tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    with recovery.open(tmp_path / "store") as opened:
        opened["trap_1"] = Trap()
        for action in (("inspect", "--entries"), ("verify", "--values"), ("copy", "store", "other")):
            arguments = action if action[0] == "copy" else (*action, "store")
            assert run(*arguments)[0] == 0
        assert not (tmp_path / "sprung").exists()
        assert stats_of(tmp_path / "other").entries == 1


def test_verify(run, store):
    assert run("verify", "store") == (0, "store: sound: 14 entries in 19 good records, 2.2 KiB read\n", "")
    assert run("verify", "--values", "store")[0] == 0
    at = damage(store)
    code, out, err = run("verify", "store")
    assert code == 1
    lines = out.splitlines()
    assert lines[:2] == ["store: damaged: 13 entries in 18 good records, 2.2 KiB read", "1 record is missing"]
    assert lines[3].split() == ["damaged", "at", "byte", "bytes", "what", "is", "wrong"]
    segment, offset, length, reason = lines[4].split(maxsplit=3)
    assert segment == "00000000000000000001.qlog"
    assert int(offset) <= at < int(offset) + int(length)
    assert reason == "the checksum of a name or value does not match"
    assert err == "'quickpickle recovery repair store' says what can be done about it\n"


def test_verify_json(run, store):
    damage(store)
    code, out, _ = run("verify", "--json", "--values", "store")
    found = json.loads(out)
    assert code == 1
    assert found["store"] == "store"
    assert found["report"]["is_sound"] is False
    assert len(found["report"]["damage"]) == found["report"]["missing_records"] == 1
    assert found["unreadable_values"] == []


def test_verify_finds_values_that_do_not_decompress(run, store):
    with recovery.open(store) as opened:
        opened.engine.persist("packed", 0x0100, b"not lz4")
    assert run("verify", "store")[0] == 0
    code, out, _ = run("verify", "--values", "store")
    assert code == 1
    assert "1 value cannot be read:\n" in out
    assert "lz4" in out


def test_a_torn_tail_is_reported_and_no_damage(run, store):
    (segment,) = store.glob("*.qlog")
    with segment.open("ab") as file:
        file.write(b"half a record")
    code, out, _ = run("verify", "store")
    assert code == 0
    assert "13 B of an incomplete last write, never acknowledged as durable; opening drops them\n" in out
    code, out, _ = run("repair", "--yes", "store")
    assert code == 0
    assert "  - cut off 13 B of an incomplete last write\n" in out
    assert "incomplete" not in run("verify", "store")[1]


def test_repair_explains_and_asks_nobody_where_nobody_is(run, store):
    damage(store)
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    code, out, err = run("repair", "store")
    assert code == 3
    assert (
        "repairing would:\n"
        "  - put 1 damaged stretch (152 B) into quarantine\n"
        "  - keep 13 entries, written anew where the engine needs it\n"
        "  - accept that 1 record is missing: an entry may be gone or have an older value, a removed one may be back\n"
    ) in out
    assert "nothing was done: there is nobody to ask\ngive --yes" in err
    assert run("repair", "--dry-run", "store")[0] == 1
    assert {path.name: path.read_bytes() for path in store.iterdir()} == before


def test_repair_keeps_what_is_damaged(run, store):
    damage(store)
    (segment,) = store.glob("*.qlog")
    damaged = segment.read_bytes()
    code, out, _ = run("repair", "--yes", "store")
    assert code == 0
    (kept,) = (store / "quarantine").iterdir()
    assert kept.read_bytes() in damaged
    assert b"worker_05" in kept.read_bytes()
    assert f"kept 152 B in store/quarantine/{kept.name}\n" in out
    assert out.endswith("store: sound: 13 entries in 14 good records, 1.9 KiB read\n")
    assert run("repair", "store")[:2] == (
        0,
        "store: sound: 13 entries in 14 good records, 1.9 KiB read\n\nthere is nothing to repair\n",
    )


def test_repair_json(run, store):
    damage(store)
    code, out, _ = run("repair", "--json", "--dry-run", "store")
    found = json.loads(out)
    assert (code, found["repaired"], len(found["plan"])) == (1, False, 3)
    code, out, _ = run("repair", "--json", "--yes", "store")
    found = json.loads(out)
    assert (code, found["repaired"], found["after"]["is_sound"]) == (0, True, True)
    assert found["done"]["damage"][0]["quarantined_to"].startswith("store/quarantine/")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_repair_asks_on_a_terminal(store, answer, code):
    damage(store)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "quickpickle", "recovery", "repair", str(store)]
    child = subprocess.Popen(command, stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.write(leader, f"{answer}\n".encode())
    out, err = child.communicate(timeout=60)
    os.close(leader)
    os.close(follower)
    assert child.returncode == code
    assert "repairing would:" in out
    assert "Do it? [y/N]" in err
    assert (store / "quarantine").exists() == (answer == "y")


def test_compact(run, store):
    with recovery.open(store) as opened:
        for _ in range(50):
            opened["worker_01"] = b"x" * 200
    code, out, _ = run("compact", "store")
    assert code == 0
    assert out == "15.1 KiB before, 2.1 KiB now, 14 entries kept\n"
    code, out, _ = run("compact", "--json", "store")
    found = json.loads(out)
    assert found["entries"] == 14
    assert found["bytes_after"] <= found["bytes_before"]
    assert run("verify", "store")[0] == 0


def test_compacting_a_damaged_store_is_refused(run, store):
    damage(store)
    code, out, err = run("compact", "store")
    assert (code, out) == (3, "")
    assert "strict mode refuses a damaged store" in err


def test_copy_between_engines_and_back(run, store, tmp_path):
    code, out, err = run("copy", "log:store", "file:files")
    assert (code, out, err) == (0, "14 entries copied and compared, 1.1 KiB of values\n", "")
    assert stats_of(tmp_path / "files").engine == "file_system"
    code, out, _ = run("copy", "--json", "--compress", "zstd", "files", "back")
    assert code == 0
    assert json.loads(out) == {
        "source": "files",
        "destination": "back",
        "entries": 14,
        "bytes": 1137,
        "source_is_sound": True,
    }
    with recovery.open(store, serializer="bytes") as first, recovery.open(tmp_path / "back") as second:
        assert list(first.entries()) == list(second.entries())
        assert second.stats().live_bytes < first.stats().live_bytes


def test_copy_does_not_mix_stores_unasked(run, store, tmp_path):
    with recovery.open(tmp_path / "other", serializer="bytes") as opened:
        opened["worker_01"] = b"older"
        opened["own"] = b"kept"
    code, _, err = run("copy", "store", "other")
    assert code == 3
    assert "other holds 2 entries already\ngive --merge" in err
    assert run("copy", "--merge", "--prefix", "worker_", "store", "other")[0] == 0
    with recovery.open(tmp_path / "other", serializer="bytes") as opened:
        assert len(opened) == 12
        assert opened["worker_01"] == b"w" * 100
        assert opened["own"] == b"kept"


def test_copying_a_damaged_store_saves_the_rest_and_says_so(run, store, tmp_path):
    damage(store)
    code, out, err = run("copy", "store", "rescued")
    assert code == 1
    assert out.startswith("13 entries copied")
    assert "store is damaged; what can be read of it is copied" in err
    assert stats_of(tmp_path / "rescued").entries == 13


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("inspect", "nowhere"), 3, "nowhere: cannot list the directory: No such file"),
        (("inspect", "empty"), 3, "empty: there is no store here"),
        (("compact", "empty"), 3, "empty: there is no store here"),
        (("inspect", "ftp://x"), 2, "ftp: is not known"),
        (("inspect",), 2, "the following arguments are required: STORE"),
        (("inspect", "log:store", "--jso"), 2, "unrecognized arguments: --jso"),
        ((), 2, "the following arguments are required: ACTION"),
        (("explode", "store"), 2, "invalid choice: 'explode'"),
        (("repair", "--yes", "--dry-run", "store"), 2, "not allowed with"),
        (("copy", "store", "zookeeper:"), 2, "names no server"),
    ],
)
def test_what_cannot_be_done(run, store, tmp_path, arguments, code, message):
    (tmp_path / "empty").mkdir()
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err


def test_a_store_in_use(run, store):
    with recovery.open(store):
        assert run("verify", "store")[0] == 0
        code, _, err = run("compact", "store", "--wait", "0.1")
        assert code == 3
        assert err.endswith("stop the process that holds it, or give --wait SECONDS\n")
    assert run("compact", "store")[0] == 0


def test_progress_is_drawn_on_terminals_only(store, tmp_path):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "quickpickle", "recovery", "copy", str(store), str(tmp_path / "copy")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, text=True)
    assert child.communicate(timeout=60)[0] == "14 entries copied and compared, 1.1 KiB of values\n"
    os.close(follower)
    drawn = os.read(leader, 10_000).decode()
    os.close(leader)
    assert "[########" in drawn
    assert "100% entries compared" in drawn
    assert drawn.endswith("\r")


@pytest.fixture
def jar(tmp_path):
    """Where a jar and its library are; spark-conf only looks whether they are there."""
    folder = tmp_path / "jars and more"
    folder.mkdir()
    (folder / "libquickpickle_jni.so").touch()
    (folder / "q.jar").touch()
    return folder / "q.jar"


FACTORY = "io.quickpickle.recovery.QuickpickleRecoveryModeFactory"


def test_spark_conf_for_a_directory(run, jar, tmp_path):
    code, out, err = run("spark-conf", "state", "--jar", str(jar))
    assert (code, err) == (0, "")
    assert out == (
        f"# conf/spark-env.sh also needs: export SPARK_DAEMON_CLASSPATH='{jar}'\n"
        "spark.deploy.recoveryMode          CUSTOM\n"
        f"spark.deploy.recoveryMode.factory  {FACTORY}\n"
        f"spark.deploy.recoveryDirectory     {tmp_path}/state\n"
    )
    assert not (tmp_path / "state").exists()


def test_spark_conf_with_everything(run, jar, tmp_path):
    choices = ("--serializer", "kryo", "--sync", "group(20)", "--compress", "lz4", "--strict", "--on-failure", "retry")
    code, out, _ = run("spark-conf", "file:/a dir", "--jar", str(jar), *choices, "--json")
    assert code == 0
    assert json.loads(out) == {
        "classpath": str(jar),
        "properties": {
            "spark.deploy.recoveryMode": "CUSTOM",
            "spark.deploy.recoveryMode.factory": FACTORY,
            "spark.quickpickle.recovery.engine": "file_system",
            "spark.deploy.recoveryDirectory": "/a dir",
            "spark.quickpickle.recovery.serializer": "kryo",
            "spark.quickpickle.recovery.sync": "group(20)",
            "spark.quickpickle.recovery.compression": "lz4",
            "spark.quickpickle.recovery.strict": "true",
            "spark.quickpickle.recovery.onFailure": "retry",
        },
    }


def test_spark_conf_for_the_environment_survives_a_shell(run, jar):
    code, out, _ = run("spark-conf", "--env", "file:/a dir", "--jar", str(jar), "--sync", "group(5)")
    assert code == 0
    script = out + 'printf "%s|%s" "$SPARK_DAEMON_CLASSPATH" "$SPARK_DAEMON_JAVA_OPTS"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{jar}|-Dspark.deploy.recoveryMode=CUSTOM -Dspark.deploy.recoveryMode.factory={FACTORY} "
        '-Dspark.quickpickle.recovery.engine=file_system -Dspark.deploy.recoveryDirectory="/a dir" '
        "-Dspark.quickpickle.recovery.sync=group(5)"
    )


def test_spark_conf_for_zookeeper(run, jar):
    code, out, _ = run("spark-conf", "zookeeper://a:2181,b:2181/spark/one", "--jar", str(jar), "--json")
    assert code == 0
    assert {
        "spark.quickpickle.recovery.engine": "zookeeper",
        "spark.deploy.zookeeper.url": "a:2181,b:2181",
        "spark.deploy.zookeeper.dir": "/spark/one",
    }.items() <= json.loads(out)["properties"].items()
    assert "spark.deploy.zookeeper.dir" not in run("spark-conf", "zk:a:2181", "--jar", str(jar), "--json")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("x", "--jar", "nowhere.jar"), 3, "nowhere.jar: there is no such jar"),
        (("x", "--jar", "alone.jar"), 3, "libquickpickle_jni.so: the library the jar loads is not beside it"),
        (("zookeeper:", "--jar", "jars and more/q.jar"), 2, "names no server"),
        (("ftp://x", "--jar", "jars and more/q.jar"), 2, "ftp: is not known"),
        (("log:", "--jar", "jars and more/q.jar"), 2, "names no directory"),
        (("x", "--serializer", "xml"), 2, "invalid choice: 'xml'"),
    ],
)
def test_spark_conf_that_makes_no_sense(run, jar, tmp_path, arguments, code, message):
    (tmp_path / "alone.jar").touch()
    found, out, err = run("spark-conf", *arguments)
    assert (found, out) == (code, "")
    assert message in err
