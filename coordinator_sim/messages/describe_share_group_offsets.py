"""The messages of DescribeShareGroupOffsets.

Written by tools/write_messages.py from schemas/DescribeShareGroupOffsets.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class DescribeShareGroupOffsetsRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_name: str = ""
    partitions: tuple[int, ...] = ()


class DescribeShareGroupOffsetsRequestGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    group_id: str = ""
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = ()


class DescribeShareGroupOffsetsRequest(Struct, frozen=True, gc=False):
    """DescribeShareGroupOffsetsRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = ()


class DescribeShareGroupOffsetsResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = ()


class DescribeShareGroupOffsetsResponseGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    group_id: str = ""
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(Struct, frozen=True, gc=False):
    """DescribeShareGroupOffsetsResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    throttle_time_ms: int = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = ()
