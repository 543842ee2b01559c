"""The topics that the members of a generation subscribe to, as a broker parses them.

A broker parses consumers' subscriptions only, to find which offsets are in use. It does so when a
generation begins and when a group is loaded, not when a member changes its subscription.

DEVIATION: up to 4.3 a subscription with a truncated name, or a count beyond its end, stops Kafka's
generation half-way and its members never get a reply; here it counts as unreadable.

Source: kafka trunk, ClassicGroup.computeSubscribedTopics and isSubscribedToTopic.
"""

from collections.abc import Collection, Iterable
from typing import Final

from coordinator_sim.coordinator.member import Member
from coordinator_sim.messages.embedded.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    subscribed_topics,
)


class Subscriptions:
    """The subscriptions of one generation, read when somebody asks.

    Args:
        metadata: What each member brought for the chosen protocol; None if that is unreadable.
    """

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes] | None) -> None:
        self._metadata = None if metadata is None else tuple(metadata)
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str] | None:
        """Every topic that a member subscribes to; None if not known."""
        if self._metadata is not None:
            found: set[str] | None = set()
            for metadata in self._metadata:
                topics = subscribed_topics(metadata)
                found = None if found is None or topics is None else found.union(topics)
            self._metadata = None
            self._topics = None if found is None else frozenset(found)
        return self._topics


UNKNOWN_SUBSCRIPTIONS: Final = Subscriptions(None)
"""Of a group whose first generation has not begun."""


def is_consumer(protocol_type: str | None) -> bool:
    """Whether the members of such a group are consumers.

    Source: ClassicGroup.usesConsumerGroupProtocol.
    """
    return protocol_type == CONSUMER_PROTOCOL_TYPE


def subscriptions_of(
    protocol_type: str | None, protocol_name: str | None, members: Collection[Member]
) -> Subscriptions:
    """What the members of a group bring for the protocol chosen, as of now."""
    if not is_consumer(protocol_type) or (members and protocol_name is None):
        return UNKNOWN_SUBSCRIPTIONS
    return Subscriptions(member.metadata(protocol_name) for member in members)
