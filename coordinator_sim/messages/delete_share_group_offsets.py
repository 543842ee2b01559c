"""The messages of DeleteShareGroupOffsets.

Written by tools/write_messages.py from schemas/DeleteShareGroupOffsets.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class DeleteShareGroupOffsetsRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(Struct, frozen=True, gc=False):
    """DeleteShareGroupOffsetsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    group_id: str = ""
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = ()


class DeleteShareGroupOffsetsResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(Struct, frozen=True, gc=False):
    """DeleteShareGroupOffsetsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = ()
