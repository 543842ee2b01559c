"""Records of groups with epochs in the offsets topic, as events by `epoch_batches`.

Records name topics by their ids alone. A topic is called by its name where records tell it before
anything is told of the topic: a record of the group's topics, a commit, or a member that subscribes
to one topic and is given partitions of one. Otherwise it is called by its id, throughout.

Why a member went no record tells. It is inferred, with a confidence below 1: a static member that
was away did not come back in time; of others their last commits tell, as for classic groups.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace import epoch_members
from coordinator_sim.trace.epoch_batches import told_by
from coordinator_sim.trace.epoch_groups import Beside, EpochGroupStory
from coordinator_sim.trace.epoch_records import TYPE_OF_KEY, member_of
from coordinator_sim.trace.events import Event, TraceEvent

SESSION_US: Final = 45_000_000
"""A member that was silent for so long has failed. Source: `group.consumer.session.timeout.ms`."""
_AWAY_CONFIDENCE: Final = 0.9
_FAILED_CONFIDENCE: Final = 0.6
_LEFT_CONFIDENCE: Final = 0.7
_UNTOLD_CONFIDENCE: Final = 0.5
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
            if period_us is not None and silent_us < 2 * period_us:
                return Event.MEMBER_LEFT, {"confidence": _LEFT_CONFIDENCE}
        return Event.MEMBER_LEFT, {"confidence": _UNTOLD_CONFIDENCE}
