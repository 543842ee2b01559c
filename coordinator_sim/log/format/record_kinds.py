"""The records of one coordinator's log as bytes, by the recorded schemas.

A key begins with its type, a value with the version of its schema, which is 0 for all of them. What
types there are is said by whoever makes a `RecordKinds`: numbers mean another thing in each log.

Source: kafka 4.4, coordinator-common/.../runtime/CoordinatorRecordSerde.java.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.messages.catalogue import structs_module
from coordinator_sim.messages.codec.read_source import Reading
from coordinator_sim.messages.codec.write_source import Writing
from coordinator_sim.messages.schema import Layout, layout_of_message, message_of

VALUE_VERSION: Final = 0
"""The version of every value."""
_TYPE_SIZE: Final = 2


class RecordKinds:
    """The types of records of one log.

    Args:
        types: The number that the bytes of a key begin with, by the key's struct. Its name without
            `Key` is that of the recorded schema, and of the value's struct.
    """

    __slots__ = ("_schemas", "types")

    def __init__(self, types: Mapping[type, int]) -> None:
        self.types = types
        self._schemas = {
            number: f"{struct.__name__.removesuffix('Key')}Record"
            for struct, number in types.items()
        }

    def __contains__(self, record_type: object) -> bool:
        """Whether there are records whose keys begin with that number."""
        return record_type in self._schemas

    def schema(self, record_type: int) -> str:
        """The name of the recorded schema of a type.

        Raises:
            KeyError: there are no records of that type.
        """
        return self._schemas[record_type]

    def structs(self, record_type: int) -> str:
        """The module of the structs of a record, by its type."""
        return structs_module(self._schemas[record_type])

    def layout(self, record_type: int, part: str) -> Layout:
        """The fields of a record's `key` or `value`, by the type that its key begins with.

        Raises:
            KeyError: there are no records of that type.
        """
        return _layout(self._schemas[record_type], part)

    def value_type(self, value: Struct) -> int:
        """The type of the record that a value is of, which its key begins with."""
        name = f"{type(value).__name__.removesuffix('Value')}Record"
        return next(number for number, schema in self._schemas.items() if schema == name)

    def key_bytes(self, key: Struct) -> bytes:
        """The key of a record, its type first."""
        record_type = self.types[type(key)]
        return _writer(self._schemas[record_type], "key", record_type)(key)

    def value_bytes(self, value: Struct) -> bytes:
        """The value of a record, its version first."""
        schema = f"{type(value).__name__.removesuffix('Value')}Record"
        return _writer(schema, "value", VALUE_VERSION)(value)

    def read(self, record_type: int, part: str, data: bytes) -> Any:  # noqa: ANN401 - a struct
        """The struct of a record's `key` or `value`, from bytes with type or version before it.

        Raises:
            WireFormatError: the bytes are broken.
        """
        return _reader(self._schemas[record_type], part)(data)


def _layout(schema: str, part: str) -> Layout:
    return layout_of_message(message_of(schema, part), VALUE_VERSION)


@cache
def _reader(schema: str, part: str) -> Callable[[bytes], Any]:
    layout = _layout(schema, part)
    reading = Reading(f"read_{layout.name}", structs_module(schema), start=_TYPE_SIZE)
    return reading.compiled(reading.struct(layout))


@cache
def _writer(schema: str, part: str, front: int) -> Callable[[Any], bytes]:
    layout = _layout(schema, part)
    writing = Writing(f"write_{layout.name}", (), structs_module(schema))
    writing.constant("h", front)
    writing.struct(layout, "message")
    return writing.compiled()
