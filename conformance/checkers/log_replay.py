"""I9 over a trace: a load restores what was stored.

`conformance.log_replay` has the same invariant over batches and a live coordinator.
"""

from dataclasses import dataclass, field

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History

STORED = frozenset({Event.GROUP_EMPTY, Event.GROUP_STABLE, Event.GROUP_LOADED})
"""Events after which the log's last record of the group has their generation."""


@dataclass(slots=True)
class _Stored:
    """The last stored generation of each group, and a possible successor."""

    last: dict[str, TraceEvent] = field(default_factory=dict)
    under_way: dict[str, TraceEvent] = field(default_factory=dict)
    """Assignment received from the leader, possibly not committed."""
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        group_id = event.group_id
        if group_id is None or event.generation is None:
            return
        match event.event:
            case Event.GROUP_LOADED:
                self._loaded(event, group_id)
            case Event.SYNC_LEADER:
                self.under_way[group_id] = event
            case _:
                pass
        if event.event in STORED:
            self.last[group_id] = event
            self.under_way.pop(group_id, None)

    def _loaded(self, event: TraceEvent, group_id: str) -> None:
        candidates = [
            stored
            for stored in (self.last.get(group_id), self.under_way.get(group_id))
            if stored is not None
        ]
        if not candidates:
            return
        self.judged += 1
        if any(stored.generation == event.generation for stored in candidates):
            return
        stored = candidates[-1]
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


LOAD_BRINGS_BACK_WHAT_WAS_STORED = Checker(invariant="I9", name="log-replay", judge=judge)
