"""The brokers of a cluster, and whose coordinator leads which partition of a state topic.

Three topics keep the state of coordinators: `__consumer_offsets`, `__transaction_state` and
`__share_group_state`. Each broker has one coordinator for each of them.

Source: kafka 4.4, BrokerMetadataPublisher.updateCoordinator (elections and resignations).
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage, PartitionState
from coordinator_sim.broker.scheduler import earliest


class RunningBrokers:
    """The brokers whose processes live.

    Attributes:
        living: Their ids, in the order of their starts.
        frozen: Those whose time stands still, as that of a process that got SIGSTOP.
        started: Called with the id of a broker whose process has begun.
        stopped: Called with the id of a broker whose process has ended.
    """

    def __init__(self) -> None:
        self.living: dict[int, None] = {}
        self.frozen: dict[int, None] = {}
        self.started: list[Callable[[int], None]] = []
        self.stopped: list[Callable[[int], None]] = []
        self._start_counts: dict[int, int] = {}

    def start(self, broker_id: int) -> None:
        """Begin a broker's process."""
        self.living[broker_id] = None
        self._start_counts[broker_id] = self.start_count(broker_id) + 1
        for listener in self.started:
            listener(broker_id)

    def stop(self, broker_id: int) -> None:
        """End a broker's process."""
        del self.living[broker_id]
        self.frozen.pop(broker_id, None)
        for listener in self.stopped:
            listener(broker_id)

    def start_count(self, broker_id: int) -> int:
        """Return the number of starts of a broker: each process has another number."""
        return self._start_counts.get(broker_id, 0)

    def is_running(self, broker_id: int) -> bool:
        """Whether a broker's process lives, and its time does not stand still."""
        return broker_id in self.living and broker_id not in self.frozen


class HostedCoordinator(Protocol):
    """The coordinator of one broker for one state topic."""

    def on_election(self, partition: int, leader_epoch: int, now: Instants, /) -> None:
        """Load a partition that this broker leads from now on."""
        ...

    def on_resignation(self, partition: int, leader_epoch: int | None, now: Instants, /) -> None:
        """Unload a partition that another broker leads now; None where it is deleted."""
        ...

    def arm(self) -> None:
        """Arm the scheduler for the next deadline on each clock."""
        ...

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None if there is none."""
        ...


C = TypeVar("C", bound=HostedCoordinator)


class Leader(Struct, frozen=True):
    """The leader of a partition: its broker, the start of that broker, and the leader epoch."""

    broker_id: int
    start_count: int
    leader_epoch: int


class Hosting(Generic[C]):
    """The coordinators of one state topic, and the partitions that they lead.

    Args:
        brokers: Which brokers run.

    Attributes:
        brokers: See above.
        coordinators: The coordinators, by broker id.
        leaders: The leader of each partition, as its coordinator knows it.
    """

    def __init__(self, brokers: RunningBrokers) -> None:
        self.brokers = brokers
        self._start_counts: dict[int, int] = {}
        self.coordinators: dict[int, C] = {}
        self.leaders: dict[int, Leader] = {}

    def add(self, broker_id: int, coordinator: C) -> None:
        """Host the coordinator of a broker, in place of one from an earlier start."""
        self.coordinators[broker_id] = coordinator
        self._start_counts[broker_id] = self.brokers.start_count(broker_id)

    def remove(self, broker_id: int) -> None:
        """Drop the coordinator of a broker whose process is gone; it leads nothing any longer."""
        del self.coordinators[broker_id]
        for partition in [
            each for each, leader in self.leaders.items() if leader.broker_id == broker_id
        ]:
            del self.leaders[partition]

    def leader_of(self, partition: int) -> C | None:
        """The coordinator that leads a partition, None if there is none."""
        leader = self.leaders.get(partition)
        return None if leader is None else self.coordinators.get(leader.broker_id)

    def elect(self, partition: int, coordinator: C, state: PartitionState, now: Instants) -> None:
        """Let a coordinator load a partition that its broker leads from now on."""
        self.leaders[partition] = self._leader(state)
        coordinator.on_election(partition, state.leader_epoch, now)

    def resign(self, partition: int, leader_epoch: int | None, now: Instants) -> None:
        """Let the leader of a partition, if any, unload it; None where the topic is deleted."""
        leader = self.leaders.pop(partition, None)
        if leader is not None and self._start_counts.get(leader.broker_id) == leader.start_count:
            self.coordinators[leader.broker_id].on_resignation(partition, leader_epoch, now)

    def _leader(self, state: PartitionState) -> Leader:
        start_count = self.brokers.start_count(state.leader_id)
        return Leader(state.leader_id, start_count, state.leader_epoch)

    # -- time ------------------------------------------------------------------------------

    def running(self) -> list[C]:
        """The coordinators of brokers whose time goes on."""
        brokers = self.brokers
        return [
            coordinator
            for broker_id, coordinator in self.coordinators.items()
            if brokers.is_running(broker_id)
            and self._start_counts[broker_id] == brokers.start_count(broker_id)
        ]

    def arm(self) -> None:
        """Arm the scheduler for the next deadline of every running coordinator."""
        for coordinator in self.running():
            coordinator.arm()

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline of a running coordinator by the group clock."""
        return earliest(each.next_group_deadline_ms() for each in self.running())


class FollowingHosting(Hosting[C]):
    """A hosting that compares itself with the metadata whenever it is used.

    Args:
        topic: The state topic.
        image: The cluster's metadata.
        brokers: Which brokers run.
        make: Makes the coordinator of a broker, without partitions, when it is first needed.
        followed: Called when a change of the metadata has been followed.
    """

    def __init__(
        self,
        topic: str,
        image: MetadataImage,
        brokers: RunningBrokers,
        *,
        make: Callable[[Instants], C],
        followed: Callable[[Instants], None],
    ) -> None:
        super().__init__(brokers)
        self._topic = topic
        self._image = image
        self._make = make
        self._followed = followed
        self._seen_version = -1

    def listen(self, cluster_events: ClusterEvents) -> None:
        """Follow each change of leaders and topics at once."""
        cluster_events.leader_changed.append(lambda _topic, _partition, now: self.follow(now))
        cluster_events.topic_created.append(lambda _name, now: self.follow(now))
        cluster_events.topic_deleted.append(lambda _name, _id, _count, now: self.follow(now))

    def coordinator(self, broker_id: int, now: Instants) -> C:
        """The coordinator of a broker, with all partitions loaded, or loading, that it leads."""
        self.follow(now)
        return self._member(broker_id, now)

    def _member(self, broker_id: int, now: Instants) -> C:
        """The coordinator of a broker, made anew and empty when the broker was started again."""
        if self._start_counts.get(broker_id) != self.brokers.start_count(broker_id):
            self.add(broker_id, self._make(now))
        return self.coordinators[broker_id]

    def follow(self, now: Instants) -> None:
        """Load the partitions that each broker leads by the metadata, and unload the others."""
        if self._seen_version == self._image.version:
            return
        self._seen_version = self._image.version
        topic = self._image.topics.get(self._topic)
        partitions = topic.partitions if topic is not None else []
        for number in [each for each in self.leaders if each >= len(partitions)]:
            self.resign(number, None, now)
        for number, state in enumerate(partitions):
            if self.leaders.get(number) == self._leader(state):
                continue
            self.resign(number, state.leader_epoch, now)
            if state.leader_id != NO_LEADER:
                self.elect(number, self._member(state.leader_id, now), state, now)
        self._followed(now)
