"""Traces as Parquet: zstd, one file per flush, so that memory stays bounded in long runs.

`events` is partitioned like Hive (`cluster_id=.../day=.../part-NNNNN.parquet`); each file
is sorted by group, time and seq. Arrow is imported by the functions that use it.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from coordinator_sim.errors import DataError
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.schema import EventRow, day_of, plain, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_FILE: Final = 100_000
"""Events held in memory before a flush: about 100 MB of rows."""
CELLS_PER_FILE: Final = 2_000_000
"""Array elements of dense rows held in memory before a flush."""


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
        self._rows: list[EventRow] = []
        self._part = 0
        self.count = 0
        """Number of rows taken."""

    def take(self, events: Iterable[TraceEvent], first: int) -> None:
        """Append the rows of events, of which the first is at that position in the run.

        All rows of one event are in one file.
        """
        for ordinal, event in enumerate(events, first):
            before = len(self._rows)
            self._rows += rows_of(event, ordinal, self._info)
            self.count += len(self._rows) - before
            if len(self._rows) >= self._rows_per_file:
                self._flush()

    def close(self) -> None:
        """Write the remaining rows."""
        if self._rows:
            self._flush()

    def _flush(self) -> None:
        by_day: dict[str, list[EventRow]] = {}
        for row in self._rows:
            by_day.setdefault(day_of(row.ts_us), []).append(row)
        for day, rows in by_day.items():
            rows.sort(key=_file_order)
            target = self._directory / f"day={day}" / f"part-{self._part:05d}.parquet"
            _write_rows(target, self._schema, rows)
        self._part += 1
        self._rows = []


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

    def _flush(self) -> None:
        target = self._directory / f"part-{self._part:05d}.parquet"
        _write_rows(target, self._schema, self._rows)
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
        table = pq.ParquetFile(path).read()
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
        found = pq.read_schema(path)
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


def _file_order(row: EventRow) -> tuple[str, int, int, int]:
    return (row.group_id or "", row.ts_us, row.seq, row.ordinal)


def _write_rows(target: Path, schema: "pa.Schema", rows: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [
        pa.array([plain(getattr(row, name)) for row in rows], type=schema.field(name).type)
        if name != "attrs"
        else pa.array([list(row.attrs.items()) for row in rows], type=schema.field(name).type)
        for name in schema.names
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, target, compression="zstd")
