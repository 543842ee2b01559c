"""The messages of ShareFetch.

Written by tools/write_messages.py from schemas/ShareFetch.json.
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


class FetchPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    partition_max_bytes: int = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


class FetchTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Struct, frozen=True, gc=False):
    """An entry of `forgottenTopicsData`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class ShareFetchRequest(Struct, frozen=True, gc=False):
    """ShareFetchRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_FETCH
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2_147_483_647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()


class LeaderIdAndEpoch(Struct, frozen=True, gc=False):
    """The value of `currentLeader`."""

    leader_id: int = 0
    leader_epoch: int = 0


class AcquiredRecords(Struct, frozen=True, gc=False):
    """An entry of `acquiredRecords`."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acknowledge_error_code: ErrorCode = ErrorCode.NONE
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: bytes | None = None
    acquired_records: tuple[AcquiredRecords, ...] = ()


class ShareFetchableTopicResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Struct, frozen=True, gc=False):
    """An entry of `nodeEndpoints`."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareFetchResponse(Struct, frozen=True, gc=False):
    """ShareFetchResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_FETCH
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[ShareFetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
