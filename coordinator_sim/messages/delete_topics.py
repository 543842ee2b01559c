"""The messages of DeleteTopics.

Written by tools/write_messages.py from schemas/DeleteTopics.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class DeleteTopicState(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str | None = None
    topic_id: bytes = ZERO_UUID


class DeleteTopicsRequest(Struct, frozen=True, gc=False):
    """DeleteTopicsRequest of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_TOPICS
    topics: tuple[DeleteTopicState, ...] = ()
    topic_names: tuple[str, ...] = ()
    timeout_ms: int = 0


class DeletableTopicResult(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopicsResponse(Struct, frozen=True, gc=False):
    """DeleteTopicsResponse of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_TOPICS
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
