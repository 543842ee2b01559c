"""The reader of each kind of file: its events, in the order in which they happened.

Captures (pcap, pcapng) through tshark, which takes packets apart; the messages are read here.

Requests and answers of captured connections, paired by connection and correlation id.
"""

import shutil
import subprocess
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Protocol

from msgspec import Struct

from coordinator_sim.errors import (
    CoordinatorSimError,
    DataError,
    UnsupportedVersion,
    WireFormatError,
)
from coordinator_sim.ingest.files import LogFileReader, unpacked
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.ordering import longest_wait_us
from coordinator_sim.ingest.segments import PartitionLog
from coordinator_sim.ingest.tcp_streams import LARGEST_FRAME, Direction, Frame, Segment
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.dump_lines import DumpText
from coordinator_sim.logtext.reading.formatter_lines import (
    read_formatter_json,
    read_formatter_text,
)
from coordinator_sim.logtext.reading.group_descriptions import read_descriptions
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.merging import NO_TIME_US, TimedLog
from coordinator_sim.logtext.reading.request_lines import RequestLog
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.codec.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    read_header,
)
from coordinator_sim.trace.batches import EventBatch, Names, batches_of
from coordinator_sim.trace.events import Source, TraceEvent
from coordinator_sim.trace.exchange import TOLD_APIS, Exchange
from coordinator_sim.trace.offsets_topic import OffsetsTopic

_HEADER_BYTES: Final = 14
"""Length, API, version, correlation id and the length of the client id."""
_CLIENT_ID_LIMIT: Final = 1_000
_OPEN_LIMIT: Final = 10_000
"""Unanswered requests of one connection that are remembered."""
_CAPTURE_ERR_US: Final = 1


@dataclass(slots=True)
class _Asked:
    """A request that waits for its answer; other APIs than those of groups are only passed over."""

    frame: Frame
    header: RequestHeader
    request: Any = None


@dataclass(slots=True)
class _Connection:
    """One captured connection, once it is known which end asks."""

    client: tuple[str, int]
    server: tuple[str, int]
    asks: Direction
    answers: Direction
    open_requests: dict[int, _Asked] = field(default_factory=dict)
    software: str = ""
    messages: int = 0


class Capture:
    """Reads the segments of one capture.

    Args:
        source_ref: Names the capture in its exchanges.

    Attributes:
        messages: Requests and answers that were whole.
        unread: Why messages of groups could not be read -> how many.
        silent: Connections on which nobody speaks Kafka, or not in the clear.
        lost_bytes: Bytes of messages that the capture lacks a part of.
        unanswered: Requests of groups whose answer the capture lacks.
    """

    def __init__(self, source_ref: str) -> None:
        self._source_ref = source_ref
        self.messages = 0
        self.unread: dict[str, int] = {}
        self.silent = 0
        self.lost_bytes = 0
        self.unanswered = 0
        self._connections: dict[int, _Connection] = {}
        self._silent: set[int] = set()

    def read(self, segments: Iterable[Segment]) -> Iterator[Exchange]:
        """Yield the exchanges in the order of their answers. May be called once."""
        for segment in segments:
            if segment.opens or segment.stream not in self._connections:
                self._begin(segment)
            connection = self._connections.get(segment.stream)
            if connection is not None and segment.payload:
                yield from self._take(connection, segment)
        for stream, connection in self._connections.items():
            yield from self._end(stream, connection)
        self.silent = len(self._silent)

    def _begin(self, segment: Segment) -> None:
        """Note a connection when it opens, or when it is first seen to carry a request."""
        if not segment.opens and not begins_request(segment.payload):
            if segment.payload:
                self._silent.add(segment.stream)
            return
        self._silent.discard(segment.stream)
        open_requests: dict[int, _Asked] = {}
        connection = _Connection(
            client=segment.source,
            server=segment.target,
            asks=Direction(begins_request),
            answers=Direction(lambda data: _begins_answer(data, open_requests)),
            open_requests=open_requests,
        )
        if segment.opens:
            connection.asks.opened(segment.sequence)
            connection.answers.opened(0)
        self._connections[segment.stream] = connection

    def _take(self, connection: _Connection, segment: Segment) -> Iterator[Exchange]:
        if segment.source == connection.client:
            for frame in connection.asks.take(segment):
                self._asked(connection, frame)
            return
        for frame in connection.answers.take(segment):
            yield from self._answered(connection, frame)

    def _end(self, stream: int, connection: _Connection) -> Iterator[Exchange]:
        for frame in connection.asks.end():
            self._asked(connection, frame)
        for frame in connection.answers.end():
            yield from self._answered(connection, frame)
        lost_bytes = connection.asks.lost_bytes + connection.answers.lost_bytes
        if connection.messages:
            self.lost_bytes += lost_bytes
        elif lost_bytes:
            self._silent.add(stream)
        for asked in connection.open_requests.values():
            if asked.request is not None:
                self.unanswered += 1
                yield self._exchange(connection, asked, None, None)

    def _asked(self, connection: _Connection, frame: Frame) -> None:
        self.messages += 1
        connection.messages += 1
        try:
            header = read_header(frame.body)
            asked = _Asked(frame, header)
            if header.api_key in TOLD_APIS:
                _, asked.request = decode_request(frame.body)
            elif header.api_key == ApiKey.API_VERSIONS:
                _, hello = decode_request(frame.body)
                names = (hello.client_software_name, hello.client_software_version)
                connection.software = " ".join(name for name in names if name)
        except (UnsupportedVersion, WireFormatError) as error:
            self._count(error)
            return
        if len(connection.open_requests) >= _OPEN_LIMIT:
            connection.open_requests.pop(next(iter(connection.open_requests)))
        connection.open_requests[header.correlation_id] = asked

    def _answered(self, connection: _Connection, frame: Frame) -> Iterator[Exchange]:
        self.messages += 1
        correlation_id = int.from_bytes(frame.body[:4], "big", signed=True)
        asked = connection.open_requests.pop(correlation_id, None)
        if asked is None or asked.request is None:
            return
        header = asked.header
        try:
            _, response = decode_response(
                ApiKey(header.api_key), header.api_version, frame.body, request=asked.request
            )
        except (UnsupportedVersion, WireFormatError) as error:
            self._count(error)
            response = None
        yield self._exchange(connection, asked, frame, response)

    def _exchange(
        self,
        connection: _Connection,
        asked: _Asked,
        frame: Frame | None,
        response: Any,  # noqa: ANN401 - any of our messages
    ) -> Exchange:
        answer = asked.frame if frame is None else frame
        client, server = connection.client, connection.server
        return Exchange(
            asked_us=asked.frame.at_us,
            done_us=answer.at_us,
            sent_us=answer.at_us,
            seq=answer.number,
            request=asked.request,
            response=response,
            api_version=asked.header.api_version,
            correlation_id=asked.header.correlation_id,
            client_id=asked.header.client_id,
            client_host=f"/{client[0]}",
            connection=f"{server[0]}:{server[1]}-{client[0]}:{client[1]}",
            client_software=connection.software,
            ts_err_us=_CAPTURE_ERR_US,
            source_ref=self._source_ref,
        )

    def _count(self, error: CoordinatorSimError) -> None:
        reason = str(error.args[0])[:120]
        self.unread[reason] = self.unread.get(reason, 0) + 1


def begins_request(data: bytes) -> bool:
    """Whether bytes, from the length field on, begin as a request of a version that is spoken."""
    if len(data) < _HEADER_BYTES:
        return False
    size = int.from_bytes(data[:4], "big", signed=True)
    try:
        api = ApiKey(int.from_bytes(data[4:6], "big", signed=True))
        newest = newest_version(api)
    except (ValueError, UnsupportedVersion):
        return False
    version = int.from_bytes(data[6:8], "big", signed=True)
    client_id = int.from_bytes(data[12:14], "big", signed=True)
    return (
        _HEADER_BYTES - 4 <= size <= LARGEST_FRAME
        and 0 <= version <= newest
        and -1 <= client_id <= _CLIENT_ID_LIMIT
    )


def _begins_answer(data: bytes, open_requests: dict[int, _Asked]) -> bool:
    """Whether bytes begin as the answer to an open request."""
    return int.from_bytes(data[4:8], "big", signed=True) in open_requests and len(data) >= 8  # noqa: PLR2004 - length and correlation id


_FIELDS: Final = (
    *("frame.number", "frame.time_epoch", "tcp.stream"),
    *("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport"),
    *("tcp.seq", "tcp.flags.syn", "tcp.flags.ack", "tcp.payload"),
)
_YES: Final = frozenset({"1", "True", "true"})
_ENDS_AFTER_S: Final = 10
MISSING: Final = (
    "is a capture, which is read through tshark, and tshark is not installed: "
    "apt-get install tshark, or brew install wireshark"
)


def tshark() -> str | None:
    """The path of the tshark executable; None if it is not installed."""
    return shutil.which("tshark")


def captured_segments(path: Path) -> Iterator[Segment]:
    """Yield the TCP segments of a capture, in the order of its packets.

    Raises:
        DataError: tshark is not installed, or could not read the capture to its end; what it could
            read was yielded.
    """
    program = tshark()
    if program is None:
        raise DataError(MISSING)
    command = [
        *(program, "-n", "-r", str(path), "-Y", "tcp", "--disable-protocol", "kafka"),
        *("-T", "fields", "-E", "separator=/t", "-E", "occurrence=f"),
        *(part for name in _FIELDS for part in ("-e", name)),
    ]
    with subprocess.Popen(  # noqa: S603 - a program of the system, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                segment = _segment(line.rstrip("\n").split("\t"))
                if segment is not None:
                    yield segment
            complaint = _complaint(process.stderr)
        finally:
            process.kill()
            process.wait(_ENDS_AFTER_S)
    if complaint:
        raise DataError(f"is damaged, its readable part was taken: {complaint}")


def _complaint(errors: IO[str] | None) -> str:
    """The last line that tshark writes of what is wrong; empty when nothing is."""
    lines = [line.strip() for line in errors or () if line.strip()]
    told = [line for line in lines if "Running as user" not in line]
    return told[-1] if told else ""


def _segment(cells: list[str]) -> Segment | None:
    if len(cells) != len(_FIELDS):
        return None
    number, epoch, stream, *ends, sequence, syn, ack, payload = cells
    ip_source, ipv6_source, port_source, ip_target, ipv6_target, port_target = ends
    is_first = syn in _YES
    if is_first and ack in _YES:
        return None
    seconds, _, fraction = epoch.partition(".")
    try:
        return Segment(
            number=int(number),
            at_us=int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or "0"),
            stream=int(stream),
            source=(ip_source or ipv6_source, int(port_source)),
            target=(ip_target or ipv6_target, int(port_target)),
            sequence=int(sequence),
            opens=is_first,
            payload=bytes.fromhex(payload.replace(":", "")),
        )
    except ValueError:
        return None


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
    reader = LogFileReader(one.path, note, day_first=one.day_first)
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
    progress = partial(reading.note_progress, one.path)
    reader = LogFileReader(one.path, progress, day_first=one.day_first)
    log = _log(one, reading, one.summary)
    yield from BlockReader(log, reading.names).read(reader.blocks())
    one.problem = reader.problem
    one.summary.cut_lines = reader.cut_count


def _log(one: Import, reading: Reading, summary: IngestSummary) -> BrokerLog:
    name = one.name
    keep_raw = reading.keep_raw or name in reading.overlapping
    return BrokerLog(
        name, reading.zone, summary=summary, keep_raw=keep_raw, day_first=one.day_first
    )


def _requests(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[Exchange]:
    counts = summary if one.kind is Kind.REQUEST_LOG else IngestSummary()
    log = RequestLog(
        reading.zone,
        summary=counts,
        source_ref=one.name,
        keep_raw=reading.keep_raw,
        day_first=one.day_first,
    )
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


def _description_events(
    one: Import, reading: Reading, summary: IngestSummary, *, is_trial: bool
) -> Iterator[TraceEvent]:
    reader = InstantReader(reading.zone, day_first=one.day_first)
    lines = _lines_of(one, reading, is_trial=is_trial)
    yield from read_descriptions(lines, reader, one.name, summary)
    if not (is_trial or summary.parsed or one.problem):
        one.problem = (
            "has tables of kafka-consumer-groups and no time above them: write one there, as in "
            "date; kafka-consumer-groups --describe ..."
        )


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
    Kind.DESCRIPTION: _description_events,
}
EXCHANGE_READERS: Final = {
    Kind.CAPTURE: _captured,
    Kind.REQUEST_LOG: _requests,
}
