"""Requests and answers of captured connections, paired by connection and correlation id."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_sim.errors import CoordinatorSimError, UnsupportedVersion, WireFormatError
from coordinator_sim.ingest.tcp_streams import LARGEST_FRAME, Direction, Frame, Segment
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.codec.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    read_header,
)
from coordinator_sim.trace.exchange import TOLD_APIS, Exchange

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
