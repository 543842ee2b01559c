"""Views of groups with epochs for the control surface, as ListGroups and the describing APIs tell.

These are consumer, share and streams groups. They only read. A group's epoch stands in place of a
generation; a member of a streams group has its active tasks as its assignment.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.groups.group_coordinators import BrokerCoordinator
from coordinator_sim.clock.timer_queue import Timer, TimerKind
from coordinator_sim.coordinator.epoch_members import MemberTimeout
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.resources import StreamsTaskId
from coordinator_sim.messages import consumer_group_describe as consumer
from coordinator_sim.messages import share_group_describe as share
from coordinator_sim.messages import streams_group_describe as streams
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.server.control.models import GroupSummary, MemberView
from coordinator_sim.trace.epoch_records import CONSUMER, GROUP_TYPES, SHARE, STREAMS

_Asking = (
    consumer.ConsumerGroupDescribeRequest
    | share.ShareGroupDescribeRequest
    | streams.StreamsGroupDescribeRequest
)
_LISTING: Final = RequestContext(token=-1, api_version=5, client_id="control")
_DESCRIBING: Final = RequestContext(token=-1, api_version=1, client_id="control")
_SESSIONS: Final = {
    CONSUMER: "consumer.session.timeout.ms",
    SHARE: "share.session.timeout.ms",
    STREAMS: "streams.session.timeout.ms",
}
_ASKING: Final[dict[str, type[_Asking]]] = {
    CONSUMER: consumer.ConsumerGroupDescribeRequest,
    SHARE: share.ShareGroupDescribeRequest,
    STREAMS: streams.StreamsGroupDescribeRequest,
}
_STICKY: Final = "sticky"
"""The assignor of streams groups, which releases before 4.4 do not name."""

_Described = consumer.DescribedGroup | share.DescribedGroup | streams.DescribedGroup
_Member = consumer.Member | share.Member | streams.Member


class Found(Struct, frozen=True):
    """A group, its type, and the broker that coordinates it."""

    broker: BrokerCoordinator
    group_type: str
    group: _Described


def epoch_group_ids(cluster: Cluster, broker_id: int | None = None) -> list[str]:
    """Every group with epochs of one living broker, or of all."""
    if not cluster.settings.profile.has_coordinator_runtime:
        return []
    request = ListGroupsRequest(types_filter=GROUP_TYPES)
    return [
        each.group_id
        for broker in cluster.groups.living.values()
        if broker_id in {None, broker.broker_id}
        for reply in broker.coordinator.handle(request, _LISTING, cluster.latest.group_ms).replies
        if isinstance(reply.response, ListGroupsResponse)
        for each in reply.response.groups
    ]


def described_epoch_group(cluster: Cluster, group_id: str) -> Found | None:
    """A group with epochs; None when no coordinator knows one of that id."""
    topic = cluster.image.topics.get(OFFSETS_TOPIC)
    if topic is None or not cluster.settings.profile.has_coordinator_runtime:
        return None
    broker = cluster.groups.leader_of(partition_for(group_id, len(topic.partitions)))
    if broker is None:
        return None
    for group_type, asking in _ASKING.items():
        request = asking(group_ids=(group_id,))
        result = broker.coordinator.handle(request, _DESCRIBING, cluster.latest.group_ms)
        for reply in result.replies:
            if isinstance(reply.response, _ANSWERS):
                (group,) = reply.response.groups
                if group.error_code is ErrorCode.NONE:
                    return Found(broker, group_type, group)
    return None


_ANSWERS: Final = (
    consumer.ConsumerGroupDescribeResponse,
    share.ShareGroupDescribeResponse,
    streams.StreamsGroupDescribeResponse,
)


def epoch_summary(cluster: Cluster, found: Found) -> GroupSummary:
    """A group with epochs in short."""
    group = found.group
    partitions = len(cluster.image.topics[OFFSETS_TOPIC].partitions)
    default = _STICKY if found.group_type == STREAMS else None
    return GroupSummary(
        group_id=group.group_id,
        state=group.group_state,
        generation=group.group_epoch,
        protocol_type=found.group_type,
        protocol_name=group.assignor_name or default,
        leader_id=None,
        member_count=len(group.members),
        coordinator_id=found.broker.broker_id,
        offsets_partition=partition_for(group.group_id, partitions),
    )


def epoch_members(cluster: Cluster, found: Found) -> tuple[MemberView, ...]:
    """The members of a group with epochs; a classic one has the session timeout that it brought."""
    group = found.group
    setting = cluster.configs.group_value(group.group_id, _SESSIONS[found.group_type])
    timeout_ms = int(str(setting))
    sessions = {
        timer.key.member_id: timer
        for timer in found.broker.coordinator.timers()
        if timer.key.kind is TimerKind.CONSUMER_SESSION and timer.key.group_id == group.group_id
    }
    members: tuple[_Member, ...] = group.members
    return tuple(_member(each, timeout_ms, sessions.get(each.member_id)) for each in members)


def _member(member: _Member, timeout_ms: int, session: Timer | None) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        group_instance_id=None if isinstance(member, share.Member) else member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        session_timeout_ms=_brought(session) or timeout_ms,
        rebalance_timeout_ms=None,
        is_leader=False,
        subscription=_subscription(member),
        assignment=_owned(member),
        waits_for=None,
        session_ends_ms=None if session is None else session.deadline_ms,
    )


def _brought(session: Timer | None) -> int | None:
    """The session timeout of a classic member, which descriptions omit; None for others."""
    if session is None or not isinstance(session.data, MemberTimeout):
        return None
    group = session.data.partition.consumer_group(session.data.group_id)
    member = None if group is None else group.members.get(session.data.member_id)
    return None if member is None or member.classic is None else member.classic.session_timeout_ms


def _subscription(member: _Member) -> tuple[str, ...]:
    """Topics, and an expression; a member of a streams group has neither."""
    if isinstance(member, streams.Member):
        return ()
    topics = sorted(member.subscribed_topic_names)
    regex = member.subscribed_topic_regex if isinstance(member, consumer.Member) else None
    return (*topics, *((regex,) if regex else ()))


def _owned(member: _Member) -> tuple[str, ...]:
    if isinstance(member, streams.Member):
        tasks = sorted(
            StreamsTaskId(each.subtopology_id, number)
            for each in member.assignment.active_tasks
            for number in each.partitions
        )
        return tuple(f"{each.subtopology}_{each.task}" for each in tasks)
    owned = sorted(
        (topic.topic_name, partition)
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    )
    return tuple(f"{topic}-{partition}" for topic, partition in owned)
