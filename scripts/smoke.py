"""Try out an installed quickpickle, with nothing else installed: exit 0 if it does its work.

Run after each wheel is built, in a clean environment, so it uses the standard library alone. This
is no test suite: it asks whether the right binary arrived whole.
"""

import collections
import datetime
import decimal
import importlib.metadata
import importlib.resources
import io
import pickle
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import quickpickle
from quickpickle import recovery

SAMPLES = [
    None,
    [True, False, 0, -1, 255, 256, 65_536, 2**31, -(2**70), 1.5],
    ["", "text", "snow \u2603", "\U0001f40d", b"", b"bytes" * 100, bytearray(b"array")],
    [(), (1,), (1, 2, 3, 4), {1, 2}, frozenset("a"), {"key": [{"nested": None}]}],
    [datetime.datetime(2024, 2, 29, 12, 30), decimal.Decimal("1.10"), range(3), complex(1, 2)],
    [collections.OrderedDict(a=1), collections.deque([1, 2]), len, collections.Counter],
    {index: (index, str(index)) for index in range(3_000)},
    [b"x" * 70_000, "y" * 70_000],
]


def check_samples() -> None:
    """Same bytes in every protocol, and both modules read them back."""
    shared = ["shared"]
    cyclic: list[object] = [shared, shared]
    cyclic.append(cyclic)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for sample in SAMPLES:
            written = quickpickle.dumps(sample, protocol)
            assert written == pickle.dumps(sample, protocol), (protocol, sample)
            assert quickpickle.loads(written) == pickle.loads(written) == sample
            file = io.BytesIO()
            quickpickle.dump(sample, file, protocol)
            file.seek(0)
            assert quickpickle.load(file) == sample
        written = quickpickle.dumps(cyclic, protocol)
        assert written == pickle.dumps(cyclic, protocol)
        loaded = quickpickle.loads(written)
        assert loaded[2] is loaded
        assert loaded[0] is loaded[1]


def check_buffers() -> None:
    """Buffers stay out of the pickle and come back as the same object."""
    data = bytearray(b"0123456789" * 1_000)
    buffers: list[pickle.PickleBuffer] = []
    written = quickpickle.dumps(pickle.PickleBuffer(data), 5, buffer_callback=buffers.append)
    assert len(written) < 100
    assert quickpickle.loads(written, buffers=buffers) is buffers[0]


def check_errors() -> None:
    """Failures are pickle's own exceptions."""
    for call in (
        lambda: quickpickle.dumps(lambda: None),
        lambda: quickpickle.loads(b"not a pickle"),
    ):
        try:
            call()
        except (pickle.PickleError, AttributeError):
            continue
        raise AssertionError("no error")


def check_recovery() -> None:
    """A store survives its closing, and the command sees it."""
    with tempfile.TemporaryDirectory() as folder:
        with recovery.open(folder) as store:
            store["worker_1"] = SAMPLES[4]
        with recovery.open(folder, strict=True) as store:
            assert dict(store) == {"worker_1": SAMPLES[4]}
        script = Path(sysconfig.get_path("scripts")) / "quickpickle"
        for command in ([str(script)], [sys.executable, "-m", "quickpickle"]):
            done = subprocess.run([*command, "recovery", "verify", folder], capture_output=True, text=True, check=True)
            assert "sound: 1 entry" in done.stdout, done.stdout
    try:
        recovery.open("zookeeper://127.0.0.1:1/x", operation_timeout=0.1)
    except recovery.UnavailableError:
        return
    raise AssertionError("ZooKeeper answers where nobody is")


def check_package() -> None:
    """The files around the module are there, and agree on the version."""
    assert importlib.metadata.version("quickpickle") == quickpickle.__version__
    assert importlib.resources.files("quickpickle").joinpath("py.typed").is_file()
    assert importlib.resources.files("quickpickle").joinpath("_native.pyi").is_file()


def main() -> None:
    """Run all checks."""
    check_samples()
    check_buffers()
    check_errors()
    check_recovery()
    check_package()
    print(f"quickpickle {quickpickle.__version__} works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
