"""The messages of ListPartitionReassignments.

Written by tools/write_messages.py from schemas/ListPartitionReassignments.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ListPartitionReassignmentsTopics(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class ListPartitionReassignmentsRequest(Struct, frozen=True, gc=False):
    """ListPartitionReassignmentsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_PARTITION_REASSIGNMENTS
    timeout_ms: int = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None


class OngoingPartitionReassignment(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class OngoingTopicReassignment(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


class ListPartitionReassignmentsResponse(Struct, frozen=True, gc=False):
    """ListPartitionReassignmentsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_PARTITION_REASSIGNMENTS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    topics: tuple[OngoingTopicReassignment, ...] = ()
