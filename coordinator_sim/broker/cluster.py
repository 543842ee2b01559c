"""A cluster as plain state: living brokers, leaders, and the offsets log.

All brokers share the log of an offsets partition, as if replicated at once. Methods return the
results at each broker; a driver carries the time and delivers the results.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from coordinator_sim.broker.broker import Broker, Coordinator, Services, make_services
from coordinator_sim.broker.logs import DataLog
from coordinator_sim.broker.record_log import RecordLog
from coordinator_sim.broker.view import NO_LEADER, ClusterView, Leadership
from coordinator_sim.coordinator.contract import CoordinatorResult
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.records import LogBatch
from coordinator_sim.protocol.resources import TopicPartition

CoordinatorFactory = Callable[[int], Coordinator]
"""Builds an empty group coordinator for a broker, by its id."""

_PORT = 9092


class Load(Struct, frozen=True, gc=False):
    """A load that a broker began; `Cluster.finish_load` ends it after the load time."""

    broker_id: int
    partition: int
    leader_epoch: int


class Outcome(Struct, frozen=True):
    """The result of a method at one broker; `load` is set when a load began there."""

    broker_id: int
    result: CoordinatorResult
    load: Load | None = None


class Cluster:
    """The brokers of one cluster and what they share.

    At the start partition p of the offsets topic is led by broker (p mod N) + 1 and loaded.

    Args:
        broker_count: Brokers 1 to N.
        offsets_partitions: `offsets.topic.num.partitions`.
        make_coordinator: Builds the coordinator of a broker that starts.
        services: Services of all brokers; by default those of the newest Kafka, without authorizer.
    """

    def __init__(
        self,
        broker_count: int,
        *,
        offsets_partitions: int,
        make_coordinator: CoordinatorFactory,
        services: Services | None = None,
    ) -> None:
        self.services = make_services(offsets_partitions) if services is None else services
        self.view = ClusterView()
        self.brokers: dict[int, Broker] = {}
        """The living broker processes by id."""
        self.logs: list[list[LogBatch]] = [[] for _ in range(offsets_partitions)]
        """The offsets log of each partition, oldest batch first."""
        self._make_coordinator = make_coordinator
        # Deposed leaders that do not know it yet, by partition.
        self._unaware: dict[int, dict[int, int]] = {}
        for broker_id in range(1, broker_count + 1):
            self.view.register(_node(broker_id))
            self.brokers[broker_id] = self._new_broker(broker_id)
        self.view.create_topic(OFFSETS_TOPIC, offsets_partitions)
        for partition, leadership in enumerate(self.view.topics[OFFSETS_TOPIC]):
            coordinator = self.brokers[leadership.leader_id].coordinator
            coordinator.begin_load(partition, leadership.leader_epoch, 0)
            coordinator.finish_load(partition, ErrorCode.NONE, 0)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or grow it to a number of partitions."""
        self.view.create_topic(name, partitions)
        logs = self.services.data_logs
        for partition in range(partitions):
            logs.setdefault(TopicPartition(name, partition), DataLog(partition))

    def create_record_topic(self, name: str, partitions: int) -> None:
        """Create a topic whose records are kept; nothing happens if the topic exists."""
        if name in self.view.topics:
            return
        self.view.create_topic(name, partitions)
        for partition in range(partitions):
            self.services.data_logs[TopicPartition(name, partition)] = RecordLog(partition)

    def store(self, batches: Iterable[LogBatch], broker_id: int | None = None) -> None:
        """Append batches to the logs of their partitions, in the order given.

        Args:
            batches: Batches returned by a method of a coordinator.
            broker_id: Broker of the coordinator. Batches of a deposed leader that does not know it
                yet are not stored: they are on no other broker, and get truncated later.
        """
        for batch in batches:
            if broker_id not in self._unaware.get(batch.partition, ()):
                self.logs[batch.partition].append(batch)

    def leader_of(self, partition: int) -> int:
        """The broker that leads an offsets partition, or -1."""
        return self._offsets_leaders()[partition].leader_id

    def move(
        self, partition: int, to_broker: int | None, now_ms: int, *, old_notices: bool = True
    ) -> tuple[Outcome, ...]:
        """Elect another leader for an offsets partition: unload there, begin the load here.

        Args:
            partition: Partition of the offsets topic.
            now_ms: The instant of the election.
            to_broker: The new leader; None takes the next living broker after the current one.
                Nothing happens when that broker is dead, or leads the partition already.
            old_notices: Whether the old leader resigns now. If not, it answers as leader until
                `notice`, but nothing it appends is committed.
        """
        if to_broker is None:
            to_broker = self._next_living(self.leader_of(partition))
        if to_broker not in self.brokers or to_broker == self.leader_of(partition):
            return ()
        return self._elect(partition, to_broker, now_ms, old_notices=old_notices)

    def notice(self, partition: int, now_ms: int) -> tuple[Outcome, ...]:
        """Let deposed leaders of a partition learn of the new leader, and resign."""
        epoch = self._offsets_leaders()[partition].leader_epoch
        outcomes: list[Outcome] = []
        for broker_id in self._unaware.pop(partition, {}):
            broker = self.brokers.get(broker_id)
            if broker is not None:
                resigned = broker.coordinator.unload(partition, epoch, now_ms)
                outcomes.append(Outcome(broker_id, resigned))
        return tuple(outcomes)

    def hold(self, partition: int) -> None:
        """Stop the replication of an offsets partition's leader, until `release`.

        Its appends stay uncommitted. A leader elected meanwhile replicates normally.
        """
        leader = self.brokers.get(self.leader_of(partition))
        if leader is not None:
            leader.coordinator.hold_high_watermark(True, partition)  # noqa: FBT003 - its one flag

    def release(self, partition: int, now_ms: int) -> tuple[Outcome, ...]:
        """Let the replicas of an offsets partition's leader catch up."""
        for broker in self.brokers.values():
            broker.coordinator.hold_high_watermark(False, partition)  # noqa: FBT003 - its one flag
        leader = self.brokers.get(self.leader_of(partition))
        if leader is None:
            return ()
        coordinator = leader.coordinator
        end = coordinator.end_offset(partition)
        result = coordinator.advance_high_watermark(partition, end, now_ms)
        return (Outcome(leader.broker_id, result),)

    def finish_load(self, load: Load, now_ms: int) -> tuple[Outcome, ...]:
        """Replay the log into the broker and let it serve the partition.

        Nothing happens when the broker died or lost the partition since the load began.
        """
        broker = self.brokers.get(load.broker_id)
        leadership = self._offsets_leaders()[load.partition]
        if broker is None or leadership.leader_epoch != load.leader_epoch:
            return ()
        for batch in self.logs[load.partition]:
            broker.coordinator.replay(load.partition, batch)
        result = broker.coordinator.finish_load(load.partition, ErrorCode.NONE, now_ms)
        return (Outcome(load.broker_id, result),)

    def crash(self, broker_id: int) -> None:
        """Kill a broker process; the others do not know yet (see `fence`)."""
        self.brokers.pop(broker_id, None)
        for unaware in self._unaware.values():
            unaware.pop(broker_id, None)

    def fence(self, broker_id: int, now_ms: int) -> tuple[Outcome, ...]:
        """Fence a dead broker, so that its partitions get other leaders.

        Nothing happens when the broker is alive again.
        """
        if broker_id in self.brokers:
            return ()
        self.view.fenced[broker_id] = True
        return self._elect_for(broker_id, now_ms)

    def restart(self, broker_id: int, now_ms: int) -> tuple[Outcome, ...]:
        """Start a dead broker again; it loads its own partitions and those without a leader."""
        if broker_id in self.brokers:
            return ()
        self.brokers[broker_id] = self._new_broker(broker_id)
        still_registered = not self.view.fenced[broker_id]
        self.view.register(_node(broker_id))
        outcomes = self._elect_for(NO_LEADER, now_ms)
        if still_registered:
            return (*self._elect_for(broker_id, now_ms), *outcomes)
        return outcomes

    def _new_broker(self, broker_id: int) -> Broker:
        coordinator = self._make_coordinator(broker_id)
        return Broker(broker_id, self.view, coordinator, self.services)

    def _offsets_leaders(self) -> list[Leadership]:
        return self.view.topics[OFFSETS_TOPIC]

    def _next_living(self, broker_id: int) -> int:
        living = [other for other in self.view.living_ids() if other in self.brokers]
        return next((other for other in living if other > broker_id), living[0] if living else -1)

    def _elect_for(self, leader_id: int, now_ms: int) -> tuple[Outcome, ...]:
        """Elect a living leader for every partition led by `leader_id`, itself if it is alive."""
        outcomes: list[Outcome] = []
        for name, leaders in self.view.topics.items():
            for partition, leadership in enumerate(leaders):
                if leadership.leader_id != leader_id:
                    continue
                successor = leader_id if leader_id in self.brokers else self._successor(partition)
                if name == OFFSETS_TOPIC:
                    outcomes.extend(self._elect(partition, successor, now_ms))
                else:
                    leadership.leader_id = successor
                    leadership.leader_epoch += 1
        return tuple(outcomes)

    def _successor(self, partition: int) -> int:
        """A living broker, spread by partition number; -1 when all are dead."""
        living = [other for other in self.view.living_ids() if other in self.brokers]
        return living[partition % len(living)] if living else NO_LEADER

    def _elect(
        self, partition: int, to_broker: int, now_ms: int, *, old_notices: bool = True
    ) -> tuple[Outcome, ...]:
        leadership = self._offsets_leaders()[partition]
        old = self.brokers.get(leadership.leader_id)
        leadership.leader_id = to_broker
        leadership.leader_epoch += 1
        epoch = leadership.leader_epoch
        outcomes: list[Outcome] = []
        if old is not None and old.broker_id != to_broker and not old_notices:
            old.coordinator.hold_high_watermark(hold=True, partition=partition)
            self._unaware.setdefault(partition, {})[old.broker_id] = epoch
        elif old is not None and old.broker_id != to_broker:
            resigned = old.coordinator.unload(partition, epoch, now_ms)
            outcomes.append(Outcome(old.broker_id, resigned))
        new = self.brokers.get(to_broker)
        if new is not None and self._unaware.get(partition, {}).pop(to_broker, None) is not None:
            # A deposed leader is elected again: it drops its unreplicated state, and loads again.
            dropped = new.coordinator.unload(partition, epoch, now_ms)
            outcomes.append(Outcome(to_broker, dropped))
        if new is not None:
            began = new.coordinator.begin_load(partition, epoch, now_ms)
            outcomes.append(Outcome(to_broker, began, Load(to_broker, partition, epoch)))
        return tuple(outcomes)


def _node(broker_id: int) -> Node:
    return Node(node_id=broker_id, host=f"broker-{broker_id}", port=_PORT)
