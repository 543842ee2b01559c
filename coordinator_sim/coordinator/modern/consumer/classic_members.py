"""Classic members of a consumer group: JoinGroup, SyncGroup and Heartbeat.

Such a member joins alone, without waiting for others: the answer to its JoinGroup is its next step
towards the target, and SyncGroup gives it what it has then. It is told to join again when there is
more to do. LeaveGroup is in `leaving`.

Source: kafka 4.4, GroupMetadataManager.classicGroupJoinToConsumerGroup,
classicGroupSyncToConsumerGroup, classicGroupHeartbeatToConsumerGroup.
"""

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.classic.join_phase import Join, refuse_join
from coordinator_sim.coordinator.effects import NO_EFFECT, Effect, Parked
from coordinator_sim.coordinator.epoch_members import (
    Found,
    cancel_member_timers,
    start_classic_session,
    start_joining,
    start_syncing,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    fenced_instance,
    unknown_instance,
    unknown_member,
)
from coordinator_sim.coordinator.epoch_tracing import trace_id_assigned
from coordinator_sim.coordinator.modern.consumer import embedded, heartbeat
from coordinator_sim.coordinator.modern.consumer.downgrade import downgrade_by, downgrades_by
from coordinator_sim.coordinator.modern.consumer.group import (
    UNOWNED,
    ConsumerGroup,
    ConsumerGroupMember,
    Owned,
)
from coordinator_sim.coordinator.modern.consumer.heartbeat import (
    found_classic_member,
    full_group,
    new_member_id,
)
from coordinator_sim.coordinator.modern.consumer.regex import RegexChange, change_regex
from coordinator_sim.coordinator.modern.consumer.upgrade import classic_metadata
from coordinator_sim.coordinator.modern.group import MemberState
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.migration_policy import MigrationPolicy
from coordinator_sim.messages.embedded.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_KNOWN_ID_VERSION: Final = 4
"""First version of JoinGroup whose dynamic members are first given an id."""


# -- JoinGroup -----------------------------------------------------------------------------


def join_consumer_group(
    runtime: Runtime, partition: Partition, group: ConsumerGroup, join: Join
) -> Effect | ErrorCode:
    """A JoinGroup to a consumer group with members."""
    request, profile = join.request, runtime.profile
    policy = runtime.config.group_consumer_migration_policy
    if profile.classic_joins_need_migration and policy is MigrationPolicy.DISABLED:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member_id = request.member_id or new_member_id(runtime)
    instance_id = request.group_instance_id
    error = _admission_error(runtime, group, join, member_id)
    if error is ErrorCode.MEMBER_ID_REQUIRED:
        if runtime.tracing:
            trace_id_assigned(runtime, request, join.context, member_id)
        refuse_join(runtime, join, error, member_id)
        return NO_EFFECT
    if error is not ErrorCode.NONE:
        return error
    creates = not request.member_id or instance_id is None
    found = found_classic_member(group, member_id, instance_id, creates=creates)
    if isinstance(found, Refusal):
        return found.error
    subscription = _subscription(runtime, join)
    if isinstance(subscription, ErrorCode):
        return subscription
    updated = _updated(found.member, join, subscription)
    change = _changed_member(runtime, partition, group, found, updated, join.context)
    if isinstance(change, Refusal):
        return change.error
    owned = embedded.owned_by_id(subscription.owned, runtime.topics)
    replaced = None if instance_id is None else group.static_member(instance_id)
    if replaced is not None and downgrades_by(runtime, group, replaced):
        return _downgraded(change, partition, replaced, owned, join)
    return _joined(change, partition, owned, join)


def _admission_error(
    runtime: Runtime, group: ConsumerGroup, join: Join, member_id: str
) -> ErrorCode:
    """Why a newcomer is not looked at any further; NONE if it is."""
    request = join.request
    limit = runtime.config.group_consumer_max_size
    if full_group(runtime.profile, group, member_id, request.group_instance_id, limit) is not None:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not _supports(group, join):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_nameless = not request.member_id and request.group_instance_id is None
    if is_nameless and join.context.api_version >= _KNOWN_ID_VERSION:
        return ErrorCode.MEMBER_ID_REQUIRED
    return ErrorCode.NONE


def _supports(group: ConsumerGroup, join: Join) -> bool:
    """Whether a protocol of the newcomer is one of every classic member.

    Source: ConsumerGroup.supportsClassicProtocols.
    """
    request = join.request
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return False
    count = group.epochs.classic_count
    return any((group.protocol_counts.get(each.name) or 0) == count for each in request.protocols)


def _subscription(runtime: Runtime, join: Join) -> embedded.EmbeddedSubscription | ErrorCode:
    """What the first protocol of a JoinGroup has in it. Source: deserializeSubscription."""
    try:
        return embedded.read_subscription(join.request.protocols[0].metadata, runtime.profile)
    except embedded.MalformedBlob:
        if runtime.profile.malformed_subscription_is_inconsistent:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _updated(
    member: ConsumerGroupMember, join: Join, subscription: embedded.EmbeddedSubscription
) -> ConsumerGroupMember:
    """Return the member updated from its JoinGroup request."""
    request = join.request
    timeout_ms = join.rebalance_timeout_ms
    instance_id = request.group_instance_id
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=join.context.client_id,
        client_host=join.context.client_host,
        classic=classic_metadata(request.session_timeout_ms, request.protocols),
    )


def _changed_member(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    found: Found[ConsumerGroupMember],
    updated: ConsumerGroupMember,
    context: RequestContext,
) -> heartbeat.MemberChange | Refusal:
    """The JoinGroup under way, as far as it is about its member alone."""
    records = list(found.records)
    if updated != found.member:
        records.append(group.member_record(updated))
    regex_change = change_regex(
        runtime, partition, group, (found.member, updated), records, context
    )
    if isinstance(regex_change, Refusal):
        return regex_change
    return heartbeat.MemberChange(runtime, group, found.member, updated, records, regex_change)


def _joined(
    change: heartbeat.MemberChange, partition: Partition, owned: Owned, join: Join
) -> Effect | ErrorCode:
    """The group stays what it is, and the member takes its next step."""
    target = heartbeat.member_target(change)
    if isinstance(target, Refusal):
        return target.error
    after = heartbeat.reconciled(change, partition, target, owned)
    if after is None:
        return ErrorCode.FENCED_MEMBER_EPOCH
    follow = Joined(change.runtime, partition, change.group, after, join, stays=True)
    return Effect(records=tuple(change.records), follow=follow)


def _downgraded(
    change: heartbeat.MemberChange,
    partition: Partition,
    replaced: ConsumerGroupMember,
    owned: Owned,
    join: Join,
) -> Effect | ErrorCode:
    """The last member that is no classic one is replaced: the group becomes a classic one."""
    runtime, group, after = change.runtime, change.group, change.updated
    epoch, _ = heartbeat.bump_epoch_if_due(change)
    if runtime.profile.downgrade_awaits_target:
        rebalances = group.epochs.assignment_epoch < epoch
    else:
        rebalances = change.names_changed or change.regex is not RegexChange.NONE
    if not rebalances:
        moved = heartbeat.reconciled(change, partition, heartbeat.last_member_target(change), owned)
        if moved is None:
            return ErrorCode.FENCED_MEMBER_EPOCH
        after = moved
    records: list[LogRecord] = change.records
    try:
        records += downgrade_by(runtime, partition, group, (replaced, after), rebalances=rebalances)
    except embedded.MalformedBlob:
        return ErrorCode.GROUP_ID_NOT_FOUND
    follow = Joined(runtime, partition, group, after, join, stays=False)
    return Effect(records=tuple(records), follow=follow, is_replayed=False)


@dataclass(slots=True, eq=False)
class Joined:
    """A JoinGroup whose records are appended.

    Args:
        runtime: The coordinator.
        partition: Of the group.
        group: As it was before.
        member: As it is then.
        join: The request.
        stays: Whether the group is a consumer group still.
    """

    runtime: Runtime
    partition: Partition
    group: ConsumerGroup
    member: ConsumerGroupMember
    join: Join
    stays: bool

    def finish(self, error: ErrorCode) -> None:
        """Start the member's timers and tell it its epoch; an error is told by the runtime."""
        if error is not ErrorCode.NONE:
            return
        runtime, member = self.runtime, self.member
        cancel_member_timers(
            runtime, self.group.group_id, member.member_id, (TimerKind.CONSUMER_JOIN,)
        )
        if self.stays:
            start_classic_session(runtime, self.partition, self.group, member)
            timeout_ms = self.join.rebalance_timeout_ms
            start_syncing(runtime, self.partition, self.group, member.member_id, timeout_ms)
        runtime.answer(
            self.join.parked,
            JoinGroupResponse(
                generation_id=member.member_epoch,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=member.protocol_names()[0],
                member_id=member.member_id,
            ),
        )


# -- SyncGroup -----------------------------------------------------------------------------


def sync_with_consumer_group(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    request: SyncGroupRequest,
    parked: Parked,
) -> Effect | ErrorCode:
    """A SyncGroup to a consumer group: the member is told what it has."""
    if group.is_empty:
        runtime.answer(parked, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        return NO_EFFECT
    member = _classic_member(group, request.member_id, request.group_instance_id)
    if isinstance(member, Refusal):
        return member.error
    if member.member_epoch != request.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, member.protocol_names()[0]):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_behind = member.member_epoch < _awaited_epoch(runtime, group)
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        start_joining(runtime, partition, group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return Effect(follow=Synced(runtime, partition, group, member, request, parked))


@dataclass(slots=True, eq=False)
class Synced:
    """A SyncGroup that waits for what was written before it."""

    runtime: Runtime
    partition: Partition
    group: ConsumerGroup
    member: ConsumerGroupMember
    request: SyncGroupRequest
    parked: Parked

    def finish(self, error: ErrorCode) -> None:
        """Start the member's session anew and give it what it has.

        QUIRK: one whose first protocol has no version in front is never answered.
        """
        if error is not ErrorCode.NONE:
            return
        runtime, member = self.runtime, self.member
        cancel_member_timers(
            runtime, self.group.group_id, self.request.member_id, (TimerKind.CONSUMER_SYNC,)
        )
        start_classic_session(runtime, self.partition, self.group, member)
        metadata = member.classic.supported_protocols[0].metadata if member.classic else b""
        try:
            assignment = embedded.written_assignment(member.assigned, runtime.topics, metadata)
        except embedded.MalformedBlob:
            self.parked.is_answered = True
            return
        runtime.answer(
            self.parked,
            SyncGroupResponse(
                protocol_type=self.request.protocol_type,
                protocol_name=self.request.protocol_name,
                assignment=assignment,
            ),
        )


# -- Heartbeat -----------------------------------------------------------------------------


def heartbeat_to_consumer_group(
    runtime: Runtime, partition: Partition, group: ConsumerGroup, request: HeartbeatRequest
) -> Effect | ErrorCode:
    """A Heartbeat to a consumer group: its member lives on, and joins again if that helps."""
    member = _classic_member(group, request.member_id, request.group_instance_id)
    if isinstance(member, Refusal):
        return member.error
    if member.member_epoch != request.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    start_classic_session(runtime, partition, group, member)
    if not _has_to_join(runtime, group, member):
        return Effect(response=HeartbeatResponse())
    start_joining(runtime, partition, group, member)
    return Effect(response=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def _has_to_join(runtime: Runtime, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether the member's next step can be taken."""
    if member.member_epoch < _awaited_epoch(runtime, group):
        return True
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member)


def _waits(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether somebody else has a partition that the member shall have.

    Source: ConsumerGroup.waitingOnUnreleasedPartition.
    """
    target = group.targets.get(member.member_id) or {}
    return any(
        index not in member.assigned.get(topic_id, ())
        and group.partition_epoch(topic_id, index) != UNOWNED
        for topic_id, partitions in target.items()
        for index in partitions
    )


def _awaited_epoch(runtime: Runtime, group: ConsumerGroup) -> int:
    """The epoch that classic members have to come to."""
    epochs = group.epochs
    awaits_target = runtime.profile.classic_members_await_target
    return epochs.assignment_epoch if awaits_target else epochs.group_epoch


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember | Refusal:
    """The member of a classic request. Source: validateConsumerGroupMember."""
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = group.static_member(instance_id)
        if member is None:
            return unknown_instance(instance_id)
        if member.member_id != member_id:
            return fenced_instance(instance_id, member_id, member.member_id)
    if member is None or member.classic is None:
        return unknown_member(group.group_id, member_id)
    return member
