"""Messages as bytes: a reader and a writer made from each version's layout.

Unknown tagged fields are passed over.

Source: kafka 4.4, generator/.../MessageDataGenerator.java.
"""

import struct
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from coordinator_sim.errors import DataError
from coordinator_sim.wire.classic_types import bytes_bytes, int32_bytes, string_bytes
from coordinator_sim.wire.compact_types import (
    compact_bytes_bytes,
    compact_string_bytes,
    unsigned_varint_bytes,
)
from coordinator_sim.wire.frame_reader import MAX_STRING_LENGTH, FrameReader
from coordinator_sim.wire.schema import Data, Kind, Layout, Slot, default_of, refuse_absent

_NO_TAGS: Final = b"\x00"

Read = Callable[[FrameReader, str], Any]
"""Reads what is at the cursor; the text names it in errors."""
Write = Callable[[Any], bytes]

# -- reading -------------------------------------------------------------------------------

_FIXED: Final[dict[Kind, str]] = {
    Kind.BOOLEAN: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
    Kind.UUID: "16s",
}
"""The fields of fixed size, as `struct` writes them."""
_READ_FIXED: Final[dict[Kind, Read]] = {
    Kind.BOOLEAN: FrameReader.boolean,
    Kind.INT8: FrameReader.int8,
    Kind.INT16: FrameReader.int16,
    Kind.INT32: FrameReader.int32,
    Kind.INT64: FrameReader.int64,
    Kind.FLOAT64: FrameReader.float64,
    Kind.UUID: FrameReader.uuid,
}
_ELEMENT_KINDS: Final = {
    Kind.INT8S: Kind.INT8,
    Kind.INT32S: Kind.INT32,
    Kind.INT64S: Kind.INT64,
}
"""What a list of numbers consists of."""
# By whether the version is flexible, and whether the field may be null.
_READ_TEXT: Final[dict[tuple[bool, bool], Read]] = {
    (False, False): FrameReader.text,
    (False, True): FrameReader.nullable_text,
    (True, False): FrameReader.compact_text,
    (True, True): FrameReader.compact_nullable_text,
}
_READ_BYTES: Final[dict[tuple[bool, bool], Read]] = {
    (False, False): FrameReader.required_bytes,
    (False, True): FrameReader.nullable_bytes,
    (True, False): FrameReader.compact_bytes,
    (True, True): FrameReader.compact_nullable_bytes,
}


def _read_array(element: Read, *, flexible: bool, nullable: bool) -> Read:
    count_of = FrameReader.compact_count if flexible else FrameReader.count

    def array(reader: FrameReader, field: str) -> list[Any] | None:
        count = count_of(reader, field)
        if count >= 0:
            return [element(reader, field) for _ in range(count)]
        if nullable:
            return None
        raise reader.error(f"{field} is null")

    return array


def _read_numbers(code: str, *, flexible: bool, nullable: bool) -> Read:
    count_of = FrameReader.compact_count if flexible else FrameReader.count

    def array(reader: FrameReader, field: str) -> list[int] | None:
        count = count_of(reader, field)
        if count >= 0:
            return reader.numbers(code, count, field)
        if nullable:
            return None
        raise reader.error(f"{field} is null")

    return array


def _read_nullable(read: Read) -> Read:
    """A struct that may be null: a byte before it says so when it is negative."""
    return lambda reader, field: None if reader.int8(field) < 0 else read(reader, field)


def _read_slot(slot: Slot, *, flexible: bool) -> Read:
    if slot.kind in _READ_FIXED:
        return _READ_FIXED[slot.kind]
    if slot.kind is Kind.STRING:
        return _READ_TEXT[flexible, slot.nullable]
    if slot.kind is Kind.BYTES:
        return _READ_BYTES[flexible, slot.nullable]
    if slot.layout is not None:
        element = _read_struct(slot.layout)
        if slot.kind is Kind.STRUCT:
            return _read_nullable(element) if slot.nullable else element
    elif slot.kind is Kind.STRINGS:
        element = _READ_TEXT[flexible, False]
    else:
        code = _FIXED[_ELEMENT_KINDS[slot.kind]]
        return _read_numbers(code, flexible=flexible, nullable=slot.nullable)
    return _read_array(element, flexible=flexible, nullable=slot.nullable)


def _read_run(slots: list[Slot]) -> Read:
    """Reads numbers that stand side by side together; their names and values."""
    names = [slot.name for slot in slots]
    form = struct.Struct(">" + "".join(_FIXED[slot.kind] for slot in slots))
    return lambda reader, field: zip(names, reader.fixed(form, field), strict=True)


def _read_steps(layout: Layout) -> list[tuple[str, Read, str]]:
    """Name, way to read and place of every untagged field; a run of numbers has no name."""
    steps: list[tuple[str, Read, str]] = []
    plain = (slot for slot in layout.present if slot.tag is None)
    for fixed, group in groupby(plain, lambda slot: slot.kind in _FIXED):
        slots = list(group)
        if fixed and len(slots) > 1:
            steps.append(("", _read_run(slots), f"{layout.name}.{slots[0].name}"))
            continue
        steps += [
            (slot.name, _read_slot(slot, flexible=layout.flexible), f"{layout.name}.{slot.name}")
            for slot in slots
        ]
    return steps


def _read_tags(layout: Layout) -> Callable[[FrameReader, Data], None]:
    """Reads the tagged fields that end a struct; those that are not there are at their default."""
    tagged = [slot for slot in layout.present if slot.tag is not None]
    known = {
        slot.tag: (slot.name, _read_slot(slot, flexible=True), f"{layout.name}.{slot.name}")
        for slot in tagged
    }
    where = f"{layout.name}'s tags"

    def read(reader: FrameReader, message: Data) -> None:
        for slot in tagged:
            message[slot.name] = default_of(slot)
        for _ in range(reader.tag_count(where)):
            tag = reader.unsigned_varint(where)
            size = reader.unsigned_varint(where)
            if tag in known:
                name, step, field = known[tag]
                message[name] = step(reader, field)
            else:
                reader.pass_over(size, where)

    return read


def _read_struct(layout: Layout) -> Read:
    steps = _read_steps(layout)
    flexible = layout.flexible
    tags = _read_tags(layout) if any(slot.tag is not None for slot in layout.present) else None

    def read(reader: FrameReader, field: str) -> Data:
        message: Data = {}
        for name, step, where in steps:
            if name:
                message[name] = step(reader, where)
            else:
                message.update(step(reader, where))
        if tags is not None:
            tags(reader, message)
        elif flexible:
            reader.pass_over_tags(field)
        return message

    return read


def reader_of(layout: Layout) -> Callable[[FrameReader], Data]:
    """A function that reads one struct at a reader's cursor, with every field of the version.

    It raises `WireFormatError` where the bytes do not parse.
    """
    read = _read_struct(layout)
    return lambda reader: read(reader, layout.name)


# -- writing -------------------------------------------------------------------------------


def _write_text(where: str, *, flexible: bool) -> Write:
    written = compact_string_bytes if flexible else string_bytes

    def text(value: str | None) -> bytes:
        # A character has four bytes at most, so that most texts need no exact count.
        if value is not None and len(value) * 4 > MAX_STRING_LENGTH:
            size = len(value.encode(errors="replace"))
            if size > MAX_STRING_LENGTH:
                raise DataError(
                    f"{where} has {size} bytes, at most {MAX_STRING_LENGTH} can be said"
                )
        return written(value)

    return text


def _write_scalar(kind: Kind, where: str, *, flexible: bool, nullable: bool) -> Write:
    if kind in _FIXED:
        return struct.Struct(">" + _FIXED[kind]).pack
    if kind is Kind.STRING:
        write: Write = _write_text(where, flexible=flexible)
    else:
        write = compact_bytes_bytes if flexible else bytes_bytes
    return write if nullable else _write_required(write, where)


def _write_required(write: Write, where: str) -> Write:
    def required(value: object) -> bytes:
        if value is None:
            raise DataError(f"{where} must not be null")
        return write(value)

    return required


def _write_array(element: Write, *, flexible: bool) -> Write:
    null = b"\x00" if flexible else b"\xff\xff\xff\xff"

    def array(values: list[Any] | None) -> bytes:
        if values is None:
            return null
        size = unsigned_varint_bytes(len(values) + 1) if flexible else int32_bytes(len(values))
        return size + b"".join([element(value) for value in values])

    return array


def _write_numbers(code: str, *, flexible: bool) -> Write:
    null = b"\x00" if flexible else b"\xff\xff\xff\xff"

    def array(values: list[int] | None) -> bytes:
        if values is None:
            return null
        count = len(values)
        size = unsigned_varint_bytes(count + 1) if flexible else int32_bytes(count)
        return size + struct.pack(f">{count}{code}", *values)

    return array


def _write_nullable(write: Write) -> Write:
    """A struct that may be null: a byte before it says whether it is."""
    return lambda value: b"\xff" if value is None else b"\x01" + write(value)


def _write_slot(slot: Slot, where: str, *, flexible: bool) -> Write:
    if slot.layout is not None:
        element = writer_of(slot.layout)
        if slot.kind is Kind.STRUCT:
            return _write_nullable(element) if slot.nullable else _write_required(element, where)
        array = _write_array(element, flexible=flexible)
    elif slot.kind is Kind.STRINGS:
        element = _write_scalar(Kind.STRING, where, flexible=flexible, nullable=False)
        array = _write_array(element, flexible=flexible)
    elif slot.kind in _ELEMENT_KINDS:
        array = _write_numbers(_FIXED[_ELEMENT_KINDS[slot.kind]], flexible=flexible)
    else:
        return _write_scalar(slot.kind, where, flexible=flexible, nullable=slot.nullable)
    return array if slot.nullable else _write_required(array, where)


def _at_default(slot: Slot, value: Any) -> bool:  # noqa: ANN401 - a value of the slot's kind
    """Whether a field says nothing more than its absence does."""
    if slot.kind is Kind.STRUCT and slot.layout is not None and value is not None:
        return slot.default is not None and all(
            _at_default(inner, value.get(inner.name, inner.default))
            for inner in slot.layout.present
        )
    return bool(value == slot.default)


def _write_tags(layout: Layout) -> Callable[[Data], bytes]:
    """Writes the tagged fields that are not at their default, by ascending tags."""
    tagged = sorted(
        (slot.tag, slot.name, slot, _write_slot(slot, f"{layout.name}.{slot.name}", flexible=True))
        for slot in layout.present
        if slot.tag is not None
    )

    def write(message: Data) -> bytes:
        parts = []
        for tag, name, slot, step in tagged:
            if name in message and not _at_default(slot, message[name]):
                said = step(message[name])
                parts.append(unsigned_varint_bytes(tag) + unsigned_varint_bytes(len(said)) + said)
        return unsigned_varint_bytes(len(parts)) + b"".join(parts)

    return write


def _write_run(layout: Layout, slots: list[Slot]) -> Write:
    """Writes numbers that stand side by side together, from the whole message."""
    form = struct.Struct(">" + "".join(_FIXED[slot.kind] for slot in slots))
    defaults = {slot.name: slot.default for slot in slots}
    values_of = itemgetter(*defaults)

    def write(message: Data) -> bytes:
        try:
            return form.pack(*values_of(message))
        except KeyError:
            return write({**defaults, **message})
        except struct.error:
            raise _misfit(layout, slots, message) from None

    return write


def _misfit(layout: Layout, slots: list[Slot], message: Data) -> DataError:
    """Which of these numbers does not fit, and why."""
    for slot in slots:
        value = message.get(slot.name, slot.default)
        try:
            struct.pack(">" + _FIXED[slot.kind], value)
        except struct.error as error:
            return DataError(f"{layout.name}.{slot.name}: {value!r} does not fit: {error}")
    return DataError(f"{layout.name}: a number does not fit")


def _write_steps(layout: Layout) -> list[tuple[str, Any, Write]]:
    """Name, default and way to write of every untagged field; a run of numbers has no name."""
    steps: list[tuple[str, Any, Write]] = []
    plain = (slot for slot in layout.present if slot.tag is None)
    for fixed, group in groupby(plain, lambda slot: slot.kind in _FIXED):
        slots = list(group)
        if fixed and len(slots) > 1:
            steps.append(("", None, _write_run(layout, slots)))
            continue
        for slot in slots:
            where = f"{layout.name}.{slot.name}"
            steps.append(
                (slot.name, slot.default, _write_slot(slot, where, flexible=layout.flexible))
            )
    return steps


def writer_of(layout: Layout) -> Callable[[Data], bytes]:
    """A function that writes one struct; fields that it does not name are at their defaults.

    It raises `DataError` for a value that the field's type cannot say, and `UnsupportedVersion`
    for a field that the version lacks and that must not be dropped.
    """
    flexible = layout.flexible
    steps = _write_steps(layout)
    refuses = any(not field.ignorable for field in layout.absent)
    tags = _write_tags(layout) if any(slot.tag is not None for slot in layout.present) else None

    def write(message: Data) -> bytes:
        if refuses:
            refuse_absent(layout, message)
        parts = []
        for name, default, step in steps:
            try:
                parts.append(step(message.get(name, default) if name else message))
            except struct.error as error:
                value = message.get(name, default)
                raise DataError(f"{layout.name}.{name}: {value!r} does not fit: {error}") from None
        if tags is not None:
            parts.append(tags(message))
        elif flexible:
            parts.append(_NO_TAGS)
        return b"".join(parts)

    return write
