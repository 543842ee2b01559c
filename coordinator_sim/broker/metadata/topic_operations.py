"""Creation, growth and deletion of topics, for CreateTopics, auto-creation and operators.

Requests are validated elsewhere.

Source: kafka trunk, ReplicationControlManager.java (createTopic, deleteTopic, createPartitions).
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import (
    Change,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from coordinator_sim.broker.metadata.image import MetadataImage, Topic, Topics, topic_id_for
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.partitioning import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from coordinator_sim.kafka.topic_names import check_topic_name

INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
"""Internal topics. Source: kafka trunk, clients/.../common/internals/Topic.java, isInternal."""
_SEGMENT_BYTES: Final = "104857600"
"""`offsets.topic.segment.bytes` and `transaction.state.log.segment.bytes`."""

Replicas = tuple[tuple[int, ...], ...]
"""Broker ids of each partition, the leader first."""


class TopicOperations:
    """Creates, grows and deletes topics.

    Args:
        settings: Settings of the cluster.
        image: The metadata.
        change: Applies a change of the metadata.
        living: Gives the ids of living brokers, ascending.
        cluster_events: Listeners for changes of topics.

    Attributes:
        catalogue: The topics as the group coordinators see them.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        image: MetadataImage,
        *,
        change: Callable[[Change], None],
        living: Callable[[], list[int]],
        cluster_events: ClusterEvents,
    ) -> None:
        self.catalogue = Topics()
        self._settings = settings
        self._image = image
        self._change = change
        self._living = living
        self._cluster_events = cluster_events

    def create(
        self, name: str, replicas: Replicas, now: Instants, configs: dict[str, str] | None = None
    ) -> bytes:
        """Create a topic that does not exist yet; return its id.

        Raises:
            ConfigError: the name is not valid for a topic.
        """
        check_topic_name(name)
        # A feature that came later: the ids of topics, and the orders that follow from them, stay
        # what they were in published runs.
        changes = self._image.version - ("share.version" in self._image.features)
        topic_id = topic_id_for(name, changes + self._settings.seed)
        self._change(TopicCreated(name, topic_id, replicas, configs or {}))
        self.catalogue.put(name, Topic(topic_id, len(replicas)))
        for told in self._cluster_events.topic_created:
            told(name, now)
        return topic_id

    def create_spread(
        self, name: str, partitions: int, now: Instants, replication_factor: int | None = None
    ) -> bytes:
        """Create a topic with the brokers' default settings; return its id.

        Raises:
            ConfigError: the name is not valid for a topic, or there are fewer living brokers than
                replicas.
        """
        factor = replication_factor or self._settings.default_replication_factor
        living_count = len(self._living())
        if factor > living_count:
            raise ConfigError(
                f"topic {name!r}: {factor} replicas on {living_count} living brokers; "
                "lower default.replication.factor or start more brokers"
            )
        return self.create(name, self.spread(partitions, factor), now)

    def create_asked_for(self, name: str, now: Instants) -> None:
        """Auto-create a topic that a client asked for; internal topics as configured."""
        settings, partitions = self._settings, self.auto_partition_count(name)
        if name not in INTERNAL_TOPICS:
            self.create_spread(name, partitions, now)
            return
        wanted = settings.internal_replication_factor
        if name == SHARE_STATE_TOPIC:
            wanted = settings.share_state_replication_factor
        replicas = self.spread(partitions, min(wanted, len(self._living())))
        self.create(name, replicas, now, internal_configs(name, settings))

    def auto_partition_count(self, name: str) -> int:
        """The number of partitions of a topic that is created because a client asked for it."""
        settings = self._settings
        if name == OFFSETS_TOPIC:
            return settings.coordinator.offsets_topic_num_partitions
        if name == SHARE_STATE_TOPIC:
            return settings.share_state_partitions
        if name in INTERNAL_TOPICS:
            return settings.transaction_partitions
        return settings.num_partitions

    def add_partitions(self, name: str, replicas: Replicas, now: Instants) -> None:
        """Add partitions to a topic."""
        self._change(PartitionsAdded(name, replicas))
        state = self._image.topics[name]
        self.catalogue.put(name, Topic(state.topic_id, len(state.partitions)))
        for told in self._cluster_events.partitions_added:
            told(name, now)

    def delete(self, name: str, now: Instants) -> None:
        """Delete a topic with all its records."""
        state = self._image.topic(name)
        self._change(TopicDeleted(name))
        self.catalogue.remove(name)
        for told in self._cluster_events.topic_deleted:
            told(name, state.topic_id, len(state.partitions), now)

    def spread(self, partitions: int, replication_factor: int, first: int = 0) -> Replicas:
        """Replicas on living brokers, each partition starting at the next broker.

        Args:
            partitions: Number of partitions.
            replication_factor: Replicas of each, at most as many as there are living brokers.
            first: Number of the first partition.
        """
        ids = self._living()
        return tuple(
            tuple(ids[(partition + place) % len(ids)] for place in range(replication_factor))
            for partition in range(first, first + partitions)
        )

    def restore(self) -> None:
        """Put the topics that the image got from a journal into the catalogue."""
        for name, state in self._image.topics.items():
            self.catalogue.put(name, Topic(state.topic_id, len(state.partitions)))


def internal_configs(name: str, settings: ClusterSettings | None = None) -> dict[str, str]:
    """The settings that an internal topic is created with; none for any other.

    Args:
        name: Of the topic.
        settings: Of the cluster; None for Kafka's defaults.
    """
    if name not in INTERNAL_TOPICS:
        return {}
    if name == SHARE_STATE_TOPIC:
        settings = settings or ClusterSettings()
        # Source: ShareCoordinatorService.shareGroupStateTopicConfigs.
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(settings.share_state_segment_bytes),
            "min.insync.replicas": str(settings.share_state_min_isr),
            "retention.ms": "-1",
        }
    configs = {"cleanup.policy": "compact", "segment.bytes": _SEGMENT_BYTES}
    if name == OFFSETS_TOPIC:
        configs["compression.type"] = "producer"
    return configs
