"""One client's connection to one broker: frames in, answers out in the order of the requests.

Every request is worked on as it comes, also behind one that is parked.

DEVIATION: Kafka reads the next request of a connection when the answer to the one before has left;
a client that pipelines sees a JoinGroup or Fetch that waits hold nothing back here.

Source: kafka trunk, SocketServer.scala (Processor), RequestContext.java, KafkaApis.handle.
"""

import struct
from typing import Final, cast

from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError
from coordinator_sim.mini_broker.contract import Call, Instants
from coordinator_sim.mini_broker.served_cluster import GROUP_COORDINATOR_APIS, ServedCluster
from coordinator_sim.mini_broker.slots import Output, Slot, SlotQueue
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.messages import RequestContext
from coordinator_sim.protocol.requests import GroupRequest
from coordinator_sim.wire.frames import decode_request, read_request_frame, response_frame

MAX_WAITING: Final = 1_000
"""Requests of one connection that may wait for their answers before its driver stops reading."""

_START: Final = struct.Struct(">hhi")
_APIS: Final = {int(api): api for api in ApiKey}


class Connection:
    """A connection.

    Args:
        cluster: Behind it.
        broker_id: Whom the client reached.
        number: Of this connection, counted over the cluster's life.
        listener: Name of the listener.
        client_host: As Java prints an address, with a leading slash.
        output: The way out.
    """

    __slots__ = (
        "_cluster",
        "_output",
        "_slots",
        "broker_id",
        "client_host",
        "listener",
        "number",
        "principal",
    )

    def __init__(
        self,
        cluster: ServedCluster,
        broker_id: int,
        *,
        number: int,
        listener: str,
        client_host: str,
        output: Output,
    ) -> None:
        self._cluster = cluster
        self._output = output
        self._slots = SlotQueue(output)
        self.broker_id = broker_id
        self.number = number
        self.listener = listener
        self.client_host = client_host
        self.principal = "User:ANONYMOUS"

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait for their answers that no more should be read."""
        return len(self._slots) >= MAX_WAITING

    def received(self, frame: bytes, now: Instants) -> None:
        """Take one request, a frame without its length; bytes that are none end the connection."""
        if len(frame) < _START.size:
            self._output.close(f"a request of {len(frame)} bytes, at least {_START.size} are one")
            return
        api_key, version, correlation_id = _START.unpack_from(frame)
        api = _APIS.get(api_key)
        span = None if api is None else self._cluster.versions.ranges.get(api)
        if api is None or span is None:
            self._output.close(f"a request of API {api_key}, which is not offered")
            return
        slot = Slot(self._slots, api, version, correlation_id)
        if not span[0] <= version <= span[1]:
            self._refuse_version(slot, span)
            return
        try:
            self._dispatch(slot, frame, now)
        except (WireFormatError, UnsupportedVersion, DataError) as error:
            self._output.close(f"a {api.name} of version {version} that does not parse: {error}")

    def _dispatch(self, slot: Slot, frame: bytes, now: Instants) -> None:
        cluster = self._cluster
        if slot.api in GROUP_COORDINATOR_APIS:
            header, request = decode_request(frame)
            slot.request = request
            self._slots.add(slot)
            context = self._context(slot, cluster.admit(slot), header.client_id)
            cluster.handle_group(self.broker_id, cast("GroupRequest", request), context, now)
            return
        header, data = read_request_frame(frame)
        self._slots.add(slot)
        context = self._context(slot, cluster.admit(slot), header.client_id)
        call = Call(
            broker_id=self.broker_id,
            api=slot.api,
            request=data,
            context=context,
            now=now,
            connection=self.number,
        )
        cluster.handle(call)

    def _context(self, slot: Slot, token: int, client_id: str | None) -> RequestContext:
        return RequestContext(
            token=token,
            api_version=slot.version,
            client_id=client_id or "",
            client_host=self.client_host,
            principal=self.principal,
            listener=self.listener,
        )

    def _refuse_version(self, slot: Slot, span: tuple[int, int]) -> None:
        """ApiVersions is told what there is, in version 0; anything else ends the connection."""
        if slot.api is not ApiKey.API_VERSIONS:
            self._output.close(
                f"a {slot.api.name} of version {slot.version}, offered are {span[0]} to {span[1]}"
            )
            return
        self._slots.add(slot)
        data = self._cluster.versions.unsupported()
        slot.frame = response_frame(ApiKey.API_VERSIONS, 0, slot.correlation_id, data)
        self._slots.flush()
