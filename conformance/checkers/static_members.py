"""I10: an instance id maps to one member."""

from dataclasses import dataclass, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import REMOVALS, History, Tenancy

ANSWERS = frozenset({Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT})
"""Events whose error NONE confirms the member's identity."""


@dataclass(slots=True)
class _Instances:
    """Member of each instance id in one tenancy."""

    tenancy: Tenancy
    member_of: dict[str, TraceEvent] = field(default_factory=dict)
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        if event.event in REMOVALS:
            self._removed(event.member_id)
        instance_id = event.group_instance_id
        if instance_id is None or not event.member_id:
            return
        match event.event:
            case Event.MEMBER_ADDED:
                self._mapped(event, instance_id)
            case Event.STATIC_REPLACED:
                self.judged += 1
                self.member_of[instance_id] = event
            case kind if kind in ANSWERS and event.error_code is ErrorCode.NONE:
                self._mapped(event, instance_id)
            case _:
                pass

    def _mapped(self, event: TraceEvent, instance_id: str) -> None:
        self.judged += 1
        holder = self.member_of.setdefault(instance_id, event)
        if holder.member_id == event.member_id:
            return
        self.violations.append(
            Violation(
                invariant="I10",
                at_us=event.ts_us,
                group_id=self.tenancy.group_id,
                message=f"instance id {instance_id!r} is {holder.member_id}, "
                f"and {event.event.value} accepts {event.member_id} for it",
                evidence=(holder.seq, event.seq),
            )
        )

    def _removed(self, member_id: str | None) -> None:
        for instance_id, holder in list(self.member_of.items()):
            if holder.member_id == member_id:
                del self.member_of[instance_id]


def judge(history: History) -> Findings:
    """Check that an instance id maps to one member, until that one is replaced or removed."""
    judged = 0
    violations: list[Violation] = []
    for tenancy in history.tenancies:
        instances = _Instances(tenancy)
        for event in tenancy.events:
            instances.take(event)
        judged += instances.judged
        violations += instances.violations
    return Findings(judged, tuple(violations))


ONE_MEMBER_PER_INSTANCE = Checker(
    invariant="I10",
    name="one-member-per-instance",
    title="one member per instance id",
    judge=judge,
)
