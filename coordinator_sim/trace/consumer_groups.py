"""What the records of a consumer group (KIP-848) tell, as events.

Everything that a coordinator decides about such a group is a batch of records. The coordinator's
own trace and the offsets topic's are therefore one derivation: a `ConsumerGroupStory` follows the
records of one group, and says of each batch what happened. Whoever knows more than the records do,
such as why a member goes, says so.

Source: kafka 4.4, GroupMetadataManager: which records each operation writes, and in which order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.consumer_records import (
    CONSUMER_RECORD_TYPES,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from coordinator_sim.kafka.records import GroupMetadataKey, GroupMetadataValue, LogRecord
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX
from coordinator_sim.trace.consumer_members import (
    AWAY_EPOCH,
    NONE_HELD,
    STATES,
    Held,
    SeenMember,
    TopicName,
    assignment_bytes,
    held,
    id_text,
    resources_of,
)
from coordinator_sim.trace.events import Event, RebalanceReason

CONSUMER: Final = "consumer"
GROUP_TYPE: Final = "group_type"
"""Attribute of the events that both types of groups have, with `CONSUMER` as its value."""
SCANNED: Final = "topics"
"""Attribute of the LIFECYCLE event of a scan for expressions: how many topics were looked at."""
TEMPORARY: Final = "temporary"
"""Attribute of a static member that left for a while."""
AWAY: Final = "temporarily"
"""Its value, as brokers log it."""
FROM_TYPE: Final = "from_type"
"""Attribute of a conversion: the type that the group had."""
TO_TYPE: Final = "to_type"
"""Attribute of a conversion: the type that the group has from then on."""
CONVERTED: Final = "group converted"
"""Reason of the LIFECYCLE event of a group that is of another type from then on."""
_NOTHING: Final[Mapping[str, Any]] = {}
_DEFAULT_ASSIGNOR: Final = "default"
"""Where no member asks for an assignor, and nobody tells which is the broker's first."""
_NO_EPOCH: Final = -1

Told = tuple[Event, dict[str, Any]]
"""An event and its columns, those of time and group left out."""


class Beside(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a batch beside its records.

    Args:
        departure: The event of members that go: they left, failed, or were removed.
        departed: More columns of that event, such as the session timeout.
        assignor: Who computed a target; None where members' wishes decide.
        name_of: The names of topics.
        had_members: Whether the classic group that this one was until now had any.
        has_hash: Whether the release has a hash of topics, be it 0.
        judge: Says of a member that goes what `departure` and `departed` say of all, for readers
            that can only infer it.
    """

    departure: Event = Event.MEMBER_LEFT
    departed: Mapping[str, Any] = _NOTHING
    assignor: str | None = None
    name_of: TopicName = id_text
    had_members: bool = False
    has_hash: bool = False
    judge: Callable[[SeenMember], tuple[Event, Mapping[str, Any]]] | None = None


NOTHING_BESIDE: Final = Beside()
"""The records say it all."""
_REASONS: Final = {
    Event.MEMBER_LEFT: RebalanceReason.MEMBER_LEFT,
    Event.MEMBER_FAILED: RebalanceReason.MEMBER_FAILED,
    Event.MEMBER_KICKED: RebalanceReason.REBALANCE_TIMEOUT,
}


class ConsumerGroupStory:
    """One consumer group, followed record by record.

    Attributes:
        group_epoch: Of the last record of it.
        target_epoch: Of the last target.
        members: By id, in the order in which they came.
        topic_names: By id, as far as records tell them.
    """

    __slots__ = (
        "_changed",
        "_reconciled",
        "_was_settled",
        "group_epoch",
        "members",
        "target_epoch",
        "targets",
        "topic_names",
    )

    def __init__(self) -> None:
        self.group_epoch = _NO_EPOCH
        self.target_epoch = _NO_EPOCH
        self.members: dict[str, SeenMember] = {}
        self.targets: dict[str, Held] = {}
        self.topic_names: dict[bytes, str] = {}
        self._changed: dict[str, None] = {}
        """Members whose targets were written since the last target's epoch was."""
        self._reconciled: set[str] = set()
        self._was_settled = True

    @property
    def is_stable(self) -> bool:
        """Whether there are members, and all have reached the newest target."""
        return (
            bool(self.members)
            and self.target_epoch >= self.group_epoch
            and len(self._reconciled) == len(self.members)
        )

    def told(self, records: Sequence[LogRecord], known: Beside) -> Iterator[Told]:
        """Yield what a batch of this group's records tells, and follow it.

        Args:
            records: Written together, in their order.
            known: What is known beside.
        """
        batch = _Batch(self, records, known)
        for record in records:
            yield from batch.told(record)
        yield from batch.settled()

    def is_as(self, other: "ConsumerGroupStory") -> bool:
        """Whether both tell of the same members at the same epochs."""
        epochs = self.group_epoch, self.target_epoch
        return epochs == (other.group_epoch, other.target_epoch) and self.members == other.members

    def loaded(self, records: Iterable[LogRecord], group_epoch: int, target_epoch: int) -> None:
        """Follow records of members without telling of them: they are what the group is."""
        for _ in self.told(tuple(records), NOTHING_BESIDE):
            pass
        self.group_epoch = group_epoch
        self.new_target(target_epoch)
        self._was_settled = self.is_stable or not self.members

    # -- how it changes ----------------------------------------------------------------------

    def put(self, member: SeenMember) -> None:
        """Add or replace a member."""
        self.members[member.member_id] = member
        if member.is_at(self.target_epoch):
            self._reconciled.add(member.member_id)
        else:
            self._reconciled.discard(member.member_id)

    def remove(self, member_id: str) -> SeenMember | None:
        """Remove a member, and return it."""
        self._reconciled.discard(member_id)
        return self.members.pop(member_id, None)

    def put_target(self, member_id: str, target: Held | None, *, is_new: bool) -> None:
        """Set what a member shall have; None where it shall have nothing any more.

        Args:
            member_id: The member.
            target: Of the record; None for a tombstone.
            is_new: Whether it is part of a new target, and not of one that was taken over.
        """
        self._changed.pop(member_id, None)
        if target is None:
            self.targets.pop(member_id, None)
            return
        self.targets[member_id] = target
        if is_new:
            self._changed[member_id] = None

    def new_target(self, epoch: int) -> list[str]:
        """Another target is complete; return the members whose part has changed."""
        self.target_epoch = epoch
        self._reconciled = {name for name, each in self.members.items() if each.is_at(epoch)}
        changed = [name for name in self._changed if name in self.members]
        self._changed.clear()
        return changed

    def settles(self) -> bool:
        """Whether every member has reached the newest target since this was asked last."""
        is_settled = self.is_stable
        has_settled = is_settled and not self._was_settled
        self._was_settled = is_settled or not self.members
        return has_settled

    def unsettle(self) -> None:
        """Another epoch begins: the next target is to be reached."""
        self._was_settled = False

    # -- what its events have ----------------------------------------------------------------

    def size(self) -> dict[str, Any]:
        """How many members there are, as columns of an event."""
        members = self.members.values()
        return {
            "members": len(members),
            "static_members": sum(each.instance_id is not None for each in members),
        }

    def wished(self) -> str | None:
        """The assignor that most members ask for; None where nobody asks for one."""
        wishes = Counter(each.assignor for each in self.members.values() if each.assignor)
        return max(sorted(wishes), key=wishes.__getitem__, default=None)

    def protocol_name(self, assignor: str | None = None) -> str:
        """The assignor of the group's targets: the given one, or the one that most ask for."""
        return SERVER_PREFIX + (assignor or self.wished() or _DEFAULT_ASSIGNOR)

    def name_of(self, known: TopicName) -> TopicName:
        """Return the names of topics: as records tell them, or else as `known` does."""
        names = self.topic_names
        return lambda topic_id: names.get(topic_id) or known(topic_id)


class _Batch:
    """A batch while its records are gone through."""

    def __init__(
        self, story: ConsumerGroupStory, records: Sequence[LogRecord], known: Beside
    ) -> None:
        self._story = story
        self._known = known
        self._name_of = story.name_of(known.name_of)
        self._reason: RebalanceReason | None = None
        self._cause: dict[str, Any] = {}
        self._is_downgrade = any(
            isinstance(record.key, GroupMetadataKey) and record.value is not None
            for record in records
        )
        gone = [
            record.key.member_id
            for record in records
            if record.value is None and isinstance(record.key, ConsumerGroupMemberMetadataKey)
        ]
        self._leaving: dict[str, SeenMember] = {
            name: story.members[name] for name in gone if name in story.members
        }
        self._instances = {
            each.instance_id: name
            for name, each in self._leaving.items()
            if each.instance_id is not None
        }
        self._kept = {
            member.member_id
            for record in records
            if isinstance(record.value, GroupMetadataValue)
            for member in record.value.members
        }
        """Members that go on in the classic group that this one becomes."""
        self._heirs: set[str] = set()
        """Members that have taken a static one's place in this batch."""
        self._replaced = {
            self._instances[record.value.instance_id]
            for record in records
            if isinstance(record.value, ConsumerGroupMemberMetadataValue)
            and record.value.instance_id in self._instances
        }

    def told(self, record: LogRecord) -> Iterator[Told]:
        """Follow one record, and yield what it tells."""
        key, value = record.key, record.value
        match key:
            case GroupMetadataKey():
                yield self._converted(is_upgrade=value is None)
            case ConsumerGroupMemberMetadataKey():
                yield from self._member(key.member_id, value)
            case ConsumerGroupMetadataKey():
                yield from self._epoch(value)
            case ConsumerGroupPartitionMetadataKey():
                self._topics(value)
            case ConsumerGroupTargetAssignmentMemberKey():
                self._part(key.member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                yield from self._target(value)
            case ConsumerGroupCurrentMemberAssignmentKey():
                yield from self._step(key.member_id, value)

    def settled(self) -> Iterator[Told]:
        """Yield what the whole batch has led to."""
        story = self._story
        if story.settles():
            columns = {"generation": story.target_epoch, "protocol_type": CONSUMER, **story.size()}
            yield Event.TARGET_REACHED, columns

    # -- members -----------------------------------------------------------------------------

    def _member(self, member_id: str, value: object) -> Iterator[Told]:
        story = self._story
        if not isinstance(value, ConsumerGroupMemberMetadataValue):
            gone = story.remove(member_id)
            if gone is not None and member_id not in self._replaced | self._kept:
                yield from self._gone(gone)
            return
        before = story.members.get(member_id)
        member = (before or SeenMember(member_id=member_id)).with_metadata(value)
        story.put(member)
        if before is None:
            yield self._came(member)
        elif (before.topics, before.regex) != (member.topics, member.regex):
            self._caused(RebalanceReason.METADATA_CHANGED, member)
        elif before.assignor != member.assignor:
            self._caused(RebalanceReason.ASSIGNOR_CHANGED, member)

    def _came(self, member: SeenMember) -> Told:
        columns: dict[str, Any] = {
            **member.names(),
            "generation": self._story.group_epoch,
            "protocol_type": CONSUMER,
            "rebalance_timeout_ms": max(member.rebalance_timeout_ms, 0) or None,
            "subscription": member.subscription(),
        }
        attrs = {GROUP_TYPE: CONSUMER, **member.wishes()}
        old_id = self._instances.get(member.instance_id) if member.instance_id else None
        self._caused(RebalanceReason.MEMBER_JOINED, member)
        if old_id in self._replaced:
            self._heirs.add(member.member_id)
            return Event.STATIC_REPLACED, columns | {"attrs": {**attrs, "old_member_id": old_id}}
        return Event.MEMBER_ADDED, columns | {"attrs": attrs}

    def _gone(self, member: SeenMember) -> Iterator[Told]:
        known = self._known
        kind, departed = known.departure, known.departed
        if known.judge is not None:
            kind, departed = known.judge(member)
        self._caused(_REASONS[kind], member)
        columns = {
            **member.names(),
            "generation": self._story.group_epoch,
            "protocol_type": CONSUMER,
            **departed,
        }
        attrs = {GROUP_TYPE: CONSUMER, **departed.get("attrs", {})}
        yield kind, columns | {"attrs": attrs}

    def _step(self, member_id: str, value: object) -> Iterator[Told]:
        story = self._story
        before = story.members.get(member_id)
        if not isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            return
        member = (before or SeenMember(member_id=member_id)).with_assignment(value)
        story.put(member)
        if before is not None and member.epoch == AWAY_EPOCH:
            attrs = {GROUP_TYPE: CONSUMER, TEMPORARY: AWAY}
            columns = {
                **member.names(),
                "generation": story.group_epoch,
                "protocol_type": CONSUMER,
            }
            yield Event.MEMBER_LEFT, columns | {"attrs": attrs}
            return
        if member != before and member.epoch > 0:
            yield Event.MEMBER_STEP, self._step_columns(member)

    def _step_columns(self, member: SeenMember) -> dict[str, Any]:
        target = self._story.targets.get(member.member_id, NONE_HELD)
        waiting = sum(
            len(set(indexes) - set(member.assigned.get(topic_id, ())))
            for topic_id, indexes in target.items()
        )
        attrs = {
            "state": STATES.get(member.state, "Unknown"),
            "previous_epoch": str(member.previous_epoch),
            "waiting": str(waiting),
        }
        if member.revoking:
            attrs["revoking"] = resources_of(member.revoking, self._name_of)
        return {
            **member.names(),
            "generation": member.epoch,
            "protocol_type": CONSUMER,
            "assignment": assignment_bytes(member.assigned, self._name_of),
            "attrs": attrs,
        }

    # -- the group ---------------------------------------------------------------------------

    def _caused(self, reason: RebalanceReason, member: SeenMember) -> None:
        """Remember why the group's epoch grows: the first reason of a batch counts."""
        if self._reason is None:
            self._reason = reason
            self._cause = {**member.names(), "subscription": member.subscription()}

    def _converted(self, *, is_upgrade: bool) -> Told:
        """A classic group's record in the batch: the group is of another type from here on."""
        story = self._story
        types = ("classic", CONSUMER) if is_upgrade else (CONSUMER, "classic")
        attrs = dict(zip((FROM_TYPE, TO_TYPE), types, strict=True))
        if is_upgrade and not self._known.had_members:
            attrs["empty"] = "1"
        if not is_upgrade and not (story.members or self._leaving):
            attrs["empty"] = "1"
        return Event.LIFECYCLE, {"reason_text": CONVERTED, "attrs": attrs}

    def _epoch(self, value: object) -> Iterator[Told]:
        story = self._story
        if not isinstance(value, ConsumerGroupMetadataValue):
            if not self._is_downgrade:
                attrs = {GROUP_TYPE: CONSUMER}
                yield Event.GROUP_DEAD, {"generation": story.group_epoch, "attrs": attrs}
            return
        has_grown = value.epoch != story.group_epoch
        is_new = story.group_epoch == _NO_EPOCH and not story.members
        story.group_epoch = value.epoch
        if not has_grown or is_new:
            return
        story.unsettle()
        yield (
            Event.EPOCH_BUMPED,
            {
                **self._cause,
                "generation": value.epoch,
                "protocol_type": CONSUMER,
                "reason": self._reason or RebalanceReason.TOPICS_CHANGED,
                **story.size(),
                "attrs": self._hash(value.metadata_hash),
            },
        )
        # Several operations may share a batch: what comes now has a cause of its own.
        self._reason, self._cause = None, {}
        if not story.members:
            columns = {"generation": value.epoch, "protocol_type": CONSUMER, **story.size()}
            yield Event.GROUP_EMPTY, columns | {"attrs": {GROUP_TYPE: CONSUMER}}

    def _hash(self, metadata_hash: int) -> dict[str, str]:
        """The hash of the topics, where the release has one."""
        is_told = self._known.has_hash or metadata_hash
        return {"metadata_hash": str(metadata_hash)} if is_told else {}

    def _topics(self, value: object) -> None:
        if isinstance(value, ConsumerGroupPartitionMetadataValue):
            for topic in value.topics:
                self._story.topic_names[topic.topic_id] = topic.topic_name

    def _part(self, member_id: str, value: object) -> None:
        target = None
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            target = held(value.topic_partitions)
        self._story.put_target(member_id, target, is_new=member_id not in self._heirs)

    def _target(self, value: object) -> Iterator[Told]:
        story = self._story
        if not isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            story.new_target(_NO_EPOCH)
            return
        changed = story.new_target(value.assignment_epoch)
        if not story.members:
            return
        shared: dict[str, Any] = {
            "generation": value.assignment_epoch,
            "protocol_type": CONSUMER,
            "protocol_name": story.protocol_name(self._known.assignor),
        }
        attrs = {"changed": str(len(changed))}
        yield Event.TARGET_COMPUTED, shared | story.size() | {"attrs": attrs}
        for name in changed:
            assignment = assignment_bytes(story.targets[name], self._name_of)
            columns = {**story.members[name].names(), "assignment": assignment}
            yield Event.TARGET_ASSIGNED, shared | columns


def is_of_consumer_group(record: LogRecord) -> bool:
    """Whether a record is of a consumer group."""
    return type(record.key) in CONSUMER_RECORD_TYPES
