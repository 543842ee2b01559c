"""The messages of DescribeTopicPartitions.

Written by tools/write_messages.py from schemas/DescribeTopicPartitions.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class TopicRequest(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""


class Cursor(Struct, frozen=True, gc=False):
    """The value of `cursor`."""

    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(Struct, frozen=True, gc=False):
    """DescribeTopicPartitionsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    topics: tuple[TopicRequest, ...] = ()
    response_partition_limit: int = 2_000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


class DescribeTopicPartitionsResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    error_code: ErrorCode = ErrorCode.NONE
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2_147_483_648


class DescribeTopicPartitionsResponseCursor(Struct, frozen=True, gc=False):
    """The value of `nextCursor`."""

    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsResponse(Struct, frozen=True, gc=False):
    """DescribeTopicPartitionsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None
