"""Replays of recorded requests: a simulated run is driven again, answer by answer."""

import pytest
from msgspec.structs import replace

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.recording import Recording
from coordinator_sim.replay.recordings import ANSWERS, replay_recording
from coordinator_sim.replay.settings import Settings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import SIMULATED, events_of
from tests.unit.replay.classic_stories import CLASSIC_STORIES


def run_of(name: str) -> list[TraceEvent]:
    """The events of a catalogue scenario."""
    return events_of(all_scenarios()[name])


@pytest.mark.parametrize("name", CLASSIC_STORIES)
def test_recorded_run_is_reproduced_whole(name: str) -> None:
    """Every answer, generation, leader and assignment comes again, in the same millisecond."""
    events = run_of(name)
    info = replace(SIMULATED, profile=all_scenarios()[name].profile)
    report = replay_recording(events, info).report
    assert [group.first_difference for group in report.groups if group.first_difference] == []
    assert report.totals()["answers"].in_source == sum(each.event in ANSWERS for each in events)
    assert report.groups
    assert report.epoch_groups == {}
    assert report.is_reproduced


@pytest.mark.parametrize("name", ["new-member-fenced", "online-upgrade"])
def test_group_with_epochs_is_left_out_whole_and_named(name: str) -> None:
    """A consumer group, or one that was it for a while, is named, and nothing of it is compared."""
    report = replay_recording(run_of(name), SIMULATED).report
    assert report.groups == []
    assert report.epoch_groups == {"orders-app": "consumer"}


def test_classic_group_beside_one_with_epochs_is_replayed() -> None:
    """Only the group with epochs is left out of a trace that has both."""
    other = [
        replace(event, group_id="other-app", ts_us=event.ts_us)
        for event in run_of("new-member-fenced")
        if event.group_id is not None
    ]
    events = sorted([*run_of("member-crash"), *other], key=lambda event: event.ts_us)
    report = replay_recording(events, SIMULATED).report
    assert [group.group_id for group in report.groups] == ["orders-app"]
    assert report.epoch_groups == {"other-app": "consumer"}
    assert report.is_reproduced


def test_told_protocols_need_no_assumption() -> None:
    """A JoinGroup that lists what its member offers leaves the broker's delay alone open."""
    report = replay_recording(run_of("member-crash"), SIMULATED).report
    assert [group.assumed for group in report.groups] == [
        ["group.initial.rebalance.delay.ms=3000, the guess that fits best"]
    ]


def test_a_trace_that_tells_its_delay_needs_no_guess() -> None:
    """The delay of a trace that was served is known."""
    info = replace(SIMULATED, options={"group.initial.rebalance.delay.ms": "3000"})
    report = replay_recording(run_of("member-crash"), info).report
    assert report.is_reproduced
    assert [group.assumed for group in report.groups] == [[]]


def test_protocols_that_are_not_told_are_assumed_and_said_so() -> None:
    """A trace without the attribute is replayed with what the run's label and answers tell."""
    events = [
        replace(event, attrs={}) if event.event is Event.JOIN_REQ else event
        for event in run_of("connect-worker-crash")
    ]
    report = replay_recording(events, SIMULATED).report
    assert report.is_reproduced
    (group,) = report.groups
    assert group.assumed[1].startswith("members offer all protocols of their group")


def test_selected_second_protocol_has_an_assumed_subscription() -> None:
    """The trace tells the subscription of a member's first protocol alone."""
    events = [
        replace(event, attrs={"protocols": "own,range"}) if event.event is Event.JOIN_REQ else event
        for event in run_of("member-crash")
    ]
    assert Recording(events, SIMULATED.assignor).assumptions() == [
        "members have the subscription of their first protocol for all"
    ]


def test_changed_answer_is_found() -> None:
    """One error code that the core does not give is one answer not reproduced."""
    events = run_of("member-crash")
    at = next(index for index, event in enumerate(events) if event.event is Event.SYNC_RESP)
    events[at] = replace(events[at], error_code=ErrorCode.ILLEGAL_GENERATION)
    (group,) = replay_recording(events, SIMULATED).report.groups
    tally = group.tallies["answers"]
    assert tally.in_source - tally.reproduced == 1
    assert "error_code is ILLEGAL_GENERATION, the core's NONE" in tally.first_difference


def test_settings_of_a_recording_are_tried_on_what_was_told() -> None:
    """A crashed member is noticed later with a longer session, and the report says so."""
    result = replay_recording(
        run_of("member-crash"), SIMULATED, [Settings(session_timeout_ms=20_000)]
    )
    (what_if,) = result.report.what_if
    assert what_if.as_is.unnoticed_ms == 10_000
    assert what_if.with_settings.unnoticed_ms == 20_000
    assert result.report.grid == [{"session.timeout.ms": 20_000}]
