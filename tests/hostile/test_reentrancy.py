"""Hooks that call back into the Pickler or Unpickler that is at work get a clear error, or the right result; never a crash.

User code runs in persistent_id, reducers, find_class, __setstate__, __hash__, __setitem__, append, write and read. Each of
these calls dump, load, memo, clear_memo or __init__ of the very object that is running it.
"""

from __future__ import annotations

import pytest

from tests import child

ACTIONS = {
    "dump": "live.dump([1, [2], {3: 4}])",
    "clear_memo": "live.clear_memo()",
    "memo.clear": "live.memo.clear()",
    "memo.copy": "live.memo.copy()",
    "memo = {}": "live.memo = {}",
    "memo = proxy": "live.memo = P.Pickler(io.BytesIO()).memo",
    "init": "live.__init__(io.BytesIO())",
    "dispatch_table": "live.dispatch_table = {}",
    "fast": "live.fast = not live.fast",
    "bin": "live.bin = 0",
    "new pickler": "P.Pickler(io.BytesIO()).dump([shared])",
    "dumps": "P.loads(P.dumps([shared, shared]))",
    "gc": "__import__('gc').collect()",
}

PICKLER = """
import gc
shared = [1, 2]
live = None
calls = 0
def again():
    global calls
    calls += 1
    if calls > 20:
        return
    try:
        ACTION
    except (RuntimeError, P.PicklingError, ValueError, TypeError, EOFError, AttributeError):
        pass
class Reduces:
    def __reduce__(self):
        again()
        return str, ("reduced",)
class State:
    def __getstate__(self):
        again()
        return {"a": shared}
class Items:
    def __reduce__(self):
        return list, (), None, self.items()
    def items(self):
        for i in range(3):
            again()
            yield [i]
sys.modules["__main__"].State = State
class Persistent(P.Pickler):
    def persistent_id(self, obj):
        again()
        return None
class Override(P.Pickler):
    def reducer_override(self, obj):
        again()
        return NotImplemented
class File(io.BytesIO):
    def write(self, data):
        again()
        return super().write(data)
value = [shared, "text", Reduces(), {1: State(), (2, "k"): Items()}, (shared, {Reduces()}), b"x" * 70_000, State(), str, shared]
for kind in (P.Pickler, Persistent, Override):
    for file in (io.BytesIO, File):
        for protocol in range(6):
            calls = 0
            live = kind(file(), protocol)
            try:
                live.dump(value)
            except (RuntimeError, P.PicklingError, ValueError, AttributeError):
                pass
            assert calls, "no hook ran"
            live = None
            P.loads(P.dumps([shared, shared], protocol))
"""


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.beyond_reference
def test_pickler_called_back(action: str) -> None:
    """The reference crashes where its own dump is called again."""
    child.check(PICKLER.replace("ACTION", ACTIONS[action]), timeout=60)


LOAD_ACTIONS = {
    "load": "live.load()",
    "load twice": "live.load(); live.load()",
    "memo.clear": "live.memo.clear()",
    "memo.copy": "live.memo.copy()",
    "memo = {}": "live.memo = {0: [], 5: {}}",
    "memo = proxy": "live.memo = P.Unpickler(io.BytesIO(b'N.')).memo",
    "init": "live.__init__(io.BytesIO(P.dumps([1])))",
    "find_class": "live.find_class('builtins', 'list')",
    "loads": "P.loads(P.dumps([[1], {2: 3}]))",
    "gc": "__import__('gc').collect()",
}

UNPICKLER = """
import gc
live = None
calls = 0
def again():
    global calls
    calls += 1
    if calls > 20:
        return
    try:
        ACTION
    except Exception:
        pass
class SetItem(dict):
    def __setitem__(self, key, value):
        again()
        dict.__setitem__(self, key, value)
class Extend(list):
    def extend(self, items):
        again()
        list.extend(self, items)
    append = extend
class Hashes:
    def __hash__(self):
        again()
        return 3
class State:
    def __setstate__(self, state):
        again()
class Attributes:
    def __setattr__(self, name, value):
        again()
class New:
    def __new__(cls, *args):
        again()
        return super().__new__(cls)
class AddSet(set):
    def add(self, item):
        again()
def call(*args):
    again()
    return list(args)
class Calls:
    def __reduce__(self):
        return call, ([1], [2])
main = sys.modules["__main__"]
for item in (SetItem, Extend, Hashes, State, Attributes, New, AddSet, Calls):
    setattr(main, item.__name__, item)
saved, live = live, None
state = State(); state.x = [1]
new = New(); new.y = {1: [2]}
attributes = Attributes(); attributes.__dict__["z"] = 1
values = [SetItem(a=1, b=[2]), Extend([[1], [2], [3]]), {Hashes(): [Hashes()]}, {Hashes()}, frozenset([Hashes()]),
          [state, [state]], [attributes, attributes], [new, new], AddSet([1, 2]), [Calls(), {1: Calls()}]]
class Found(P.Unpickler):
    def find_class(self, module, name):
        again()
        return super().find_class(module, name)
    def persistent_load(self, pid):
        again()
        return [pid]
class File(io.BytesIO):
    def read(self, n=-1):
        again()
        return super().read(n)
    def readinto(self, buffer):
        again()
        return super().readinto(buffer)
    def readline(self):
        again()
        return super().readline()
    def peek(self, n=0):
        again()
        return b""
import pickletools
total = 0
for kind in (P.Unpickler, Found):
    for file in (io.BytesIO, File):
        for protocol in (0, 2, 4):
            for value in values:
                blob = pickle.dumps([value, value], protocol)
                for data in (blob, pickletools.optimize(blob)):
                    calls = 0
                    live = first = kind(file(data + pickle.dumps(None, protocol) * 3))
                    try:
                        first.load()
                    except Exception:
                        pass
                    total += calls
                    live = None
                    P.loads(blob)
assert total > 100, total
print("done")
"""


@pytest.mark.parametrize("action", LOAD_ACTIONS)
@pytest.mark.beyond_reference
def test_unpickler_called_back(action: str) -> None:
    """The reference crashes on some of these; ours must not."""
    assert "done" in child.check(UNPICKLER.replace("ACTION", LOAD_ACTIONS[action]), timeout=60)


@pytest.mark.beyond_reference
def test_the_error_is_clear() -> None:
    """Dump in a Pickler's own persistent_id, load in an Unpickler's own find_class: an error that says what happened."""
    out = child.check(
        """
        class Dumps(P.Pickler):
            def persistent_id(self, obj):
                self.dump(1)
        class Loads(P.Unpickler):
            def find_class(self, module, name):
                return self.load()
        for call in (lambda: Dumps(io.BytesIO()).dump([2]), lambda: Loads(io.BytesIO(b"ca\\nb\\nN.N.")).load()):
            try:
                call()
            except Exception as exc:
                print(type(exc).__name__, exc)
            else:
                print("worked")
        """
    )
    lines = out.strip().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "RecursionError" not in line
        assert any(word in line.lower() for word in ("already", "re-ent", "reent", "in use", "while", "worked")), line


def test_streams_closed_or_replaced_meanwhile() -> None:
    child.check(
        """
        class Closing:
            def __reduce__(self):
                file.close()
                return str, ()
        file = io.BytesIO()
        try:
            P.dump([1, Closing(), b"x" * 200_000], file)
        except ValueError:
            pass
        data = bytearray(pickle.dumps(["x" * 10, str, [1] * 50], 2))
        class Resizes(P.Unpickler):
            def find_class(self, module, name):
                try:
                    data.clear()
                except BufferError:
                    pass
                return str
        try:
            P.loads(data)
            Resizes(io.BytesIO(data)).load()
        except (EOFError, P.UnpicklingError):
            pass
        """
    )
