"""StreamsGroupDescribe: what streams groups are made of, as far as it is committed.

Source: kafka 4.4, StreamsGroup.asDescribedGroup and
StreamsGroupMember.asStreamsGroupDescribeMember.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.inspection import Description
from coordinator_sim.coordinator.runtime import (
    Runtime,
)
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsGroupMember
from coordinator_sim.coordinator.streams.target import ASSIGNOR
from coordinator_sim.coordinator.streams.tasks import (
    NOTHING_WANTED,
    Tasks,
    TaskSet,
    numbers_of,
    sorted_tasks,
)
from coordinator_sim.coordinator.streams.topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
)
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from coordinator_sim.messages.streams_group_records import Subtopology as StoredSubtopology
from coordinator_sim.messages.streams_group_records import TopicInfo as StoredInfo

_NOT_REQUESTED: Final = 0
_NOT_STORED: Final = 1
"""Status of a topology's description: no plugin stores one here (KIP-1331)."""


def _fields(
    _runtime: Runtime, request: StreamsGroupDescribeRequest, group: StreamsGroup, position: int
) -> dict[str, Any]:
    asks = request.include_topology_description
    return {
        "assignor_name": ASSIGNOR,
        "topology": _topology(group, position),
        "topology_description_status": _NOT_STORED if asks else _NOT_REQUESTED,
        "members": tuple(
            _member(group, member, group.targets.get(member.member_id, position))
            for _, member in group.members.items(position)
        ),
    }


def _topology(group: StreamsGroup, position: int) -> Topology | None:
    configured = group.configured(position)
    if configured is not None and configured.is_ready:
        return _configured(configured)
    topology = group.epochs_as_of(position).topology
    if topology is None:
        return None
    parts = topology.subtopologies
    order = sorted(parts, key=java_string_key)
    return Topology(topology.epoch, tuple(_stored(parts[name]) for name in order))


def _configured(configured: ConfiguredTopology) -> Topology:
    parts = configured.subtopologies or {}
    return Topology(configured.epoch, tuple(_part(name, each) for name, each in parts.items()))


def _part(name: str, part: ConfiguredSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=name,
        source_topics=_ascending(part.source_topics),
        repartition_sink_topics=_ascending(part.repartition_sink_topics),
        state_changelog_topics=_by_name(_internal(part.state_changelog_topics)),
        repartition_source_topics=_by_name(_internal(part.repartition_source_topics)),
    )


def _stored(part: StoredSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=part.subtopology_id,
        source_topics=_ascending(part.source_topics),
        repartition_sink_topics=_ascending(part.repartition_sink_topics),
        state_changelog_topics=_by_name(_infos(part.state_changelog_topics)),
        repartition_source_topics=_by_name(_infos(part.repartition_source_topics)),
    )


def _ascending(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=java_string_key))


def _by_name(infos: list[TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(sorted(infos, key=lambda info: java_string_key(info.name)))


def _internal(topics: Mapping[str, InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            topic.name,
            topic.partition_count,
            topic.replication_factor,
            tuple(KeyValue(key, value) for key, value in topic.configs),
        )
        for topic in topics.values()
    ]


def _infos(infos: Iterable[StoredInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            info.name,
            info.partitions,
            info.replication_factor,
            tuple(KeyValue(each.key, each.value) for each in info.topic_configs),
        )
        for info in infos
    ]


def _member(group: StreamsGroup, member: StreamsGroupMember, target: Tasks | None) -> Member:
    wanted = NOTHING_WANTED if target is None else target
    held, endpoint = member.assigned, member.user_endpoint
    offsets = group.offsets_of(member.member_id)
    tags = member.client_tags
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id or "",
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(KeyValue(key, tags[key]) for key in java_hash_order(tags)),
        task_offsets=_offsets(offsets.offsets),
        task_end_offsets=_offsets(offsets.end_offsets),
        assignment=Assignment(
            _listed(numbers_of(held.active)), _listed(held.standby), _listed(held.warmup)
        ),
        target_assignment=Assignment(
            _listed(wanted.active), _listed(wanted.standby), _listed(wanted.warmup)
        ),
    )


def _listed(tasks: TaskSet) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(each.subtopology_id, each.partitions) for each in sorted_tasks(tasks))


def _offsets(offsets: Mapping[str, Mapping[int, int]]) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(name, number, offsets[name][number])
        for name in sorted(offsets, key=java_string_key)
        for number in sorted(offsets[name])
    )


def topology_topics(subtopologies: Iterable[Any]) -> Iterator[str]:
    """Topics that subtopologies of a heartbeat or a description name, as often as they do."""
    for part in subtopologies:
        yield from part.source_topics
        yield from part.repartition_sink_topics
        yield from (each.name for each in part.repartition_source_topics)
        yield from (each.name for each in part.state_changelog_topics)


def _topics(group: DescribedGroup) -> Iterator[str]:
    if group.topology is not None:
        yield from topology_topics(group.topology.subtopologies or ())


STREAMS_GROUPS: Final = Description(
    GroupProtocol.STREAMS,
    StreamsGroupDescribeResponse,
    DescribedGroup,
    StreamsGroup,
    _fields,
    _topics,
    hidden_topics="The described group uses topics that the client is not authorized to describe.",
)
