"""``quickpickle recovery`` on stores that are on a ZooKeeper server, and moving to one and back."""

import json

from quickpickle import recovery
from quickpickle.cli import main


def test_a_log_moves_to_zookeeper_and_back(zookeeper, tmp_path, capsys):
    log, back = tmp_path / "log", tmp_path / "back"
    url = f"zookeeper://{zookeeper.address}/moved"
    with recovery.open(log) as store:
        store.update({f"worker_{number}": {"cores": number} for number in range(700)})
        store["large"] = b"x" * 2_000_000
    assert main(["recovery", "copy", str(log), url, "--compress", "lz4"]) == 0
    assert "701 entries copied and compared" in capsys.readouterr().out
    assert main(["recovery", "inspect", "--json", url]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stats"]["engine"] == "zookeeper"
    assert found["kinds"][0] == {
        "prefix": "worker_",
        "codec": "pickle",
        "entries": 700,
        "bytes": found["kinds"][0]["bytes"],
    }
    for action in ("verify", "repair", "compact"):
        # The copy has gone, but its session may live a little longer.
        wait = [] if action == "verify" else ["--wait", "30"]
        assert main(["recovery", action, url, *wait]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["recovery", "copy", url, f"file:{back}"]) == 0
    with recovery.open(log) as first, recovery.open(back) as second:
        assert list(first.entries()) == list(second.entries())


def test_there_is_no_store(zookeeper, capsys):
    assert main(["recovery", "verify", f"zookeeper://{zookeeper.address}/nothing"]) == 3
    assert "there is no store here" in capsys.readouterr().err


def test_nobody_answers(capsys):
    assert main(["recovery", "verify", "zookeeper://127.0.0.1:1/x", "--timeout", "0.3"]) == 3
    err = capsys.readouterr().err
    assert "no answer within 300 ms" in err
    assert err.endswith("are the servers running, and is the address right?\n")
