"""The topics a broker knows, and what it checks of a commit before the coordinator sees it.

Source: kafka trunk, KafkaApis.handleOffsetCommitRequest; OffsetCommitResponse.Builder.
"""

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.protocol.admin_messages import (
    DeletedOffset,
    DeletedOffsetTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)
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


def check_delete(
    request: OffsetDeleteRequest, topics: dict[str, Topic]
) -> tuple[OffsetDeleteRequest, tuple[DeletedOffsetTopic, ...]]:
    """Take out of an OffsetDelete what names no existing partition, and say so of each.

    Source: KafkaApis.handleOffsetDeleteRequest; OffsetDeleteResponse.Builder.
    """
    refused: dict[str, tuple[DeletedOffset, ...]] = {}
    kept: list[OffsetDeleteTopic] = []
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for asked in request.topics:
        count = topics[asked.name].partition_count if asked.name in topics else 0
        good = tuple(index for index in asked.partitions if 0 <= index < count)
        bad = [index for index in asked.partitions if not 0 <= index < count]
        if bad:
            before = refused.get(asked.name, ())
            refused[asked.name] = before + tuple(DeletedOffset(index, unknown) for index in bad)
        if good:
            kept.append(OffsetDeleteTopic(asked.name, good))
    return (
        replace(request, topics=tuple(kept)),
        tuple(DeletedOffsetTopic(name, outcomes) for name, outcomes in refused.items()),
    )


def merge_delete(
    refused: tuple[DeletedOffsetTopic, ...], response: OffsetDeleteResponse
) -> OffsetDeleteResponse:
    """The coordinator's outcomes after the refused ones; an error of the group stands alone."""
    if response.error_code is not ErrorCode.NONE:
        return response
    merged = {topic.name: topic for topic in refused}
    for topic in response.topics:
        before = merged.get(topic.name)
        partitions = topic.partitions if before is None else before.partitions + topic.partitions
        merged[topic.name] = DeletedOffsetTopic(topic.name, partitions)
    return OffsetDeleteResponse(topics=tuple(merged.values()))
