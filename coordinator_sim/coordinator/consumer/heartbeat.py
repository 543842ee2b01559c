"""ConsumerGroupHeartbeat: a member joins, says what it has, and is told what to have.

A handler changes nothing in the group: it makes the records of one batch, whose replay changes it,
and arms timers.

Source: kafka 4.4, GroupMetadataManager.consumerGroupHeartbeat and what it calls.
"""

from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.joining import (
    full_group,
    new_member_id,
)
from coordinator_sim.coordinator.consumer.leaving import leave_consumer_group
from coordinator_sim.coordinator.consumer.member import (
    ConsumerGroupMember,
    Epochs,
    Owned,
    is_subset,
)
from coordinator_sim.coordinator.consumer.regex import change_regex
from coordinator_sim.coordinator.consumer.updating import (
    MemberChange,
    assignor_of,
    member_target,
    reconciled,
)
from coordinator_sim.coordinator.consumer.upgrade import upgraded
from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_joining import found_member
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    other_type,
    refused,
    unknown_group,
)
from coordinator_sim.coordinator.epoch_timers import start_session
from coordinator_sim.coordinator.expiry import CONVERTED, RemoveGroups
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.offset_records import group_tombstone
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.timeline import Timeline
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import EMPTY
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
    TopicPartitions,
)
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.epoch_groups import NOTHING_BESIDE, Beside
from coordinator_sim.trace.epoch_records import CONSUMER

_UNKNOWN_STATE: Final = Refusal(
    ErrorCode.FENCED_MEMBER_EPOCH,
    "The consumer group member is in a unknown state. The member must abandon all its partitions "
    "and rejoin.",
)
"""A member whose record has a state that nobody knows."""


def handle_consumer_heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    parked: Parked,
) -> Effect | None:
    """Take a heartbeat whose form is right; a refusal is answered at once."""
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        outcome = leave_consumer_group(runtime, partition, request)
    else:
        outcome = _heartbeat(runtime, partition, request, parked.context)
    if isinstance(outcome, Refusal):
        runtime.answer(parked, refused(ConsumerGroupHeartbeatResponse, outcome))
        return None
    return outcome


def _heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    context: RequestContext,
) -> Effect | Refusal:
    records: list[LogRecord] = []
    group = _group_of(runtime, partition, request, records)
    if isinstance(group, Refusal):
        return group
    limit = runtime.config.group_consumer_max_size
    refusal = full_group(runtime.profile, group, request.member_id, request.instance_id, limit)
    if refusal is not None:
        return refusal
    member_id = request.member_id or new_member_id(runtime)
    owned = None if request.topic_partitions is None else _owned(request.topic_partitions)
    found = found_member(
        group,
        request,
        ConsumerGroupMember(member_id=member_id),
        lambda member: is_subset(owned, member.assigned),
        rejoins=runtime.profile.consumer_rejoins_with_epoch_zero,
    )
    if isinstance(found, Refusal):
        return found
    records += found.records
    before, updated = found.member, _updated(found.member, request, context)
    if updated != before:
        records.append(group.member_record(updated))
    regex_change = change_regex(runtime, partition, group, (before, updated), records, context)
    if isinstance(regex_change, Refusal):
        return regex_change
    change = MemberChange(runtime, group, before, updated, records, regex_change)
    target = member_target(change)
    if isinstance(target, Refusal):
        return target
    after = reconciled(change, partition, target, owned)
    if after is None:
        return _UNKNOWN_STATE
    start_session(runtime, partition, group, member_id)
    is_upgrade = partition.classic_group(request.group_id) is not None
    removal = RemoveGroups(runtime, partition, CONVERTED) if is_upgrade else None
    response = _answer(runtime, request, before, after)
    beside = Beside(assignor=assignor_of(change)) if runtime.tracing and records else NOTHING_BESIDE
    return Effect(records=tuple(records), response=response, apply=removal, beside=beside)


def _group_of(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    records: list[LogRecord],
) -> ConsumerGroup | Refusal:
    """The group of a heartbeat; for one that joins a new group, which is dropped afterwards.

    Replay of the records makes the group that stays (`GroupTable._persisted`).
    A classic group gives way to it, and its offsets stay; `records` get what that takes.

    Source: getOrMaybeCreateConsumerGroup.
    """
    group_id = request.group_id
    known = partition.groups.get(group_id)
    joins = request.member_epoch == JOIN_EPOCH
    if isinstance(known, ConsumerGroup):
        return known
    if not joins:
        return (unknown_group if known is None else other_type)(CONSUMER, group_id)
    if isinstance(known, Group):
        if known.state is not EMPTY:
            return upgraded(runtime, partition, known, records)
        records.append(group_tombstone(group_id))
    elif known is not None:
        return other_type(CONSUMER, group_id)
    return ConsumerGroup(Timeline(), group_id, runtime.profile)


def _owned(reported: tuple[TopicPartitions, ...]) -> Owned:
    """The partitions that a member reports to have."""
    return tuple((each.topic_id, each.partitions) for each in reported)


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupMember:
    """Return the member updated from its heartbeat; fields that the heartbeat omits stay.

    Source: ConsumerGroupMember.Builder.maybeUpdate...
    """
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    assignor = request.server_assignor
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if assignor is None else assignor,
        subscribed_topic_names=(
            member.subscribed_topic_names if names is None else frozenset(names)
        ),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


def _answer(
    runtime: Runtime,
    request: ConsumerGroupHeartbeatRequest,
    before: ConsumerGroupMember,
    after: ConsumerGroupMember,
) -> ConsumerGroupHeartbeatResponse:
    """The answer: what the member has is told when it may not know it."""
    is_full = (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )
    is_told = request.member_epoch == JOIN_EPOCH or is_full
    if not is_told and before.assigned is not after.assigned:
        is_told = _has_changed(runtime, before.assigned, after.assigned)
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=runtime.config_of(
            request.group_id
        ).group_consumer_heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if is_told else None,
    )


def _has_changed(runtime: Runtime, before: Epochs, after: Epochs) -> bool:
    """Whether a member has other partitions, or the same since another epoch where that counts."""
    if before == after:
        return False
    if runtime.profile.consumer_stores_assignment_epochs:
        return True
    return {topic: set(held) for topic, held in before.items()} != {
        topic: set(held) for topic, held in after.items()
    }


def _assignment(assigned: Epochs) -> Assignment:
    return Assignment(
        tuple(
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, tuple(sorted(held)))
            for topic_id, held in sorted(assigned.items())
        )
    )
