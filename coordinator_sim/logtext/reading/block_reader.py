"""Reads a log in blocks: lines of known forms together, all other lines one by one.

The events are those of `BrokerLog.read` for equal lines, in the same order. A form is used in a log
only after one line of it was read individually there, so that evidence of versions is complete.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.form_matching import (
    FormRows,
    match_forms,
    numbers,
    strings,
    times,
)
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.line_blocks import LineBlock, Places
from coordinator_sim.logtext.reading.line_forms import Form, Span, Told, learn
from coordinator_sim.logtext.reading.log_state import Departure
from coordinator_sim.trace.batches import (
    INFERRED,
    KIND_NUMBERS,
    KINDS,
    LOGGED,
    NOBODY,
    UNKNOWN,
    EventBatch,
    Names,
    batch_of,
    joined,
)
from coordinator_sim.trace.events import Event, TraceEvent

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


_FIRST_BYTES: Final = 8_192
"""Size of a log's first block: all of its lines are read one by one."""
_MOST_FORMS: Final = 200
_FAILURES: Final = 50
_LINES_PER_FAILURE: Final = 200
"""Trying to learn costs as much as reading some lines: few attempts may be in vain."""
_DEPARTURES: Final = (KIND_NUMBERS[Event.MEMBER_FAILED], KIND_NUMBERS[Event.MEMBER_LEFT])


class BlockReader:
    """Reads one log.

    Args:
        log: The log, at its beginning.
        names: Numbers of groups and files, shared by the logs of an import.
    """

    def __init__(self, log: BrokerLog, names: Names) -> None:
        self.log = log
        self.names = names
        self.file = names.number(log.source_ref)
        self.forms: list[Form] = []
        self.fresh: list[Form] = []
        self._failures = 0
        self.reader = InstantReader(log.tz)
        self._line_count = 0
        self._block_size = _FIRST_BYTES

    def read(self, blocks: Iterable[bytes], *, is_last: bool = True) -> Iterator[EventBatch]:
        """Yield the events, in line order. May be called once.

        Args:
            blocks: The log in pieces that end with a line end, but for the last.
            is_last: Whether the log ends with them; otherwise what waits for a line goes on
                waiting.
        """
        for data in blocks:
            yield from self._batches(data)
        if not is_last:
            return
        self.log.finish()
        last = self.log.drain()
        if last:
            yield batch_of(last, self.names)

    def prepare(self, above: list[bytes]) -> None:
        """Read the text above a range of the log, for what it tells of the range's lines.

        Args:
            above: Whole lines; the last one is the line above.
        """
        self._line_count = -sum(data.count(b"\n") for data in above)
        for data in above:
            for _ in self._batches(data):
                pass
        self.log.begin_range()

    @property
    def line_count(self) -> int:
        """Number of lines read, those above a range left out."""
        return self._line_count

    def _batches(self, data: bytes) -> Iterator[EventBatch]:
        for part in self._parts(data):
            block = LineBlock(part, self._line_count + 1)
            self._line_count += len(block)
            self.log.summary.lines += len(block)
            batch = _Walk(self, block).batch()
            self.forms += self.fresh
            self.fresh.clear()
            if len(batch):
                yield batch

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Yield a block in smaller ones, as long as forms are still learnt."""
        start = 0
        while start < len(data):
            end = data.find(b"\n", start + self._block_size) + 1 or len(data)
            yield data[start:end] if start or end < len(data) else data
            start = end
            self._block_size *= 2

    def learn(self, line: str) -> None:
        """Learn the form of a line that was read alone."""
        most = _FAILURES + self._line_count // _LINES_PER_FAILURE
        if len(self.forms) >= _MOST_FORMS or self._failures >= most:
            return
        line = line.rstrip("\r\n")
        if any(form.fits(line) for form in self.fresh):
            return
        form = learn(line)
        if form is None:
            self._failures += 1
        elif form not in self.forms:
            self.fresh.append(form)


class _Walk:
    """One block's lines, read in their order."""

    def __init__(self, reader: BlockReader, block: LineBlock) -> None:
        self.reader = reader
        self.log = reader.log
        self._block = block
        self._found = match_forms(block, reader.forms)
        self._columns = FormColumns(block, self._found)
        self._lines: list[int] = self._columns.lines.tolist()
        count = len(self._lines)
        self._kinds = self._columns.kinds()
        self._groups = self._columns.groups(reader.names)
        self._ts_us, self._repeats_us, is_time = times(block, self._columns.lines, reader.reader)
        self._timeless = np.flatnonzero(~is_time).tolist()
        departures = np.isin(self._kinds, _DEPARTURES) & (self._groups != NOBODY)
        self._departures: list[int] = np.flatnonzero(departures).tolist()
        self._err_us = np.zeros(count, np.int64)
        self._measured = np.ones(count, np.bool_)
        self._kept = np.zeros(count, np.bool_)
        layouts = [rows.form.layout for rows in self._found]
        self._layouts = list(dict.fromkeys(layouts))
        self._layout = self._columns.per_form(list(map(self._layouts.index, layouts)), np.int8)
        self._folded = self._taken = 0
        self._told: list[tuple[int, list[TraceEvent]]] = []
        """Events of lines that were read alone, each with the number of rows before them."""

    def batch(self) -> EventBatch:
        """Read the block and return its events."""
        block, log, lines = self._block, self.log, self._lines
        log.fold_departures = self._fold
        is_read = np.zeros(len(block), np.bool_)
        is_read[lines] = True
        alone = [*block.candidates(is_read), len(block)]
        if self._timeless:
            alone = sorted({*alone, *(lines[row] for row in self._timeless)})
        line = place = 0
        while True:
            if log.waits and line < len(block):
                self._read_alone(line, bisect_left(lines, line))
                line += 1
                continue
            while alone[place] < line:
                place += 1
            row = bisect_left(lines, line)
            next_row = lines[row] if row < len(lines) else len(block)
            if next_row < alone[place] and log.is_settled:
                end = bisect_left(lines, alone[place])
                self._take(row, end)
                line = lines[end - 1] + 1
            elif (line := min(next_row, alone[place])) < len(block):
                self._read_alone(line, row)
                line += 1
            else:
                break
        self._fold()
        log.fold_departures = lambda: None
        log.previous = block.text(len(block) - 1)
        return self._assembled()

    def _read_alone(self, line: int, row: int) -> None:
        block, log = self._block, self.log
        if line:
            log.previous = block.text(line - 1)
        text = block.text(line)
        may_learn = log.is_alone
        understood = log.summary.parsed + log.summary.known
        self._taken = row
        log.read_one(block.first_number + line, text)
        events = log.drain()
        if events:
            self._told.append((row, events))
        if may_learn and log.summary.parsed + log.summary.known == understood + 1:
            self.reader.learn(text)

    def _take(self, row: int, end: int) -> None:
        """Take the rows of lines in a row."""
        layouts = self._layout[row:end]
        borders = [row, *(row + 1 + np.flatnonzero(np.diff(layouts))).tolist(), end]
        for first, last in pairwise(borders):
            rows = slice(first, last)
            layout = self._layouts[self._layout[first]]
            has_event = self._kinds[rows] != NOBODY
            told = self.log.take_times(layout, self._ts_us[rows], self._repeats_us[rows], has_event)
            self._ts_us[rows], self._err_us[rows] = told.ts_us, told.err_us
            self._measured[rows] = told.is_measured
            for place, set_back_us in told.set_backs.items():
                number = self._block.first_number + int(self._columns.lines[first + place])
                self.log.summary.set_backs[number] = set_back_us
            self._count(layout, has_event, rows)
        self._kept[row:end] = True
        self._taken = end

    def _count(self, layout: str, has_event: np.ndarray, rows: slice) -> None:
        summary = self.log.summary
        count, events = len(has_event), int(has_event.sum())
        summary.parsed += events
        summary.known += count - events
        summary.by_layout[layout] = summary.by_layout.get(layout, 0) + count
        counts = np.bincount(self._kinds[rows][has_event], minlength=len(KINDS))
        for kind in np.flatnonzero(counts).tolist():
            event = KINDS[kind]
            summary.by_event[event] = summary.by_event.get(event, 0) + int(counts[kind])

    def _fold(self) -> None:
        """Note the latest departure of each group in the rows that were taken."""
        first = bisect_left(self._departures, self._folded)
        end = bisect_left(self._departures, self._taken)
        self._folded = self._taken
        latest = {self._groups[row]: row for row in self._departures[first:end] if self._kept[row]}
        if not latest:
            return
        rows = np.array(list(latest.values()))
        names = self.reader.names
        for row, member_id in zip(rows.tolist(), self._columns.members(rows), strict=True):
            number = self._block.first_number + self._lines[row]
            departure = Departure(KINDS[self._kinds[row]], int(self._ts_us[row]), number, member_id)
            self.log.note_departure(names.texts[self._groups[row]], departure)

    def _assembled(self) -> EventBatch:
        """Return the events of the rows and of the lines read alone, in line order."""
        names = self.reader.names
        kept = self._kept & (self._kinds != NOBODY)
        count = int(kept.sum())
        groups = self._groups[kept]
        summary = self.log.summary
        told = (names.texts[n] for n in np.unique(groups).tolist() if n != NOBODY)
        summary.groups |= dict.fromkeys(told)
        columns = {
            "kinds": self._kinds[kept],
            "ts_us": self._ts_us[kept],
            "ts_err_us": self._err_us[kept],
            "time_kinds": np.where(self._measured[kept], LOGGED, INFERRED).astype(np.int8),
            "groups": groups,
            "generations": self._columns.generations()[kept],
            "incarnations": np.zeros(count, np.int32),
            "files": np.full(count, self.reader.file, np.int32),
            "seqs": self._block.first_number + self._columns.lines[kept],
            "is_client": np.zeros(count, np.bool_),
            "is_request": np.zeros(count, np.bool_),
            "detail_rows": np.arange(count),
        }
        details = self._columns.details(kept, keep_raw=self.log.keep_raw) if count else None
        rows = EventBatch(names, columns, details, None)
        if not self._told:
            return rows
        alone = batch_of([event for _, events in self._told for event in events], names)
        if not count:
            return alone
        before = np.concatenate([np.full(len(events), row) for row, events in self._told])
        # A line read alone stands before the row that follows it.
        order = np.lexsort(
            (
                np.concatenate([np.ones(count), np.zeros(len(before))]),
                np.concatenate([np.flatnonzero(kept), before]),
            )
        )
        return joined([rows, alone]).take(order)
