"""The source of the functions that write messages: straight through the fields of our structs.

Numbers that stand side by side are packed together, constants among them; whatever does not fit is
looked at again, to say which field it is.

Source: kafka 4.4, generator/.../MessageDataGenerator.java; the generated `write` methods for what
a version cannot say.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

from coordinator_sim.errors import CoordinatorSimError, DataError, UnsupportedVersion
from coordinator_sim.messages.codec.compact_types import unsigned_varint_bytes
from coordinator_sim.messages.codec.frame_reader import MAX_STRING_LENGTH
from coordinator_sim.messages.codec.read_source import FIXED, default_of
from coordinator_sim.messages.codec.source import Explain, Scope, Source
from coordinator_sim.messages.schema import NUMBERS, Field, Kind, Layout, VersionField

_SHORT: Final = tuple(bytes([size + 1]) for size in range(127))
"""Length -> how compact strings and bytes of less than 127 bytes say it."""
_BATCH: Final = 1_000
"""Fields, or rows of numbers, that are one step."""
_MOST_PARTS: Final = 10_000


def _must_not_be_null(field: str) -> Explain:
    def explain(_scope: Scope, _fault: Exception) -> CoordinatorSimError:
        return DataError(f"{field} must not be null")

    return explain


def _length(size: int, field: str) -> bytes:
    """The length prefix of a compact string."""
    if size > MAX_STRING_LENGTH:
        raise DataError(f"{field} has {size} bytes, at most {MAX_STRING_LENGTH} can be said")
    return unsigned_varint_bytes(size + 1)


def _cannot_say(layout: Layout, field: Field) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"{layout.name} version {layout.version} cannot say {field.name}: leave it at "
        f"{field.default!r}"
    )


def _one_entry(layout: Layout, entries: Field) -> Explain:
    def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
        count = len(getattr(scope["message"], entries.attribute))
        if count == 1:
            raise fault
        return UnsupportedVersion(
            f"{layout.name} version {layout.version} has room for one of {entries.name}, not "
            f"{count}: use {entries.since} or newer"
        )

    return explain


class _Run:
    """Numbers and constants that are packed together.

    Attributes:
        code: How Python's `struct` module writes them; x is a byte of zero.
        values: The expressions of the numbers.
        checks: Name, code and expression of each number, to say which does not fit.
    """

    __slots__ = ("checks", "code", "values")

    def __init__(self) -> None:
        self.code = ""
        self.values: list[str] = []
        self.checks: list[tuple[str, str, str]] = []

    def explain(self, scope: Scope, fault: Exception) -> CoordinatorSimError:
        """Which number does not fit, and why."""
        for field, code, expression in self.checks:
            value = eval(expression, {"len": len}, dict(scope))  # noqa: S307 - our own source
            try:
                struct.pack(">" + code, value)
            except struct.error as error:
                if expression.startswith("len("):
                    return DataError(
                        f"{field} has {value} bytes, at most {MAX_STRING_LENGTH} can be said"
                    )
                return DataError(f"{field}: {value!r} does not fit: {error}")
        raise fault


class Writing:
    """Writes the source that writes a message.

    Args:
        name: Of the function.
        arguments: Of the function, before the message.
        structs: The module of our structs.
        in_steps: Whether the function is a generator, which yields how many fields it has written
            whenever these are many, and returns the bytes.
    """

    __slots__ = ("_in_steps", "_out", "_returned", "_run", "_source", "_structs")

    def __init__(
        self, name: str, arguments: Sequence[str], structs: str, *, in_steps: bool = False
    ) -> None:
        self._source = Source(name)
        self._in_steps = in_steps
        self._returned = "b''.join([*joined, *parts])" if in_steps else "b''.join(parts)"
        self._structs = import_module(structs)
        self._run = _Run()
        self._out = "parts"
        source = self._source
        source.indent(f"def {name}({', '.join((*arguments, 'message'))}):")
        source.add("joined, parts, cost = [], [], 0" if in_steps else "parts = []")
        source.indent("try:")

    def begin_next(self) -> None:
        """The bytes up to here are the first of two that the function returns."""
        self._flush()
        self._source.add("first = b''.join(parts)")
        self._source.add("parts.clear()")
        self._returned = f"first, {self._returned}"

    def compiled(self) -> Callable[..., Any]:
        """The function."""
        source = self._source
        self._flush()
        self._step("0")
        source.dedent()
        faults = (AttributeError, IndexError, TypeError, ValueError, struct.error)
        source.indent(f"except {source.constant('faults', faults)} as fault:")
        source.add("raise explained(fault) from None")
        source.dedent()
        source.add(f"return {self._returned}")
        return source.compiled()

    # -- numbers -----------------------------------------------------------------------

    def number(self, code: str, field: str, expression: str) -> None:
        """A number, to be packed with its neighbours."""
        self._run.code += code
        self._run.values.append(expression)
        self._run.checks.append((field, code, expression))

    def constant(self, code: str, value: int) -> None:
        """A number that is always the same."""
        self.number(code, "a constant", str(value))

    def no_tags(self) -> None:
        """A struct's end without tagged fields."""
        self._run.code += "x"

    def _flush(self) -> None:
        """Pack what has been gathered."""
        run = self._run
        if not run.code:
            return
        self._run = _Run()
        if run.values:
            pack = self._source.constant("pack", struct.Struct(">" + run.code).pack)
            self._add(f"{pack}({', '.join(run.values)})", run.explain)
        else:
            self._add(repr(bytes(len(run.code))))

    def _step(self, fields: str) -> None:
        """Count fields; yield a large count, and join the parts when there are many."""
        if not self._in_steps:
            return
        source = self._source
        source.add(f"cost += {fields}")
        source.indent(f"if cost >= {_BATCH}:")
        source.add("yield cost")
        source.add("cost = 0")
        if self._out == "parts":
            source.indent(f"if len(parts) > {_MOST_PARTS}:")
            source.add("joined.append(b''.join(parts))")
            source.add("parts.clear()")
            source.dedent()
        source.dedent()

    def _add(self, expression: str, explain: Explain | None = None) -> None:
        self._source.add(f"{self._out}.append({expression})", explain)

    # -- scalars -----------------------------------------------------------------------

    def text(self, field: str, expression: str, *, flexible: bool, nullable: bool) -> None:
        """A string. Lone surrogates become `?`, as in Java."""
        raw = self._source.variable()
        self._sized(field, expression, nullable=nullable, raw=raw, flexible=flexible, is_text=True)

    def _sized(
        self,
        field: str,
        expression: str,
        *,
        raw: str,
        flexible: bool,
        nullable: bool,
        is_text: bool,
    ) -> None:
        source = self._source
        null = b"\x00" if flexible else b"\xff\xff" if is_text else b"\xff\xff\xff\xff"
        if nullable:
            self._flush()
            source.indent(f"if ({raw} := {expression}) is None:")
            self._add(repr(null))
            source.dedent()
            if is_text and flexible:
                source.indent(f"elif not {raw}:")
                self._add(repr(_SHORT[0]))
                source.dedent()
            source.indent("else:")
            expression = raw
        encoded = f"{expression}.encode('utf-8', 'replace')" if is_text else expression
        explain = _must_not_be_null(field)
        if encoded != raw:
            source.add(f"{raw} = {encoded}", explain)
        if flexible:
            self._flush()
            size = source.variable()
            source.add(f"{size} = len({raw})", explain)
            short = source.constant("short", _SHORT)
            long = source.constant("long", _length if is_text else _long_bytes)
            self._add(
                f"({short}[{size}] if {size} < 127 else {long}({size}, {field!r})) + {raw}", explain
            )
        else:
            self.number("h" if is_text else "i", field, f"len({raw})")
            self._flush_sized(field)
            self._add(raw)
        if nullable:
            source.dedent()

    def _flush_sized(self, field: str) -> None:
        """Pack up to a length; bytes that are null have none."""
        run = self._run
        null = _must_not_be_null(field)

        def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
            if isinstance(fault, TypeError):
                return null(scope, fault)
            return _Run.explain(run, scope, fault)

        self._run = _Run()
        pack = self._source.constant("pack", struct.Struct(">" + run.code).pack)
        self._add(f"{pack}({', '.join(run.values)})", explain)

    # -- structs -----------------------------------------------------------------------

    def struct(self, layout: Layout, value: str) -> None:
        """The fields of a struct, which is in a variable."""
        for field in layout.absent:
            if not field.ignorable:
                self._refuse_other_than_default(layout, field, value)
        entry = ""
        if layout.entries is not None:
            self._flush()
            entry = self._source.variable()
            list_name = f"{value}.{layout.entries.attribute}"
            self._source.add(f"({entry},) = {list_name}", _one_entry(layout, layout.entries))
        plain = [each for each in layout.present if each.field.tag is None]
        for each in plain:
            owner = entry if each.is_inlined else value
            is_entry = each.is_inlined and not (layout.entries and layout.entries.fields)
            expression = owner if is_entry else f"{owner}.{each.field.attribute}"
            self._field(layout, each, expression)
        if layout.is_flexible:
            self._tags(layout, value)

    def _refuse_other_than_default(self, layout: Layout, field: Field, value: str) -> None:
        source = self._source
        said = f"{value}.{field.attribute}"
        if field.default is None:
            source.indent(f"if {said} is not None:")
        else:
            source.indent(f"if {said} != {self._default(field)}:")
        refusal = source.constant("refusal", partial(_cannot_say, layout, field))
        source.add(f"raise {refusal}()")
        source.dedent()

    def _default(self, field: Field) -> str:
        made = getattr(self._structs, field.struct_name) if field.struct_name else None
        return self._source.constant("default", default_of(field, made))

    def _field(self, layout: Layout, each: VersionField, expression: str) -> None:
        kind, flexible, nullable = each.field.kind, layout.is_flexible, each.is_nullable
        where = f"{layout.name}.{each.field.name}"
        if kind in FIXED:
            self.number(FIXED[kind], where, expression)
        elif kind is Kind.STRING:
            self.text(where, expression, flexible=flexible, nullable=nullable)
        elif kind is Kind.BYTES:
            raw = self._source.variable()
            self._sized(
                where, expression, raw=raw, flexible=flexible, nullable=nullable, is_text=False
            )
        elif kind is Kind.ARRAY:
            self._array(each, expression, where, flexible=flexible)
        else:
            self._one_struct(each, expression, where)

    def _one_struct(self, each: VersionField, expression: str, where: str) -> None:
        source = self._source
        value = source.variable()
        assert each.layout is not None  # noqa: S101 - INVARIANT: a struct has a layout
        self._flush()
        source.add(f"{value} = {expression}")
        if not each.is_nullable:
            source.indent(f"if {value} is None:")
            refusal = source.constant("refusal", partial(DataError, f"{where} must not be null"))
            source.add(f"raise {refusal}()")
            source.dedent()
            self.struct(each.layout, value)
            return
        source.indent(f"if {value} is None:")
        # What says that there is none is a byte below 0, but an unsigned number in a tagged field.
        self._add(repr(b"\xff" if each.field.tag is None else b"\x00"))
        source.dedent()
        source.indent("else:")
        self.constant("b", 1)
        self.struct(each.layout, value)
        self._flush()
        source.dedent()

    def _tags(self, layout: Layout, value: str) -> None:
        """The tagged fields that are not at their default, by ascending tags."""
        tagged = [each for each in layout.present if each.field.tag is not None]
        if not tagged:
            self.no_tags()
            return
        self._flush()
        source = self._source
        tags, outer = source.variable(), self._out
        short = source.constant("short", _SHORT)
        varint = source.constant("varint", unsigned_varint_bytes)
        source.add(f"{tags} = []")
        for each in sorted(tagged, key=lambda each: each.field.tag or 0):
            said = f"{value}.{each.field.attribute}"
            source.indent(f"if {said} != {self._default(each.field)}:")
            self._out = source.variable()
            source.add(f"{self._out} = []")
            self._field(layout, each, said)
            self._flush()
            raw = source.variable()
            source.add(f"{raw} = b''.join({self._out})")
            tag = unsigned_varint_bytes(each.field.tag or 0)
            size = f"{short}[len({raw}) - 1] if len({raw}) < 128 else {varint}(len({raw}))"
            source.add(f"{tags}.append({tag!r} + ({size}) + {raw})")
            source.dedent()
            self._out = outer
        # Fewer than 128 tags: their number is a varint of one byte.
        self._add(f"bytes((len({tags}),)) + b''.join({tags})")

    # -- arrays ------------------------------------------------------------------------

    def _array(self, each: VersionField, expression: str, where: str, *, flexible: bool) -> None:
        source = self._source
        value, count = source.variable(), source.variable()
        self._flush()
        source.add(f"{value} = {expression}")
        if each.is_nullable:
            source.indent(f"if {value} is None:")
            self._add(repr(b"\x00" if flexible else b"\xff\xff\xff\xff"))
            source.dedent()
            source.indent("else:")
        source.add(f"{count} = len({value})", _must_not_be_null(where))
        if flexible:
            short = source.constant("short", _SHORT)
            varint = source.constant("varint", unsigned_varint_bytes)
            self._add(f"{short}[{count}] if {count} < 127 else {varint}({count} + 1)")
        else:
            self.number("i", where, count)
        self._elements(each, value, count, where, flexible=flexible)
        self._flush()
        if each.is_nullable:
            source.dedent()

    def _elements(
        self, each: VersionField, value: str, count: str, where: str, *, flexible: bool
    ) -> None:
        source = self._source
        element = each.field.element
        self._flush()
        if element in NUMBERS:
            pack = source.constant("pack", struct.pack)
            explain = _misfit_in(where, NUMBERS[element], value)
            self._add(f"{pack}(f'>{{{count}}}{NUMBERS[element]}', *{value})", explain)
            return
        item = source.variable()
        if each.layout is not None and self._rows(each.layout, value, count, item):
            return
        source.indent(f"for {item} in {value}:")
        if each.layout is not None:
            self.struct(each.layout, item)
        else:
            self.text(where, item, flexible=flexible, nullable=False)
        self._flush()
        self._step(str(len(each.layout.present)) if each.layout is not None else "1")
        source.dedent()

    def _rows(self, layout: Layout, values: str, count: str, item: str) -> bool:
        """Pack structs of numbers and empty texts as rows; whether the layout has such structs.

        Most partitions of a fetch are so. If any text is not empty, the structs of the chunk are
        written one by one.
        """
        plain = [each for each in layout.present if each.field.tag is None]
        texts = [each for each in plain if each.field.kind is Kind.STRING]
        if any(each.field.kind not in {*FIXED, Kind.STRING} for each in layout.present):
            return False
        if plain != list(layout.present) or any(not field.ignorable for field in layout.absent):
            return False
        source = self._source
        if self._in_steps:
            chunk = source.variable()
            batched = source.constant("batched", _batched)
            few = f"({values},) if {count} <= {_BATCH} else {batched}({values})"
            source.indent(f"for {chunk} in {few}:")
            values = chunk
        run = self._row(layout, plain, item)
        pack = source.constant("pack", struct.Struct(">" + run.code).pack)
        rows = f"{pack}({', '.join(run.values)}) for {item} in {values}"
        if not texts:
            source.add(f"{self._out}.extend([{rows}])", _misfit_in_row(run, values, item))
        else:
            made = source.variable()
            is_plain = " and ".join(f"{item}.{each.field.attribute} == ''" for each in texts)
            source.add(f"{made} = [{rows} if {is_plain}]", _misfit_in_row(run, values, item))
            source.add(f"{self._out}.extend({made})")
            source.indent(f"if len({made}) != len({values}):")
            source.add(f"del {self._out}[len({self._out}) - len({made}):]")
            source.indent(f"for {item} in {values}:")
            self.struct(layout, item)
            self._flush()
            source.dedent(2)
        if self._in_steps:
            self._step(f"len({values})" if not texts else f"{len(plain)} * len({values})")
            source.dedent()
        return True

    def _row(self, layout: Layout, plain: Sequence[VersionField], item: str) -> _Run:
        """The numbers of a struct whose texts are empty."""
        outer, self._run = self._run, _Run()
        for each in plain:
            if each.field.kind is Kind.STRING:
                self.constant("B" if layout.is_flexible else "h", int(layout.is_flexible))
            else:
                self._field(layout, each, f"{item}.{each.field.attribute}")
        if layout.is_flexible:
            self.no_tags()
        run, self._run = self._run, outer
        return run


def _misfit_in_row(run: _Run, values: str, item: str) -> Explain:
    """Which number of a row does not fit."""

    def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
        for each in scope[values]:
            try:
                struct.pack(">" + run.code, *(eval(one, {item: each}) for one in run.values))  # noqa: S307 - our own source
            except struct.error as error:
                return run.explain({**scope, item: each}, error)
        raise fault

    return explain


def _batched(rows: Sequence[object]) -> Iterator[Sequence[object]]:
    return (rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH))


def _long_bytes(size: int, _field: str) -> bytes:
    """How compact bytes say their length."""
    return unsigned_varint_bytes(size + 1)


def _misfit_in(field: str, code: str, values: str) -> Explain:
    """Which number of an array does not fit."""

    def explain(scope: Scope, fault: Exception) -> CoordinatorSimError:
        for value in scope[values]:
            try:
                struct.pack(">" + code, value)
            except struct.error as error:
                return DataError(f"{field}: {value!r} does not fit: {error}")
        raise fault

    return explain
