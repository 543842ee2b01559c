"""The messages of ListOffsets.

Written by tools/write_messages.py from schemas/ListOffsets.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ListOffsetsPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    max_num_offsets: int = 1


class ListOffsetsTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[ListOffsetsPartition, ...] = ()


class ListOffsetsRequest(Struct, frozen=True, gc=False):
    """ListOffsetsRequest of versions 0 to 11."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS
    replica_id: int = 0
    isolation_level: int = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    old_style_offsets: tuple[int, ...] = ()
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


class ListOffsetsResponse(Struct, frozen=True, gc=False):
    """ListOffsetsResponse of versions 0 to 11."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS
    throttle_time_ms: int = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
