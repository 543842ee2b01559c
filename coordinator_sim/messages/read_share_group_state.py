"""The messages of ReadShareGroupState.

Written by tools/write_messages.py from schemas/ReadShareGroupState.json.
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


class ReadStateData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class ReadShareGroupStateRequest(Struct, frozen=True, gc=False):
    """ReadShareGroupStateRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE
    group_id: str = ""
    topics: tuple[ReadStateData, ...] = ()


class StateBatch(Struct, frozen=True, gc=False):
    """An entry of `stateBatches`."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: tuple[StateBatch, ...] = ()


class ReadStateResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()


class ReadShareGroupStateResponse(Struct, frozen=True, gc=False):
    """ReadShareGroupStateResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE
    results: tuple[ReadStateResult, ...] = ()
