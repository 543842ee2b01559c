"""A client that speaks in frames over a real socket."""

import asyncio
from contextlib import suppress

from coordinator_sim.messages import join_group
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class KafkaClient:
    """One connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._count = 0

    @classmethod
    async def connect(cls, address: str) -> "KafkaClient":
        """Connect to HOST:PORT."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, request: Request, version: int) -> Response:
        """Send a request and wait for its answer."""
        self._count += 1
        frame = encode_request(request, version, correlation_id=self._count, client_id="test")
        self._writer.write(len(frame).to_bytes(4, "big") + frame)
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        answer = await self._reader.readexactly(length)
        return decode_response(request.api_key, version, answer, request=request)[1]

    async def join(self, group_id: str, *, session_timeout_ms: int = 10_000) -> str:
        """Become the one member of a group, in a generation; its member id."""
        join = join_group.JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=(
                join_group.JoinGroupRequestProtocol(
                    "range", b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                ),
            ),
        )
        joined = await self.ask(join, 3)
        assert isinstance(joined, join_group.JoinGroupResponse)
        sync = SyncGroupRequest(
            group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id
        )
        assert isinstance(await self.ask(sync, 3), SyncGroupResponse)
        return joined.member_id

    async def beat(self, group_id: str, member_id: str, generation_id: int = 1) -> Response:
        """Send a Heartbeat."""
        beat = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)
        return await self.ask(beat, 3)

    async def leave(self, group_id: str, member_id: str) -> Response:
        """Leave a group."""
        leaving = (MemberIdentity(member_id=member_id),)
        return await self.ask(LeaveGroupRequest(group_id=group_id, members=leaving), 1)

    async def close(self) -> None:
        """Disconnect, if that has not happened yet."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
