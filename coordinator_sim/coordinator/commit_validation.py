"""Whether a plain commit may be stored: the checks of its member, in Java and in Scala.

Source: kafka trunk, ClassicGroup.validateOffsetCommit; kafka 3.9, GroupCoordinator
.validateOffsetCommit.
"""

from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.join_phase import start_session
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.states import AWAITING_SYNC, DEAD, EMPTY
from coordinator_sim.messages.offset_commit import OffsetCommitRequest


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
