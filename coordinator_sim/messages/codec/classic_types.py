"""Kafka's primitive types as non-flexible schemas write them: big-endian, fixed-size lengths.

Source: kafka trunk, clients/.../common/protocol/types/Type.java.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from coordinator_sim.errors import WireFormatError

T = TypeVar("T")

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class ClassicReader:
    """A cursor over bytes that raises `WireFormatError` where they do not parse.

    Args:
        data: The whole structure; offsets in errors count from its start plus `base`.
        what: The structure's name, for errors.
        base: Offset of `data` in the buffer that it was cut from.
        start: Position in `data` at which to begin.
    """

    __slots__ = ("_base", "_data", "_offset", "_what")

    def __init__(self, data: bytes, what: str, base: int = 0, *, start: int = 0) -> None:
        self._data = data
        self._what = what
        self._base = base
        self._offset = start

    @property
    def offset(self) -> int:
        """Offset of the next byte to read, counted as in errors."""
        return self._base + self._offset

    @property
    def remaining(self) -> int:
        """Number of bytes left to read."""
        return len(self._data) - self._offset

    def error(self, message: str) -> WireFormatError:
        """An error at the cursor, to be raised by the caller."""
        return WireFormatError(f"{self._what}: {message}", self.offset)

    def _take(self, size: int, field: str) -> bytes:
        end = self._offset + size
        if end > len(self._data):
            raise self.error(f"{field} needs {size} bytes, {self.remaining} are left")
        taken = self._data[self._offset : end]
        self._offset = end
        return taken

    def int16(self, field: str) -> int:
        """The next signed 16-bit integer."""
        return int(_INT16.unpack(self._take(2, field))[0])

    def int32(self, field: str) -> int:
        """The next signed 32-bit integer."""
        return int(_INT32.unpack(self._take(4, field))[0])

    def int64(self, field: str) -> int:
        """The next signed 64-bit integer."""
        return int(_INT64.unpack(self._take(8, field))[0])

    def nullable_string(self, field: str) -> str | None:
        """The next string; None for any negative length."""
        length = self.int16(field)
        if length < 0:
            return None
        raw = self._take(length, field)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self._offset -= length - error.start
            raise self.error(f"{field} is not UTF-8") from error

    def string(self, field: str) -> str:
        """The next string, which may not be null."""
        text = self.nullable_string(field)
        if text is None:
            raise self.error(f"{field} is null")
        return text

    def java_string(self, field: str) -> str:
        """The next string, which may not be null; what is not UTF-8 is replaced, as in Java."""
        text = self.java_nullable_string(field)
        if text is None:
            raise self.error(f"{field} is null")
        return text

    def java_nullable_string(self, field: str) -> str | None:
        """The next string, decoded like `java_string`; None for any negative length."""
        length = self.int16(field)
        return None if length < 0 else self._take(length, field).decode(errors="replace")

    def nullable_bytes(self, field: str) -> bytes | None:
        """The next length-prefixed bytes; None for any negative length."""
        length = self.int32(field)
        return None if length < 0 else self._take(length, field)

    def required_bytes(self, field: str) -> bytes:
        """The next length-prefixed bytes, which may not be null."""
        data = self.nullable_bytes(field)
        if data is None:
            raise self.error(f"{field} is null")
        return data

    def array(self, field: str, element: Callable[[], T]) -> list[T]:
        """The next array, which may not be null; `element` reads one of its elements."""
        items = self.nullable_array(field, element)
        if items is None:
            raise self.error(f"{field} is null")
        return items

    def nullable_array(self, field: str, element: Callable[[], T]) -> list[T] | None:
        """The next array; None for any negative count.

        A count above the number of bytes left is refused before reading.
        """
        count = self.int32(field)
        if count < 0:
            return None
        if count > self.remaining:
            raise self.error(f"{field} counts {count} elements, {self.remaining} bytes are left")
        return [element() for _ in range(count)]


def int16_bytes(value: int) -> bytes:
    """A signed 16-bit integer."""
    return _INT16.pack(value)


def int32_bytes(value: int) -> bytes:
    """A signed 32-bit integer."""
    return _INT32.pack(value)


def int64_bytes(value: int) -> bytes:
    """A signed 64-bit integer."""
    return _INT64.pack(value)


def string_bytes(text: str | None) -> bytes:
    """A string with its length; None is length -1. Lone surrogates become `?`, as in Java."""
    if text is None:
        return int16_bytes(-1)
    raw = text.encode(errors="replace")
    return int16_bytes(len(raw)) + raw


def bytes_bytes(data: bytes | None) -> bytes:
    """Bytes with their length; None is length -1."""
    return int32_bytes(-1) if data is None else int32_bytes(len(data)) + data


def array_bytes(elements: Sequence[bytes]) -> bytes:
    """An array of already written elements."""
    return int32_bytes(len(elements)) + b"".join(elements)


def int32_lists_bytes(entries: Iterable[tuple[str, Sequence[int]]]) -> bytes:
    """An array of (name, array of int32), the form of partition and task lists."""
    return array_bytes(
        [
            string_bytes(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
            for name, numbers in entries
        ]
    )
