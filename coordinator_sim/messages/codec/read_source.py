"""The source of the functions that read messages: straight through the bytes, field after field.

The bounds are those of `frame_reader`, whose careful cursor takes over wherever a length is long
or the bytes are broken; so every refusal names its field and its offset. Unknown tagged fields are
passed over.

Source: kafka 4.4, generator/.../MessageDataGenerator.java.
"""

import struct
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError, WireFormatError
from coordinator_sim.kafka.errors import ERRORS, ErrorCode
from coordinator_sim.messages.codec.frame_reader import FrameReader
from coordinator_sim.messages.codec.source import Explain, Scope, Source
from coordinator_sim.messages.schema import NUMBERS, Field, Kind, Layout, VersionField

Careful = Callable[[FrameReader, str], Any]
"""Reads what is at a cursor; the text names it in errors."""

FIXED: Final = {**NUMBERS, Kind.UUID: "16s"}
"""The fields of fixed size, as Python's `struct` module writes them."""
_INT32: Final = struct.Struct(">i")
_FAULTS: Final = (IndexError, struct.error)
# By whether the version is flexible, and whether the field may be null.
_TEXTS: Final[dict[tuple[bool, bool], Careful]] = {
    (False, False): FrameReader.text,
    (False, True): FrameReader.nullable_text,
    (True, False): FrameReader.compact_text,
    (True, True): FrameReader.compact_nullable_text,
}
_BYTES: Final[dict[tuple[bool, bool], Careful]] = {
    (False, False): FrameReader.required_bytes,
    (False, True): FrameReader.nullable_bytes,
    (True, False): FrameReader.compact_bytes,
    (True, True): FrameReader.compact_nullable_bytes,
}


def _carefully(read: Careful) -> Callable[[bytes, int, str], tuple[Any, int]]:
    """A reading of the cursor as the compiled functions call it: the value and the place behind."""

    def at(data: bytes, start: int, field: str) -> tuple[Any, int]:
        reader = FrameReader(data, "frame", start=start)
        value = read(reader, field)
        return value, reader.offset

    return at


def _by_reading(read: Careful, field: str) -> Explain:
    """The error of malformed bytes, found by reading them again with the checking reader."""

    def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
        try:
            read(FrameReader(scope["data"], "frame", start=scope["at"]), field)
        except WireFormatError as error:
            return error
        raise fault

    return explain


def _by_counting(code: str, field: str) -> Explain:
    def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
        count = scope["n"]
        return _by_reading(lambda reader, name: reader.numbers(code, count, name), field)(
            scope, fault
        )

    return explain


def _null(field: str, at: int) -> WireFormatError:
    return WireFormatError(f"frame: {field} is null", at)


def default_of(field: Field, struct: type[Struct] | None) -> object:
    """What our struct holds where a version lacks the field."""
    if field.is_error_code:
        return ErrorCode(field.default)
    if field.kind is Kind.STRUCT and field.default is not None and struct is not None:
        return struct()
    return field.default


class Reading:
    """Writes the source that reads a message.

    Args:
        name: Of the function.
        structs: The module of our structs.
        start: Where in the bytes to begin.
    """

    __slots__ = ("_source", "_structs")

    def __init__(self, name: str, structs: str, *, start: int = 0) -> None:
        self._source = Source(name)
        self._structs = import_module(structs)
        source = self._source
        source.indent(f"def {name}(data, at={start}):")
        source.add("size = len(data)")
        source.indent("try:")

    def compiled(self, result: str) -> Callable[..., Any]:
        """The function; `result` is what it returns."""
        source = self._source
        source.add(f"return {result}")
        source.dedent()
        source.indent(f"except {source.constant('faults', _FAULTS)} as fault:")
        source.add("raise explained(fault) from None")
        return source.compiled()

    # -- scalars -----------------------------------------------------------------------

    def number(self, code: str, field: str) -> str:
        """A number that no field of the layout is: of a header."""
        (value,) = self._run(code, [field])
        return value

    def _run(self, code: str, fields: Sequence[str]) -> list[str]:
        """Fields of fixed size that stand side by side."""
        source = self._source
        form = struct.Struct(">" + code)
        values = [source.variable() for _ in fields]
        unpack = source.constant("unpack", form.unpack_from)
        explain = _by_reading(lambda reader, field: reader.fixed(form, field), fields[0])
        source.add(f"({', '.join(values)},) = {unpack}(data, at)", explain)
        source.add(f"at += {form.size}")
        return values

    def text(self, field: str, *, flexible: bool, nullable: bool) -> str:
        """A string."""
        careful = _TEXTS[flexible, nullable]
        return self._sized(careful, field, "str({}, 'utf-8', 'replace')", flexible, nullable)

    def _sized(
        self, careful: Careful, field: str, value_of: str, flexible: bool, nullable: bool
    ) -> str:
        """A string or bytes with a short length; the careful cursor reads any other."""
        source = self._source
        value = source.variable()
        is_text = careful in _TEXTS.values()
        explain = _by_reading(careful, field)
        if flexible:
            size, fits, width, null = "n = data[at]", "0 < n < 128", 1, "n == 0"
            end = "at + n"
        elif is_text:
            size, fits, width = "n = data[at] << 8 | data[at + 1]", "n < 32768", 2
            null, end = "n > 32767", "at + 2 + n"
        else:
            unpack = source.constant("unpack", _INT32.unpack_from)
            size, fits, width, null = f"(n,) = {unpack}(data, at)", "n >= 0", 4, "n < 0"
            end = "at + 4 + n"
        source.add(size, explain)
        source.indent(f"if {fits} and (end := {end}) <= size:")
        source.add(f"{value} = {value_of.format(f'data[at + {width}:end]')}")
        source.add("at = end")
        source.dedent()
        if flexible:
            long = "(end := at + 1 + (n & 127 | high << 7)) <= size"
            source.indent(f"elif n > 127 and (high := data[at + 1]) < 128 and {long}:", explain)
            source.add(f"{value} = {value_of.format('data[at + 2:end]')}")
            source.add("at = end")
            source.dedent()
        if nullable:
            source.indent(f"elif {null}:")
            source.add(f"{value} = None")
            source.add(f"at += {width}")
            source.dedent()
        source.indent("else:")
        slow = source.constant("slow", _SLOW[careful])
        source.add(f"{value}, at = {slow}(data, at, {field!r})")
        source.dedent()
        return value

    # -- structs -----------------------------------------------------------------------

    def tags(self, field: str) -> None:
        """Tagged fields of which none is known."""
        source = self._source
        source.indent("if data[at]:", _by_reading(FrameReader.tag_count, field))
        slow = source.constant("slow", _SLOW[FrameReader.pass_over_tags])
        source.add(f"_, at = {slow}(data, at, {field!r})")
        source.dedent()
        source.indent("else:")
        source.add("at += 1")
        source.dedent()

    def struct(self, layout: Layout) -> str:
        """The fields of a struct; the expression that makes it."""
        values: dict[str, str] = {}
        inlined: dict[str, str] = {}
        plain = [each for each in layout.present if each.field.tag is None]
        for fixed, group in groupby(plain, lambda each: each.field.kind in FIXED):
            fields = list(group)
            if fixed:
                read = self._fixed(layout, fields)
            else:
                read = [self._field(layout, each) for each in fields]
            for each, value in zip(fields, read, strict=True):
                (inlined if each.is_inlined else values)[each.field.name] = value
        if layout.is_flexible:
            values |= self._known_tags(layout)
        if layout.entries is not None:
            values[layout.entries.name] = f"({self._entry(layout.entries, inlined)},)"
        return self._made(layout.struct_name, layout.fields, values)

    def _entry(self, entries: Field, inlined: dict[str, str]) -> str:
        """The one entry of a list that the version has no list for."""
        if entries.element is Kind.STRUCT:
            return self._made(entries.struct_name, entries.fields, inlined)
        (value,) = inlined.values()
        return value

    def _made(self, name: str, fields: Sequence[Field], values: dict[str, str]) -> str:
        """The call that makes a struct; fields behind the last one read keep their defaults."""
        arguments = [
            values[field.name] if field.name in values else self._default(field) for field in fields
        ]
        while arguments and fields[len(arguments) - 1].name not in values:
            arguments.pop()
        made = self._source.constant("Struct", getattr(self._structs, name))
        return f"{made}({', '.join(arguments)})"

    def _default(self, field: Field) -> str:
        struct = getattr(self._structs, field.struct_name) if field.struct_name else None
        value = default_of(field, struct)
        if value is None or type(value) in {bool, int, str} or value == ():
            return repr(value)
        return self._source.constant("default", value)

    def _fixed(self, layout: Layout, fields: list[VersionField]) -> list[str]:
        source = self._source
        names = [f"{layout.name}.{each.field.name}" for each in fields]
        values = self._run("".join(FIXED[each.field.kind] for each in fields), names)
        for each, value in zip(fields, values, strict=True):
            if each.field.is_error_code:
                errors = source.constant("errors", ERRORS)
                source.add(f"{value} = {errors}[{value}]")
        return values

    def _field(self, layout: Layout, each: VersionField) -> str:
        """A field; the variable that holds it."""
        kind, flexible, nullable = each.field.kind, layout.is_flexible, each.is_nullable
        where = f"{layout.name}.{each.field.name}"
        if kind in FIXED:
            return self._fixed(layout, [each])[0]
        if kind is Kind.STRING:
            return self.text(where, flexible=flexible, nullable=nullable)
        if kind is Kind.BYTES:
            return self._sized(_BYTES[flexible, nullable], where, "{}", flexible, nullable)
        if kind is Kind.ARRAY:
            return self._array(each, where, flexible=flexible)
        return self._one_struct(each, where)

    def _one_struct(self, each: VersionField, where: str) -> str:
        source = self._source
        value = source.variable()
        assert each.layout is not None  # noqa: S101 - INVARIANT: a struct has a layout
        if not each.is_nullable:
            source.add(f"{value} = {self.struct(each.layout)}")
            return value
        source.add("n = data[at]", _by_reading(FrameReader.int8, where))
        source.add("at += 1")
        source.indent("if n > 127:" if each.field.tag is None else "if not n:")
        source.add(f"{value} = None")
        source.dedent()
        source.indent("else:")
        source.add(f"{value} = {self.struct(each.layout)}")
        source.dedent()
        return value

    def _known_tags(self, layout: Layout) -> dict[str, str]:
        """The tagged fields that end a struct, by name; those not there are at their defaults."""
        source = self._source
        tagged = [each for each in layout.present if each.field.tag is not None]
        where = f"{layout.name}'s tags"
        if not tagged:
            self.tags(where)
            return {}
        values = {each.field.name: source.variable() for each in tagged}
        for each in tagged:
            source.add(f"{values[each.field.name]} = {self._default(each.field)}")
        varint = source.constant("varint", _SLOW[FrameReader.unsigned_varint])
        count = source.constant("tag_count", _SLOW[FrameReader.tag_count])
        source.add(f"tag_count, at = {count}(data, at, {where!r})")
        source.indent("for _ in range(tag_count):")
        source.add(f"tag, at = {varint}(data, at, {where!r})")
        source.add(f"n, at = {varint}(data, at, {where!r})")
        branch = "if"
        for each in tagged:
            source.indent(f"{branch} tag == {each.field.tag}:")
            source.add(f"{values[each.field.name]} = {self._field(layout, each)}")
            source.dedent()
            branch = "elif"
        source.indent("else:")
        source.add(f"at = {source.constant('pass_over', _pass_over)}(data, at, n, {where!r})")
        source.dedent(2)
        return values

    # -- arrays ------------------------------------------------------------------------

    def _array(self, each: VersionField, where: str, *, flexible: bool) -> str:
        source = self._source
        value = source.variable()
        if flexible:
            source.add("n = data[at]", _by_reading(FrameReader.compact_count, where))
            source.indent("if n < 128:")
            source.add("at += 1")
            source.dedent()
            source.indent("else:")
            varint = source.constant("varint", _SLOW[FrameReader.unsigned_varint])
            source.add(f"n, at = {varint}(data, at, {where!r})")
            source.dedent()
            source.add("n -= 1")
        else:
            unpack = source.constant("unpack", _INT32.unpack_from)
            explain = _by_reading(FrameReader.count, where)
            source.add(f"(n,) = {unpack}(data, at)", explain)
            source.add("at += 4")
        source.indent("if n < 0:")
        null = source.constant("null", _null)
        source.add(f"{value} = None" if each.is_nullable else f"raise {null}({where!r}, at)")
        source.dedent()
        source.indent("else:")
        bounded = source.constant("bounded", _bounded)
        source.indent("if n > size - at or n > 1_000_000:")
        source.add(f"{bounded}(data, at, n, {where!r})")
        source.dedent()
        self._elements(each, value, where, flexible=flexible)
        source.dedent()
        return value

    def _elements(self, each: VersionField, value: str, where: str, *, flexible: bool) -> None:
        source = self._source
        element = each.field.element
        if element in NUMBERS:
            code = NUMBERS[element]
            unpack = source.constant("unpack", struct.unpack_from)
            explain = _by_counting(code, where)
            source.add(f"{value} = {unpack}(f'>{{n}}{code}', data, at)", explain)
            source.add(f"at += n * {struct.calcsize('>' + code)}")
            return
        items = source.variable()
        is_tried = each.layout is not None and self._plain_rows(each.layout, items)
        if is_tried:
            source.indent(f"if len({items}) != n:")
        source.add(f"{items} = []")
        source.indent("for _ in range(n):")
        if each.layout is not None:
            made = self.struct(each.layout)
        else:
            made = self.text(where, flexible=flexible, nullable=False)
        source.add(f"{items}.append({made})")
        source.dedent()
        if is_tried:
            source.dedent()
            source.indent("else:")
            source.add("at = end")
            source.dedent()
        source.add(f"{value} = tuple({items})")

    def _plain_rows(self, layout: Layout, items: str) -> bool:
        """Read structs whose texts are all empty as rows of one size; whether there is such a row.

        Most partitions of a commit are so. A row is where it seems to be when all before it are
        plain, so that one that is not is counted out, and the structs are read one by one.
        """
        source = self._source
        code, names, conditions = "", [], []
        values: dict[str, str] = {}
        for each in layout.present:
            field = each.field
            name = source.variable()
            names.append(name)
            values[field.name] = name
            if field.tag is not None or field.kind not in {*FIXED, Kind.STRING}:
                return False
            if field.kind is Kind.STRING:
                values[field.name] = "''"
                code += "B" if layout.is_flexible else "h"
                conditions.append(f"{name} == 1" if layout.is_flexible else f"not {name}")
            else:
                code += FIXED[field.kind]
                if field.is_error_code:
                    values[field.name] = f"{source.constant('errors', ERRORS)}[{name}]"
        if layout.is_flexible:
            code += "B"
            names.append(source.variable())
            conditions.append(f"not {names[-1]}")
        row = struct.Struct(">" + code)
        rows = f"{source.constant('rows', row.iter_unpack)}(data[at:end])"
        made = self._made(layout.struct_name, layout.fields, values)
        test = f" if {' and '.join(conditions)}" if conditions else ""
        source.add(f"end = at + n * {row.size}")
        one = f"for ({', '.join(names)},) in {rows}{test}"
        source.add(f"{items} = [{made} {one}] if end <= size else ()")
        return True


def _bounded(data: bytes, at: int, count: int, field: str) -> None:
    """Refuse an array that counts more elements than there can be."""
    FrameReader(data, "frame", start=at).bounded(count, field)


def _pass_over(data: bytes, at: int, size: int, field: str) -> int:
    reader = FrameReader(data, "frame", start=at)
    reader.pass_over(size, field)
    return reader.offset


_SLOW: Final = {
    read: _carefully(read)
    for read in (
        *_TEXTS.values(),
        *_BYTES.values(),
        FrameReader.pass_over_tags,
        FrameReader.tag_count,
        FrameReader.unsigned_varint,
    )
}
