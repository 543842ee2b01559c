"""The messages of AlterShareGroupOffsets.

Written by tools/write_messages.py from schemas/AlterShareGroupOffsets.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class AlterShareGroupOffsetsRequestPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    start_offset: int = 0


class AlterShareGroupOffsetsRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_name: str = ""
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = ()


class AlterShareGroupOffsetsRequest(Struct, frozen=True, gc=False):
    """AlterShareGroupOffsetsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    group_id: str = ""
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = ()


class AlterShareGroupOffsetsResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...] = ()


class AlterShareGroupOffsetsResponse(Struct, frozen=True, gc=False):
    """AlterShareGroupOffsetsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = ()
