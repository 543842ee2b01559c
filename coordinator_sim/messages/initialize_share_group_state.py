"""The messages of InitializeShareGroupState.

Written by tools/write_messages.py from schemas/InitializeShareGroupState.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


class InitializeStateData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class InitializeShareGroupStateRequest(Struct, frozen=True, gc=False):
    """InitializeShareGroupStateRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.INITIALIZE_SHARE_GROUP_STATE
    group_id: str = ""
    topics: tuple[InitializeStateData, ...] = ()


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class InitializeStateResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()


class InitializeShareGroupStateResponse(Struct, frozen=True, gc=False):
    """InitializeShareGroupStateResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.INITIALIZE_SHARE_GROUP_STATE
    results: tuple[InitializeStateResult, ...] = ()
