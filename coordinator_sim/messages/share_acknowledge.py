"""The messages of ShareAcknowledge.

Written by tools/write_messages.py from schemas/ShareAcknowledge.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class AcknowledgementBatch(Struct, frozen=True, gc=False):
    """An entry of `acknowledgementBatches`."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: tuple[int, ...] = ()


class AcknowledgePartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


class AcknowledgeTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[AcknowledgePartition, ...] = ()


class ShareAcknowledgeRequest(Struct, frozen=True, gc=False):
    """ShareAcknowledgeRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_ACKNOWLEDGE
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: tuple[AcknowledgeTopic, ...] = ()


class LeaderIdAndEpoch(Struct, frozen=True, gc=False):
    """The value of `currentLeader`."""

    leader_id: int = 0
    leader_epoch: int = 0


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class ShareAcknowledgeTopicResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Struct, frozen=True, gc=False):
    """An entry of `nodeEndpoints`."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareAcknowledgeResponse(Struct, frozen=True, gc=False):
    """ShareAcknowledgeResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_ACKNOWLEDGE
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
