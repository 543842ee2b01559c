"""The messages of DescribeProducers.

Written by tools/write_messages.py from schemas/DescribeProducers.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class TopicRequest(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class DescribeProducersRequest(Struct, frozen=True, gc=False):
    """DescribeProducersRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS
    topics: tuple[TopicRequest, ...] = ()


class ProducerState(Struct, frozen=True, gc=False):
    """An entry of `activeProducers`."""

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicResponse(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[PartitionResponse, ...] = ()


class DescribeProducersResponse(Struct, frozen=True, gc=False):
    """DescribeProducersResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS
    throttle_time_ms: int = 0
    topics: tuple[TopicResponse, ...] = ()
