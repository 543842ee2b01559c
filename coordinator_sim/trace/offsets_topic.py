"""Records of `__consumer_offsets` as trace events, whatever form they were read from.

Segments, the text of kafka-dump-log and that of console formatters all give `StoredRecord`s; what
they say of a group is said once, here. A group's record holds the end of its join phase
(`currentStateTimestamp`) and, as the record's own time, the instant of the leader's assignment.
Who came and went is inferred from two generations, with a confidence below 1.

Records of groups with epochs in the offsets topic, as events by `epoch_batches`.

Records name topics by their ids alone. A topic is called by its name where records tell it before
anything is told of the topic: a record of the group's topics, a commit, or a member that subscribes
to one topic and is given partitions of one. Otherwise it is called by its id, throughout.

Why a member went no record tells. It is inferred, with a confidence below 1: a static member that
was away did not come back in time; of others their last commits tell, as for classic groups.

Source: kafka 4.4, GroupMetadataManager and OffsetMetadataManager: when a record is written;
GroupMetadataValue.json, OffsetCommitValue.json.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import NO_PRODUCER_ID, LogRecord
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.trace import epoch_members
from coordinator_sim.trace.epoch_batches import told_by
from coordinator_sim.trace.epoch_groups import UNTOLD_CONFIDENCE, Beside, EpochGroupStory
from coordinator_sim.trace.epoch_records import TYPE_OF_KEY, group_of, is_of_epoch_group, member_of
from coordinator_sim.trace.events import Event, OffsetEntry, Source, TimeKind, TraceEvent

SESSION_US: Final = 45_000_000
"""A member that was silent for so long has failed. Source: `group.consumer.session.timeout.ms`."""
_SHORTEST_SESSION_US: Final = 6_000_000
"""Session timeout below which brokers are hardly set; one that left has been silent for less."""
_AWAY_CONFIDENCE: Final = 0.9
_FAILED_CONFIDENCE: Final = 0.6
_LEFT_CONFIDENCE: Final = 0.7
LastCommit = Callable[[list[tuple[str, int]]], tuple[int, int | None] | None]
"""Of partitions, when the group committed the last of them, and how long after the time before, in
microseconds; None without any commit."""


def _topic_ids(value: epoch_members.PartValue | epoch_members.StepValue) -> list[bytes]:
    """The topics of which a member is given partitions, or has some."""
    if isinstance(value, epoch_members.PartValue):
        found = epoch_members.part_of(value)
    else:
        found = epoch_members.SeenMember(member_id="").with_assignment(value).assigned
    return [name for name in found.owned if isinstance(name, bytes)]


class EpochGroupsTopic:
    """The groups with epochs of one or more partitions of the offsets topic."""

    _stories: dict[str, EpochGroupStory]
    _names: dict[bytes, str]
    _shown: dict[bytes, str]

    def __init__(self) -> None:
        self._stories = {}
        self._names = {}
        self._shown = {}
        """How a topic was called first; it keeps that name."""

    def learn(self, topic_id: bytes, name: str) -> None:
        """Hear the name of a topic."""
        self._names[topic_id] = name

    def unnamed(self, value: object) -> list[bytes]:
        """The topics in a record's value that have no name so far, by their ids."""
        if not isinstance(value, epoch_members.PartValue | epoch_members.StepValue):
            return []
        return [each for each in _topic_ids(value) if each not in self._names]

    def told(
        self,
        group_id: str,
        records: Sequence[LogRecord],
        columns: Mapping[str, Any],
        last_commit: LastCommit,
    ) -> Iterator[TraceEvent]:
        """Yield what records of one group tell that were written together.

        Args:
            group_id: The group.
            records: Its records, in their order.
            columns: Time and place of the events.
            last_commit: See `LastCommit`.
        """
        story = self._story_of(group_id, records)
        self._learn_from(story, records)
        beside = Beside(
            name_of=self._name_of,
            judge=lambda member: self._judged(story, member, columns, last_commit),
        )
        for event, own in told_by(story, records, beside):
            yield TraceEvent(event=event, **{**columns, **own})
            if event is Event.GROUP_DEAD:
                self._stories.pop(group_id, None)

    def _story_of(self, group_id: str, records: Sequence[LogRecord]) -> EpochGroupStory:
        """The story so far; another one where the id is of a group of another type by now."""
        story = self._stories.get(group_id)
        types = (TYPE_OF_KEY.get(type(record.key)) for record in records)
        group_type = next(name for name in types if name is not None)
        if story is None or story.group_type != group_type:
            story = self._stories[group_id] = EpochGroupStory(group_type)
        return story

    def _learn_from(self, story: EpochGroupStory, records: Sequence[LogRecord]) -> None:
        """Find names of topics in a batch: one topic subscribed to, and one that is given."""
        said = {name: (each.topics, each.regex) for name, each in story.members.items()}
        for record in records:
            value, member_id = record.value, member_of(record.key)
            if isinstance(value, epoch_members.MetadataValue):
                member = epoch_members.SeenMember(member_id=member_id).with_metadata(value)
                said[member_id] = member.topics, member.regex
            if not isinstance(value, epoch_members.PartValue | epoch_members.StepValue):
                continue
            topics, regex = said.get(member_id, ((), None))
            ids = _topic_ids(value)
            if regex is None and len(topics) == 1 and len(ids) == 1:
                self._names.setdefault(ids[0], topics[0])

    def _name_of(self, topic_id: bytes) -> str:
        shown = self._shown.get(topic_id)
        if shown is None:
            shown = self._shown[topic_id] = self._names.get(topic_id) or epoch_members.id_text(
                topic_id
            )
        return shown

    def _judged(
        self,
        story: EpochGroupStory,
        member: epoch_members.SeenMember,
        columns: Mapping[str, Any],
        last_commit: LastCommit,
    ) -> tuple[Event, Mapping[str, Any]]:
        """Why a member went, as far as its records and commits show it."""
        if member.epoch == epoch_members.AWAY_EPOCH:
            return Event.MEMBER_FAILED, {"confidence": _AWAY_CONFIDENCE}
        owned = [
            (topic, each.partition)
            for each in epoch_members.partitions_of(member.assigned.owned, self._name_of)
            for topic in story.sources.get(each.topic, (each.topic,))
        ]
        said = last_commit(owned)
        if said is not None:
            last_us, period_us = said
            silent_us = columns["ts_us"] - last_us
            if silent_us >= SESSION_US:
                return Event.MEMBER_FAILED, {"confidence": _FAILED_CONFIDENCE}
            if period_us is not None and silent_us < min(2 * period_us, _SHORTEST_SESSION_US):
                return Event.MEMBER_LEFT, {"confidence": _LEFT_CONFIDENCE}
        return Event.MEMBER_LEFT, {"confidence": UNTOLD_CONFIDENCE}


_MS: Final = 1_000
"""Microseconds of a millisecond."""
CLEANING_US: Final = 600_000_000
"""A group's tombstone is up to this late. Source: `offsets.retention.check.interval.ms`."""
_CAME_CONFIDENCE: Final = 0.9
_UNTIMED: Final = -1
_OF_GROUP: Final = -2
"""In place of a producer id: the records of a group with epochs that were written together."""
_COMMITS_REMEMBERED: Final = 1_000_000
"""Limit of remembered commits of all groups, by which a member's end is judged."""
_WITH_ASSIGNMENTS: Final = frozenset(Source) - {Source.FORMATTER_TEXT}
"""Forms in which a member's bytes are printed; without them, what it owns is not known."""


class StoredRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One record of the offsets topic, and where it stood.

    Args:
        record: What it says.
        offset: Its offset; the line number where a form has none. Order of its source.
        timestamp_ms: The record's time.
        partition: Of `__consumer_offsets`; None where it is not known.
        producer_id: Of a transaction that has not ended yet; -1 for plain records.
        is_timed: Whether `timestamp_ms` is the record's own; else it is that of one before it.
    """

    record: LogRecord
    offset: int
    timestamp_ms: int
    partition: int | None = None
    producer_id: int = NO_PRODUCER_ID
    is_timed: bool = True


class TransactionEnd(Struct, frozen=True, gc=False):
    """The end of a producer's transaction: from then on its commits count, or never."""

    producer_id: int
    committed: bool
    timestamp_ms: int


@dataclass(slots=True)
class _Group:
    """State of a group by its last GroupMetadata record."""

    generation: int
    members: dict[str, MemberMetadata] = field(default_factory=dict)
    sync_us: int = 0
    is_dead: bool = False


_DEAD: Final = _Group(-1, is_dead=True)
"""All groups that ended share this one."""


@dataclass(slots=True)
class _Commits:
    """When a partition's offset was committed last, and how long after the time before."""

    last_us: int
    period_us: int | None = None


class OffsetsTopic:
    """Turns the records of one or more partitions of the offsets topic into events.

    Records of a partition are to come in the order of their offsets. A record that repeats what
    its group already was gives no event. Commits of one group that follow each other in a batch
    become one event, whose `seq` is the offset of the first.

    Args:
        source: What the records were read from.
        source_ref: Names the file in the events; may be changed between records.

    Attributes:
        aborted: File -> commits of transactions that were aborted.
    """

    source_ref: str
    aborted: dict[str, int]
    _open: dict[int, list[tuple[str, StoredRecord]]]
    _source: Source
    _groups: dict[str, _Group]
    _commits: dict[tuple[str, str, int], _Commits]
    _epoch_groups: EpochGroupsTopic

    def __init__(self, source: Source, source_ref: str) -> None:
        self.source_ref = source_ref
        self.aborted = {}
        self._open = {}
        self._source = source
        self._groups = {}
        self._commits = {}
        self._epoch_groups = EpochGroupsTopic()

    def read(self, records: Iterable[StoredRecord | TransactionEnd]) -> Iterator[TraceEvent]:
        """Yield the events of records that were written together, in their order.

        The commits of a transaction are told at the time of its end.
        """
        for key, run in groupby(records, key=_run_of):
            for first in run:
                if isinstance(first, TransactionEnd):
                    yield from self._ended(first)
                elif first.producer_id >= 0:
                    held = self._open.setdefault(first.producer_id, [])
                    held.append((self.source_ref, first))
                elif isinstance(key, int):
                    yield from self._group_events(first)
                elif is_of_epoch_group(first.record.key):
                    rest = [each for each in run if isinstance(each, StoredRecord)]
                    yield from self._epoch_events([first, *rest])
                else:
                    rest = [each for each in run if isinstance(each, StoredRecord)]
                    yield from self._offset_events([first, *rest])

    def name_topic(self, topic_id: bytes, name: str) -> None:
        """Hear the name of a topic that records of such groups call by its id."""
        self._epoch_groups.learn(topic_id, name)

    def unnamed(self, records: Iterable[StoredRecord]) -> set[bytes]:
        """The topics in records that have no name so far, by their ids."""
        values = (each.record.value for each in records)
        return {topic_id for value in values for topic_id in self._epoch_groups.unnamed(value)}

    def unfinished(self) -> dict[str, int]:
        """File -> commits of transactions whose end was not read; whether they count is open."""
        counts: dict[str, int] = {}
        for held in self._open.values():
            for source_ref, _stored in held:
                counts[source_ref] = counts.get(source_ref, 0) + 1
        return counts

    def _ended(self, end: TransactionEnd) -> Iterator[TraceEvent]:
        held = self._open.pop(end.producer_id, [])
        if not end.committed:
            for source_ref, _stored in held:
                self.aborted[source_ref] = self.aborted.get(source_ref, 0) + 1
            return
        now = self.source_ref
        timed = ((ref, replace(each, timestamp_ms=end.timestamp_ms)) for ref, each in held)
        for (source_ref, _key), run in groupby(
            timed, key=lambda entry: (entry[0], _run_of(entry[1]))
        ):
            self.source_ref = source_ref
            yield from self._offset_events([stored for _ref, stored in run])
        self.source_ref = now

    def _epoch_events(self, run: list[StoredRecord]) -> Iterator[TraceEvent]:
        first = run[0]
        group_id = group_of(first.record.key)
        columns = self._columns(first, group_id, first.timestamp_ms * _MS, TimeKind.RECORD)
        records = [each.record for each in run]
        last_commit = partial(self._committed_at, group_id)
        yield from self._epoch_groups.told(group_id, records, columns, last_commit)

    # -- offsets -----------------------------------------------------------------------------

    def _offset_events(self, run: list[StoredRecord]) -> Iterator[TraceEvent]:
        first = run[0]
        at_us = first.timestamp_ms * _MS
        commits, tombstones = [], []
        for stored in run:
            key, value = stored.record.key, stored.record.value
            if not isinstance(key, OffsetCommitKey):
                continue
            if isinstance(value, OffsetCommitValue):
                commits.append(_entry(key, value))
                self._note_commit(key, at_us)
                if value.topic_id != ZERO_UUID:
                    self._epoch_groups.learn(value.topic_id, key.topic)
            else:
                tombstones.append(OffsetEntry(key.topic, key.partition, -1))
                self._commits.pop((key.group, key.topic, key.partition), None)
        key = first.record.key
        group_id = key.group if isinstance(key, OffsetCommitKey) else None
        attrs = {} if first.producer_id < 0 else {"producer_id": str(first.producer_id)}
        for event, entries in (
            (Event.OFFSET_COMMIT, commits),
            (Event.OFFSET_TOMBSTONE, tombstones),
        ):
            if entries:
                yield TraceEvent(
                    event=event,
                    offsets=tuple(entries),
                    attrs=dict(attrs),
                    **self._columns(first, group_id, at_us, TimeKind.RECORD),
                )

    def _note_commit(self, key: OffsetCommitKey, at_us: int) -> None:
        where = (key.group, key.topic, key.partition)
        known = self._commits.get(where)
        if known is None:
            if len(self._commits) < _COMMITS_REMEMBERED:
                self._commits[where] = _Commits(at_us)
            return
        if at_us > known.last_us:
            known.period_us = at_us - known.last_us
            known.last_us = at_us

    # -- groups ------------------------------------------------------------------------------

    def _group_events(self, stored: StoredRecord) -> Iterator[TraceEvent]:
        key, value = stored.record.key, stored.record.value
        if not isinstance(key, GroupMetadataKey):
            return
        known = self._groups.get(key.group)
        if value is None:
            if known is None or not known.is_dead:
                yield self._died(stored, key.group, known)
            self._groups[key.group] = _DEAD
            return
        if not isinstance(value, GroupMetadataValue):
            return
        members = {member.member_id: member for member in value.members}
        if known is not None and not known.is_dead and known.generation == value.generation:
            yield from self._changed(stored, key.group, known, value)
            known.members = members
            return
        yield from self._generation(stored, key.group, known, value)
        self._groups[key.group] = _Group(value.generation, members, stored.timestamp_ms * _MS)

    def _died(self, stored: StoredRecord, group_id: str, known: _Group | None) -> TraceEvent:
        columns = self._columns(stored, group_id, stored.timestamp_ms * _MS, TimeKind.INFERRED)
        columns["ts_err_us"] = CLEANING_US
        generation = None if known is None else known.generation
        return TraceEvent(event=Event.GROUP_DEAD, generation=generation, **columns)

    def _generation(
        self,
        stored: StoredRecord,
        group_id: str,
        known: _Group | None,
        value: GroupMetadataValue,
    ) -> Iterator[TraceEvent]:
        """Yield what a generation that is not the last one tells."""
        at_us = stored.timestamp_ms * _MS
        is_timed = value.current_state_timestamp != _UNTIMED
        joined_us = value.current_state_timestamp * _MS if is_timed else at_us
        columns = self._columns(stored, group_id, joined_us, TimeKind.EVENT)
        columns["generation"] = value.generation
        if not is_timed:
            columns["ts_kind"] = TimeKind.INFERRED
            columns["ts_err_us"] = _longest_us(value)
        begins = known is not None or value.generation == 1
        if not value.members and value.generation == 0:
            # A Java coordinator writes a new group before anybody is in it: no rebalance ended.
            return
        before = {} if known is None else known.members
        # A new leader joined before the former one went, and so did all of a group that nobody
        # stayed in: else it would have been empty.
        came_first = bool(before) and value.leader not in before
        came_us = {"ts_us": joined_us - _MS} if came_first else {}
        came = list(self._came(before, value, columns | came_us)) if begins else []
        if came_first:
            yield from came
        if known is not None and before:
            yield from self._gone(group_id, known, value, columns)
        if not value.members:
            yield TraceEvent(
                event=Event.GROUP_EMPTY, protocol_type=value.protocol_type or None, **columns
            )
            return
        if not came_first:
            yield from came
        shared: dict[str, Any] = {
            "protocol_type": value.protocol_type or None,
            "protocol_name": value.protocol,
            "leader_id": value.leader,
            "members": len(value.members),
            "static_members": sum(member.group_instance_id is not None for member in value.members),
        }
        yield TraceEvent(event=Event.JOIN_COMPLETE, **columns, **shared)
        columns = self._columns(stored, group_id, at_us, TimeKind.RECORD)
        columns["generation"] = value.generation
        yield TraceEvent(event=Event.SYNC_LEADER, **columns, **shared)
        for member in value.members:
            yield self._assigned(member, value, columns)

    def _changed(
        self,
        stored: StoredRecord,
        group_id: str,
        known: _Group,
        value: GroupMetadataValue,
    ) -> Iterator[TraceEvent]:
        """Yield what a generation tells that is stored again: a static member that returned."""
        columns = self._columns(stored, group_id, stored.timestamp_ms * _MS, TimeKind.RECORD)
        columns["generation"] = value.generation
        held = {
            member.group_instance_id: member.member_id
            for member in known.members.values()
            if member.group_instance_id is not None
        }
        for member in value.members:
            before = known.members.get(member.member_id)
            if before is not None and before.assignment == member.assignment:
                continue
            name = member.group_instance_id
            old_id = None if name is None else held.get(name)
            old = None if old_id is None else known.members.get(old_id)
            if before is None and old_id is not None:
                yield TraceEvent(
                    event=Event.STATIC_REPLACED,
                    member_id=member.member_id,
                    group_instance_id=name,
                    attrs={"old_member_id": old_id, "rebalance": "0"},
                    **columns,
                )
            if old is not None and old.assignment == member.assignment:
                # It took over what its predecessor has: nothing was assigned.
                continue
            yield self._assigned(member, value, columns)

    def _assigned(
        self, member: MemberMetadata, value: GroupMetadataValue, columns: dict[str, Any]
    ) -> TraceEvent:
        return TraceEvent(
            event=Event.ASSIGNED,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
            leader_id=value.leader,
            rebalance_timeout_ms=_told(member.rebalance_timeout),
            session_timeout_ms=_told(member.session_timeout),
            subscription=member.subscription or None,
            assignment=member.assignment if self._source in _WITH_ASSIGNMENTS else None,
            **_names(member),
            **columns,
        )

    def _came(
        self,
        before: dict[str, MemberMetadata],
        value: GroupMetadataValue,
        columns: dict[str, Any],
    ) -> Iterator[TraceEvent]:
        inferred = _inferred(columns, _CAME_CONFIDENCE)
        # Who joins an empty group first leads it; records list members in no such order.
        for member in sorted(value.members, key=lambda each: each.member_id != value.leader):
            if member.member_id not in before:
                yield TraceEvent(event=Event.MEMBER_ADDED, **_names(member), **inferred)

    def _gone(
        self,
        group_id: str,
        known: _Group,
        value: GroupMetadataValue,
        columns: dict[str, Any],
    ) -> Iterator[TraceEvent]:
        """Yield the ends of members that are in a generation no more.

        One that committed until just before left; one that was silent for a session timeout failed.
        Where nothing tells the two apart, no event does.
        """
        stays = {member.member_id for member in value.members}
        at_us: int = columns["ts_us"]
        for member in known.members.values():
            if member.member_id in stays:
                continue
            said = self._last_commit(group_id, _owned(member.assignment))
            if said is None:
                continue
            silent_us = at_us - max(said.last_us, known.sync_us)
            session_us = member.session_timeout * _MS
            poll_us = member.rebalance_timeout * _MS
            if 0 < session_us < poll_us < silent_us:
                continue  # It may have left because its poll timeout expired.
            if session_us > 0 and silent_us >= session_us:
                inferred = _inferred(columns, _FAILED_CONFIDENCE)
                yield TraceEvent(
                    event=Event.MEMBER_FAILED,
                    session_timeout_ms=member.session_timeout,
                    **_names(member),
                    **inferred,
                )
            elif said.period_us is not None and silent_us < 2 * said.period_us:
                inferred = _inferred(columns, _LEFT_CONFIDENCE)
                yield TraceEvent(event=Event.MEMBER_LEFT, **_names(member), **inferred)

    def _committed_at(
        self, group_id: str, owned: list[tuple[str, int]]
    ) -> tuple[int, int | None] | None:
        found = self._last_commit(group_id, owned)
        return None if found is None else (found.last_us, found.period_us)

    def _last_commit(self, group_id: str, owned: list[tuple[str, int]]) -> _Commits | None:
        """Return the latest commit of these partitions; None without any."""
        latest: _Commits | None = None
        for topic, partition in owned:
            commit = self._commits.get((group_id, topic, partition))
            if commit is not None and (latest is None or commit.last_us > latest.last_us):
                latest = commit
        return latest

    def _columns(
        self, stored: StoredRecord, group_id: str | None, at_us: int, kind: TimeKind
    ) -> dict[str, Any]:
        is_known = stored.is_timed or kind is TimeKind.EVENT
        return {
            "ts_us": at_us,
            "ts_kind": kind if is_known else TimeKind.INFERRED,
            "ts_err_us": _MS if is_known else CLEANING_US,
            "seq": stored.offset,
            "group_id": group_id,
            "offsets_partition": stored.partition,
            "source": self._source,
            "source_ref": self.source_ref,
        }


def _run_of(stored: StoredRecord | TransactionEnd) -> int | tuple[str, int, int]:
    """The key of the request that wrote a record; its own offset where none is recorded."""
    if isinstance(stored, TransactionEnd):
        return -1
    key = stored.record.key
    if isinstance(key, OffsetCommitKey):
        return key.group, stored.timestamp_ms, stored.producer_id
    if is_of_epoch_group(key):
        return group_of(key), stored.timestamp_ms, _OF_GROUP
    return stored.offset


def _entry(key: OffsetCommitKey, value: OffsetCommitValue) -> OffsetEntry:
    return OffsetEntry(
        key.topic,
        key.partition,
        value.offset,
        value.leader_epoch,
        value.metadata or None,
        _instant_us(value.commit_timestamp),
        _instant_us(value.expire_timestamp),
    )


def _instant_us(instant_ms: int) -> int | None:
    return None if instant_ms < 0 else instant_ms * _MS


def _told(timeout_ms: int) -> int | None:
    return None if timeout_ms < 0 else timeout_ms


def _names(member: MemberMetadata) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id or None,
        "client_host": member.client_host or None,
    }


def _inferred(columns: dict[str, Any], confidence: float) -> dict[str, Any]:
    kind = {"ts_kind": TimeKind.INFERRED, "confidence": confidence}
    return {**columns, **kind}


def _longest_us(value: GroupMetadataValue) -> int:
    """The longest time a leader may take to assign: the members' longest timeout."""
    timeouts = [max(each.rebalance_timeout, each.session_timeout) for each in value.members]
    return max([*timeouts, 0]) * _MS


def _owned(assignment: bytes) -> list[tuple[str, int]]:
    """Return a consumer's partitions; none where the bytes are of another protocol."""
    if not assignment:
        return []
    try:
        found = decode_assignment(assignment).partitions
    except WireFormatError:
        return []
    return [(each.topic, each.partition) for each in found]
