"""Traces as Parquet: zstd, one file per flush, so that memory stays bounded in long runs.

`events` is partitioned like Hive (`cluster_id=.../day=.../part-NNNNN.parquet`); each file
is sorted by group, time and seq. Arrow is imported by the functions that use it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
import numpy as np

from coordinator_sim.errors import DataError
from coordinator_sim.runs.event_columns import table_of_events
from coordinator_sim.trace.batches import KINDS, NOBODY, TIME_KINDS, UNKNOWN, EventBatch, Int64s
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.schema import DAY_US, EventRow, day_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

ROWS_PER_FILE: Final = 100_000
"""Events held in memory before a flush: about 100 MB of rows."""
CELLS_PER_FILE: Final = 2_000_000
"""Array elements of dense rows held in memory before a flush."""


class TableState(msgspec.Struct, frozen=True):
    """Position at which appending to a table continues.

    Args:
        part: Number of the next file.
        count: Number of rows so far.
    """

    part: int
    count: int


def part_number(path: Path) -> int:
    """Return the number of a file of a table."""
    return int(path.stem.removeprefix("part-"))


class ParquetEvents:
    """Writes `events`, one file per day and flush.

    Args:
        directory: The `events` directory of the run.
        info: Facts of the whole run; its cluster is the first partition column.
        schema: Arrow schema of the rows.
        rows_per_file: Number of rows gathered before they are written.
    """

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: "pa.Schema",
        *,
        rows_per_file: int = ROWS_PER_FILE,
    ) -> None:
        self._directory = directory / f"cluster_id={quote(info.cluster_id, safe='')}"
        self._info = info
        self._schema = schema
        self._rows_per_file = rows_per_file
        self._events: list[TraceEvent] = []
        self._ordinals: list[int] = []
        self._event_rows = 0
        self._tables: list[pa.Table] = []
        self._table_rows = 0
        self._part = 0
        self.count = 0
        """Number of rows taken."""

    def take(self, events: Iterable[TraceEvent], first: int) -> None:
        """Append the rows of events, of which the first is at that position in the run.

        All rows of one event are in one file.
        """
        for ordinal, event in enumerate(events, first):
            self._take_event(event, ordinal)
            if self._event_rows >= self._rows_per_file:
                self._flush()

    def take_batch(self, batch: EventBatch, first: int) -> None:
        """Append the rows of a batch, of which the first event is at that position in the run.

        Files hold the same rows however the events come in batches.
        """
        counts = np.ones(len(batch), np.int64)
        if batch.objects is not None:
            for row in np.flatnonzero(batch.detail_rows == NOBODY).tolist():
                counts[row] = max(1, len(batch.objects[row].offsets))
        ends = np.cumsum(counts)
        start = taken = 0
        while start < len(batch):
            room = self._rows_per_file - self._event_rows - self._table_rows
            stop = int(np.searchsorted(ends, taken + room)) + 1
            part = batch if start == 0 and stop >= len(batch) else batch.take(slice(start, stop))
            self._take_part(part, first + start)
            start, taken = stop, int(ends[min(stop, len(batch)) - 1])

    def _take_part(self, batch: EventBatch, first: int) -> None:
        if batch.objects is not None:
            own = np.flatnonzero(batch.detail_rows == NOBODY)
            for row, event in zip(own.tolist(), batch.take(own).events(), strict=True):
                self._take_event(event, first + row)
        rows = np.flatnonzero(batch.detail_rows >= 0)
        if len(rows):
            told = batch if batch.objects is None else batch.take(rows)
            self._tables.append(table_of(told, first + rows, self._info, self._schema))
            self.count += len(rows)
            self._table_rows += len(rows)
        if self._event_rows + self._table_rows >= self._rows_per_file:
            self._flush()

    def _take_event(self, event: TraceEvent, ordinal: int) -> None:
        self._events.append(event)
        self._ordinals.append(ordinal)
        rows = max(1, len(event.offsets))
        self._event_rows += rows
        self.count += rows

    def close(self) -> None:
        """Write the remaining rows."""
        if self._events or self._tables:
            self._flush()

    def settle(self) -> TableState:
        """Write the rows so far; return what a writer of further rows goes on from."""
        self.close()
        return TableState(self._part, self.count)

    def go_on(self, state: TableState) -> None:
        """Write further rows behind those that are there."""
        self._part, self.count = state.part, state.count

    def _flush(self) -> None:
        import pyarrow as pa

        tables = self._tables
        if self._events:
            told = table_of_events(self._events, self._ordinals, self._info, self._schema)
            tables.append(told)
        table = pa.concat_tables(tables)
        days = table.column("ts_us").to_numpy() // DAY_US
        order = _file_order(table)
        for day in dict.fromkeys(days.tolist()):
            rows = table.take(pa.array(order[days[order] == day]))
            name = f"day={day_of(day * DAY_US)}"
            _write_table(self._directory / name / f"part-{self._part:05d}.parquet", rows)
        self._part += 1
        self._events = []
        self._ordinals = []
        self._event_rows = 0
        self._tables = []
        self._table_rows = 0


class ParquetTable:
    """Writes a dense table (`generations`, `resources`) in the order of its rows.

    Args:
        directory: Directory of the table; created with the first file.
        schema: Arrow schema of the rows.
        size_of: Number of array elements of a row, for the bound on memory.
    """

    def __init__(self, directory: Path, schema: "pa.Schema", size_of: Callable[[Any], int]) -> None:
        self._directory = directory
        self._schema = schema
        self._size_of = size_of
        self._rows: list[msgspec.Struct] = []
        self._cells = 0
        self._part = 0
        self.count = 0
        """Number of rows taken."""

    def write(self, row: msgspec.Struct) -> None:
        """Append a row."""
        self._rows.append(row)
        self._cells += self._size_of(row)
        self.count += 1
        if self._cells >= CELLS_PER_FILE:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows."""
        if self._rows:
            self._flush()

    def settle(self) -> TableState:
        """Write the rows so far; return what a writer of further rows goes on from."""
        self.close()
        return TableState(self._part, self.count)

    def go_on(self, state: TableState) -> None:
        """Write further rows behind those that are there."""
        self._part, self.count = state.part, state.count

    def _flush(self) -> None:
        target = self._directory / f"part-{self._part:05d}.parquet"
        _write_table(target, table_of_rows(self._schema, self._rows))
        self._part += 1
        self._rows = []
        self._cells = 0


def read_event_rows(directory: Path) -> Iterator[EventRow]:
    """Yield the rows of an `events` directory in emission order, one flush in memory at a time.

    Raises:
        DataError: a file is not a Parquet file of this schema; names the file.
    """
    parts: dict[str, list[Path]] = {}
    for path in sorted(directory.glob("*/*/part-*.parquet")):
        parts.setdefault(path.name, []).append(path)
    for name in sorted(parts):
        rows = [row for path in parts[name] for row in read_rows(path, EventRow)]
        rows.sort(key=lambda row: row.ordinal)
        yield from rows


def read_rows(path: Path, row_type: Any) -> list[Any]:  # noqa: ANN401 - any row struct
    """Return the rows of one Parquet file, as structs of that type.

    Raises:
        DataError: the file cannot be read as such rows; names the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A relative path might be read as a URI.
        table = pq.ParquetFile(path.absolute()).read()
        return [_row(values, row_type) for values in table.to_pylist()]
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is not a file of a trace: {first_line(error)}") from error


def check_file(path: Path, schema: "pa.Schema") -> None:
    """Check by the footer whether a Parquet file can hold rows of that schema.

    Columns missing in the file are null, like those that a later release adds.

    Raises:
        DataError: not a Parquet file, or it has none of the columns, or one of another type.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            found = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a file of a trace: {first_line(error)}") from error
    common = [name for name in schema.names if name in found.names]
    if not common:
        raise DataError(f"{path} is not a file of a trace: it has no column {schema.names[0]!r}")
    for name in common:
        if found.field(name).type != schema.field(name).type:
            raise DataError(
                f"{path} is not a file of a trace: its column {name!r} holds "
                f"{found.field(name).type}, not {schema.field(name).type}"
            )


def first_line(error: Exception) -> str:
    """Return the first line of an error, without details that only its library uses."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _row(values: dict[str, Any], row_type: Any) -> Any:  # noqa: ANN401 - any row struct
    if isinstance(values.get("attrs"), list):
        values["attrs"] = dict(values["attrs"])
    return msgspec.convert(values, row_type, builtin_types=(bytes,))


def table_of(batch: EventBatch, ordinals: Int64s, info: RunInfo, schema: "pa.Schema") -> "pa.Table":
    """Return the rows of a batch without objects.

    Args:
        batch: Events, none of which is an object.
        ordinals: Positions of the events in the run.
        info: Facts of the whole run.
        schema: Schema of the rows.
    """
    import pyarrow as pa

    count = len(batch)
    details = batch.own_details()
    told: dict[str, Any] = {
        "trace_id": pa.repeat(info.trace_id, count),
        "source_ref": batch.names.chosen(batch.files),
        "group_id": batch.names.chosen(batch.groups),
        "seq": pa.array(batch.seqs),
        "ordinal": pa.array(ordinals),
        "ts_us": pa.array(batch.ts_us),
        "ts_err_us": pa.array(batch.ts_err_us),
        "ts_kind": _of_enum(TIME_KINDS, batch.time_kinds),
        "event": _of_enum(KINDS, batch.kinds),
        "incarnation": pa.array(batch.incarnations),
        "generation": pa.array(
            np.where(batch.generations == UNKNOWN, 0, batch.generations),
            mask=batch.generations == UNKNOWN,
        ),
        "confidence": pa.repeat(1.0, count),
    }
    if details is not None:
        told |= {name: details.column(name) for name in details.column_names}
    return pa.table(
        [
            told[name].cast(schema.field(name).type)
            if name in told
            else pa.nulls(count, schema.field(name).type)
            for name in schema.names
        ],
        schema=schema,
    )


def _of_enum(members: Sequence[Enum], numbers: "NDArray[Any]") -> "pa.Array":
    import pyarrow as pa

    return pa.array([member.value for member in members], pa.string()).take(pa.array(numbers))


def _file_order(table: "pa.Table") -> Int64s:
    """Return the rows by group, time, number in its log, and position in the run."""
    groups = table.column("group_id").fill_null("").combine_chunks().dictionary_encode()
    ranks = np.argsort(np.argsort(groups.dictionary.to_numpy(zero_copy_only=False)))
    keys = [table.column(name).to_numpy() for name in ("ordinal", "seq", "ts_us")]
    return np.lexsort((*keys, ranks[groups.indices.to_numpy()]))


def table_of_rows(schema: "pa.Schema", rows: list[Any]) -> "pa.Table":
    """Return rows, as structs with the columns of a schema, as a table."""
    import pyarrow as pa

    columns = [
        pa.array([getattr(row, name) for row in rows], type=schema.field(name).type)
        for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _write_table(target: Path, table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, target, compression="zstd")
