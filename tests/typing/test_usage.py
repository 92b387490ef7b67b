"""A program that uses everything, as typed code would: mypy accepts it, and it runs.

``assert_type`` states what a checker must infer; at run time it returns its argument.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import quickpickle
from quickpickle import recovery

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, _):
        return value


def test_functions() -> None:
    data = assert_type(quickpickle.dumps({"a": 1}), bytes)
    assert_type(quickpickle.loads(data), Any)
    quickpickle.loads(memoryview(data), encoding="latin-1", errors="replace", fix_imports=False)
    quickpickle.loads(bytearray(data))
    file = io.BytesIO()
    quickpickle.dump([1], file, protocol=-1, fix_imports=True)
    file.seek(0)
    assert quickpickle.load(file, buffers=None) == [1]
    assert quickpickle.HIGHEST_PROTOCOL >= quickpickle.DEFAULT_PROTOCOL
    assert_type(quickpickle.__version__, str)


def test_buffers() -> None:
    buffers: list[quickpickle.PickleBuffer] = []
    source = bytearray(b"data")
    data = quickpickle.dumps(quickpickle.PickleBuffer(source), 5, buffer_callback=buffers.append)
    assert quickpickle.loads(data, buffers=buffers) is buffers[0]


def test_exceptions_are_the_standard_ones() -> None:
    with pytest.raises(quickpickle.UnpicklingError) as caught:
        quickpickle.loads(b"\x80\x04K\x01\x94h\x05.")
    assert_type(caught.value, pickle.UnpicklingError)


class Reference:
    """Something kept outside pickles."""

    def __init__(self, key: str) -> None:
        self.key = key


class ReferencePickler(quickpickle.Pickler):
    """Writes references by key."""

    def persistent_id(self, obj: Any) -> str | None:
        return obj.key if isinstance(obj, Reference) else None

    def reducer_override(self, obj: Any) -> Any:
        return (str, ("a function",)) if obj is reference_key else NotImplemented


class ReferenceUnpickler(quickpickle.Unpickler):
    """Finds references again, and refuses to import anything but str."""

    def persistent_load(self, pid: Any) -> Reference:
        return Reference(pid)

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) != ("builtins", "str"):
            raise quickpickle.UnpicklingError(f"{module_name}.{global_name} is not allowed")
        return super().find_class(module_name, global_name)


def reference_key(reference: Reference) -> str:
    return reference.key


def test_subclasses() -> None:
    file = io.BytesIO()
    pickler = ReferencePickler(file, protocol=4)
    pickler.dump([Reference("k"), reference_key])
    assert_type(pickler.bin, bool)
    pickler.memo.copy()
    pickler.clear_memo()
    pickler.memo = {}
    pickler.fast = False
    file.seek(0)
    unpickler = ReferenceUnpickler(file, encoding="ASCII")
    reference, text = unpickler.load()
    assert reference_key(reference) == "k"
    assert text == "a function"
    unpickler.memo = dict(unpickler.memo.copy())


def test_recovery(tmp_path: Path) -> None:
    with recovery.open(tmp_path, sync="group(5)", compression="zstd", wait=1.5) as store:
        assert_type(store, recovery.Store)
        store["a"] = object
        assert_type(store["a"], Any)
        store.update({"b": 1}, c=2)
        assert [assert_type(name, str) for name in store.keys("b")] == ["b"]
        for name, value in store.items("c"):
            assert_type(name, str)
            assert_type(value, Any)
        assert assert_type(store.stats(), recovery.Stats).entries == 3
        assert assert_type(store.verify(), recovery.Report).is_sound
        assert assert_type(store.compact(), recovery.Compaction).entries == 3
        assert_type([entry.value for entry in store.entries()], list[bytes])

    class Text:
        def dumps(self, obj: Any, /) -> bytes:
            return repr(obj).encode()

        def loads(self, data: bytes, /) -> str:
            return data.decode()

    with recovery.open(f"file:{tmp_path / 'other'}", serializer=Text(), readers=["pickle", pickle]) as store:
        store["a"] = 1
        assert store["a"] == "1"
    try:
        recovery.open(tmp_path / "other", engine="log")
    except recovery.VersionError as error:
        assert_type(error.place, str)
