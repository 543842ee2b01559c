"""The whole of an import: files recognised and compared, read side by side, written as one trace.

Each kind of file has a reader that gives events in the order in which they happened; `merge_logs`
puts those of all files together, and `Precedence` leaves out what two kinds tell.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim import __version__
from coordinator_sim.errors import DataError
from coordinator_sim.ingest.files import (
    FoundFiles,
    LogFileReader,
    content_digest,
    find_files,
    holds,
    recognise,
)
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import REQUEST_MARK, SOURCE_OF, Kind
from coordinator_sim.ingest.precedence import Precedence, best_source
from coordinator_sim.ingest.readers import Reading, streams_of
from coordinator_sim.ingest.skew import Skews
from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.logtext.reading.merging import TimedLog, merge_logs
from coordinator_sim.logtext.reading.repeats import (
    ContentPart,
    LogContents,
    OneCluster,
    RepeatedLines,
)
from coordinator_sim.runs.run_directory import RunDirectoryWriter, TraceFormat, check_replaceable
from coordinator_sim.trace.batches import EventBatch, Names, batches_of
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import steadied_trace
from coordinator_sim.trace.sources_read import Skew


@dataclass(slots=True)
class Progress:
    """Bytes used of all files together."""

    advance: Callable[[int], None]
    done: dict[Path, int] = field(default_factory=dict)
    total: int = 0

    def note(self, path: Path, used: int) -> None:
        """Note how much of a file was used."""
        self.total += used - self.done.get(path, 0)
        self.done[path] = used
        self.advance(self.total)


class Options(Struct, frozen=True, kw_only=True):
    """How to read.

    Args:
        zone: Zone of the times of text that name none.
        tz: Its name.
        cluster: Name of the cluster that all files are of.
        keep_raw: Whether events keep their line.
        trace_format: Form of the trace.
    """

    zone: tzinfo
    tz: str = "UTC"
    cluster: str = "cluster"
    keep_raw: bool = False
    trace_format: TraceFormat = "parquet"


@dataclass(slots=True)
class Importing:
    """Files of one cluster, and what came of reading them.

    Args:
        files: Every file, in the order in which they are told.
        contents: Logs that are copies of others, or share lines with them.
        other_topics: Segments of other topics that were left out.
        left_out: Source -> facts that another source tells too.
        skews: By how much the clocks of the sources differ.
    """

    files: list[Import]
    contents: LogContents = field(default_factory=LogContents)
    other_topics: int = 0
    left_out: dict[Source, int] = field(default_factory=dict)
    skews: list[Skew] = field(default_factory=list)

    @property
    def usable(self) -> list[Import]:
        """Files that are read: no copies, and none with a problem."""
        return [one for one in self.files if one.problem is None and one.copy_of is None]

    @property
    def bad(self) -> list[Import]:
        """Files with a problem."""
        return [one for one in self.files if one.problem is not None]


ContentsOf = Callable[[list[Path]], Iterator[Iterable[ContentPart]]]
"""Gives the contents of logs in their order, each in parts."""


def prepare(paths: list[Path], contents_of: ContentsOf | None = None) -> Importing:
    """Find the files, see what each is, and which are copies of others.

    Args:
        paths: What the user names.
        contents_of: Reads what logs hold elsewhere; None to read it here.

    Raises:
        ConfigError: A path does not exist, or a folder holds nothing to read.
    """
    found: FoundFiles = find_files(paths)
    files = []
    for path in found.files:
        kind = recognise(path)
        if isinstance(kind, str):
            files.append(Import(path, problem=kind))
        else:
            files.append(Import(path, kind))
    importing = Importing(files, other_topics=found.other_topics)
    _compare_contents(importing, contents_of)
    for one in importing.usable:
        one.more = _more_kinds(one)
    return importing


def _compare_contents(importing: Importing, contents_of: ContentsOf | None) -> None:
    """Mark the copies among the files, and find the logs that share lines."""
    readable = [one for one in importing.files if one.problem is None]
    if len(readable) <= 1:
        return
    logs = [one.path for one in readable if one.kind is Kind.LOG]
    contents = iter(()) if contents_of is None else contents_of(logs)
    whole: dict[str, str] = {}
    for one in readable:
        name = str(one.path)
        if one.kind is Kind.LOG:
            if contents_of is None:
                reader = LogFileReader(one.path, lambda _used: None)
                importing.contents.add(name, reader.lines())
            else:
                importing.contents.add_parts(name, next(contents))
            one.copy_of = importing.contents.copy_of.get(name)
            continue
        digest = content_digest(one.path)
        first = whole.setdefault(digest, name) if digest and one.path.stat().st_size else name
        # Replicas have equal segments; the reader of a partition counts each offset once.
        one.copy_of = first if first != name and one.kind is not Kind.SEGMENT else None


def _more_kinds(one: Import) -> Kind | None:
    """Whether a log also has requests, or a request log also lines of a coordinator."""
    if one.kind is Kind.LOG and holds(one.path, REQUEST_MARK.encode()):
        return Kind.REQUEST_LOG
    is_mixed = one.kind is Kind.REQUEST_LOG and (
        holds(one.path, b"[GroupCoordinator ") or holds(one.path, b"[GroupMetadataManager ")
    )
    return Kind.LOG if is_mixed else None


def run_info(importing: Importing, options: Options) -> RunInfo:
    """What the trace shares; the same files and options give the same trace id."""
    files = [(str(one.path), one.path.stat().st_size) for one in importing.files]
    digest = hashlib.sha256(repr((files, options.tz, options.cluster)).encode())
    sources = [SOURCE_OF[kind] for one in importing.usable for kind in one.kinds]
    return RunInfo(
        trace_id=digest.hexdigest()[:32],
        source=best_source(sources),
        cluster_id=options.cluster,
        version=__version__,
        profile="ingested",
        options={"tz": options.tz},
    )


def write_trace(
    importing: Importing,
    options: Options,
    out: Path,
    advance: Callable[[int], None],
    read_logs: Callable[[Names], dict[str, TimedLog]] | None = None,
) -> None:
    """Read all files side by side, in time order, into a run directory.

    Args:
        importing: Its files get their counts and problems.
        options: How to read.
        out: The run directory to write.
        advance: Told the bytes used so far, now and then.
        read_logs: Gives the logs that are read elsewhere, by their names; None for none.

    Raises:
        DataError: The files are those of two clusters, or their clocks are too far apart.
    """
    info = run_info(importing, options)
    progress = Progress(advance)
    overlaps = importing.contents.overlaps
    names = Names()
    reading = Reading(
        *(options.zone, options.keep_raw, frozenset(overlaps), progress.note, names),
        ready={} if read_logs is None else read_logs(names),
    )
    cluster = OneCluster()
    with RunDirectoryWriter(
        out, info, format=options.trace_format, keep_raw=options.keep_raw
    ) as writer:
        logs = list(streams_of(importing.usable, reading))
        for batch in steadied_trace(_merged(importing, logs, names)):
            cluster.check(batch)
            writer.record_batch(batch)
        writer.note_sources([one.as_read for one in importing.files], importing.skews)


def _merged(importing: Importing, logs: list[TimedLog], names: Names) -> Iterator[EventBatch]:
    """Yield the events of all files, what several tell once."""
    repeats = RepeatedLines(importing.contents.overlaps)
    by_name = {str(one.path): one for one in importing.files}

    def are_repeated(batch: EventBatch) -> NDArray[np.bool_]:
        repeated = repeats.are_repeated(batch)
        for event in batch.take(repeated).events() if repeated.any() else ():
            by_name[event.source_ref or ""].summary.count_repeated(event)
        return repeated

    merged = merge_logs(logs, are_repeated=are_repeated if len(logs) > 1 else None)
    kinds = {kind for one in importing.usable for kind in one.kinds}
    is_simple = kinds <= {Kind.LOG} or (kinds <= {Kind.SEGMENT})
    if is_simple:
        yield from merged
        return
    skews = Skews()

    def drop(event: TraceEvent, has_own_kind: bool) -> None:
        summary = by_name[event.source_ref or ""].summary
        summary.by_event[event.event] -= 1
        summary.repeated += has_own_kind

    precedence = Precedence(skews, drop)
    counter = IncarnationCounter()
    told = (event for batch in merged for event in batch.events())
    for batch in batches_of(precedence.chosen(told), names):
        # The lives of groups are counted again, from what is left.
        unnumbered = batch.having(incarnations=np.zeros(len(batch), np.int32))
        yield counter.number(unnumbered)
    skews.check()
    importing.left_out, importing.skews = precedence.left_out, skews.found()


def check_told(importing: Importing) -> None:
    """Refuse files that all could be read and hold nothing of a coordinator.

    Raises:
        DataError: No file has an event, and none has a problem that would explain it.
    """
    if any(one.problem is not None or one.summary.events for one in importing.files):
        return
    raise DataError(
        f"no line of a group coordinator in {len(importing.files)} file(s); a broker logs them at "
        "INFO under kafka.coordinator.group (3.x) or org.apache.kafka.coordinator.group (4.x)"
    )


@contextmanager
def replaced_when_whole(out: Path) -> Iterator[Path]:
    """A directory beside `out` to write a trace to, which takes its place when the block is done.

    An older trace in `out` stays as it was until then, and for good when the block fails or is
    interrupted.

    Raises:
        ConfigError: `out` is a file, or holds something that is no trace.
    """
    check_replaceable(out)
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        fresh = Path(scratch) / "fresh"
        yield fresh
        if target.exists():
            target.rename(Path(scratch) / "older")
        fresh.rename(target)
