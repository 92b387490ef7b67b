"""Objects to bytes and back, each kind with the number that goes on the record.

A record says what wrote it, and reading goes by that and not by today's setting: changing a store's serialiser never
misreads what is there. What cannot be read is an error that names its writer. Pickles are loaded only by stores that
were opened for them, because loading a pickle runs code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, runtime_checkable

import quickpickle
from quickpickle._native import recovery_codec_name
from quickpickle.recovery.errors import CodecError, ConfigError

# Numbers on the record; `CodecId` in Rust is their home.
_RAW: Final = 0
_PICKLE: Final = 1
_JSON: Final = 5
_NAMED: Final = 6
# A name's length is one byte.
_LONGEST_NAME: Final = 255


@runtime_checkable
class Serializer(Protocol):
    """Anything with ``dumps`` and ``loads``: a module such as ``msgpack``, or an object of your own.

    Its records carry its name: its attribute ``serializer_name`` if there is one, a module's name, or its class's.
    """

    def dumps(self, obj: Any, /) -> bytes:
        """The bytes of an object."""
        ...

    def loads(self, data: bytes, /) -> Any:
        """The object in the bytes."""
        ...


class Codec:
    """A serialiser with its number and name."""

    def __init__(self, number: int, name: str, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]) -> None:
        self.number = number
        self.name = name
        self._dumps = dumps
        self.loads = loads
        self._prefix = b""
        if number == _NAMED:
            encoded = name.encode()
            if not 0 < len(encoded) <= _LONGEST_NAME:
                raise ConfigError(
                    f"a serialiser's name has 1 to {_LONGEST_NAME} bytes, not {len(encoded)}", "serializer"
                )
            self._prefix = bytes((len(encoded),)) + encoded

    def dumps(self, obj: Any) -> bytes:
        """The bytes to store; exceptions of the serialiser pass through."""
        data = self._dumps(obj)
        if not isinstance(data, bytes):
            raise TypeError(f"the serialiser {self.name} returned {type(data).__name__}, not bytes")
        return self._prefix + data if self._prefix else data


class Codecs:
    """How a store writes, and everything it reads."""

    def __init__(self, writer: str | Serializer, readers: Iterable[str | Serializer] = ()) -> None:
        self.writer = codec_of(writer)
        known = [self.writer, *map(codec_of, readers)]
        # Reversed, so that the writer wins over readers, and those over what is always read.
        self._by_number = {
            codec.number: codec
            for codec in (*map(codec_of, ("bytes", "json")), *reversed(known))
            if codec.number != _NAMED
        }
        self._by_name = {codec.name: codec for codec in reversed(known) if codec.number == _NAMED}

    def loads(self, name: str, number: int, value: bytes) -> Any:
        """The object of the entry called ``name``; fails with :class:`CodecError`, whatever the reason."""
        if number == _NAMED:
            writer, value = _split(name, value)
            codec = self._by_name.get(writer)
            if codec is None:
                advice = "open the store with that serialiser, or have it among readers"
                raise CodecError(f"{name!r} was written by the serialiser {writer!r}; {advice}", name)
        else:
            codec = self._by_number.get(number)
            if codec is None:
                raise CodecError(_unreadable(name, number), name)
        try:
            return codec.loads(value)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise CodecError(f"{name!r}, written by {codec.name}, cannot be read: {reason}", name) from error


def codec_of(choice: str | Serializer) -> Codec:
    """The codec for what was asked for."""
    if isinstance(choice, str):
        if choice == "pickle":
            return Codec(_PICKLE, choice, quickpickle.dumps, quickpickle.loads)
        if choice == "bytes":
            return Codec(_RAW, choice, _as_bytes, _as_it_is)
        if choice == "json":
            return Codec(_JSON, choice, _dump_json, json.loads)
        advice = "use 'pickle', 'bytes', 'json' or an object with dumps and loads"
        raise ConfigError(f"{choice!r} is not a serialiser; {advice}", "serializer")
    if not isinstance(choice, Serializer):
        raise TypeError(f"a serialiser has dumps and loads; {type(choice).__name__} does not")
    name = getattr(choice, "serializer_name", None) or getattr(choice, "__name__", None)
    if name is None:
        name = f"{type(choice).__module__}.{type(choice).__qualname__}"
    if name in ("pickle", "quickpickle"):
        return Codec(_PICKLE, name, choice.dumps, choice.loads)
    if name == "json":
        return codec_of("json")
    return Codec(_NAMED, name, choice.dumps, choice.loads)


def split_name(number: int, value: bytes) -> str:
    """What wrote a record, for people; a serialiser of the user's own by its name."""
    name = recovery_codec_name(number)
    if number & 0xFF == _NAMED and not number >> 8 and value[:1]:
        return value[1 : 1 + value[0]].decode("utf-8", "replace")
    return name


def _split(name: str, value: bytes) -> tuple[str, bytes]:
    length = value[0] if value else 0
    try:
        if 0 < length < len(value):
            return value[1 : 1 + length].decode(), value[1 + length :]
    except UnicodeDecodeError:
        pass
    raise CodecError(f"{name!r} does not say which serialiser wrote it", name)


def _unreadable(name: str, number: int) -> str:
    writer = recovery_codec_name(number)
    if number == _PICKLE:
        advice = "loading a pickle runs code; open the store with serializer='pickle', or with 'pickle' among readers"
    else:
        advice = "Python does not read that; entries() has its bytes"
    return f"{name!r} was written as {writer}: {advice}"


def _as_bytes(obj: Any) -> bytes:
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return bytes(obj)
    raise TypeError(f"serializer='bytes' stores bytes, not {type(obj).__name__}")


def _as_it_is(data: bytes) -> bytes:
    return data


def _dump_json(obj: Any) -> bytes:
    text = json.dumps(obj, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
        return json.dumps(obj, separators=(",", ":")).encode()
