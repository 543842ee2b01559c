"""The messages of OffsetDelete.

Written by tools/write_messages.py from schemas/OffsetDelete.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class OffsetDeleteRequestPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0


class OffsetDeleteRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


class OffsetDeleteRequest(Struct, frozen=True, gc=False):
    """OffsetDeleteRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE
    group_id: str = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


class OffsetDeleteResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class OffsetDeleteResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


class OffsetDeleteResponse(Struct, frozen=True, gc=False):
    """OffsetDeleteResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE
    error_code: ErrorCode = ErrorCode.NONE
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
