"""The end of a transaction, as a broker asks its own group coordinator for it.

A broker asks once for each offsets partition of a WriteTxnMarkers.

Source: kafka trunk, GroupCoordinator.completeTransaction.
"""

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode


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
