"""Members of the consumer protocol in action, and the heartbeats that they send.

What a member does with an assignment follows Java's consumer, which `clients/async_consumer` is.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from coordinator_sim.coordinator.topics import KnownTopic
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from coordinator_sim.replay.consumer_protocol.lives import Departure, Life

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STEP_ASIDE_EPOCH: Final = -2
HEARTBEAT_VERSION: Final = 1
_ID_BYTES: Final = 16


class Topics:
    """The topics of a group's work, as its coordinator knows them.

    Args:
        counts: Topic -> number of partitions.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.known = tuple(
            KnownTopic(name=name, topic_id=_id_of(name), partition_count=count)
            for name, count in sorted(counts.items())
        )
        self._names = {topic.topic_id: topic.name for topic in self.known}
        self._ids = {topic.name: topic.topic_id for topic in self.known}

    def partitions_of(self, assignment: Assignment) -> frozenset[TopicPartition]:
        """Return the partitions of an answer."""
        return frozenset(
            TopicPartition(self._names[each.topic_id], number)
            for each in assignment.topic_partitions
            for number in each.partitions
        )

    def told(self, partitions: frozenset[TopicPartition]) -> tuple[TopicPartitions, ...]:
        """Return partitions as a heartbeat names them."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            by_topic.setdefault(topic, []).append(number)
        return tuple(
            TopicPartitions(self._ids[topic], tuple(numbers)) for topic, numbers in by_topic.items()
        )


def _id_of(name: str) -> bytes:
    """Return a topic id derived from the name, because a trace has none; equal in every run."""
    return sha256(name.encode()).digest()[:_ID_BYTES]


@dataclass(slots=True, eq=False)
class Member:
    """A member in action.

    Attributes:
        epoch: Epoch that its next heartbeat tells.
        has: Partitions that it works on.
        target: Partitions that it was last told to have.
        sent_ms: When it sent its last heartbeat, or would have sent one that changes nothing.
        turn: Number of its heartbeats; a heartbeat that is due for an earlier turn is stale.
        is_live: Whether its process runs and is a member, or on the way to be one.
        is_reconciling: Whether it is on the way from what it has to its target.
    """

    life: Life
    topics: tuple[str, ...]
    epoch: int = JOIN_EPOCH
    has: frozenset[TopicPartition] = field(default_factory=frozenset)
    target: frozenset[TopicPartition] = field(default_factory=frozenset)
    sent_ms: int = 0
    turn: int = 0
    is_live: bool = False
    is_reconciling: bool = False

    @property
    def key(self) -> str:
        """Its instance id, or its member id: who works on a partition."""
        return self.life.instance_id or self.life.member_id

    @property
    def silent_ms(self) -> int | None:
        """When it falls silent; None for a member that does not."""
        return self.life.goes_ms if self.life.departure is Departure.FALLS_SILENT else None


def joining(
    member: Member, group_id: str, rebalance_timeout_ms: int, assignor: str | None
) -> ConsumerGroupHeartbeatRequest:
    """Return its first heartbeat, which tells everything."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member.life.member_id,
        member_epoch=JOIN_EPOCH,
        instance_id=member.life.instance_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=member.topics,
        server_assignor=assignor,
        topic_partitions=(),
    )


def beating(
    member: Member, group_id: str, told: tuple[TopicPartitions, ...] | None = None
) -> ConsumerGroupHeartbeatRequest:
    """Return a heartbeat; `told` are its partitions, after they have changed."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member.life.member_id,
        member_epoch=member.epoch,
        instance_id=member.life.instance_id,
        topic_partitions=told,
    )
