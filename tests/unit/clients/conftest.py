"""Ports of consumers in virtual time, among others, with a coordinator."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.effects import (
    CallbackKind,
    Closed,
    CommitCompleted,
    Connect,
    Disconnect,
    Effect,
    Effects,
    PollReturned,
    RunCallback,
    Send,
)
from coordinator_sim.coordinator.contract import CoordinatorConfig, Reply
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Request, Response

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


@pytest.fixture
def make_world() -> type[World]:
    """Builds a world with these topics and partition counts."""
    return World
