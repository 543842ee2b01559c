"""The messages of ReadShareGroupStateSummary.

Written by tools/write_messages.py from schemas/ReadShareGroupStateSummary.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    leader_epoch: int = 0


class ReadStateSummaryData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class ReadShareGroupStateSummaryRequest(Struct, frozen=True, gc=False):
    """ReadShareGroupStateSummaryRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    group_id: str = ""
    topics: tuple[ReadStateSummaryData, ...] = ()


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


class ReadStateSummaryResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()


class ReadShareGroupStateSummaryResponse(Struct, frozen=True, gc=False):
    """ReadShareGroupStateSummaryResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    results: tuple[ReadStateSummaryResult, ...] = ()
