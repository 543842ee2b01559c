"""Which member a heartbeat is of: a known one, a new one, or one that takes a static one's place.

Source: kafka 4.4, GroupMetadataManager.getOrMaybeCreateDynamicStreamsGroupMember,
getOrMaybeCreateStaticStreamsGroupMember, throwIfStreamsGroupIsFull,
throwIfStreamsGroupMemberEpochIsInvalid, replaceStreamsMember and relabelRefinedAssignment.
"""

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    fenced_epoch,
    fenced_instance,
    group_is_full,
    unknown_instance,
    unknown_member,
    unreleased_instance,
)
from coordinator_sim.coordinator.streams.group import Refined, StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsMember
from coordinator_sim.coordinator.streams.records import (
    assignment_record,
    member_record,
    member_tombstones,
    target_record,
)
from coordinator_sim.coordinator.streams.tasks import NOTHING_WANTED, is_contained
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from coordinator_sim.trace.epoch_records import STREAMS


class Found(Struct, frozen=True):
    """A member, whose place it takes, and the records that put it there."""

    member: StreamsMember
    replaced_id: str | None = None
    records: tuple[LogRecord, ...] = ()


def full_streams_group(
    profile: Profile, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, limit: int
) -> Refusal | None:
    """Why a group takes nobody in; None if it does.

    QUIRK: up to 4.3 a full group refuses members that join again, too.
    """
    if profile.streams_full_group_takes_members and (
        (request.instance_id is not None and request.instance_id in group.static_members)
        or request.member_id in group.members
    ):
        return None
    return None if len(group.members) < limit else group_is_full(STREAMS, limit)


def found_streams_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> Found | Refusal:
    """The member of a heartbeat, its epoch checked."""
    if request.instance_id is not None:
        return _static(group, request, request.instance_id)
    member = group.members.get(request.member_id)
    if member is None:
        if request.member_epoch != JOIN_EPOCH:
            return unknown_member(group.group_id, request.member_id)
        member = StreamsMember(member_id=request.member_id)
    return _epoch_refusal(member, request) or Found(member)


def _static(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, instance_id: str
) -> Found | Refusal:
    member_id = request.member_id
    owner = group.static_member(instance_id)
    replaced_id = None
    if owner is not None and owner.member_id != member_id:
        replaced_id = owner.member_id
        # QUIRK: this stays, also where the heartbeat is refused.
        _relabel(group, replaced_id, member_id)
    if request.member_epoch == JOIN_EPOCH:
        if owner is None:
            known = group.members.get(member_id)
            return Found(StreamsMember(member_id=member_id) if known is None else known)
        if owner.member_epoch != STATIC_LEAVE_EPOCH:
            return unreleased_instance(instance_id, member_id, owner.member_id)
        return _replaced(group, owner, member_id, replaced_id)
    if owner is None:
        return unknown_instance(instance_id)
    if replaced_id is not None:
        return fenced_instance(instance_id, member_id, replaced_id)
    return _epoch_refusal(owner, request) or Found(owner)


def _relabel(group: StreamsGroup, old_id: str, new_id: str) -> None:
    targets = dict(group.refined.targets)
    inherited = targets.pop(old_id, None)
    if inherited is not None:
        targets[new_id] = inherited
        group.refine(Refined(group.refined.epoch, targets))


def _replaced(
    group: StreamsGroup, old: StreamsMember, member_id: str, replaced_id: str | None
) -> Found:
    """Another member in the place of a static one, with all that it has.

    QUIRK: the old one's timers run on, and find no member.
    """
    new = replace(old, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=0)
    group_id = group.group_id
    target = group.targets.get(old.member_id) or NOTHING_WANTED
    return Found(
        new,
        replaced_id,
        (
            *member_tombstones(group_id, old.member_id),
            member_record(group_id, new),
            target_record(group_id, member_id, target),
            assignment_record(group_id, new),
        ),
    )


def _epoch_refusal(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """Why the epoch of a heartbeat is refused; None if it is not.

    A member whose last answer was lost repeats its previous epoch, and reports no more than it has.
    """
    received, known = request.member_epoch, member.member_epoch
    if received in {JOIN_EPOCH, known}:
        return None
    if received > known:
        return fenced_epoch(STREAMS, received, known)
    held = member.assigned
    repeats = (
        received == member.previous_member_epoch
        and is_contained(request.active_tasks, held.active)
        and is_contained(request.standby_tasks, held.standby)
        and is_contained(request.warmup_tasks, held.warmup)
    )
    return None if repeats else fenced_epoch(STREAMS, received, known)
