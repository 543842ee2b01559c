"""Views of a served cluster for the control surface; they only read."""

import base64
from collections.abc import Iterator
from typing import Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.groups.group_coordinators import BrokerCoordinator
from coordinator_sim.broker.metadata.image import TOPIC_RESOURCE, TopicState
from coordinator_sim.broker.metadata.topic_operations import INTERNAL_TOPICS
from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.inspection import state_name
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment, subscribed_topics
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopics,
)
from coordinator_sim.runs.ownership import CONNECT
from coordinator_sim.server.control import epoch_views, models
from coordinator_sim.server.timekeeper import Timekeeper
from coordinator_sim.trace.epoch_records import CONSUMER

_INSPECTION: Final = RequestContext(token=-1, api_version=8, client_id="control")
"""Context of a request that no client sent; no slot waits for its answer."""
_PHASES: Final = {"JoinGroup": TimerKind.JOIN, "SyncGroup": TimerKind.SYNC}


# -- topics --------------------------------------------------------------------------------


def topic_views(cluster: Cluster) -> tuple[models.TopicView, ...]:
    """Every topic, in order of creation."""
    return tuple(topic_view(cluster, each) for each in cluster.image.topics.values())


def topic_view(cluster: Cluster, topic: TopicState) -> models.TopicView:
    """One topic."""
    return models.TopicView(
        name=topic.name,
        topic_id=base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
        internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            models.PartitionView(
                partition=index,
                leader_id=state.leader_id,
                leader_epoch=state.leader_epoch,
                replicas=state.replicas,
                isr=state.isr,
                end_offset=end_offset(cluster, topic.name, index),
                append_delay_ms=cluster.operations.slow_appends.delay_of(topic.name, index),
            )
            for index, state in enumerate(topic.partitions)
        ),
        configs=dict(cluster.image.configs_of(TOPIC_RESOURCE, topic.name)),
    )


def end_offset(cluster: Cluster, topic: str, partition: int) -> int | None:
    """End offset of a partition; None for internal topics."""
    if topic in INTERNAL_TOPICS:
        return None
    log = cluster.logs.log_of(topic, partition)
    return None if log is None else log.end_offset


# -- groups --------------------------------------------------------------------------------


def group_summaries(cluster: Cluster) -> tuple[models.GroupSummary, ...]:
    """Every group, sorted by its id."""
    found = [_summary(cluster, broker, group) for broker, group in _groups(cluster)]
    for group_id in epoch_views.epoch_group_ids(cluster):
        described = epoch_views.described_epoch_group(cluster, group_id)
        if described is not None:
            found.append(epoch_views.epoch_summary(cluster, described))
    return tuple(sorted(found, key=lambda each: each.group_id))


def group_count(cluster: Cluster, broker_id: int | None = None) -> int:
    """Number of groups: of one broker's coordinator, or of all."""
    classic = sum(
        len(broker.coordinator.group_ids())
        for broker in cluster.groups.living.values()
        if broker_id in {None, broker.broker_id}
    )
    return classic + len(epoch_views.epoch_group_ids(cluster, broker_id))


def group_view(cluster: Cluster, group_id: str) -> models.GroupView | None:
    """A group with its members and offsets; None when no coordinator knows it."""
    found = _found(cluster, group_id)
    if found is not None:
        return _full(cluster, *found)
    described = epoch_views.described_epoch_group(cluster, group_id)
    return None if described is None else _full_epochs(cluster, described)


def group_summary(cluster: Cluster, group_id: str) -> models.GroupSummary | None:
    """A group in short, at a cost independent of a classic one's members; None if unknown."""
    found = _found(cluster, group_id)
    if found is not None:
        return _summary(cluster, *found)
    described = epoch_views.described_epoch_group(cluster, group_id)
    return None if described is None else epoch_views.epoch_summary(cluster, described)


def _found(cluster: Cluster, group_id: str) -> tuple[BrokerCoordinator, Group] | None:
    for broker in cluster.groups.living.values():
        group = broker.coordinator.group(group_id)
        if group is not None:
            return broker, group
    return None


def _groups(cluster: Cluster) -> Iterator[tuple[BrokerCoordinator, Group]]:
    for broker in cluster.groups.living.values():
        for group_id in broker.coordinator.group_ids():
            group = broker.coordinator.group(group_id)
            if group is not None:
                yield broker, group


def _summary(cluster: Cluster, broker: BrokerCoordinator, group: Group) -> models.GroupSummary:
    return models.GroupSummary(
        group_id=group.group_id,
        state=state_name(group.state, cluster.settings.profile),
        generation=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        member_count=len(group.members),
        coordinator_id=broker.broker_id,
        offsets_partition=group.offsets_partition,
    )


def _full(cluster: Cluster, broker: BrokerCoordinator, group: Group) -> models.GroupView:
    members = tuple(_member(group, each) for each in group.ordered())
    return _with_members(cluster, broker, _summary(cluster, broker, group), members)


def _full_epochs(cluster: Cluster, found: epoch_views.Found) -> models.GroupView:
    members = epoch_views.epoch_members(cluster, found)
    return _with_members(cluster, found.broker, epoch_views.epoch_summary(cluster, found), members)


def _with_members(
    cluster: Cluster,
    broker: BrokerCoordinator,
    summary: models.GroupSummary,
    members: tuple[models.MemberView, ...],
) -> models.GroupView:
    owners = {owned: each.member_id for each in members for owned in each.assignment}
    return models.GroupView(
        **{name: getattr(summary, name) for name in summary.__struct_fields__},
        members=members,
        offsets=tuple(_offsets(cluster, broker, summary.group_id, owners)),
    )


def _member(group: Group, member: Member) -> models.MemberView:
    session = member.session
    return models.MemberView(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        is_leader=member.member_id == group.leader_id,
        subscription=_subscription(group, member),
        assignment=owned_names(group.protocol_type, member.assignment),
        waits_for=_parked_api(member),
        session_ends_ms=session.deadline_ms if session is not None and session.active else None,
    )


def _subscription(group: Group, member: Member) -> tuple[str, ...]:
    if group.protocol_type != CONSUMER or not member.protocols:
        return ()
    return subscribed_topics(member.protocols[0].metadata) or ()


def owned_names(protocol_type: str | None, assignment: bytes) -> tuple[str, ...]:
    """The items of an assignment, sorted; empty if it cannot be read.

    Returns:
        `topic-partition` of a consumer; connectors and `connector-task` of a Connect worker.
    """
    if not assignment:
        return ()
    try:
        if protocol_type == CONSUMER:
            partitions = sorted(decode_assignment(assignment).partitions)
            return tuple(f"{each.topic}-{each.partition}" for each in partitions)
        if protocol_type == CONNECT:
            found = decode_connect_assignment(assignment)
            tasks = (f"{each.connector}-{each.task}" for each in sorted(found.tasks))
            return (*sorted(found.connectors), *tasks)
    except WireFormatError:
        return ()
    return ()


def _offsets(
    cluster: Cluster, broker: BrokerCoordinator, group_id: str, owners: dict[str, str]
) -> Iterator[models.OffsetView]:
    for topic in _fetched(broker, group_id, cluster.latest.group_ms):
        for each in sorted(topic.partitions, key=lambda each: each.partition_index):
            end = end_offset(cluster, topic.name, each.partition_index)
            yield models.OffsetView(
                topic=topic.name,
                partition=each.partition_index,
                offset=each.committed_offset,
                metadata=each.metadata,
                end_offset=end,
                lag=None if end is None else max(0, end - each.committed_offset),
                owner=owners.get(f"{topic.name}-{each.partition_index}"),
            )


def _fetched(
    broker: BrokerCoordinator, group_id: str, now_ms: int
) -> list[OffsetFetchResponseTopics]:
    """The committed offsets by OffsetFetch at the coordinator, sorted."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    result = broker.coordinator.handle(request, _INSPECTION, now_ms)
    topics = [
        topic
        for reply in result.replies
        if isinstance(reply.response, OffsetFetchResponse)
        for group in reply.response.groups
        for topic in group.topics
    ]
    return sorted(topics, key=lambda each: each.name)


# -- time ----------------------------------------------------------------------------------


def parked_views(cluster: Cluster, now_ms: int) -> tuple[models.ParkedView, ...]:
    """Every parked request of a member, with its deadline."""
    found = []
    deadlines = {
        (broker.broker_id, timer.key.group_id, timer.key.kind): timer.deadline_ms
        for broker in cluster.groups.living.values()
        for timer in broker.coordinator.timers()
    }
    for broker, group in _groups(cluster):
        for member in group.ordered():
            api = _parked_api(member)
            if api is None:
                continue
            kind = _PHASES[api]
            deadline_ms = deadlines.get((broker.broker_id, group.group_id, kind))
            found.append(
                models.ParkedView(
                    group_id=group.group_id,
                    member_id=member.member_id,
                    api=api,
                    waits_for=kind.value,
                    deadline_ms=deadline_ms,
                    remaining_ms=None if deadline_ms is None else deadline_ms - now_ms,
                )
            )
    return tuple(found)


def deadline_views(cluster: Cluster, now_ms: int) -> tuple[models.DeadlineView, ...]:
    """The deadlines of all group coordinators, the earliest first."""
    found = [
        models.DeadlineView(
            broker_id=broker.broker_id,
            kind=timer.key.kind.value,
            group_id=timer.key.group_id,
            member_id=timer.key.member_id,
            deadline_ms=timer.deadline_ms,
            in_ms=timer.deadline_ms - now_ms,
        )
        for broker in cluster.groups.living.values()
        for timer in broker.coordinator.timers()
    ]
    return tuple(sorted(found, key=lambda each: each.deadline_ms))


def clock_view(cluster: Cluster, keeper: Timekeeper, now: Instants) -> models.ClockView:
    """Both clocks."""
    advance = keeper.under_way
    return models.ClockView(
        clock=keeper.clock.name,
        group_ms=now.group_ms,
        wall_ms=now.wall_ms,
        next_deadline_ms=cluster.exact_group_deadline_ms(),
        advance=None
        if advance is None
        else models.AdvanceView(
            from_ms=advance.from_ms, target_ms=advance.target_ms, now_ms=now.group_ms
        ),
    )


def _parked_api(member: Member) -> str | None:
    if member.awaiting_join is not None:
        return "JoinGroup"
    return "SyncGroup" if member.awaiting_sync is not None else None
