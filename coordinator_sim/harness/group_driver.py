"""One group driven by hand: requests with default fields filled in, answers by their type.

For tests and sketches; real client behaviour (retries, heartbeats) is in `clients`.
"""

from typing import TypeVar

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

R = TypeVar("R", bound=Response)


class GroupDriver:
    """Sends the requests of one group's members.

    Args:
        session_timeout_ms: Default session timeout of a JoinGroup.
        rebalance_timeout_ms: Default rebalance timeout of a JoinGroup.
    """

    def __init__(
        self,
        harness: Harness,
        group_id: str = "g",
        *,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.harness = harness
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        version: int = 9,
    ) -> Step:
        """Send a JoinGroup."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=tuple(JoinGroupRequestProtocol(name, name.encode()) for name in protocols),
        )
        return self.harness.call(request, api_version=version)

    def sync(
        self, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None
    ) -> Step:
        """Send a SyncGroup; a leader's carries assignments by member id."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            assignments=tuple(
                SyncGroupRequestAssignment(name, data) for name, data in (assignments or {}).items()
            ),
        )
        return self.harness.call(request, api_version=4)

    def heartbeat(
        self, member_id: str, generation_id: int, instance_id: str | None = None
    ) -> HeartbeatResponse:
        """Send a Heartbeat that is answered at once."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return answer(self.harness.call(request, api_version=4), HeartbeatResponse)

    def leave(self, *members: tuple[str, str | None]) -> LeaveGroupResponse:
        """Send a LeaveGroup of (member id, instance id) pairs that is answered at once."""
        request = LeaveGroupRequest(
            group_id=self.group_id,
            members=tuple(
                MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in members
            ),
        )
        return answer(self.harness.call(request, api_version=5), LeaveGroupResponse)

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation_id: int = -1,
        metadata: str = "",
        version: int = 9,
    ) -> Step:
        """Commit an offset of partition 0 of topic `t`."""
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            topics=(
                OffsetCommitRequestTopic(
                    "t",
                    partitions=(
                        OffsetCommitRequestPartition(0, offset, -1, committed_metadata=metadata),
                    ),
                ),
            ),
        )
        return self.harness.call(request, api_version=version)

    def stable(self, size: int, *, static: bool = False) -> list[str]:
        """Bring members into a Stable generation and return their ids, the leader's first.

        The initial delay must be 0. Each member's assignment is its own id.
        """
        leader = ""
        generation_id = -1
        members: list[str] = []
        for index in range(size):
            instance = f"i{index}" if static else None
            steps = [self.join(instance_id=instance, version=9 if static else 3)]
            if leader:
                instance = "i0" if static else None
                steps.append(self.join(leader, instance_id=instance))
            steps.extend(
                self.join(member_id, instance_id=f"i{place}" if static else None)
                for place, member_id in enumerate(members)
                if member_id != leader
            )
            admitted = [
                reply.response
                for step in steps
                for reply in step.replies
                if isinstance(reply.response, JoinGroupResponse)
            ]
            leader, generation_id = admitted[-1].leader, admitted[-1].generation_id
            members += [
                response.member_id for response in admitted if response.member_id not in members
            ]
        work = {member_id: member_id.encode() for member_id in members}
        self.sync(leader, generation_id, work)
        for member_id in members:
            if member_id != leader:
                self.sync(member_id, generation_id)
        return [leader, *(member_id for member_id in members if member_id != leader)]

    @property
    def generation_id(self) -> int:
        """Generation of the group now, -1 when the group does not exist."""
        group = self.harness.coordinator.group(self.group_id)
        return -1 if group is None else group.generation_id

    @property
    def state(self) -> str:
        """State of the group by its trace name, `none` when the group does not exist."""
        group = self.harness.coordinator.group(self.group_id)
        return "none" if group is None else group.state.value


def answer(step: Step, kind: type[R]) -> R:
    """Return the answer to the step's own request.

    Raises:
        InvariantViolation: the request is parked, or the answer is of another type.
    """
    response = step.response
    if not isinstance(response, kind):
        raise InvariantViolation(f"expected a {kind.__name__}, got {response!r}")
    return response
