"""The messages of OffsetFetch.

Written by tools/write_messages.py from schemas/OffsetFetch.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class OffsetFetchRequestTopics(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_indexes: tuple[int, ...] = ()


class OffsetFetchRequestGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()


class OffsetFetchRequest(Struct, frozen=True, gc=False):
    """OffsetFetchRequest of versions 0 to 10."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False


class OffsetFetchResponsePartitions(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponseTopics(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()


class OffsetFetchResponseGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    group_id: str = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Struct, frozen=True, gc=False):
    """OffsetFetchResponse of versions 0 to 10."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH
    throttle_time_ms: int = 0
    groups: tuple[OffsetFetchResponseGroup, ...] = ()
