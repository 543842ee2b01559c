"""What clients ask a coordinator, and what they are answered, as it crosses the sockets."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.faults.faults import groups_of
from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.compiler import request_reader, response_reader
from coordinator_sim.server.wire_protocol import Address
from coordinator_sim.server.wire_record import Side, WireFrame, WireRecord
from coordinator_sim_conformance.frames import Frame

NAMES: Final = {
    ApiKey.FIND_COORDINATOR: "FindCoordinator",
    ApiKey.JOIN_GROUP: "JoinGroup",
    ApiKey.SYNC_GROUP: "SyncGroup",
    ApiKey.HEARTBEAT: "Heartbeat",
    ApiKey.LEAVE_GROUP: "LeaveGroup",
    ApiKey.OFFSET_COMMIT: "OffsetCommit",
    ApiKey.OFFSET_FETCH: "OffsetFetch",
}
"""APIs that are recorded: those that name a group."""

_API_AND_VERSION: Final = 4
_CORRELATION: Final = 8


def now_ms() -> float:
    """Milliseconds since 1970, as drivers give them too."""
    return time.time() * 1_000


class Exchange:
    """A request of a client, and its answer once there is one.

    Attributes:
        number: Place among all exchanges of the run, in the order of arrival.
        at_ms: When the request had arrived, in ms since 1970.
        broker: Port of the broker that it reached.
        connection: Number of the connection.
        api: Kafka's name of the API.
        version: Version of the API.
        request: The request; its fields have Kafka's names.
        response: The answer; None before it left, and for a request without an answer.
        answered_ms: When the answer left, in ms since 1970; 0 before.
        lost_ms: When its connection ended before an answer, in ms since 1970; 0 if it did not.
        frames: The bytes, without lengths.
    """

    __slots__ = (
        "answered_ms",
        "api",
        "at_ms",
        "broker",
        "connection",
        "frames",
        "lost_ms",
        "number",
        "request",
        "response",
        "version",
    )

    def __init__(self, number: int, frame: WireFrame, broker: int, request: Any) -> None:  # noqa: ANN401 - any API's
        api = ApiKey(int.from_bytes(frame.body[:2], "big"))
        self.number = number
        self.at_ms = frame.at_us / 1_000
        self.broker = broker
        self.connection = frame.connection
        self.api = NAMES[api]
        self.version = int.from_bytes(frame.body[2:_API_AND_VERSION], "big")
        self.request = request
        self.response: Any = None
        self.answered_ms = 0.0
        self.lost_ms = 0.0
        self.frames = [frame.body]

    @property
    def error(self) -> str | None:
        """Name of the answer's first error, `NONE` without one; None before the answer."""
        if self.response is None:
            return None
        return next((each.name for each in _errors(self.response) if each), "NONE")

    @property
    def member_id(self) -> str:
        """The member that the request is sent for; empty for none."""
        if self.api == "LeaveGroup":
            return self.request.members[0].member_id if self.request.members else ""
        return getattr(self.request, "member_id", "")

    @property
    def generation(self) -> int:
        """The generation that the request is sent in; -1 for none."""
        if self.api == "OffsetCommit":
            return int(self.request.generation_id_or_member_epoch)
        return int(getattr(self.request, "generation_id", -1))

    def evidence(self, began_ms: float) -> Iterator[Frame]:
        """Yield the bytes of the exchange; `sent` is what the client was sent."""
        for frame, at_ms in zip(self.frames, (self.at_ms, self.answered_ms), strict=False):
            yield Frame(
                direction="received" if frame is self.frames[0] else "sent",
                api=self.api,
                version=self.version,
                at_ms=round(at_ms - began_ms),
                hex=frame.hex(),
            )

    def __str__(self) -> str:
        words = [f"{self.api} {self.version}", *_told(self)]
        answer = "(no answer)" if self.response is None else " ".join(_answered(self))
        return f"{' '.join(words)} -> {answer}"


class Recorder:
    """A server's tap that knows the exchanges of each group.

    Attributes:
        exchanges: All of a group, in the order of arrival.
    """

    def __init__(self) -> None:
        self.exchanges: dict[str, list[Exchange]] = {}
        self._listeners: dict[str, Callable[[], None]] = {}
        self._numbers: dict[object, int] = {}
        self._brokers: dict[int, int] = {}
        self._record = WireRecord(keep=True)
        self._open: dict[tuple[int, int], tuple[str, Exchange]] = {}
        self._count = 0

    def listen(self, group: str, listener: Callable[[], None]) -> None:
        """Call a listener after each frame about a group."""
        self._listeners[group] = listener

    def opened(self, connection: object, peer: Address, local: Address) -> None:  # noqa: ARG002 - of a tap
        """Number a connection."""
        number = self._numbers[connection] = len(self._numbers) + 1
        self._brokers[number] = 0 if local is None else local[1]

    def received(self, connection: object, data: bytes) -> None:
        """Take bytes of a client."""
        self._take(connection, Side.CLIENT, data)

    def sent(self, connection: object, data: bytes) -> None:
        """Take bytes for a client."""
        self._take(connection, Side.SERVER, data)

    def closed(self, connection: object) -> None:
        """Let a connection go: what has no answer gets none."""
        number = self._numbers[connection]
        for place in [place for place in self._open if place[0] == number]:
            group, exchange = self._open.pop(place)
            exchange.lost_ms = now_ms()
            self._tell(group)

    def finish(self) -> None:
        """Hear that no bytes follow."""

    def _take(self, connection: object, side: Side, data: bytes) -> None:
        number = self._numbers[connection]
        self._record.write(round(now_ms() * 1_000), number, side, data)
        frames, self._record.frames = self._record.frames, []
        for frame in frames:
            if side is Side.CLIENT:
                self._request(frame)
            else:
                self._answer(frame)

    def _request(self, frame: WireFrame) -> None:
        key, version = (int.from_bytes(frame.body[at : at + 2], "big") for at in (0, 2))
        if key not in NAMES:
            return
        try:
            _, request = request_reader(ApiKey(key), version)(frame.body)
        except (DataError, UnsupportedVersion, WireFormatError):
            # The server logs such a request and closes its connection; no case waits for it.
            return
        self._count += 1
        exchange = Exchange(self._count, frame, self._brokers[frame.connection], request)
        for group in dict.fromkeys(groups_of(request)):
            self.exchanges.setdefault(group, []).append(exchange)
            correlation = int.from_bytes(frame.body[_API_AND_VERSION:_CORRELATION], "big")
            self._open[frame.connection, correlation] = (group, exchange)
            self._tell(group)

    def _answer(self, frame: WireFrame) -> None:
        correlation = int.from_bytes(frame.body[:_API_AND_VERSION], "big")
        found = self._open.pop((frame.connection, correlation), None)
        if found is None:
            return
        group, exchange = found
        api = ApiKey(int.from_bytes(exchange.frames[0][:2], "big"))
        _, exchange.response = response_reader(api, exchange.version)(frame.body)
        exchange.answered_ms = frame.at_us / 1_000
        exchange.frames.append(frame.body)
        self._tell(group)

    def _tell(self, group: str) -> None:
        listener = self._listeners.get(group)
        if listener is not None:
            listener()


def _errors(response: Struct) -> Iterator[ErrorCode]:
    """Yield every error of an answer, the whole one's first."""
    found = getattr(response, "error_code", None)
    if isinstance(found, ErrorCode):
        yield found
    for name in response.__struct_fields__:
        value = getattr(response, name)
        if isinstance(value, tuple):
            for each in value:
                if isinstance(each, Struct):
                    yield from _errors(each)


def _told(exchange: Exchange) -> Iterator[str]:
    """Yield the words of a request that tell who sends it."""
    if exchange.api not in {"FindCoordinator", "OffsetFetch"}:
        yield f"member={exchange.member_id or '-'}"
    if exchange.api in {"SyncGroup", "Heartbeat", "OffsetCommit"}:
        yield f"gen={exchange.generation}"
    instance = getattr(exchange.request, "group_instance_id", None)
    if instance is not None:
        yield f"instance={instance}"
    if exchange.api == "JoinGroup":
        yield f"protocols={','.join(each.name for each in exchange.request.protocols)}"
    if exchange.api == "SyncGroup":
        yield f"assignments={len(exchange.request.assignments)}"
    reason = getattr(exchange.request, "reason", None)
    if reason:
        yield f"reason={reason!r}"


def _answered(exchange: Exchange) -> Iterator[str]:
    yield exchange.error or ""
    if exchange.api == "JoinGroup":
        answer = exchange.response
        yield f"member={answer.member_id or '-'}"
        if exchange.error == "NONE":
            role = "leader" if answer.leader == answer.member_id else "follower"
            yield f"gen={answer.generation_id} {role}"
    if exchange.api == "FindCoordinator" and exchange.error == "NONE":
        yield f"broker={exchange.response.coordinators[0].node_id}"
