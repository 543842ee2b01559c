"""The metadata that every broker has of the cluster: brokers and partition leaders.

All brokers share it, as if the controller updated them all at once.
"""

from dataclasses import dataclass, field

from coordinator_sim.broker.topics import Topic, Topics, topic_id_for
from coordinator_sim.errors import ScenarioError
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC, partition_for

NO_LEADER = -1
_INTERNAL_TOPICS = (OFFSETS_TOPIC, "__transaction_state")
"""Internal topics. Source: kafka trunk, clients/.../common/internals/Topic.java, isInternal."""
_TRANSACTION_PARTITIONS = 50
"""`transaction.state.log.num.partitions`."""


@dataclass(slots=True)
class Leadership:
    """The leader of one partition; `leader_id` is -1 while there is none."""

    leader_id: int
    leader_epoch: int = 0


@dataclass(slots=True)
class ClusterView:
    """The metadata image.

    Args:
        nodes: Registered brokers by id, including dead ones.
        topics: Leaders of each topic's partitions, in partition order.
        offsets_partitions: `offsets.topic.num.partitions`, for an offsets topic not yet created.
        catalogue: Ids and partition counts of the same topics.
        broker_epochs: Broker epoch of each broker's latest registration.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    fenced: dict[int, bool] = field(default_factory=dict)
    topics: dict[str, list[Leadership]] = field(default_factory=dict)
    offsets_partitions: int = 50
    catalogue: Topics = field(default_factory=Topics)
    broker_epochs: dict[int, int] = field(default_factory=dict)

    def register(self, node: Node) -> None:
        """Register a started broker: unfence it, with a broker epoch above all others."""
        self.nodes[node.node_id] = node
        self.fenced[node.node_id] = False
        self.broker_epochs[node.node_id] = max(self.broker_epochs.values(), default=0) + 1

    def living_ids(self) -> list[int]:
        """Ids of the brokers that are not fenced, ascending."""
        return [node_id for node_id in sorted(self.nodes) if not self.fenced[node_id]]

    def offsets_partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group_id, len(self.topics[OFFSETS_TOPIC]))

    def create_topic(self, name: str, partitions: int) -> None:
        """Add a topic, or partitions up to a number, spread over the living brokers.

        Raises:
            ScenarioError: The topic has more partitions already.
        """
        leaders = self.topics.setdefault(name, [])
        if partitions < len(leaders):
            raise ScenarioError(
                f"topic {name!r} has {len(leaders)} partitions: it cannot shrink to {partitions}"
            )
        living = self.living_ids()
        for partition in range(len(leaders), partitions):
            leader_id = living[partition % len(living)] if living else NO_LEADER
            leaders.append(Leadership(leader_id))
        topic_id = self.catalogue.id_of(name) or topic_id_for(name)
        self.catalogue.put(name, Topic(topic_id, partitions))

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """Answer Metadata: brokers that are not fenced, and topics in request order.

        An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION and no partitions.
        """
        asked = request.topics
        names = self.topics if asked is None else [each.name or "" for each in asked]
        return MetadataResponse(
            brokers=tuple(self.nodes[node_id] for node_id in self.living_ids()),
            topics=tuple(self._topic(name) for name in names),
        )

    def create_internal_topic(self, name: str) -> None:
        """Create an internal topic with its configured number of partitions, unless it exists."""
        if name not in self.topics:
            is_offsets = name == OFFSETS_TOPIC
            self.create_topic(
                name, self.offsets_partitions if is_offsets else _TRANSACTION_PARTITIONS
            )

    def _topic(self, name: str) -> MetadataResponseTopic:
        leaders = self.topics.get(name)
        if leaders is None:
            return MetadataResponseTopic(
                name=name, partitions=(), error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        return MetadataResponseTopic(
            name=name,
            is_internal=name in _INTERNAL_TOPICS,
            partitions=tuple(
                MetadataResponsePartition(
                    partition_index=partition,
                    leader_id=leadership.leader_id,
                    leader_epoch=leadership.leader_epoch,
                )
                for partition, leadership in enumerate(leaders)
            ),
        )
