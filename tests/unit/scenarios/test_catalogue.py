"""Every scenario of the catalogue keeps the invariants, and shows what its docstring says."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module

import pytest

from conformance.checkers import Verdict, check_all
from conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim.errors import ScenarioError
from coordinator_sim.ingest.ownership import dense_rows
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.scenario import Scenario
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim.wire.connect_protocol import decode_connect_assignment
from scenarios.catalog import all_scenarios, scenario_named

NAMES = tuple(all_scenarios())
ALWAYS_JUDGED = ("I1", "I2", "I3", "I4", "I5", "I6")


def events_of(scenario: Scenario) -> tuple[TraceEvent, ...]:
    """The events of a run with seed 1."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=1, recorder=recorder)
    return tuple(recorder.events)


@cache
def trace(name: str) -> tuple[TraceEvent, ...]:
    """The trace of a scenario, run once for all tests."""
    return events_of(scenario_named(name))


def generations(events: Sequence[TraceEvent]) -> list[GenerationRow]:
    """Who owned what, generation by generation."""
    rows, _ = dense_rows(events, "t", "c")
    return rows


def of(events: Sequence[TraceEvent], *kinds: Event, after_ms: int = 0) -> list[TraceEvent]:
    """The events of some kinds from an instant on."""
    return [e for e in events if e.event in kinds and e.ts_us >= after_ms * 1_000]


def reasons(events: Sequence[TraceEvent]) -> list[RebalanceReason | None]:
    """Why each rebalance after the first began."""
    return [event.reason for event in of(events, Event.PREPARE_REBALANCE)[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_scenario_keeps_every_invariant(name: str) -> None:
    """No checker fails, and those of the protocol itself have something to judge."""
    report = check_all(trace(name), circumstances_of(scenario_named(name)))

    assert report.violations == ()
    assert set(ALWAYS_JUDGED) <= set(report.having(Verdict.PASS))


@pytest.mark.property
@pytest.mark.parametrize("name", NAMES)
def test_scenario_converges(name: str) -> None:
    """Left alone after its last happening, every group comes to rest with everyone in it."""
    scenario = with_calm(scenario_named(name))

    report = check_all(events_of(scenario), circumstances_of(scenario))

    assert report.violations == ()
    assert report.of("I7").verdict is Verdict.PASS


@pytest.mark.parametrize("name", NAMES)
def test_scenario_tells_its_story(name: str) -> None:
    """The module is named like the scenario, and its docstring has a title and a story."""
    module = import_module(f"scenarios.catalog.{name.replace('-', '_')}")

    title, _, story = (module.__doc__ or "").partition("\n\n")
    assert title.endswith(".")
    assert story
    assert scenario_named(name).story


def test_static_bounce_causes_no_rebalance() -> None:
    """Six restarts, six replacements, one generation."""
    events = trace("static-rolling-bounce")

    assert len(of(events, Event.STATIC_REPLACED)) == 6
    assert len(of(events, Event.PREPARE_REBALANCE)) == 1


def test_scale_out_takes_one_rebalance_for_three_newcomers() -> None:
    """Everyone who comes before the old members notice is taken up at once."""
    events = trace("scale-out")

    first, second = generations(events)
    assert reasons(events) == [RebalanceReason.MEMBER_JOINED]
    assert sorted(first.loads) == [4, 4, 4]
    assert sorted(second.loads) == [2] * 6


def test_crashed_member_is_expired_one_session_after_its_last_heartbeat() -> None:
    """The coordinator cannot know earlier."""
    events = trace("member-crash")

    (failed,) = of(events, Event.MEMBER_FAILED)
    beats = [e for e in of(events, Event.HEARTBEAT) if e.member_id == failed.member_id]
    assert failed.ts_us // 1_000 - beats[-1].ts_us // 1_000 == 10_000
    assert reasons(events) == [RebalanceReason.MEMBER_FAILED]


def test_slow_consumer_leaves_by_itself_and_comes_back() -> None:
    """It is its own heartbeat thread that gives up, not the coordinator."""
    events = trace("slow-processing")

    (leave,) = of(events, Event.LEAVE_REQ)
    assert leave.client_reason == "consumer poll timeout has expired."
    assert reasons(events) == [RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED]
    assert not of(events, Event.MEMBER_FAILED)


def test_failover_brings_back_the_stored_generation() -> None:
    """The new coordinator issues the number that the interrupted rebalance would have had."""
    events = trace("coordinator-failover")

    (loaded,) = of(events, Event.GROUP_LOADED)
    answers = of(events, Event.JOIN_RESP, after_ms=30_500)
    completed = of(events, Event.JOIN_COMPLETE, after_ms=30_500)
    assert (loaded.generation, loaded.members) == (1, 4)
    assert ErrorCode.UNKNOWN_MEMBER_ID in {answer.error_code for answer in answers}
    assert [event.generation for event in completed] == [2]


def test_zombie_is_refused_when_it_goes_on() -> None:
    """Neither its heartbeat nor its commit counts any more."""
    events = trace("zombie-after-pause")

    refused = [
        event.event
        for event in of(events, Event.HEARTBEAT, Event.OFFSET_COMMIT, after_ms=55_000)
        if event.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    ]
    assert sorted(kind.value for kind in refused) == ["HEARTBEAT", "OFFSET_COMMIT"]
    assert len(of(events, Event.LOST)) == 1


def test_startup_storm_ends_in_one_generation() -> None:
    """The initial delay gathers all twenty."""
    events = trace("startup-storm")

    (completed,) = of(events, Event.JOIN_COMPLETE)
    assert completed.members == 20


def test_added_partitions_are_found_by_the_leader() -> None:
    """Until its metadata is refreshed nobody reads them."""
    events = trace("partitions-added")

    before, after = generations(events)
    assert reasons(events) == [RebalanceReason.LEADER_REJOIN]
    assert (sum(before.loads), sum(after.loads)) == (6, 10)


def test_added_connector_stops_no_work() -> None:
    """Nothing is revoked, from anyone."""
    assigned = [
        decode_connect_assignment(event.assignment or b"")
        for event in of(trace("connector-added"), Event.ASSIGNED, after_ms=40_000)
    ]

    assert not any(one.revoked_connectors or one.revoked_tasks for one in assigned)
    assert sum(len(one.tasks) for one in assigned) == 6
    assert sum(len(one.connectors) for one in assigned) == 1


def test_crashed_worker_gets_its_work_back_after_the_delay() -> None:
    """Nobody else's work is touched, and the delay counts from the loss."""
    rows = generations(trace("connect-worker-crash"))

    assert [row.delay_ms for row in rows] == [0, 60_000, 41_998, 0]
    assert [sorted(row.loads) for row in rows] == [[3, 4, 4], [3, 4], [0, 3, 4], [3, 4, 4]]


def test_work_of_a_lost_worker_moves_after_the_delay_and_back_in_two_rounds() -> None:
    """One rebalance revokes for the worker that returned, and the next one assigns."""
    rows = generations(trace("connect-worker-lost"))

    loads = [sorted(row.loads) for row in rows]
    assert loads == [[3, 4, 4], [3, 4], [5, 6], [0, 4, 4], [3, 4, 4]]


@pytest.mark.parametrize("name", ["consumer-rolling-deploy", "rolling-bounce"])
def test_dynamic_members_cost_rebalances(name: str) -> None:
    """Closing means leaving, and coming back means joining."""
    found = set(reasons(trace(name)))

    assert {RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED} <= found


@pytest.mark.parametrize("name", ["connect-rolling-deploy", "connect-worker-bounce"])
def test_workers_of_a_deploy_get_their_work_back(name: str) -> None:
    """At the end every connector and task of the start is owned again."""
    rows = generations(trace(name))

    assert sum(rows[-1].loads) == sum(rows[0].loads)


def test_misspelt_name_is_answered_with_the_nearest() -> None:
    """Or with all names, where none is near."""
    with pytest.raises(ScenarioError, match="did you mean rolling-bounce"):
        scenario_named("roling-bounce")
    with pytest.raises(ScenarioError, match="known: connect-"):
        scenario_named("zzz")
