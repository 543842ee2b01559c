"""The messages of UpdateMetadata.

Written by tools/write_messages.py from schemas/UpdateMetadata.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class UpdateMetadataPartitionState(Struct, frozen=True, gc=False):
    """An entry of `ungroupedPartitionStates`."""

    topic_name: str = ""
    partition_index: int = 0
    controller_epoch: int = 0
    leader: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    zk_version: int = 0
    replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class UpdateMetadataTopicState(Struct, frozen=True, gc=False):
    """An entry of `topicStates`."""

    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_states: tuple[UpdateMetadataPartitionState, ...] = ()


class UpdateMetadataEndpoint(Struct, frozen=True, gc=False):
    """An entry of `endpoints`."""

    port: int = 0
    host: str = ""
    listener: str = ""
    security_protocol: int = 0


class UpdateMetadataBroker(Struct, frozen=True, gc=False):
    """An entry of `liveBrokers`."""

    id: int = 0
    v0_host: str = ""
    v0_port: int = 0
    endpoints: tuple[UpdateMetadataEndpoint, ...] = ()
    rack: str | None = ""


class UpdateMetadataRequest(Struct, frozen=True, gc=False):
    """UpdateMetadataRequest of versions 0 to 8."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_METADATA
    controller_id: int = 0
    is_kraft_controller: bool = False
    type: int = 0
    controller_epoch: int = 0
    broker_epoch: int = -1
    ungrouped_partition_states: tuple[UpdateMetadataPartitionState, ...] = ()
    topic_states: tuple[UpdateMetadataTopicState, ...] = ()
    live_brokers: tuple[UpdateMetadataBroker, ...] = ()


class UpdateMetadataResponse(Struct, frozen=True, gc=False):
    """UpdateMetadataResponse of versions 0 to 8."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_METADATA
    error_code: ErrorCode = ErrorCode.NONE
