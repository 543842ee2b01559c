"""ShareGroupHeartbeat: a member joins, says what it subscribes to, and is told what it has.

A member leaves by a heartbeat, too, or when its session ends.

Source: kafka 4.4, GroupMetadataManager.shareGroupHeartbeat, shareGroupLeave,
shareGroupFenceMember and what they call; GroupCoordinatorService
.throwIfShareGroupHeartbeatRequestIsInvalid.
"""

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import ShareMember as MemberSpec
from coordinator_sim.assignors.share_contract import ShareTopics, Target
from coordinator_sim.coordinator import epoch_refusals
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, UNKNOWN_TIME
from coordinator_sim.coordinator.epoch_members import cancel_member_timers, member_of, start_session
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.modern.consumer.heartbeat import empty_field
from coordinator_sim.coordinator.modern.group import CountedTopics, MemberState, is_homogeneous
from coordinator_sim.coordinator.modern.share.group import (
    NO_TARGET,
    ShareGroup,
    ShareGroupMember,
    ShareState,
    is_same,
    is_same_member,
    set_order,
    without_topics,
)
from coordinator_sim.coordinator.modern.share.initializing import (
    AskToInitialize,
    initialize_call,
    initializing_record,
    topics_to_initialize,
)
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.trace.epoch_records import SHARE


def leave_share_group(
    runtime: Runtime, partition: Partition, request: ShareGroupHeartbeatRequest
) -> Effect | Refusal:
    """A heartbeat that leaves."""
    group_id = request.group_id
    group = group_of_type(ShareGroup, group_id, partition.groups.get(group_id))
    if isinstance(group, Refusal):
        return group
    member = member_of(group, request.member_id, None)
    if isinstance(member, Refusal):
        return member
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return replace(fence_share_member(runtime, partition, group, member), response=response)


def fence_share_member(
    runtime: Runtime, _partition: Partition, group: ShareGroup, member: ShareGroupMember
) -> Effect:
    """The records that remove a member; its session is cancelled at once."""
    group_id = group.group_id
    topics = CountedTopics(group.topic_counts.entries)
    topics.replace(member, None)
    epoch = group.epochs.group_epoch + 1
    metadata_hash = runtime.topics.hash_of_all(topics.counts)
    records = [
        *group.member_tombstones(member.member_id),
        group.group_record(epoch, metadata_hash),
    ]
    if len(group.members) == 1 and runtime.profile.consumer_empty_group_is_assigned:
        records.append(group.target_epoch_record(epoch, UNKNOWN_TIME))
    cancel_member_timers(runtime, group_id, member.member_id)
    return Effect(records=tuple(records))


def invalid_share_heartbeat(request: ShareGroupHeartbeatRequest) -> Refusal | None:
    """Return the first fault that a heartbeat shows without its group; None if valid."""
    empty = empty_field(
        MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            return _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


class _SubscribedTopics(Struct, frozen=True):
    """What a heartbeat found of its group's topics.

    Args:
        epoch: Of the group, perhaps a new one.
        has_bumped: Whether it is new.
        names: What is subscribed to.
        is_homogeneous: Whether all members subscribe to the same topics.
    """

    epoch: int
    has_bumped: bool
    names: tuple[str, ...]
    is_homogeneous: bool


def handle_share_heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ShareGroupHeartbeatRequest,
    parked: Parked,
) -> Effect | None:
    """Take a heartbeat whose form is right; a refusal is answered at once."""
    if request.member_epoch == LEAVE_EPOCH:
        outcome = leave_share_group(runtime, partition, request)
    else:
        outcome = _heartbeat(runtime, partition, request, parked.context)
    if isinstance(outcome, epoch_refusals.Refusal):
        runtime.answer(parked, epoch_refusals.refused(ShareGroupHeartbeatResponse, outcome))
        return None
    return outcome


def _heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ShareGroupHeartbeatRequest,
    context: RequestContext,
) -> Effect | epoch_refusals.Refusal:
    group = _group_of(runtime, partition, request)
    if isinstance(group, epoch_refusals.Refusal):
        return group
    before = _member_of(runtime, partition, group, request)
    if isinstance(before, epoch_refusals.Refusal):
        return before
    records: list[LogRecord] = []
    updated = _updated(before, request, context)
    if not is_same_member(before, updated):
        records.append(group.member_record(updated))
    seen = _compare_topics(runtime, partition, group, (before, updated), records)
    target = _target(runtime, partition, group, updated, seen, records)
    after = _reconciled(runtime, updated, target, is_new=seen.has_bumped)
    if not is_same_member(after, updated):
        records.append(group.assignment_record(after))
    start_session(runtime, partition, group, after.member_id)
    follow = None
    wanted = topics_to_initialize(runtime, partition, group.group_id, seen.names)
    if wanted:
        records.append(initializing_record(runtime, partition, group.group_id, wanted))
        call = initialize_call(runtime, partition, group.group_id, seen.epoch, wanted)
        follow = AskToInitialize(runtime, partition, call)
    response = _answer(runtime, request, before, after)
    return Effect(records=tuple(records), response=response, follow=follow)


def _group_of(
    runtime: Runtime, partition: Partition, request: ShareGroupHeartbeatRequest
) -> ShareGroup | epoch_refusals.Refusal:
    """The group of a heartbeat; a new one, not in the partition's table yet, for one that joins.

    Source: getOrMaybeCreateShareGroup.
    """
    group_id = request.group_id
    known = partition.groups.get(group_id)
    if isinstance(known, ShareGroup):
        return known
    if known is not None:
        return epoch_refusals.other_type(SHARE, group_id)
    if request.member_epoch != JOIN_EPOCH:
        return epoch_refusals.unknown_group(SHARE, group_id)
    return ShareGroup(Timeline(), group_id, runtime.profile)


def _member_of(
    runtime: Runtime,
    partition: Partition,
    group: ShareGroup,
    request: ShareGroupHeartbeatRequest,
) -> ShareGroupMember | epoch_refusals.Refusal:
    """The member of a heartbeat, its epoch checked.

    QUIRK: a member that joins is put into the group before its records say so.

    Source: throwIfShareGroupIsFull, getOrMaybeSubscribeShareGroupMember and
    throwIfShareGroupMemberEpochIsInvalid.
    """
    member_id, received = request.member_id, request.member_epoch
    limit = runtime.config.group_share_max_size
    member = group.members.get(member_id)
    if member is None and len(group.members) >= limit:
        return epoch_refusals.group_is_full(SHARE, limit)
    if received == JOIN_EPOCH:
        if member is None and group.group_id in partition.groups:
            partition.expect_append()
        return group.joined(member_id)
    if member is None:
        return epoch_refusals.unknown_member(group.group_id, member_id)
    known, previous = member.member_epoch, member.previous_member_epoch
    if received > known:
        return epoch_refusals.fenced_epoch(SHARE, received, known)
    if received < known and received != previous:
        return epoch_refusals.fenced_epoch(SHARE, received, known, previous=previous)
    return member


def _updated(
    member: ShareGroupMember, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupMember:
    """The member updated by a heartbeat; fields that are null in the request stay unchanged."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names if names is None else set_order(names),
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _compare_topics(
    runtime: Runtime,
    partition: Partition,
    group: ShareGroup,
    change: tuple[ShareGroupMember, ShareGroupMember],
    records: list[LogRecord],
) -> _SubscribedTopics:
    """Write another epoch if topics, subscriptions or what may be assigned have changed."""
    before, updated = change
    epochs = group.epochs
    epoch = epochs.group_epoch
    bumps = set(before.subscribed_topic_names) != set(updated.subscribed_topic_names)
    is_assigned = epochs.assignment_epoch >= epoch
    if not bumps and (is_assigned or not runtime.profile.share_pending_target_is_awaited):
        bumps = _has_unassigned(partition, group)
    counts = group.topic_counts.entries
    if not bumps and not group.has_metadata_expired(runtime.topics, counts, runtime.wall_ms):
        names = tuple(group.topic_counts.keys())
        return _SubscribedTopics(epoch, False, names, epochs.is_homogeneous)  # noqa: FBT003 - a struct
    topics = CountedTopics(group.topic_counts.entries)
    topics.replace(before, updated)
    metadata_hash = runtime.topics.hash_of_all(topics.counts)
    bumps = bumps or metadata_hash != epochs.metadata_hash
    if bumps:
        epoch += 1
        records.append(group.group_record(epoch, metadata_hash))
    group.set_metadata_refresh(runtime.topics, epoch, runtime.wall_ms)
    alike = is_homogeneous({}, topics.counts, len(group.members))
    return _SubscribedTopics(epoch, bumps, tuple(topics.counts), alike)


def _target(
    runtime: Runtime,
    partition: Partition,
    group: ShareGroup,
    updated: ShareGroupMember,
    subscribed: _SubscribedTopics,
    records: list[LogRecord],
) -> tuple[int, Target]:
    """The epoch and the target that a member goes to: the last one, or one computed now.

    Args:
        runtime: Its clock and topics.
        partition: Of the group.
        group: As it is; the member is in it.
        updated: The member with what the heartbeat says of it.
        subscribed: The group's topics.
        records: Gets those of a new target.

    Source: GroupMetadataManager.maybeUpdateTargetAssignment; modern/TargetAssignmentBuilder.java.
    """
    epoch, epochs = subscribed.epoch, group.epochs
    if epochs.assignment_epoch >= epoch:
        return epochs.assignment_epoch, group.target_of(updated)
    interval_ms = runtime.config_of(group.group_id).group_share_assignment_interval_ms
    has_interval = runtime.profile.consumer_assignment_interval
    if has_interval and not group.is_target_due(runtime.wall_ms, interval_ms):
        return epochs.assignment_epoch, group.target_of(updated)
    members, _ = group.with_member(updated)
    by_name = runtime.topics.by_name
    specs = [
        MemberSpec(
            member_id=member_id,
            has_topics=bool(member.subscribed_topic_names),
            subscribed=tuple(
                by_name[name].topic_id for name in member.subscribed_topic_names if name in by_name
            ),
            assigned=group.target_of(member),
        )
        for member_id, member in members.items()
    ]
    state = partition.share_states.get(group.group_id) or ShareState()
    topics = ShareTopics(
        {topic.topic_id: topic.partition_count for topic in by_name.values()},
        {topic_id: topic.partitions for topic_id, topic in state.initialized.items()},
    )
    found = runtime.assignors.share(specs, topics, is_homogeneous=subscribed.is_homogeneous)
    targets = {name: found.get(name, NO_TARGET) for name in java_hash_order(members)}
    now_ms = runtime.wall_ms if has_interval else 0
    before = {
        name: targets[name] if name in targets and is_same(targets[name], target) else target
        for name, target in group.targets.entries.items()
    }
    records += group.target_records(targets, before, epoch, now_ms)
    return epoch, targets[updated.member_id]


def _has_unassigned(partition: Partition, group: ShareGroup) -> bool:
    """Whether partitions that may be assigned are in nobody's target, or more are than may be.

    Source: initializedAssignmentPending.
    """
    state = partition.share_states.get(group.group_id)
    if group.is_empty or state is None or not state.initialized:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.entries.values():
        for topic_id, partitions in target:
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        group.is_subscribed_to(topic.name)
        and (topic_id not in assigned or assigned[topic_id] != set(topic.partitions))
        for topic_id, topic in state.initialized.items()
    )


def _reconciled(
    runtime: Runtime, member: ShareGroupMember, target: tuple[int, Target], *, is_new: bool
) -> ShareGroupMember:
    """The member with its target, of which it gets the topics that it subscribes to.

    Source: GroupMetadataManager.maybeReconcile and ShareGroupAssignmentBuilder.
    """
    epoch, partitions = target
    if not is_new and member.is_reconciled_to(epoch):
        return member
    is_moved = epoch != member.member_epoch
    if not is_moved and not is_new:
        return member
    by_id = runtime.topics.by_id
    foreign = {
        topic_id
        for topic_id, _ in partitions
        if topic_id not in by_id or by_id[topic_id].name not in member.subscribed_topic_names
    }
    assigned = without_topics(partitions, foreign)
    if not is_moved:
        return replace(member, assigned=assigned)
    return replace(
        member,
        state=MemberState.STABLE,
        assigned=assigned,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
    )


def _answer(
    runtime: Runtime,
    request: ShareGroupHeartbeatRequest,
    before: ShareGroupMember,
    after: ShareGroupMember,
) -> ShareGroupHeartbeatResponse:
    """The answer: what the member has is told when it may not know it."""
    is_told = (
        request.member_epoch == JOIN_EPOCH
        or request.subscribed_topic_names is not None
        or not is_same(before.assigned, after.assigned)
    )
    return ShareGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=runtime.config_of(request.group_id).group_share_heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if is_told else None,
    )


def _assignment(assigned: Target) -> Assignment:
    return Assignment(
        tuple(TopicPartitions(topic_id, partitions) for topic_id, partitions in assigned)
    )
