"""A broker of ours behind a socket: one group coordinator, enough of Metadata to be found."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.live.connection import API_VERSIONS
from coordinator_sim.messages import find_coordinator
from coordinator_sim.messages.codec import frames
from coordinator_sim.messages.codec.classic_types import int16_bytes, int32_bytes
from coordinator_sim.messages.requests import Response
from coordinator_sim_conformance.field_frames import response_frame

OFFERED = {
    ApiKey.METADATA: (0, 12),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
}
"""What it speaks unless told otherwise."""


class TcpBroker:
    """Answers one request after the other, at once: groups of one member only."""

    def __init__(
        self,
        *,
        offered: dict[ApiKey, tuple[int, int]] | None = None,
        newest_api_versions: int = 3,
        partitions: int = 2,
    ) -> None:
        self.harness = Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
        self.offered = OFFERED if offered is None else offered
        self.newest_api_versions = newest_api_versions
        self.partitions = partitions
        self.headers: list[frames.RequestHeader] = []
        self.garbage = b""
        self.doubled: ApiKey | None = None
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """Close every connection that is open now."""
        for writer in self.writers:
            writer.close()
        self.writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer everything that comes over one connection."""
        self.writers.append(writer)
        try:
            while size := await reader.readexactly(4):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                answer = self.garbage or self.answer(frame)
                sent = int32_bytes(len(answer)) + answer
                is_doubled = self.doubled is not None and frame[:2] == int16_bytes(self.doubled)
                writer.write(sent * 2 if is_doubled else sent)
        except asyncio.IncompleteReadError:
            writer.close()

    def answer(self, frame: bytes) -> bytes:
        """The answer to one request, as a frame."""
        header = frames.read_header(frame)
        self.headers.append(header)
        if header.api_key == API_VERSIONS:
            return self.api_versions(header)
        if header.api_key == ApiKey.METADATA:
            return self.metadata(header)
        _, request = frames.decode_request(frame)
        response: Response | None
        if isinstance(request, find_coordinator.FindCoordinatorRequest):
            found = find_coordinator.Coordinator(
                key=request.coordinator_keys[0],
                node_id=7,
                host="127.0.0.1",
                port=self.port,
                error_message=None,
            )
            response = find_coordinator.FindCoordinatorResponse(coordinators=(found,))
        else:
            response = self.harness.call(request, api_version=header.api_version).response
        assert response is not None
        return frames.encode_response(
            response, header.api_version, correlation_id=header.correlation_id, request=request
        )

    def api_versions(self, header: frames.RequestHeader) -> bytes:
        """What it speaks, or error 35 in the layout of version 0."""
        refused = header.api_version > self.newest_api_versions
        version = 0 if refused else header.api_version
        rows = {API_VERSIONS: (0, self.newest_api_versions)} if refused else self.offered
        fields = {
            "errorCode": 35 if refused else 0,
            "apiKeys": [
                {"apiKey": int(api), "minVersion": low, "maxVersion": high}
                for api, (low, high) in rows.items()
            ],
        }
        return response_frame(ApiKey.API_VERSIONS, version, header.correlation_id, fields)

    def metadata(self, header: frames.RequestHeader) -> bytes:
        """One broker, one topic."""
        topic = {
            "name": "orders",
            "errorCode": 0,
            "partitions": [
                {"errorCode": 0, "partitionIndex": number, "leaderId": 7}
                for number in reversed(range(self.partitions))
            ],
        }
        fields = {
            "brokers": [{"nodeId": 7, "host": "127.0.0.1", "port": self.port, "rack": "r"}],
            "topics": [topic],
        }
        return response_frame(ApiKey.METADATA, header.api_version, header.correlation_id, fields)


@asynccontextmanager
async def listening(broker: TcpBroker) -> AsyncIterator[TcpBroker]:
    """The broker, on a free port."""
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
