"""A simulated run, written as a broker's log and read again, has the same rebalances."""

from collections.abc import Iterable
from datetime import UTC
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.sim.scenario import Scenario, scenario_to_json
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

SMOKE_EXAMPLES = 15
PROFILES = st.sampled_from(("0.10.2", "2.8", "3.9", "4.4"))
SILENT = "0.10.2"
"""The profile whose log tells neither reasons nor sizes of groups."""
RESULTS = (Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY)
MOVES = (Event.GROUP_UNLOADED, Event.GROUP_LOADED)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance, in whole milliseconds: what `reports` makes of the same events.

    See `reports.transforms.rebalances`.
    """

    group_id: str
    start_ms: int
    old_generation: int | None
    generation: int | None
    reason: RebalanceReason | None
    join_done_ms: int | None
    sync_ms: int | None
    empty_ms: int | None
    members: int | None
    outcome: str


def rebalance_table(events: Iterable[TraceEvent]) -> list[Row]:
    """The rebalances of every group, by group and in order."""
    histories: dict[str, list[list[TraceEvent]]] = {}
    for event in events:
        if event.group_id is None or event.event not in (Event.PREPARE_REBALANCE, *RESULTS, *MOVES):
            continue
        rebalances = histories.setdefault(event.group_id, [])
        if event.event is Event.PREPARE_REBALANCE:
            rebalances.append([event])
        elif rebalances:
            rebalances[-1].append(event)
    return [
        row(events, is_last=following is None)
        for _, rebalances in sorted(histories.items())
        for events, following in pairwise([*rebalances, None])
        if events is not None
    ]


def row(events: list[TraceEvent], *, is_last: bool) -> Row:
    """The row of a rebalance and what came before the next one."""
    start = events[0]
    times = {kind: time_of(events, kind) for kind in RESULTS}
    results = [event for event in events if event.event in RESULTS]
    return Row(
        group_id=start.group_id or "",
        start_ms=start.ts_us // 1_000,
        old_generation=start.generation,
        generation=max((event.generation or 0 for event in results), default=None),
        reason=start.reason,
        join_done_ms=times[Event.JOIN_COMPLETE],
        sync_ms=times[Event.SYNC_LEADER],
        empty_ms=times[Event.GROUP_EMPTY],
        members=max((event.members or 0 for event in results), default=None),
        outcome=outcome(events, is_last=is_last),
    )


def outcome(events: list[TraceEvent], *, is_last: bool) -> str:
    """How a rebalance ended."""
    kinds = [event.event for event in events]
    if Event.SYNC_LEADER in kinds:
        return "STABLE"
    if Event.GROUP_EMPTY in kinds:
        return "EMPTY"
    if any(kind in kinds for kind in MOVES):
        return "COORDINATOR_MOVED"
    if is_last:
        return "OPEN"
    return "NO_SYNC" if Event.JOIN_COMPLETE in kinds else "SUPERSEDED"


def time_of(events: list[TraceEvent], kind: Event) -> int | None:
    """When the first event of that kind happened."""
    return next((event.ts_us // 1_000 for event in events if event.event is kind), None)


def check(faulty: Scenario, seed: int, profile: str) -> None:
    """Fail when the log tells of other rebalances than the run had, or is not understood."""
    scenario = msgspec.structs.replace(faulty, profile=profile)
    events = events_of(scenario, seed=seed)
    lines = list(broker_log(events, profile_named(profile)))
    summary = IngestSummary()
    read = list(parse_broker_log(lines, source_ref="server.log", tz=UTC, summary=summary))
    happened = rebalance_table(events)
    if profile == SILENT:
        happened = [
            msgspec.structs.replace(row, reason=RebalanceReason.UNKNOWN, members=row.members and 0)
            for row in happened
        ]
    how = f"{scenario_to_json(scenario).decode()} seed {seed}"
    assert summary.unparsed == 0, how
    assert rebalance_table(read) == happened, how


@settings(max_examples=SMOKE_EXAMPLES)
@given(scenario=scenarios(), seed=st.integers(0, 2**16), profile=PROFILES)
def test_a_few_logs_tell_what_happened(scenario: Scenario, seed: int, profile: str) -> None:
    """A small draw of the property below, for every run of the suite."""
    check(scenario, seed, profile)


@pytest.mark.property
@given(scenario=scenarios(), seed=st.integers(0, 2**16), profile=PROFILES)
def test_every_log_tells_what_happened(scenario: Scenario, seed: int, profile: str) -> None:
    """In the words of each release, a log read again gives the rebalances that happened."""
    check(scenario, seed, profile)
