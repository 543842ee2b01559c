"""The messages of ShareGroupHeartbeat.

Written by tools/write_messages.py from schemas/ShareGroupHeartbeat.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class ShareGroupHeartbeatRequest(Struct, frozen=True, gc=False):
    """ShareGroupHeartbeatRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_HEARTBEAT
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class Assignment(Struct, frozen=True, gc=False):
    """The value of `assignment`."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupHeartbeatResponse(Struct, frozen=True, gc=False):
    """ShareGroupHeartbeatResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_HEARTBEAT
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
