"""The messages of Fetch.

Written by tools/write_messages.py from schemas/Fetch.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class ReplicaState(Struct, frozen=True, gc=False):
    """The value of `replicaState`."""

    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: int = 9_223_372_036_854_775_807


class FetchTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Struct, frozen=True, gc=False):
    """An entry of `forgottenTopicsData`."""

    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class FetchRequest(Struct, frozen=True, gc=False):
    """FetchRequest of versions 0 to 18."""

    api_key: ClassVar[ApiKey] = ApiKey.FETCH
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2_147_483_647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""


class EpochEndOffset(Struct, frozen=True, gc=False):
    """The value of `divergingEpoch`."""

    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(Struct, frozen=True, gc=False):
    """The value of `currentLeader`."""

    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(Struct, frozen=True, gc=False):
    """The value of `snapshotId`."""

    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(Struct, frozen=True, gc=False):
    """An entry of `abortedTransactions`."""

    producer_id: int = 0
    first_offset: int = 0


class PartitionData(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    preferred_read_replica: int = -1
    records: bytes | None = None


class FetchableTopicResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Struct, frozen=True, gc=False):
    """An entry of `nodeEndpoints`."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponse(Struct, frozen=True, gc=False):
    """FetchResponse of versions 0 to 18."""

    api_key: ClassVar[ApiKey] = ApiKey.FETCH
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
