"""Reads run directories into data frames of Spark. No metric is computed here."""

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.runs.parquet import check_file
from coordinator_sim.runs.run_directory import RunDirectory, latest_run, read_run
from coordinator_sim.trace.schema import (
    EVENTS_DIR,
    GENERATIONS_DIR,
    RESOURCES_DIR,
    EventRow,
    RunManifest,
    event_schema,
    generation_schema,
    resource_schema,
)
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import TraceFrames
from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.workers.dense_files import (
    PIECE_SCHEMA,
    pieces_of_files,
    pieces_of_rows,
)
from coordinator_sim_reports.workers.group import RunFacts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LISTED_RUNS: Final = 4
"""Most runs whose clusters stand in the plan itself: a join is a job of its own in each table."""
RUN_SCHEMA: Final = C.schema_with(
    (
        "text trace_id cluster_id source scenario assignor profile version",
        "long seed events undecodable_assignments first_ts_us last_ts_us",
        "text digest path",
    )
)
FILE_SCHEMA: Final = C.schema_with(
    (
        "text trace_id cluster_id path kind",
        "long lines parsed known unparsed events repeated offsets missing_offsets skipped_bytes",
        "text copy_of problem",
    )
)
SKEW_SCHEMA: Final = C.schema_with(
    (
        "text trace_id cluster_id first_source second_source",
        "long median_us widest_us facts",
    )
)


def open_traces(paths: Sequence[Path]) -> list[RunDirectory]:
    """Open the traces in these directories; a directory that is none may hold some below it.

    A directory that is named twice counts once.

    Raises:
        DataError: a path is neither a trace nor holds one.
        ConfigError: no path is given, or two directories hold the same run.
    """
    if not paths:
        raise ConfigError("name at least one trace directory")
    found = dict.fromkeys(trace for path in paths for trace in _trace_paths(path))
    runs = [read_run(trace) for trace in found]
    seen: dict[str, Path] = {}
    for run in runs:
        other = seen.setdefault(run.info.trace_id, run.path)
        if other != run.path:
            raise ConfigError(f"{other} and {run.path} are the same run; name one of them")
    return runs


def events_of(runs: Sequence[RunDirectory]) -> int:
    """Return the total number of events of traces; a trace without a count adds 0."""
    return sum(run.info.counts.get("events", 0) for run in runs)


def _trace_paths(path: Path) -> list[Path]:
    latest = latest_run(path)
    if latest is not None or (path / "run.json").is_file() or not path.is_dir():
        return [latest or path]
    nested = sorted([*path.glob("*/run.json"), *path.glob("*/*/run.json")])
    found = dict.fromkeys(latest_run(each.parent.parent) or each.parent for each in nested)
    if not found:
        raise DataError(f"{path} is not a trace and holds none: there is no run.json")
    return list(found)


def read_traces(spark: "SparkSession", runs: Sequence[RunDirectory]) -> TraceFrames:
    """Return the tables of these traces, each read with its declared schema.

    Raises:
        DataError: a Parquet file is no such table; names the file.
    """
    rows = _table(spark, runs, EVENTS_DIR, event_schema())
    known = listed(spark, run_rows(runs), ddl_of(RUN_SCHEMA))
    generations = _table(spark, runs, GENERATIONS_DIR, generation_schema())
    return TraceFrames(
        runs=known,
        events=_with_clusters(rows, runs, known),
        generations=generations,
        dense_pieces=_dense_pieces(spark, runs, generations),
        resources=_table(spark, runs, RESOURCES_DIR, resource_schema()),
        files=listed(spark, file_rows(runs), ddl_of(FILE_SCHEMA)),
        skews=listed(spark, skew_rows(runs), ddl_of(SKEW_SCHEMA)),
        facts=facts_of(runs),
    )


def facts_of(runs: Sequence[RunDirectory]) -> dict[str, RunFacts]:
    """Return facts of runs by trace id, for the workers."""
    return {run.info.trace_id: _facts(run.info) for run in runs}


def _facts(info: RunManifest) -> RunFacts:
    return RunFacts(
        source=info.source,
        scenario=info.scenario,
        assignor=info.assignor,
        profile=info.profile,
        version=info.version,
        seed=info.seed,
        undecodable_assignments=info.counts.get("undecodable_assignments", 0),
        first_ts_us=info.first_ts_us,
        last_ts_us=info.last_ts_us,
        end_us=info.last_ts_us or 0,
    )


def _with_clusters(
    rows: "DataFrame", runs: Sequence[RunDirectory], known: "DataFrame"
) -> "DataFrame":
    """Add `cluster_id`, which is a partition of the files.

    Spark cannot infer the partitions of several directories at once, and a union per run would make
    a plan as long as the list of runs.
    """
    from pyspark.sql import functions

    if len(runs) > _LISTED_RUNS:
        clusters = functions.broadcast(known.select("trace_id", "cluster_id"))
        return rows.join(clusters, "trace_id")
    pairs = [
        functions.lit(text) for run in runs for text in (run.info.trace_id, run.info.cluster_id)
    ]
    cluster = functions.create_map(*pairs)[functions.col("trace_id")]
    return rows.withColumn("cluster_id", cluster).where("cluster_id IS NOT NULL")


def run_rows(runs: Sequence[RunDirectory]) -> list[tuple[object, ...]]:
    """Return a row of `RUN_SCHEMA` for each trace."""
    return [
        (
            run.info.trace_id,
            run.info.cluster_id,
            run.info.source.value,
            run.info.scenario,
            run.info.assignor,
            run.info.profile,
            run.info.version,
            run.info.seed,
            run.info.counts.get("events", 0),
            run.info.counts.get("undecodable_assignments", 0),
            run.info.first_ts_us,
            run.info.last_ts_us,
            run.info.digest,
            str(run.path),
        )
        for run in runs
    ]


def file_rows(runs: Sequence[RunDirectory]) -> list[tuple[object, ...]]:
    """Return a row of `FILE_SCHEMA` for each file that an import read."""
    return [
        (run.info.trace_id, run.info.cluster_id, *msgspec.structs.astuple(file))
        for run in runs
        for file in run.info.files
    ]


def skew_rows(runs: Sequence[RunDirectory]) -> list[tuple[object, ...]]:
    """Return a row of `SKEW_SCHEMA` for each pair of an import's sources."""
    return [
        (
            *(run.info.trace_id, run.info.cluster_id, skew.first.value, skew.second.value),
            *(skew.median_us, skew.widest_us, skew.facts),
        )
        for run in runs
        for skew in run.info.skews
    ]


def _table(
    spark: "SparkSession", runs: Sequence[RunDirectory], name: str, schema: pa.Schema
) -> "DataFrame":
    columns = ddl_of(schema)
    parts: list[DataFrame] = []
    for trace_format in ("parquet", "jsonl"):
        paths = [
            run.path / name
            for run in runs
            if run.info.format == trace_format and (run.path / name).is_dir()
        ]
        if trace_format == "parquet":
            for path in paths:
                for file in sorted(path.rglob("*.parquet")):
                    check_file(file, schema)
        if paths:
            reader = spark.read.schema(columns).option("recursiveFileLookup", value=True)
            names = [str(path) for path in paths]
            part = reader.parquet(*names) if trace_format == "parquet" else reader.json(names)
            if trace_format == "jsonl" and name != RESOURCES_DIR:
                part = _counted(part, runs, name)
            if trace_format == "jsonl" and name == EVENTS_DIR:
                part = _with_defaults(part)
            parts.append(part)
    if not parts:
        return listed(spark, [], columns)
    return reduce(lambda some, more: some.unionByName(more), parts)


def _counted(rows: "DataFrame", runs: Sequence[RunDirectory], name: str) -> "DataFrame":
    """Leave out what a run that was killed wrote behind the last event that its record counts."""
    from pyspark.sql import functions

    def is_counted(info: RunManifest) -> "Column":
        if name == EVENTS_DIR:
            return functions.col("ordinal") < info.counts["events"]
        at_us = functions.coalesce("sync_us", "join_done_us", functions.lit(0))
        return at_us <= (info.last_ts_us or 0)

    ends = [
        (functions.col("trace_id") == run.info.trace_id) & is_counted(run.info)
        for run in runs
        if run.info.format == "jsonl"
    ]
    return rows.where(reduce(or_, ends))


def _dense_pieces(
    spark: "SparkSession", runs: Sequence[RunDirectory], generations: "DataFrame"
) -> "DataFrame":
    """Return the assignments of groups as bytes; Parquet passes Spark's own rows by."""
    ddl = ddl_of(PIECE_SCHEMA)
    folders = [run.path / GENERATIONS_DIR for run in runs if run.info.format == "parquet"]
    known = [str(folder) for folder in folders if folder.is_dir()]
    lines = [run.info.trace_id for run in runs if run.info.format == "jsonl"]
    parts = []
    if known:
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", value=True)
        parts.append(reader.load(known).select("content").mapInArrow(pieces_of_files, ddl))
    if lines:
        rows = generations.where(generations["trace_id"].isin(lines))
        parts.append(rows.mapInArrow(pieces_of_rows, ddl))
    if not parts:
        return listed(spark, [], ddl)
    return reduce(lambda some, more: some.unionByName(more), parts)


def _with_defaults(events: "DataFrame") -> "DataFrame":
    """Fill in the values that a line of an event leaves out because they are the defaults."""
    from pyspark.sql import functions

    scalars = {}
    for column in msgspec.structs.fields(EventRow):
        default = column.default.value if isinstance(column.default, Enum) else column.default
        if default is not None and default is not msgspec.NODEFAULT:
            scalars[column.name] = default
    no_attrs = functions.expr("map()").cast("map<string, string>")
    return events.na.fill(scalars).withColumn("attrs", functions.coalesce("attrs", no_attrs))


def ddl_of(schema: pa.Schema) -> str:
    """Return an Arrow schema as Spark's column list."""
    return ", ".join(f"`{column.name}` {_spark_type(column.type)}" for column in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (f"`{each.name}`: {_spark_type(each.type)}" for each in kind.fields)
        return f"struct<{', '.join(fields)}>"
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)}, {_spark_type(kind.item_type)}>"
    return {
        pa.string(): "string",
        pa.binary(): "binary",
        pa.bool_(): "boolean",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float64(): "double",
    }[kind]
