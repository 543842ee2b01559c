"""The reader of each kind of file: its events, in the order in which they happened."""

import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.captured import Capture
from coordinator_sim.ingest.captures import captured_segments
from coordinator_sim.ingest.files import LogFileReader, unpacked
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.ordering import longest_wait_us
from coordinator_sim.ingest.segments import PartitionLog
from coordinator_sim.ingest.tcp_streams import Segment
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.dump_lines import DumpText
from coordinator_sim.logtext.reading.formatter_lines import (
    read_formatter_json,
    read_formatter_text,
)
from coordinator_sim.logtext.reading.merging import NO_TIME_US, TimedLog
from coordinator_sim.logtext.reading.request_lines import RequestLog
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.batches import EventBatch, Names, batches_of
from coordinator_sim.trace.events import Source, TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.offsets_topic import OffsetsTopic

_PIECE_BYTES: Final = 1 << 16
_LONGEST_US: Final = 30 * 60 * 1_000_000
"""A captured request is answered within half an hour: rebalance timeouts are shorter by default."""
NoteProgress = Callable[[Path, int], None]


class _Reader(Protocol):
    """Gives the events of one file, and counts them; a trial leaves no mark on the file."""

    def __call__(self, summary: IngestSummary, *, is_trial: bool) -> Iterator[TraceEvent]: ...


class TimedExchanges(Struct, frozen=True):
    """The exchanges of a file that has not been opened.

    Args:
        first_us: When its first answer was sent; `NO_TIME_US` without any.
        wait_us: How long the longest of them took.
        exchanges: In the order of their answers.
    """

    first_us: int
    wait_us: int
    exchanges: Iterator[Exchange]


class Ready(Struct, frozen=True):
    """What is read elsewhere than by these readers.

    Args:
        logs: Logs by their names.
        exchanges: Request logs by their names.
        read_partitions: Reads the segments that were added to partitions; gives the events of each.
    """

    logs: Mapping[str, TimedLog] = {}
    exchanges: Mapping[str, TimedExchanges] = {}
    read_partitions: Callable[[list[PartitionLog]], list[Iterator[TraceEvent]]] | None = None


class Reading(Struct, frozen=True):
    """How files are read.

    Args:
        zone: Zone of the times of text that name none.
        keep_raw: Whether events keep their line.
        overlapping: Logs whose lines are compared with those of others, and so are kept.
        note_progress: Told a file, and the bytes of it that were used.
        names: Numbers of groups and files, shared by all streams.
        ready: What is read elsewhere.
    """

    zone: tzinfo
    keep_raw: bool
    overlapping: frozenset[str]
    note_progress: NoteProgress
    names: Names
    ready: Ready = Ready()


def is_plain(kind: Kind) -> bool:
    """Whether each file of a kind is a story of its own."""
    return kind in _READERS


def read_plain(kind: Kind, one: Import, reading: Reading) -> TimedLog:
    """A stream with the time of its first event, for which the file's beginning is read twice."""
    if kind is Kind.LOG and (ready := reading.ready.logs.get(one.name)) is not None:
        return ready
    read: _Reader = partial(_READERS[kind], one, reading)
    first = next(read(IngestSummary(), is_trial=True), None)
    batches = (
        _log_batches(one, reading)
        if kind is Kind.LOG
        else batches_of(read(one.summary, is_trial=False), reading.names)
    )
    return TimedLog(NO_TIME_US if first is None else first.ts_us, batches)


def read_exchanges(kind: Kind, one: Import, reading: Reading) -> TimedExchanges:
    """The exchanges of one file, and how long the longest of them took."""
    ready = reading.ready.exchanges.get(one.name)
    if kind is Kind.REQUEST_LOG and ready is not None:
        return ready
    read = EXCHANGE_READERS[kind]
    first = next(read(one, reading, IngestSummary(), is_trial=True), None)
    wait_us = (
        _LONGEST_US
        if kind is Kind.CAPTURE
        else longest_wait_us(_lines_of(one, reading, is_trial=True))
    )
    told = read(one, reading, one.summary, is_trial=False)
    return TimedExchanges(NO_TIME_US if first is None else first.sent_us, wait_us, told)


def _lines_of(one: Import, reading: Reading, *, is_trial: bool) -> Iterator[str]:
    """The lines of a file; when they end, its problem and its cut lines are noted."""
    note = (lambda _used: None) if is_trial else partial(reading.note_progress, one.path)
    reader = LogFileReader(one.path, note)
    yield from reader.lines()
    if not is_trial:
        one.problem = reader.problem
        one.summary.cut_lines = reader.cut_count


def _log_events(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[TraceEvent]:
    log = _log(one, reading, summary)
    yield from log.read(_lines_of(one, reading, is_trial=is_trial))


def _log_batches(one: Import, reading: Reading) -> Iterator[EventBatch]:
    """The events of a log, read in blocks."""
    reader = LogFileReader(one.path, partial(reading.note_progress, one.path))
    log = _log(one, reading, one.summary)
    yield from BlockReader(log, reading.names).read(reader.blocks())
    one.problem = reader.problem
    one.summary.cut_lines = reader.cut_count


def _log(one: Import, reading: Reading, summary: IngestSummary) -> BrokerLog:
    name = one.name
    keep_raw = reading.keep_raw or name in reading.overlapping
    return BrokerLog(name, reading.zone, summary=summary, keep_raw=keep_raw)


def _requests(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[Exchange]:
    counts = summary if one.kind is Kind.REQUEST_LOG else IngestSummary()
    log = RequestLog(reading.zone, summary=counts, source_ref=one.name, keep_raw=reading.keep_raw)
    yield from log.read(_lines_of(one, reading, is_trial=is_trial))
    if counts is not summary:
        counts.lines = 0
        summary.add(counts)


def _counted(events: Iterable[TraceEvent], summary: IngestSummary) -> Iterator[TraceEvent]:
    for event in events:
        summary.count_event(event)
        yield event


def _dump_events(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[TraceEvent]:
    dump = DumpText(summary)
    told = OffsetsTopic(Source.DUMP_LOG, one.name)
    for batch in dump.read(_lines_of(one, reading, is_trial=is_trial)):
        yield from _counted(told.read(batch), summary)
    if is_trial:
        return
    if dump.invalid:
        one.notes.append(f"{dump.invalid} records of batches with a wrong CRC left out.")
    if dump.torn_bytes:
        one.notes.append(f"the tool could not read {dump.torn_bytes} bytes at the end of segments.")
    unfinished = sum(told.unfinished().values())
    if unfinished:
        one.notes.append(f"{unfinished} commits of transactions that do not end in it left out.")


def _formatter_text_events(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[TraceEvent]:
    told = OffsetsTopic(Source.FORMATTER_TEXT, one.name)
    records = read_formatter_text(_lines_of(one, reading, is_trial=is_trial), summary)
    yield from _counted(told.read(records), summary)


def _formatter_json_events(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[TraceEvent]:
    told = OffsetsTopic(Source.FORMATTER_JSON, one.name)
    note = None if is_trial else partial(reading.note_progress, one.path)
    records = read_formatter_json(_pieces(one, note), summary)
    yield from _counted(told.read(records), summary)


def _captured(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[Exchange]:
    capture = Capture(one.name)
    segments = _segments_of(one, reading, is_trial=is_trial)
    yield from _parsed(capture.read(segments), summary)
    if is_trial:
        return
    summary.lines += capture.messages
    summary.known += capture.messages - summary.parsed
    for reason, count in capture.unread.items():
        summary.known -= count
        summary.unparsed += count - 1
        summary.count_unparsed(f"message: {reason}")
    for count, what in (
        (capture.silent, "connections on which nobody speaks Kafka in the clear"),
        (capture.unanswered, "requests whose answer the capture lacks"),
        (capture.lost_bytes, "bytes of messages that the capture has in part"),
    ):
        if count:
            one.notes.append(f"{count} {what}.")


def _parsed(exchanges: Iterable[Exchange], summary: IngestSummary) -> Iterator[Exchange]:
    """Count the messages of each exchange as parsed."""
    for exchange in exchanges:
        summary.parsed += 1 if exchange.response is None else 2
        yield exchange


def _segments_of(one: Import, reading: Reading, *, is_trial: bool) -> Iterator[Segment]:
    try:
        yield from captured_segments(one.path)
    except DataError as error:
        one.problem = str(error)
    if not is_trial:
        reading.note_progress(one.path, one.path.stat().st_size)


def _pieces(one: Import, note: Callable[[int], None] | None) -> Iterator[str]:
    """The text of a file in pieces, as its objects need no lines."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    used = 0
    try:
        with unpacked(one.path) as source:
            while block := source.read(_PIECE_BYTES):
                used += len(block)
                if note is not None:
                    note(used)
                yield decoder.decode(block)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        one.problem = f"is damaged, its readable part was taken: {reason}"


_READERS = {
    Kind.LOG: _log_events,
    Kind.DUMP: _dump_events,
    Kind.FORMATTER_TEXT: _formatter_text_events,
    Kind.FORMATTER_JSON: _formatter_json_events,
}
EXCHANGE_READERS: Final = {
    Kind.CAPTURE: _captured,
    Kind.REQUEST_LOG: _requests,
}
