"""Requests and responses of offsets committed in transactions.

As in `messages`: one struct an API, all versions' fields, Kafka's names. `CompleteTransaction` is
no request of Kafka's protocol: it is what a broker asks of its own group coordinator for each
offsets partition of a WriteTxnMarkers.

Source: kafka trunk, clients/src/main/resources/common/message/{AddOffsetsToTxn,TxnOffsetCommit,
WriteTxnMarkers}*.json; GroupCoordinator.completeTransaction.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    NO_GENERATION_ID,
    UNKNOWN_MEMBER_ID,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)


class AddOffsetsToTxnRequest(Struct, frozen=True, kw_only=True):
    """Adds the offsets partition of a group to a transaction."""

    api_key: ClassVar[ApiKey] = ApiKey.ADD_OFFSETS_TO_TXN
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class AddOffsetsToTxnResponse(Struct, frozen=True, kw_only=True):
    """NONE, or why the partition was not added."""

    error_code: ErrorCode = ErrorCode.NONE


class TxnOffsetCommitRequest(Struct, frozen=True, kw_only=True):
    """Stores offsets that become visible when their transaction commits.

    Versions below 3 have no member: generation -1, empty member id.
    """

    api_key: ClassVar[ApiKey] = ApiKey.TXN_OFFSET_COMMIT
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    topics: tuple[OffsetCommitTopic, ...]
    generation_id: int = NO_GENERATION_ID
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None


class TxnOffsetCommitResponse(Struct, frozen=True, kw_only=True):
    """One outcome a partition: there is no error of the whole."""

    topics: tuple[OffsetCommitTopicResult, ...]


class WritableMarker(Struct, frozen=True, kw_only=True):
    """The end of one producer's transaction on partitions of one broker.

    Args:
        committed: True to commit, False to abort.
        topics: Topic and partitions that took part.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    topics: tuple[tuple[str, tuple[int, ...]], ...]
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequest(Struct, frozen=True, kw_only=True):
    """Ends transactions; sent by a transaction coordinator to the leaders of the partitions."""

    api_key: ClassVar[ApiKey] = ApiKey.WRITE_TXN_MARKERS
    markers: tuple[WritableMarker, ...]


class MarkerResult(Struct, frozen=True, kw_only=True):
    """The outcomes for one producer: topic, and an error for each of its partitions."""

    producer_id: int
    topics: tuple[OffsetCommitTopicResult, ...]


class WriteTxnMarkersResponse(Struct, frozen=True, kw_only=True):
    """One result a marker."""

    markers: tuple[MarkerResult, ...]


class CompleteTransaction(Struct, frozen=True, kw_only=True):
    """Ends a producer's transaction on one partition of `__consumer_offsets`."""

    partition: int
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0


class TransactionCompleted(Struct, frozen=True, kw_only=True):
    """NONE when the marker is committed, or the group coordinator's own error.

    The broker's answer to a WriteTxnMarkers says NOT_LEADER_OR_FOLLOWER where the coordinator is
    not there. Source: KafkaApis.handleWriteTxnMarkersRequest.
    """

    error_code: ErrorCode = ErrorCode.NONE
