"""Whether a commit may be stored: the checks of its member, and of a producer's transaction.

Source: kafka trunk, ClassicGroup.validateOffsetCommit; kafka 3.9, GroupCoordinator
.validateOffsetCommit; ReplicaManager.maybeStartTransactionVerificationForPartition.
"""

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.classic.join_phase import start_session
from coordinator_sim.coordinator.contract import TransactionVerifier
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.states import AWAITING_SYNC, DEAD, EMPTY, GroupState
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
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


def validate_commit(runtime: Runtime, request: OffsetCommitRequest, group: Group) -> ErrorCode:
    """Check the member, and restart its session. Source: ClassicGroup.validateOffsetCommit."""
    generation_id, profile = request.generation_id_or_member_epoch, runtime.profile
    if group.state is DEAD:
        is_unknown = profile.dead_group_is_unknown
        return ErrorCode.UNKNOWN_MEMBER_ID if is_unknown else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.state is EMPTY:
        has_ids = bool(request.member_id) or request.group_instance_id is not None
        if not (has_ids and profile.checks_ids_of_simple_commit):
            return NO_ERROR
    if group.state is AWAITING_SYNC and not profile.commit_checks_member_first:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return _validate_member(runtime, group, request)


def _validate_member(runtime: Runtime, group: Group, request: OffsetCommitRequest) -> ErrorCode:
    instance_id = request.group_instance_id
    member = group.members.get(request.member_id)
    if member is None or instance_id is not None:
        error = group.validate_member(request.member_id, instance_id)
        if member is None or error is not NO_ERROR:
            return error
    if request.generation_id_or_member_epoch != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is AWAITING_SYNC:
        return ErrorCode.REBALANCE_IN_PROGRESS
    # A commit counts as a heartbeat, even if nothing comes of it.
    start_session(runtime, group, member)
    return NO_ERROR
