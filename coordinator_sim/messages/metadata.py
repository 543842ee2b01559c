"""The messages of Metadata.

Written by tools/write_messages.py from schemas/Metadata.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class MetadataRequestTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    name: str | None = ""


class MetadataRequest(Struct, frozen=True, gc=False):
    """MetadataRequest of versions 0 to 13."""

    api_key: ClassVar[ApiKey] = ApiKey.METADATA
    topics: tuple[MetadataRequestTopic, ...] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(Struct, frozen=True, gc=False):
    """An entry of `brokers`."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class MetadataResponseTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    error_code: ErrorCode = ErrorCode.NONE
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = -2_147_483_648


class MetadataResponse(Struct, frozen=True, gc=False):
    """MetadataResponse of versions 0 to 13."""

    api_key: ClassVar[ApiKey] = ApiKey.METADATA
    throttle_time_ms: int = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: int = -2_147_483_648
    error_code: ErrorCode = ErrorCode.NONE
