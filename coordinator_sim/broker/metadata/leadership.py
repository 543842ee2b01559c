"""Leader elections, also of group coordinators.

Replicas are labels: any living replica may lead, and has every record that was ever appended.

Source: kafka trunk, ReplicationControlManager.java (handleBrokerFenced,
generateLeaderAndIsrUpdates), BrokerMetadataPublisher.scala (election and resignation of group
coordinators).
"""

from collections.abc import Callable

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import Change, LeaderElected
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage, PartitionState


class Leadership:
    """Elects leaders.

    Args:
        image: The metadata.
        change: Applies a change of the metadata.
        is_living: Whether the broker of an id may lead.
        cluster_events: Listeners for elections.

    Attributes:
        is_living: See above.
        shutting_down: Living brokers that are to lead nothing more, until they come back.
    """

    def __init__(
        self,
        image: MetadataImage,
        *,
        change: Callable[[Change], None],
        is_living: Callable[[int], bool],
        cluster_events: ClusterEvents,
    ) -> None:
        self._image = image
        self._change = change
        self.is_living = is_living
        self._cluster_events = cluster_events
        self.shutting_down: dict[int, None] = {}

    def elect(self, topic: str, partition: int, leader_id: int, now: Instants) -> None:
        """Make a broker the leader, at the next epoch; -1 leaves the partition without a leader."""
        state = self._image.topics[topic].partitions[partition]
        isr = tuple(each for each in state.replicas if self._may_lead(each)) or state.isr
        self.apply(LeaderElected(topic, partition, leader_id, state.leader_epoch + 1, isr), now)

    def apply(self, elected: LeaderElected, now: Instants) -> None:
        """Change a partition's leader, as elected, and tell those who follow leaders."""
        self._change(elected)
        for told in self._cluster_events.leader_changed:
            told(elected.topic, elected.partition, now)

    def broker_lost(self, broker_id: int, now: Instants) -> None:
        """Elect other leaders, or none, for the partitions of a broker that is fenced."""
        for topic, partition, state in self._led_by(broker_id):
            self.elect(topic, partition, self._first_living(state), now)

    def broker_back(self, broker_id: int, now: Instants) -> None:
        """Make a broker that registers the leader of its partitions that have no leader.

        Partitions that it still leads, because its loss went unnoticed, get a new epoch.
        """
        self.shutting_down.pop(broker_id, None)
        leaderless = [
            (topic, partition)
            for topic, partition, state in self._led_by(NO_LEADER)
            if broker_id in state.replicas
        ]
        led = [(topic, partition) for topic, partition, _ in self._led_by(broker_id)]
        for topic, partition in (*led, *leaderless):
            self.elect(topic, partition, broker_id, now)

    def shut_down(self, broker_id: int, now: Instants) -> list[tuple[str, int]]:
        """Take a broker out of each ISR, and its replicated partitions over by others.

        Returns:
            The replicated partitions that it still leads, because no other replica is in sync.

        Source: kafka 0.10.2, KafkaController.shutdownBroker, removeReplicaFromIsr;
        ControlledShutdownLeaderSelector.
        """
        self.shutting_down[broker_id] = None
        remaining = []
        for topic in self._image.topics.values():
            for partition, state in enumerate(topic.partitions):
                if len(state.replicas) == 1 or broker_id not in state.isr:
                    continue
                leader_id = state.leader_id
                isr = tuple(each for each in state.isr if each not in self.shutting_down)
                if leader_id == broker_id and isr:
                    leader_id = next(each for each in state.replicas if each in isr)
                    epoch = state.leader_epoch + 1
                    self.apply(LeaderElected(topic.name, partition, leader_id, epoch, isr), now)
                elif leader_id == broker_id:
                    remaining.append((topic.name, partition))
                else:
                    isr = tuple(each for each in state.isr if each != broker_id)
                    epoch = state.leader_epoch + 1
                    self._change(LeaderElected(topic.name, partition, leader_id, epoch, isr))
        return remaining

    def _may_lead(self, broker_id: int) -> bool:
        return self.is_living(broker_id) and broker_id not in self.shutting_down

    def _led_by(self, leader_id: int) -> list[tuple[str, int, PartitionState]]:
        return [
            (topic.name, partition, state)
            for topic in self._image.topics.values()
            for partition, state in enumerate(topic.partitions)
            if state.leader_id == leader_id
        ]

    def _first_living(self, state: PartitionState) -> int:
        return next((each for each in state.replicas if self._may_lead(each)), NO_LEADER)
