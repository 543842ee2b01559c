"""Whether a transactional commit may be stored: the producer's transaction, the group's member.

Source: kafka trunk, ReplicaManager.maybeStartTransactionVerificationForPartition,
ClassicGroup.validateOffsetCommit.
"""

from coordinator_sim.coordinator.contract import TransactionVerifier
from coordinator_sim.coordinator.group import Group
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

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


def validate_txn_member(group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
    """The member is checked if the request names one, and whatever the group is doing.

    Source: ClassicGroup.validateOffsetCommit with isTransactional.
    """
    generation_id = request.generation_id_or_member_epoch
    instance_id = request.group_instance_id
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if group.runtime.profile.txn_ids_count_when_set:
        return _validate_what_is_set(group, request)
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation_id < 0 and not request.member_id and instance_id is None:
        return ErrorCode.NONE
    error = group.validate_member(request.member_id, instance_id)
    if error is not ErrorCode.NONE:
        return error
    is_current = generation_id == group.generation_id
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def _validate_what_is_set(group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
    """A fenced instance, an unknown member id, another generation: each counts if it is named.

    Source: GroupCoordinator.doTxnCommitOffsets of 2.5 to 2.8.
    """
    mapped = group.static_members.get(request.group_instance_id or "")
    if request.group_instance_id is not None and mapped not in (None, request.member_id):
        return ErrorCode.FENCED_INSTANCE_ID
    if request.member_id and request.member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_other = (
        request.generation_id_or_member_epoch >= 0
        and request.generation_id_or_member_epoch != group.generation_id
    )
    return ErrorCode.ILLEGAL_GENERATION if is_other else ErrorCode.NONE
