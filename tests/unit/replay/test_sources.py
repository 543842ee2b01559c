"""Replays of what request logs, segments and captures tell: all that they determine comes true."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from coordinator_sim.errors import DataError
from coordinator_sim.replay.report import ReplayReport
from coordinator_sim.replay.run import replay_run
from coordinator_sim.replay.settings import Settings, parse_grid
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.trace.events import Event, RebalanceReason, RunInfo, Source, TraceEvent
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named
from coordinator_sim_scenarios.strategies import scenarios
from tests.unit.ingest.runs_as_sources import LeftBehind, leave_behind, read_again
from tests.unit.replay.classic_stories import CLASSIC_STORIES

STORIES = [
    *("connect-coordinator-outage", "connect-join-storm", "connect-no-delay"),
    *("coordinator-lost-in-join", "late-heartbeat-answer", "mass-restart", "static-leader-restart"),
    "stuck-commit",
]
CRASH = "member-crash"


def sources_of(left: LeftBehind) -> dict[str, tuple[Path, ...]]:
    """What one may have of a run: one source, or several."""
    return {
        "requests": (left.request_log,),
        "segments": (left.log_dir,),
        "without-log": (left.request_log, left.log_dir),
        "all": (left.broker_log, left.request_log, left.log_dir),
    }


def replayed(folder: Path, *paths: Path, grid: Sequence[Settings] = ()) -> ReplayReport:
    """The report of replaying what files tell."""
    read_again(folder, *paths)
    return replay_run(read_run(folder), grid).report


def check_all_comes_true(left: LeftBehind, folder: Path) -> None:
    """Every source's generations, members and outcomes are the core's, and none is missing."""
    finished = sum(event.event is Event.SYNC_LEADER for event in left.events)
    for name, paths in sources_of(left).items():
        report = replayed(folder / name, *paths)
        missed = [group.first_difference for group in report.groups if not group.is_reproduced]
        assert missed == [], name
        assert [line for group in report.groups for line in group.unexplained] == [], name
        totals = report.totals()
        for kind in ("generations", "members", "outcomes"):
            assert totals[kind].in_source >= finished, (name, kind)
        assert report.other_sources == {}


@pytest.mark.parametrize("name", STORIES)
def test_what_a_source_determines_comes_true(tmp_path: Path, name: str) -> None:
    """Stories with crashes, storms, static members and lost coordinators."""
    check_all_comes_true(leave_behind(scenario_named(name), tmp_path), tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLASSIC_STORIES)
def test_what_a_source_determines_comes_true_in_every_story(tmp_path: Path, name: str) -> None:
    """All stories of the catalogue that have classic groups alone."""
    check_all_comes_true(leave_behind(scenario_named(name), tmp_path), tmp_path)


@pytest.mark.nightly
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(scenario=scenarios())
def test_what_requests_tell_of_any_run_comes_true(
    scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Drawn scenarios, by their request logs."""
    folder = tmp_path_factory.mktemp("run")
    left = leave_behind(scenario, folder)
    if any(event.event is Event.SYNC_LEADER for event in left.events) and left.exchanges:
        report = replayed(folder / "requests", left.request_log)
        assert [group.first_difference for group in report.groups if not group.is_reproduced] == []


def test_requests_show_who_failed_and_when(tmp_path: Path) -> None:
    """A session that ran out follows from the last heartbeat: it is the coordinator's own time."""
    left = leave_behind(scenario_named(CRASH), tmp_path)
    read_again(tmp_path / "t", left.request_log)
    found = [each for each in read_run(tmp_path / "t").events() if each.group_id is not None]
    told, expected = (
        [event for event in events if event.event is Event.MEMBER_FAILED]
        for events in (found, left.events)
    )
    assert [event.member_id for event in told] == [event.member_id for event in expected]
    assert expected
    assert all(event.confidence < 1 and event.session_timeout_ms for event in told)
    for mine, theirs in zip(told, expected, strict=True):
        assert abs(mine.ts_us - theirs.ts_us) <= 10_000
    began = [event for event in found if event.event is Event.PREPARE_REBALANCE]
    assert RebalanceReason.MEMBER_FAILED in {event.reason for event in began}


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(all_scenarios()))
def test_requests_name_nobody_who_did_not_fail(tmp_path: Path, name: str) -> None:
    """Every member that a request log tells as failed did fail in the run."""
    left = leave_behind(scenario_named(name), tmp_path)
    read_again(tmp_path / "t", left.request_log)
    told = {
        event.member_id
        for event in read_run(tmp_path / "t").events()
        if event.event is Event.MEMBER_FAILED
    }
    gone = (Event.MEMBER_FAILED, Event.MEMBER_KICKED)
    assert told <= {event.member_id for event in left.events if event.event in gone}


def test_other_settings_save_the_same_by_requests_as_by_the_log(tmp_path: Path) -> None:
    """A shorter session is tried on both traces of one run: the figures agree."""
    left = leave_behind(scenario_named(CRASH), tmp_path)
    grid = parse_grid(["session.timeout.ms=6000"], None)
    by_log = replayed(tmp_path / "log", left.broker_log, grid=grid).what_if
    by_requests = replayed(tmp_path / "requests", left.request_log, grid=grid).what_if
    (log,), (requests,) = by_log, by_requests
    assert log.with_settings is not None
    assert requests.with_settings is not None
    assert requests.with_settings.rebalances == log.with_settings.rebalances
    assert requests.with_settings.removed == log.with_settings.removed == 1
    unnoticed_ms = [each.with_settings.unnoticed_ms for each in (log, requests)]  # type: ignore[union-attr] # as above
    assert unnoticed_ms == [6_000, 6_000]


def test_segments_alone_give_no_savings(tmp_path: Path) -> None:
    """They do not tell when rebalances began: one line says so, and what to add."""
    left = leave_behind(scenario_named(CRASH), tmp_path)
    grid = parse_grid(["session.timeout.ms=6000,20000"], None)
    report = replayed(tmp_path / "t", left.log_dir, grid=grid)
    assert report.is_reproduced
    assert len(report.what_if) == 2
    for entry in report.what_if:
        assert entry.saves_ms is None
        assert "tells no beginning of any rebalance" in entry.not_computed
        assert "request log" in entry.not_computed
    (group,) = report.groups
    assert group.tallies["rebalances"].in_source == 0
    assert any("the starts of" in text for text in group.assumed)


def test_requests_without_answers_are_refused_with_the_reason(tmp_path: Path) -> None:
    """As request logs of brokers up to 0.10.2 are."""
    info = RunInfo(
        trace_id="t", source=Source.REQUEST_LOG, cluster_id="c", version="0", profile="ingested"
    )
    with RunDirectoryWriter(tmp_path / "t", info, format="jsonl") as writer:
        writer.record(
            TraceEvent(
                event=Event.JOIN_REQ,
                ts_us=1,
                group_id="g",
                member_id="",
                source=Source.REQUEST_LOG,
                source_ref="kafka-request.log",
            )
        )
    with pytest.raises(DataError, match=r"its requests have no answers .*0\.10\.2"):
        replay_run(read_run(tmp_path / "t"))


def test_formatter_text_is_refused_as_it_has_no_times(tmp_path: Path) -> None:
    """Generations that all seem to be of one instant cannot be replayed in the order of time."""
    (tmp_path / "printed.txt").write_text(
        "[g,t,0]::[OffsetMetadata[5,NO_METADATA],CommitTime 1700000000000,ExpirationTime 9]\n"
        "g::GroupMetadata(groupId=g, generation=3, protocolType=Some(consumer), "
        "currentState=Stable, members=Map(c-1 -> MemberMetadata(memberId=c-1, "
        "groupInstanceId=Some(null), clientId=c, clientHost=/10.0.0.1, sessionTimeoutMs=10000, "
        "rebalanceTimeoutMs=60000, supportedProtocols=List(range), )))\n"
    )
    read_again(tmp_path / "t", tmp_path / "printed.txt")
    with pytest.raises(DataError, match="print generations without times as text, so there is"):
        replay_run(read_run(tmp_path / "t"))
