"""An import is written: all files read side by side, in time order, as one trace.

The trace is written up to the time that no later file can change, then what further files can be
appended to is put aside, and then the rest is written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from coordinator_sim.ingest.importing import Importing, Options, run_info
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.readers import Reading, Ready
from coordinator_sim.ingest.same_files import FileMark, mark_of
from coordinator_sim.ingest.saved_state import dump
from coordinator_sim.ingest.stages import Stages
from coordinator_sim.ingest.streams import Appendable, Streams
from coordinator_sim.logtext.reading.repeats import LogContents
from coordinator_sim.runs.run_directory import RunDirectoryWriter, SettledRun
from coordinator_sim.trace.batches import EventBatch, Names
from coordinator_sim.trace.events import RunInfo
from coordinator_sim.trace.schema import APPENDABLE_NAME

ReadLogs = Callable[[Names], Ready]
"""Gives what is read elsewhere."""


@dataclass(slots=True)
class Imported:
    """An import as it is put aside, with all that its events share.

    Args:
        info: Facts of the whole trace.
        tz: Zone of the times of text that name none.
        keep_raw: Whether events keep their line.
        apart_us: See `Options`.
        files: Every file, in the order in which they are told.
        contents: What logs have in common.
        stages: What becomes of merged events.
        streams: What streams go on from.
        run: The trace up to the time that is settled; None before the first event.
        marks: What tells each file that was read from others.
    """

    info: RunInfo
    tz: str
    keep_raw: bool
    apart_us: int
    files: list[Import]
    contents: LogContents
    stages: Stages
    streams: Appendable = field(default_factory=Appendable)
    run: SettledRun | None = None
    marks: list[FileMark] = field(default_factory=list)


@dataclass(slots=True)
class _Progress:
    """Bytes used of all files together."""

    advance: Callable[[int], None]
    done: dict[Path, int] = field(default_factory=dict)
    total: int = 0

    def note(self, path: Path, used: int) -> None:
        """Note how much of a file was used."""
        self.total += used - self.done.get(path, 0)
        self.done[path] = used
        self.advance(self.total)


def write_trace(
    importing: Importing,
    options: Options,
    out: Path,
    advance: Callable[[int], None],
    read_logs: ReadLogs | None = None,
) -> None:
    """Read all files side by side, in time order, into a run directory.

    A trace in Parquet has a file beside it with what further files are appended to.

    Args:
        importing: Its files get their counts and problems.
        options: How to read.
        out: The run directory to write.
        advance: Told the bytes used so far, now and then.
        read_logs: Gives the logs that are read elsewhere, by their names; None for none.

    Raises:
        DataError: The files are those of two clusters, or their clocks are too far apart.
    """
    kinds = tuple(dict.fromkeys(kind for one in importing.usable for kind in one.kinds))
    contents = importing.contents
    stages = Stages(
        importing.files, kinds, contents.overlaps, has_several=_has_several(importing.usable)
    )
    info = run_info(importing, options)
    imported = Imported(
        *(info, options.tz, options.keep_raw, options.apart_us),
        *(importing.files, contents, stages),
    )
    write_imported(imported, importing, options, out, advance, read_logs)


def _has_several(files: list[Import]) -> bool:
    return len(files) > 1 or any(one.more is not None for one in files)


def write_imported(
    imported: Imported,
    importing: Importing,
    options: Options,
    out: Path,
    advance: Callable[[int], None],
    read_logs: ReadLogs | None,
) -> None:
    """Write the files of an import behind those that were written already.

    Args:
        imported: What was written so far; its files are those of the whole trace.
        importing: The files to read; gets their counts and problems.
        options: How to read.
        out: The run directory; it holds what was written already.
        advance: Told the bytes used so far, now and then.
        read_logs: Gives the logs that are read elsewhere, by their names; None for none.

    Raises:
        DataError: The files are those of two clusters, their clocks are too far apart, or a file
            begins before what was written.
    """
    stages = imported.stages
    ready = Ready() if read_logs is None else read_logs(stages.names)
    overlaps = frozenset(imported.contents.overlaps)
    note = _Progress(advance).note
    keep_raw = options.keep_raw
    reading = Reading(options.zone, keep_raw, overlaps, note, stages.names, ready)
    kept: bytes | None = None
    is_parquet = options.trace_format == "parquet"
    with RunDirectoryWriter(
        *(out, imported.info),
        format=options.trace_format,
        keep_raw=keep_raw,
        settled=imported.run,
    ) as writer:
        streams = Streams(importing.usable, reading, imported.streams, options.apart_us)
        merge = streams.merge()
        while (batch := merge.next_batch(streams.settled_us)) is not None:
            _write(stages.pass_on(batch), writer, importing)
        if is_parquet:
            imported.marks += [mark_of(one.path, one.name) for one in importing.usable]
            imported.streams = streams.appendable(merge)
            imported.contents.forget_lines_but_of(imported.streams.unsettled_files)
            imported.run = writer.settle()
            kept = dump(imported)
        for batch in merge.batches():
            _write(stages.pass_on(batch), writer, importing)
        _write(stages.finish(), writer, importing)
        streams.count(imported.files)
        importing.skews = stages.skews.found()
        if stages.precedence is not None:
            importing.left_out = stages.precedence.left_out
        writer.note_sources([one.as_read for one in imported.files], importing.skews)
    if kept is not None:
        (out / APPENDABLE_NAME).write_bytes(kept)


def _write(batches: Iterable[EventBatch], writer: RunDirectoryWriter, importing: Importing) -> None:
    for batch in batches:
        writer.record_batch(batch)
        if importing.times_us is not None:
            importing.times_us.append(batch.ts_us)
