"""A Connect worker's coordinator: eager, compatible and sessioned.

The driver is the herder: callbacks tell it what to run (`WORK_ASSIGNED`) and what to stop
(`WORK_REVOKED`). `assignment` is the work that the worker believes to own.

A Connect leader's work in one round, as functions of the members' metadata.

Source: kafka trunk, connect/runtime/.../distributed/WorkerCoordinator.java;
EagerAssignor.performAssignment, IncrementalCooperativeAssignor .performAssignment and
fillAssignments; WorkerCoordinator.LeaderState.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.contract import (
    ConnectAssignmentPlan,
    ConnectAssignor,
    ConnectMember,
    WorkerLoad,
)
from coordinator_sim.assignors.registry import make_connect_assignor
from coordinator_sim.clients.abstract_coordinator import AbstractCoordinator
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.clients.effects import CallbackKind, Effects, RunCallback
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, KAFKA
from coordinator_sim.clients.generation import Generation, MemberState
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN, AppCall, Wait
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
    encode_connect_assignment,
    encode_worker_metadata,
)
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    WorkerMetadata,
)
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

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


_EAGER: Final = ConnectProtocolCompatibility.EAGER


class ConfigSnapshot(Struct, frozen=True, kw_only=True):
    """State of the config topic, as far as a worker has read it.

    Args:
        offset: One past the last record read; -1 before any.
        connectors: Connector -> number of its tasks.
    """

    offset: int = -1
    connectors: dict[str, int] = {}


class WorkerCoordinator(AbstractCoordinator):
    """The port of a Connect worker's group membership.

    Args:
        config: Timeouts and the Connect protocol.
        client_id: Names the client in random choices.
        group_id: The Connect cluster.
        url: REST URL advertised to the other workers.
        config_snapshot: Takes a fresh snapshot of the config topic as this worker has read it.
        bootstrap: Brokers to ask first.
        jitter: Source of random choices.
    """

    __slots__ = (
        "_config_snapshot",
        "_eager_assignor",
        "_fresh_snapshot",
        "_incremental_assignor",
        "_last_completed_generation_id",
        "_leader_state",
        "_protocol",
        "_rejoin_requested",
        "_snapshot",
        "_url",
        "_worker_config",
    )

    def __init__(  # noqa: PLR0913 - everything a worker is configured with, by keyword
        self,
        config: WorkerConfig,
        *,
        client_id: str,
        group_id: str,
        url: str,
        config_snapshot: Callable[[], ConfigSnapshot],
        bootstrap: tuple[Node, ...],
        jitter: Jitter = NO_JITTER,
    ) -> None:
        super().__init__(
            config, client_id=client_id, group_id=group_id, bootstrap=bootstrap, jitter=jitter
        )
        self._metadata.wanted_topics = None
        self._worker_config = config
        self._url = url
        self._fresh_snapshot = config_snapshot
        self._config_snapshot = ConfigSnapshot()
        self._protocol = config.connect_protocol
        self._snapshot: ConnectAssignment | None = None
        self._leader_state: LeaderState | None = None
        self._rejoin_requested = False
        self._last_completed_generation_id = NO_GENERATION_ID
        delay_ms = config.scheduled_rebalance_max_delay_ms
        # Both live as long as the process: they keep their state when leadership is lost.
        self._eager_assignor: ConnectAssignor = make_connect_assignor(
            "default", scheduled_rebalance_max_delay_ms=delay_ms
        )
        self._incremental_assignor: ConnectAssignor = make_connect_assignor(
            "sessioned", scheduled_rebalance_max_delay_ms=delay_ms
        )

    # What the herder sees and tells.

    @property
    def protocol_type(self) -> str:
        """Protocol type of the group: `connect`."""
        return "connect"

    @property
    def member_id(self) -> str:
        """Member id while STABLE, else empty: no worker leads during a rebalance."""
        stable = self._state is MemberState.STABLE
        return self._generation.member_id if stable else UNKNOWN_MEMBER_ID

    @property
    def assignment(self) -> ConnectAssignment | None:
        """Work this worker believes to own; None before any and after losing it."""
        return self._snapshot

    @property
    def connect_protocol(self) -> ConnectProtocolCompatibility:
        """Sub-protocol of the last generation; at first the configured one."""
        return self._protocol

    @property
    def last_completed_generation_id(self) -> int:
        """Last generation whose assignment this worker received; -1 for none."""
        return self._last_completed_generation_id

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads the generation in which it is stable."""
        snapshot = self._snapshot
        return snapshot is not None and self.member_id == snapshot.leader

    def owner_url(self, resource: str | ConnectorTaskId) -> str | None:
        """Return the URL of the owner of a connector or task; None unless leader and stable."""
        if self._rejoin_needed_or_pending() or not self.is_leader or self._leader_state is None:
            return None
        return self._leader_state.owner_url(resource)

    def request_rejoin(self, reason: str) -> None:  # noqa: ARG002 - Kafka drops it here too
        """Rejoin at the next poll.

        QUIRK: Connect overrides the one-argument form and forgets the reason, so JoinGroup
        carries an empty one, save after a failed rebalance.
        """
        self._rejoin_requested = True

    def forget_revoked(self) -> None:
        """Forget revoked work that the herder has stopped: it is not reported again."""
        if self._snapshot is not None:
            self._snapshot = replace(self._snapshot, revoked_connectors=(), revoked_tasks=())

    def retain(self, connectors: Iterable[str], tasks: Iterable[ConnectorTaskId]) -> None:
        """Keep only this work after the herder stopped the rest, which is no longer reported."""
        if self._snapshot is not None:
            self._snapshot = replace(
                self._snapshot, connectors=tuple(connectors), tasks=tuple(tasks)
            )

    @property
    def assigned_connector_count(self) -> int:
        """Value of the metric `assigned-connectors`."""
        return 0 if self._snapshot is None else len(self._snapshot.connectors)

    @property
    def assigned_task_count(self) -> int:
        """Value of the metric `assigned-tasks`."""
        return 0 if self._snapshot is None else len(self._snapshot.tasks)

    # poll

    def poll(self, now_ms: int, timeout_ms: int) -> Effects:
        """Begin `WorkerCoordinator.poll(timeout)`; ends with `PollReturned`.

        The timeout is ignored while the worker is out of the group.
        """
        self._begin_call(AppCall.POLL, min(now_ms + timeout_ms, FOREVER))
        self._poll_round(now_ms)
        return self._settle(now_ms)

    def _poll_round(self, now_ms: int) -> None:
        if self._coordinator_unknown(now_ms):
            self._ensure_coordinator_ready(
                now_ms,
                deadline_ms=now_ms + self._config.heartbeat_interval_ms,
                then=self._discovered,
            )
        else:
            self._poll_membership(now_ms)

    def _discovered(self, ready: bool, now_ms: int) -> None:
        """Stop working after a heartbeat interval without a coordinator: others may take over."""
        snapshot = self._snapshot
        if ready or snapshot is None or snapshot.error is not ConnectError.NO_ERROR:
            self._poll_membership(now_ms)
        else:
            self._run_callback(
                CallbackKind.WORK_REVOKED,
                self._revoked_while_unreachable,
                connectors=snapshot.connectors,
                tasks=snapshot.tasks,
            )

    def _revoked_while_unreachable(self, outcome: str | None, now_ms: int) -> None:
        if outcome is not None:
            self._end_call(now_ms, outcome)
            return
        self._snapshot = None
        self._poll_membership(now_ms)

    def _poll_membership(self, now_ms: int) -> None:
        if self._rejoin_needed_or_pending():
            self._ensure_active_group(now_ms, deadline_ms=FOREVER, then=self._poll_active)
        else:
            self._poll_group(now_ms)

    def _poll_active(self, active: bool, now_ms: int) -> None:  # noqa: ARG002 - without a deadline
        self._poll_group(now_ms)

    def _poll_group(self, now_ms: int) -> None:
        failure = self._poll_heartbeat(now_ms)
        if failure is not None:
            self._end_call(now_ms, failure)
            return
        self._block(Wait.NETWORK, max(now_ms, self._call_deadline_ms), self._poll_again)

    def _poll_again(self, now_ms: int) -> None:
        if now_ms >= self._call_deadline_ms:
            self._end_call(now_ms)
        else:
            self._poll_round(now_ms)

    # Joining.

    def _rejoin_needed_or_pending(self) -> bool:
        snapshot = self._snapshot
        return (
            super()._rejoin_needed_or_pending()
            or snapshot is None
            or snapshot.error is not ConnectError.NO_ERROR
            or self._rejoin_requested
        )

    def _join_metadata(self, now_ms: int) -> tuple[JoinGroupRequestProtocol, ...]:  # noqa: ARG002 - hook
        """Return every protocol up to the configured one, the newest first."""
        self._config_snapshot = self._fresh_snapshot()
        offered = range(self._worker_config.connect_protocol, _EAGER - 1, -1)
        return tuple(
            JoinGroupRequestProtocol(
                ConnectProtocolCompatibility(version).protocol_name,
                encode_worker_metadata(
                    WorkerMetadata(
                        version=version,
                        url=self._url,
                        config_offset=self._config_snapshot.offset,
                        allocation=None if version == _EAGER else self._snapshot,
                    )
                ),
            )
            for version in offered
        )

    def _on_join_prepare(self, now_ms: int) -> None:
        self._leader_state = None
        snapshot = self._snapshot
        if (
            self._protocol is _EAGER
            and snapshot is not None
            and snapshot.error is ConnectError.NO_ERROR
        ):
            self._run_callback(
                CallbackKind.WORK_REVOKED,
                self._revoked_before_join,
                connectors=snapshot.connectors,
                tasks=snapshot.tasks,
            )
        else:
            self._join_prepared(completed=True, now_ms=now_ms)

    def _revoked_before_join(self, outcome: str | None, now_ms: int) -> None:
        if outcome is None:
            self._join_prepared(completed=True, now_ms=now_ms)
        else:
            self._end_call(now_ms, outcome)

    def _on_join_complete(self, generation: Generation, assignment: bytes, now_ms: int) -> None:
        try:
            new = decode_connect_assignment(assignment)
        except WireFormatError:
            self._end_call(now_ms, KAFKA)
            return
        self._protocol = ConnectProtocolCompatibility.from_protocol_name(
            generation.protocol_name or _EAGER.protocol_name
        )
        # A heartbeat answer since the SyncGroup answer that asked for a rejoin is forgotten here;
        # the next heartbeat asks again.
        self._rejoin_requested = False
        if self._protocol is not _EAGER and (new.revoked_connectors or new.revoked_tasks):
            self._run_callback(
                CallbackKind.WORK_REVOKED,
                self._revoked_in_join,
                connectors=new.revoked_connectors,
                tasks=new.revoked_tasks,
            )
        else:
            self._adopt(new, now_ms)

    def _revoked_in_join(self, outcome: str | None, now_ms: int) -> None:
        future = self._join_future
        if outcome is not None or future is None:
            self._end_call(now_ms, outcome)
        else:
            self._adopt(decode_connect_assignment(future.value), now_ms)

    def _adopt(self, new: ConnectAssignment, now_ms: int) -> None:  # noqa: ARG002 - as its siblings
        """Replace the assignment (eager), or add the new work in front of the kept work.

        QUIRK: when the group turns eager, the work this worker held under the incremental
        protocol and is not given again was never revoked, and runs on beside its new owner.
        """
        old = self._snapshot
        if self._protocol is not _EAGER and old is not None:
            kept_connectors = (c for c in old.connectors if c not in new.revoked_connectors)
            kept_tasks = (t for t in old.tasks if t not in new.revoked_tasks)
            new = replace(
                new,
                connectors=tuple(dict.fromkeys((*new.connectors, *kept_connectors))),
                tasks=tuple(dict.fromkeys((*new.tasks, *kept_tasks))),
            )
        self._snapshot = new
        self._last_completed_generation_id = self._generation.generation_id
        self._run_callback(
            CallbackKind.WORK_ASSIGNED,
            self._assigned_in_join,
            connectors=new.connectors,
            tasks=new.tasks,
        )

    def _assigned_in_join(self, outcome: str | None, now_ms: int) -> None:
        if outcome is None:
            self._join_completed(now_ms)
        else:
            self._end_call(now_ms, outcome)

    # Leading.

    def _on_leader_elected(self, response: JoinGroupResponse, future: Future, now_ms: int) -> None:
        if response.skip_assignment:
            # Only a static leader gets skip_assignment, and Connect has no static membership.
            future.fail(ILLEGAL_STATE)
            return
        protocol = ConnectProtocolCompatibility.from_protocol_name(
            response.protocol_name or _EAGER.protocol_name
        )
        eager = protocol is _EAGER
        turn = LeadershipRound(
            protocol=protocol,
            assignor=self._eager_assignor if eager else self._incremental_assignor,
            generation_id=self._generation.generation_id,
            last_completed_generation_id=self._last_completed_generation_id,
            now_ms=now_ms,
        )
        try:
            offset = turn.highest_offset(response)
            if self._config_snapshot.offset < offset:
                fresh = self._fresh_snapshot()
                if fresh.offset >= offset:
                    self._config_snapshot = fresh
                    offset = fresh.offset
            assignments, leader_state = lead(
                turn,
                response,
                config_offset=offset,
                configured=self._config_snapshot.connectors
                if self._config_snapshot.offset >= offset
                else None,
            )
        except WireFormatError:
            future.fail(KAFKA)
            return
        if leader_state is not None:
            self._leader_state = leader_state
        self._send_sync_group(assignments, future, now_ms)

    def _on_poll_timeout(self, now_ms: int) -> None:
        """Leave the group: the herder was busy for its whole rebalance timeout."""
        self._out.append(RunCallback(token=NOTIFICATION_TOKEN, kind=CallbackKind.POLL_TIMEOUT))
        self._maybe_leave_group("worker poll timeout has expired.", now_ms)
