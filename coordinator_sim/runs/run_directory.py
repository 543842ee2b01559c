"""A trace on disk: `run.json`, `events/`, and the dense `generations/` and `resources/`.

`run.json` is written last, so a directory without it is no trace: its run did not end.

Traces as JSON Lines: one row per line, unknown columns left out, bytes as base64.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby, islice
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from coordinator_sim.errors import UNREADABLE_JSON, ConfigError, DataError, check_encodable
from coordinator_sim.runs import parquet
from coordinator_sim.runs.ownership import OwnershipTracker
from coordinator_sim.trace import schema
from coordinator_sim.trace.batches import EventBatch
from coordinator_sim.trace.digest import TraceDigest
from coordinator_sim.trace.events import OffsetEntry, RunInfo, TraceEvent
from coordinator_sim.trace.recorder import numbered
from coordinator_sim.trace.schema import DAY_US, day_of
from coordinator_sim.trace.sources_read import Skew, SourceFile

_RowT = TypeVar("_RowT", bound=msgspec.Struct)


class LinesFile(Protocol):
    """The part of a file that a table uses."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...

    def flush(self) -> object:
        """Write buffered data."""
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

    def flush(self) -> None:
        """Write what is buffered."""
        if self._file is not None:
            self._file.flush()

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


TraceFormat = Literal["parquet", "jsonl"]
LATEST_NAME: Final = "latest"
"""Name of the link to the newest of numbered runs."""
_ROWS: Final = {
    schema.EVENTS_DIR: "event_rows",
    schema.GENERATIONS_DIR: "generations",
    schema.RESOURCES_DIR: "resource_lists",
}
"""What `run.json` calls the number of rows of each table."""
_TABLES: Final = tuple(_ROWS)
_EVENTS_AT_ONCE: Final = 64
"""Events that are written together: a server that records its traffic has no time for one."""


class SettledRun(msgspec.Struct, frozen=True):
    """A trace in Parquet up to an event, to be gone on with later.

    Args:
        tables: Where each table goes on, by its directory.
        digest: Of the events so far.
        ownership: Assignments so far.
        first_ts_us: Smallest event time so far.
        last_ts_us: Largest event time so far.
    """

    tables: dict[str, parquet.TableState]
    digest: TraceDigest
    ownership: OwnershipTracker
    first_ts_us: int | None
    last_ts_us: int | None


class RunDirectoryWriter:
    """Writes a run as it happens; a context manager and a `Recorder`.

    An older trace in the same directory is replaced. When the block ends with an exception, no
    `run.json` is left and the directory is not a trace.

    Args:
        path: The run's directory, created with its parents.
        info: Properties that the whole run shares.
        format: `parquet`, or `jsonl` to read it without tools.
        keep_raw: Whether the original text of ingested lines is kept.
        open_file: Opens the files of JSON Lines.
        settled: The trace in Parquet that is gone on with; its files are in the directory, and
            nothing else.

    Raises:
        ConfigError: the directory holds something that is not a trace.
    """

    def __init__(
        self,
        path: Path,
        info: RunInfo,
        *,
        format: TraceFormat = "parquet",  # noqa: A002 - the option's name on the command line
        keep_raw: bool = False,
        open_file: OpenFile = open_at_once,
        settled: SettledRun | None = None,
    ) -> None:
        self._path = path
        self._info = info
        self._format: TraceFormat = format
        self._keep_raw = keep_raw
        self._digest = TraceDigest()
        self._ownership = OwnershipTracker(info.trace_id, info.cluster_id)
        self._first_ts_us: int | None = None
        self._last_ts_us: int | None = None
        self._taken: list[TraceEvent] = []
        self._files: list[SourceFile] = []
        self._skews: list[Skew] = []
        if settled is None:
            _clear(path)
        self._events: parquet.ParquetEvents | JsonLinesEvents
        self._generations: parquet.ParquetTable | JsonLinesTable
        self._resources: parquet.ParquetTable | JsonLinesTable
        if format == "parquet":
            self._events = parquet.ParquetEvents(
                path / schema.EVENTS_DIR, info, schema.event_schema()
            )
            self._generations = parquet.ParquetTable(
                path / schema.GENERATIONS_DIR,
                schema.generation_schema(),
                lambda row: len(row.owners),
            )
            self._resources = parquet.ParquetTable(
                path / schema.RESOURCES_DIR,
                schema.resource_schema(),
                lambda row: len(row.resources),
            )
        else:
            self._events = JsonLinesEvents(path / schema.EVENTS_DIR, info, open_file)
            self._generations = JsonLinesTable(path / schema.GENERATIONS_DIR, open_file)
            self._resources = JsonLinesTable(path / schema.RESOURCES_DIR, open_file)
        if settled is not None:
            self._go_on(settled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with ExitStack() as closing:
            for table in (self._events, self._generations, self._resources):
                closing.callback(table.close)
            if self._taken:
                self._write_taken()
            if error_type is None:
                self._ownership.finish()
                self._write_dense()
        if error_type is None:
            self._write_manifest()

    def record(self, event: TraceEvent) -> None:
        """Take the next event of the run, to be written with some that follow."""
        self._taken.append(event)
        if len(self._taken) >= _EVENTS_AT_ONCE:
            self._write_taken()

    def record_batch(self, batch: EventBatch) -> None:
        """Take the next events of the run."""
        if not isinstance(self._events, parquet.ParquetEvents):
            for event in batch.events():
                self.record(event)
            return
        if self._taken:
            self._write_taken()
        first = self._digest.count
        positions = np.arange(first, first + len(batch))
        batch = batch.having(seqs=np.where(batch.seqs < 0, positions, batch.seqs))
        self._digest.add_batch(batch, self._info.source)
        self._events.take_batch(batch if self._keep_raw else batch.without_raw(), first)
        self._note_times(int(batch.ts_us.min()), int(batch.ts_us.max()))
        self._ownership.record_batch(batch)
        if self._ownership.has_rows:
            self._write_dense()

    def checkpoint(self) -> None:
        """Make a trace in JSON Lines whole up to here, so that it can be read if the run is killed.

        Dense rows of a generation that is still gathered are left to a later call. Rows behind the
        last checkpoint count as not written.

        Raises:
            OSError: It cannot be written.
        """
        if self._taken:
            self._write_taken()
        for table in (self._events, self._generations, self._resources):
            if isinstance(table, JsonLinesTable):
                table.flush()
        self._write_manifest()

    def settle(self) -> SettledRun:
        """Write all events so far to files that are not changed any more.

        Returns:
            What a writer of further events goes on from; save it before the next event.
        """
        tables = {}
        for name, table in self._parquet_tables().items():
            if name == schema.GENERATIONS_DIR:
                self._write_dense()
            tables[name] = table.settle()
        return SettledRun(
            tables, self._digest, self._ownership, self._first_ts_us, self._last_ts_us
        )

    def _go_on(self, settled: SettledRun) -> None:
        self._digest, self._ownership = settled.digest, settled.ownership
        self._first_ts_us, self._last_ts_us = settled.first_ts_us, settled.last_ts_us
        for name, table in self._parquet_tables().items():
            table.go_on(settled.tables[name])

    def _parquet_tables(self) -> dict[str, parquet.ParquetEvents | parquet.ParquetTable]:
        tables = (self._events, self._generations, self._resources)
        return {
            name: table
            for name, table in zip(_TABLES, tables, strict=True)
            if isinstance(table, parquet.ParquetEvents | parquet.ParquetTable)
        }

    def note_sources(self, files: list[SourceFile], skews: list[Skew]) -> None:
        """Take what an import read of its files, and how far their clocks are apart."""
        self._files, self._skews = files, skews

    def _note_times(self, first_us: int, last_us: int) -> None:
        known_us = [each for each in (self._first_ts_us, self._last_ts_us) if each is not None]
        self._first_ts_us = min([first_us, *known_us])
        self._last_ts_us = max([last_us, *known_us])

    def _write_taken(self) -> None:
        taken, self._taken = self._taken, []
        first, own_source = self._digest.count, self._info.source
        events = [numbered(event, ordinal) for ordinal, event in enumerate(taken, first)]
        events = [
            msgspec.structs.replace(event, source=None) if event.source is own_source else event
            for event in events
        ]
        self._digest.add(*events)
        if not self._keep_raw:
            events = [
                event if event.raw is None else msgspec.structs.replace(event, raw=None)
                for event in events
            ]
        self._events.take(events, first)
        times_us = [event.ts_us for event in events]
        self._note_times(min(times_us), max(times_us))
        for event in events:
            self._ownership.record(event)
        if self._ownership.has_rows:
            self._write_dense()

    def _write_dense(self) -> None:
        generations, resources = self._ownership.take()
        for generation in generations:
            self._generations.write(generation)
        for resource in resources:
            self._resources.write(resource)

    def _write_manifest(self) -> None:
        manifest = schema.RunManifest(
            **msgspec.structs.asdict(self._info),
            format=self._format,
            digest=self._digest.hexdigest(),
            counts={
                "events": self._digest.count,
                "event_rows": self._events.count,
                "generations": self._generations.count,
                "resource_lists": self._resources.count,
                "undecodable_assignments": self._ownership.undecodable_count,
            },
            first_ts_us=self._first_ts_us,
            last_ts_us=self._last_ts_us,
            files=self._files,
            skews=self._skews,
        )
        text = msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=2)
        partial = self._path / f"{schema.MANIFEST_NAME}.partial"
        partial.write_bytes(text + b"\n")
        partial.replace(self._path / schema.MANIFEST_NAME)


class RunDirectory:
    """A finished trace on disk.

    Args:
        path: The run's directory.
        info: Content of its `run.json`.
    """

    def __init__(self, path: Path, info: schema.RunManifest) -> None:
        self.path = path
        self.info = info

    def events(self) -> Iterator[TraceEvent]:
        """Yield the events in emission order, numbered as they were recorded.

        Raises:
            DataError: a file of the trace cannot be read, or one is missing.
        """
        count = 0
        for _, rows in groupby(self._event_rows(), key=lambda row: row.ordinal):
            count += 1
            yield schema.event_of(list(rows), self.info)
        expected = self.info.counts.get("events", count)
        if count != expected:
            raise DataError(
                f"{self.path / schema.EVENTS_DIR} holds {count} of the {expected} events that "
                f"{schema.MANIFEST_NAME} counts; write the trace again"
            )

    def generations(self) -> Iterator[schema.GenerationRow]:
        """Yield the dense assignment of every generation that has one, in order of completion."""
        return self._table(schema.GENERATIONS_DIR, schema.GenerationRow)

    def resources(self) -> Iterator[schema.ResourceRow]:
        """Yield the resource lists that the generations point to."""
        return self._table(schema.RESOURCES_DIR, schema.ResourceRow)

    def _event_rows(self) -> Iterator[schema.EventRow]:
        if self.info.format == "parquet":
            return parquet.read_event_rows(self.path / schema.EVENTS_DIR)
        return self._table(schema.EVENTS_DIR, schema.EventRow)

    def _table(self, name: str, row_type: type[_RowT]) -> Iterator[_RowT]:
        for path in sorted((self.path / name).glob("*")):
            if path.suffix == ".jsonl":
                # A run that was killed may have left lines behind the last that it counts.
                yield from islice(read_lines(path, row_type), self.info.counts.get(_ROWS[name]))
            else:
                yield from parquet.read_rows(path, row_type)


def read_run(path: Path) -> RunDirectory:
    """Open the trace in a directory, or the latest in a folder of numbered runs.

    Raises:
        ConfigError: the directory does not exist.
        DataError: the directory is no trace, or its run did not end.
    """
    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    path = latest_run(path) or path
    manifest = path / schema.MANIFEST_NAME
    if not manifest.is_file():
        reason = "has no run.json" if path.is_dir() else "is no directory"
        raise DataError(f"{path} is not a trace: it {reason}")
    try:
        info = msgspec.json.decode(manifest.read_bytes(), type=schema.RunManifest)
    except UNREADABLE_JSON as error:
        raise DataError(f"{manifest} is not the record of a run: {error}") from error
    return RunDirectory(path, info)


def latest_run(folder: Path) -> Path | None:
    """The newest whole run in a folder that `next_run` made; None for any other folder."""
    entries = {each.name: each for each in folder.iterdir()} if folder.is_dir() else {}
    if LATEST_NAME not in entries:
        return None
    whole = [
        int(name) for name in _numbers(entries) if (folder / name / schema.MANIFEST_NAME).is_file()
    ]
    return folder / str(max(whole)) if whole else None


def _numbers(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.isdecimal() and name == str(int(name))]


@contextmanager
def next_run(folder: Path) -> Iterator[Path]:
    """A new directory for a run below a folder: `1`, `2` and so on; no earlier one is touched.

    After the block the link `latest` points to it; a file with the number is there instead where
    links cannot be made. `read_run` of the folder opens the newest whole run.

    A block that is refused before it wrote anything leaves no folder.

    Raises:
        ConfigError: a folder is where the link belongs.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    latest = folder / LATEST_NAME
    if latest.is_dir() and not latest.is_symlink():
        raise ConfigError(
            f"{latest} is a folder, where the link to the newest run belongs: rename it, or name "
            "another folder with --out"
        )
    number = 1 + max(map(int, _numbers(each.name for each in folder.iterdir())), default=0)
    while True:  # Ends: each turn lost another number to a run that began meanwhile.
        run = folder / str(number)
        try:
            run.mkdir()
        except FileExistsError:
            number += 1
        else:
            break
    try:
        yield run
    except ConfigError:
        for each in (run, *made):
            if any(each.iterdir()):
                break
            each.rmdir()
        raise
    link = folder / f".{LATEST_NAME}.{number}"
    try:
        link.symlink_to(run.name, target_is_directory=True)
    except (OSError, NotImplementedError):
        link.write_text(f"{number}\n", encoding="utf-8")
    link.replace(latest)


def check_replaceable(path: Path, keep: Path | None = None) -> None:
    """Refuse a directory that a trace must not be written to.

    Args:
        path: Where to write; it need not exist.
        keep: A trace that must not be overwritten.

    Raises:
        ConfigError: the path is a file, holds something that is no trace, or is the trace to keep,
            or its name is not UTF-8.
    """
    check_encodable(path)
    if keep is not None and path.resolve() == keep.resolve():
        raise ConfigError(f"{path} is the trace that is read; name another directory")
    if not path.exists():
        return
    if not path.is_dir():
        raise ConfigError(f"{path} is a file; name a directory for the trace")
    files = (schema.MANIFEST_NAME, schema.METRICS_NAME, schema.APPENDABLE_NAME)
    ours = {*files, f"{schema.MANIFEST_NAME}.partial", *_TABLES}
    foreign = sorted(entry.name for entry in path.iterdir() if entry.name not in ours)
    if foreign:
        raise ConfigError(
            f"{path} holds {foreign[0]!r}, which is no part of a trace; name an empty directory"
        )


def holds_trace(path: Path) -> bool:
    """Whether a directory holds a trace, or the remains of an interrupted one."""
    return any((path / name).exists() for name in (schema.MANIFEST_NAME, *_TABLES))


def _clear(path: Path) -> None:
    """Create the directory, without the trace that may be there."""
    check_replaceable(path)
    path.mkdir(parents=True, exist_ok=True)
    (path / schema.MANIFEST_NAME).unlink(missing_ok=True)
    (path / schema.METRICS_NAME).unlink(missing_ok=True)
    (path / schema.APPENDABLE_NAME).unlink(missing_ok=True)
    for table in _TABLES:
        shutil.rmtree(path / table, ignore_errors=True)
