"""The messages of OffsetForLeaderEpoch.

Written by tools/write_messages.py from schemas/OffsetForLeaderEpoch.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class OffsetForLeaderPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic: str = ""
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


class OffsetForLeaderEpochRequest(Struct, frozen=True, gc=False):
    """OffsetForLeaderEpochRequest of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    replica_id: int = -2
    topics: tuple[OffsetForLeaderTopic, ...] = ()


class EpochEndOffset(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    error_code: ErrorCode = ErrorCode.NONE
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic: str = ""
    partitions: tuple[EpochEndOffset, ...] = ()


class OffsetForLeaderEpochResponse(Struct, frozen=True, gc=False):
    """OffsetForLeaderEpochResponse of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
