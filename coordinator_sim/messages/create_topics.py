"""The messages of CreateTopics.

Written by tools/write_messages.py from schemas/CreateTopics.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class CreatableReplicaAssignment(Struct, frozen=True, gc=False):
    """An entry of `assignments`."""

    partition_index: int = 0
    broker_ids: tuple[int, ...] = ()


class CreatableTopicConfig(Struct, frozen=True, gc=False):
    """An entry of `configs`."""

    name: str = ""
    value: str | None = ""


class CreatableTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Struct, frozen=True, gc=False):
    """CreateTopicsRequest of versions 0 to 7."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_TOPICS
    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: int = 60_000
    validate_only: bool = False


class CreatableTopicConfigs(Struct, frozen=True, gc=False):
    """An entry of `configs`."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    topic_config_error_code: ErrorCode = ErrorCode.NONE
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = ()


class CreateTopicsResponse(Struct, frozen=True, gc=False):
    """CreateTopicsResponse of versions 0 to 7."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_TOPICS
    throttle_time_ms: int = 0
    topics: tuple[CreatableTopicResult, ...] = ()
