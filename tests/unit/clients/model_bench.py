"""A bench for models of clients: connections open at once, answers are given by hand."""

from collections.abc import Callable

from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.background_port import BackgroundPort
from coordinator_sim.clients.effects import (
    COORDINATOR_NODE_OFFSET,
    CallbackKind,
    Closed,
    CommitCompleted,
    Connect,
    Disconnect,
    Effect,
    Effects,
    PollReturned,
    ResetPositions,
    RunCallback,
    Send,
)
from coordinator_sim.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from coordinator_sim.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from coordinator_sim.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.embedded import ConsumerAssignment
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import encode_assignment

BROKER = 1
COORDINATOR = COORDINATOR_NODE_OFFSET - BROKER
P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
POLL_MS = 100


def cluster(partitions: int = 2, *topics: str) -> MetadataResponse:
    """One broker, and a topic `t` with that many partitions; more topics have one each."""
    counts = {"t": partitions, **dict.fromkeys(topics, 1)}
    return MetadataResponse(
        brokers=(Node(node_id=BROKER, host="b", port=9092),),
        topics=tuple(
            MetadataResponseTopic(
                name=name,
                partitions=tuple(
                    MetadataResponsePartition(partition_index=n, leader_id=BROKER, leader_epoch=0)
                    for n in range(count)
                ),
            )
            for name, count in counts.items()
        ),
    )


def coordinator_answer(error: ErrorCode = ErrorCode.NONE, node: int = BROKER) -> Response:
    """An answer to FindCoordinator."""
    found = Coordinator(
        key="g", node_id=node, host="b", port=9092, error_code=error, error_message=None
    )
    return FindCoordinatorResponse(coordinators=(found,))


def joined(
    *, generation: int = 1, assignor: str = "range", leader: str = "other", **fields: object
) -> JoinGroupResponse:
    """An admission as `me`."""
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=assignor,
        leader=leader,
        member_id="me",
        **fields,  # type: ignore[arg-type] # fields of the response
    )


def members(*metadata: bytes) -> tuple[JoinGroupResponseMember, ...]:
    """Members as a leader sees them; the first is `me`."""
    ids = ("me", "other", "third")
    return tuple(JoinGroupResponseMember(ids[n], None, blob) for n, blob in enumerate(metadata))


def synced(*partitions: TopicPartition) -> SyncGroupResponse:
    """An assignment."""
    blob = encode_assignment(ConsumerAssignment(partitions=partitions))
    return SyncGroupResponse(assignment=blob)


def fetched(
    error: ErrorCode = ErrorCode.NONE, of_partition: ErrorCode = ErrorCode.NONE, offset: int = 7
) -> OffsetFetchResponse:
    """Committed offsets of both partitions."""
    offsets = tuple(
        OffsetFetchResponsePartitions(n, offset, error_code=of_partition) for n in (0, 1)
    )
    topics = (
        () if error is not ErrorCode.NONE else (OffsetFetchResponseTopics("t", partitions=offsets),)
    )
    return OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error),)
    )


def committed(error: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
    """An answer to a commit of both partitions."""
    results = (OffsetCommitResponsePartition(0, error), OffsetCommitResponsePartition(1, error))
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic("t", partitions=results),))


def assignors(*names: str) -> tuple[ConsumerAssignor, ...]:
    """Assignors by name."""
    return tuple(make_consumer_assignor(name) for name in names)


class Bench:
    """Operates one port; metadata and lookups are answered at once unless told otherwise."""

    def __init__(self, port: BackgroundPort) -> None:
        self.port = port
        self.now_ms = 0
        self.sent: list[tuple[int, int, Request]] = []
        self.callbacks: list[tuple[CallbackKind, tuple[TopicPartition, ...]]] = []
        self.poll_errors: list[str | None] = []
        self.commits: dict[int, str | None] = {}
        self.resets: list[ResetPositions] = []
        self.is_closed = False
        self.refuses = False
        self.answers_lookups = True
        self.answers_metadata = True
        self.holds_callbacks = False
        self.held: list[int] = []
        self.cluster = cluster()
        self._later: list[Callable[[], Effects]] = []

    # Driving.

    def run(self, effects: Effects) -> "Bench":
        """Carry effects out, and what follows from them."""
        for effect in effects:
            self._carry_out(effect)
        while self._later:
            for effect in self._later.pop(0)():
                self._carry_out(effect)
        return self

    def poll(self) -> "Bench":
        """The application polls."""
        return self.run(self.port.poll(self.now_ms, POLL_MS))

    def to(self, at_ms: int, *, polling: bool = True) -> "Bench":
        """Let time pass; the application polls again and again."""
        while True:
            deadline_ms = self.port.next_deadline_ms()
            if deadline_ms is None or deadline_ms > at_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            polls = len(self.poll_errors)
            self.run(self.port.expire(self.now_ms))
            if polling and len(self.poll_errors) > polls:
                self.poll()
        self.now_ms = at_ms
        return self

    def pass_ms(self, ms: int, *, polling: bool = True) -> "Bench":
        """Let so much time pass."""
        return self.to(self.now_ms + ms, polling=polling)

    def answer(self, api: ApiKey, response: Response) -> Request:
        """Answer the oldest request of an API; the request."""
        _, correlation_id, request = self.take(api)
        self.run(self.port.on_response(correlation_id, response, self.now_ms))
        return request

    def take(self, api: ApiKey) -> tuple[int, int, Request]:
        """Take the oldest unanswered request of an API out."""
        found = next(sent for sent in self.sent if sent[2].api_key is api)
        self.sent.remove(found)
        return found

    def break_link(self, node_id: int = COORDINATOR) -> "Bench":
        """Close a connection from the other side; what was asked on it stays unanswered."""
        self.sent = [sent for sent in self.sent if sent[0] != node_id]
        return self.run(self.port.on_disconnected(node_id, self.now_ms))

    def waiting(self) -> list[ApiKey]:
        """The APIs of unanswered requests, oldest first."""
        return [request.api_key for _, _, request in self.sent]

    def close(self) -> "Bench":
        """The application closes."""
        return self.run(self.port.close(self.now_ms, 30_000))

    def commit(self, offsets: dict[TopicPartition, int]) -> int:
        """The application commits; the token."""
        token, effects = self.port.commit(offsets, sync=True, now_ms=self.now_ms)
        self.run(effects)
        return token

    def release(self) -> "Bench":
        """Complete the callback that was held."""
        self.holds_callbacks = False
        return self.run(self.port.callback_completed(self.held.pop(0), None, self.now_ms))

    def join(self, assignor: str = "range", *, generation: int = 1) -> "Bench":
        """Poll, join as a follower, own both partitions."""
        self.poll()
        self.answer(ApiKey.JOIN_GROUP, joined(assignor=assignor, generation=generation))
        self.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
        self.answer(ApiKey.OFFSET_FETCH, fetched())
        return self

    # Effects.

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(node_id, correlation_id, request):
                self._send(node_id, correlation_id, request)
            case Connect(node_id):
                told = self.port.on_disconnected if self.refuses else self.port.on_connected
                self._later.append(lambda: told(node_id, self.now_ms))
            case Disconnect(node_id):
                self.sent = [sent for sent in self.sent if sent[0] != node_id]
            case RunCallback(token=token, kind=kind, partitions=partitions):
                self.callbacks.append((kind, partitions))
                if self.holds_callbacks:
                    self.held.append(token)
                else:
                    self._later.append(
                        lambda: self.port.callback_completed(token, None, self.now_ms)
                    )
            case ResetPositions():
                self.resets.append(effect)
            case PollReturned(error):
                self.poll_errors.append(error)
            case CommitCompleted(token=token, error=error):
                self.commits[token] = error
            case Closed():
                self.is_closed = True

    def _send(self, node_id: int, correlation_id: int, request: Request) -> None:
        answer: Response | None = None
        if request.api_key is ApiKey.METADATA and self.answers_metadata:
            answer = self.cluster
        elif request.api_key is ApiKey.FIND_COORDINATOR and self.answers_lookups:
            answer = coordinator_answer()
        if answer is None:
            self.sent.append((node_id, correlation_id, request))
            return
        response = answer
        self._later.append(lambda: self.port.on_response(correlation_id, response, self.now_ms))
