"""One log in ranges of its bytes, read side by side, with the events of one reading.

Ranges meet between lines. A range is read from the state that the text just above it suggests, and
says what it asked of that; `settle` compares it with the state in which the ranges before it really
end. Where they differ the range is read again, from the better state. An entry of several lines is
told by the range in which its last line is; no line is told by two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from coordinator_sim.ingest.files import LINE_LIMIT, LogFileReader, is_splittable, line_border
from coordinator_sim.ingest.saved_state import decoded, encoded
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.log_state import Border, RangeState
from coordinator_sim.logtext.reading.repeats import ContentPart, content_part, timed_lines
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.batches import NOBODY, EventBatch, Names

if TYPE_CHECKING:
    import pyarrow as pa

ABOVE_BYTES: Final = 262_144
"""Bytes just above a range that are read before it, and more where few lines of groups are in them.

A quarter of that is read of the log's beginning, which tells the broker's release.
"""
_HEAD_SHARE: Final = 4
_MOST_ABOVE_BYTES: Final = 8_388_608
_LINE_BYTES: Final = 16_384
_ENOUGH_LINES: Final = 8
_MARK: Final = b"oordinator"
"""What most lines of groups hold."""
_ROUNDS: Final = 2
"""Rounds of reading ranges side by side; what differs then is read in order, so that none is read
more than three times."""


class LogRange(Struct, frozen=True, kw_only=True):
    """A part of a log between two borders of lines.

    Args:
        path: The file, as its reader sees it.
        name: The file, as the user named it.
        start: Position of the first line.
        stop: Position behind the last line; None for the end of a file that is not splittable.
        is_last: Whether the log ends with it.
        keep_raw: Whether events keep their line.
        day_first: Whether the day comes before the month in dates such as 03/04/2024.
        above_bytes: Bytes above it that are read to know the state in which it begins.
    """

    path: str
    name: str
    start: int = 0
    stop: int | None = None
    is_last: bool = True
    keep_raw: bool = False
    day_first: bool = False
    above_bytes: int = ABOVE_BYTES


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A range to read.

    Args:
        number: Its place among all ranges of an import.
        part: The range.
        border: The state at its first line; None to take what the text above suggests.
    """

    number: int
    part: LogRange
    border: Border | None = None


@dataclass(slots=True)
class ReadRange:
    """What came of a range.

    Args:
        number: That of its task.
        state: What it began with, asked and left.
        summary: Counts of its lines and events.
        cut_count: Lines that were cut.
        problem: Why it could not be read to its end.
        first_us: Time of its first event; None without any.
        events: Its events; see `events_of`.
    """

    number: int
    state: RangeState
    summary: IngestSummary
    cut_count: int
    problem: str | None
    first_us: int | None
    events: bytes


def ranges_of(
    path: Path,
    name: str,
    range_bytes: int,
    *,
    keep_raw: bool = False,
    day_first: bool = False,
    above_bytes: int = ABOVE_BYTES,
) -> list[LogRange]:
    """A log's ranges of about that many bytes each; one range where it cannot be split.

    Raises:
        OSError: It cannot be read.
    """
    seen = str(path.resolve())
    if not is_splittable(path, day_first=day_first):
        return [LogRange(path=seen, name=name, keep_raw=keep_raw, day_first=day_first)]
    size = path.stat().st_size
    borders = [line_border(path, position) for position in range(0, size, range_bytes)]
    borders = list(dict.fromkeys([*borders, size]))
    return [
        LogRange(
            path=seen,
            name=name,
            start=start,
            stop=stop,
            is_last=stop == size,
            keep_raw=keep_raw,
            day_first=day_first,
            above_bytes=above_bytes,
        )
        for start, stop in pairwise(borders)
    ]


def read_range(task: RangeTask, zone: tzinfo) -> ReadRange:
    """Read one range.

    Raises:
        OSError: The file is not there, or ends before the range does.
    """
    part = task.part
    path = Path(part.path)
    if part.stop is not None and path.stat().st_size < part.stop:
        raise OSError(f"{part.path}: was cut to {path.stat().st_size} bytes while it was read")
    path.stat()
    names = Names()
    log = BrokerLog(
        part.name, zone, keep_raw=part.keep_raw, border=task.border, day_first=part.day_first
    )
    reader = BlockReader(log, names)
    if part.start and task.border is None:
        reader.prepare(list(_text_above(part)))
    file = _file(part, part.start, part.stop)
    batches = list(reader.read(file.blocks(), is_last=part.is_last))
    return ReadRange(
        number=task.number,
        state=log.range_state(reader.line_count),
        summary=log.summary,
        cut_count=file.cut_count,
        problem=file.problem,
        first_us=int(batches[0].ts_us[0]) if batches else None,
        events=_packed(batches, names),
    )


def content_of(part: LogRange) -> ContentPart:
    """What a range has in common with copies of its lines.

    Raises:
        OSError: The file is not there.
    """
    path = Path(part.path)
    path.stat()
    above = ""
    size = _LINE_BYTES
    while part.start and not above and size <= 2 * LINE_LIMIT:
        start = line_border(path, part.start - size)
        above = b"".join(_file(part, start, part.start).blocks()).decode("utf-8", errors="replace")
        size *= 4
    file = _file(part, part.start, part.stop)
    lines = (
        line.decode("utf-8", errors="replace")
        for block in file.blocks()
        for line in block.removesuffix(b"\n").split(b"\n")
    )
    last_above = above.removesuffix("\n").rpartition("\n")[2]
    return content_part(timed_lines(lines, last_above))


def _text_above(part: LogRange) -> Iterator[bytes]:
    """The beginning of a range's log, and the lines just above the range."""
    path = Path(part.path)
    head = min(line_border(path, part.above_bytes // _HEAD_SHARE), part.start)
    above = part.start
    size = max(1, part.above_bytes)
    while above > head and size <= _MOST_ABOVE_BYTES:
        above = max(head, min(line_border(path, part.start - size), part.start))
        lines = b"".join(_file(part, above, part.start).blocks())
        if lines.count(_MARK) >= _ENOUGH_LINES:
            break
        size *= 2
    yield from _file(part, 0, head).blocks()
    yield from _file(part, above, part.start).blocks()


def _file(part: LogRange, start: int, stop: int | None) -> LogFileReader:
    """The lines of a range's log between two positions."""
    path, day_first = Path(part.path), part.day_first
    return LogFileReader(path, lambda _used: None, start=start, stop=stop, day_first=day_first)


def _packed(batches: Sequence[EventBatch], names: Names) -> bytes:
    told = []
    for batch in batches:
        own = batch.compact()
        objects = None if own.objects is None else own.objects.tolist()
        told.append((own.columns(), _table_bytes(own.details), objects))
    return encoded((names.texts, told))


def _table_bytes(table: "pa.Table | None") -> bytes | None:
    import pyarrow as pa

    if table is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def events_of(packed: bytes, names: Names, line_count: int) -> Iterator[EventBatch]:
    """The events of a range.

    Args:
        packed: `ReadRange.events`.
        names: Numbers of groups and files, of all ranges.
        line_count: Number of lines above the range.
    """
    import pyarrow as pa

    texts, told = decoded(packed, "a range")
    numbers = np.array([*(names.number(text) for text in texts), NOBODY], np.int32)
    for columns, details, objects in told:
        for name in ("groups", "files"):
            columns[name] = numbers[columns[name]]
        columns["seqs"] = columns["seqs"] + line_count
        table = None if details is None else pa.ipc.open_stream(details).read_all()
        own = None if objects is None else np.array([*objects, None], object)[:-1]
        yield EventBatch(names, columns, table, own)


@dataclass(slots=True)
class ReadLog:
    """A log of which all ranges are read.

    Args:
        summary: Counts of the whole log.
        problem: Why it could not be read to its end.
        first_us: Time of its first event; 0 without any.
        parts: Number of each of its ranges, and the lines above it.
    """

    summary: IngestSummary = field(default_factory=IngestSummary)
    problem: str | None = None
    first_us: int = 0
    parts: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class RangeReading:
    """Reads the ranges of several logs until each is read from the state in which it begins.

    Args:
        logs: The ranges of each log, in its order.
        zone: Zone of the times that name none.
        run: Reads ranges side by side.
        keep: Takes the events of a range that was read, and its number; the last ones count.
    """

    logs: Sequence[Sequence[LogRange]]
    zone: tzinfo
    run: Callable[[Sequence[RangeTask]], Iterable[ReadRange]]
    keep: Callable[[int, bytes], None]
    read_count: int = 0
    """Ranges read so far, those that were read again included."""
    _read: dict[int, ReadRange] = field(default_factory=dict)

    def read(self) -> list[ReadLog]:
        """Read them all; what came of each log."""
        parts = [part for log in self.logs for part in log]
        tasks = [RangeTask(number, part) for number, part in enumerate(parts)]
        firsts = [0]
        for log in self.logs:
            firsts.append(firsts[-1] + len(log))
        numbered = [tasks[first:last] for first, last in pairwise(firsts)]
        for _ in range(_ROUNDS):
            for found in self.run(tasks):
                self._take(found)
            tasks = [task for own in numbered for task in self._to_read_again(own)]
            if not tasks:
                break
        return [self._in_order(own) for own in numbered]

    def _take(self, found: ReadRange) -> None:
        self.read_count += 1
        self.keep(found.number, found.events)
        found.events = b""
        self._read[found.number] = found

    def _to_read_again(self, tasks: Sequence[RangeTask]) -> Iterator[RangeTask]:
        border = Border()
        for task in tasks:
            is_settled, after = self._read[task.number].state.settle(border)
            if not is_settled:
                yield RangeTask(task.number, task.part, border)
            border = after

    def _in_order(self, tasks: Sequence[RangeTask]) -> ReadLog:
        """What came of a log; ranges that are not read from their true state are read here."""
        log, border = ReadLog(), Border()
        line_count = 0
        first_us: int | None = None
        for task in tasks:
            found = self._read[task.number]
            is_settled, after = found.state.settle(border)
            if not is_settled:
                self._take(read_range(RangeTask(task.number, task.part, border), self.zone))
                found = self._read[task.number]
                _, after = found.state.settle(border)
            border = after
            log.parts.append((task.number, line_count))
            _add(log.summary, found, line_count)
            line_count += found.state.line_count
            first_us = found.first_us if first_us is None else first_us
            if found.problem is not None:
                log.problem = found.problem
                break
        log.summary.version_ranges = border.evidence.fingerprint.ranges
        log.first_us = first_us or 0
        return log


def _add(summary: IngestSummary, found: ReadRange, line_count: int) -> None:
    """Add the counts of a range to those of its log."""
    summary.add(found.summary)
    summary.cut_lines += found.cut_count
    for number, set_back_us in found.summary.set_backs.items():
        summary.set_backs[number + line_count] = set_back_us
