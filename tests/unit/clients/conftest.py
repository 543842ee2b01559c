"""Two ways to operate a port in virtual time: among others with a coordinator, or by a script."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.contract import ClientPort
from coordinator_sim.clients.effects import (
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
from coordinator_sim.coordinator.contract import CoordinatorConfig, Reply
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.embedded import ConsumerAssignment
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import profile_named
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import encode_assignment

Setting = int | str | bool
NODE = Node(node_id=1, host="broker", port=9092)
FIRST_REPLICA = 101
LATENCY_MS = 1
VERSIONS = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}


class CountingIds:
    """UUIDs that count, so that runs repeat."""

    def __init__(self) -> None:
        self.drawn = 0

    def new_uuid(self) -> str:
        """The next number as a UUID."""
        self.drawn += 1
        return f"00000000-0000-4000-8000-{self.drawn:012d}"


@dataclass
class Member:
    """One client with its driver: polls for ever, and completes callbacks after a while."""

    name: str
    port: ConsumerCoordinator
    poll_timeout_ms: int
    alive: bool = True
    polling: bool = True
    callback_ms: int = 0
    epoch: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, str, tuple[object, ...]]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    commits: list[CommitCompleted] = field(default_factory=list)

    def callbacks(self, kind: CallbackKind) -> list[tuple[object, ...]]:
        """What callbacks of this kind were given, in order."""
        return [given for _, what, given in self.log if what == kind.value]


class World:
    """Members around one broker with a real GroupCoordinator."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.now_ms = 0
        self.topics = topics
        self.members: dict[str, Member] = {}
        self.requests: list[tuple[int, str, Request]] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._callers: dict[int, tuple[Member, int, int, int]] = {}
        self._token = 0
        self.coordinator = GroupCoordinator(
            CoordinatorConfig(broker_id=1, trace=False), profile_named("4.4"), ids=CountingIds()
        )
        for partition in range(50):
            self.coordinator.begin_load(partition, 0, 0)
            self.coordinator.finish_load(partition, ErrorCode.NONE, 0)

    def at(self, when_ms: int, action: Callable[[], None]) -> None:
        """Do something later."""
        self._sequence += 1
        heapq.heappush(self._events, (when_ms, self._sequence, action))

    def consumer(
        self, name: str, assignors: Sequence[str] = ("range",), **settings: Setting
    ) -> Member:
        """Start a consumer of all topics."""
        port = ConsumerCoordinator(
            msgspec.convert(settings, ConsumerConfig),
            client_id=name,
            group_id="group",
            topics=sorted(self.topics),
            assignors=[make_consumer_assignor(assignor) for assignor in assignors],
            bootstrap=(NODE,),
        )
        return self._start(Member(name, port, 500))

    def crash(self, member: Member) -> None:
        """End it without a word."""
        member.alive = False

    def close(self, member: Member) -> None:
        """Close it in good order."""
        member.polling = False
        self.carry_out(member, member.port.close(self.now_ms, 30_000))

    def _start(self, member: Member) -> Member:
        self.members[member.name] = member
        self.carry_out(member, member.port.poll(self.now_ms, member.poll_timeout_ms))
        return member

    def run(self, until_ms: int) -> None:
        """Let everything happen up to and including this instant."""
        while True:
            due = [m.port.next_deadline_ms() for m in self.members.values() if m.alive]
            due += [self.coordinator.next_deadline_ms()]
            due += [self._events[0][0] if self._events else None]
            at_ms = min((d for d in due if d is not None), default=until_ms + 1)
            if at_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(at_ms, self.now_ms)
            self._turn()

    def _turn(self) -> None:
        while self._events and self._events[0][0] <= self.now_ms:
            heapq.heappop(self._events)[2]()
        deadline_ms = self.coordinator.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self._answer(self.coordinator.expire(self.now_ms).replies)
        for member in list(self.members.values()):
            deadline_ms = member.port.next_deadline_ms() if member.alive else None
            if deadline_ms is not None and deadline_ms <= self.now_ms:
                self.carry_out(member, member.port.expire(self.now_ms))

    def carry_out(self, member: Member, effects: Effects) -> None:
        """Do what the port asks for."""
        for effect in effects:
            self._carry_out(member, effect)

    def _carry_out(self, member: Member, effect: Effect) -> None:
        match effect:
            case Connect(node_id=node_id):
                self.at(self.now_ms + LATENCY_MS, lambda n=node_id: self._up(member, n))
            case Disconnect(node_id=node_id):
                member.epoch[node_id] = member.epoch.get(node_id, 0) + 1
            case Send():
                self._send(member, effect)
            case RunCallback():
                self._call_back(member, effect)
            case PollReturned(error=error):
                if error is not None:
                    member.errors.append(error)
                if member.polling:
                    self.at(self.now_ms, lambda: self._poll(member))
            case Closed():
                member.alive = False
            case CommitCompleted():
                member.commits.append(effect)

    def _poll(self, member: Member) -> None:
        if member.alive and member.polling:
            self.carry_out(member, member.port.poll(self.now_ms, member.poll_timeout_ms))

    def _up(self, member: Member, node_id: int) -> None:
        if member.alive:
            self.carry_out(member, member.port.on_connected(node_id, self.now_ms))

    def _call_back(self, member: Member, effect: RunCallback) -> None:
        given = effect.partitions or (*effect.connectors, *effect.tasks)
        member.log.append((self.now_ms, effect.kind.value, given))
        if effect.token >= 0:
            self.at(
                self.now_ms + member.callback_ms,
                lambda: self._called_back(member, effect.token),
            )

    def _called_back(self, member: Member, token: int) -> None:
        if member.alive:
            self.carry_out(member, member.port.callback_completed(token, None, self.now_ms))

    def _send(self, member: Member, effect: Send) -> None:
        self.requests.append((self.now_ms, member.name, effect.request))
        epoch = member.epoch.get(effect.node_id, 0)
        self._token += 1
        self._callers[self._token] = (member, effect.node_id, epoch, effect.correlation_id)
        token, request = self._token, effect.request
        self.at(self.now_ms + LATENCY_MS, lambda: self._arrive(token, request))

    def _arrive(self, token: int, request: Request) -> None:
        match request:
            case FindCoordinatorRequest(coordinator_keys=keys):
                found = Coordinator(
                    key=keys[0], node_id=1, host="broker", port=9092, error_message=None
                )
                self._reply(token, FindCoordinatorResponse(coordinators=(found,)))
            case MetadataRequest():
                self._reply(token, self._metadata())
            case _:
                context = RequestContext(
                    token=token,
                    api_version=VERSIONS[request.api_key],
                    client_id=self._callers[token][0].name,
                )
                self._answer(self.coordinator.handle(request, context, self.now_ms).replies)

    def _metadata(self) -> MetadataResponse:
        return MetadataResponse(
            brokers=(NODE,),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    partitions=tuple(
                        MetadataResponsePartition(partition_index=p, leader_id=1, leader_epoch=0)
                        for p in range(count)
                    ),
                )
                for name, count in self.topics.items()
            ),
        )

    def _answer(self, replies: tuple[Reply, ...]) -> None:
        for reply in replies:
            self._reply(reply.token, reply.response)

    def _reply(self, token: int, response: Response) -> None:
        member, node_id, epoch, correlation_id = self._callers.pop(token)

        def deliver() -> None:
            if member.alive and member.epoch.get(node_id, 0) == epoch:
                effects = member.port.on_response(correlation_id, response, self.now_ms)
                self.carry_out(member, effects)

        self.at(self.now_ms + LATENCY_MS, deliver)


class Desk:
    """One port whose peer is a script: a request waits here until the test answers it.

    Connections open at once, Metadata and FindCoordinator are answered at once, and callbacks
    complete at once, unless the test says otherwise.
    """

    def __init__(self, port: ClientPort) -> None:
        self.port = port
        self.now_ms = 0
        self.sent: list[tuple[int, Request]] = []
        self.callbacks: list[RunCallback] = []
        self.returned: list[str | None] = []
        self.commits: list[CommitCompleted] = []
        self.disconnects: list[int] = []
        self.resets: list[ResetPositions] = []
        self.internal: tuple[str, ...] = ()
        self.closed = False
        self.racks: tuple[str, ...] = ()
        self.topics = {"t": 2}
        self.outcomes: dict[CallbackKind, str] = {}
        self.automatic: set[type] = {Connect, MetadataRequest, FindCoordinatorRequest, RunCallback}
        self.waiting: list[Send] = []

    def do(self, effects: Effects) -> None:
        """Carry out effects, and those that follow from them."""
        for effect in effects:
            if isinstance(effect, ResetPositions):
                self.resets.append(effect)
            else:
                self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Connect(node_id=node_id) if Connect in self.automatic:
                self.do(self.port.on_connected(node_id, self.now_ms))
            case Disconnect(node_id=node_id):
                self.disconnects.append(node_id)
                self.waiting = [s for s in self.waiting if s.node_id != node_id]
            case Send():
                self._sent(effect)
            case RunCallback():
                self.callbacks.append(effect)
                if RunCallback in self.automatic:
                    outcome = self.outcomes.get(effect.kind)
                    self.do(self.port.callback_completed(effect.token, outcome, self.now_ms))
            case PollReturned(error=error):
                self.returned.append(error)
            case CommitCompleted():
                self.commits.append(effect)
            case Closed():
                self.closed = True

    def _sent(self, send: Send) -> None:
        self.sent.append((self.now_ms, send.request))
        self.waiting.append(send)
        if type(send.request) in self.automatic:
            if isinstance(send.request, MetadataRequest):
                self.reply(MetadataRequest, self.metadata())
            else:
                self.reply(FindCoordinatorRequest, found_coordinator())

    def _replicas(self) -> Iterator[Node]:
        """Brokers that hold replicas in `racks`, and nothing else."""
        for place, rack in enumerate(self.racks):
            yield Node(node_id=FIRST_REPLICA + place, host="replica", port=9092, rack=rack)

    def metadata(self) -> MetadataResponse:
        """The cluster: one broker, and the topics of `topics`."""
        return MetadataResponse(
            brokers=(NODE, *self._replicas()),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    is_internal=name in self.internal,
                    partitions=tuple(
                        MetadataResponsePartition(
                            partition_index=p,
                            leader_id=1,
                            leader_epoch=0,
                            replica_nodes=tuple(
                                range(FIRST_REPLICA, FIRST_REPLICA + len(self.racks))
                            ),
                        )
                        for p in range(count)
                    ),
                )
                for name, count in self.topics.items()
            ),
        )

    def reply(self, request_type: type, response: Response) -> None:
        """Answer the oldest waiting request of this type."""
        send = next(s for s in self.waiting if isinstance(s.request, request_type))
        self.waiting.remove(send)
        self.do(self.port.on_response(send.correlation_id, response, self.now_ms))

    def of(self, request_type: type) -> list[Request]:
        """The requests of this type so far."""
        return [request for _, request in self.sent if isinstance(request, request_type)]

    def times_of(self, request_type: type) -> list[int]:
        """When the requests of this type were sent."""
        return [at_ms for at_ms, request in self.sent if isinstance(request, request_type)]

    def is_waiting(self, request_type: type) -> bool:
        """Whether a request of this type is unanswered."""
        return any(isinstance(send.request, request_type) for send in self.waiting)

    def poll(self, timeout_ms: int = 60_000) -> None:
        """The application polls."""
        self.do(self.port.poll(self.now_ms, timeout_ms))

    def run(self, until_ms: int) -> None:
        """Let the port's deadlines fire up to and including this instant."""
        while True:
            deadline_ms = self.port.next_deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self.do(self.port.expire(self.now_ms))

    def join(self, response: JoinGroupResponse | None = None, **fields: object) -> None:
        """Answer the waiting JoinGroup; by default as a follower of generation 1."""
        defaults = {
            "generation_id": 1,
            "protocol_name": "range",
            "leader": "leader",
            "member_id": "m",
        }
        self.reply(JoinGroupRequest, response or JoinGroupResponse(**{**defaults, **fields}))

    def sync_only(self, *partitions: TopicPartition) -> None:
        """Answer the waiting SyncGroup with these partitions."""
        blob = encode_assignment(ConsumerAssignment(partitions=partitions))
        self.reply(SyncGroupRequest, SyncGroupResponse(assignment=blob))

    def sync(self, *partitions: TopicPartition) -> None:
        """Answer the waiting SyncGroup with these partitions, and each offset with 10."""
        self.sync_only(*partitions)
        if self.is_waiting(OffsetFetchRequest):
            self.reply(OffsetFetchRequest, self.fetched(*partitions))

    def fetched(
        self, *partitions: TopicPartition, missing: Sequence[TopicPartition] = ()
    ) -> OffsetFetchResponse:
        """Offset 10 of these partitions, and none of those missing."""
        offsets: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for topic, partition in partitions:
            offsets.setdefault(topic, []).append(OffsetFetchResponsePartitions(partition, 10))
        for topic, partition in missing:
            offsets.setdefault(topic, []).append(OffsetFetchResponsePartitions(partition, -1))
        topics = tuple(
            OffsetFetchResponseTopics(name, partitions=tuple(each))
            for name, each in offsets.items()
        )
        return OffsetFetchResponse(
            groups=(OffsetFetchResponseGroup(group_id="group", topics=topics),)
        )

    def settle_stable(self, *partitions: TopicPartition) -> None:
        """Bring a consumer from its first poll to STABLE with these partitions."""
        self.poll()
        self.join()
        self.sync(*partitions)


def found_coordinator(**fields: object) -> FindCoordinatorResponse:
    """The answer that names the broker, or an error."""
    defaults = {"key": "group", "node_id": 1, "host": "broker", "port": 9092}
    return FindCoordinatorResponse(coordinators=(Coordinator(**{**defaults, **fields}),))


@pytest.fixture
def make_world() -> type[World]:
    """Builds a world with these topics and partition counts."""
    return World


@pytest.fixture
def make_desk() -> Callable[..., Desk]:
    """Builds a desk for a consumer of topic `t`, auto-commit off unless said."""

    def make(
        assignors: Sequence[str] = ("range",),
        topics: Sequence[str] = ("t",),
        **settings: Setting,
    ) -> Desk:
        config = msgspec.convert({"enable_auto_commit": False, **settings}, ConsumerConfig)
        port = ConsumerCoordinator(
            config,
            client_id="client",
            group_id="group",
            topics=topics,
            assignors=[make_consumer_assignor(name) for name in assignors],
            bootstrap=(NODE,),
        )
        return Desk(port)

    return make
