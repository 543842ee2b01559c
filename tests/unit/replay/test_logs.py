"""Replays of whole logs: the example in the repo, real ones beside it, terse ones made of runs."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.compare import compare
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.report import ReplayReport
from coordinator_sim.replay.settings import Settings
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import INGESTED, events_of
from tests.unit.replay.classic_stories import STORIES

REPO = Path(__file__).resolve().parents[3]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
REPLAYABLE = {
    *("001", "002", "009", "010", "013", "016", "018", "019"),
    *("021", "037", "038", "043", "044", "046", "056"),
}
"""Samples with at least one numbered rebalance."""


def events_in(path: Path) -> list[TraceEvent]:
    """A log's events."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(parse_broker_log(lines, source_ref=path.name, tz=UTC))


def unproduced(report: ReplayReport) -> list[str]:
    """What did not come true, and what nothing explains."""
    return [
        f"{group.group_id}: {text}"
        for group in report.groups
        for text in (group.first_difference, *group.unexplained)
        if text
    ]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no sample logs beside the repo")
def test_every_sample_is_reproduced() -> None:
    """All that real logs of 0.10 to 4.x determine comes true; no sample makes replay stumble."""
    replayed = set()
    for path in sorted(SAMPLES.glob("*.log")):
        report = replay_log(events_in(path), INGESTED).report
        assert unproduced(report) == [], path.name
        if report.groups:
            replayed.add(path.stem)
    assert replayed >= REPLAYABLE


def test_example_log_is_reproduced_with_leaders() -> None:
    """The example is Kafka 4.x's own log: even the leaders that its hash maps chose come true."""
    report = replay_log(events_in(EXAMPLE), INGESTED).report
    assert unproduced(report) == []
    totals = report.totals()
    assert totals["rebalances"].in_source >= 20
    assert totals["leaders"].in_source >= 15
    assert totals["members"].assumed == 0


def test_what_if_waits_for_a_dead_member_longer_with_a_longer_session() -> None:
    """A killed consumer is noticed a session timeout later, so fewer rebalances take longer."""
    result = replay_log(events_in(EXAMPLE), INGESTED, [Settings(session_timeout_ms=60_000)])
    orders = next(each for each in result.report.what_if if each.group_id == "orders-service")
    assert orders.with_settings.rebalances < orders.as_is.rebalances
    assert orders.with_settings.rebalancing_ms > orders.as_is.rebalancing_ms
    assert result.report.conditions


def test_core_that_does_nothing_reproduces_nothing() -> None:
    """The comparison counts against a core that is silent: every row is missed."""
    lines = group_lines(events_in(EXAMPLE))["billing"]
    (episode,) = episodes_of("billing", lines)
    tallies = compare(episode, [])
    assert sum(tally.in_source for tally in tallies.values()) > 50
    assert sum(tally.reproduced for tally in tallies.values()) == 0


def test_line_that_cannot_be_true_is_not_reproduced() -> None:
    """A log that claims a leader who was never a member is contradicted."""
    events = events_in(EXAMPLE)
    last = max(index for index, event in enumerate(events) if event.event is Event.SYNC_LEADER)
    events[last] = replace(events[last], leader_id="somebody-else")
    report = replay_log(events, INGESTED).report
    assert "somebody-else leads, in the core " in report.totals()["leaders"].first_difference
    assert not report.is_reproduced


# -- runs told as brokers of several ages would log them -----------------------------------

BASIC = frozenset(
    {Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY}
)
FAILURES = BASIC | {Event.MEMBER_FAILED}
DEPARTURES = FAILURES | {Event.MEMBER_LEFT}
SCALA = DEPARTURES | {Event.MEMBER_ID_ASSIGNED, Event.STATIC_REPLACED, Event.PENDING_EXPIRED}
JAVA = SCALA | {Event.MEMBER_ADDED, Event.MEMBER_KICKED, Event.GROUP_LOADED, Event.GROUP_UNLOADED}


def as_it_is(event: TraceEvent) -> TraceEvent:
    """Brokers since 3.0 tell counts and leaders."""
    return event


def uncounted(event: TraceEvent) -> TraceEvent:
    """Brokers up to 2.7 count nobody and name no leader."""
    return replace(event, members=None, static_members=None, leader_id=None)


def without_reason(event: TraceEvent) -> TraceEvent:
    """Brokers up to 2.0 give no reason."""
    event = uncounted(event)
    if event.event is not Event.PREPARE_REBALANCE:
        return event
    return replace(event, reason=RebalanceReason.UNKNOWN, reason_text=None)


AGES: dict[str, tuple[frozenset[Event], Callable[[TraceEvent], TraceEvent]]] = {
    "4.x": (JAVA, as_it_is),
    "3.x": (SCALA, as_it_is),
    "2.7": (DEPARTURES, uncounted),
    "2.0": (FAILURES, without_reason),
    "0.10": (BASIC, without_reason),
}


@pytest.mark.parametrize("name", STORIES)
def test_run_told_as_a_log_is_reproduced(name: str) -> None:
    """The fewer lines there are the more is assumed, yet what is told comes true, head or not."""
    events = events_of(all_scenarios()[name])
    for age, (kept, retold) in AGES.items():
        lines = [
            replace(retold(event), source=Source.BROKER_LOG)
            for event in events
            if event.event in kept
        ]
        for first in sorted({0, 1, len(lines) // 2}):
            report = replay_log(lines[first:], INGESTED).report
            assert unproduced(report) == [], f"told by {age}, from line {first}"
