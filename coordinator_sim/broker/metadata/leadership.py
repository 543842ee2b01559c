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
    """

    __slots__ = ("_change", "_cluster_events", "_image", "is_living")

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

    def elect(self, topic: str, partition: int, leader_id: int, now: Instants) -> None:
        """Make a broker the leader, at the next epoch; -1 leaves the partition without a leader."""
        state = self._image.topics[topic].partitions[partition]
        isr = tuple(each for each in state.replicas if self.is_living(each))
        self._change(
            LeaderElected(topic, partition, leader_id, state.leader_epoch + 1, isr or state.isr)
        )
        for told in self._cluster_events.leader_changed:
            told(topic, partition, now)

    def broker_lost(self, broker_id: int, now: Instants) -> None:
        """Elect other leaders, or none, for the partitions of a broker that is fenced."""
        for topic, partition, state in self._led_by(broker_id):
            self.elect(topic, partition, self._first_living(state), now)

    def broker_back(self, broker_id: int, now: Instants) -> None:
        """Make a broker that registers the leader of its partitions that have no leader.

        Partitions that it still leads, because its loss went unnoticed, get a new epoch.
        """
        leaderless = [
            (topic, partition)
            for topic, partition, state in self._led_by(NO_LEADER)
            if broker_id in state.replicas
        ]
        led = [(topic, partition) for topic, partition, _ in self._led_by(broker_id)]
        for topic, partition in (*led, *leaderless):
            self.elect(topic, partition, broker_id, now)

    def _led_by(self, leader_id: int) -> list[tuple[str, int, PartitionState]]:
        return [
            (topic.name, partition, state)
            for topic in self._image.topics.values()
            for partition, state in enumerate(topic.partitions)
            if state.leader_id == leader_id
        ]

    def _first_living(self, state: PartitionState) -> int:
        return next((each for each in state.replicas if self.is_living(each)), NO_LEADER)
