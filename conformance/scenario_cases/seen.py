"""A finished run of a scenario, and queries of it for cases. No case is here."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of
from coordinator_sim_conformance.script.stage import CaseFailed

FOREVER_MS: Final = 1 << 62
"""Later than any scenario ends."""


class Round(Struct, frozen=True):
    """A generation of a Connect cluster, by the assignments that its workers received.

    Args:
        at_ms: When the first worker received its assignment.
        leader: Name of the worker that assigned.
        told: Assignment of each worker by its name.
    """

    generation: int
    at_ms: int
    protocol: str
    leader: str
    told: dict[str, ConnectAssignment]

    def added(self, worker: str) -> tuple[str, ...]:
        """Return the connectors and tasks newly given to a worker."""
        told = self.told[worker]
        return (*told.connectors, *(f"{name}-{number}" for name, number in told.tasks))

    def revoked(self, worker: str) -> tuple[str, ...]:
        """Return the connectors and tasks that a worker must stop."""
        told = self.told[worker]
        return (
            *told.revoked_connectors,
            *(f"{name}-{number}" for name, number in told.revoked_tasks),
        )

    @property
    def delay_ms(self) -> int:
        """Scheduled delay, the same for all."""
        return max(told.delay_ms for told in self.told.values())


class Run(Struct, frozen=True):
    """A connector or task that ran on a worker; `end_ms` is None when it ran to the end."""

    resource: str
    worker: str
    start_ms: int
    end_ms: int | None

    def overlaps(self, other: "Run") -> bool:
        """Whether both ran at some instant."""
        return self.start_ms < (FOREVER_MS if other.end_ms is None else other.end_ms) and (
            other.start_ms < (FOREVER_MS if self.end_ms is None else self.end_ms)
        )


class Seen:
    """A scenario's run with seed 1.

    Args:
        scenario: Scenario to run, at once.
    """

    def __init__(self, scenario: Scenario) -> None:
        recorder = MemoryRecorder()
        run_scenario(scenario, seed=1, recorder=recorder)
        self.scenario = scenario
        self.events: tuple[TraceEvent, ...] = tuple(recorder.events)
        self._names: dict[str, str] = {}
        for event in self.events:
            if event.member_id and event.client_id:
                self._names.setdefault(event.member_id, event.client_id)

    # What happened.

    def of(
        self,
        *kinds: Event,
        after_ms: int = 0,
        before_ms: int = FOREVER_MS,
        member: str | None = None,
    ) -> list[TraceEvent]:
        """Return events of some kinds in `[after_ms, before_ms)`, optionally of one member."""
        return [
            event
            for event in self.events
            if event.event in kinds
            and after_ms * 1_000 <= event.ts_us < before_ms * 1_000
            and member in (None, self.name_of(event))
        ]

    def name_of(self, event: TraceEvent) -> str | None:
        """Return the member of an event, whatever its id was then."""
        return event.client_id or self._names.get(event.member_id or "")

    def reasons(self, after_ms: int = 0) -> list[RebalanceReason | None]:
        """Return the reason of each rebalance."""
        return [event.reason for event in self.of(Event.PREPARE_REBALANCE, after_ms=after_ms)]

    def completed(self, after_ms: int = 0, before_ms: int = FOREVER_MS) -> int:
        """Return the number of generations that began."""
        return len(self.of(Event.JOIN_COMPLETE, after_ms=after_ms, before_ms=before_ms))

    @cached_property
    def generations(self) -> list[GenerationRow]:
        """Ownership, generation by generation."""
        rows, _ = dense_rows(self.events, "t", "c")
        return rows

    def loads(self) -> list[list[int]]:
        """The members' numbers of partitions, or of connectors and tasks, by generation, sorted."""
        return [sorted(row.loads) for row in self.generations]

    def partitions_of(self, event: TraceEvent) -> list[str]:
        """Return the partitions of an ASSIGNED event of a consumer, as `topic-number`."""
        partitions = decode_assignment(event.assignment or b"").partitions
        return [f"{topic}-{number}" for topic, number in partitions]

    # Of Connect.

    @cached_property
    def rounds(self) -> list[Round]:
        """The generations of a Connect cluster."""
        protocols = {
            event.generation: event.protocol_name or "" for event in self.of(Event.JOIN_COMPLETE)
        }
        found: dict[int, Round] = {}
        for event in self.of(Event.ASSIGNED):
            generation = event.generation or 0
            told = decode_connect_assignment(event.assignment or b"")
            one = found.get(generation)
            if one is None:
                leader = self._names.get(told.leader, "")
                protocol = protocols.get(generation, "")
                one = Round(generation, event.ts_us // 1_000, protocol, leader, {})
                found[generation] = one
            one.told[self.name_of(event) or ""] = told
        return list(found.values())

    def rounds_after(self, at_ms: int) -> list[Round]:
        """Return the generations of a Connect cluster from an instant on."""
        return [one for one in self.rounds if one.at_ms >= at_ms]

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of a connector or task, with its worker and times, in order of the start."""
        running: dict[tuple[str, str], int] = {}
        ended: list[Run] = []

        def end(worker: str, resources: Sequence[str], at_ms: int) -> None:
            for resource in resources:
                start_ms = running.pop((worker, resource), None)
                if start_ms is not None:
                    ended.append(Run(resource, worker, start_ms, at_ms))

        for event in self.of(Event.TASKS_STARTED, Event.TASKS_STOPPED, Event.LIFECYCLE):
            worker, at_ms = self.name_of(event) or "", event.ts_us // 1_000
            resources = event.attrs.get("resources", "").split()
            if event.event is Event.TASKS_STARTED:
                running.update({(worker, resource): at_ms for resource in resources})
            elif event.event is Event.TASKS_STOPPED:
                end(worker, resources, at_ms)
            elif event.reason_text in ("gone", "crashed"):
                end(worker, [name for owner, name in running if owner == worker], at_ms)
        ended += [Run(name, worker, at, None) for (worker, name), at in running.items()]
        return sorted(ended, key=lambda run: run.start_ms)

    def runs_begun(self, after_ms: int = 0, before_ms: int = FOREVER_MS) -> list[Run]:
        """Return runs that began in `[after_ms, before_ms)`."""
        return [run for run in self.runs if after_ms <= run.start_ms < before_ms]

    def runs_ended(self, at_ms: int) -> list[Run]:
        """Return runs that ended in that millisecond."""
        return [run for run in self.runs if run.end_ms == at_ms]

    def running_at_end(self) -> dict[str, list[str]]:
        """Return the workers of each resource when the scenario ends, sorted."""
        found: dict[str, list[str]] = {}
        for run in self.runs:
            if run.end_ms is None:
                found.setdefault(run.resource, []).append(run.worker)
        return dict(sorted(found.items()))

    def run_twice(self) -> list[str]:
        """Return resources that two workers ran at the same time, as `resource: worker worker`."""
        return [
            f"{one.resource}: {one.worker} {other.worker}"
            for index, one in enumerate(self.runs)
            for other in self.runs[index + 1 :]
            if one.resource == other.resource and one.overlaps(other)
        ]

    # What must be so.

    def expect(self, what: str, saw: object, wanted: object) -> None:
        """Check that two values are equal.

        Raises:
            CaseFailed: the values differ.
        """
        if saw != wanted:
            raise CaseFailed(f"{what}: wanted {wanted}, saw {saw}", ())

    def expect_that(self, what: str, holds: bool, saw: object = "") -> None:
        """Check a condition.

        Raises:
            CaseFailed: the condition does not hold.
        """
        if not holds:
            raise CaseFailed(f"wanted {what}, saw {saw}" if saw != "" else f"wanted {what}", ())

    def expect_between(self, what: str, saw: int, low: int, high: int) -> None:
        """Check bounds, both included.

        Raises:
            CaseFailed: the value is outside.
        """
        if not low <= saw <= high:
            raise CaseFailed(f"{what}: wanted {low} to {high}, saw {saw}", ())

    def expect_invariants(self) -> None:
        """Check the invariants.

        Raises:
            CaseFailed: a checker found a violation.
        """
        report = check_all(self.events, circumstances_of(self.scenario))
        self.expect("violations", [str(each) for each in report.violations], [])
