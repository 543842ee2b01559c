"""A consumer's subscription: topics by name, topics by pattern, or partitions by hand.

The port keeps the assigned partitions and their positions; this module keeps the topics.

Source: kafka trunk, clients/.../consumer/internals/SubscriptionState.java.
"""

import re
from collections.abc import Iterable
from enum import Enum, unique

from coordinator_sim.errors import INVALID_PATTERN, ConfigError, InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition


@unique
class SubscriptionType(Enum):
    """How the consumer got its topics; it changes only by way of `NONE`."""

    NONE = "NONE"
    AUTO_TOPICS = "AUTO_TOPICS"
    AUTO_PATTERN = "AUTO_PATTERN"
    USER_ASSIGNED = "USER_ASSIGNED"


class SubscriptionState:
    """Topics of one consumer, sorted, and for a leader those of its group.

    Args:
        exclude_internal_topics: Whether a pattern never matches the broker's own topics.
    """

    __slots__ = ("_exclude_internal", "_pattern", "group_topics", "kind", "topics")

    def __init__(self, *, exclude_internal_topics: bool) -> None:
        self._exclude_internal = exclude_internal_topics
        self._pattern: re.Pattern[str] | None = None
        self.kind = SubscriptionType.NONE
        self.topics: tuple[str, ...] = ()
        self.group_topics: tuple[str, ...] = ()

    @property
    def is_automatic(self) -> bool:
        """Whether the group assigns partitions (hasAutoAssignedPartitions)."""
        return self.kind in (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN)

    @property
    def has_pattern(self) -> bool:
        """Whether the subscription is a pattern."""
        return self._pattern is not None

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to topics; return whether that is a change.

        Raises:
            InvariantViolation: the consumer has a pattern, or partitions assigned by hand.
        """
        self._be(SubscriptionType.AUTO_TOPICS)
        return self._change(topics)

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to topics whose whole name matches; empty until `match` gets the topics.

        Raises:
            InvariantViolation: the consumer has topics, or partitions assigned by hand.
            ConfigError: the pattern is malformed.
        """
        # DEVIATION: a pattern is a Python regular expression; Java's differ in rare forms, such as
        # Unicode character classes and intersections.
        try:
            compiled = re.compile(pattern)
        except INVALID_PATTERN as error:
            raise ConfigError(f"pattern {pattern!r}: {error}; write a regular expression") from None
        self._be(SubscriptionType.AUTO_PATTERN)
        self._pattern = compiled

    def match(self, cluster_topics: Iterable[str]) -> bool:
        """Subscribe to the matching topics of the cluster; return whether that is a change."""
        return self._change(topic for topic in cluster_topics if self._matches(topic))

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign partitions by hand; return whether that changed the topics.

        Raises:
            InvariantViolation: the consumer has a subscription.
        """
        self._be(SubscriptionType.USER_ASSIGNED)
        return self._change(partition.topic for partition in partitions)

    def unsubscribe(self) -> None:
        """Clear the subscription."""
        self.kind = SubscriptionType.NONE
        self._pattern = None
        self.topics = self.group_topics = ()

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """Watch these topics as leader; return whether some are not the consumer's own."""
        self.group_topics = tuple(sorted(dict.fromkeys(topics)))
        return any(topic not in self.topics for topic in self.group_topics)

    def metadata_topics(self) -> tuple[str, ...]:
        """Return the topics to ask Metadata for: the consumer's own and, as leader, its group's."""
        if not self.group_topics:
            return self.topics
        return tuple(sorted(dict.fromkeys((*self.group_topics, *self.topics))))

    def retains(self, topic: str, is_internal: bool) -> bool:
        """Whether metadata about this topic is kept.

        Source: kafka trunk, ConsumerMetadata.retainTopic.
        """
        if topic in self.topics or topic in self.group_topics:
            return True
        return self._matches(topic) and not (is_internal and self._exclude_internal)

    def admits(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all these partitions are of subscribed topics, or match the pattern."""
        if self._pattern is not None:
            return all(self._matches(partition.topic) for partition in partitions)
        return all(partition.topic in self.topics for partition in partitions)

    def _matches(self, topic: str) -> bool:
        return self._pattern is not None and self._pattern.fullmatch(topic) is not None

    def _change(self, topics: Iterable[str]) -> bool:
        wanted = tuple(sorted(dict.fromkeys(topics)))
        if wanted == self.topics:
            return False
        self.topics = wanted
        return True

    def _be(self, kind: SubscriptionType) -> None:
        if self.kind not in (SubscriptionType.NONE, kind):
            raise InvariantViolation(
                f"{kind.value} after {self.kind.value}: topics, pattern and partitions exclude "
                "each other; unsubscribe first"
            )
        self.kind = kind
