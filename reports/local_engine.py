"""Computes a report in this process, by DuckDB: a small one is done before a JVM would be up."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb.func import SPECIAL
from pyarrow.dataset import dataset

from coordinator_sim.errors import DataError
from coordinator_sim.runs.event_columns import table_of_events
from coordinator_sim.runs.parquet import check_file, first_line, table_of_rows
from coordinator_sim.runs.run_directory import RunDirectory
from coordinator_sim.trace.events import RunInfo
from coordinator_sim.trace.schema import (
    EVENTS_DIR,
    GENERATIONS_DIR,
    RESOURCES_DIR,
    event_schema,
    generation_schema,
    resource_schema,
)
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Dialect, MakeBatches, Row, TraceFrames
from coordinator_sim_reports.sources import (
    FILE_SCHEMA,
    RUN_SCHEMA,
    SKEW_SCHEMA,
    facts_of,
    file_rows,
    run_rows,
    skew_rows,
)
from coordinator_sim_reports.workers.dense_files import PIECE_SCHEMA, pieces_of_table
from coordinator_sim_reports.workers.group_records import DENSE

DUCKDB: Final = Dialect(
    exploded=lambda array, at, item: (
        f"generate_subscripts({array}, 1) - 1 AS {at}, unnest({array}) AS {item}"
    ),
    item=lambda array, at: f"{array}[{at} + 1]",
    struct=lambda names: f"struct_pack({', '.join(f'{name} := {name}' for name in names)})",
    sorted_list=lambda value: f"list_sort(list({value}))",
    distinct=lambda value: f"count(DISTINCT {value})",
)
_MEMORY: Final = "1GB"
"""What DuckDB holds before it writes to the disk."""
_INTERRUPTED: Final = ("Query interrupted", "KeyboardInterrupt")
"""What DuckDB says of Ctrl-C."""
_ROWS: Final = 20_000
"""Rows of a batch of records, some tens of megabytes as objects."""
_PIECE_BYTES: Final = 32 << 20
"""Bytes of assignments in a batch of records, or those of one group."""
_PLACE: Final = Struct("<QQ")
"""Where the bytes of a piece are: offset and length."""


class LocalPass:
    """What one pass over groups made: files of tables, of which a view is made when it is read."""

    def __init__(self, engine: "LocalEngine", folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def table(self, name: str) -> str:
        """Return the rows of a table."""
        return self._engine.file(self._folder / f"{name}.parquet")


class LocalEngine:
    """Runs statements in this process; see `engine.Engine`. A context manager.

    Args:
        tables: Holds one directory of Parquet files per table; tables in it are replaced.
        progress: Called with the name of each table that is done.
        runs: The traces that `read` returns.
    """

    dialect = DUCKDB

    def __init__(
        self, tables: Path, progress: Callable[[str], None], runs: Sequence[RunDirectory]
    ) -> None:
        self._tables = tables.absolute()
        self._progress = progress
        self._runs = runs
        self._views = 0
        self._functions: set[str] = set()
        self._stack = ExitStack()
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="coordinator-sim-"))
        self._scratch = Path(scratch)
        self._pieces_file = self._scratch / "pieces"
        self._pieces_file.touch()
        # Sums over parts of a table would depend on which thread is done first.
        config: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": scratch, "threads": 1}
        self._database = self._stack.enter_context(duckdb.connect(config=config))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        if _is_interrupted(error):
            raise KeyboardInterrupt from error

    def read(self) -> TraceFrames:
        """Return the tables of the traces.

        Raises:
            DataError: a file is no such table; names the file.
        """
        runs = self.listed(run_rows(self._runs), RUN_SCHEMA)
        rows = self._table(EVENTS_DIR, event_schema())
        return TraceFrames(
            runs=runs,
            events=self.sql(
                "SELECT e.*, r.cluster_id FROM {rows} e JOIN {runs} r ON e.trace_id = r.trace_id",
                rows=rows,
                runs=runs,
            ),
            generations=self._table(GENERATIONS_DIR, generation_schema()),
            dense_pieces=self._pieces(),
            resources=self._table(RESOURCES_DIR, resource_schema()),
            files=self.listed(file_rows(self._runs), FILE_SCHEMA),
            skews=self.listed(skew_rows(self._runs), SKEW_SCHEMA),
            facts=facts_of(self._runs),
        )

    def sql(self, statement: str, **frames: str) -> str:
        """Return the rows of a statement."""
        return self._view(statement.format(**frames))

    def listed(self, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> str:
        """Return rows that are at hand as a frame."""
        return self.frame_of(pa.Table.from_arrays(C.arrays_of(rows, schema), schema=schema))

    def rows(self, frame: str) -> list[Row]:
        """Compute the rows of a frame."""
        rows: list[Row] = self.arrow(frame).to_pylist(maps_as_pydicts="strict")
        return rows

    def shared(self, frame: str) -> str:
        """Return a frame as it is: what is at hand costs nothing again."""
        return frame

    def register(self, name: str, function: Callable[[str, int | None], int]) -> None:
        """Let statements call a function."""
        if name not in self._functions:
            kinds: list[Any] = ["VARCHAR", "INTEGER"]
            self._database.create_function(name, function, kinds, "INTEGER", null_handling=SPECIAL)
            self._functions.add(name)

    def by_group(
        self, records: str, make: MakeBatches, schemas: Mapping[str, pa.Schema]
    ) -> LocalPass:
        """Make the rows of tables, from the records of one group after the other."""
        key = ", ".join(C.GROUP_KEY)
        ordered = self.sql(
            f"SELECT *, hash({key}) AS {C.GROUP_HASH} FROM {{records}}"
            f" ORDER BY {key}, {C.ORDINAL} NULLS FIRST",
            records=records,
        )
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        with ExitStack() as stack, self._damage_named():
            files = {
                name: stack.enter_context(pq.ParquetWriter(folder / f"{name}.parquet", schema))
                for name, schema in schemas.items()
            }
            reader = self._database.table(ordered).to_arrow_reader(_ROWS)
            batches = stack.enter_context(reader)
            for batch in make(self._with_pieces(batches)):
                for name, file in files.items():
                    rows = pa.RecordBatch.from_struct_array(batch.column(name).flatten())
                    file.write_batch(rows)
        return LocalPass(self, folder)

    def keep(self, name: str, frame: str) -> str:
        """Write a table in the order of its columns, and return it as read from its file."""
        return self.file(self._written(name, frame))

    def write(self, name: str, frame: str) -> str:
        """Write a table, and return it as it is."""
        self._written(name, frame)
        return frame

    def file(self, path: Path) -> str:
        """Return the rows of a Parquet file as a frame."""
        with self._damage_named():
            return self.frame_of(dataset([str(path)], format="parquet"))

    def _written(self, name: str, frame: str) -> Path:
        folder = self._tables / name
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
        folder.mkdir(parents=True)
        path = folder / "part-00000.parquet"
        with self._damage_named():
            self._database.execute(
                f"COPY (SELECT * FROM {frame} ORDER BY ALL) TO {_quoted(str(path))}"
                " (FORMAT parquet, COMPRESSION zstd)"
            )
        self._progress(name)
        return path

    def _pieces(self) -> str:
        """Return the assignments of groups as bytes, of one file after the other."""
        schema = generation_schema()
        rows = (table for run in self._runs for table in _tables(run, GENERATIONS_DIR, schema))
        return self.pieces_of(batch for table in rows for batch in pieces_of_table(table))

    def pieces_of(self, batches: Iterable[pa.RecordBatch]) -> str:
        """Return pieces (`PIECE_SCHEMA`) as a frame, of which the bytes wait in a file.

        Sorted with the other records of groups, they would have to fit into memory together.
        """
        place = PIECE_SCHEMA.get_field_index(DENSE)
        found = [PIECE_SCHEMA.empty_table()]
        with self._pieces_file.open("ab") as file:
            for batch in batches:
                places = []
                for piece in batch.column(place):
                    places.append(_PLACE.pack(file.tell(), len(piece.as_buffer())))
                    file.write(piece.as_buffer())
                columns = batch.columns
                columns[place] = pa.array(places, pa.binary())
                found.append(pa.table(columns, schema=PIECE_SCHEMA))
        return self.frame_of(pa.concat_tables(found))

    def _with_pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield records with the bytes of their pieces, cut so that they fit into memory."""
        with self._pieces_file.open("rb") as file:
            for batch in batches:
                first = size = 0
                dense: list[bytes | None] = []
                for row, place in enumerate(batch.column(DENSE).to_pylist(), 1):
                    dense.append(None)
                    if place is not None:
                        offset, length = _PLACE.unpack(place)
                        file.seek(offset)
                        dense[-1] = file.read(length)
                        size += length
                    if size >= _PIECE_BYTES or row == batch.num_rows:
                        yield _replaced(batch.slice(first, row - first), DENSE, dense)
                        first, size, dense = row, 0, []

    def _table(self, name: str, schema: pa.Schema) -> str:
        """Return the rows of a table of all traces; columns that a file lacks are null."""
        paths = [path for run in self._runs for path in _files(run, name)]
        for path in paths:
            check_file(path, schema)
        lines = [run for run in self._runs if run.info.format == "jsonl"]
        if lines or not paths:
            paths.append(self._scratch / f"{name}.parquet")
            with pq.ParquetWriter(paths[-1], schema) as writer:
                for run in lines:
                    for rows in _tables(run, name, schema):
                        writer.write_table(rows)
        found = [str(path) for path in paths]
        return self.frame_of(dataset(found, schema=schema, format="parquet"))

    def arrow(self, frame: str) -> pa.Table:
        """Compute the rows of a frame, as a table."""
        with self._damage_named():
            return self._database.table(frame).to_arrow_table()

    def frame_of(self, table: Any) -> str:  # noqa: ANN401 - a table, or a dataset of files
        """Return rows that Arrow has as a frame."""
        name = self._named()
        self._database.register(name, table)
        return name

    def _view(self, query: str) -> str:
        name = self._named()
        self._database.execute(f"CREATE TEMP VIEW {name} AS {query}")
        return name

    def _named(self) -> str:
        self._views += 1
        return f"frame_{self._views}"

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        """Name the file that cannot be read, where a statement fails for one.

        Raises:
            DataError: it does, or what is computed fits neither into memory nor on the disk.
            KeyboardInterrupt: Ctrl-C ended it.
        """
        try:
            yield
        except duckdb.OutOfMemoryException as error:
            raise DataError(
                f"the report needs more than {_MEMORY} of memory here; name a Spark master, "
                "as --master 'local[2]'"
            ) from error
        except (duckdb.Error, pa.ArrowException) as error:
            if _is_interrupted(error):
                raise KeyboardInterrupt from error
            for run in self._runs:
                for name in (EVENTS_DIR, GENERATIONS_DIR, RESOURCES_DIR):
                    for path in _files(run, name):
                        _read(path)
            reason = first_line(error).partition(": {")[0]
            raise DataError(f"the tables cannot be made in {self._tables}: {reason}") from error


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether an error is what DuckDB makes of Ctrl-C."""
    is_its_own = isinstance(error, RuntimeError | duckdb.Error)
    return is_its_own and any(words in str(error) for words in _INTERRUPTED)


def _files(run: RunDirectory, name: str) -> list[Path]:
    """Return the Parquet files of a table; a relative one might be read as a URI."""
    folder = run.path.absolute() / name
    return sorted(folder.rglob("*.parquet")) if run.info.format == "parquet" else []


def _tables(run: RunDirectory, name: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of a table of a trace, some at a time."""
    for path in _files(run, name):
        parts = [schema.empty_table(), _read(path)]
        yield pa.concat_tables(parts, promote_options="default").select(schema.names)
    if run.info.format != "jsonl":
        return
    if name != EVENTS_DIR:
        rows: Iterator[Any] = run.generations() if name == GENERATIONS_DIR else run.resources()
        while some := list(islice(rows, _ROWS)):
            yield table_of_rows(schema, some)
        return
    info = run.info
    shared = RunInfo(
        trace_id=info.trace_id,
        source=info.source,
        cluster_id=info.cluster_id,
        version=info.version,
        profile=info.profile,
    )
    events, first = run.events(), 0
    while some := list(islice(events, _ROWS)):
        yield table_of_events(some, range(first, first + len(some)), shared, schema)
        first += len(some)


def _replaced(batch: pa.RecordBatch, name: str, values: list[Any]) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), pa.array(values, pa.binary()))


def _read(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: it is damaged") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
