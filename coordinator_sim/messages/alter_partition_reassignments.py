"""The messages of AlterPartitionReassignments.

Written by tools/write_messages.py from schemas/AlterPartitionReassignments.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ReassignablePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    replicas: tuple[int, ...] | None = None


class ReassignableTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[ReassignablePartition, ...] = ()


class AlterPartitionReassignmentsRequest(Struct, frozen=True, gc=False):
    """AlterPartitionReassignmentsRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    timeout_ms: int = 60_000
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...] = ()


class ReassignablePartitionResponse(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class ReassignableTopicResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    name: str = ""
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


class AlterPartitionReassignmentsResponse(Struct, frozen=True, gc=False):
    """AlterPartitionReassignmentsResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    responses: tuple[ReassignableTopicResponse, ...] = ()
