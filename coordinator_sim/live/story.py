"""Meaning of a member's answers: one line each for people, and data for machines."""

from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupResponse
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse

CONNECT: Final = "connect"
"""Protocol type of workers."""


class MemberEvent(Struct, frozen=True, kw_only=True):
    """An event that matters to a member's user.

    Args:
        kind: Name of the event, upper-case, such as `JOINED`.
        text: Line for people.
        details: Data for machines; the names do not change.
    """

    kind: str
    text: str
    details: dict[str, object]


def told_of(request: Request, response: Response) -> MemberEvent | None:
    """Return the event that an answer is; None where it is not worth reporting."""
    match response:
        case FindCoordinatorResponse():
            return _found(response)
        case JoinGroupResponse():
            return _joined(response)
        case SyncGroupResponse():
            assert isinstance(request, SyncGroupRequest)  # noqa: S101 - answers match requests
            return _synced(request, response)
        case HeartbeatResponse():
            return _refused("Heartbeat", response.error_code)
        case OffsetCommitResponse():
            assert isinstance(request, OffsetCommitRequest)  # noqa: S101 - answers match requests
            return _committed(request, response)
        case LeaveGroupResponse():
            return _left(response)
        case _:
            return None


def _found(response: FindCoordinatorResponse) -> MemberEvent | None:
    found = response.coordinators[0]
    if found.error_code is not ErrorCode.NONE:
        return _refused("FindCoordinator", found.error_code)
    address = f"{found.host}:{found.port}"
    return MemberEvent(
        kind="COORDINATOR",
        text=f"coordinator is broker {found.node_id} at {address}",
        details={"node_id": found.node_id, "address": address},
    )


def _joined(response: JoinGroupResponse) -> MemberEvent | None:
    if response.error_code is not ErrorCode.NONE:
        return _refused("JoinGroup", response.error_code)
    is_leader = response.leader == response.member_id
    role = f"leader of {len(response.members)}" if is_leader else "follower"
    return MemberEvent(
        kind="JOINED",
        text=f"joined generation {response.generation_id} as {role} ({response.protocol_name})",
        details={
            "generation": response.generation_id,
            "member_id": response.member_id,
            "leader": response.leader,
            "is_leader": is_leader,
            "protocol": response.protocol_name,
            "members": [member.member_id for member in response.members],
        },
    )


def _synced(request: SyncGroupRequest, response: SyncGroupResponse) -> MemberEvent | None:
    """Report a Connect worker's assignment; a consumer's callbacks report its partitions."""
    if response.error_code is not ErrorCode.NONE:
        return _refused("SyncGroup", response.error_code)
    if request.protocol_type != CONNECT or not response.assignment:
        return None
    given = decode_connect_assignment(response.assignment)
    assigned = [*given.connectors, *map(_task_name, given.tasks)]
    revoked = [*given.revoked_connectors, *map(_task_name, given.revoked_tasks)]
    text = f"assigned {' '.join(assigned) or 'nothing'}"
    if revoked:
        text += f", revoked {' '.join(revoked)}"
    if given.delay_ms:
        text += f", {given.delay_ms} ms until the next rebalance"
    return MemberEvent(
        kind="GIVEN",
        text=text,
        details={
            "generation": request.generation_id,
            "leader_url": given.leader_url,
            "assigned": assigned,
            "revoked": revoked,
            "delay_ms": given.delay_ms,
        },
    )


def _task_name(task: ConnectorTaskId) -> str:
    return f"{task.connector}-{task.task}"


def _committed(request: OffsetCommitRequest, response: OffsetCommitResponse) -> MemberEvent | None:
    offsets = {
        f"{topic.name}-{entry.partition_index}": entry.committed_offset
        for topic in request.topics
        for entry in topic.partitions
    }
    for topic in response.topics:
        for entry in topic.partitions:
            if entry.error_code is not ErrorCode.NONE:
                return _refused("OffsetCommit", entry.error_code)
    if not offsets:
        return None
    listed = " ".join(f"{name}={offset}" for name, offset in offsets.items())
    return MemberEvent(kind="COMMITTED", text=f"committed {listed}", details={"offsets": offsets})


def _left(response: LeaveGroupResponse) -> MemberEvent | None:
    error = response.error_code
    if error is ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    if error is not ErrorCode.NONE:
        return _refused("LeaveGroup", error)
    return MemberEvent(kind="LEFT", text="left the group", details={})


def _refused(api: str, error: ErrorCode) -> MemberEvent | None:
    if error is ErrorCode.NONE:
        return None
    return MemberEvent(
        kind="REFUSED",
        text=f"{api} was answered {error.name}",
        details={"api": api, "error": error.name},
    )
