"""What the members of a consumer group subscribe to, and which assignor they would like.

Source: kafka 4.4, group-coordinator/.../modern/{SubscriptionCount,ModernGroup,TopicIds}.java and
modern/consumer/ConsumerGroup.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.consumer.member import ConsumerMember
from coordinator_sim.coordinator.timeline import TimelineTable
from coordinator_sim.kafka.orders.iteration_order import java_bucket
from coordinator_sim.kafka.partitioning import java_string_hash

_FIRST_CAPACITY: Final = 16


class SubscriptionCount(Struct, frozen=True, gc=False):
    """How many members name a topic, and how many expressions match it."""

    by_name: int = 0
    by_regex: int = 0


class ResolvedRegex(Struct, frozen=True, gc=False):
    """What an expression matched.

    Args:
        topics: Names.
        version: Of the topics that were looked through.
        timestamp_ms: When that was.
    """

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


TopicCounts = Mapping[str, SubscriptionCount]
"""Every topic that is subscribed to, existing or not."""


def _stepped(
    count: SubscriptionCount | None, step: int, *, by_name: bool
) -> SubscriptionCount | None:
    known = SubscriptionCount() if count is None else count
    if by_name:
        after = SubscriptionCount(known.by_name + step, known.by_regex)
    else:
        after = SubscriptionCount(known.by_name, known.by_regex + step)
    return after if after.by_name > 0 or after.by_regex > 0 else None


def counted_up(counts: TimelineTable[str, SubscriptionCount], topic: str, *, by_name: bool) -> None:
    """One more subscribes to a topic."""
    after = _stepped(counts.entries.get(topic), 1, by_name=by_name)
    if after is not None:
        counts.put(topic, after)


def counted_down(
    counts: TimelineTable[str, SubscriptionCount], topic: str, *, by_name: bool
) -> None:
    """One less does."""
    after = _stepped(counts.entries.get(topic), -1, by_name=by_name)
    if after is None:
        counts.remove(topic)
    else:
        counts.put(topic, after)


class CountedTopics:
    """A copy of a group's counts, to see what would be.

    Args:
        counts: Of the group as it is.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: TopicCounts) -> None:
        self.counts = dict(counts)

    def step(self, topics: Iterable[str], step: int, *, by_name: bool) -> None:
        """Count the topics of one member, or of one expression."""
        for topic in topics:
            after = _stepped(self.counts.get(topic), step, by_name=by_name)
            if after is None:
                self.counts.pop(topic, None)
            else:
                self.counts[topic] = after

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Count what a member named as what it names now."""
        if old is not None:
            self.step(old.subscribed_topic_names, -1, by_name=True)
        if new is not None:
            self.step(new.subscribed_topic_names, 1, by_name=True)


def is_homogeneous(regex_counts: Mapping[str, int], topics: TopicCounts, member_count: int) -> bool:
    """Whether all members subscribe to the same topics, as Kafka judges it by counting.

    Source: ConsumerGroup.subscriptionType.
    """
    if not regex_counts:
        return all(count.by_name == member_count for count in topics.values())
    if next(iter(regex_counts.values())) != member_count:
        return False
    return all(count.by_regex == 1 and count.by_name <= 0 for count in topics.values())


class CopiedCounts:
    """How many members would like each name, in the order of a HashMap made of Kafka's table.

    QUIRK: of two assignors that are liked equally the one that the map yields first wins, and the
    order of that map depends on how it came about.

    Args:
        counts: Of the group as it is, in the order of its table.

    Source: ConsumerGroup.computePreferredServerAssignor and computeSubscribedRegularExpressions.
    """

    __slots__ = ("_capacity", "_counts")

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        self._counts = list(counts)
        wanted = len(self._counts) * 4 // 3 + 1
        self._capacity = 1 << (wanted - 1).bit_length() if self._counts else _FIRST_CAPACITY

    def replace(self, old: str | None, new: str | None) -> None:
        """Count what a member liked as what it likes now; None is nothing."""
        if old is not None:
            self._step(old, -1)
        if new is not None:
            self._step(new, 1)

    def _step(self, name: str, step: int) -> None:
        for place, (known, count) in enumerate(self._counts):
            if known == name:
                self._counts[place] = (name, count + step)
                if count + step == 0:
                    del self._counts[place]
                return
        # HashMap.compute puts a new key at the head of its bucket, and grows before it does.
        while len(self._counts) * 4 > self._capacity * 3:
            self._capacity *= 2
        self._counts.insert(0, (name, step))

    def copied(self) -> "CopiedCounts":
        """The same in the order of a HashMap made of the table."""
        self._counts.sort(key=lambda entry: java_bucket(java_string_hash(entry[0]), self._capacity))
        return self

    def names(self) -> list[str]:
        """The names in their order."""
        return [name for name, _ in self._counts]

    def winner(self) -> str | None:
        """The name that is liked most; None where nobody asks for one."""
        return max(self._counts, key=lambda entry: entry[1])[0] if self._counts else None
