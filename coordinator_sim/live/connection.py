"""One TCP connection to a broker: agrees on versions, then carries requests and answers in order.

This module knows no groups. A listener is told every change of the connection's state.

ApiVersions on the client side: what a broker offers, asked before anything else.

Source: kafka trunk, NetworkClient.handleApiVersionsResponse, handleCompletedReceives;
ApiVersionsRequest, ApiVersionsResponse.parse; ApiKeys.API_VERSIONS.responseHeaderVersion.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

from msgspec import Struct, structs

from coordinator_sim import __version__
from coordinator_sim.errors import UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.api_versions import ApiVersionsRequest
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.codec.compiler import response_reader
from coordinator_sim.messages.codec.frame_reader import FrameReader
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.requests import Request, Response

API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""The number of the ApiVersions API."""
API_VERSIONS_NEWEST: Final = 4
"""Version that clients ask first; brokers of 4.4 also know 5, which names the expected broker."""
UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION)


class OfferedVersions(Struct, frozen=True, kw_only=True):
    """The versions that a broker offers.

    Args:
        error_code: 35 when the broker does not know the version of the ApiVersions request.
        ranges: API number -> oldest and newest version.
    """

    error_code: int
    ranges: dict[int, tuple[int, int]]

    def newest_common(self, api: int, newest: int) -> int | None:
        """The newest version that both sides know; None when there is none."""
        low, high = self.ranges.get(api, (0, -1))
        version = min(high, newest)
        return version if version >= low else None


def api_versions_request(
    version: int, *, correlation_id: int, client_id: str | None, software: tuple[str, str]
) -> bytes:
    """Encode an ApiVersions request.

    `software` is name and version of the client; brokers accept letters, digits, `-` and `.`.
    """
    request = ApiVersionsRequest(
        client_software_name=software[0], client_software_version=software[1]
    )
    return encode_request(request, version, correlation_id=correlation_id, client_id=client_id)


def read_api_versions(version: int, frame: bytes) -> OfferedVersions:
    """Decode an ApiVersions response; a refusal of the version has the layout of version 0.

    Raises:
        WireFormatError: the bytes do not parse.
    """
    reader = FrameReader(frame, "frame")
    reader.int32("correlation id")
    if reader.int16("ApiVersionsResponse.errorCode") == UNSUPPORTED:
        version = 0
    _, answer = response_reader(ApiKey.API_VERSIONS, version)(frame)
    return OfferedVersions(
        error_code=answer.error_code,
        ranges={each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
    )


MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""Longest valid answer, as the default of `socket.request.max.bytes`."""
SOFTWARE: Final = ("coordinator-sim", __version__.replace("+", "-"))
"""Name and version of this client in a broker's metrics (KIP-511)."""

_LENGTH_BYTES: Final = 4
_NEWEST_SPOKEN: Final = {
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}
"""Versions below the codec's newest: commits of version 10 name topics by ids, ports by names.

Source: kafka 4.3, OffsetCommitRequest.Builder.forTopicNames, OffsetFetchRequest likewise.
"""

_METADATA_NULL_IS_ALL: Final = 1
_STABLE_OFFSETS_SINCE: Final = 7


class FrameSeen(Struct, frozen=True, kw_only=True):
    """One frame that was sent or received, without its length prefix.

    Args:
        connection: Number of the connection, counted over the driver's life.
        is_request: Whether it went to the broker.
    """

    connection: int
    is_request: bool
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    frame: bytes


class InFlight(Struct, frozen=True, kw_only=True, gc=False):
    """A request that waits for its answer.

    Args:
        correlation_id: The port's correlation id.
        wire_id: The connection's correlation id.
    """

    correlation_id: int
    wire_id: int
    version: int
    request: Request


class ConnectionListener(Protocol):
    """Callbacks of one connection to its owner."""

    def ready(self, connection: "BrokerConnection") -> None:
        """Handle agreed versions; requests may be sent."""
        ...

    def answered(self, connection: "BrokerConnection", sent: InFlight, response: Response) -> None:
        """Handle an answer."""
        ...

    def surprised(self, connection: "BrokerConnection") -> None:
        """Handle an answer that is not the one to the oldest request of the connection.

        That request, where there is one, will not be answered.
        """
        ...

    def lost(self, connection: "BrokerConnection", reason: str) -> None:
        """Handle a connection that is gone or failed to open; `reason` is for people."""
        ...

    def seen(self, frame: FrameSeen) -> None:
        """Handle a frame that was sent or received."""
        ...


class BrokerConnection(asyncio.Protocol):
    """One connection, opened by its maker with `loop.create_connection`.

    Args:
        node_id: Node id that the port uses.
        number: Number of this connection, for `FrameSeen`.
        client_id: Client id in requests.
        listener: Listener of the connection's events.
    """

    def __init__(
        self, node_id: int, *, number: int, client_id: str, listener: ConnectionListener
    ) -> None:
        self.node_id = node_id
        self.address = ("", 0)
        self._number = number
        self._client_id = client_id
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._next_wire_id = 0
        self._asked_version = API_VERSIONS_NEWEST
        self._offered: OfferedVersions | None = None
        self._in_flight: deque[InFlight] = deque()
        self._is_over = False
        self._fault = ""

    def close(self) -> None:
        """Close without notifying the listener; written data is still sent."""
        self._is_over = True
        if self._transport is not None:
            self._transport.close()

    def send(self, correlation_id: int, request: Request) -> None:
        """Send a request in the newest version that both sides support.

        Raises:
            UnsupportedVersion: there is no such version, or it cannot express the request.
        """
        version = self._version_for(request.api_key)
        wire_id = self._take_wire_id()
        frame = encode_request(
            sayable(request, version), version, correlation_id=wire_id, client_id=self._client_id
        )
        self._in_flight.append(
            InFlight(
                correlation_id=correlation_id, wire_id=wire_id, version=version, request=request
            )
        )
        self._write(int(request.api_key), version, wire_id, frame)

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the broker's versions: the socket is open."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP gives no other
        self._transport = transport
        if self._is_over:
            transport.abort()
        else:
            self._ask_versions()

    def data_received(self, data: bytes) -> None:
        """Split received data into frames; an invalid frame ends the connection."""
        received = self._received
        received += data
        while not self._is_over and len(received) >= _LENGTH_BYTES:
            size = int.from_bytes(received[:_LENGTH_BYTES], "big", signed=True)
            if not 0 <= size <= MAX_FRAME_BYTES:
                self._break(f"a frame of {size} bytes was announced")
                return
            if len(received) < _LENGTH_BYTES + size:
                return
            frame = bytes(received[_LENGTH_BYTES : _LENGTH_BYTES + size])
            del received[: _LENGTH_BYTES + size]
            try:
                self._on_frame(frame)
            except WireFormatError as error:
                self._break(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        """Handle a connection that the other side closed, or that broke."""
        if not self._is_over:
            self._is_over = True
            reason = self._fault or ("closed by the broker" if error is None else str(error))
            self._listener.lost(self, reason)

    # Frames.

    def _on_frame(self, frame: bytes) -> None:
        if self._offered is None:
            self._on_versions(frame)
            return
        if not self._in_flight:
            self._listener.surprised(self)
            return
        sent = self._in_flight.popleft()
        self._see(int(sent.request.api_key), sent.version, sent.wire_id, frame, is_request=False)
        if int.from_bytes(frame[:4], "big", signed=True) != sent.wire_id:
            self._listener.surprised(self)
            return
        self._listener.answered(self, sent, _response_of(sent, frame))

    def _ask_versions(self) -> None:
        wire_id = self._take_wire_id()
        frame = api_versions_request(
            self._asked_version,
            correlation_id=wire_id,
            client_id=self._client_id,
            software=SOFTWARE,
        )
        self._write(API_VERSIONS, self._asked_version, wire_id, frame)

    def _on_versions(self, frame: bytes) -> None:
        """Adopt the broker's versions; if it refuses the version, ask in one that it names.

        Source: NetworkClient.handleApiVersionsResponse; a broker that names none gets version 0.
        """
        asked = self._asked_version
        self._see(API_VERSIONS, asked, self._next_wire_id - 1, frame, is_request=False)
        offered = read_api_versions(asked, frame)
        if offered.error_code == UNSUPPORTED and asked > 0:
            common = offered.newest_common(API_VERSIONS, asked - 1)
            self._asked_version = 0 if common is None else common
            self._ask_versions()
        elif offered.error_code:
            self._break(f"ApiVersions was refused with error {offered.error_code}")
        else:
            self._offered = offered
            self._listener.ready(self)

    def _version_for(self, api: ApiKey) -> int:
        newest = _NEWEST_SPOKEN[api] if api in _NEWEST_SPOKEN else newest_version(api)
        offered = self._offered
        version = None if offered is None else offered.newest_common(api, newest)
        if version is None:
            low, high = (0, -1) if offered is None else offered.ranges.get(api, (0, -1))
            theirs = "does not have it" if high < low else f"speaks {low} to {high}"
            host, port = self.address
            raise UnsupportedVersion(
                f"{api.name}: this client speaks versions 0 to {newest}, "
                f"the broker at {host}:{port} {theirs}"
            )
        return version

    def _take_wire_id(self) -> int:
        wire_id = self._next_wire_id
        self._next_wire_id = (wire_id + 1) & 0x7FFFFFFF
        return wire_id

    def _write(self, api_key: int, version: int, wire_id: int, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
            self._see(api_key, version, wire_id, frame, is_request=True)

    def _see(
        self, api_key: int, version: int, wire_id: int, frame: bytes, *, is_request: bool
    ) -> None:
        self._listener.seen(
            FrameSeen(
                connection=self._number,
                is_request=is_request,
                api_key=api_key,
                api_version=version,
                correlation_id=wire_id,
                client_id=self._client_id,
                frame=frame,
            )
        )

    def _break(self, fault: str) -> None:
        """End the connection because of the broker's fault; the listener sees it as lost."""
        self._fault = fault
        if self._transport is not None:
            self._transport.abort()


def sayable(request: Request, version: int) -> Request:
    """Return the request as Java's builder makes it for an old broker.

    OffsetFetch loses the wish for stable offsets; Metadata 0 says all topics by naming none.

    Source: kafka trunk, OffsetFetchRequest.Builder.build, throwOnFetchStableOffsetsUnsupported;
    MetadataRequest.Builder.
    """
    if isinstance(request, MetadataRequest) and request.topics is None:
        return request if version >= _METADATA_NULL_IS_ALL else structs.replace(request, topics=())
    if isinstance(request, OffsetFetchRequest) and version < _STABLE_OFFSETS_SINCE:
        return structs.replace(request, require_stable=False)
    return request


def _response_of(sent: InFlight, frame: bytes) -> Response:
    api = sent.request.api_key
    response: Response = decode_response(api, sent.version, frame, request=sent.request)[1]
    return response
