"""The messages of WriteShareGroupState.

Written by tools/write_messages.py from schemas/WriteShareGroupState.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class StateBatch(Struct, frozen=True, gc=False):
    """An entry of `stateBatches`."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()


class WriteStateData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class WriteShareGroupStateRequest(Struct, frozen=True, gc=False):
    """WriteShareGroupStateRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.WRITE_SHARE_GROUP_STATE
    group_id: str = ""
    topics: tuple[WriteStateData, ...] = ()


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class WriteStateResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()


class WriteShareGroupStateResponse(Struct, frozen=True, gc=False):
    """WriteShareGroupStateResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.WRITE_SHARE_GROUP_STATE
    results: tuple[WriteStateResult, ...] = ()
