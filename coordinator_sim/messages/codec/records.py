"""Keys and values of records as bytes, by the recorded schemas.

A key begins with the number of its type, which means another record in each coordinator's log; a
value begins with the version of its schema.

Source: kafka 4.4, coordinator-common/.../runtime/CoordinatorRecordSerde.java.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, get_args

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.messages.codec.read_source import Reading
from coordinator_sim.messages.codec.write_source import Writing
from coordinator_sim.messages.schema import Layout, Message, layout_of_message, message_of

RecordTypes = Mapping[int, type[Struct]]
"""The structs of the keys of a log's records, by the number that their bytes begin with."""
_FRONT_SIZE: Final = 2


def record_types(*families: object) -> RecordTypes:
    """The types of the records of a log, which has these unions of keys."""
    return {key.record_type: key for family in families for key in get_args(family)}


@cache
def value_struct(key: type[Struct]) -> type[Struct]:
    """The struct of the values under a key."""
    struct: type[Struct] = getattr(
        sys.modules[key.__module__], f"{key.__name__.removesuffix('Key')}Value"
    )
    return struct


@cache
def record_message(struct: type[Struct]) -> Message:
    """The key or the value of a recorded schema, by its struct."""
    part = "key" if struct.__name__.endswith("Key") else "value"
    return message_of(f"{struct.__name__[: -len(part)]}Record", part)


@cache
def record_layout(struct: type[Struct], version: int = 0) -> Layout:
    """The fields of a key or of one version of a value.

    Raises:
        UnsupportedVersion: Kafka never had the version.
    """
    return layout_of_message(record_message(struct), version)


class _KeyWriters(dict[type[Struct], Callable[[Any], bytes]]):
    """Writers of keys, compiled at their first use; a plain lookup, as each commit writes keys."""

    def __missing__(self, struct: type[Struct]) -> Callable[[Any], bytes]:
        self[struct] = write = _writer(struct, 0, struct.record_type)  # type: ignore[attr-defined]
        return write


_KEY_WRITERS: Final = _KeyWriters()


def key_bytes(key: Struct, record_type: int | None = None) -> bytes:
    """The key of a record; the number of its type may be a former one."""
    if record_type is None:
        return _KEY_WRITERS[type(key)](key)
    return _writer(type(key), 0, record_type)(key)


def value_bytes(value: Struct, version: int = 0) -> bytes:
    """The value of a record, without the fields that the version lacks.

    Raises:
        DataError: a field does not fit.
        UnsupportedVersion: Kafka never had the version, or it lacks a field that must be stored.
    """
    return _writer(type(value), version, version)(value)


def read_key(types: RecordTypes, data: bytes) -> Any:  # noqa: ANN401 - a struct of the log
    """The key of a record; None for a type that the log has not.

    Raises:
        WireFormatError: the bytes are broken.
    """
    struct = types.get(front(data, "record key"))
    return None if struct is None else _reader(struct, 0)(data)


def read_value(key: Struct, data: bytes) -> tuple[Any, int]:
    """The value under a key, and the version of its schema; bytes behind it are ignored.

    Raises:
        WireFormatError: the bytes are broken, or the version is unknown. A broker that loads such a
            record gives the whole partition up.
    """
    struct = value_struct(type(key))
    version = front(data, "record value")
    newest = record_message(struct).newest
    if not 0 <= version <= newest:
        raise WireFormatError(
            f"{struct.__name__}: value version {version} is unknown, the newest is {newest}", 0
        )
    return _reader(struct, version)(data), version


def front(data: bytes, what: str) -> int:
    """The number that a key or a value begins with: a record's type, or its value's version.

    Raises:
        WireFormatError: there are fewer than 2 bytes.
    """
    if len(data) < _FRONT_SIZE:
        raise WireFormatError(f"{what}: version needs 2 bytes, {len(data)} are left", 0)
    return int.from_bytes(data[:_FRONT_SIZE], "big", signed=True)


@cache
def record_writer(key: type[Struct], version: int) -> Callable[[Any, Any], tuple[bytes, bytes]]:
    """The writer of a key of that type and of its value, as `key_bytes` and `value_bytes` do.

    Raises:
        UnsupportedVersion: Kafka never had the version of the value.
    """
    layout = record_layout(value_struct(key), version)
    name = key.__name__.removesuffix("Key")
    writing = Writing(f"write_{name}Record_{version}", ("key",), key.__module__)
    writing.constant("h", key.record_type)  # type: ignore[attr-defined]
    writing.struct(record_layout(key), "key")
    writing.begin_next()
    writing.constant("h", version)
    writing.struct(layout, "message")
    return writing.compiled()


@cache
def _reader(struct: type[Struct], version: int) -> Callable[[bytes], Any]:
    layout = record_layout(struct, version)
    reading = Reading(f"read_{layout.name}_{version}", struct.__module__, start=_FRONT_SIZE)
    return reading.compiled(reading.struct(layout))


@cache
def _writer(struct: type[Struct], version: int, front: int) -> Callable[[Any], bytes]:
    layout = record_layout(struct, version)
    writing = Writing(f"write_{layout.name}_{version}", (), struct.__module__)
    writing.constant("h", front)
    writing.struct(layout, "message")
    return writing.compiled()
