"""The share session with one broker: its epoch, its partitions, and the requests made of it.

Source: kafka 4.4, clients/.../consumer/internals/ShareSessionHandler.java;
clients/.../common/requests/ShareRequestMetadata.java, ShareFetchRequest.java and
ShareAcknowledgeRequest.java (Builder.forConsumer).
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.clients.config import BATCH_OPTIMIZED, ShareConsumerConfig
from coordinator_sim.clients.share_consumer.acknowledgements import (
    Acknowledgements,
    OffsetBatch,
    TopicIdPartition,
    in_java_order,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, uuid_hash
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim.messages import share_acknowledge, share_fetch

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LARGEST_EPOCH: Final = 2**31 - 1
_REFUSED: Final = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
Batches = dict[TopicIdPartition, list[OffsetBatch]]


class ShareSession:
    """One member's share session with one broker (ShareSessionHandler).

    Args:
        group_id: The group.
        member_id: The member.

    Attributes:
        epoch: Epoch of the next request.
    """

    __slots__ = ("_acknowledgements", "_group_id", "_member_id", "_next", "_partitions", "epoch")

    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self.epoch = INITIAL_EPOCH
        self._partitions: dict[TopicPartition, TopicIdPartition] = {}
        self._next: dict[TopicPartition, TopicIdPartition] = {}
        self._acknowledgements: dict[TopicIdPartition, Acknowledgements] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request begins a session."""
        return self.epoch == INITIAL_EPOCH

    @property
    def is_empty(self) -> bool:
        """Whether the session has no partition."""
        return not self._partitions

    def add(self, tip: TopicIdPartition, acknowledgements: Acknowledgements | None) -> None:
        """Fetch from a partition with the next ShareFetch (addPartitionToFetch)."""
        self._next[tip.topic_partition] = tip
        if acknowledgements is not None:
            self.acknowledge(tip, acknowledgements)

    def acknowledge(self, tip: TopicIdPartition, acknowledgements: Acknowledgements) -> None:
        """Acknowledge with the next request (addPartitionToAcknowledgeOnly)."""
        self._acknowledgements[tip] = acknowledgements

    def close(self) -> None:
        """Let the next request end the session (notifyClose)."""
        self.epoch = FINAL_EPOCH

    def fetch_request(
        self, config: ShareConsumerConfig, *, may_skip: bool
    ) -> share_fetch.ShareFetchRequest | None:
        """Return the next ShareFetch; None where there is nothing to ask.

        Args:
            config: Has the limits of a fetch.
            may_skip: Whether another broker is asked for records now, so that this request only
                tells changes and acknowledgements.

        Source: newShareFetchBuilder.
        """
        added, removed = self._changed_partitions()
        batches, renews = self._take_batches()
        for tip in batches:
            if self._partitions.get(tip.topic_partition) != tip and tip not in removed:
                removed.append(tip)
        self._next = {}
        if not (added or removed or batches or self.epoch == FINAL_EPOCH) and (
            may_skip or not self._partitions
        ):
            return None
        limits = not (renews or may_skip)
        return share_fetch.ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=config.fetch_max_wait_ms * limits,
            min_bytes=config.fetch_min_bytes * limits,
            max_bytes=config.fetch_max_bytes * limits,
            max_records=config.max_poll_records * limits,
            batch_size=config.max_poll_records * limits,
            share_acquire_mode=int(config.acquire_mode != BATCH_OPTIMIZED),
            is_renew_ack=renews,
            topics=_fetched_topics([] if self.epoch == FINAL_EPOCH else added, batches),
            forgotten_topics_data=_forgotten(removed),
        )

    def _changed_partitions(self) -> tuple[list[TopicIdPartition], list[TopicIdPartition]]:
        """Make the session's partitions the next ones; return those added and those removed."""
        if self.is_new:
            self._partitions.update(self._next)
            return list(self._partitions.values()), []
        removed, replaced = [], []
        for partition, before in list(self._partitions.items()):
            now = self._next.pop(partition, None)
            if now is None:
                del self._partitions[partition]
                removed.append(before)
            elif now != before:
                self._next[partition] = self._partitions[partition] = now
                replaced.append(before)
        self._partitions.update(self._next)
        return list(self._next.values()), removed + replaced

    def acknowledge_request(self) -> share_acknowledge.ShareAcknowledgeRequest | None:
        """Return the next ShareAcknowledge; None without a session (newShareAcknowledgeBuilder)."""
        if self.is_new:
            self._next.clear()
            self._acknowledgements.clear()
            return None
        batches, renews = self._take_batches()
        topics: dict[bytes, list[share_acknowledge.AcknowledgePartition]] = {}
        for tip, each in in_java_order(batches):
            sent = tuple(share_acknowledge.AcknowledgementBatch(*batch) for batch in each)
            number = tip.topic_partition.partition
            topics.setdefault(tip.topic_id, []).append(
                share_acknowledge.AcknowledgePartition(number, sent)
            )
        return share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            is_renew_ack=renews,
            topics=tuple(
                share_acknowledge.AcknowledgeTopic(topic_id, tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
        )

    def _take_batches(self) -> tuple[Batches, bool]:
        """Take the acknowledgements off as batches; also whether one of them renews a lock."""
        taken, self._acknowledgements = self._acknowledgements, {}
        batches = {tip: list(each.batches()) for tip, each in taken.items()}
        found = {tip: each for tip, each in batches.items() if each}
        renews = any(AcknowledgeType.RENEW in b.types for each in found.values() for b in each)
        return found, renews

    def answered(self, error: ErrorCode, *, is_fetch: bool) -> bool:
        """Take the error of an answer; whether its partitions may be looked at (handleResponse)."""
        if error in _REFUSED or (is_fetch and error is ErrorCode.SHARE_SESSION_LIMIT_REACHED):
            self.lost()
        elif self.epoch != FINAL_EPOCH:
            # The epoch after the largest one is 1, as 0 begins a session.
            self.epoch = self.epoch % _LARGEST_EPOCH + 1
        return error is ErrorCode.NONE

    def lost(self) -> None:
        """Begin another session with the next request (handleError)."""
        self.epoch = INITIAL_EPOCH


def _fetched_topics(
    added: Iterable[TopicIdPartition], batches: Batches
) -> tuple[share_fetch.FetchTopic, ...]:
    """Return the partitions of a ShareFetch: those added, then others with acknowledgements."""
    found: dict[bytes, dict[int, share_fetch.FetchPartition]] = {}
    for topic_id, (_, number) in added:
        found.setdefault(topic_id, {})[number] = share_fetch.FetchPartition(number)
    for (topic_id, (_, number)), each in in_java_order(batches):
        found.setdefault(topic_id, {})[number] = share_fetch.FetchPartition(
            number,
            acknowledgement_batches=tuple(share_fetch.AcknowledgementBatch(*b) for b in each),
        )
    return tuple(
        share_fetch.FetchTopic(topic_id, tuple(partitions.values()))
        for topic_id, partitions in found.items()
    )


def _forgotten(removed: Iterable[TopicIdPartition]) -> tuple[share_fetch.ForgottenTopic, ...]:
    found: dict[bytes, list[int]] = {}
    for topic_id, (_, number) in removed:
        found.setdefault(topic_id, []).append(number)
    return tuple(
        share_fetch.ForgottenTopic(topic_id, tuple(found[topic_id]))
        for topic_id in java_hash_order(found, hash_of=uuid_hash)
    )
