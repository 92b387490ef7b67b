"""What can go wrong with a store, a class for each thing a program may want to do about it.

All are :class:`RecoveryError`, which is an :class:`OSError`: ``errno`` is set where the operating system said one. The
kinds, and which failure is which, are decided in Rust; this file gives them classes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final


class RecoveryError(OSError):
    """A store could not do what it was asked. Of no narrower class: the operating system refused."""

    kind: ClassVar[str] = "io"

    def __init__(self, message: str, place: str = "", errno: int | None = None) -> None:
        super().__init__(message)
        self.place = place
        """The path, node or setting it is about; may be empty."""
        self.errno = errno

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.place, self.errno)


class FullError(RecoveryError):
    """The disk or the quota is full."""

    kind = "full"


class ReadOnlyError(RecoveryError, PermissionError):
    """The place cannot be written: missing permission, a read-only mount, or ``read_only=True``."""

    kind = "read_only"


class LockedError(RecoveryError, BlockingIOError):
    """Another process (or another ``open``) holds the store."""

    kind = "locked"


class PoisonedError(RecoveryError):
    """An earlier write failed. Nothing is written until ``revive()`` succeeds or the store is opened again."""

    kind = "poisoned"


class ClosedError(RecoveryError, ValueError):
    """The store was closed, or belongs to the process this one was forked from."""

    kind = "closed"


class CorruptError(RecoveryError):
    """Stored bytes are damaged, and ``strict=True`` was asked for or the damaged entry itself."""

    kind = "corrupt"


class VersionError(RecoveryError):
    """A newer release wrote the store, or something else did."""

    kind = "version"


class TooLargeError(RecoveryError, ValueError):
    """A name or value is larger than the engine takes."""

    kind = "too_large"


class FencedError(RecoveryError):
    """Another master took the store over; this one must not write any more."""

    kind = "fenced"


class UnavailableError(RecoveryError, TimeoutError):
    """The servers did not answer in time; whether the call took effect is unknown."""

    kind = "unavailable"


class ConfigError(RecoveryError, ValueError):
    """An argument or a URL makes no sense."""

    kind = "config"


class CodecError(RecoveryError, ValueError):
    """An entry cannot be read with the serialisers the store was opened with."""

    kind = "codec"


_CLASSES: Final[dict[str, type[RecoveryError]]] = {
    error.kind: error
    for error in (
        RecoveryError,
        FullError,
        ReadOnlyError,
        LockedError,
        PoisonedError,
        ClosedError,
        CorruptError,
        VersionError,
        TooLargeError,
        FencedError,
        UnavailableError,
        ConfigError,
        CodecError,
    )
}


def of_kind(kind: str, message: str, place: str, errno: int | None) -> RecoveryError:
    """The exception for a kind of failure; called from Rust. Kinds of a newer release are plain ``RecoveryError``."""
    return _CLASSES.get(kind, RecoveryError)(message, place, errno)
