"""A cursor over a frame, with the bounds of Kafka's own readers.

They refuse before they allocate: arrays with more elements than bytes left or than a million,
strings above 32,767 bytes, more than 10,000 tagged fields. Invalid UTF-8 is replaced, as in Java.

Source: kafka 4.4, MessageUtil.MAX_ARRAY_LENGTH and MAX_TAGGED_FIELD_COUNT; ByteBufferAccessor.
"""

import struct
from typing import Any, Final

from coordinator_sim.messages.codec.compact_types import CompactReader

MAX_ARRAY_LENGTH: Final = 1_000_000
"""Largest number of elements of an array that a reader accepts."""
MAX_TAGGED_FIELD_COUNT: Final = 10_000
"""Largest number of tagged fields of one struct that a reader accepts."""
MAX_STRING_LENGTH: Final = 32_767
"""Longest string in bytes; the classic form has two bytes for the length."""

_UUID_SIZE: Final = 16
_INT8: Final = struct.Struct(">b")
_FLOAT64: Final = struct.Struct(">d")
_MORE_BYTES: Final = 0x80
"""The bit of a varint's byte that marks that more bytes follow."""


class FrameReader(CompactReader):
    """A cursor over a frame."""

    __slots__ = ()

    def fixed(self, form: struct.Struct, field: str) -> tuple[Any, ...]:
        """The next fields of fixed size, together."""
        start = self._offset
        end = start + form.size
        if end > len(self._data):
            raise self.error(f"{field} needs {form.size} bytes, {self.remaining} are left")
        self._offset = end
        return form.unpack_from(self._data, start)

    def numbers(self, code: str, count: int, field: str) -> list[int]:
        """The next `count` integers; `code` is how `struct` writes one."""
        return list(self.fixed(struct.Struct(f">{count}{code}"), field))

    def int8(self, field: str) -> int:
        """The next signed 8-bit integer."""
        return int(self.fixed(_INT8, field)[0])

    def float64(self, field: str) -> float:
        """The next 64-bit floating point number."""
        return float(self.fixed(_FLOAT64, field)[0])

    def boolean(self, field: str) -> bool:
        """The next byte: anything but 0 is true."""
        return self._take(1, field) != b"\x00"

    def uuid(self, field: str) -> bytes:
        """The next 16 bytes."""
        return self._take(_UUID_SIZE, field)

    def short_varint(self, field: str) -> int:
        """The next unsigned varint; most have one byte."""
        start = self._offset
        if start < len(self._data) and (byte := self._data[start]) < _MORE_BYTES:
            self._offset = start + 1
            return byte
        return self.unsigned_varint(field)

    def nullable_text(self, field: str) -> str | None:
        """The next classic string; None for any negative length."""
        length = self.int16(field)
        return None if length < 0 else str(self._take(length, field), "utf-8", "replace")

    def text(self, field: str) -> str:
        """The next classic string, which may not be null."""
        text = self.nullable_text(field)
        if text is None:
            raise self.error(f"{field} is null")
        return text

    def compact_nullable_text(self, field: str) -> str | None:
        """The next compact string; None for length 0."""
        size = self.short_varint(field)
        if size <= 1:
            return "" if size else None
        if size - 1 > MAX_STRING_LENGTH:
            raise self.error(
                f"{field} has {size - 1} bytes, at most {MAX_STRING_LENGTH} are allowed"
            )
        return str(self._take(size - 1, field), "utf-8", "replace")

    def compact_text(self, field: str) -> str:
        """The next compact string, which may not be null."""
        text = self.compact_nullable_text(field)
        if text is None:
            raise self.error(f"{field} is null")
        return text

    def count(self, field: str) -> int:
        """The number of elements of a classic array; -1 for null."""
        return self.bounded(max(self.int32(field), -1), field)

    def compact_count(self, field: str) -> int:
        """The number of elements of a compact array; -1 for null."""
        return self.bounded(self.short_varint(field) - 1, field)

    def bounded(self, count: int, field: str) -> int:
        """Check a count of elements, -1 for null: refuse one above the bytes left or the limit."""
        if count > self.remaining:
            raise self.error(f"{field} counts {count} elements, {self.remaining} bytes are left")
        if count > MAX_ARRAY_LENGTH:
            raise self.error(
                f"{field} counts {count} elements, at most {MAX_ARRAY_LENGTH} are allowed"
            )
        return count

    def tag_count(self, field: str) -> int:
        """The number of tagged fields that end a struct."""
        count = self.short_varint(field)
        if count > MAX_TAGGED_FIELD_COUNT:
            raise self.error(
                f"{field} has {count} tagged fields, at most {MAX_TAGGED_FIELD_COUNT} are allowed"
            )
        return count

    def pass_over(self, size: int, field: str) -> None:
        """Skip a number of bytes."""
        self._take(size, field)

    def pass_over_tags(self, field: str) -> None:
        """Skip the tagged fields that end a struct."""
        for _ in range(self.tag_count(field)):
            self.unsigned_varint(field)
            self._take(self.unsigned_varint(field), field)
