"""One JoinGroup under way: the request and who sent it."""

from msgspec import Struct

from coordinator_sim.coordinator.group import Group, Member
from coordinator_sim.coordinator.runtime import Parked, Runtime
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse


class Join(Struct, frozen=True, gc=False):
    """One JoinGroup under way: the request and who sent it, for the functions that share them."""

    request: JoinGroupRequest
    context: RequestContext
    parked: Parked

    @property
    def rebalance_timeout_ms(self) -> int:
        """JoinGroup v0 has one timeout for both. Source: JoinGroupRequest's constructor."""
        request = self.request
        is_shared = self.context.api_version == 0
        return request.session_timeout_ms if is_shared else request.rebalance_timeout_ms

    @property
    def client_reason(self) -> str:
        """The client's reason as Kafka logs it; Java's log takes an empty one for none."""
        return "not provided" if self.request.reason is None else self.request.reason


def refuse_join(runtime: Runtime, join: Join, error: ErrorCode, member_id: str = "") -> None:
    """Answer a JoinGroup with an error."""
    runtime.answer(
        join.parked, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
    )


def update_member(runtime: Runtime, group: Group, member: Member, join: Join) -> None:
    """Take over what the member offers now, and park its request. Source: updateMember."""
    group.update(member, join.request.protocols, join.parked)
    if runtime.profile.refreshes_timeouts:
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
