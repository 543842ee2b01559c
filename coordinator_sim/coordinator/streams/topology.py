"""The topology that a streams group runs, as its record has it, and as it is with the topics.

Source: kafka 4.4, group-coordinator/.../streams/StreamsTopology.java,
topics/ConfiguredTopology.java, ConfiguredSubtopology.java and ConfiguredInternalTopic.java.
"""

from collections.abc import Iterable

from msgspec import Struct

from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages import streams_group_heartbeat as told
from coordinator_sim.messages.streams_group_records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)


class Topology(Struct, frozen=True):
    """A topology.

    Args:
        epoch: Its epoch.
        subtopologies: By id, in the order of Kafka's map.
    """

    epoch: int
    subtopologies: dict[str, Subtopology]

    def is_same_as(self, other: "Topology") -> bool:
        """Whether both topologies have one epoch and equal subtopologies; order is ignored."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    def source_topics(self) -> dict[str, Subtopology]:
        """The subtopology that reads each topic; the last one where several do."""
        found: dict[str, Subtopology] = {}
        for each in self.subtopologies.values():
            for topic in each.source_topics:
                found[topic] = each
            for info in each.repartition_source_topics:
                found[info.name] = each
        return found

    def required_topics(self) -> list[str]:
        """Every topic that must exist, in the order of Kafka's set."""
        names = [
            name
            for each in self.subtopologies.values()
            for name in (
                *each.source_topics,
                *(info.name for info in each.repartition_source_topics),
                *(info.name for info in each.state_changelog_topics),
            )
        ]
        return java_hash_order(names)


def distinct(names: Iterable[str], what: str) -> list[str]:
    """The names in the order of a map made of them.

    Raises:
        OperationAborted: a name is there twice, which no such map takes.

    Source: java.util.stream.Collectors.toMap.
    """
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise OperationAborted(f"{what} twice among {', '.join(listed)}")
    return java_hash_order(listed)


def topology_from(value: StreamsGroupTopologyValue) -> Topology:
    """The topology of a record.

    Raises:
        OperationAborted: a subtopology's id is there twice, or the epoch is negative.

    Source: StreamsTopology.fromRecord.
    """
    by_id = {each.subtopology_id: each for each in value.subtopologies}
    order = distinct((each.subtopology_id for each in value.subtopologies), "a subtopology")
    if value.epoch < 0:
        raise OperationAborted(f"topology epoch {value.epoch} is negative")
    return Topology(value.epoch, {name: by_id[name] for name in order})


def topology_value(topology: told.Topology) -> StreamsGroupTopologyValue:
    """A topology of a heartbeat as its record has it.

    Source: StreamsCoordinatorRecordHelpers.convertToStreamsGroupTopologyRecord.
    """
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=tuple(
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                state_changelog_topics=_infos(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=_infos(each.repartition_source_topics),
                copartition_groups=tuple(
                    CopartitionGroup(
                        group.source_topics,
                        group.source_topic_regex,
                        group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in topology.subtopologies
        ),
    )


def _infos(infos: tuple[told.TopicInfo, ...]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            info.name,
            info.partitions,
            info.replication_factor,
            tuple(TopicConfig(config.key, config.value) for config in info.topic_configs),
        )
        for info in infos
    )


class ConfiguredSubtopology(Struct, frozen=True):
    """A subtopology whose numbers of partitions are decided.

    Args:
        task_count: As many as its largest source has partitions.
        source_topics: Topics that it reads.
        repartition_source_topics: Repartition topics that it reads, by name.
        repartition_sink_topics: Repartition topics that it writes.
        state_changelog_topics: Topics of its state, by name; none for one without state.
    """

    task_count: int
    source_topics: tuple[str, ...]
    repartition_source_topics: dict[str, InternalTopic]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: dict[str, InternalTopic]


class TopicTrouble(Struct, frozen=True):
    """Why a topology cannot run with the topics that there are."""

    code: StreamsStatus
    text: str


class ConfiguredTopology(Struct, frozen=True):
    """A topology together with the topics of the cluster.

    Args:
        epoch: Of the topology.
        subtopologies: By id, ascending; None where their topics contradict each other.
        missing_topics: Internal topics that are to be created, in the order of Kafka's map.
        trouble: Why it cannot run; None if it can.
    """

    epoch: int
    subtopologies: dict[str, ConfiguredSubtopology] | None
    missing_topics: tuple[InternalTopic, ...] = ()
    trouble: TopicTrouble | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned."""
        return self.trouble is None
