"""I1: ownership of resources, as the group's leader or the coordinator decided it.

Beliefs of clients are ignored: a zombie may run what it has lost until it notices.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import connector_resource
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
)
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment, ConnectError
from coordinator_sim.runs.step_holdings import tells_holdings
from coordinator_sim.trace.epoch_members import held_at_step
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import REMOVALS, History, Instances, Tenancy

INVARIANT: Final = "I1"
CONNECT: Final = "connect"
Resources = dict[str, None]
"""Resource names as an ordered set."""


@dataclass(slots=True)
class _Holdings:
    """Resources of each member of a tenancy, accumulated over its generations."""

    protocol_type: str | None = None
    base: dict[str, Resources] = field(default_factory=dict)
    """Member id -> resources that a Connect worker reported when it last joined."""
    held: dict[str, Resources] = field(default_factory=dict)
    """Member id -> resources assigned to it."""

    def forget(self, member_id: str) -> None:
        """Forget a member that is gone: its resources no longer count."""
        self.base.pop(member_id, None)
        self.held.pop(member_id, None)

    def rename(self, old: str, new: str) -> None:
        """Pass a static member's resources on to its new id."""
        self.held[new] = self.held.pop(old, {})

    def joined(self, event: TraceEvent) -> None:
        """Take the resources that a joining Connect worker reports; a delta builds on them."""
        self.protocol_type = event.protocol_type or self.protocol_type
        if self.protocol_type != CONNECT or event.subscription is None or not event.member_id:
            return
        try:
            metadata = decode_worker_metadata(event.subscription)
        except WireFormatError:
            return
        allocation = metadata.allocation
        base = {} if allocation is None else _assigned_resources(allocation)
        self.base[event.member_id] = base

    def assigned(self, event: TraceEvent) -> bool:
        """Take the leader's decision for one member; return False if its bytes are unreadable."""
        self.joined(event)
        member_id = event.member_id or ""
        base = self.base.get(member_id)
        if base is None:
            base = self.held.get(member_id, {})
        held = self._fold(event.assignment or b"", base)
        self.held[member_id] = held or {}
        return held is not None

    def _fold(self, assignment: bytes, base: Resources) -> Resources | None:
        if not assignment:
            return {}
        try:
            match self.protocol_type:
                case "consumer":
                    partitions = decode_assignment(assignment).partitions
                    return dict.fromkeys(partition.resource() for partition in partitions)
                case "connect":
                    decoded = decode_connect_assignment(assignment)
                    # A leader behind the configuration makes no decision.
                    is_decided = decoded.error is ConnectError.NO_ERROR
                    return _fold_connect(decoded, base) if is_decided else None
                case _:
                    return None
        except WireFormatError:
            return None


def _fold_connect(assignment: ConnectAssignment, base: Resources) -> Resources:
    assigned = _assigned_resources(assignment)
    if assignment.version == 0:
        return assigned
    revoked = {connector_resource(name) for name in assignment.revoked_connectors}
    revoked |= {task.resource() for task in assignment.revoked_tasks}
    return {name: None for name in base if name not in revoked} | assigned


def _assigned_resources(assignment: ConnectAssignment) -> Resources:
    connectors = [connector_resource(name) for name in assignment.connectors]
    return dict.fromkeys(connectors + [task.resource() for task in assignment.tasks])


def _double_owners(
    tenancy: Tenancy, generation: int, assigned: list[TraceEvent], holdings: _Holdings
) -> Iterator[Violation]:
    owners: dict[str, TraceEvent] = {}
    for event in assigned:
        for resource in holdings.held.get(event.member_id or "", {}):
            first = owners.setdefault(resource, event)
            if first is not event:
                yield _violation(tenancy, resource, generation, first, event)


def _violation(
    tenancy: Tenancy, resource: str, generation: int, first: TraceEvent, second: TraceEvent
) -> Violation:
    return Violation(
        invariant=INVARIANT,
        at_us=second.ts_us,
        group_id=tenancy.group_id,
        message=f"{resource} has two owners in generation {generation}: "
        f"{first.member_id} and {second.member_id}",
        evidence=(first.seq, second.seq),
    )


class _Steps:
    """What members of a consumer group hold by the coordinator's steps."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._held: dict[str, list[str]] = {}
        self._owners: dict[str, TraceEvent] = {}
        self.judged = 0

    def take(self, event: TraceEvent) -> Iterator[Violation]:
        """Take the step of a member, which has nothing any more of what it had before it."""
        member_id = event.member_id or ""
        self.forget(member_id)
        self.judged += 1
        self._held[member_id] = held_at_step(event)
        for resource in self._held[member_id]:
            first = self._owners.setdefault(resource, event)
            if first is not event:
                yield _violation(self._tenancy, resource, event.generation or 0, first, event)

    def forget(self, member_id: str) -> None:
        """Forget a member that is gone, or was replaced."""
        for resource in self._held.pop(member_id, ()):
            if self._owners[resource].member_id == member_id:
                del self._owners[resource]

    def forget_all(self) -> None:
        """Forget all held partitions, because the trace no longer shows which are still held."""
        self._held.clear()
        self._owners.clear()


class _GenerationCutter:
    """Gathers the ASSIGNED events of each generation of one tenancy and judges them together."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._holdings = _Holdings()
        self._steps = _Steps(tenancy)
        self._instances = Instances()
        self._assigned: dict[str, TraceEvent] = {}
        self._generation = -1
        self._is_readable = True
        self.judged = 0
        self.violations: list[Violation] = []

    def run(self) -> None:
        for event in self._tenancy.events:
            self._take(event)
        self._judge()
        self.judged += self._steps.judged

    def _take(self, event: TraceEvent) -> None:
        replaced = self._instances.take(event)
        if replaced is not None:
            self._holdings.rename(replaced, event.member_id or "")
            self._steps.forget(replaced)
        match event.event:
            case Event.ASSIGNED if "resources" in event.attrs:
                pass  # A client's belief.
            case Event.MEMBER_STEP if tells_holdings(event):
                self.violations += self._steps.take(event)
            case Event.STORE_FAILED:
                self._steps.forget_all()
            case Event.JOIN_REQ:
                self._holdings.joined(event)
            case Event.ASSIGNED | Event.EMPTY_ASSIGNMENT:
                self._assign(event)
            case kind if kind in REMOVALS and event.member_id:
                self._judge()
                self._holdings.forget(event.member_id)
                self._steps.forget(event.member_id)

    def _assign(self, event: TraceEvent) -> None:
        if event.generation is None or not event.member_id:
            return
        if event.generation != self._generation:
            self._judge()
            self._generation = event.generation
        owner = event.group_instance_id or event.member_id
        self._assigned[owner] = event
        if not self._holdings.assigned(event):
            self._is_readable = False

    def _judge(self) -> None:
        if self._assigned and self._is_readable:
            self.judged += 1
            assigned = list(self._assigned.values())
            self.violations += _double_owners(
                self._tenancy, self._generation, assigned, self._holdings
            )
        self._assigned = {}
        self._is_readable = True


def judge(history: History) -> Findings:
    """Check that no resource has two owners in a generation, by the leader's decisions."""
    judged = 0
    violations: list[Violation] = []
    for tenancy in history.tenancies:
        cutter = _GenerationCutter(tenancy)
        cutter.run()
        judged += cutter.judged
        violations += cutter.violations
    return Findings(judged, tuple(violations))


ONE_OWNER = Checker(
    invariant=INVARIANT,
    name="no-double-owner",
    title="one owner at a time",
    judge=judge,
)
