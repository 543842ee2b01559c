"""The base of groups that the coordinator assigns: consumer, share and streams groups.

Only the replay of records changes members, targets and epochs: when a batch is appended, when it is
taken back (applied, then undone by the timeline), and when a log is loaded. They live on the
timeline of the offsets partition, which takes the changes back when an append is refused.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and the members of the same names
in streams/StreamsGroup.java; GroupMetadataManager.replay; GroupCoordinatorRecordHelpers.java.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.common.timeline import Timeline, TimelineTable, TimelineValue
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogKey, LogRecord, LogValue

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
_REFRESH_MS: Final = 2_147_483_647
"""How long the topics' hash is believed while no topic changes. Source: Integer.MAX_VALUE."""
NOT_CHECKED: Final = (0, 0)
"""The topics' hash is compared with the next heartbeat."""

AssignmentEpochs = Callable[[str, bytes, int], int | None]
"""By topic, topic id and partition the epoch at which a member got it; None if it has it not."""


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


class RecordTypes(Struct, frozen=True, kw_only=True):
    """The structs of a type of group's records, and what reads a member from them.

    Args:
        group_key: Of the record of the group's epoch.
        target_epoch_key: Of the record of the target's epoch.
        target_epoch_value: Made of that epoch and a timestamp in milliseconds.
        member_key: Of the record of a member's metadata.
        target_key: Of what a member shall have.
        assignment_key: Of what a member has.
        new_member: Makes a member that has an id alone.
        with_metadata: The member with its metadata's record.
        with_assignment: The member with the record of what it has.
        nothing: The fields of a member that has nothing.
    """

    group_key: Callable[[str], LogKey]
    target_epoch_key: Callable[[str], LogKey]
    target_epoch_value: Callable[[int, int], LogValue]
    member_key: Callable[[str, str], LogKey]
    target_key: Callable[[str, str], LogKey]
    assignment_key: Callable[[str, str], LogKey]
    new_member: Callable[[str], Any]
    with_metadata: Callable[[Any, Any], Any]
    with_assignment: Callable[[Any, Any], Any]
    nothing: Mapping[str, object]


MemberT = TypeVar("MemberT", bound=EpochMember)
TargetT = TypeVar("TargetT")
EpochsT = TypeVar("EpochsT", bound=GroupEpochs)


class EpochGroup(ABC, Generic[MemberT, TargetT, EpochsT]):
    """A group whose members follow epochs of a target that the coordinator computes.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        epochs: At first.
        profile: Of the coordinator.

    Attributes:
        group_type: Its name on the wire.
        session_setting: The field of `CoordinatorConfig` that says how long members' sessions are.
        record_types: Of its records.
        no_target: What a member shall have that has no entry in `targets`.
        profile: Of the coordinator.
        members: By id.
        static_members: Instance id to member id.
        targets: What each member shall have; one without an entry shall have nothing.
        refresh: Deadline of the next comparison of the topics' hash, and the group epoch that was
            written at the last one; no part of the log, so a load begins anew.
        seen_version: Version of the topics at the last comparison or request for one.
    """

    group_type: ClassVar[str]
    session_setting: ClassVar[str]
    record_types: ClassVar[RecordTypes]
    no_target: ClassVar[Any]
    __slots__ = (
        "_epochs",
        "group_id",
        "members",
        "profile",
        "refresh",
        "seen_version",
        "static_members",
        "targets",
    )

    def __init__(
        self, timeline: Timeline, group_id: str, epochs: EpochsT, profile: Profile
    ) -> None:
        self.group_id = group_id
        self.profile = profile
        self.members = TimelineTable[str, MemberT](timeline, java_string_hash)
        self.static_members = TimelineTable[str, str](timeline, java_string_hash)
        self.targets = TimelineTable[str, TargetT](timeline, java_string_hash)
        self._epochs = TimelineValue(timeline, epochs)
        self.refresh = NOT_CHECKED
        self.seen_version = 0

    @property
    def epochs(self) -> EpochsT:
        """The current epochs: `TimelineValue.value`, read here for the speed of heartbeats."""
        epochs = self._epochs
        return epochs.entries.get(None, epochs.first)

    def epochs_as_of(self, position: int) -> EpochsT:
        """The epochs that a reader at that log position sees."""
        return self._epochs.as_of(position)

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

    def target_of(self, member: MemberT) -> TargetT:
        """What a member shall have by the last target; what a static one's predecessor should.

        Source: ConsumerGroup.targetAssignment.
        """
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
        found = None if member_id is None else self.targets.entries.get(member_id)
        return self.no_target if found is None else found

    def with_member(self, updated: MemberT | None) -> tuple[dict[str, MemberT], dict[str, TargetT]]:
        """The members in the order of Kafka's overlay, and their targets, once one has changed.

        A static member takes the place and the target of the one whose instance id it has.

        Source: UpdatedMembersAndTargetAssignmentView.addOrUpdateMember.
        """
        members, targets = dict(self.members.items()), dict(self.targets.entries)
        if updated is None:
            return members, targets
        members[updated.member_id] = updated
        if updated.instance_id is not None:
            predecessor = self.static_members.get(updated.instance_id)
            if predecessor is not None and predecessor != updated.member_id:
                members.pop(predecessor, None)
                inherited = targets.pop(predecessor, None)
                if inherited is not None:
                    targets[updated.member_id] = inherited
        return members, targets

    def is_target_due(self, wall_ms: int, interval_ms: int) -> bool:
        """Whether enough time has passed since the last target.

        QUIRK: nothing happens by itself when it has; the next heartbeat computes the target.

        Source: GroupMetadataManager.canComputeNextTargetAssignment.
        """
        computed_ms = self.epochs.assignment_timestamp_ms
        return not computed_ms or not interval_ms or wall_ms >= computed_ms + interval_ms

    # -- changes -----------------------------------------------------------------------------

    def has_metadata_expired(self, topics: KnownTopics, names: Iterable[str], wall_ms: int) -> bool:
        """Whether the topics' hash is to be compared again. Source: ModernGroup.hasMetadataExpired.

        Args:
            topics: Of the cluster.
            names: Topics that the group needs.
            wall_ms: The present.
        """
        if topics.version > self.seen_version and topics.have_changed(names, self.seen_version):
            self.refresh = NOT_CHECKED
        self.seen_version = topics.version
        deadline_ms, epoch = self.refresh
        return wall_ms >= deadline_ms or self.epochs.group_epoch < epoch

    def set_metadata_refresh(self, topics: KnownTopics, epoch: int, wall_ms: int) -> None:
        """Compare the topics' hash no more until a topic changes, or this epoch is lost.

        Source: ModernGroup.setMetadataRefreshDeadline.
        """
        self.refresh = (wall_ms + _REFRESH_MS, epoch)
        self.seen_version = topics.version

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

    def put_member(self, member: MemberT) -> None:
        """Add or replace a member.

        Raises:
            OperationAborted: another member of a consumer group has one of the partitions at this
                epoch or a later one.
        """
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        self._replace(old, member)
        if old is not None and old.instance_id is not None and self._forgets_instance():
            self.static_members.remove(old.instance_id)
        if member.instance_id is not None:
            self.static_members.put(member.instance_id, member.member_id)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there."""
        old = self.members.remove(member_id)
        if old is None:
            return
        self._replace(old, None)
        if old.instance_id is not None:
            self.static_members.remove(old.instance_id)

    @abstractmethod
    def _replace(self, old: MemberT | None, new: MemberT | None) -> None:
        """Do what follows when a member comes, changes or goes."""

    def _forgets_instance(self) -> bool:
        """Whether a member that takes another instance id gives up the one that it had."""
        return True

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

    # -- records -----------------------------------------------------------------------------

    @abstractmethod
    def epoch_record(self) -> LogRecord:
        """Make the record of the current epoch."""

    @abstractmethod
    def member_record(self, member: MemberT) -> LogRecord:
        """Make the record of a member's metadata."""

    @abstractmethod
    def target_record(self, member_id: str, target: TargetT) -> LogRecord:
        """Make the record of what a member shall have."""

    @abstractmethod
    def assignment_record(self, member: MemberT) -> LogRecord:
        """Make the record of what a member has."""

    def target_epoch_record(self, epoch: int, timestamp_ms: int) -> LogRecord:
        """For which epoch of the group the target was computed, and when."""
        types = self.record_types
        value = types.target_epoch_value(epoch, timestamp_ms)
        return LogRecord(types.target_epoch_key(self.group_id), value)

    def target_records(
        self,
        targets: Mapping[str, TargetT],
        before: Mapping[str, TargetT | None],
        epoch: int,
        timestamp_ms: int,
    ) -> list[LogRecord]:
        """Make the records of another target: of members whose target differs, and of its epoch.

        Source: TargetAssignmentBuilder.build.
        """
        changed = [
            self.target_record(member_id, target)
            for member_id, target in targets.items()
            if before.get(member_id) != target
        ]
        return [*changed, self.target_epoch_record(epoch, timestamp_ms)]

    def member_tombstones(self, member_id: str) -> tuple[LogRecord, ...]:
        """Remove a member: a load wants what it has and shall have to go first."""
        types = self.record_types
        keys = (types.assignment_key, types.target_key, types.member_key)
        return tuple([LogRecord(key(self.group_id, member_id), None) for key in keys])

    def tombstones(self, renamed: Mapping[str, str] = {}) -> tuple[LogRecord, ...]:
        """Remove the group with all that is in it.

        Args:
            renamed: Members that records of the same batch have put others in the place of.

        Source: Group.createGroupTombstoneRecords of each type of group.
        """
        types, name = self.record_types, self.group_id
        ids = [renamed.get(each, each) for each in self.members.keys()]  # noqa: SIM118 - ordered
        keys = (
            *(types.assignment_key(name, each) for each in ids),
            *(types.target_key(name, each) for each in ids),
            types.target_epoch_key(name),
            *(types.member_key(name, each) for each in ids),
            *self._other_keys(),
            types.group_key(name),
        )
        return tuple(LogRecord(key, None) for key in keys)

    def _other_keys(self) -> tuple[LogKey, ...]:
        """The keys of other records, whose tombstones come before the group's."""
        return ()

    # -- replay ------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any) -> bool:  # noqa: ANN401 - of the group's records
        """Apply one record; a tombstone of what is not there changes nothing.

        Returns:
            Whether the group is gone.

        Raises:
            OperationAborted: the record contradicts the group, such as a tombstone of a member that
                still has partitions. A broker that loads such a log gives the partition up.

        Source: GroupMetadataManager.replay.
        """
        types, kind = self.record_types, type(key)
        if kind in (types.member_key, types.assignment_key):
            is_metadata = kind is types.member_key
            if value is not None:
                update = types.with_metadata if is_metadata else types.with_assignment
                self.put_member(update(self.joined(key.member_id), value))
            elif (member := self.members.get(key.member_id)) is not None:
                self._replay_tombstone(member, is_metadata=is_metadata)
        elif kind is types.target_key:
            if value is None:
                self.targets.remove(key.member_id)
            else:
                self.targets.put(key.member_id, self._target_from(value))
        elif kind is types.target_epoch_key:
            if value is None:
                self.check_no_targets("the target is removed while members have targets")
                self.set_assignment_epoch(NO_EPOCH, 0)
            else:
                self.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        elif kind is not types.group_key:
            self._replay_other(key, value)
        elif value is None:
            self.check_removable()
            return True
        else:
            self._replay_epoch(value)
        return False

    def joined(self, member_id: str) -> MemberT:
        """The member of that id; one that is not there comes without anything."""
        member = self.members.get(member_id)
        return self.record_types.new_member(member_id) if member is None else member

    def _replay_tombstone(self, member: MemberT, *, is_metadata: bool) -> None:
        """Let a member have nothing, or remove one whose other records are gone.

        Source: GroupMetadataManager.replay of the three types of member metadata.
        """
        member_id = member.member_id
        if not is_metadata:
            left = {"member_epoch": LEAVE_EPOCH, "previous_member_epoch": LEAVE_EPOCH}
            self.put_member(replace(member, **left, **self.record_types.nothing))
            return
        if member.member_epoch != LEAVE_EPOCH:
            raise self._contradiction(f"member {member_id} is removed while it has an epoch")
        if member_id in self.targets:
            raise self._contradiction(f"member {member_id} is removed while it has a target")
        self.remove_member(member_id)

    @abstractmethod
    def _target_from(self, value: Any) -> TargetT:  # noqa: ANN401 - of the group's records
        """What a member shall have by its record."""

    @abstractmethod
    def _replay_epoch(self, value: Any) -> None:  # noqa: ANN401 - of the group's records
        """Begin another epoch of the group."""

    def _replay_other(self, key: Any, value: Any) -> None:  # noqa: ANN401 - none by default
        """Apply a record that other types of groups do not have."""

    @abstractmethod
    def check_removable(self) -> None:
        """Check that all other records of the group were removed before the group's.

        Raises:
            OperationAborted: one was not.
        """

    def check_no_members(self) -> None:
        """Raise OperationAborted if a group that is removed has members."""
        if self.members.entries:
            raise self._contradiction("the group is removed while it has members")

    def check_no_targets(self, contradiction: str) -> None:
        """Raise OperationAborted, with what that contradicts, if a member has a target."""
        if self.targets.entries:
            raise self._contradiction(contradiction)

    def check_no_target_epoch(self) -> None:
        """Raise OperationAborted if the target of a group that is removed has an epoch."""
        if self.epochs.assignment_epoch != NO_EPOCH:
            raise self._contradiction("the group is removed while its target has an epoch")

    def _contradiction(self, what: str) -> OperationAborted:
        return OperationAborted(f"group {self.group_id}: {what}")
