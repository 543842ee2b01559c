"""What is imported: files recognised, and compared with each other and with earlier ones."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim import __version__
from coordinator_sim.errors import DataError
from coordinator_sim.ingest.ahead import APART_US
from coordinator_sim.ingest.files import (
    EMPTY,
    FoundFiles,
    LogFileReader,
    content_digest,
    find_files,
    form_in,
    holds,
    named_unread,
    recognise,
)
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import REQUEST_MARK, SOURCE_OF, Kind
from coordinator_sim.ingest.precedence import best_source
from coordinator_sim.ingest.same_files import FileMark, mark_of
from coordinator_sim.logtext.reading.envelopes import peel
from coordinator_sim.logtext.reading.exports import Shape
from coordinator_sim.logtext.reading.group_descriptions import year_first
from coordinator_sim.logtext.reading.instants import UNCLEAR_ZONES, InstantReader
from coordinator_sim.logtext.reading.repeats import (
    ContentPart,
    LogContents,
)
from coordinator_sim.logtext.reading.text import clean
from coordinator_sim.runs.run_directory import TraceFormat, check_replaceable
from coordinator_sim.trace.events import RunInfo, Source
from coordinator_sim.trace.sources_read import Skew

_MOST_NAMED: Final = 10
"""Files without an event that one error names."""
_HEAD_LENGTH: Final = 240
"""Characters of a line in which its date is."""


class Options(Struct, frozen=True, kw_only=True):
    """How to read.

    Args:
        zone: Zone of the times of text that name none.
        tz: Its name.
        cluster: Name of the cluster that all files are of.
        day_first: Whether 03/04/2024 is in April; None where no file leaves that open.
        keep_raw: Whether events keep their line.
        trace_format: Form of the trace.
        apart_us: By how much files that are cut at one moment may end apart: later files are
            appended as long as they do not begin earlier than this before the end of the trace.
        window: What was typed for the time that later commands show, by option; kept as it is.
    """

    zone: tzinfo
    tz: str = "UTC"
    cluster: str = "cluster"
    day_first: bool | None = None
    keep_raw: bool = False
    trace_format: TraceFormat = "parquet"
    apart_us: int = APART_US
    window: dict[str, str] = {}


@dataclass(slots=True)
class Importing:
    """Files of one cluster, and what came of reading them.

    Args:
        files: Every file, in the order in which they are told.
        contents: Logs that are copies of others, or share lines with them.
        other_topics: Segments of other topics that were left out.
        left_out: Source -> facts that another source tells too.
        skews: By how much the clocks of the sources differ.
        known_files: Files that were read before, and are left out.
        times_us: Times of the events that were written; None where they are not wanted.
    """

    files: list[Import]
    contents: LogContents = field(default_factory=LogContents)
    other_topics: int = 0
    left_out: dict[Source, int] = field(default_factory=dict)
    skews: list[Skew] = field(default_factory=list)
    known_files: int = 0
    times_us: list[NDArray[np.int64]] | None = None

    @property
    def usable(self) -> list[Import]:
        """Files that are read: no copies, and none with a problem."""
        return [one for one in self.files if one.problem is None and one.copy_of is None]

    @property
    def bad(self) -> list[Import]:
        """Files with a problem."""
        return [one for one in self.files if one.problem is not None]


@dataclass(slots=True)
class Earlier:
    """Files of one cluster that were read before.

    Args:
        contents: What logs have in common.
        marks: What tells each file from others.
    """

    contents: LogContents
    marks: list[FileMark]

    def has(self, path: Path) -> bool:
        """Whether a file holds what one of these held, by size and both ends.

        Raises:
            OSError: It cannot be read.
        """
        mark = mark_of(path)
        return any(known.is_of(mark) for known in self.marks)

    def check_overlaps(self, files: Sequence[Import]) -> None:
        """Refuse logs that share lines with earlier ones, and are no copies of them.

        Raises:
            DataError: One does.
        """
        fresh = {one.name for one in files}
        known = {mark.path for mark in self.marks}
        for one in files:
            root = self.contents.overlaps.get(one.name)
            other = next(
                (
                    name
                    for name, its_root in self.contents.overlaps.items()
                    if root is not None and its_root == root and name in known - fresh
                ),
                None,
            )
            if other is not None:
                raise DataError(
                    f"{one.name} shares lines with {other}, which the trace has: append a log "
                    "once it is complete, or ingest all files together, without --append-to"
                )


ContentsOf = Callable[[list[Path]], Iterator[Iterable[ContentPart]]]
"""Gives the contents of logs in their order, each in parts."""
FetchFiles = Callable[[Iterable[Path]], Mapping[Path, str]]
"""Gives files of this machine, which may be copies, and what the user calls each."""


def as_named(files: Iterable[Path]) -> Mapping[Path, str]:
    """Return files of this machine under their paths."""
    return {path: str(path) for path in files}


def prepare(
    paths: list[Path],
    contents_of: ContentsOf | None = None,
    earlier: Earlier | None = None,
    fetch: FetchFiles = as_named,
    options: Options | None = None,
) -> Importing:
    """Find the files, see what each is, and which are copies of others.

    Args:
        paths: What the user names.
        contents_of: Reads what logs hold elsewhere; None to read it here.
        earlier: Files that were read before; None for none.
        fetch: Brings files here that lie elsewhere.
        options: How to read; the defaults, if None.

    Raises:
        ConfigError: A path does not exist, or a folder holds nothing to read.
        DataError: A log shares lines with one that was read before, and is no copy of it.
    """
    found: FoundFiles = find_files(paths)
    fresh = [path for path in found.files if earlier is None or not earlier.has(path)]
    files = []
    for path, name in fetch(fresh).items():
        kind = recognise(path)
        named = "" if name == str(path) else name
        if isinstance(kind, str):
            files.append(Import(path, problem=kind, named=named))
        else:
            files.append(Import(path, kind, named=named))
            _find_form(files[-1], options or Options(zone=UTC))
    empty = [one for one in files if one.problem == EMPTY]
    for one in empty if len(empty) < len(files) else ():
        one.problem = None
        one.notes.append("is empty.")
    importing = Importing(files, other_topics=found.other_topics)
    importing.known_files = len(found.files) - len(files)
    if earlier is not None:
        importing.contents = earlier.contents
    if earlier is not None or len([one for one in files if one.problem is None]) > 1:
        _compare_contents(importing, contents_of)
    if earlier is not None:
        earlier.check_overlaps(files)
    for one in importing.usable:
        one.more = _more_kinds(one)
    return importing


def _find_form(one: Import, options: Options) -> None:
    """Note how the lines of a file are read, or why its times cannot be told."""
    if one.kind not in (Kind.LOG, Kind.REQUEST_LOG, Kind.DESCRIPTION):
        return
    reword = year_first if one.kind is Kind.DESCRIPTION else str
    form = form_in(one.path, options.zone, reword=reword)
    if form.unclear_zone is not None:
        names = UNCLEAR_ZONES[form.unclear_zone]
        one.problem = (
            f"its times are in {form.unclear_zone}, which is the time of {', '.join(names)}: name "
            f"the zone that is meant, such as --tz {names[0]}"
        )
    proven = form.days_proven
    if proven is None and form.days_unclear:
        proven = _days_proven(one.path)
    if proven is None and form.days_unclear and options.day_first is None:
        one.problem = (
            "its dates are such as 03/04/2024, and none shows whether that is in March or in "
            "April: name the order with --dates mdy or --dates dmy"
        )
    one.day_first = bool(options.day_first if proven is None else proven)
    if form.days_unclear:
        form = form_in(one.path, options.zone, day_first=one.day_first, reword=reword)
    if form.shape is not Shape.LINES:
        one.notes.append(f"is {form.shape.value}; its records count as lines.")
    if form.newest_first:
        one.notes.append("has the newest line first; read and numbered from its end.")


def _days_proven(path: Path) -> bool | None:
    """Whether the day comes first, by the first line whose own date shows it; None without any."""
    reader = InstantReader(UTC)
    for line in LogFileReader(path, lambda _used: None).lines():
        if any(date.days_proven is not None for date in reader.find_all(line[:_HEAD_LENGTH])):
            own = peel(clean(line), reader).instant
            if own is not None and own.days_proven is not None:
                return own.days_proven
    return None


def _compare_contents(importing: Importing, contents_of: ContentsOf | None) -> None:
    """Mark the copies among the files, and find the logs that share lines."""
    readable = importing.usable
    logs = [one.path for one in readable if one.kind is Kind.LOG]
    contents = iter(()) if contents_of is None else contents_of(logs)
    whole: dict[str, str] = {}
    for one in readable:
        name = one.name
        if one.kind is Kind.LOG:
            if contents_of is None:
                reader = LogFileReader(one.path, lambda _used: None, day_first=one.day_first)
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
    """The run info of an import; equal files and options give an equal trace id."""
    files = [(one.name, one.path.stat().st_size) for one in importing.files]
    digest = hashlib.sha256(repr((files, options.tz, options.cluster)).encode())
    sources = [SOURCE_OF[kind] for one in importing.usable for kind in one.kinds]
    return RunInfo(
        trace_id=digest.hexdigest()[:32],
        source=best_source(sources),
        cluster_id=options.cluster,
        version=__version__,
        profile="ingested",
        options={"tz": options.tz, **options.window},
    )


def check_told(importing: Importing) -> None:
    """Note what files without an event are; refuse files of which none has one.

    Raises:
        DataError: No file has an event, and none has a problem that would explain it.
    """
    silent = [one for one in importing.usable if not one.summary.events and one.kind is Kind.LOG]
    noted = []
    for one in silent:
        if (what := named_unread(one.path)) is not None:
            one.notes.append(f"{what}.")
            noted.append(f"{one.name} is {what}.")
    if any(one.problem is not None or one.summary.events for one in importing.files):
        return
    if noted:
        raise DataError(" ".join(noted[:_MOST_NAMED]))
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
