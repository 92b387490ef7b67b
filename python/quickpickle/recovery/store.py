"""The store: a mapping from names to objects over an engine.

Objects become bytes in ``serializers``, bytes become durable in Rust. What must stay true: a call that returned has the
engine's promise behind it, no object is read by another serialiser than wrote it, and a forked child neither touches
its parent's store nor keeps its lock.
"""

from __future__ import annotations

import math
import os
import warnings
import weakref
from collections.abc import ItemsView as _ItemsView
from collections.abc import Iterable, Iterator, MutableMapping
from collections.abc import KeysView as _KeysView
from collections.abc import ValuesView as _ValuesView
from types import TracebackType
from typing import Any, Literal

from quickpickle._native import RecoveryEngine
from quickpickle.recovery.errors import PoisonedError, RecoveryError
from quickpickle.recovery.reports import Compaction, Entry, Report, Stats, report_of
from quickpickle.recovery.serializers import Codecs, Serializer, split_name

__all__ = ["Store", "open"]


def open(  # noqa: A001 -- as the standard library's gzip.open and shelve.open
    path_or_url: str | os.PathLike[str],
    *,
    serializer: str | Serializer = "pickle",
    readers: Iterable[str | Serializer] = (),
    sync: str = "always",
    compression: Literal["lz4", "zstd"] | None = None,
    engine: Literal["log", "file_system", "zookeeper", "black_hole"] | None = None,
    strict: bool = False,
    read_only: bool = False,
    wait: bool | float = False,
    segment_bytes: int | None = None,
    auto_compact: bool = True,
    operation_timeout: float | None = None,
    session_timeout: float | None = None,
) -> Store:
    """Open a store, creating it if there is none.

    ``path_or_url`` is a directory, or ``log:DIR``, ``file:DIR``, ``zookeeper://HOST:PORT,HOST:PORT/NODE`` or
    ``blackhole:``. A plain directory is a log, unless it holds a store of files or ``engine`` says otherwise.

    ``serializer`` writes objects: ``"pickle"``, ``"bytes"``, ``"json"``, or anything with ``dumps`` and ``loads``.
    Each record is read by what wrote it; ``readers`` names serialisers of older records besides. A pickle is loaded
    only if one of the two says ``"pickle"``, because loading it runs code.

    ``sync`` is when a call returns: ``"always"``, once the device has the data; ``"group"`` or ``"group(MS)"``, once
    the operating system has it, the device following within so many milliseconds; ``"none"``, once the operating
    system has it.

    ``strict`` refuses a damaged store instead of putting the damage aside and going on with what is left. ``read_only``
    takes no lock and changes nothing. ``wait`` stands by while another process holds the store: for so many seconds, or
    with ``True`` for as long as it takes; Ctrl-C ends it.

    ``segment_bytes`` and ``auto_compact`` are for the log; ``operation_timeout`` (longest any call takes) and
    ``session_timeout`` (when a silent master's lock is given to another), in seconds, for ZooKeeper.

    Raises subclasses of :class:`RecoveryError`: :class:`LockedError`, :class:`CorruptError` (``strict``),
    :class:`VersionError`, :class:`UnavailableError`, :class:`ConfigError`, ...
    """
    codecs = Codecs(serializer, readers)
    if wait is True:
        seconds: float | None = math.inf
    else:
        seconds = float(wait) or None
    opened = RecoveryEngine.open(
        url=path_or_url if isinstance(path_or_url, str) else None,
        directory=None if isinstance(path_or_url, str) else path_or_url,
        engine=engine,
        sync=sync,
        compression=compression,
        strict=strict,
        read_only=read_only,
        wait=seconds,
        segment_bytes=segment_bytes,
        auto_compact=auto_compact,
        operation_timeout=operation_timeout,
        session_timeout=session_timeout,
    )
    return Store(opened, codecs, os.fspath(path_or_url))


class Store(MutableMapping[str, Any]):
    """Objects under names, durable as soon as a call has returned; made by :func:`open`.

    A mutable mapping, and a context manager that closes it. Objects are read anew each time: changing one changes
    nothing in the store until it is assigned again. May be used from several threads; the GIL is free while the disk
    or the network is waited for. A store belongs to the process that opened it and cannot be pickled. Two stores are
    equal only if they are the same.
    """

    def __init__(self, engine: RecoveryEngine, codecs: Codecs, where: str) -> None:
        self._engine = engine
        self._codecs = codecs
        self._where = where
        self._closed = False
        self._owner = os.getpid()
        _OPEN.add(self)

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    # As a mapping.

    def __getitem__(self, name: str) -> Any:
        found = self._engine.get(name)
        if found is None:
            raise KeyError(name)
        return self._codecs.loads(name, *found)

    def __setitem__(self, name: str, value: Any) -> None:
        writer = self._codecs.writer
        self._engine.persist(name, writer.number, writer.dumps(value))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._engine.unpersist(name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self._engine.contains(name)
        except UnicodeEncodeError:  # half of a surrogate pair; no name has that
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._engine.names(""))

    def __len__(self) -> int:
        return self.stats().entries

    def __bool__(self) -> bool:
        """True: a store is there, even if it is empty."""
        return True

    def keys(self, prefix: str = "") -> KeysView:
        """The names that start with ``prefix``, ordered."""
        return KeysView(self, prefix)

    def values(self, prefix: str = "") -> ValuesView:
        """The objects whose names start with ``prefix``, in the order of their names."""
        return ValuesView(self, prefix)

    def items(self, prefix: str = "") -> ItemsView:
        """Names and objects, for names that start with ``prefix``, ordered by name."""
        return ItemsView(self, prefix)

    def update(self, other: Any = (), /, **named: Any) -> None:
        """Store many objects, with one sync where the engine can. Not atomic: after a crash some may be there."""
        pairs = dict(other, **named)
        writer = self._codecs.writer
        self._engine.persist_batch([(name, writer.number, writer.dumps(value)) for name, value in pairs.items()])

    def clear(self, prefix: str = "") -> None:
        """Remove everything whose name starts with ``prefix``."""
        for name in self._engine.names(prefix):
            self._engine.unpersist(name)

    # In the words of a master.

    def persist(self, name: str, value: Any) -> None:
        """Store ``value`` under ``name``: the same as ``store[name] = value``."""
        self[name] = value

    def unpersist(self, name: str) -> None:
        """Remove ``name``; succeeds if it is not there."""
        self._engine.unpersist(name)

    def read(self, prefix: str = "") -> list[tuple[str, Any]]:
        """Names and objects, for names that start with ``prefix``, ordered by name."""
        return list(self.items(prefix))

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        """What is stored, as bytes and with the name of what wrote it; loads nothing."""
        for name, number, value in self._engine.read(prefix):
            yield Entry(name, split_name(number, value), value)

    # Maintenance.

    def sync(self) -> None:
        """Return once everything stored so far is on the device, whatever ``sync`` the store was opened with."""
        self._engine.sync()

    def verify(self) -> Report:
        """Read the whole store again and check it; changes nothing."""
        return report_of(self._engine.verify())

    def compact(self) -> Compaction:
        """Give back the space of what was replaced and removed. The log does so by itself now and then."""
        return Compaction(**self._engine.compact())

    def stats(self) -> Stats:
        """How much the store holds."""
        return Stats(**self._engine.stats())

    @property
    def opening_report(self) -> Report:
        """What was found when the store was opened, or revived."""
        return report_of(self._engine.opening_report())

    def revive(self) -> None:
        """After a :class:`PoisonedError`: build the store anew from what it holds, without giving up the lock."""
        self._engine.revive()

    @property
    def engine(self) -> RecoveryEngine:
        """What is below: names, numbers of codecs and bytes."""
        return self._engine

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def close(self) -> None:
        """Make everything durable and release the store. Closing twice is fine."""
        self._closed = True
        self._engine.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except PoisonedError:
            # The failure that poisoned it is on its way already, and says more.
            if not isinstance(error, RecoveryError):
                raise

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._owner == os.getpid():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        return f"<quickpickle.recovery.Store {self._where!r}{' closed' if self._closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("a recovery store cannot be pickled; open it where it is needed, by one process at a time")


class KeysView(_KeysView[str]):
    """The names with a prefix."""

    _mapping: Store

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._mapping.engine.names(self._prefix))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self._prefix) and name in self._mapping

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping.engine.names(self._prefix))


class ItemsView(_ItemsView[str, Any]):
    """Names and objects with a prefix. Iterating reads all their bytes at once, and loads one object at a time."""

    _mapping: Store

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._mapping.engine.names(self._prefix))

    def __contains__(self, item: object) -> bool:
        if not (isinstance(item, tuple) and len(item) == 2 and item[0] in KeysView(self._mapping, self._prefix)):
            return False
        return bool(self._mapping[item[0]] == item[1])

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        loads = self._mapping._codecs.loads
        for name, number, value in self._mapping.engine.read(self._prefix):
            yield name, loads(name, number, value)


class ValuesView(_ValuesView[Any]):
    """The objects with a prefix, in the order of their names."""

    _mapping: Store

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._mapping.engine.names(self._prefix))

    def __contains__(self, value: object) -> bool:
        return any(found == value for found in self)

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in ItemsView(self._mapping, self._prefix))


_OPEN: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    """In the child: let go of the parent's files, or its lock would live as long as the child."""
    directories = set()
    for store in list(_OPEN):
        store._engine.disown()
        if store._engine.directory is not None:
            directories.add(os.path.realpath(store._engine.directory))
    if directories:
        _close_files(directories)


def _close_files(directories: set[str]) -> None:
    """Close what the engines could not let go because another thread was using it at the moment of the fork.

    That thread is not in this process, so nobody uses these files here or ever closes them.
    """
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return
    for descriptor in descriptors:
        try:
            folder, name = os.path.split(os.readlink(f"/proc/self/fd/{descriptor}"))
            if folder in directories and (name == "LOCK" or name.endswith(".qlog")):
                os.close(int(descriptor))
        except OSError:  # the one that was listing them
            continue


os.register_at_fork(after_in_child=_after_fork)
