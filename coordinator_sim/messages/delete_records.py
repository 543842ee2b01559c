"""The messages of DeleteRecords.

Written by tools/write_messages.py from schemas/DeleteRecords.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DeleteRecordsPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[DeleteRecordsPartition, ...] = ()


class DeleteRecordsRequest(Struct, frozen=True, gc=False):
    """DeleteRecordsRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_RECORDS
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class DeleteRecordsTopicResult(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


class DeleteRecordsResponse(Struct, frozen=True, gc=False):
    """DeleteRecordsResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_RECORDS
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
