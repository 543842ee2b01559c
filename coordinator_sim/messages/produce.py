"""The messages of Produce.

Written by tools/write_messages.py from schemas/Produce.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class PartitionProduceData(Struct, frozen=True, gc=False):
    """An entry of `partitionData`."""

    index: int = 0
    records: bytes | None = None


class TopicProduceData(Struct, frozen=True, gc=False):
    """An entry of `topicData`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...] = ()


class ProduceRequest(Struct, frozen=True, gc=False):
    """ProduceRequest of versions 0 to 13."""

    api_key: ClassVar[ApiKey] = ApiKey.PRODUCE
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: tuple[TopicProduceData, ...] = ()


class BatchIndexAndErrorMessage(Struct, frozen=True, gc=False):
    """An entry of `recordErrors`."""

    batch_index: int = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(Struct, frozen=True, gc=False):
    """The value of `currentLeader`."""

    leader_id: int = -1
    leader_epoch: int = -1


class PartitionProduceResponse(Struct, frozen=True, gc=False):
    """An entry of `partitionResponses`."""

    index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class TopicProduceResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...] = ()


class NodeEndpoint(Struct, frozen=True, gc=False):
    """An entry of `nodeEndpoints`."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponse(Struct, frozen=True, gc=False):
    """ProduceResponse of versions 0 to 13."""

    api_key: ClassVar[ApiKey] = ApiKey.PRODUCE
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()
