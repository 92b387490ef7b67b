"""Standing in for cloudpickle and pickle in a process: what changes, that it is visible, and that it is undone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import child

pytest.importorskip("cloudpickle")


def test_modules_imported_before_and_after() -> None:
    child.check("""
    import functools, types
    import cloudpickle as before
    from cloudpickle import dumps as before_dumps, CloudPickler as BeforePickler
    from cloudpickle.cloudpickle import _make_cell as before_make
    partial = functools.partial(before.dumps, protocol=4)
    stock = (before, before_dumps, BeforePickler, before_make)
    user = types.ModuleType("user")
    user.cloudpickle, user.dumps, user.kept = before, before.dumps, {"dumps": before.dumps}
    sys.modules["user"] = user

    assert not P.status()
    layer = P.install()
    assert P.status() and P.status().cloudpickle and not P.status().pickle
    assert "user.dumps" in P.status().rebound and "user.dumps" in layer.rebound
    import cloudpickle, cloudpickle.cloudpickle as inner, cloudpickle.cloudpickle_fast as fast
    from cloudpickle import cloudpickle as inner_too
    import quickpickle.cloudpickle as ours
    assert inner is inner_too and before is cloudpickle is user.cloudpickle
    for module in (cloudpickle, inner, fast, user):
        assert module.dumps is ours.dumps
    assert before_dumps is ours.dumps and BeforePickler is ours.CloudPickler and partial.func is ours.dumps
    assert isinstance(before_make, type(inner._make_function)) and inner._make_cell(5).cell_contents == 5
    assert user.kept["dumps"] is stock[1]  # what is inside of objects is left alone
    assert pickle.loads(cloudpickle.dumps(lambda x: x + 1))(1) == 2

    P.uninstall()
    assert not P.status() and P.status().rebound == ()
    assert (before, before_dumps, BeforePickler, before_make) == stock
    assert (user.cloudpickle, user.dumps) == stock[:2] and partial.func is stock[1]
    assert sys.modules["cloudpickle"] is stock[0] and cloudpickle is stock[0]
    assert sys.modules["cloudpickle.cloudpickle"].__file__.endswith("cloudpickle.py")
    P.uninstall()
    """)


def test_where_cloudpickle_was_not_imported() -> None:
    child.check("""
    with P.install():
        import cloudpickle
        assert getattr(cloudpickle, '__standing_in__', 'no') == "quickpickle" and cloudpickle.__version__.startswith("3.1")
        assert "dumps" in dir(cloudpickle) and not hasattr(cloudpickle, "no_such_name")
        exec("from cloudpickle import *", scope := {})
        assert scope["dumps"] is cloudpickle.dumps
    assert "cloudpickle" in sys.modules  # the name here is given the real one again
    assert cloudpickle.__file__
    import cloudpickle as again
    assert again is cloudpickle
    """)


def test_pickle_and_multiprocessing() -> None:
    child.check("""
    import multiprocessing.reduction as reduction
    from pickle import dumps, Pickler
    stock = (pickle.dumps, pickle.loads, pickle.Pickler, pickle.Unpickler, reduction.ForkingPickler)
    class Odd:
        pass
    reduction.ForkingPickler.register(Odd, lambda odd: (str, ("odd",)))
    with P.install(cloudpickle=False, pickle=True) as layer:
        status = P.status()
        assert status.pickle and not status.cloudpickle
        assert pickle.dumps is P.dumps is dumps and Pickler is P.Pickler and pickle.Unpickler is P.Unpickler
        forking = reduction.ForkingPickler
        assert issubclass(forking, P.Pickler)
        assert pickle.loads(forking.dumps([Odd(), 5])) == ["odd", 5] == forking.loads(forking.dumps([Odd(), 5]))
        class Other:
            pass
        forking.register(Other, lambda other: (str, ("other",)))
        connection = __import__("multiprocessing").Pipe()
        connection[0].send({"a": Other()})
        assert connection[1].recv() == {"a": "other"}
    assert (pickle.dumps, pickle.loads, pickle.Pickler, pickle.Unpickler, reduction.ForkingPickler) == stock
    assert dumps is pickle.dumps and Pickler is pickle.Pickler
    # What was registered meanwhile stays registered.
    assert pickle.loads(reduction.ForkingPickler.dumps(Other())) == "other"
    """)


def test_layers_are_undone_in_order() -> None:
    child.check("""
    import cloudpickle
    stock = cloudpickle, pickle.dumps
    with P.install() as outer:
        assert not P.status().pickle
        with P.install(pickle=True):
            assert P.status().pickle and P.status().cloudpickle
        assert not P.status().pickle and P.status().cloudpickle
        inner = P.install(pickle=True)
    assert not P.status()
    inner.uninstall()
    outer.uninstall()
    assert (cloudpickle, pickle.dumps) == stock
    """)


def test_names_that_others_have_changed_meanwhile_are_left_to_them() -> None:
    child.check("""
    import cloudpickle
    from cloudpickle import dumps
    with P.install():
        dumps = "changed"
    assert dumps == "changed" and cloudpickle.__file__
    """)


def test_children() -> None:
    child.check("""
    import os, subprocess
    ask = "import cloudpickle, pickle, quickpickle; print(getattr(cloudpickle, '__standing_in__', 'no'), pickle.dumps is quickpickle.dumps)"
    def asked():
        return subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    environment = dict(os.environ)
    assert asked() == ["no", "False"]
    with P.install(children=True):
        assert P.status().children
        assert asked() == ["quickpickle", "False"]
    with P.install(pickle=True, children=True):
        assert asked() == ["quickpickle", "True"]
    assert not P.status().children and dict(os.environ) == environment
    """)


def test_a_sitecustomize_of_the_users_own_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.was_here = True\n")
    child.check(f"""
    import os, subprocess
    os.environ["PYTHONPATH"] = os.pathsep.join([{str(tmp_path)!r}, os.environ.get("PYTHONPATH", "")])
    ask = "import sys, cloudpickle; print(sys.was_here, getattr(cloudpickle, '__standing_in__', 'no'))"
    with P.install(children=True):
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "quickpickle"], done
    """)


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quickpickle", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)


def test_run_a_script(tmp_path: Path) -> None:
    """As python itself would run it, but for what cloudpickle is."""
    (tmp_path / "beside.py").write_text("value = 5\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, pickle, quickpickle, cloudpickle, beside, __main__\n"
        "assert __name__ == '__main__' and __main__.beside is beside and __file__ == sys.argv[0]\n"
        "assert __package__ is None and __spec__ is None\n"
        "f = cloudpickle.loads(cloudpickle.dumps(lambda x: x + beside.value))\n"
        "print(sys.argv[1:], f(1), bool(quickpickle.status()), quickpickle.status().pickle)\n"
        "sys.exit(7)\n"
    )
    done = run(str(script), "--pickle", "-x", "a b", folder=tmp_path)
    assert (done.returncode, done.stdout) == (7, "['--pickle', '-x', 'a b'] 6 True False\n"), done.stderr
    done = run("--pickle", "script.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (7, "[] 6 True True\n"), done.stderr


def test_run_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "job.py").write_text(
        "from . import other\nimport sys\nprint(__name__, other.x, sys.argv[1:])\n"
    )
    (tmp_path / "package" / "other.py").write_text("x = 3\n")
    done = run("-m", "package.job", "-m", "arg", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ 3 ['-m', 'arg']\n"), done.stderr


def test_run_what_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def f():\n    raise ValueError('from the script')\nf()\n")
    done = run(str(script), folder=tmp_path)
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == plain.returncode == 1
    assert done.stderr == plain.stderr
    script.write_text("import sys; sys.exit('a message')")
    done = run(str(script), folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "a message\n")
    script.write_text("this is no Python")
    done = run(str(script), folder=tmp_path)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    done = run("no_such_script.py", folder=tmp_path)
    assert done.returncode == 2
    assert "no_such_script.py" in done.stderr
    done = run("-m", "no_such_module", folder=tmp_path)
    assert done.returncode == 2
