"""Offsets committed in transactions: TxnOffsetCommit, and the end of the transaction.

Both begin here in every profile. Where groups keep the offsets, a commit goes on in
`scala_commits`, and what follows a marker in `scala_cleanup`.

Source: kafka trunk, GroupCoordinatorService.commitTransactionalOffsets and completeTransaction,
OffsetMetadataManager.commitTransactionalOffset, CoordinatorContext.completeTransaction.
"""

from coordinator_sim.coordinator.join import create_group
from coordinator_sim.coordinator.offset_records import commit_records
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.scala_cleanup import Materialisation, MaterialiseLater
from coordinator_sim.coordinator.scala_commits import scala_txn_commit
from coordinator_sim.coordinator.txn_validation import validate_txn_member
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import EndTransactionMarker
from coordinator_sim.protocol.transaction_messages import (
    CompleteTransaction,
    TransactionCompleted,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


def handle_txn_commit(
    runtime: Runtime,
    partition: Partition,
    request: TxnOffsetCommitRequest,
    parked: Parked,
) -> None:
    """Hold offsets until the transaction ends.

    The Java coordinator has verified the transaction by now, the Scala one has not.

    Source: OffsetMetadataManager.commitTransactionalOffset.
    """
    if not runtime.profile.has_coordinator_runtime:
        scala_txn_commit(runtime, partition, request, parked)
        return
    error = _validate(runtime, partition, request)
    if error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    records, results = commit_records(runtime, request.group_id, request.topics)
    effect = Effect(
        records=records,
        response=TxnOffsetCommitResponse(topics=results),
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        transactional=True,
    )
    runtime.submit(partition, parked, effect)


def _validate(runtime: Runtime, partition: Partition, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Source: OffsetMetadataManager.validateTransactionalOffsetCommit."""
    group = partition.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        create_group(runtime, partition, request.group_id)
        return ErrorCode.NONE
    return validate_txn_member(group, request)


def handle_complete(
    runtime: Runtime, partition: Partition, request: CompleteTransaction, parked: Parked
) -> None:
    """Write the marker: the offsets held for the producer count from there on, or are dropped."""
    follow = None
    if not runtime.profile.has_coordinator_runtime:
        due = Materialisation(partition.index, request.producer_id, request.committed)
        follow = MaterialiseLater(runtime, due)
    marker = EndTransactionMarker(
        committed=request.committed, coordinator_epoch=request.coordinator_epoch
    )
    effect = Effect(
        response=TransactionCompleted(),
        follow=follow,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        transactional=True,
        marker=marker,
    )
    runtime.submit(partition, parked, effect)
