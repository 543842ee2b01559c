"""Views of consumer groups for the control surface, as ListGroups and ConsumerGroupDescribe tell.

They only read. A group's epoch stands in place of a generation.
"""

from typing import Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.groups.broker import Broker
from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.server.control.models import GroupSummary, MemberView
from coordinator_sim.trace.epoch_records import CONSUMER

_LISTING: Final = RequestContext(token=-1, api_version=5, client_id="control")
_DESCRIBING: Final = RequestContext(token=-1, api_version=1, client_id="control")
_SESSION: Final = "consumer.session.timeout.ms"

Found = tuple[Broker, DescribedGroup]
"""A group, and the broker that coordinates it."""


def consumer_group_ids(cluster: Cluster) -> list[str]:
    """Every consumer group of the living brokers."""
    if not cluster.settings.profile.has_coordinator_runtime:
        return []
    request = ListGroupsRequest(types_filter=(CONSUMER,))
    return [
        each.group_id
        for broker in cluster.groups.living.values()
        for reply in broker.coordinator.handle(request, _LISTING, cluster.latest.group_ms).replies
        if isinstance(reply.response, ListGroupsResponse)
        for each in reply.response.groups
    ]


def described_consumer_group(cluster: Cluster, group_id: str) -> Found | None:
    """A consumer group; None when no coordinator knows one of that id."""
    topic = cluster.image.topics.get(OFFSETS_TOPIC)
    if topic is None or not cluster.settings.profile.has_coordinator_runtime:
        return None
    broker = cluster.groups.leader_of(partition_for(group_id, len(topic.partitions)))
    if broker is None:
        return None
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,))
    result = broker.coordinator.handle(request, _DESCRIBING, cluster.latest.group_ms)
    for reply in result.replies:
        if isinstance(reply.response, ConsumerGroupDescribeResponse):
            (group,) = reply.response.groups
            return (broker, group) if group.error_code is ErrorCode.NONE else None
    return None


def consumer_summary(cluster: Cluster, found: Found) -> GroupSummary:
    """A consumer group in short."""
    broker, group = found
    partitions = len(cluster.image.topics[OFFSETS_TOPIC].partitions)
    return GroupSummary(
        group_id=group.group_id,
        state=group.group_state,
        generation=group.group_epoch,
        protocol_type=CONSUMER,
        protocol_name=group.assignor_name or None,
        leader_id=None,
        member_count=len(group.members),
        coordinator_id=broker.broker_id,
        offsets_partition=partition_for(group.group_id, partitions),
    )


def consumer_members(cluster: Cluster, found: Found) -> tuple[MemberView, ...]:
    """The members of a consumer group."""
    broker, group = found
    timeout_ms = cluster.configs.group_value(group.group_id, _SESSION)
    ends = {
        timer.key.member_id: timer.deadline_ms
        for timer in broker.coordinator.timers()
        if timer.key.kind is TimerKind.CONSUMER_SESSION and timer.key.group_id == group.group_id
    }
    return tuple(
        _member(each, int(str(timeout_ms)), ends.get(each.member_id)) for each in group.members
    )


def _member(member: Member, timeout_ms: int, ends_ms: int | None) -> MemberView:
    regex = member.subscribed_topic_regex
    return MemberView(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        session_timeout_ms=timeout_ms,
        rebalance_timeout_ms=None,
        is_leader=False,
        subscription=(*sorted(member.subscribed_topic_names), *((regex,) if regex else ())),
        assignment=_owned(member.assignment),
        waits_for=None,
        session_ends_ms=ends_ms,
    )


def _owned(assignment: Assignment) -> tuple[str, ...]:
    owned = sorted(
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
    return tuple(f"{topic}-{partition}" for topic, partition in owned)
