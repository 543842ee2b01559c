"""Three sources of one run of a real broker: each alone and all together tell the same story."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.report import ReplayReport
from coordinator_sim.replay.run import replay_run
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent
from coordinator_sim_conformance.real_kafka.three_sources import (
    DYNAMIC_GROUP,
    SESSION_MS,
    STATIC_GROUP,
    Sources,
    leave_sources,
)
from tests.unit.ingest.runs_as_sources import Told, generations_in, read_again

pytestmark = pytest.mark.real_kafka

APART_US = 100_000
"""Limit of the distance between two sources: a request log notes an answer as it is sent."""
ALONE = {"log": Source.BROKER_LOG, "requests": Source.REQUEST_LOG, "segments": None}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the traces of one run: of each source, and of all."""
    folder = tmp_path_factory.mktemp("three-sources")
    sources: Sources = leave_sources(folder / "sources", print)
    paths = {
        "log": [sources.server_log],
        "requests": [sources.request_log],
        "segments": [sources.log_dir],
        "all": [sources.server_log, sources.request_log, sources.log_dir],
    }
    for name, own in paths.items():
        importing = read_again(folder / name, *own)
        assert not importing.bad
        for one in importing.files:
            assert one.segment is None or not one.segment.skipped
            assert one.summary.unparsed == 0
    return folder


def events_of(folder: Path, *kinds: Event) -> list[TraceEvent]:
    """The events of these kinds."""
    return [event for event in read_run(folder).events() if event.event in kinds]


def without_times(generations: dict[tuple[str, int, int], Told]) -> dict[object, object]:
    """Members, owners, protocols and leaders by generation."""
    return {
        key: (each.members, each.owners, each.protocol, each.leader)
        for key, each in generations.items()
    }


def joined_in(folder: Path) -> dict[tuple[str | None, int | None], TraceEvent]:
    """Ends of join phases, with members or without, by group and generation."""
    found = events_of(folder, Event.JOIN_COMPLETE, Event.GROUP_EMPTY)
    assert len({(event.group_id, event.generation) for event in found}) == len(found)
    return {(event.group_id, event.generation): event for event in found}


def members(events: Iterable[TraceEvent]) -> set[tuple[str | None, str | None]]:
    """Groups and member ids."""
    return {(event.group_id, event.member_id) for event in events}


def commits(folder: Path) -> Counter[tuple[str | None, str, int, int]]:
    """Commits that succeeded, by group, topic, partition and offset."""
    return Counter(
        (event.group_id, entry.topic, entry.partition, entry.offset)
        for event in events_of(folder, Event.OFFSET_COMMIT)
        if event.error_code in (None, ErrorCode.NONE)
        for entry in event.offsets
    )


def test_generations_members_owners_and_leaders_agree(told: Path) -> None:
    """Requests and segments have assignments; the log has numbers, counts, leaders and times."""
    requests, segments, everything = (
        generations_in(told / name) for name in ("requests", "segments", "all")
    )
    assert without_times(requests) == without_times(segments) == without_times(everything)
    assert {key[0] for key in requests} == {DYNAMIC_GROUP, STATIC_GROUP}
    for key, one in requests.items():
        other = segments[key]
        assert abs(one.joined_us - other.joined_us) <= APART_US
        assert abs(one.synced_us - other.synced_us) <= APART_US
    log = joined_in(told / "log")
    for name in ("requests", "segments", "all"):
        joined = joined_in(told / name)
        assert joined.keys() == log.keys(), name
        for key, event in log.items():
            assert abs(event.ts_us - joined[key].ts_us) <= APART_US, (name, key)
            if event.members is not None:
                assert event.members == joined[key].members, (name, key)
    leaders = {
        (event.group_id, event.generation): event.leader_id
        for event in events_of(told / "log", Event.SYNC_LEADER)
    }
    assert leaders == {
        (group, number): each.leader for (group, _, number), each in segments.items()
    }


def test_commits_agree(told: Path) -> None:
    """Each commit that a client was told of is in the segments, and in all sources once."""
    requests, segments = commits(told / "requests"), commits(told / "segments")
    assert requests.total() > 100
    assert requests == segments == commits(told / "all")


def test_who_came_went_and_failed_agrees(told: Path) -> None:
    """The log names all; requests show leaves, ids and failures; segments do not show why."""
    left = {
        name: members(events_of(told / name, Event.MEMBER_LEFT))
        for name in ("log", "requests", "all")
    }
    assert left["log"] == left["requests"] == left["all"]
    assert len(left["log"]) == 5
    failed = {name: events_of(told / name, Event.MEMBER_FAILED) for name in ("log", "requests")}
    assert members(failed["log"]) == members(failed["requests"])
    (seen,), (shown,) = failed["log"], failed["requests"]
    assert (seen.confidence, shown.session_timeout_ms) == (1, SESSION_MS)
    assert abs(seen.ts_us - shown.ts_us) <= APART_US
    assert members(events_of(told / "all", Event.MEMBER_FAILED)) == members(failed["log"])
    for name in (*ALONE, "all"):
        (replaced,) = events_of(told / name, Event.STATIC_REPLACED)
        assert (replaced.group_id, replaced.group_instance_id) == (STATIC_GROUP, "biller-2")
        assert replaced.attrs["old_member_id"].startswith("biller-2-")
        # The log names whom it replaced, and not the new id; all sources together do.
        assert (replaced.member_id is None) == (name == "log")


def test_reasons_agree_as_far_as_a_source_has_them(told: Path) -> None:
    """Requests show the log's reasons; segments have no beginning of any rebalance."""
    began = {
        name: {
            (event.group_id, event.generation): event.reason
            for event in events_of(told / name, Event.PREPARE_REBALANCE)
        }
        for name in (*ALONE, "all")
    }
    assert began["log"] == began["requests"] == began["all"]
    assert began["segments"] == {}
    dynamic = Counter(
        reason for (group, _), reason in began["log"].items() if group == DYNAMIC_GROUP
    )
    assert dynamic == {
        RebalanceReason.MEMBER_JOINED: 6,
        RebalanceReason.MEMBER_LEFT: 5,
        RebalanceReason.MEMBER_FAILED: 1,
    }


def test_each_trace_replays_to_the_last_row(told: Path) -> None:
    """Plain replay reproduces all that each source determines; savings need beginnings."""
    grid = parse_grid(["session.timeout.ms=20000"], None)
    reports: dict[str, ReplayReport] = {
        name: replay_run(read_run(told / name), grid).report for name in (*ALONE, "all")
    }
    for name, report in reports.items():
        assert report.is_reproduced, name
        assert report.totals()["generations"].in_source >= 13, name
        unexplained = [line for group in report.groups for line in group.unexplained]
        assert unexplained == [], name
    assert [entry.saves_ms for entry in reports["segments"].what_if] == [None, None]
    # The log alone does not tell the session timeout: by the one that replay assumes instead, the
    # member fell silent earlier. Its removal is to come at the same instant.
    assumed = [line for group in reports["log"].groups for line in group.assumed]
    (session_ms,) = re.findall(r"members that failed had session\.timeout\.ms=(\d+)", str(assumed))
    later = parse_grid([f"session.timeout.ms={20_000 + int(session_ms) - SESSION_MS}"], None)
    reports["log"] = replay_run(read_run(told / "log"), later).report
    figures = [
        (entry.group_id, entry.with_settings.rebalances, entry.with_settings.removed)
        for name in ("log", "requests", "all")
        for entry in reports[name].what_if
        if entry.with_settings is not None
    ]
    assert len(figures) == 6
    assert len(set(figures)) == 2
