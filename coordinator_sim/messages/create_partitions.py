"""The messages of CreatePartitions.

Written by tools/write_messages.py from schemas/CreatePartitions.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class CreatePartitionsAssignment(Struct, frozen=True, gc=False):
    """An entry of `assignments`."""

    broker_ids: tuple[int, ...] = ()


class CreatePartitionsTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    count: int = 0
    assignments: tuple[CreatePartitionsAssignment, ...] | None = ()


class CreatePartitionsRequest(Struct, frozen=True, gc=False):
    """CreatePartitionsRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_PARTITIONS
    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    name: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreatePartitionsResponse(Struct, frozen=True, gc=False):
    """CreatePartitionsResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_PARTITIONS
    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
