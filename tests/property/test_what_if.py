"""A setting at the value that replay assumes changes nothing, in drawn runs and in real logs."""

import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import Profile, profile_named
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.replay.compare import figures
from coordinator_sim.replay.course import Absence, Course
from coordinator_sim.replay.driver import Driver
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.plan import NEVER_MS, GroupPlan
from coordinator_sim.replay.planner import plan_episode
from coordinator_sim.replay.report import GroupFidelity, ReplayReport
from coordinator_sim.replay.settings import UNKNOWN, Settings, parse_grid
from coordinator_sim.replay.work import KnownGroups, parse_partitions
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import INGESTED, events_of, examples

REPO = Path(__file__).resolve().parents[2]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
LOGS = [EXAMPLE, *sorted(SAMPLES.glob("*.log"))]
PROFILES = st.sampled_from(("0.10.2", "2.8", "3.9", "4.4"))
ASSUMED = re.compile(r"((?:session\.timeout|group\.initial\.rebalance\.delay)\.ms)=(\d+)")
POINTLESS = (
    "group.max.size=2000000000",
    "max.poll.interval.ms=2147483647",
    "heartbeat.interval.ms=3000",
    "group.instance.id=none",
)
"""No group is so large, no rebalance takes 25 days; the interval is the one assumed, and members
that are static keep `none` from being tried.
"""


def events_in(path: Path) -> list[TraceEvent]:
    """A log's events."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(parse_broker_log(lines, source_ref=path.name, tz=UTC))


def replayed(events: list[TraceEvent], *texts: str) -> ReplayReport:
    """The report of a replay with these settings."""
    grid = [each for each in parse_grid(texts) if not each.is_empty]
    return replay_log(events, INGESTED, grid).report


def assumed_by(group: GroupFidelity) -> Iterator[str]:
    """The settings that replay assumes for a group, one value for all of its episodes."""
    found: dict[str, set[str]] = {}
    for text in group.assumed:
        for name, value in ASSUMED.findall(text):
            found.setdefault(name, set()).add(value)
    for name, values in found.items():
        if len(values) == 1:
            yield f"{name}={next(iter(values))}"


def groups_with_timeouts(events: list[TraceEvent]) -> set[str]:
    """Groups whose rebalance timeout removed somebody: another value does matter to them."""
    return {
        group_id
        for group_id, lines in group_lines(events).items()
        for episode in episodes_of(group_id, lines)
        for script in plan_episode(episode).scripts
        if script.kicks or script.sync_timeout_ms != NEVER_MS
    }


def told_timeouts(events: list[TraceEvent]) -> dict[str, set[str]]:
    """The session timeouts that lines tell, by group: they are not assumed, and may differ."""
    told: dict[str, set[str]] = {}
    for line in events:
        if line.group_id is not None and line.session_timeout_ms:
            text = f"session.timeout.ms={line.session_timeout_ms}"
            told.setdefault(line.group_id, set()).add(text)
    return told


def check(events: list[TraceEvent]) -> int:
    """Assumed values and settings that cannot matter change nothing; gives how many were tried."""
    groups = replayed(events).groups
    timed_out = groups_with_timeouts(events)
    wanted: dict[str, set[str]] = {text: {group.group_id for group in groups} for text in POINTLESS}
    wanted[POINTLESS[1]] -= timed_out
    told = told_timeouts(events)
    for group in groups:
        for text in assumed_by(group):
            if text.startswith("session") and told.get(group.group_id, {text}) != {text}:
                continue
            wanted.setdefault(text, set()).add(group.group_id)
    tried = 0
    for text, group_ids in wanted.items():
        for entry in replayed(events, text).what_if if group_ids else ():
            if entry.group_id in group_ids and not entry.not_computed:
                assert (text, entry.as_is) == (text, entry.with_settings), entry.group_id
                tried += 1
    return tried


def test_assumed_settings_change_nothing_in_real_logs() -> None:
    """The example, and logs of 0.10 to 4.x where they are at hand."""
    assert sum(check(events_in(path)) for path in LOGS) > (50 if SAMPLES.is_dir() else 5)


@pytest.mark.parametrize("timeout_ms", [6_000, 30_000, 310_000])
def test_time_that_a_dead_member_goes_unnoticed_is_never_negative(timeout_ms: int) -> None:
    """A member that is removed before its last sign of life was not dead."""
    for path in LOGS:
        for entry in replayed(events_in(path), f"session.timeout.ms={timeout_ms}").what_if:
            if entry.not_computed:
                continue
            assert min(entry.as_is.unnoticed_ms, entry.with_settings.unnoticed_ms) >= 0


def test_member_that_is_removed_alive_was_not_dead_unnoticed() -> None:
    """A rebalance timeout may remove it minutes before its last sign of life."""
    course = Course()
    course.absences.append(Absence("a", from_ms=311_000, until_ms=1_000, is_dead=True))
    course.absences.append(Absence("b", from_ms=4_000, until_ms=9_000, is_dead=True))
    assert figures([], course).unnoticed_ms == 5_000


def test_runs_are_compared_with_a_replay_and_not_with_the_log() -> None:
    """The first figures are those of a replay under the assumptions, whatever is set."""
    events = events_in(EXAMPLE)
    told = {
        (entry.group_id, entry.as_is.rebalances, entry.as_is.last_generation)
        for value in (9_000, 20_000)
        for entry in replayed(events, f"session.timeout.ms={value}").what_if
    }
    assert told == {("orders-service", 17, 2), ("billing", 7, 7)}


def test_quiet_days_change_no_figure() -> None:
    """A crash after 300 quiet days costs as much as after an hour, and is replayed as fast."""
    events = [each for each in events_in(EXAMPLE) if each.group_id == "orders-service"]
    (failed,) = [each for each in events if each.event is Event.MEMBER_FAILED]
    known = KnownGroups(given=parse_partitions(["orders=8"]))
    grid = [
        *parse_grid(["group.protocol=consumer", "group.consumer.session.timeout.ms=6000,45000"]),
        *parse_grid(["session.timeout.ms=9000"]),
    ]
    found = []
    for quiet_us in (3_600_000_000, 300 * 86_400_000_000):
        later = [
            replace(each, ts_us=each.ts_us + quiet_us) if each.ts_us >= failed.ts_us else each
            for each in events
        ]
        entries = replay_log(later, INGESTED, grid, known=known).report.what_if
        assert [each.not_computed for each in entries] == ["", "", ""]
        assert {each.with_settings.removed for each in entries if each.with_settings} == {1}
        found.append([(each.as_is, each.with_settings) for each in entries])
    assert found[0] == found[1]


def driven(
    plan: GroupPlan, profile: Profile, settings: Settings, until_ms: int | None, *, always: bool
) -> tuple[list[TraceEvent], str]:
    """The core's events of a replay, and who was a member and away when.

    Requests have running numbers, in which heartbeats count; nothing else may differ.
    """
    driver = Driver(plan, profile, settings, until_ms=until_ms, heartbeats_always=always)
    events = [replace(each, correlation_id=None) for each in driver.run()]
    return events, repr(driver.course)


SESSIONS = (UNKNOWN, *parse_grid(["session.timeout.ms=7000,30000"]))
RESTLESS = parse_grid(["session.timeout.ms=7000", "max.poll.interval.ms=300"])
"""Members that react come and go three times a second: for as long as an hour at the most."""


def check_skipping(events: list[TraceEvent], profile: Profile) -> None:
    """Heartbeats that are left out change nothing, whether members follow the trace or react."""
    profile = replace(profile, refreshes_timeouts=True)
    for group_id, lines in group_lines(events).items():
        for episode in episodes_of(group_id, lines):
            if episode.generation is None or not episode.rebalances:
                continue
            plan = plan_episode(episode)
            began_ms = episode.rebalances[0].first_line.ts_us // 1_000
            is_short = episode.last_ms - began_ms < 3_600_000
            for each in (*SESSIONS, *(RESTLESS if is_short else ())):
                for until_ms in (None, episode.last_ms + 100_000):
                    apart = [
                        driven(plan, profile, each, until_ms, always=always)
                        for always in (False, True)
                    ]
                    assert apart[0] == apart[1], (group_id, each, until_ms)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_heartbeats_left_out_change_nothing_in_real_logs(path: Path) -> None:
    """In the example, and in logs of 0.10 to 4.x where they are at hand."""
    check_skipping(events_in(path), profile_named("4.4"))


def check_drawn(scenario: Scenario, seed: int, profile: str) -> None:
    """A drawn run, told as its broker's log and read again."""
    lines = broker_log(
        events_of(replace(scenario, profile=profile), seed=seed), profile_named(profile)
    )
    events = list(parse_broker_log(lines, source_ref="drawn.log", tz=UTC))
    check(events)
    check_skipping(events, profile_named(profile))


@settings(max_examples=10, deadline=None, derandomize=True)
@given(scenario=scenarios(), seed=st.integers(0, 2**16), profile=PROFILES)
def test_assumed_settings_change_nothing_in_a_few_drawn_runs(
    scenario: Scenario, seed: int, profile: str
) -> None:
    """A small draw of the property below, for every run of the suite."""
    check_drawn(scenario, seed, profile)


@pytest.mark.property
@settings(max_examples=examples(often=40, nightly=2_000), deadline=None)
@given(scenario=scenarios(), seed=st.integers(0, 2**16), profile=PROFILES)
def test_assumed_settings_change_nothing_in_drawn_runs(
    scenario: Scenario, seed: int, profile: str
) -> None:
    """Whatever happens to a group, what replay assumes is what it replays with."""
    check_drawn(scenario, seed, profile)
