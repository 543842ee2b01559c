"""Offsets committed in transactions: TxnOffsetCommit, and the end of the transaction.

Source: kafka trunk, GroupCoordinatorService.commitTransactionalOffsets and completeTransaction,
OffsetMetadataManager.commitTransactionalOffset, CoordinatorContext.completeTransaction.
"""

from coordinator_sim.coordinator.contract import TransactionVerifier
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.join import create_group
from coordinator_sim.coordinator.offset_records import commit_records
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import EndTransactionMarker
from coordinator_sim.protocol.states import GroupState
from coordinator_sim.protocol.transaction_messages import (
    CompleteTransaction,
    TransactionCompleted,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_ABORTABLE_VERSION = 4


def verification_error(error: ErrorCode, api_version: int) -> ErrorCode:
    """What a verifier's finding is to a producer that asked in that version of TxnOffsetCommit.

    For verifiers: the coordinator passes on what it is told.

    Source: AddPartitionsToTxnManager, TransactionSupportedOperation of KafkaApis.
    """
    if error is ErrorCode.INVALID_TXN_STATE and api_version >= _ABORTABLE_VERSION:
        return ErrorCode.TRANSACTION_ABORTABLE
    return error


def verify(
    verifier: TransactionVerifier | None, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Ask whether the offsets partition is part of the producer's transaction."""
    return ErrorCode.NONE if verifier is None else verifier.verdict(request, api_version)


def handle_txn_commit(
    runtime: Runtime, partition: Partition, request: TxnOffsetCommitRequest, parked: Parked
) -> None:
    """Hold offsets until the transaction ends. The transaction has been verified.

    Source: OffsetMetadataManager.commitTransactionalOffset.
    """
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


def validate_txn_member(group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
    """The member is checked if the request names one, and whatever the group is doing.

    Source: ClassicGroup.validateOffsetCommit with isTransactional.
    """
    generation_id = request.generation_id
    instance_id = request.group_instance_id
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation_id < 0 and not request.member_id and instance_id is None:
        return ErrorCode.NONE
    error = group.validate_member(request.member_id, instance_id)
    if error is not ErrorCode.NONE:
        return error
    is_current = generation_id == group.generation_id
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def handle_complete(
    runtime: Runtime, partition: Partition, request: CompleteTransaction, parked: Parked
) -> None:
    """Write the marker: the offsets held for the producer count from there on, or are dropped."""
    marker = EndTransactionMarker(
        committed=request.committed, coordinator_epoch=request.coordinator_epoch
    )
    effect = Effect(
        response=TransactionCompleted(),
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        transactional=True,
        marker=marker,
    )
    runtime.submit(partition, parked, effect)
