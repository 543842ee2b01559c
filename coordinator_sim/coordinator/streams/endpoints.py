"""Which topic partitions are asked for where: what members tell each other for interactive queries.

Source: kafka 4.4, group-coordinator/.../streams/topics/EndpointToPartitionsManager.java and
StreamsGroup.buildEndpointToPartitions.
"""

from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsMember
from coordinator_sim.coordinator.streams.tasks import TaskSet, numbers_of, united
from coordinator_sim.coordinator.streams.topology import ConfiguredSubtopology
from coordinator_sim.errors import OperationAborted
from coordinator_sim.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    StreamsGroupHeartbeatResponseEndpoint,
    TopicPartition,
)


def told_endpoints(
    runtime: Runtime, group: StreamsGroup, updated: StreamsMember, replaced_id: str | None
) -> tuple[EndpointToPartitions, ...]:
    """The endpoints of all members that have one; the one whose heartbeat it is comes last.

    Raises:
        OperationAborted: a topic is gone, or the topology could not be configured.
    """
    skipped = (updated.member_id, replaced_id)
    members = [member for name, member in group.members.items() if name not in skipped]
    told = []
    for member in (*members, updated):
        if member.user_endpoint is None:
            continue
        known = group.endpoints.get(member.member_id)
        if known is None:
            known = group.endpoints[member.member_id] = _endpoint(runtime, group, member)
        told.append(known)
    return tuple(told)


def _endpoint(runtime: Runtime, group: StreamsGroup, member: StreamsMember) -> EndpointToPartitions:
    configured = group.configured()
    parts = None if configured is None else configured.subtopologies
    endpoint = member.user_endpoint
    if parts is None or endpoint is None:
        raise OperationAborted(f"group {group.group_id}: no configured topology to ask")
    held = member.assigned
    copies = held.standby
    if runtime.profile.streams_tells_exact_partitions:
        copies = united(held.standby, held.warmup)
    return EndpointToPartitions(
        user_endpoint=StreamsGroupHeartbeatResponseEndpoint(endpoint.host, endpoint.port),
        active_partitions=_partitions(runtime, numbers_of(held.active), parts),
        standby_partitions=_partitions(runtime, copies, parts),
    )


def _partitions(
    runtime: Runtime, tasks: TaskSet, parts: dict[str, ConfiguredSubtopology]
) -> tuple[TopicPartition, ...]:
    """The source partitions of tasks.

    QUIRK: up to 4.3 a topic with fewer partitions than there are tasks is told with as many
    numbers as it has, whichever they are.

    Source: topicPartitionListForTask.
    """
    told = []
    for name, numbers in tasks.items():
        part = parts.get(name)
        if part is None:
            raise OperationAborted(f"subtopology {name} is not configured")
        for topic in dict.fromkeys((*part.source_topics, *part.repartition_source_topics)):
            known = runtime.topics.by_name.get(topic)
            if known is None:
                raise OperationAborted(f"topic {topic} is gone")
            count, ordered = known.partition_count, sorted(numbers)
            if runtime.profile.streams_tells_exact_partitions:
                partitions = [number for number in ordered if number < count]
                if not partitions:
                    continue
            else:
                partitions = ordered[:count]
            told.append(TopicPartition(topic, tuple(partitions)))
    return tuple(told)
