"""I2 and I4: generation numbers, and the one leader that each generation has."""

from dataclasses import dataclass, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History, Instances, Tenancy


def _judge_generations(history: History) -> Findings:
    judged = 0
    violations: list[Violation] = []
    for tenancy in history.tenancies:
        counted, found = _generations_of(tenancy)
        judged += counted
        violations += found
    return Findings(judged, tuple(violations))


def _generations_of(tenancy: Tenancy) -> tuple[int, list[Violation]]:
    last: TraceEvent | None = None
    judged = 0
    violations: list[Violation] = []
    for event in tenancy.events:
        if event.generation is None:
            continue
        if event.event is Event.GROUP_LOADED:
            last = event
        if event.event not in (Event.JOIN_COMPLETE, Event.GROUP_EMPTY):
            continue
        judged += 1
        if last is not None and not _follows(last, event):
            violations.append(_out_of_order(tenancy, last, event))
        last = event
    return judged, violations


def _follows(last: TraceEvent, event: TraceEvent) -> bool:
    """Whether a completed join phase's generation may come after the last one seen.

    A group that becomes empty may report the completed join phase and its emptiness separately,
    with one number.
    """
    if last.generation is None or event.generation is None:
        return True
    if last.event is Event.GROUP_LOADED:
        return event.generation == last.generation + 1
    if last.event is Event.JOIN_COMPLETE and event.event is Event.GROUP_EMPTY:
        return event.generation >= last.generation
    return event.generation > last.generation


def _out_of_order(tenancy: Tenancy, last: TraceEvent, event: TraceEvent) -> Violation:
    rule = "continue from the loaded" if last.event is Event.GROUP_LOADED else "grow after"
    return Violation(
        invariant="I2",
        at_us=event.ts_us,
        group_id=tenancy.group_id,
        message=f"generation {event.generation} does not {rule} {last.generation}",
        evidence=(last.seq, event.seq),
    )


@dataclass(slots=True)
class _Leadership:
    """Leaders of the generations of one tenancy."""

    tenancy: Tenancy
    leaders: dict[int, TraceEvent] = field(default_factory=dict)
    """Generation -> the first answer that named its leader."""
    instances: Instances = field(default_factory=Instances)
    heirs: dict[str, str] = field(default_factory=dict)
    """Old member id of a static member -> the id that replaced it."""
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        replaced = self.instances.take(event)
        if replaced is not None and event.member_id:
            self.heirs[replaced] = event.member_id
        if event.event is Event.JOIN_RESP and event.error_code is ErrorCode.NONE:
            self._admitted(event)

    def _admitted(self, event: TraceEvent) -> None:
        if event.generation is None or not event.leader_id:
            # A classic member of a consumer group is told no leader.
            return
        self.judged += 1
        first = self.leaders.setdefault(event.generation, event)
        if self._heir(first.leader_id or "") != self._heir(event.leader_id):
            self._blame(
                event,
                f"generation {event.generation} has two leaders: "
                f"{first.leader_id} and {event.leader_id}",
                first,
            )
        is_leader = event.member_id == event.leader_id
        if event.members is not None and bool(event.members) != is_leader:
            role = "the leader" if is_leader else "no leader"
            self._blame(
                event,
                f"{event.member_id} is {role} of generation {event.generation} "
                f"and received {event.members} members",
                event,
            )

    def _heir(self, member_id: str) -> str:
        while member_id in self.heirs:  # ends: a replacing id is new, so the chain has no loop
            member_id = self.heirs[member_id]
        return member_id

    def _blame(self, event: TraceEvent, message: str, first: TraceEvent) -> None:
        self.violations.append(
            Violation(
                invariant="I4",
                at_us=event.ts_us,
                group_id=self.tenancy.group_id,
                message=message,
                evidence=tuple(dict.fromkeys((first.seq, event.seq))),
            )
        )


def _judge_leaders(history: History) -> Findings:
    judged = 0
    violations: list[Violation] = []
    for tenancy in history.tenancies:
        leadership = _Leadership(tenancy)
        for event in tenancy.events:
            leadership.take(event)
        judged += leadership.judged
        violations += leadership.violations
    return Findings(judged, tuple(violations))


GENERATIONS_GROW = Checker(
    invariant="I2",
    name="generation-monotonic",
    title="growing generations",
    judge=_judge_generations,
)
ONE_LEADER = Checker(
    invariant="I4",
    name="one-leader-per-generation",
    title="one leader",
    judge=_judge_leaders,
)
