"""`spark.read.format("kafka-group-trace")`: sources of a cluster as the events of a trace.

Files are read inside Spark tasks by the readers of `ingest`, and nothing is settled between them:
each file, and each partition of the offsets topic, is a story of its own and a task of its own.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from coordinator_sim import __version__
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.ingest.ahead import APART_US
from coordinator_sim.ingest.files import find_files, recognise
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import SOURCE_OF, Kind
from coordinator_sim.ingest.readers import Reading
from coordinator_sim.ingest.segments import partition_logs
from coordinator_sim.ingest.stages import Stages
from coordinator_sim.ingest.streams import Appendable, Streams
from coordinator_sim.runs.event_columns import table_of_events
from coordinator_sim.runs.parquet import table_of
from coordinator_sim.trace.batches import EventBatch
from coordinator_sim.trace.events import RunInfo
from coordinator_sim.trace.schema import event_schema
from coordinator_sim_reports.hadoop_files import is_uri
from coordinator_sim_reports.shipping import ship_for_good
from coordinator_sim_reports.sources import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Final = "kafka-group-trace"
KINDS: Final = {
    "broker-log": Kind.LOG,
    "request-log": Kind.REQUEST_LOG,
    "segments": Kind.SEGMENT,
    "dump-log": Kind.DUMP,
    "formatter-text": Kind.FORMATTER_TEXT,
    "formatter-json": Kind.FORMATTER_JSON,
    "capture": Kind.CAPTURE,
    "description": Kind.DESCRIPTION,
}
"""Values of the option `kind`; logs of clients and Connect workers are read as `broker-log`."""
_OPTIONS: Final = ("kind", "tz", "cluster", "damaged", "path", "paths")
_ON_DAMAGE: Final = ("fail", "keep")
_HARMLESS: Final = "zeros"
"""Bytes of a segment that are no damage: its file was made in full size."""


def register(spark: "SparkSession") -> None:
    """Make the format known to a session; workers of a cluster that lack this package get its code.

    Args:
        spark: The session.
    """
    ship_for_good(spark)
    spark.dataSource.register(GroupTraceSource)


class GroupTraceSource(DataSource):
    """The data source; `docs/guides/ingest.md` describes its options."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` calls it."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of the trace's events."""
        return ddl_of(event_schema())

    def reader(self, schema: object) -> "GroupTraceReader":
        """Return the reader; the schema is fixed.

        Raises:
            ConfigError: An option is unknown, or has a value that there is not.
        """
        del schema
        return GroupTraceReader({name.lower(): text for name, text in self.options.items()})


@dataclass(frozen=True, slots=True)
class SourceFiles(InputPartition):
    """What one task reads.

    Args:
        files: One file, or the segments of one partition of the offsets topic.
        kind: What they are.
        trace_id: Of everything that is loaded together.
    """

    files: tuple[str, ...]
    kind: Kind
    trace_id: str


class GroupTraceReader(DataSourceReader):
    """Reads what was named.

    Args:
        options: As the user gave them, names in lower case.

    Raises:
        ConfigError: An option is unknown, or has a value that there is not.
    """

    def __init__(self, options: dict[str, str]) -> None:
        for name in options:
            if name not in _OPTIONS:
                raise ConfigError(f"option {name!r}: must be one of {', '.join(_OPTIONS)}")
        self._kind = _one_of(options, "kind", (*KINDS, "any"), "any")
        self._damaged = _one_of(options, "damaged", _ON_DAMAGE, "fail")
        self._tz = options.get("tz", "UTC")
        self._cluster = options.get("cluster", "cluster")
        self._paths = [_path_of(text) for text in _named(options)]
        try:
            ZoneInfo(self._tz)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ConfigError(
                f"option tz={self._tz!r}: no such time zone; use an IANA name such as UTC"
            ) from error

    def partitions(self) -> list[SourceFiles]:
        """Return a task for each file, and for each partition of the offsets topic.

        Raises:
            ConfigError: A path does not exist, or a file is of another kind than was named.
        """
        found = [self._recognised(path) for path in find_files(self._paths).files]
        sizes = [(one.name, one.path.stat().st_size) for one in found]
        known = repr((sizes, self._kind, self._tz, self._cluster)).encode()
        trace_id = hashlib.sha256(known).hexdigest()[:32]
        segments = partition_logs([one for one in found if one.kind is Kind.SEGMENT])
        tasks = [[one] for one in found if one.kind is not Kind.SEGMENT]
        return [
            SourceFiles(tuple(one.name for one in files), files[0].kind, trace_id)
            for files in (*tasks, *segments.values())
        ]

    def _recognised(self, path: Path) -> Import:
        kind = recognise(path)
        if isinstance(kind, str):
            raise ConfigError(f"{path}: {kind}")
        if self._kind != "any" and kind is not KINDS[self._kind]:
            word = next(word for word, known in KINDS.items() if known is kind)
            raise ConfigError(
                f"{path} is a {kind.value}, and option kind={self._kind!r} asks for another kind; "
                f"load it with kind={word!r}"
            )
        return Import(path.absolute(), kind)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of one task, in the order in which they happened.

        Raises:
            DataError: A file is damaged, and `damaged` is not `keep`.
            OSError: A file is not there.
        """
        if not isinstance(partition, SourceFiles):
            raise TypeError(f"{partition!r} is no partition of this reader")
        files = [Import(Path(name), partition.kind) for name in partition.files]
        for one in files:
            one.path.stat()
        info = RunInfo(
            trace_id=partition.trace_id,
            source=SOURCE_OF[partition.kind],
            cluster_id=self._cluster,
            version=__version__,
            profile="ingested",
        )
        schema, first = event_schema(), 0
        for batch in _events(files, self._tz):
            yield from _table(batch, first, info, schema).to_batches()
            first += len(batch)
        if self._damaged == "fail":
            _check_whole(files)


def _events(files: list[Import], tz: str) -> Iterator[EventBatch]:
    """The events of files that belong together, as `ingest` reads them."""
    stages = Stages(files, (files[0].kind,), {}, has_several=False)
    reading = Reading(
        zone=ZoneInfo(tz),
        keep_raw=False,
        overlapping=frozenset(),
        note_progress=lambda _path, _used: None,
        names=stages.names,
    )
    for batch in Streams(files, reading, Appendable(), APART_US).merge().batches():
        yield from stages.pass_on(batch)
    yield from stages.finish()


def _table(batch: EventBatch, first: int, info: RunInfo, schema: pa.Schema) -> pa.Table:
    """The rows of a batch, of which the first event is at that position."""
    positions = np.arange(first, first + len(batch))
    told = batch.having(seqs=np.where(batch.seqs < 0, positions, batch.seqs)).without_raw()
    if told.objects is None:
        return table_of(told, positions, info, schema)
    return table_of_events(list(told.events()), positions.tolist(), info, schema)


def _check_whole(files: list[Import]) -> None:
    for one in files:
        skipped = [] if one.segment is None else one.segment.skipped
        hurt = next((part for part in skipped if not part.reason.startswith(_HARMLESS)), None)
        problem = one.problem
        if problem is None and hurt is not None:
            problem = f"{hurt.size} bytes at {hurt.position} hold no good batch: {hurt.reason}"
        if problem is not None:
            raise DataError(
                f"{one.name}: {problem}; option damaged='keep' takes what is readable, and "
                "`coordinator-sim ingest` lists what is not"
            )


def _one_of(options: dict[str, str], name: str, known: tuple[str, ...], default: str) -> str:
    text = options.get(name, default)
    if text not in known:
        raise ConfigError(f"option {name}={text!r}: must be one of {', '.join(known)}")
    return text


def _named(options: dict[str, str]) -> list[str]:
    named = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    if not all(named):
        raise ConfigError("no path: name files or folders in load(...)")
    return [str(each) for each in named]


def _path_of(text: str) -> Path:
    """The path of what was named: workers in Python open no file systems of Hadoop's."""
    if not is_uri(text):
        return Path(text)
    told = urlsplit(text)
    if told.scheme != "file" or told.netloc not in ("", "localhost"):
        raise ConfigError(
            f"{text} is a URI, and this format takes paths that workers see, and file: URIs; "
            "`coordinator-sim ingest --spark` takes others, and spark.read.parquet reads its trace"
        )
    return Path(unquote(told.path))
