"""Which member a heartbeat is of: one of the group, a new one, or one that replaces a static one.

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
    EpochMember,
    EpochsT,
    MemberT,
    TargetT,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    fenced_epoch,
    member_of,
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


def found_member(
    group: EpochGroup[MemberT, TargetT, EpochsT],
    request: Heartbeat,
    new: MemberT,
    epoch_refusal: Callable[[MemberT], Refusal | None],
) -> Found[MemberT] | Refusal:
    """The member of a heartbeat, its epoch checked.

    Args:
        group: As it is.
        request: The heartbeat.
        new: A new member with the id of the request, or one that was made for it.
        epoch_refusal: Why the epoch of the heartbeat is refused for a member; None if it is not.
    """
    member_id, instance_id = new.member_id, request.instance_id
    if request.member_epoch != JOIN_EPOCH:
        member = member_of(group, member_id, instance_id)
        return member if isinstance(member, Refusal) else epoch_refusal(member) or Found(member)
    if instance_id is None:
        member = group.members.entries.get(member_id, new)
        return epoch_refusal(member) or Found(member)
    lost_id = group.lost_member(instance_id)
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


def epoch_refusal(
    group_type: str, member: EpochMember, received: int, has_no_more: Callable[[], bool]
) -> Refusal | None:
    """Why the epoch of a heartbeat is refused; None if it is not.

    A member whose last answer was lost repeats its previous epoch, and reports no more than it has.

    Args:
        group_type: The type of the group.
        member: The member.
        received: The epoch of its heartbeat.
        has_no_more: Whether it reports no more than it has.
    """
    current = member.member_epoch
    if received == current:
        return None
    if received == member.previous_member_epoch and received < current and has_no_more():
        return None
    return fenced_epoch(group_type, received, current)
