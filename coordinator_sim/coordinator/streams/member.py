"""A member of a streams group, as the log last said: a value that is replaced, never changed.

Source: kafka 4.4, group-coordinator/.../streams/StreamsGroupMember.java and MemberState.java.
"""

from collections.abc import Mapping
from enum import IntEnum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.streams.tasks import (
    NOTHING_HELD,
    HeldTasks,
    epochs_from,
    tasks_from,
)
from coordinator_sim.messages.streams_group_records import (
    Endpoint,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)

NO_TOPOLOGY_EPOCH: Final = -1
"""Epoch of a topology that there is none of."""


@unique
class MemberState(IntEnum):
    """How far a member has come on its way to its target, by the number in its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class StreamsMember(Struct, frozen=True, kw_only=True):
    """A member.

    Args:
        member_id: Its id.
        member_epoch: Of the target that it was last moved to; see `consumer.member` for the epochs
            of members that join and leave.
        previous_member_epoch: What it was before; a member whose last answer was lost repeats it.
        state: How far it has come.
        instance_id: Of a static member.
        rack_id: Where it is.
        rebalance_timeout_ms: How long it may take to give tasks up.
        client_id: Of its last heartbeat.
        client_host: Of its last heartbeat.
        topology_epoch: Of the topology that it runs.
        process_id: Of the process that it is part of; None while only its tasks are known.
        user_endpoint: Where its process answers interactive queries.
        client_tags: For rack-aware assignments.
        assigned: What it has and may use.
        pending_revocation: What it has and must give up.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str | None = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: HeldTasks = NOTHING_HELD
    pending_revocation: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def moved(self, epoch: int) -> "StreamsMember":
        """The member at another epoch; the present one becomes the previous one."""
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)


def member_state(number: int) -> MemberState:
    """The state of that number; unknown numbers are UNKNOWN. Source: MemberState.fromValue."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    """The member as its record says. Source: StreamsGroupMember.Builder.updateWith."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=value.user_endpoint,
        client_tags={each.key: each.value for each in value.client_tags},
    )


def with_assignment(
    member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue
) -> StreamsMember:
    """The member with what its record says that it has. Source: as above."""
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned=HeldTasks(
            active=epochs_from(value.active_tasks, epoch),
            standby=tasks_from(value.standby_tasks),
            warmup=tasks_from(value.warmup_tasks),
        ),
        pending_revocation=HeldTasks(
            active=epochs_from(value.active_tasks_pending_revocation, epoch),
            standby=tasks_from(value.standby_tasks_pending_revocation),
            warmup=tasks_from(value.warmup_tasks_pending_revocation),
        ),
    )
