"""Traces as JSON Lines: one row per line, unknown columns left out, bytes as base64."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from coordinator_sim.errors import UNREADABLE_JSON, DataError
from coordinator_sim.trace.events import OffsetEntry, RunInfo, TraceEvent
from coordinator_sim.trace.schema import DAY_US, day_of

_RowT = TypeVar("_RowT", bound=msgspec.Struct)


class LinesFile(Protocol):
    """The part of a file that a table uses."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...

    def close(self) -> None:
        """Write buffered data and close."""
        ...


OpenFile = Callable[[Path], LinesFile]
"""Opens a file for writing from its beginning."""


def open_at_once(path: Path) -> LinesFile:
    """Open a file with Python's own buffering."""
    return path.open("wb")


class JsonLinesTable:
    """Writes one table of a trace as one file of JSON lines.

    Args:
        directory: Directory of the table; created with the first row.
        open_file: Opens its file.
    """

    def __init__(self, directory: Path, open_file: OpenFile = open_at_once) -> None:
        self._directory = directory
        self._encoder = msgspec.json.Encoder(order="deterministic")
        self._open_file = open_file
        self._file: LinesFile | None = None
        self.count = 0
        """Rows written."""

    def write(self, row: msgspec.Struct) -> None:
        """Append a row."""
        self._put(self._encoder.encode(row) + b"\n", 1)

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._file is not None:
            self._file.close()

    def _put(self, lines: bytes, count: int) -> None:
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = self._open_file(self._directory / f"{self._directory.name}.jsonl")
        self._file.write(lines)
        self.count += count


class _OffsetColumns(msgspec.Struct, omit_defaults=True, gc=False):
    """The columns that differ between the rows of one offset event; see `EventRow`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    commit_ts_us: int | None = None
    metadata: str | None = None
    expire_ts_us: int | None = None


class JsonLinesEvents(JsonLinesTable):
    """Writes `events`: the columns of the run first, then the event's, then an offset's.

    A line is built from the event's own encoding, without a row in between: a server that records
    its traffic has no time for one.

    Args:
        directory: Directory of the table; created with the first event.
        info: Facts of the whole run.
        open_file: Opens its file.
    """

    def __init__(self, directory: Path, info: RunInfo, open_file: OpenFile = open_at_once) -> None:
        super().__init__(directory, open_file)
        self._info = info
        self._day: int | None = None
        self._head = self._head_from_elsewhere = b""

    def take(self, events: Iterable[TraceEvent], first: int) -> None:
        """Append the rows of events, of which the first is at that position in the run."""
        encode = self._encoder.encode
        lines: list[bytes] = []
        count = 0
        for ordinal, event in enumerate(events, first):
            if event.ts_us // DAY_US != self._day:
                self._begin_day(event.ts_us)
            head = self._head if event.source is None else self._head_from_elsewhere
            if event.offsets:
                shared = b"%b%d,%b," % (head, ordinal, encode(replace(event, offsets=()))[1:-1])
                lines.append(self._offset_rows(shared, event.offsets))
                count += len(event.offsets)
            else:
                lines.append(b"%b%d,%b\n" % (head, ordinal, encode(event)[1:]))
                count += 1
        self._put(b"".join(lines), count)

    def _offset_rows(self, shared: bytes, offsets: tuple[OffsetEntry, ...]) -> bytes:
        """A line for each offset, whose own columns follow those that all share."""
        own = self._encoder.encode_lines(
            [
                _OffsetColumns(
                    each.topic,
                    each.partition,
                    each.offset,
                    each.leader_epoch,
                    each.commit_ts_us,
                    each.metadata,
                    each.expire_ts_us,
                )
                for each in offsets
            ]
        )
        # JSON escapes a line's end within a text: this one begins the next line.
        return shared + own[1:].replace(b"\n{", b"\n" + shared)

    def _begin_day(self, ts_us: int) -> None:
        info = self._info
        names = {"cluster_id": info.cluster_id, "day": day_of(ts_us), "trace_id": info.trace_id}
        head = self._encoder.encode(names)[:-1]
        self._day = ts_us // DAY_US
        self._head = b'%b,"source":%b,"ordinal":' % (head, self._encoder.encode(info.source))
        self._head_from_elsewhere = head + b',"ordinal":'


def read_lines(path: Path, row_type: type[_RowT]) -> Iterator[_RowT]:
    """Yield the rows of a JSON Lines file in file order.

    Raises:
        DataError: a line is not a row of that type; names file and line.
    """
    decoder = msgspec.json.Decoder(row_type)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield decoder.decode(line)
            except UNREADABLE_JSON as error:
                raise DataError(f"{path}, line {number}: {error}") from error
