"""The base of groups that the coordinator assigns: consumer, share and streams groups.

Only the replay of records changes members, targets and epochs. They live on the timeline of the
offsets partition, which takes the changes back when an append is refused.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and the members of the same names
in streams/StreamsGroup.java.
"""

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import ClassVar, Final, Generic, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.timeline import Timeline, TimelineTable, TimelineValue
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.partitioning import java_string_hash

NO_EPOCH: Final = -1
"""Epoch of a target whose record was removed. Source: replay of its tombstone."""
JOIN_EPOCH: Final = 0
"""Epoch of a heartbeat that joins, and of a member that was never given one."""
LEAVE_EPOCH: Final = -1
"""Epoch of a heartbeat that leaves, and of a member on its way out."""
STATIC_LEAVE_EPOCH: Final = -2
"""Epoch of a heartbeat that leaves for a while, and of a static member that is away."""
UNKNOWN_TIME: Final = 0
"""Timestamp of a target that no assignor computed."""
NOT_CHECKED: Final = (0, 0)
"""The topics' hash is compared with the next heartbeat."""


class GroupEpochs(Struct, frozen=True, kw_only=True, gc=False):
    """The epochs of a group.

    Args:
        group_epoch: Grows whenever a new assignment is needed.
        assignment_epoch: The group's epoch when the target was computed.
        metadata_hash: Of the subscribed topics when the epoch was written.
        assignment_timestamp_ms: When the target was computed; 0 when unknown.
        unreconciled_count: Members that have not reached the target.
    """

    group_epoch: int
    assignment_epoch: int
    metadata_hash: int = 0
    assignment_timestamp_ms: int = 0
    unreconciled_count: int = 0


class NumberedState(IntEnum):
    """A state of members by its number on the wire; unknown numbers are UNKNOWN.

    Source: MemberState.fromValue of modern and of streams groups.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self:  # noqa: ARG003 - of the protocol
        return cls["UNKNOWN"]


class EpochMember(Struct, frozen=True, kw_only=True):
    """A member of such a group: a value that is replaced, never changed.

    Args:
        member_id: Its id.
        member_epoch: Of the target that it has, or goes towards; `JOIN_EPOCH`, `LEAVE_EPOCH` and
            `STATIC_LEAVE_EPOCH` are of no target.
        previous_member_epoch: What it was before; a member whose last answer was lost repeats it.
        instance_id: Of a static member.
        rack_id: Where it is.
        rebalance_timeout_ms: How long it may take to give partitions or tasks up.
        client_id: Of its last heartbeat.
        client_host: Of its last heartbeat.
    """

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""

    @property
    def is_revoking(self) -> bool:
        """Whether it has partitions or tasks that it must give up."""
        return False

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it joins by JoinGroup. Source: ConsumerGroupMember.useClassicProtocol."""
        return False

    def moved(self, epoch: int) -> Self:
        """The member at another epoch; the present one becomes the previous one."""
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for the target of that epoch."""
        raise NotImplementedError


MemberT = TypeVar("MemberT", bound=EpochMember)
TargetT = TypeVar("TargetT")
EpochsT = TypeVar("EpochsT", bound=GroupEpochs)


class EpochGroup(ABC, Generic[MemberT, TargetT, EpochsT]):
    """A group whose members follow epochs of a target that the coordinator computes.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        epochs: At first.

    Attributes:
        group_type: Its name on the wire.
        members: By id.
        static_members: Instance id to member id.
        targets: What each member shall have; one without an entry shall have nothing.
        refresh: Deadline of the next comparison of the topics' hash, and the group epoch that was
            written at the last one; no part of the log, so a load begins anew.
        seen_version: Version of the topics at the last comparison or request for one.
    """

    group_type: ClassVar[str]
    __slots__ = (
        "_epochs",
        "group_id",
        "members",
        "refresh",
        "seen_version",
        "static_members",
        "targets",
    )

    def __init__(self, timeline: Timeline, group_id: str, epochs: EpochsT) -> None:
        self.group_id = group_id
        self.members = TimelineTable[str, MemberT](timeline, java_string_hash)
        self.static_members = TimelineTable[str, str](timeline, java_string_hash)
        self.targets = TimelineTable[str, TargetT](timeline, java_string_hash)
        self._epochs = TimelineValue(timeline, epochs)
        self.refresh = NOT_CHECKED
        self.seen_version = 0

    @property
    def epochs(self) -> EpochsT:
        """The current epochs."""
        return self._epochs.value

    def epochs_as_of(self, position: int) -> EpochsT:
        """The epochs that a reader at that log position sees."""
        return self._epochs.as_of(position)

    @staticmethod
    @abstractmethod
    def session_timeout_ms(config: CoordinatorConfig) -> int:
        """How long a session of a member is."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members.entries

    def static_member(self, instance_id: str) -> MemberT | None:
        """The member of that instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def lost_member(self, instance_id: str) -> str | None:
        """The id of a member that is gone, but still has that instance id; None as a rule.

        QUIRK: up to 4.3 a member of a consumer group that took another instance id left the old one
        behind.
        """
        member_id = self.static_members.get(instance_id)
        return member_id if member_id is not None and member_id not in self.members else None

    def set_assignment_epoch(self, epoch: int, timestamp_ms: int) -> None:
        """Set the epoch of the target, and count the members that have not reached it."""
        count = sum(not member.is_reconciled_to(epoch) for member in self.members.entries.values())
        changed = replace(
            self.epochs,
            assignment_epoch=epoch,
            assignment_timestamp_ms=timestamp_ms,
            unreconciled_count=count,
        )
        self._update_state(changed)

    @abstractmethod
    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there."""

    @abstractmethod
    def _update_state(self, epochs: EpochsT) -> None:
        """Set the epochs and the state that follows from them: the one door of the state."""

    def _counted(self, old: MemberT | None, new: MemberT | None) -> int:
        """Members that have not reached the target, once `new` has replaced `old`."""
        epochs = self.epochs
        epoch = epochs.assignment_epoch
        count = epochs.unreconciled_count
        count -= old is not None and not old.is_reconciled_to(epoch)
        count += new is not None and not new.is_reconciled_to(epoch)
        return count

    # -- tombstones --------------------------------------------------------------------------

    def replay_member_tombstone(self, member_id: str) -> None:
        """Remove a member whose other records are gone; nothing if it is not there.

        Raises:
            OperationAborted: it still has an epoch or a target.

        Source: GroupMetadataManager.replay of the three kinds of member metadata.
        """
        member = self.members.get(member_id)
        if member is None:
            return
        if member.member_epoch != LEAVE_EPOCH:
            raise self._contradiction(f"member {member_id} is removed while it has an epoch")
        if member_id in self.targets:
            raise self._contradiction(f"member {member_id} is removed while it has a target")
        self.remove_member(member_id)

    def replay_target_epoch_tombstone(self) -> None:
        """Let the target have no epoch.

        Raises:
            OperationAborted: members have targets.
        """
        self.check_targets_gone("the target is removed while members have targets")
        self.set_assignment_epoch(NO_EPOCH, 0)

    def check_members_gone(self) -> None:
        """Raise OperationAborted if a group that is removed has members."""
        if self.members.entries:
            raise self._contradiction("the group is removed while it has members")

    def check_targets_gone(self, contradiction: str) -> None:
        """Raise OperationAborted, with what that contradicts, if a member has a target."""
        if self.targets.entries:
            raise self._contradiction(contradiction)

    def check_target_epoch_gone(self) -> None:
        """Raise OperationAborted if the target of a group that is removed has an epoch."""
        if self.epochs.assignment_epoch != NO_EPOCH:
            raise self._contradiction("the group is removed while its target has an epoch")

    def _contradiction(self, what: str) -> OperationAborted:
        return OperationAborted(f"group {self.group_id}: {what}")
