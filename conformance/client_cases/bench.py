"""Bench of client cases: ports in virtual time, each with a broker played by the case.

A request waits until the case answers it; opening connections, Metadata and FindCoordinator are
answered at once unless the case says otherwise. No case is here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.contract import ClientPort
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
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim_conformance.script.stage import CaseFailed

Setting = int | str | bool | None
_UNSAID: Final = (None, "", b"", (), -1, ErrorCode.NONE)
"""Values that a line of the transcript leaves out."""
R = TypeVar("R", bound=Request)
P = TypeVar("P", bound=ClientPort)

BROKER: Final = Node(node_id=1, host="broker", port=9092)
FIRST_REPLICA: Final = 101
"""Id of the first broker that only holds replicas."""
COORDINATOR: Final = COORDINATOR_NODE_OFFSET - BROKER.node_id
"""The node id of the connection to the broker as the group's coordinator."""
GROUP: Final = "g"
MEMBER: Final = "m"
"""The member id that the scripted coordinator gives."""
LEADER: Final = "l"
"""Who leads unless the case says that the member does."""
LONG_POLL_MS: Final = 1 << 40
"""The timeout of a poll that a case does not want to end by itself."""


class Bench:
    """Bench of one case: makes ports and compares results.

    Args:
        transcript: Wire and application traffic, line by line.
    """

    def __init__(self) -> None:
        self.transcript: list[str] = []

    def expect(self, what: str, seen: object, wanted: object) -> None:
        """Fail the case unless both are equal.

        Raises:
            CaseFailed: the two differ.
        """
        if seen != wanted:
            raise CaseFailed(f"{what}: wanted {wanted!r}, saw {seen!r}", tuple(self.transcript))

    def port(self, port: P, *, topics: Mapping[str, int] | None = None) -> "PortBench[P]":
        """Return a bench of any client port, with a broker that has these topics."""
        return PortBench(self, port, topics=topics)

    def consumer(
        self,
        *topics: str,
        assignors: Sequence[str | ConsumerAssignor] = ("range",),
        jitter: Jitter = NO_JITTER,
        is_subscribed: bool = True,
        bootstrap: tuple[Node, ...] = (BROKER,),
        **settings: Setting,
    ) -> "ConsumerBench":
        """Return a consumer of these topics, by default of `t`; auto-commit is off by default.

        Args:
            topics: Topics of its subscription; the broker has two partitions of each.
            is_subscribed: Whether it subscribes from the beginning.
            assignors: Names of built-in assignors, or assignors.
            jitter: Source of its random choices.
            bootstrap: Brokers that it knows at first.
            settings: Fields of `ConsumerConfig`.
        """
        wanted = topics or ("t",)
        port = ConsumerCoordinator(
            msgspec.convert({"enable_auto_commit": False, **settings}, ConsumerConfig),
            client_id="client",
            group_id=GROUP,
            topics=wanted if is_subscribed else (),
            assignors=[
                make_consumer_assignor(each) if isinstance(each, str) else each
                for each in assignors
            ],
            bootstrap=bootstrap,
            jitter=jitter,
        )
        return ConsumerBench(self, port, topics=dict.fromkeys(wanted, 2))


class PortBench(Generic[P]):
    """One port, its application and the brokers of its cluster, all driven by hand.

    Args:
        bench: Bench of the case.
        port: Port under test.
        topics: Topics in Metadata answers, with their number of partitions.

    Attributes:
        now_ms: The present instant; begins at 0.
        returned: Result of each poll: None, or an exception's name.
        committed: The completions of commits.
        callbacks: Callbacks run by the application, in order.
        outcomes: Exceptions of the application's callbacks, by kind; others return normally.
        resets: Partitions whose begin or end the port asked for.
        automatic: Effects that are answered at once: types of requests, `Connect`, `RunCallback`.
        racks: Racks of every partition's replicas.
        internal: Topics that are the broker's own.
        dialled: Nodes that the port began to connect to, in order.
        disconnected: Connections that the port closed, in order.
        unanswered: Requests that wait for an answer, in order.
        is_closed: Whether the port has reported that it is closed.
    """

    def __init__(self, bench: Bench, port: P, *, topics: Mapping[str, int] | None = None) -> None:
        self.bench = bench
        self.port = port
        self.topics = dict(topics or {})
        self.now_ms = 0
        self.returned: list[str | None] = []
        self.committed: list[CommitCompleted] = []
        self.callbacks: list[RunCallback] = []
        self.outcomes: dict[CallbackKind, str] = {}
        self.resets: list[ResetPositions] = []
        self.automatic: set[type] = {Connect, MetadataRequest, FindCoordinatorRequest, RunCallback}
        self.racks: tuple[str, ...] = ()
        self.internal: tuple[str, ...] = ()
        self.dialled: list[int] = []
        self.disconnected: list[int] = []
        self.is_closed = False
        self._sent: list[tuple[int, Send]] = []
        self.unanswered: list[Send] = []

    # The application.

    def poll(self, timeout_ms: int = LONG_POLL_MS) -> None:
        """Begin a poll; its result is appended to `returned`."""
        self.note(f"poll {timeout_ms}" if timeout_ms < LONG_POLL_MS else "poll")
        self.do(self.port.poll(self.now_ms, timeout_ms))

    def wakeup(self) -> None:
        """Interrupt the poll in progress, or the next one."""
        self.note("wakeup")
        self.do(self.port.wakeup(self.now_ms))

    def close(self, timeout_ms: int = 30_000) -> None:
        """Close the client."""
        self.note("close")
        self.do(self.port.close(self.now_ms, timeout_ms))

    def complete(self, callback: RunCallback, outcome: str | None = None) -> None:
        """Complete an application callback, which returns or raises."""
        self.do(self.port.callback_completed(callback.token, outcome, self.now_ms))

    def release(self) -> None:
        """Complete the callback that was held, and hold no more."""
        self.automatic.add(RunCallback)
        self.complete(self.callbacks[-1])

    # Time and the network.

    def advance(self, for_ms: int) -> None:
        """Let time pass; every deadline of the port fires at its instant."""
        self.run(self.now_ms + for_ms)

    def run(self, until_ms: int) -> None:
        """Let time pass up to and including this instant."""
        while True:
            deadline_ms = self.port.next_deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self.do(self.port.expire(self.now_ms))

    def connect(self, node_id: int) -> None:
        """Open the connection to the node."""
        self.do(self.port.on_connected(node_id, self.now_ms))

    def disconnect(self, node_id: int = COORDINATOR) -> None:
        """Break the connection to the node; its waiting requests stay unanswered."""
        self.note(f"{self._node(node_id)} disconnects")
        self._forget(node_id)
        self.do(self.port.on_disconnected(node_id, self.now_ms))

    def answer(self, request_type: type[Request], response: Response) -> None:
        """Answer the oldest waiting request of this type.

        Raises:
            CaseFailed: no request of this type waits.
        """
        send = next(
            (each for each in self.unanswered if isinstance(each.request, request_type)), None
        )
        self.bench.expect(f"a {request_type.__name__} waits", send is not None, wanted=True)
        if send is not None:
            self.unanswered.remove(send)
            self.note(f"<- {_shown(response)}")
            self.do(self.port.on_response(send.correlation_id, response, self.now_ms))

    def sent(self, request_type: type[R]) -> list[R]:
        """Return the requests of this type so far."""
        return [send.request for _, send in self._sent if isinstance(send.request, request_type)]

    def sent_at(self, request_type: type[Request]) -> list[int]:
        """Return when they were sent."""
        return [at_ms for at_ms, send in self._sent if isinstance(send.request, request_type)]

    def waiting(self, request_type: type[Request]) -> int:
        """Return how many requests of this type have no answer yet."""
        return sum(isinstance(send.request, request_type) for send in self.unanswered)

    @property
    def changes(self) -> list[tuple[CallbackKind, tuple[TopicPartition, ...]]]:
        """A consumer's partition callbacks, in order."""
        return [(callback.kind, callback.partitions) for callback in self.callbacks]

    def told(self, kind: CallbackKind) -> list[RunCallback]:
        """Return the callbacks of this kind so far."""
        return [callback for callback in self.callbacks if callback.kind is kind]

    # Answers of the group's coordinator.

    def find(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a FindCoordinator: with this broker, or with an error."""
        found = Coordinator(key=GROUP, error_code=error, node_id=-1, port=-1, error_message=None)
        if error is ErrorCode.NONE:
            found = Coordinator(
                key=GROUP,
                node_id=BROKER.node_id,
                host=BROKER.host,
                port=BROKER.port,
                error_message=None,
            )
        self.answer(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(found,)))

    def join(self, **fields: object) -> None:
        """Answer a JoinGroup: a follower of generation 1, with these fields changed."""
        follower = JoinGroupResponse(
            generation_id=1, protocol_name="range", leader=LEADER, member_id=MEMBER
        )
        self.answer(JoinGroupRequest, msgspec.structs.replace(follower, **fields))

    def refuse_join(self, error: ErrorCode, member_id: str = "") -> None:
        """Answer a JoinGroup with an error."""
        response = JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
        self.answer(JoinGroupRequest, response)

    def sync(self, assignment: bytes = b"", error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a SyncGroup."""
        response = SyncGroupResponse(error_code=error, assignment=assignment)
        self.answer(SyncGroupRequest, response)

    def beat(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a heartbeat."""
        self.answer(HeartbeatRequest, HeartbeatResponse(error_code=error))

    def offsets(
        self,
        offsets: Mapping[TopicPartition, int] | int = 10,
        error: ErrorCode = ErrorCode.NONE,
        *,
        of_partitions: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """Answer an OffsetFetch.

        Args:
            offsets: Offset of each partition, or one for all that were asked for; -1 for none.
            error: Error of the group, which is answered without topics then.
            of_partitions: Error of every partition.
        """
        if isinstance(offsets, int):
            fetch = next(
                s.request for s in self.unanswered if isinstance(s.request, OffsetFetchRequest)
            )
            offsets = {
                TopicPartition(topic.name, partition): offsets
                for topic in fetch.groups[0].topics or ()
                for partition in topic.partition_indexes
            }
        by_topic: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for (topic_name, partition), offset in offsets.items():
            by_topic.setdefault(topic_name, []).append(
                OffsetFetchResponsePartitions(partition, offset, error_code=of_partitions)
            )
        topics = tuple(
            OffsetFetchResponseTopics(name, partitions=tuple(each))
            for name, each in by_topic.items()
        )
        found = topics if error is ErrorCode.NONE else ()
        group = OffsetFetchResponseGroup(group_id=GROUP, topics=found, error_code=error)
        self.answer(OffsetFetchRequest, OffsetFetchResponse(groups=(group,)))

    def refuse_commit(self, error: ErrorCode) -> None:
        """Answer an OffsetCommit: every partition has this error, which may be NONE."""
        request = next(
            s.request for s in self.unanswered if isinstance(s.request, OffsetCommitRequest)
        )
        results = tuple(
            OffsetCommitResponseTopic(
                topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(each.partition_index, error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
        self.answer(OffsetCommitRequest, OffsetCommitResponse(topics=results))

    def _replicas(self) -> Iterator[Node]:
        """Brokers that hold replicas in `racks`, and nothing else."""
        for place, rack in enumerate(self.racks):
            yield Node(node_id=FIRST_REPLICA + place, host="replica", port=9092, rack=rack)

    def metadata(self) -> MetadataResponse:
        """Return the cluster: one broker, and the topics of `topics`."""
        return MetadataResponse(
            brokers=(BROKER, *self._replicas()),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    is_internal=name in self.internal,
                    partitions=self._partitions(count),
                )
                for name, count in self.topics.items()
            ),
        )

    def _partitions(self, count: int) -> tuple[MetadataResponsePartition, ...]:
        return tuple(
            MetadataResponsePartition(
                partition_index=p,
                leader_id=BROKER.node_id,
                replica_nodes=tuple(range(FIRST_REPLICA, FIRST_REPLICA + len(self.racks))),
                leader_epoch=0,
            )
            for p in range(count)
        )

    # Effects.

    def note(self, line: str) -> None:
        """Write one line of the transcript."""
        self.bench.transcript.append(f"{self.now_ms:>7} {line}")

    def do(self, effects: Effects) -> None:
        """Carry out effects, and those that follow from them."""
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Connect(node_id=node_id):
                self.dialled.append(node_id)
                if Connect in self.automatic:
                    self.connect(node_id)
            case Disconnect(node_id=node_id):
                self.note(f"closes the connection to {self._node(node_id)}")
                self.disconnected.append(node_id)
                self._forget(node_id)
            case Send():
                self._send(effect)
            case RunCallback():
                self._call_back(effect)
            case ResetPositions():
                self.note(f"asks for the {effect.to.value} of {len(effect.partitions)} partitions")
                self.resets.append(effect)
            case PollReturned(error=error):
                self.note(f"poll ends {error or ''}".rstrip())
                self.returned.append(error)
            case CommitCompleted():
                self.note(f"commit ends {effect.error or ''}".rstrip())
                self.committed.append(effect)
            case Closed():
                self.note("closed")
                self.is_closed = True

    def _send(self, send: Send) -> None:
        self.note(f"-> {self._node(send.node_id)} {_shown(send.request)}")
        self._sent.append((self.now_ms, send))
        self.unanswered.append(send)
        if type(send.request) not in self.automatic:
            return
        if isinstance(send.request, MetadataRequest):
            self.answer(MetadataRequest, self.metadata())
        elif isinstance(send.request, FindCoordinatorRequest):
            self.find()

    def _call_back(self, callback: RunCallback) -> None:
        about: tuple[object, ...] = callback.partitions
        about = about or (*callback.connectors, *callback.tasks)
        self.note(f"{callback.kind.value} {' '.join(map(str, about))}".rstrip())
        self.callbacks.append(callback)
        if RunCallback in self.automatic:
            self.complete(callback, self.outcomes.get(callback.kind))

    def _forget(self, node_id: int) -> None:
        self.unanswered = [send for send in self.unanswered if send.node_id != node_id]

    def _node(self, node_id: int) -> str:
        return "coordinator" if node_id == COORDINATOR else f"broker {node_id}"


class ConsumerBench(PortBench[ConsumerCoordinator]):
    """Bench of a consumer, with requests about partitions."""

    def give(self, *partitions: TopicPartition) -> None:
        """Answer a SyncGroup with these partitions."""
        self.sync(encode_assignment(ConsumerAssignment(partitions=partitions)))

    def assign(self, *partitions: TopicPartition) -> None:
        """Answer a SyncGroup with these partitions, and the fetch of their offsets with 10."""
        self.give(*partitions)
        if self.waiting(OffsetFetchRequest):
            self.offsets(dict.fromkeys(partitions, 10))

    def refuse_connection(self, node_id: int, error: str) -> None:
        """End the connection as a broker does when authentication failed."""
        self.note(f"{self._node(node_id)} disconnects with {error}")
        self._forget(node_id)
        self.do(self.port.on_disconnected(node_id, self.now_ms, error))

    def lead(self, **fields: object) -> None:
        """Answer a JoinGroup: the member leads a group of itself, with its own subscription."""
        asked = self.sent(JoinGroupRequest)[-1]
        name = str(fields.get("protocol_name", asked.protocols[0].name))
        metadata = next(each.metadata for each in asked.protocols if each.name == name)
        alone = JoinGroupResponseMember(MEMBER, None, metadata)
        told = {"protocol_name": name, "leader": MEMBER, "members": (alone,)}
        self.join(**{**told, **fields})

    def settle(self, *partitions: TopicPartition, **fields: object) -> None:
        """Poll, join with the given fields, and be STABLE with these partitions."""
        self.poll()
        self.join(**fields)
        self.assign(*partitions)

    def idle(self, **fields: object) -> None:
        """Be STABLE with partition 0 of `t`, and between two polls of the application."""
        self.settle(TopicPartition("t", 0), **fields)
        self.do(self.port.fetch_completed(self.now_ms))
        self.returned.clear()

    def commit(self, offsets: Mapping[TopicPartition, int], *, sync: bool) -> int:
        """Begin a commit; return the token of its completion."""
        self.note(f"commit{'Sync' if sync else 'Async'} {len(offsets)} offsets")
        token, effects = self.port.commit(offsets, sync=sync, now_ms=self.now_ms)
        self.do(effects)
        return token


def _shown(message: Request | Response) -> str:
    """Format a message by its name and the fields that are not at their defaults."""
    told = msgspec.structs.asdict(message).items()
    fields = [f"{key}={_value(value)}" for key, value in told if value not in _UNSAID]
    return " ".join([type(message).__name__, *fields])


def _value(value: object) -> str:
    if isinstance(value, ErrorCode):
        return value.name
    return f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
