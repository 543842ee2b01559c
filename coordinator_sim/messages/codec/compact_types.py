"""Kafka's primitive types as flexible schemas write them: varint lengths and tagged fields.

Source: kafka trunk, clients/.../common/protocol/types/Type.java and
clients/.../common/utils/ByteUtils.java.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from coordinator_sim.messages.codec.classic_types import ClassicReader

T = TypeVar("T")

_MAX_VARINT_BYTES = 5


class CompactReader(ClassicReader):
    """A cursor that reads both compact and classic types."""

    __slots__ = ()

    def unsigned_varint(self, field: str) -> int:
        """The next unsigned varint of at most five bytes."""
        result = shift = 0
        for _ in range(_MAX_VARINT_BYTES):
            byte = self._take(1, field)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004  the bit that says that more bytes follow
                return result
            shift += 7
        raise self.error(f"{field} is a varint of more than {_MAX_VARINT_BYTES} bytes")

    def compact_nullable_bytes(self, field: str) -> bytes | None:
        """The next bytes with their length plus one; None for length 0."""
        size = self.unsigned_varint(field)
        return None if size == 0 else self._take(size - 1, field)

    def compact_bytes(self, field: str) -> bytes:
        """The next bytes, which may not be null."""
        data = self.compact_nullable_bytes(field)
        if data is None:
            raise self.error(f"{field} is null")
        return data

    def compact_nullable_string(self, field: str) -> str | None:
        """The next string; None for length 0. What is not UTF-8 is replaced, as in Java."""
        raw = self.compact_nullable_bytes(field)
        return None if raw is None else raw.decode(errors="replace")

    def compact_string(self, field: str) -> str:
        """The next string, which may not be null."""
        text = self.compact_nullable_string(field)
        if text is None:
            raise self.error(f"{field} is null")
        return text

    def compact_array(self, field: str, element: Callable[[], T]) -> list[T]:
        """The next array, which may not be null; `element` reads one of its elements."""
        count = self.unsigned_varint(field) - 1
        if count < 0:
            raise self.error(f"{field} is null")
        if count > self.remaining:
            raise self.error(f"{field} counts {count} elements, {self.remaining} bytes are left")
        return [element() for _ in range(count)]

    def tagged_fields(self, field: str) -> dict[int, bytes]:
        """The tagged fields that end a struct, by tag; the caller drops unknown ones."""
        count = self.unsigned_varint(field)
        if count > self.remaining:
            raise self.error(f"{field} counts {count} tags, {self.remaining} bytes are left")
        tags: dict[int, bytes] = {}
        for _ in range(count):
            tag = self.unsigned_varint(f"{field} tag")
            tags[tag] = self._take(self.unsigned_varint(f"{field} size"), f"{field} {tag}")
        return tags


def unsigned_varint_bytes(value: int) -> bytes:
    """A number of up to 32 bits, seven bits per byte, lowest first."""
    out = bytearray()
    while value >= 0x80:  # noqa: PLR2004  more than seven bits are left
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_bytes_bytes(data: bytes | None) -> bytes:
    """Bytes with their length plus one; None is 0."""
    return b"\x00" if data is None else unsigned_varint_bytes(len(data) + 1) + data


def compact_string_bytes(text: str | None) -> bytes:
    """A string with its length plus one; None is 0. Lone surrogates become `?`, as in Java."""
    return compact_bytes_bytes(None if text is None else text.encode(errors="replace"))


def compact_array_bytes(elements: Sequence[bytes]) -> bytes:
    """An array of already written elements."""
    return unsigned_varint_bytes(len(elements) + 1) + b"".join(elements)


def tagged_fields_bytes(tags: Mapping[int, bytes]) -> bytes:
    """The tagged fields that end a struct, in ascending order of tags."""
    parts = [unsigned_varint_bytes(len(tags))]
    for tag in sorted(tags):
        parts += (unsigned_varint_bytes(tag), unsigned_varint_bytes(len(tags[tag])), tags[tag])
    return b"".join(parts)
