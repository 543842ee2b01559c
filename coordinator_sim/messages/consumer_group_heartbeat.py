"""The messages of ConsumerGroupHeartbeat.

Written by tools/write_messages.py from schemas/ConsumerGroupHeartbeat.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class ConsumerGroupHeartbeatRequest(Struct, frozen=True, gc=False):
    """ConsumerGroupHeartbeatRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


class ConsumerGroupHeartbeatResponseTopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class Assignment(Struct, frozen=True, gc=False):
    """The value of `assignment`."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = ()


class ConsumerGroupHeartbeatResponse(Struct, frozen=True, gc=False):
    """ConsumerGroupHeartbeatResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
