"""Builds the columns of a batch from the lines of known forms."""

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.form_matching import FormRows, numbers, strings
from coordinator_sim.logtext.reading.line_blocks import LineBlock, Places
from coordinator_sim.logtext.reading.line_forms import Span, Told
from coordinator_sim.trace.batches import KIND_NUMBERS, NOBODY, UNKNOWN, Names

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP: Final = "group_id"
_GENERATION: Final = "generation"
_MOST_ATTRS: Final = 64


class FormColumns:
    """The columns of all lines of known forms in a block, in the order of the lines.

    Args:
        block: The lines.
        found: Lines by their forms.
    """

    def __init__(self, block: LineBlock, found: Sequence[FormRows]) -> None:
        every = np.concatenate([np.zeros(0, np.int64), *(rows.lines for rows in found)])
        places = np.empty(len(every), np.int64)
        order = np.argsort(every)
        places[order] = np.arange(len(every))
        self.lines: Places = every[order]
        """Places of the lines in the block."""
        ends = np.cumsum([len(rows.lines) for rows in found])
        self._rows = [
            places[end - len(rows.lines) : end] for end, rows in zip(ends, found, strict=True)
        ]
        self._block = block
        self._found = found
        self._constants: dict[str, int] = {}
        self._pool = bytearray()

    def per_form(self, values: Sequence[int], kind: Any) -> NDArray[Any]:  # noqa: ANN401
        """Return a column of one value for each form."""
        column = np.empty(len(self.lines), kind)
        for rows, value in zip(self._rows, values, strict=True):
            column[rows] = value
        return column

    def kinds(self) -> NDArray[np.int16]:
        """Return the kinds of events; `NOBODY` for a line without an event."""
        told = [rows.form.event for rows in self._found]
        return self.per_form([NOBODY if k is None else KIND_NUMBERS[k] for k in told], np.int16)

    def groups(self, names: Names) -> NDArray[np.int32]:
        """Return the numbers of the groups."""
        begins, ends = self._spans([rows.form.texts.get(_GROUP) for rows in self._found])
        encoded = strings(self._codes(), begins, ends).dictionary_encode()
        known = [names.number(text) for text in encoded.dictionary.to_pylist()]
        numbers_of = np.array([*known, NOBODY], np.int32)
        indices = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        groups: NDArray[np.int32] = numbers_of[indices]
        return groups

    def generations(self) -> Places:
        """Return the generations; `UNKNOWN` for none."""
        values, is_known = self._numbers(_GENERATION)
        return np.where(is_known, values, UNKNOWN)

    def members(self, rows: Places) -> list[str | None]:
        """Return the member ids of some rows."""
        begins, ends = self._spans([found.form.texts.get("member_id") for found in self._found])
        texts: list[str | None] = strings(self._codes(), begins[rows], ends[rows]).to_pylist()
        return texts

    def details(self, kept: NDArray[np.bool_], *, keep_raw: bool) -> "pa.Table":
        """Return the other columns of the rows that are kept."""
        import pyarrow as pa

        forms = [rows.form for rows in self._found]
        columns: dict[str, Any] = {}
        for name in dict.fromkeys(name for form in forms for name in form.texts):
            told = [form.texts.get(name) for form in forms]
            if name == _GROUP:
                continue
            if any(isinstance(one, Enum) for one in told):
                columns[name] = self._enums(told, kept)
            else:
                columns[name] = self._strings(told, kept)
        columns["source"] = self._enums([form.source for form in forms], kept)
        for name in dict.fromkeys(name for form in forms for name in form.numbers):
            if name != _GENERATION:
                values, is_known = self._numbers(name)
                columns[name] = pa.array(
                    values[kept].astype(np.int32), pa.int32(), mask=~is_known[kept]
                )
        if keep_raw:
            block, lines = self._block, self.lines[kept]
            columns["raw"] = strings(block.codes, block.starts[lines], block.ends[lines])
        columns["attrs"] = self._attrs(kept)
        return pa.table(columns)

    def _spans(self, told: Sequence[Told | None]) -> tuple[Places, Places]:
        """Return where the texts of a column begin and end; -1 for none."""
        begins = np.full(len(self.lines), -1, np.int64)
        ends = np.full(len(self.lines), -1, np.int64)
        for rows, found, one in zip(self._rows, self._found, told, strict=True):
            if one is not None:
                begins[rows], ends[rows] = self._span(found, one)
        return begins, ends

    def _span(self, found: FormRows, told: Told) -> tuple[Places | int, Places | int]:
        if isinstance(told, Span):
            return found.span(told)
        text = str(told)
        place = self._constants.get(text)
        if place is None:
            place = self._constants[text] = len(self._block.data) + len(self._pool)
            self._pool += text.encode()
        return place, place + len(text.encode())

    def _codes(self) -> NDArray[np.uint8]:
        """Return the characters of the block, and of the texts that are always the same."""
        if not self._pool:
            return self._block.codes
        return np.concatenate([self._block.codes, np.frombuffer(bytes(self._pool), np.uint8)])

    def _strings(self, told: Sequence[Told | None], kept: NDArray[np.bool_]) -> "pa.Array":
        begins, ends = self._spans(told)
        return strings(self._codes(), begins[kept], ends[kept])

    def _enums(self, told: Sequence[Told | None], kept: NDArray[np.bool_]) -> "pa.Array":
        import pyarrow as pa

        texts = [one.value if isinstance(one, Enum) else None for one in told]
        places = self.per_form(range(len(texts)), np.int32)[kept]
        return pa.array(texts, pa.string()).take(pa.array(places))

    def _numbers(self, name: str) -> tuple[Places, NDArray[np.bool_]]:
        """Return the values of a column, and which rows have one."""
        values = np.zeros(len(self.lines), np.int64)
        is_known = np.zeros(len(self.lines), np.bool_)
        for rows, found in zip(self._rows, self._found, strict=True):
            one = found.form.numbers.get(name)
            if one is None:
                continue
            is_known[rows] = True
            if isinstance(one, Span):
                values[rows] = numbers(self._block.codes, *found.span(one))
            else:
                values[rows] = int(str(one))
        return values, is_known

    def _attrs(self, kept: NDArray[np.bool_]) -> "pa.Array":
        """Return the attributes, in the order in which a form has them."""
        import pyarrow as pa

        keys: dict[str, int] = {}
        parts: list[tuple[Places, Places, Places, Places]] = []
        place_of = np.cumsum(kept) - 1
        counts = np.zeros(len(self.lines), np.int64)
        for rows, found in zip(self._rows, self._found, strict=True):
            chosen = kept[rows]
            own = rows[chosen]
            counts[own] = len(found.form.attrs)
            for number, (key, told) in enumerate(found.form.attrs.items()):
                begins, ends = np.empty((2, len(rows)), np.int64)
                begins[:], ends[:] = self._span(found, told)
                code = np.full(len(own), keys.setdefault(key, len(keys)))
                order = place_of[own] * _MOST_ATTRS + number
                parts.append((order, code, begins[chosen], ends[chosen]))
        offsets = np.zeros(int(kept.sum()) + 1, np.int32)
        np.cumsum(counts[kept], out=offsets[1:])
        if not parts:
            empty = pa.array([], pa.string())
            return pa.MapArray.from_arrays(pa.array(offsets), empty, empty)
        order, code, begins, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
        by_row = np.argsort(order)
        names = pa.array(list(keys), pa.string()).take(pa.array(code[by_row]))
        values = strings(self._codes(), begins[by_row], ends[by_row])
        return pa.MapArray.from_arrays(pa.array(offsets), names, values)
