"""Finds the member of a heartbeat: one of the group, a new one, or the successor of a static one.

Source: kafka 4.4, GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember,
getOrMaybeSubscribeStaticConsumerGroupMember, replaceMember and their kin for streams groups;
throwIfConsumerGroupMemberEpochIsInvalid and throwIfStreamsGroupMemberEpochIsInvalid.
"""

from collections.abc import Callable
from typing import Generic

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.epoch_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    EpochGroup,
    EpochsT,
    MemberT,
    TargetT,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    fenced_epoch,
    fenced_instance,
    unknown_instance,
    unknown_member,
    unreleased_instance,
)
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

Heartbeat = ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest


class Found(Struct, Generic[MemberT], frozen=True):
    """A member, the records that put it into another's place, and the other's id."""

    member: MemberT
    records: tuple[LogRecord, ...] = ()
    replaced_id: str | None = None


def member_of(
    group: EpochGroup[MemberT, TargetT, EpochsT], member_id: str, instance_id: str | None
) -> MemberT | Refusal:
    """The member that a request names; a static one must own its instance id."""
    if instance_id is None:
        member = group.members.entries.get(member_id)
        return unknown_member(group.group_id, member_id) if member is None else member
    lost_id = group.lost_member(instance_id)
    if lost_id is not None:
        return unknown_member(group.group_id, lost_id)
    member = group.static_member(instance_id)
    if member is None:
        return unknown_instance(instance_id)
    if member.member_id != member_id:
        return fenced_instance(instance_id, member_id, member.member_id)
    return member


def found_member(
    group: EpochGroup[MemberT, TargetT, EpochsT],
    request: Heartbeat,
    new: MemberT,
    has_no_more: Callable[[MemberT], bool],
    *,
    rejoins: bool,
) -> Found[MemberT] | Refusal:
    """The member of a heartbeat, its epoch checked.

    A member whose last answer was lost repeats its previous epoch, and reports no more than it has.

    Args:
        group: As it is.
        request: The heartbeat.
        new: A new member with the id of the request, or one that was made for it.
        has_no_more: Whether the heartbeat reports no more than that member has.
        rejoins: Whether a member may join again at any epoch.
    """
    member_id, instance_id, received = new.member_id, request.instance_id, request.member_epoch
    joins = received == JOIN_EPOCH
    if joins and instance_id is not None:
        return _joining_static_member(group, new, instance_id)
    found: MemberT | Refusal
    if joins:
        found = group.members.entries.get(member_id, new)
    else:
        found = member_of(group, member_id, instance_id)
    if isinstance(found, Refusal):
        return found
    current = found.member_epoch
    if received == current or (joins and rejoins):
        return Found(found)
    is_previous = received == found.previous_member_epoch and received < current
    if is_previous and has_no_more(found):
        return Found(found)
    return fenced_epoch(group.group_type, received, current)


def _joining_static_member(
    group: EpochGroup[MemberT, TargetT, EpochsT], new: MemberT, instance_id: str
) -> Found[MemberT] | Refusal:
    member_id, lost_id = new.member_id, group.lost_member(instance_id)
    if lost_id is not None:
        return unknown_member(group.group_id, lost_id)
    owner = group.static_member(instance_id)
    if owner is None:
        return Found(group.members.entries.get(member_id, new))
    if not owner.uses_classic_protocol and owner.member_epoch != STATIC_LEAVE_EPOCH:
        return unreleased_instance(instance_id, member_id, owner.member_id)
    return replacing_member(group, owner, member_id)


def replacing_member(
    group: EpochGroup[MemberT, TargetT, EpochsT], old: MemberT, member_id: str
) -> Found[MemberT]:
    """Another member in the place of a static one, with all that it has.

    QUIRK: the old one's timers run on, and find no member.
    """
    new = replace(old, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=0)
    records = (
        *group.member_tombstones(old.member_id),
        group.member_record(new),
        group.target_record(member_id, group.targets.get(old.member_id) or group.no_target),
        group.assignment_record(new),
    )
    return Found(new, records, old.member_id if old.member_id != member_id else None)
