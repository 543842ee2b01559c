"""The messages of OffsetCommit.

Written by tools/write_messages.py from schemas/OffsetCommit.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class OffsetCommitRequestPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    commit_timestamp: int = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()


class OffsetCommitRequest(Struct, frozen=True, gc=False):
    """OffsetCommitRequest of versions 0 to 10."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


class OffsetCommitResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class OffsetCommitResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


class OffsetCommitResponse(Struct, frozen=True, gc=False):
    """OffsetCommitResponse of versions 0 to 10."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
