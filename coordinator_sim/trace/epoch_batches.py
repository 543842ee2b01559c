"""Derives trace events of a group with epochs from its batches of records.

Source: kafka 4.4, GroupMetadataManager: which records each operation writes, and in which order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from coordinator_sim.messages.consumer_group_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
)
from coordinator_sim.messages.group_records import GroupMetadataKey, GroupMetadataValue
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_records import (
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
)
from coordinator_sim.messages.streams_group_records import (
    StreamsGroupMetadataValue,
    StreamsGroupTopologyValue,
)
from coordinator_sim.trace import epoch_groups, epoch_members
from coordinator_sim.trace.epoch_records import SAID_BY, Says, member_of
from coordinator_sim.trace.events import Event, RebalanceReason

_CLASSIC: Final = "classic"
_OF_OTHERS: Final = (ConsumerGroupMetadataValue, ShareGroupMetadataValue)
_REASONS: Final = {
    Event.MEMBER_LEFT: RebalanceReason.MEMBER_LEFT,
    Event.MEMBER_FAILED: RebalanceReason.MEMBER_FAILED,
    Event.MEMBER_KICKED: RebalanceReason.REBALANCE_TIMEOUT,
}


def told_by(
    story: epoch_groups.EpochGroupStory, records: Sequence[LogRecord], known: epoch_groups.Beside
) -> Iterator[epoch_groups.Told]:
    """Yield what a batch of a group's records tells, and follow it.

    Args:
        story: What the group's records have told before.
        records: Written together, in their order.
        known: What is known beside.
    """
    batch = _Batch(story, records, known)
    for record in records:
        yield from batch.told(record)
    yield from batch.settled()


def load(
    story: epoch_groups.EpochGroupStory,
    records: Iterable[LogRecord],
    said: epoch_groups.EpochValue,
    target_epoch: int,
) -> None:
    """Load the state of a group from records of its members, and emit no events.

    Args:
        story: A group that has no state yet.
        records: Records of its members.
        said: Value of its last epoch record.
        target_epoch: Epoch of its last target.
    """
    for _ in told_by(story, tuple(records), epoch_groups.NOTHING_BESIDE):
        pass
    story.begin_loaded(said, target_epoch)


class _Batch:
    """A batch while its records are gone through."""

    def __init__(
        self,
        story: epoch_groups.EpochGroupStory,
        records: Sequence[LogRecord],
        known: epoch_groups.Beside,
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
            member_of(record.key)
            for record in records
            if record.value is None and SAID_BY.get(type(record.key)) is Says.MEMBER
        ]
        self._leaving: dict[str, epoch_members.SeenMember] = {
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
        came = (_instance_of(record.value) for record in records)
        self._replaced = {self._instances[name] for name in came if name in self._instances}

    def told(self, record: LogRecord) -> Iterator[epoch_groups.Told]:
        """Follow one record, and yield what it tells."""
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            yield self._converted(is_upgrade=value is None)
            return
        match SAID_BY.get(type(key)):
            case Says.MEMBER:
                yield from self._member(member_of(key), value)
            case Says.EPOCH:
                yield from self._epoch(value)
            case Says.TOPICS:
                self._topics(value)
            case Says.TOPOLOGY:
                self._topology(value)
            case Says.PART:
                self._part(member_of(key), value)
            case Says.TARGET:
                yield from self._target(value)
            case Says.STEP:
                yield from self._step(member_of(key), value)

    def settled(self) -> Iterator[epoch_groups.Told]:
        """Yield what the whole batch has led to."""
        story = self._story
        if story.settles():
            columns = {**self._of_group(story.target_epoch), **story.size()}
            yield Event.TARGET_REACHED, columns

    def _of_group(self, generation: int) -> dict[str, Any]:
        return {"generation": generation, "protocol_type": self._story.group_type}

    # -- members -----------------------------------------------------------------------------

    def _member(self, member_id: str, value: object) -> Iterator[epoch_groups.Told]:
        story = self._story
        if not isinstance(value, epoch_members.MetadataValue):
            gone = story.remove(member_id)
            if gone is not None and member_id not in self._replaced | self._kept:
                yield from self._gone(gone)
            return
        before = story.members.get(member_id)
        member = (before or epoch_members.SeenMember(member_id=member_id)).with_metadata(value)
        story.put(member)
        if before is None:
            yield self._came(member)
        else:
            reason = _changed(before, member)
            if reason is not None:
                self._caused(reason, member)

    def _came(self, member: epoch_members.SeenMember) -> epoch_groups.Told:
        columns: dict[str, Any] = {
            **member.names(),
            **self._of_group(self._story.group_epoch),
            "rebalance_timeout_ms": max(member.rebalance_timeout_ms, 0) or None,
            "subscription": member.subscription(),
        }
        attrs = {epoch_groups.GROUP_TYPE: self._story.group_type, **member.wishes()}
        old_id = self._instances.get(member.instance_id) if member.instance_id else None
        self._caused(RebalanceReason.MEMBER_JOINED, member)
        if old_id in self._replaced:
            self._heirs.add(member.member_id)
            return Event.STATIC_REPLACED, columns | {"attrs": {**attrs, "old_member_id": old_id}}
        return Event.MEMBER_ADDED, columns | {"attrs": attrs}

    def _gone(self, member: epoch_members.SeenMember) -> Iterator[epoch_groups.Told]:
        known = self._known
        kind, departed = known.departure, known.departed
        if known.judge is not None:
            kind, departed = known.judge(member)
        is_shown = epoch_groups.is_evident(departed.get("confidence", 1))
        self._caused(_REASONS[kind] if is_shown else RebalanceReason.UNKNOWN, member)
        columns = {
            **member.names(),
            **self._of_group(self._story.group_epoch),
            **departed,
        }
        attrs = {epoch_groups.GROUP_TYPE: self._story.group_type, **departed.get("attrs", {})}
        yield kind, columns | {"attrs": attrs}

    def _step(self, member_id: str, value: object) -> Iterator[epoch_groups.Told]:
        story = self._story
        before = story.members.get(member_id)
        if not isinstance(value, epoch_members.StepValue):
            return
        member = (before or epoch_members.SeenMember(member_id=member_id)).with_assignment(value)
        story.put(member)
        if before is not None and member.epoch == epoch_members.AWAY_EPOCH:
            attrs = {
                epoch_groups.GROUP_TYPE: story.group_type,
                epoch_groups.TEMPORARY: epoch_groups.AWAY,
            }
            columns = {**member.names(), **self._of_group(story.group_epoch)}
            yield Event.MEMBER_LEFT, columns | {"attrs": attrs}
            return
        if member != before and member.epoch > 0:
            yield Event.MEMBER_STEP, self._step_columns(member)

    def _step_columns(self, member: epoch_members.SeenMember) -> dict[str, Any]:
        target = self._story.targets.get(member.member_id, epoch_members.NOTHING)
        attrs = {
            "state": member.state,
            "previous_epoch": str(member.previous_epoch),
            "waiting": str(target.lacking(member.assigned)),
            **member.assigned.copies(),
        }
        if member.revoking.owned:
            attrs["revoking"] = epoch_members.resources_of(member.revoking.owned, self._name_of)
        return {
            **member.names(),
            **self._of_group(member.epoch),
            "assignment": epoch_members.assignment_bytes(member.assigned.owned, self._name_of),
            "attrs": attrs | member.revoking.copies("revoking_"),
        }

    # -- the group ---------------------------------------------------------------------------

    def _caused(self, reason: RebalanceReason, member: epoch_members.SeenMember) -> None:
        """Remember why the group's epoch grows: the first reason of a batch counts."""
        if self._reason is None:
            self._reason = reason
            self._cause = {**member.names(), "subscription": member.subscription()}

    def _converted(self, *, is_upgrade: bool) -> epoch_groups.Told:
        """A classic group's record in the batch: the group is of another type from here on."""
        story = self._story
        own = story.group_type
        types = (_CLASSIC, own) if is_upgrade else (own, _CLASSIC)
        attrs = dict(zip((epoch_groups.FROM_TYPE, epoch_groups.TO_TYPE), types, strict=True))
        if is_upgrade and not self._known.had_members:
            attrs["empty"] = "1"
        if not is_upgrade and not (story.members or self._leaving):
            attrs["empty"] = "1"
        return Event.LIFECYCLE, {"reason_text": epoch_groups.CONVERTED, "attrs": attrs}

    def _epoch(self, value: object) -> Iterator[epoch_groups.Told]:
        story = self._story
        if not isinstance(value, epoch_groups.EpochValue):
            if not self._is_downgrade:
                attrs = {epoch_groups.GROUP_TYPE: story.group_type}
                yield Event.GROUP_DEAD, {"generation": story.group_epoch, "attrs": attrs}
            story.said = None
            return
        before, story.said = story.said, value
        if before is None and not story.members:
            return
        if before is not None and before.epoch == value.epoch:
            return
        story.unsettle()
        yield (
            Event.EPOCH_BUMPED,
            {
                **self._cause,
                **self._of_group(value.epoch),
                "reason": self._reason or _why(before, value),
                **story.size(),
                "attrs": self._numbers(value),
            },
        )
        # Several operations may share a batch: what comes now has a cause of its own.
        self._reason, self._cause = None, {}
        if not story.members:
            columns = {**self._of_group(value.epoch), **story.size()}
            yield (
                Event.GROUP_EMPTY,
                columns | {"attrs": {epoch_groups.GROUP_TYPE: story.group_type}},
            )

    def _numbers(self, value: epoch_groups.EpochValue) -> dict[str, str]:
        """The hash of the topics, where the release has one; the topology of a streams group."""
        is_told = self._known.has_hash or value.metadata_hash
        attrs = {"metadata_hash": str(value.metadata_hash)} if is_told else {}
        if isinstance(value, StreamsGroupMetadataValue):
            attrs["validated_topology_epoch"] = str(value.validated_topology_epoch)
        return attrs

    def _topics(self, value: object) -> None:
        if isinstance(value, ConsumerGroupPartitionMetadataValue):
            for topic in value.topics:
                self._story.topic_names[topic.topic_id] = topic.topic_name
        elif isinstance(value, ShareGroupStatePartitionMetadataValue):
            for each in (*value.initializing_topics, *value.initialized_topics):
                self._story.topic_names[each.topic_id] = each.topic_name

    def _topology(self, value: object) -> None:
        if isinstance(value, StreamsGroupTopologyValue):
            self._story.sources = {
                each.subtopology_id: (
                    *each.source_topics,
                    *(topic.name for topic in each.repartition_source_topics),
                )
                for each in value.subtopologies
            }

    def _part(self, member_id: str, value: object) -> None:
        target = (
            epoch_members.part_of(value) if isinstance(value, epoch_members.PartValue) else None
        )
        self._story.put_target(member_id, target, is_new=member_id not in self._heirs)

    def _target(self, value: object) -> Iterator[epoch_groups.Told]:
        story = self._story
        if not isinstance(value, epoch_members.TargetValue):
            story.new_target(epoch_groups.NO_EPOCH)
            return
        epoch = value.assignment_epoch
        changed = story.new_target(epoch)
        if not story.members:
            return
        shared = {
            **self._of_group(epoch),
            "protocol_name": story.protocol_name(self._known.assignor),
        }
        attrs = {"changed": str(len(changed))}
        if self._known.delay_ms:
            attrs[epoch_groups.DELAY] = str(self._known.delay_ms)
        yield Event.TARGET_COMPUTED, shared | story.size() | {"attrs": attrs}
        for name in changed:
            part = story.targets[name]
            assignment = epoch_members.assignment_bytes(part.owned, self._name_of)
            columns = {**story.members[name].names(), "assignment": assignment}
            yield Event.TARGET_ASSIGNED, shared | columns | {"attrs": part.copies()}


def _instance_of(value: object) -> str:
    """The instance id that a member's record names; empty without one."""
    is_of_member = isinstance(value, epoch_members.MetadataValue)
    return (getattr(value, "instance_id", None) or "") if is_of_member else ""


def _changed(
    before: epoch_members.SeenMember, after: epoch_members.SeenMember
) -> RebalanceReason | None:
    """Why a member that says something else of itself may need another target.

    Source: hasMemberSubscriptionChanged; hasStreamsMemberMetadataChanged and
    hasEpochRelevantMemberConfigChanged, by which a static member's client and host do not count.
    """
    if before.topology_epoch != after.topology_epoch:
        return RebalanceReason.TOPOLOGY_CHANGED
    if (before.topics, before.regex) != (after.topics, after.regex):
        return RebalanceReason.METADATA_CHANGED
    if before.assignor != after.assignor:
        return RebalanceReason.ASSIGNOR_CHANGED
    if after.topology_epoch is None:
        return None
    is_other = before.process != after.process if after.instance_id else before != after
    return RebalanceReason.METADATA_CHANGED if is_other else None


def _why(before: epoch_groups.EpochValue | None, value: epoch_groups.EpochValue) -> RebalanceReason:
    """Why an epoch began that no member is the cause of: what its record says otherwise."""
    if isinstance(value, ConsumerGroupMetadataValue):
        return RebalanceReason.TOPICS_CHANGED
    if before is None:
        return RebalanceReason.UNKNOWN
    if before.metadata_hash != value.metadata_hash:
        return RebalanceReason.TOPICS_CHANGED
    if isinstance(value, ShareGroupMetadataValue) or isinstance(before, _OF_OTHERS):
        return RebalanceReason.PARTITIONS_INITIALIZED
    if before.validated_topology_epoch != value.validated_topology_epoch:
        return RebalanceReason.TOPOLOGY_CHANGED
    if before.last_assignment_configs != value.last_assignment_configs:
        return RebalanceReason.SETTINGS_CHANGED
    return RebalanceReason.TARGET_REFINED
