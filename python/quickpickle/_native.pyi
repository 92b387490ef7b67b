"""The extension module: pickler and unpickler in Rust.

Every argument is documented here; the docstrings of the module itself are the short form. Stubtest
keeps the two equal. The names and their arguments are those of the standard library's ``pickle``,
where the format is described.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pickle import PickleBuffer
from typing import Any, Literal, Protocol, TypeAlias, final, type_check_only

from typing_extensions import Buffer, disjoint_base

__version__: str
"""The release of quickpickle, for example ``"0.1.0"``."""

__all__ = [
    "CloudPickler",
    "DefaultTable",
    "Pickler",
    "PicklerMemo",
    "Reconstructor",
    "RecoveryEngine",
    "TimelyWriter",
    "Unpickler",
    "UnpicklerMemo",
    "__version__",
    "_builtin_type",
    "_class_items",
    "_class_setstate",
    "_extract_code_globals",
    "_file_reconstructor",
    "_function_setstate",
    "_get_dataclass_field_type_sentinel",
    "_get_or_create_tracker_id",
    "_is_by_reference",
    "_lookup",
    "_lookup_class_or_track",
    "_make_cell",
    "_make_dict_items",
    "_make_dict_keys",
    "_make_dict_values",
    "_make_empty_cell",
    "_make_function",
    "_make_skeleton_class",
    "_make_skeleton_enum",
    "_make_typevar",
    "_pickle_by_value_modules",
    "_reduce_file",
    "_set_default_reducers",
    "_set_reducers",
    "_types_name",
    "_which_module",
    "cloud_dump",
    "cloud_dumps",
    "dump",
    "dumps",
    "dynamic_subimport",
    "list_registry_pickle_by_value",
    "load",
    "loads",
    "recovery_codec_name",
    "register_pickle_by_value",
    "reset_classes",
    "spark_state_dumps",
    "spark_state_loads",
    "spark_state_prepare",
    "subimport",
    "tools_dis",
    "tools_explain",
    "tools_optimize",
    "tools_scan",
    "tools_scan_rules",
    "tools_stats",
    "unregister_pickle_by_value",
]

_Reduced: TypeAlias = str | tuple[Any, ...]
_BufferCallback: TypeAlias = Callable[[PickleBuffer], Any]
_Buffers: TypeAlias = Iterable[Any]

@type_check_only
class _Writer(Protocol):
    def write(self, data: bytes, /) -> object: ...

@type_check_only
class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def readline(self) -> bytes: ...

def dump(
    obj: Any,
    file: _Writer,
    protocol: int | None = None,
    *,
    fix_imports: bool = True,
    buffer_callback: _BufferCallback | None = None,
) -> None:
    """Write the pickle of ``obj`` to ``file``.

    Args:
        obj: any picklable object.
        file: something with ``write(bytes)``; it is not closed.
        protocol: 0 to 5; None means ``DEFAULT_PROTOCOL``, a negative number ``HIGHEST_PROTOCOL``.
        fix_imports: for protocols below 3, write the names Python 2 had for moved modules.
        buffer_callback: called with each ``PickleBuffer``; where it answers false the buffer stays
            out of the pickle and has to be given to ``load`` as ``buffers``. Needs protocol 5.

    Raises:
        PicklingError: ``obj`` or something it holds cannot be pickled.
        TypeError: as above, where the object itself refuses, or ``file`` has no ``write``.
        ValueError: no such protocol, or ``buffer_callback`` with a protocol below 5.
        Exception: whatever ``file`` or an object's own hook (``__reduce__`` ...) raises.
    """

def dumps(
    obj: Any,
    protocol: int | None = None,
    *,
    fix_imports: bool = True,
    buffer_callback: _BufferCallback | None = None,
) -> bytes:
    """Return the pickle of ``obj`` as bytes; arguments and errors as for ``dump``."""

def load(
    file: _Reader,
    *,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    errors: str = "strict",
    buffers: _Buffers | None = (),
) -> Any:
    """Read one pickle from ``file`` and return the object it holds.

    The protocol is found in the pickle. Running a pickle runs code its author chose: never load
    data you do not trust.

    Args:
        file: something with ``read(size)`` and ``readline()``, and, if it has them, ``readinto``
            and ``peek``; read no further than the pickle's end unless it can peek.
        fix_imports: understand the names Python 2 had for moved modules.
        encoding: how to decode 8-bit strings written by Python 2; ``"bytes"`` leaves them bytes.
        errors: what to do where that fails, as for ``bytes.decode``.
        buffers: the buffers that were kept out of the pickle, in the order they were handed out.

    Raises:
        UnpicklingError: the data is not a pickle, or is damaged.
        EOFError: the data ends before the pickle does.
        AttributeError, ImportError: a class or function it names is not there.
        Exception: whatever the code it runs raises.
    """

def loads(
    data: Buffer,
    /,
    *,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    errors: str = "strict",
    buffers: _Buffers | None = (),
) -> Any:
    """Return the object whose pickle ``data`` (bytes-like) holds; bytes after its end are ignored.

    Other arguments and errors as for ``load``.
    """

@final
class PicklerMemo:
    """The memo of a Pickler: which objects it has written, by ``id``."""

    def clear(self) -> None:
        """Forget all objects."""

    def copy(self) -> dict[int, tuple[int, Any]]:
        """Return ``{id(obj): (number in the pickle, obj)}``."""

@disjoint_base
class Pickler:
    """Writes pickles of objects to a file; objects already written become references.

    Subclasses may define ``persistent_id(obj)`` (anything but None is written in the object's
    place) and ``reducer_override(obj)`` (``NotImplemented`` means the usual way).
    """

    bin: bool
    """True for protocols above 0."""
    fast: bool
    """No memo: smaller output, but sharing is lost and cycles never end. Deprecated."""
    if sys.version_info >= (3, 13):
        def persistent_id(self, obj: Any, /) -> Any:
            """What to write in an object's place, or None for the object itself: for subclasses to override."""
    else:
        persistent_id: Callable[[Any], Any]
        """A subclass's method, or set on the pickler: what to write in an object's place, or None."""
    dispatch_table: Mapping[type, Callable[[Any], _Reduced]]
    """This pickler's own reducers, in the place of ``copyreg.dispatch_table``."""

    def __init__(
        self,
        file: _Writer,
        protocol: int | None = None,
        fix_imports: bool = True,
        buffer_callback: _BufferCallback | None = None,
    ) -> None:
        """Arguments and errors as for the function ``dump``."""

    @property
    def memo(self) -> PicklerMemo:
        """The objects written so far; may be set to another pickler's memo, or a copy of one."""

    @memo.setter
    def memo(self, value: PicklerMemo | dict[int, tuple[int, Any]]) -> None: ...
    def dump(self, obj: Any, /) -> None:
        """Write the pickle of ``obj``; errors as for the function ``dump``."""

    def clear_memo(self) -> None:
        """Forget the objects written so far, so that they are written anew."""

@final
class UnpicklerMemo:
    """The memo of an Unpickler: the objects it has made, by number."""

    def clear(self) -> None:
        """Forget all objects."""

    def copy(self) -> dict[int, Any]:
        """Return ``{number in the pickle: obj}``."""

@disjoint_base
class Unpickler:
    """Reads pickles from a file, one for each ``load``.

    Subclasses may define ``find_class(module, name)`` to decide what a pickle may name, and
    ``persistent_load(pid)``, the other half of ``Pickler.persistent_id``.
    """

    if sys.version_info >= (3, 13):
        def persistent_load(self, pid: Any, /) -> Any:
            """The object that ``persistent_id`` named: for subclasses to override."""
    else:
        persistent_load: Callable[[Any], Any]
        """A subclass's method, or set on the unpickler: the object that ``persistent_id`` named."""

    def __init__(
        self,
        file: _Reader,
        *,
        fix_imports: bool = True,
        encoding: str = "ASCII",
        errors: str = "strict",
        buffers: _Buffers | None = (),
    ) -> None:
        """Arguments and errors as for the function ``load``."""

    @property
    def memo(self) -> UnpicklerMemo:
        """The objects made so far; may be set to another unpickler's memo, or a copy of one."""

    @memo.setter
    def memo(self, value: UnpicklerMemo | dict[int, Any]) -> None: ...
    def load(self) -> Any:
        """Read the next pickle and return its object; errors as for the function ``load``."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Import ``module_name`` and return what ``global_name`` means there.

        Called for each class or function a pickle names; raise ``UnpicklingError`` to refuse.
        """

def recovery_codec_name(codec: int, /) -> str:
    """The name of a record's codec number, compression included: ``pickle``, ``java+lz4``."""

@final
class RecoveryEngine:
    """A crash-safe store of named bytes; what ``quickpickle.recovery`` is made on.

    Methods may be called from several threads, and do not hold the GIL while they wait. All raise
    subclasses of ``quickpickle.recovery.RecoveryError``; after ``close``, and in another process than
    the one that opened it, ``ClosedError``. The dicts they return have the keys of the dataclasses in
    ``quickpickle.recovery``.
    """

    @property
    def directory(self) -> str | None:
        """Where its files are, if it has any."""

    @staticmethod
    def open(
        *,
        url: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        engine: str | None = None,
        sync: str = "always",
        compression: str | None = None,
        strict: bool = False,
        read_only: bool = False,
        wait: float | None = None,
        segment_bytes: int | None = None,
        auto_compact: bool | None = None,
        operation_timeout: float | None = None,
        session_timeout: float | None = None,
    ) -> RecoveryEngine:
        """Open a store named by ``url`` or ``directory``, one of the two.

        Arguments as for ``quickpickle.recovery.open``; ``wait`` is in seconds, ``None`` not to wait and
        infinity to wait for as long as it takes. Signal handlers run meanwhile; what one raises ends it.
        """

    def persist(self, name: str, codec: int, value: bytes, /) -> None:
        """Store ``value`` under ``name``, tagged with the number of what wrote it."""

    def persist_batch(self, entries: list[tuple[str, int, bytes]], /) -> None:
        """Store many at once, with one sync where the engine can; not atomic."""

    def unpersist(self, name: str, /) -> None:
        """Remove ``name``; succeeds if it is not there."""

    def read(self, prefix: str, /) -> list[tuple[str, int, bytes]]:
        """Names, codecs and values, for names that start with ``prefix``, ordered by name."""

    def names(self, prefix: str, /) -> list[str]:
        """The names that start with ``prefix``, ordered."""

    def get(self, name: str, /) -> tuple[int, bytes] | None:
        """Codec and value of the entry called exactly ``name``, or ``None``."""

    def contains(self, name: str, /) -> bool:
        """Whether there is an entry called exactly ``name``; its value is not read if the engine knows without."""

    def sync(self) -> None:
        """Return once everything stored so far is on the device."""

    def opening_report(self) -> dict[str, Any]:
        """What was found when the store was opened, or revived."""

    def verify(self) -> dict[str, Any]:
        """Read the whole store again and check it; changes nothing."""

    def compact(self) -> dict[str, Any]:
        """Give back the space of what was replaced and removed."""

    def stats(self) -> dict[str, Any]:
        """How much the store holds."""

    def revive(self) -> None:
        """After a failure that poisoned the engine: build the store anew without giving up the lock."""

    def disown(self) -> None:
        """In the child of a fork: let go of files and locks without touching them. Elsewhere: nothing."""

    def close(self) -> None:
        """Make everything durable and release the store; closing twice is fine."""

def reset_classes(reset: bool | Literal["changed"] | None = None, /) -> bool | Literal["changed"]:
    """What loading a class that this process has already does to its attributes; set first, if an argument is given.

    "changed", the default: a class that was defined in this process stays as it is; one that was loaded before is given
    what its sender has changed since. True: all attributes are set as the payload has them, as cloudpickle does. False:
    none is. Returns what was the case before. ValueError: it is none of these.
    """

@final
class Reconstructor:
    """A function that rebuilds something: what payloads call by one of cloudpickle's names."""

    @property
    def __name__(self) -> str: ...
    @property
    def __qualname__(self) -> str: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Rebuild an object from the parts that a payload holds."""

_builtin_type: Reconstructor
_make_cell: Reconstructor
_make_empty_cell: Reconstructor
_make_function: Reconstructor
_function_setstate: Reconstructor
_make_skeleton_class: Reconstructor
_make_skeleton_enum: Reconstructor
_class_setstate: Reconstructor
_make_typevar: Reconstructor
subimport: Reconstructor
dynamic_subimport: Reconstructor
_make_dict_items: Reconstructor
_make_dict_keys: Reconstructor
_make_dict_values: Reconstructor
_get_dataclass_field_type_sentinel: Reconstructor
_file_reconstructor: Reconstructor
_lookup_class_or_track: Reconstructor
_get_or_create_tracker_id: Reconstructor

@disjoint_base
class CloudPickler(Pickler):
    """A Pickler that writes functions and classes by value where they cannot be imported.

    ``reducer_override`` of a subclass is asked first; NotImplemented means the way built in. A
    ``dispatch_table`` is the instance's own, wherever it was set.
    """

    def __init__(
        self,
        file: _Writer,
        protocol: int | None = None,
        buffer_callback: _BufferCallback | None = None,
        *,
        namespace: str = "cloudpickle.cloudpickle",
        keep_filenames: bool = False,
        deterministic: bool = False,
        exact_exceptions: bool = False,
    ) -> None:
        """Arguments and errors as for the function ``cloud_dump``."""

    def reducer_override(self, obj: Any, /) -> Any:
        """How to write ``obj``: a reduce value, or NotImplemented for the way built in."""

@final
class DefaultTable:
    """A class attribute that is made when it is asked for: the table of reducers."""

    def __new__(cls, attribute: str, /) -> DefaultTable: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...

def cloud_dump(
    obj: Any,
    file: _Writer,
    protocol: int | None = None,
    buffer_callback: _BufferCallback | None = None,
    *,
    namespace: str = "cloudpickle.cloudpickle",
    keep_filenames: bool = False,
    deterministic: bool = False,
    exact_exceptions: bool = False,
) -> None:
    """Write the pickle of ``obj`` to ``file``, with what a receiver could not import by value.

    Args:
        obj: any object.
        file: something with ``write(bytes)``; it is not closed.
        protocol: 0 to 5; None and negative numbers mean the highest.
        buffer_callback: as for ``dump``.
        namespace: the module whose helpers the payload names; the receiver needs it, or quickpickle.
        keep_filenames: keep in code objects the names of the files they come from, for tracebacks.
        deterministic: equal functions and classes give equal bytes in any process. Sets are sorted, and
            classes that are written alike are taken for one class.
        exact_exceptions: exceptions are made anew from their arguments and attributes, without
            calling their class, whose ``__init__`` may want others.

    Raises:
        PicklingError: ``obj`` or something it holds cannot be pickled.
        TypeError, ValueError, Exception: as for ``dump``.
    """

def cloud_dumps(
    obj: Any,
    protocol: int | None = None,
    buffer_callback: _BufferCallback | None = None,
    *,
    namespace: str = "cloudpickle.cloudpickle",
    keep_filenames: bool = False,
    deterministic: bool = False,
    exact_exceptions: bool = False,
) -> bytes:
    """Return as bytes what ``cloud_dump`` writes; arguments and errors as there."""

def register_pickle_by_value(module: Any) -> None:
    """Have the functions and classes of ``module``, and of what is inside of it, pickled by value.

    Raises:
        ValueError: ``module`` is no module, or not one in ``sys.modules``.
    """

def unregister_pickle_by_value(module: Any) -> None:
    """Undo ``register_pickle_by_value``; ValueError if it was not registered."""

def list_registry_pickle_by_value() -> set[str]:
    """The names of the modules that are pickled by value; a copy."""

def _class_items(class_: type, /) -> list[tuple[str, Any]]: ...
def _extract_code_globals(code: Any, /) -> dict[str, None]: ...
def _is_by_reference(obj: Any, name: str | None = None, /) -> bool: ...
def _lookup(obj: Any, name: str | None = None, /) -> Any: ...
def _pickle_by_value_modules() -> set[str]: ...
def _reduce_file(file: Any, /) -> tuple[Any, list[Any]]: ...
def _set_default_reducers(table: dict[Any, Any], /) -> None: ...
def _set_reducers(table: dict[Any, Any], /) -> None: ...
def _types_name(class_: type, /) -> str | None: ...
def _which_module(obj: Any, name: str, /) -> str | None: ...

@final
class TimelyWriter:
    """A buffered writer to a file descriptor that sends what it holds after an interval at the latest.

    A thread of its own sees to that, also while Python code is busy; it begins with the first write.
    """

    def __new__(cls, descriptor: int, capacity: int = 65_536, interval: float = 0.01) -> TimelyWriter:
        """Make a writer; the descriptor is duplicated.

        Args:
            descriptor: of an open file, pipe or socket that blocks.
            capacity: bytes of the buffer; what is larger goes straight through.
            interval: seconds that anything waits at most.

        Raises:
            OSError: the descriptor is not of an open file.
            ValueError: the interval is negative, or not a finite number.
        """

    def write(self, data: Buffer, /) -> int:
        """Take bytes, and return how many, which is all.

        Raises:
            OSError: sending failed, perhaps in the thread since the last call.
            ValueError: it is closed.
        """

    def flush(self) -> None:
        """Send what is held; errors as from ``write``."""

    def close(self) -> None:
        """Send what is held and end the thread; twice is fine. Errors as from ``write``."""

    @property
    def closed(self) -> bool: ...
    def readable(self) -> bool: ...
    def seekable(self) -> bool: ...
    def writable(self) -> bool: ...

def spark_state_dumps(schema: Any, data: Any, /) -> bytes | None:
    """The pickle of a row of state under a ``StructType``, as PySpark's own code makes it.

    None where a value or schema is of a kind that is not known here; then nothing has been called.

    Raises:
        Exception: whatever a field's ``toInternal`` raises.
    """

def spark_state_loads(data: Buffer, find_class: Callable[[str, str], Any], /) -> Any:
    """What was pickled into ``data``, with 8-bit strings as bytes; ``find_class`` is asked for each name.

    Raises:
        UnpicklingError, EOFError, Exception: as for ``loads``, and whatever ``find_class`` raises.
    """

def spark_state_prepare(struct_type: type, timestamp_type: type, /) -> None:
    """Tell of PySpark's ``StructType`` and ``TimestampType``; the first ones told of count."""

def tools_dis(
    data: Buffer,
    write: Callable[[str], object],
    /,
    *,
    start: int = 0,
    indent: int = 4,
    annotate: int | None = None,
    stack: bool = False,
) -> int:
    """Write the listing of the pickle at ``start``, and return where that pickle ends.

    Args:
        data: what holds the pickle.
        write: called with text, several lines at a time.
        start: where the pickle begins.
        indent: blanks for each open mark.
        annotate: the column from which on each line says what its operation does; None for no annotations.
        stack: show the kinds of what is on the stack after each operation.

    Raises:
        ValueError: the pickle is malformed; arguments are the message and the offset. What was listed
            before has been written.
        Exception: whatever ``write`` raises.
    """

def tools_optimize(data: Buffer, /) -> bytes:
    """Return the pickle without memo writes that nothing reads; ValueError as from ``tools_dis``."""

def tools_stats(data: Buffer, /, *, start: int = 0) -> dict[str, Any]:
    """Return what the pickle at ``start`` is made of; ValueError as from ``tools_dis``."""

def tools_scan(data: Buffer, /) -> dict[str, Any]:
    """Return what the pickles at the start of ``data`` would import and call; malformed ones are no error."""

def tools_scan_rules() -> list[tuple[str, str]]:
    """Return the rules of scans: their names and what they mean."""

def tools_explain(data: Buffer, progress: Callable[[int], object] | None = None, /) -> dict[str, Any]:
    """Return what is in the pickle at the start of ``data``; ValueError as from ``tools_dis``.

    Args:
        data: what holds the pickle.
        progress: called now and then with the bytes that are done; what it raises ends the work.
    """
