"""Findings about work: twice at once, again, or not stored while the member was well."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.findings import Finding
from coordinator_sim.replay.work_findings import work_findings, work_findings_in
from coordinator_sim.sim.scenario.files import load_scenario
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.work import count_work
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import events_of

SCENARIOS = Path(__file__).with_name("scenarios")


def found_in(name: str, **changed: object) -> tuple[list[TraceEvent], dict[str, Finding]]:
    """The events of a scenario of this folder, and its findings by kind."""
    events = events_of(replace(load_scenario(SCENARIOS / f"{name}.json"), **changed))
    return events, {each.kind: each for each in work_findings_in(events)}


def catalogue(name: str) -> dict[str, Finding]:
    """The findings of a catalogue scenario whose work is traced."""
    events = events_of(replace(all_scenarios()[name], traces_work=True))
    return {each.kind: each for each in work_findings_in(events)}


# -- what was only counted -----------------------------------------------------------------


def test_tasks_run_twice_on_the_way_back_to_eager_are_found_with_their_cause() -> None:
    """KAFKA-13816: as long as `run` counts, in its unit; the way that helps is named."""
    events, found = found_in("back-to-eager")
    twice = found["work-done-twice"]
    counted_us = sum(row.double_run_us for row in count_work(events))
    assert counted_us > 30_000_000
    assert (twice.cost_s, twice.cost_unit) == (counted_us / 1e6, "task-seconds run twice")
    assert "KAFKA-13816" in twice.what
    assert "Stop all workers" in twice.change
    again = found["records-processed-again"]
    assert again.cost_s == sum(row.duplicates for row in count_work(events))
    assert "by two members at once" in again.what


def test_member_that_left_for_its_polls_and_works_on_is_found() -> None:
    """Librdkafka 5604: both hold every partition from b's assignment to a's next poll."""
    events, found = found_in("late-poll")
    twice = found["work-done-twice"]
    counted_us = sum(row.double_run_us for row in count_work(events))
    assert (twice.cost_s, twice.cost_unit) == (counted_us / 1e6, "partition-seconds run twice")
    assert "a left the group because it did not poll within max.poll.interval.ms=8000" in twice.what
    assert "on a and b" in twice.what
    assert twice.setting is None


def test_commits_of_healthy_members_that_are_refused_are_found_with_their_share() -> None:
    """How many, of how many, whose; and that brokers of 4.3 take them."""
    events, found = found_in("stale-epochs")
    commits = [event for event in events if event.event is Event.OFFSET_COMMIT]
    stale = [each for each in commits if each.error_code is ErrorCode.STALE_MEMBER_EPOCH]
    refused = found["commits-refused"]
    assert stale
    assert refused.cost_s == len(stale)
    assert f"{len(stale)} of {len(commits):,} commits were refused with STALE_MEMBER_EPOCH" in (
        refused.what
    )
    assert "KIP-1251" in refused.change
    assert found_in("stale-epochs", profile="4.3")[1] == {}


@pytest.mark.parametrize(
    "name",
    [
        *("rolling-bounce", "static-rolling-bounce", "scale-out", "startup-storm"),
        *("new-regex", "partitions-added", "connect-rolling-deploy", "connect-worker-bounce"),
        *("connect-eager-to-sessioned-upgrade", "connect-sessioned-3-workers"),
    ],
)
def test_healthy_scenarios_have_nothing_to_find(name: str) -> None:
    """Their work is handed over, once."""
    assert catalogue(name) == {}


@pytest.mark.parametrize(
    "name", ["zombie-after-pause", "late-heartbeat-answer", "new-member-fenced"]
)
def test_zombie_within_its_window_is_no_finding_but_what_is_done_again_is(name: str) -> None:
    """A process stands still for longer than its session, and learns of it at once."""
    found = catalogue(name)
    assert set(found) == {"records-processed-again"}
    assert "after a member was removed, since its last commit" in (
        found["records-processed-again"].what
    )


# -- the window ----------------------------------------------------------------------------


def line(at_s: float, event: Event, client: str, **fields: object) -> TraceEvent:
    """A line about the member of a client."""
    return TraceEvent(
        event=event,
        ts_us=int(at_s * 1e6),
        seq=int(at_s * 1_000),
        group_id="g",
        client_id=client,
        member_id=f"{client}-1",
        **fields,  # type: ignore[arg-type]
    )


def work(from_s: float, to_s: float, client: str, first: int, end: int) -> TraceEvent:
    """A stretch of work on one partition."""
    return line(
        to_s,
        Event.RECORDS_PROCESSED,
        client,
        latency_us=int((to_s - from_s) * 1e6),
        offsets=(OffsetEntry(topic="t", partition=0, offset=first),),
        position=end,
    )


@pytest.mark.parametrize(
    ("until_s", "is_found"), [(19.0, False), (30.9, False), (31.1, True), (60.0, True)]
)
def test_window_of_a_removed_member_is_its_rebalance_timeout(
    until_s: float, is_found: bool
) -> None:
    """It learns of its removal with its next poll, at most 20 s later, and a second to stop."""
    lines = [
        line(0, Event.MEMBER_ADDED, "a", rebalance_timeout_ms=20_000),
        line(0, Event.MEMBER_ADDED, "b", rebalance_timeout_ms=20_000),
        line(10, Event.MEMBER_FAILED, "a"),
        work(0, until_s, "a", 0, 100),
        work(11, 70, "b", 100, 900),
    ]
    found = work_findings("g", lines, [])
    assert [each.kind for each in found] == (["work-done-twice"] if is_found else [])


def test_time_in_which_a_process_stood_still_is_no_work() -> None:
    """A pause that ends with the process, longer than any window."""
    lines = [
        line(0, Event.MEMBER_ADDED, "a", rebalance_timeout_ms=20_000),
        line(1, Event.LIFECYCLE, "a", reason_text="paused"),
        line(10, Event.MEMBER_FAILED, "a"),
        line(99, Event.LIFECYCLE, "a", reason_text="resumed"),
        work(0, 99.5, "a", 0, 100),
        work(11, 100, "b", 100, 900),
    ]
    assert work_findings("g", lines, []) == []


def test_member_that_nobody_removed_has_no_window() -> None:
    """Two owners at once without a reason: a fault of the client or of its assignor."""
    lines = [
        line(0, Event.MEMBER_ADDED, "a"),
        line(0, Event.MEMBER_ADDED, "b"),
        work(0, 20, "a", 0, 100),
        work(11, 20, "b", 100, 900),
    ]
    (found,) = work_findings("g", lines, [])
    assert found.cost_s == pytest.approx(9.0)
    assert "was a member all the time" in found.what
    assert found.change.startswith("No setting changes this")


def test_connectors_and_tasks_that_run_twice_are_found_without_records() -> None:
    """A trace that tells of starts and stops alone."""
    worker = {"protocol_type": "connect"}
    lines = [
        line(0, Event.MEMBER_ADDED, "a", **worker),
        line(0, Event.MEMBER_ADDED, "b", **worker),
        line(1, Event.TASKS_STARTED, "a", attrs={"resources": "c:x t:x-0"}),
        line(5, Event.TASKS_STARTED, "b", attrs={"resources": "t:x-0"}),
        line(9, Event.TASKS_STOPPED, "a", attrs={"resources": "c:x t:x-0"}),
        line(12, Event.TASKS_STOPPED, "b", attrs={"resources": "t:x-0"}),
    ]
    (found,) = work_findings("g", lines, [])
    assert found.cost_s == pytest.approx(4.0)
    assert found.what.startswith("x-0 ran on two members at once between 5.0 s and 9.0 s")


# -- commits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("removed_s", "heard_s", "is_found"), [(None, 9, True), (None, 4, False), (4.5, 9, False)]
)
def test_refused_commit_counts_where_its_member_is_in_the_group_and_heard_of(
    removed_s: float | None, heard_s: float, is_found: bool
) -> None:
    """A member that was removed, or that is never heard of again, is not well."""
    lines = [
        line(0, Event.MEMBER_ADDED, "a"),
        line(3, Event.OFFSET_COMMIT, "a"),
        line(5, Event.OFFSET_COMMIT, "a", error_code=ErrorCode.ILLEGAL_GENERATION),
        line(heard_s, Event.HEARTBEAT, "a"),
    ]
    if removed_s is not None:
        lines.append(line(removed_s, Event.MEMBER_LEFT, "a"))
    found = work_findings("g", sorted(lines, key=lambda each: each.ts_us), [])
    assert [each.kind for each in found] == (["commits-refused"] if is_found else [])
    assert not found or found[0].what.startswith("1 of 2 commits")


def test_records_done_again_tell_of_the_commit_that_was_refused() -> None:
    """What was last said of the partition's offset was a refusal."""
    lines = [
        line(0, Event.MEMBER_ADDED, "a"),
        work(0, 5, "a", 0, 100),
        line(
            5,
            Event.OFFSET_COMMIT,
            "a",
            error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            offsets=(OffsetEntry(topic="t", partition=0, offset=100),),
        ),
        line(6, Event.MEMBER_ADDED, "b"),
        work(7, 9, "b", 40, 120),
    ]
    (found,) = work_findings("g", lines, [])
    assert found.cost_s == 60
    assert "60 after a commit was refused with UNKNOWN_MEMBER_ID" in found.what
    assert "60 of t-0, first by a and then by b" in found.what
