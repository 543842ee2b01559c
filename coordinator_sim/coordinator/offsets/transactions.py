"""Offsets committed in transactions: TxnOffsetCommit, and the end of the transaction.

The Scala coordinator's are in `scala.commits` and `scala.transactions`.

Source: kafka trunk, GroupCoordinatorService.commitTransactionalOffsets and completeTransaction,
OffsetMetadataManager.commitTransactionalOffset, CoordinatorContext.completeTransaction.
"""

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.classic.join import create_group
from coordinator_sim.coordinator.effects import Follow
from coordinator_sim.coordinator.epoch_offsets import txn_commit_refusal
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.offsets.commit_validation import validate_txn_member
from coordinator_sim.coordinator.offsets.offset_records import commit_records
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.records import EndTransactionMarker
from coordinator_sim.messages.txn_offset_commit import (
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

    The transaction is verified by now.

    Source: OffsetMetadataManager.commitTransactionalOffset.
    """
    error = _validate(runtime, partition, request, parked.context.api_version)
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


def _validate(
    runtime: Runtime, partition: Partition, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Source: OffsetMetadataManager.validateTransactionalOffsetCommit."""
    group = partition.groups.get(request.group_id)
    if group is None:
        if request.generation_id_or_member_epoch >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        create_group(runtime, partition, request.group_id)
        return ErrorCode.NONE
    if isinstance(group, Group):
        return validate_txn_member(group, request)
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    return txn_commit_refusal(runtime, group, request, api_version)


def handle_complete(
    runtime: Runtime, partition: Partition, request: CompleteTransaction, parked: Parked
) -> None:
    """Write the marker: the offsets held for the producer count from there on, or are dropped."""
    runtime.submit(partition, parked, marker_effect(request))


def marker_effect(request: CompleteTransaction, follow: Follow | None = None) -> Effect:
    """The append of a transaction's marker, answered once it is committed."""
    return Effect(
        response=TransactionCompleted(),
        follow=follow,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        transactional=True,
        marker=EndTransactionMarker(
            committed=request.committed, coordinator_epoch=request.coordinator_epoch
        ),
    )
