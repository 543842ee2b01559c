"""Which member of a consumer group a heartbeat or a JoinGroup is of, and whether there is room.

Source: kafka 4.4, GroupMetadataManager.throwIfConsumerGroupIsFull,
throwIfConsumerGroupMemberEpochIsInvalid and classicGroupJoinToConsumerGroup.
"""

from base64 import urlsafe_b64encode

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import (
    ConsumerGroupMember,
)
from coordinator_sim.coordinator.epoch_joining import (
    Found,
    member_of,
    replacing_member,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    group_is_full,
    unknown_member,
)
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.trace.epoch_records import CONSUMER


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


def found_classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, creates: bool
) -> Found[ConsumerGroupMember] | Refusal:
    """The member of a JoinGroup; its epoch does not count, and a live one may be replaced.

    Args:
        group: As it is.
        member_id: Of the request, or one that was made for it.
        instance_id: Of a static member.
        creates: Whether an unknown member is a new one.
    """
    if instance_id is not None:
        lost_id = group.lost_member(instance_id)
        if lost_id is not None:
            return unknown_member(group.group_id, lost_id)
        if not creates:
            member = member_of(group, member_id, instance_id)
            return member if isinstance(member, Refusal) else Found(member)
        owner = group.static_member(instance_id)
        if owner is not None:
            return replacing_member(group, owner, member_id)
    return Found(group.joined(member_id))
