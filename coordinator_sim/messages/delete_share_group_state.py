"""The messages of DeleteShareGroupState.

Written by tools/write_messages.py from schemas/DeleteShareGroupState.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0


class DeleteStateData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class DeleteShareGroupStateRequest(Struct, frozen=True, gc=False):
    """DeleteShareGroupStateRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_SHARE_GROUP_STATE
    group_id: str = ""
    topics: tuple[DeleteStateData, ...] = ()


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteStateResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()


class DeleteShareGroupStateResponse(Struct, frozen=True, gc=False):
    """DeleteShareGroupStateResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_SHARE_GROUP_STATE
    results: tuple[DeleteStateResult, ...] = ()
