"""Computes a report by Spark, on this machine or on a cluster."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.runs.run_directory import RunDirectory
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Dialect, MakeBatches, Row, TraceFrames
from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.sources import ddl_of, read_traces
from coordinator_sim_reports.workers.group_tables import pass_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK: Final = Dialect(
    exploded=lambda array, at, item: f"posexplode({array}) AS ({at}, {item})",
    item=lambda array, at: f"{array}[{at}]",
    struct=lambda names: f"struct({', '.join(names)})",
    sorted_list=lambda value: f"array_sort(collect_list({value}))",
    # As a distinct count, each row would be shuffled twice.
    distinct=lambda value: f"CAST(size(collect_set({value})) AS BIGINT)",
)


class SparkPass:
    """What one pass over groups made, kept on the disks of the workers."""

    def __init__(self, made: "DataFrame", schemas: Mapping[str, pa.Schema]) -> None:
        self._made = made.persist(StorageLevel.DISK_ONLY)
        self._schemas = schemas

    def table(self, name: str) -> "DataFrame":
        """Return the rows of a table."""
        return self._made.select(F.inline(name)).select(*self._schemas[name].names)


class SparkEngine:
    """Runs statements as jobs of a Spark session; see `engine.Engine`.

    Args:
        spark: The session.
        tables: Holds one directory of Parquet files per table; tables in it are replaced.
        progress: Called with the name of each table that is done.
        runs: The traces that `read` returns.
    """

    dialect = SPARK

    def __init__(
        self,
        spark: "SparkSession",
        tables: Path,
        progress: Callable[[str], None],
        runs: Sequence[RunDirectory] = (),
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._progress = progress
        self._runs = runs

    def read(self) -> TraceFrames:
        """Return the tables of the traces."""
        return read_traces(self._spark, self._runs)

    def sql(self, statement: str, **frames: "DataFrame") -> "DataFrame":
        """Return the rows of a statement."""
        return self._spark.sql(statement, args=None, **frames)

    def listed(self, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> "DataFrame":
        """Return rows that are at hand as a frame; of none, plans know that there are none."""
        return listed(self._spark, rows, ddl_of(schema))

    def rows(self, frame: "DataFrame") -> list[Row]:
        """Compute the rows of a frame."""
        return [row.asDict(recursive=True) for row in frame.collect()]

    def shared(self, frame: "DataFrame") -> "DataFrame":
        """Return a frame that is computed once, though several statements read it."""
        return frame.persist(StorageLevel.DISK_ONLY)

    def register(self, name: str, function: Callable[[str, int | None], int]) -> None:
        """Let statements call a function."""
        self._spark.udf.register(name, F.udf(function, "int", useArrow=False))

    def by_group(
        self, records: "DataFrame", make: MakeBatches, schemas: Mapping[str, pa.Schema]
    ) -> SparkPass:
        """Let tasks make the rows of tables, each from the records of some groups."""
        made = (
            records.withColumn(C.GROUP_HASH, F.xxhash64(*C.GROUP_KEY))
            .repartition(C.GROUP_HASH)
            .sortWithinPartitions(C.GROUP_HASH, C.ORDINAL)
            .mapInArrow(make, ddl_of(pass_schema(schemas)))
        )
        return SparkPass(made, schemas)

    def keep(self, name: str, frame: "DataFrame") -> "DataFrame":
        """Write a table, and return it as read from its files."""
        self.write(name, frame)
        return self._spark.read.schema(frame.schema).parquet(str(self._tables / name))

    def write(self, name: str, frame: "DataFrame") -> "DataFrame":
        """Write a table, and return it as it is, for one that is at hand anyway."""
        path = str(self._tables / name)
        frame.write.mode("overwrite").option("compression", "zstd").parquet(path)
        self._progress(name)
        return frame
