"""A Connect leader's work in one round, as functions of the members' metadata.

Source: kafka trunk, EagerAssignor.performAssignment, IncrementalCooperativeAssignor
.performAssignment and fillAssignments; WorkerCoordinator.LeaderState.
"""

from collections.abc import Mapping

from msgspec import Struct

from coordinator_sim.assignors.contract import (
    ConnectAssignmentPlan,
    ConnectAssignor,
    ConnectMember,
    WorkerLoad,
)
from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_worker_metadata,
    encode_connect_assignment,
)
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    WorkerMetadata,
)
from coordinator_sim.messages.join_group import JoinGroupResponse

_NO_LOAD = WorkerLoad()


class LeaderState(Struct, frozen=True, kw_only=True):
    """Owners of all work after the leader's last assignment, for forwarding requests."""

    urls: dict[str, str]
    connector_owners: dict[str, str]
    task_owners: dict[ConnectorTaskId, str]

    def owner_url(self, resource: str | ConnectorTaskId) -> str | None:
        """Return the URL of the owner of a connector or task; None when it has no owner."""
        if isinstance(resource, str):
            owner = self.connector_owners.get(resource)
        else:
            owner = self.task_owners.get(resource)
        return None if owner is None else self.urls.get(owner)


class LeadershipRound(Struct, frozen=True, kw_only=True):
    """Protocol, assignor and generation that the leader uses in a round."""

    protocol: ConnectProtocolCompatibility
    assignor: ConnectAssignor
    generation_id: int
    last_completed_generation_id: int
    now_ms: int

    def highest_offset(self, response: JoinGroupResponse) -> int:
        """Return the highest config topic offset that a member reports."""
        return max(decode_worker_metadata(m.metadata).config_offset for m in response.members)


def lead(
    turn: LeadershipRound,
    response: JoinGroupResponse,
    *,
    config_offset: int,
    configured: Mapping[str, int] | None,
) -> tuple[dict[str, bytes], LeaderState | None]:
    """Return all assignments as bytes, and the leader's view of owners.

    Args:
        turn: Protocol, assignor and generation.
        response: The leader's JoinGroup response with all members.
        config_offset: Offset the assignment is computed from; on a mismatch, the missing one.
        configured: Connector -> number of its tasks; None when the leader has not read up to
            `config_offset`: then all members get CONFIG_MISMATCH and empty lists.
    """
    workers = {m.member_id: decode_worker_metadata(m.metadata) for m in response.members}
    template = ConnectAssignment(
        version=turn.protocol,
        leader=response.leader,
        leader_url=workers[response.leader].url,
        config_offset=config_offset,
        error=ConnectError.CONFIG_MISMATCH if configured is None else ConnectError.NO_ERROR,
    )
    if configured is None:
        blob = encode_connect_assignment(template)
        return dict.fromkeys(workers, blob), None
    members = tuple(_member(member_id, worker) for member_id, worker in workers.items())
    plan = turn.assignor.assign(
        configured=configured,
        members=members,
        generation_id=turn.generation_id,
        last_completed_generation_id=turn.last_completed_generation_id,
        now_ms=turn.now_ms,
    )
    blobs = {m.member_id: _assignment(template, plan, m.member_id) for m in members}
    owned = turn.protocol is not ConnectProtocolCompatibility.EAGER
    return blobs, _leader_state(workers, members if owned else (), plan)


def _member(member_id: str, worker: WorkerMetadata) -> ConnectMember:
    allocation = worker.allocation
    if allocation is None:
        return ConnectMember(member_id=member_id)
    return ConnectMember(
        member_id=member_id, connectors=allocation.connectors, tasks=allocation.tasks
    )


def _assignment(template: ConnectAssignment, plan: ConnectAssignmentPlan, member_id: str) -> bytes:
    assigned = plan.assigned.get(member_id, _NO_LOAD)
    revoked = plan.revoked.get(member_id, _NO_LOAD)
    return encode_connect_assignment(
        ConnectAssignment(
            version=template.version,
            error=template.error,
            leader=template.leader,
            leader_url=template.leader_url,
            config_offset=template.config_offset,
            connectors=assigned.connectors,
            tasks=assigned.tasks,
            revoked_connectors=revoked.connectors,
            revoked_tasks=revoked.tasks,
            delay_ms=plan.delay_ms,
        )
    )


def _leader_state(
    workers: Mapping[str, WorkerMetadata],
    kept: tuple[ConnectMember, ...],
    plan: ConnectAssignmentPlan,
) -> LeaderState:
    """Return the owners after this round: kept work without revoked work, plus added work."""
    connectors: dict[str, str] = {}
    tasks: dict[ConnectorTaskId, str] = {}
    for member in kept:
        revoked = plan.revoked.get(member.member_id, _NO_LOAD)
        connectors.update(
            (c, member.member_id) for c in member.connectors if c not in revoked.connectors
        )
        tasks.update((t, member.member_id) for t in member.tasks if t not in revoked.tasks)
    for member_id, load in plan.assigned.items():
        connectors.update((c, member_id) for c in load.connectors)
        tasks.update((t, member_id) for t in load.tasks)
    return LeaderState(
        urls={member_id: worker.url for member_id, worker in workers.items()},
        connector_owners=connectors,
        task_owners=tasks,
    )
