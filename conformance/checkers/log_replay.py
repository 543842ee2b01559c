"""I9 over a trace: a load restores what was stored.

`conformance.log_replay` has the same invariant over batches and a live coordinator.
"""

from dataclasses import dataclass, field

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History

STORED = frozenset({Event.GROUP_EMPTY, Event.GROUP_STABLE, Event.GROUP_LOADED})
"""Events after which the log's last record of the group has their generation."""
HALT = "LogDirectoryFailed"
"""Fault after which a broker halts within the instant."""
RESTART = "BrokerRestarted"


@dataclass(slots=True)
class _Stored:
    """The last stored generation of each group, and a possible successor."""

    last: dict[str, TraceEvent] = field(default_factory=dict)
    under_way: dict[str, TraceEvent] = field(default_factory=dict)
    """Assignment received from the leader, or last step of a broker; possibly not committed."""
    halting: dict[int | None, None] = field(default_factory=dict)
    """Brokers that a simulation has told to halt: what they append is on no other broker."""
    leaders: dict[int, int | None] = field(default_factory=dict)
    """The broker that was the last to load each offsets partition."""
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        self._follow_brokers(event)
        group_id = event.group_id
        if group_id is None or event.generation is None or self._is_deposed(event):
            return
        match event.event:
            case Event.GROUP_LOADED:
                self._loaded(event, group_id)
            case Event.SYNC_LEADER:
                self.under_way[group_id] = event
            case _:
                pass
        if event.event in STORED and event.broker_id in self.halting:
            self.under_way[group_id] = event
        elif event.event in STORED:
            self.last[group_id] = event
            self.under_way.pop(group_id, None)

    def _follow_brokers(self, event: TraceEvent) -> None:
        if event.event is Event.LOAD_START and event.offsets_partition is not None:
            self.leaders[event.offsets_partition] = event.broker_id
        elif event.event is Event.FAULT and event.reason_text == HALT:
            self.halting[event.broker_id] = None
        elif event.event is Event.FAULT and event.reason_text == RESTART:
            self.halting.pop(event.broker_id, None)

    def _is_deposed(self, event: TraceEvent) -> bool:
        """Whether another broker has loaded the partition since: this one stores nothing more."""
        if event.offsets_partition is None:
            return False
        return self.leaders.get(event.offsets_partition, event.broker_id) != event.broker_id

    def _loaded(self, event: TraceEvent, group_id: str) -> None:
        last, under_way = self.last.get(group_id), self.under_way.get(group_id)
        stored = under_way or last
        if stored is None:
            return
        self.judged += 1
        if event.generation in {each.generation for each in (last, under_way) if each is not None}:
            return
        if last is None and (event.generation or 0) < (stored.generation or 0):
            return  # the assignment was not committed, and what was stored before it is not told
        self.violations.append(
            Violation(
                invariant="I9",
                at_us=event.ts_us,
                group_id=group_id,
                message=f"loaded with generation {event.generation}; "
                f"the last one stored is {stored.generation}",
                evidence=(stored.seq, event.seq),
            )
        )


def judge(history: History) -> Findings:
    """A loaded group continues the last generation that was stored."""
    stored = _Stored()
    for event in history.events:
        stored.take(event)
    return Findings(stored.judged, tuple(stored.violations))


LOAD_BRINGS_BACK_WHAT_WAS_STORED = Checker(
    invariant="I9",
    name="log-replay",
    title="replay of the log",
    judge=judge,
)
