"""A member of a streams group, as the log last said: a value that is replaced, never changed.

Source: kafka 4.4, group-coordinator/.../streams/StreamsGroupMember.java and MemberState.java.
"""

from collections.abc import Mapping
from enum import unique
from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.epoch_group import EpochMember, NumberedState
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
class MemberState(NumberedState):
    """How far a member has come on its way to its target, by the number in its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class StreamsGroupMember(EpochMember, frozen=True, kw_only=True):
    """A member of a streams group.

    Args:
        state: How far it has come.
        topology_epoch: Of the topology that it runs.
        process_id: Of the process that it is part of; None while only its tasks are known.
        user_endpoint: Where its process answers interactive queries.
        client_tags: For rack-aware assignments.
        assigned: What it has and may use.
        pending_revocation: What it has and must give up.
    """

    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str | None = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: HeldTasks = NOTHING_HELD
    pending_revocation: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    @property
    def is_revoking(self) -> bool:
        """Whether it has tasks that it must give up."""
        return self.state is MemberState.UNREVOKED_TASKS


def with_metadata(
    member: StreamsGroupMember, value: StreamsGroupMemberMetadataValue
) -> StreamsGroupMember:
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
    member: StreamsGroupMember, value: StreamsGroupCurrentMemberAssignmentValue
) -> StreamsGroupMember:
    """The member with what its record says that it has. Source: as above."""
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
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
