"""The topics a broker knows, and what it checks of a commit before the coordinator sees it.

Source: kafka trunk, KafkaApis.handleOffsetCommitRequest; OffsetCommitResponse.Builder.
"""

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    PartitionError,
)


class Topic(Struct, frozen=True):
    """A topic: its id of 16 bytes and its number of partitions."""

    topic_id: bytes
    partition_count: int


class CheckedCommit(Struct, frozen=True):
    """A commit without the partitions that do not exist, and the outcomes of those.

    Args:
        request: What is left for the coordinator; None when nothing is.
    """

    request: OffsetCommitRequest | None
    refused: tuple[OffsetCommitTopicResult, ...]

    def merge(self, response: OffsetCommitResponse) -> OffsetCommitResponse:
        """The coordinator's outcomes after the refused ones, topic by topic."""
        merged = {topic.name: topic for topic in self.refused}
        for topic in response.topics:
            before = merged.get(topic.name)
            partitions = (
                topic.partitions if before is None else before.partitions + topic.partitions
            )
            merged[topic.name] = OffsetCommitTopicResult(topic.name, partitions)
        return OffsetCommitResponse(topics=tuple(merged.values()))


def check_commit(request: OffsetCommitRequest, topics: dict[str, Topic]) -> CheckedCommit:
    """Take out of a commit what names no existing partition, and add the topics' ids."""
    refused: dict[str, tuple[PartitionError, ...]] = {}
    kept: list[OffsetCommitTopic] = []
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for asked in request.topics:
        topic = topics.get(asked.name)
        count = 0 if topic is None else topic.partition_count
        good = tuple(p for p in asked.partitions if 0 <= p.partition < count)
        bad = tuple(
            PartitionError(p.partition, unknown)
            for p in asked.partitions
            if not 0 <= p.partition < count
        )
        if bad:
            refused[asked.name] = refused.get(asked.name, ()) + bad
        if good and topic is not None:
            kept.append(OffsetCommitTopic(asked.name, good, topic.topic_id))
    return CheckedCommit(
        replace(request, topics=tuple(kept)) if kept else None,
        tuple(OffsetCommitTopicResult(name, errors) for name, errors in refused.items()),
    )
