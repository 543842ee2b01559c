"""Which member a heartbeat is of: a known one, a new one, or one that takes a static one's place.

Source: kafka 4.4, GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember,
getOrMaybeSubscribeStaticConsumerGroupMember, throwIfConsumerGroupIsFull,
throwIfConsumerGroupMemberEpochIsInvalid and replaceMember.
"""

from base64 import urlsafe_b64encode

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import (
    ConsumerMember,
    Owned,
    is_subset,
)
from coordinator_sim.coordinator.consumer.records import (
    assignment_record,
    member_record,
    member_tombstones,
    target_record,
)
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
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.epoch_records import CONSUMER


class Found(Struct, frozen=True):
    """A member, and the records that put it into another's place."""

    member: ConsumerMember
    records: tuple[LogRecord, ...] = ()


def full_group(
    profile: Profile,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    limit: int,
) -> Refusal | None:
    """Why a group takes nobody in; None if it does. Members are never refused."""
    replaces = instance_id is not None and instance_id in group.static_members
    if replaces and profile.consumer_full_group_takes_replacement:
        return None
    is_known = bool(member_id) and member_id in group.members.entries
    return None if is_known or len(group.members) < limit else group_is_full(CONSUMER, limit)


def new_member_id(runtime: Runtime) -> str:
    """An id for a member that brings none: a Kafka Uuid. Source: Uuid.randomUuid.

    Terminates: one in three draws has a dash and is refused, and ids never run out.
    """
    while True:
        drawn = bytes.fromhex(runtime.ids.new_uuid().replace("-", ""))
        text = urlsafe_b64encode(drawn).decode().rstrip("=")
        is_refused = "-" in text if runtime.profile.uuids_without_dash else text[0] == "-"
        if not is_refused:
            return text


def found_member(
    profile: Profile,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Owned | None,
) -> Found | Refusal:
    """The member of a heartbeat, its epoch checked.

    Args:
        profile: Of the coordinator.
        group: As it is.
        request: The heartbeat.
        member_id: Of the request, or one that was made for it.
        owned: What the member reports to have.
    """
    if request.instance_id is not None:
        return _static(profile, group, request, member_id, owned)
    member = group.members.entries.get(member_id)
    if member is None:
        if request.member_epoch != JOIN_EPOCH:
            return unknown_member(group.group_id, member_id)
        member = ConsumerMember(member_id=member_id)
    return _epoch_refusal(profile, member, request.member_epoch, owned) or Found(member)


def _static(
    profile: Profile,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Owned | None,
) -> Found | Refusal:
    instance_id = request.instance_id or ""
    lost_id = group.lost_member(instance_id)
    if lost_id is not None:
        return unknown_member(group.group_id, lost_id)
    owner = group.static_member(instance_id)
    if request.member_epoch == JOIN_EPOCH:
        if owner is None:
            known = group.members.get(member_id)
            return Found(ConsumerMember(member_id=member_id) if known is None else known)
        if owner.classic is None and owner.member_epoch != STATIC_LEAVE_EPOCH:
            return unreleased_instance(instance_id, member_id, owner.member_id)
        return _replaced(profile, group, owner, member_id)
    if owner is None:
        return unknown_instance(instance_id)
    if owner.member_id != member_id:
        return fenced_instance(instance_id, member_id, owner.member_id)
    return _epoch_refusal(profile, owner, request.member_epoch, owned) or Found(owner)


def found_classic_member(
    profile: Profile,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    *,
    creates: bool,
) -> Found | Refusal:
    """The member of a JoinGroup; its epoch does not count, and a live one may be replaced.

    Args:
        profile: Of the coordinator.
        group: As it is.
        member_id: Of the request, or one that was made for it.
        instance_id: Of a static member.
        creates: Whether an unknown member is a new one.
    """
    if instance_id is not None:
        lost_id = group.lost_member(instance_id)
        if lost_id is not None:
            return unknown_member(group.group_id, lost_id)
        owner = group.static_member(instance_id)
        if owner is not None and creates:
            return _replaced(profile, group, owner, member_id)
        if owner is not None:
            if owner.member_id != member_id:
                return fenced_instance(instance_id, member_id, owner.member_id)
            return Found(owner)
        if not creates:
            return unknown_instance(instance_id)
    known = group.members.get(member_id)
    return Found(ConsumerMember(member_id=member_id) if known is None else known)


def _replaced(profile: Profile, group: ConsumerGroup, old: ConsumerMember, member_id: str) -> Found:
    """Another member in the place of a static one, with all that it has.

    QUIRK: the old one's timers run on, and find no member.
    """
    new = replace(old, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=0)
    group_id = group.group_id
    target = group.targets.get(old.member_id) or {}
    with_epochs = profile.consumer_stores_assignment_epochs
    return Found(
        new,
        (
            *member_tombstones(group_id, old.member_id),
            member_record(group_id, new),
            target_record(group_id, member_id, target),
            assignment_record(group_id, new, with_epochs=with_epochs),
        ),
    )


def _epoch_refusal(
    profile: Profile, member: ConsumerMember, received: int, owned: Owned | None
) -> Refusal | None:
    """Why the epoch of a heartbeat is refused; None if it is not.

    A member whose last answer was lost repeats its previous epoch, and reports no more than it has.
    """
    known = member.member_epoch
    if received == JOIN_EPOCH and profile.consumer_rejoins_with_epoch_zero:
        return None
    if received > known:
        return fenced_epoch(CONSUMER, received, known)
    if received < known:
        repeats = received == member.previous_member_epoch and is_subset(owned, member.assigned)
        return None if repeats else fenced_epoch(CONSUMER, received, known)
    return None
