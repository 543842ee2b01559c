"""Views of consumer and share groups for the control surface, as their descriptions tell.

They only read. A group's epoch stands in place of a generation.
"""

from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.groups.broker import Broker
from coordinator_sim.clock.timer_queue import Timer, TimerKind
from coordinator_sim.coordinator.consumer.timers import MemberTimeout
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.messages import consumer_group_describe as consumer
from coordinator_sim.messages import share_group_describe as share
from coordinator_sim.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.share_group_describe import ShareGroupDescribeRequest
from coordinator_sim.runs.ownership import CONSUMER
from coordinator_sim.server.control.models import GroupSummary, MemberView

_LISTING: Final = RequestContext(token=-1, api_version=5, client_id="control")
_DESCRIBING: Final = RequestContext(token=-1, api_version=1, client_id="control")
_SHARE: Final = "share"
_Question = type[ConsumerGroupDescribeRequest] | type[ShareGroupDescribeRequest]
_QUESTIONS: Final[dict[str, _Question]] = {
    CONSUMER: ConsumerGroupDescribeRequest,
    _SHARE: ShareGroupDescribeRequest,
}
"""The request that describes groups of a protocol."""


class DescribedGroup(Struct, frozen=True):
    """A group, its protocol, and the broker that coordinates it."""

    broker: Broker
    protocol: str
    group: consumer.DescribedGroup | share.DescribedGroup


def described_group_ids(cluster: Cluster) -> list[str]:
    """Every group of these protocols of the living brokers."""
    if not cluster.settings.profile.has_coordinator_runtime:
        return []
    request = ListGroupsRequest(types_filter=tuple(_QUESTIONS))
    return [
        each.group_id
        for broker in cluster.groups.living.values()
        for reply in broker.coordinator.handle(request, _LISTING, cluster.latest.group_ms).replies
        if isinstance(reply.response, ListGroupsResponse)
        for each in reply.response.groups
    ]


def described_group(cluster: Cluster, group_id: str) -> DescribedGroup | None:
    """A group of these protocols; None when no coordinator knows one of that id."""
    topic = cluster.image.topics.get(OFFSETS_TOPIC)
    if topic is None or not cluster.settings.profile.has_coordinator_runtime:
        return None
    broker = cluster.groups.leader_of(partition_for(group_id, len(topic.partitions)))
    if broker is None:
        return None
    for protocol, question in _QUESTIONS.items():
        request = question(group_ids=(group_id,))
        result = broker.coordinator.handle(request, _DESCRIBING, cluster.latest.group_ms)
        for reply in result.replies:
            response: Any = reply.response
            (group,) = response.groups
            if group.error_code is ErrorCode.NONE:
                return DescribedGroup(broker, protocol, group)
    return None


def described_summary(cluster: Cluster, found: DescribedGroup) -> GroupSummary:
    """A group in short."""
    group = found.group
    partitions = len(cluster.image.topics[OFFSETS_TOPIC].partitions)
    return GroupSummary(
        group_id=group.group_id,
        state=group.group_state,
        generation=group.group_epoch,
        protocol_type=found.protocol,
        protocol_name=group.assignor_name or None,
        leader_id=None,
        member_count=len(group.members),
        coordinator_id=found.broker.broker_id,
        offsets_partition=partition_for(group.group_id, partitions),
    )


def described_members(cluster: Cluster, found: DescribedGroup) -> tuple[MemberView, ...]:
    """The members of a group; a classic one has the session timeout that it brought."""
    group = found.group
    setting = f"{found.protocol}.session.timeout.ms"
    timeout_ms = int(str(cluster.configs.group_value(group.group_id, setting)))
    sessions = {
        timer.key.member_id: timer
        for timer in found.broker.coordinator.timers()
        if timer.key.kind is TimerKind.CONSUMER_SESSION and timer.key.group_id == group.group_id
    }
    return tuple(_member(each, timeout_ms, sessions.get(each.member_id)) for each in group.members)


def _member(
    member: consumer.Member | share.Member, timeout_ms: int, session: Timer | None
) -> MemberView:
    regex = member.subscribed_topic_regex if isinstance(member, consumer.Member) else None
    instance_id = member.instance_id if isinstance(member, consumer.Member) else None
    return MemberView(
        member_id=member.member_id,
        group_instance_id=instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        session_timeout_ms=_brought(session) or timeout_ms,
        rebalance_timeout_ms=None,
        is_leader=False,
        subscription=(*sorted(member.subscribed_topic_names), *((regex,) if regex else ())),
        assignment=_owned(member.assignment),
        waits_for=None,
        session_ends_ms=None if session is None else session.deadline_ms,
    )


def _brought(session: Timer | None) -> int | None:
    """The session timeout of a classic member, which no description tells; None of others."""
    if session is None or not isinstance(session.data, MemberTimeout):
        return None
    group = session.data.partition.consumer_group(session.data.group_id)
    member = None if group is None else group.members.get(session.data.member_id)
    return None if member is None or member.classic is None else member.classic.session_timeout_ms


def _owned(assignment: consumer.Assignment | share.Assignment) -> tuple[str, ...]:
    owned = sorted(
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
    return tuple(f"{topic}-{partition}" for topic, partition in owned)
