"""Three sources of one run, each read by itself and all together, tell the same story."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.importing import Importing
from coordinator_sim.ingest.precedence import Precedence
from coordinator_sim.ingest.skew import Skews
from coordinator_sim.logtext.writing.request_log import request_line
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim_scenarios.catalog import scenario_named
from coordinator_sim_scenarios.strategies import scenarios
from tests.unit.ingest.runs_as_sources import (
    LeftBehind,
    generations_in,
    generations_of,
    leave_behind,
    read_again,
)

FACTS = (Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.ASSIGNED, Event.OFFSET_COMMIT)


def check_agreement(left: LeftBehind, folder: Path) -> dict[str, Importing]:
    """Check that every source that has assignments tells the generations of the run."""
    expected = generations_of(left.events)
    sources = {
        "segments": (left.log_dir,),
        "requests": (left.request_log,),
        "all": (left.broker_log, left.request_log, left.log_dir),
        "usual": (left.log_dir, left.broker_log),
    }
    read = {}
    for name, paths in sources.items():
        read[name] = read_again(folder / name, *paths)
        assert not read[name].bad
        assert sum(one.summary.unparsed for one in read[name].files) == 0
        found = generations_in(folder / name)
        assert sorted(found) == sorted(expected), name
        differing = [key for key, told in found.items() if not told.agrees(expected[key])]
        assert differing == [], name
    return read


@pytest.mark.parametrize(
    "name",
    [
        "rolling-bounce",
        "static-leader-restart",
        "coordinator-lost-in-join",
        "connect-worker-crash",
        "late-heartbeat-answer",
    ],
)
def test_three_sources_of_a_run_agree(tmp_path: Path, name: str) -> None:
    """Generations, members, owners, leaders; join and sync within the millisecond of a log."""
    left = leave_behind(scenario_named(name), tmp_path)
    read = check_agreement(left, tmp_path)
    assert all(skew.median_us <= 1_000 for skew in read["all"].skews)


def test_broker_log_agrees_on_when_generations_were_joined(tmp_path: Path) -> None:
    """The third source has no assignments: generations and their times are compared."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path)
    read_again(tmp_path / "log", left.broker_log)
    joined = {
        event.generation: event.ts_us
        for event in read_run(tmp_path / "log").events()
        if event.event is Event.JOIN_COMPLETE
    }
    expected = {key[2]: told.joined_us for key, told in generations_of(left.events).items()}
    assert joined.keys() == expected.keys()
    assert all(abs(joined[key] - expected[key]) <= 1_000 for key in joined)


def test_nothing_is_counted_twice(tmp_path: Path) -> None:
    """All three sources together have each fact as often as the run had it."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path)
    importing = read_again(tmp_path / "all", left.broker_log, left.request_log, left.log_dir)
    events = list(read_run(tmp_path / "all").events())
    counted = Counter(event.event for event in events)
    expected = Counter(event.event for event in left.events)
    assert {each: counted[each] for each in FACTS} == {each: expected[each] for each in FACTS}
    assert counted[Event.PREPARE_REBALANCE] == expected[Event.PREPARE_REBALANCE]
    assert sum(one.summary.events for one in importing.files) == len(events)
    # A broker's log tells why; the requests tell who owns what; nobody is averaged.
    first = next(event for event in events if event.event is Event.PREPARE_REBALANCE)
    assert (first.source, first.reason is not None) == (Source.BROKER_LOG, True)


def test_file_named_twice_and_rotated_copies_count_once(tmp_path: Path) -> None:
    """A copy under another name, and an excerpt of a request log, add nothing."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path)
    read_again(tmp_path / "one", left.request_log)
    copy, part = tmp_path / "copy.log", tmp_path / "part.log"
    copy.write_bytes(left.request_log.read_bytes())
    lines = left.request_log.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[100:400]))
    importing = read_again(tmp_path / "two", left.request_log, copy, part)
    assert [one.copy_of for one in importing.files] == [None, str(left.request_log), None]
    one, two = (list(read_run(tmp_path / name).events()) for name in ("one", "two"))
    assert Counter(map(_said, one)) == Counter(map(_said, two))
    assert sum(each.summary.repeated for each in importing.files) == 300


def _said(event: object) -> tuple[object, ...]:
    return tuple(getattr(event, name) for name in ("event", "ts_us", "member_id", "generation"))


def test_zone_that_is_not_the_brokers_is_told(tmp_path: Path) -> None:
    """A log read in the wrong zone would tell everything twice, two hours apart."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path)
    shifted = left.broker_log.read_text().replace("1970-01-01 00:", "1970-01-01 02:")
    left.broker_log.write_text(shifted)
    with pytest.raises(DataError, match=r"2:00:00 .* --tz"):
        read_again(tmp_path / "t", left.broker_log, left.log_dir)


def test_clocks_that_differ_a_little_are_told(tmp_path: Path) -> None:
    """Half a second between two hosts: facts are still recognised, and the skew is measured."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path)
    late = [
        msgspec.structs.replace(
            each,
            asked_us=each.asked_us + 500_000,
            done_us=each.done_us + 500_000,
            sent_us=each.sent_us + 500_000,
        )
        for each in left.exchanges
    ]
    left.request_log.write_text("".join(f"{request_line(each)}\n" for each in late))
    importing = read_again(tmp_path / "t", left.request_log, left.log_dir)
    (skew,) = importing.skews
    assert 499_000 <= abs(skew.median_us) <= 501_000
    assert sorted(generations_in(tmp_path / "t")) == sorted(generations_of(left.events))


@pytest.mark.nightly
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(scenario=scenarios())
def test_any_run_is_told_alike_by_its_sources(
    scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Drawn scenarios: segments and request logs tell the generations of the run."""
    folder = tmp_path_factory.mktemp("run")
    left = leave_behind(scenario, folder)
    expected = generations_of(left.events)
    for name, path in (("segments", left.log_dir), ("requests", left.request_log)):
        if not left.exchanges or not any(left.log_dir.rglob("*.log")):
            continue
        read_again(folder / name, path)
        found = generations_in(folder / name)
        assert [key for key in expected if not expected[key].agrees(found[key])] == []


def told(event: Event, at_us: int, source: Source, confidence: float = 1.0) -> TraceEvent:
    """What a source tells of the end of member `m`, or of the generation after it."""
    is_member = event in (Event.MEMBER_LEFT, Event.MEMBER_FAILED)
    return TraceEvent(
        event=event,
        ts_us=at_us,
        group_id="g",
        generation=2,
        member_id="m" if is_member else None,
        source=source,
        source_ref=source.value,
        confidence=confidence,
    )


@pytest.mark.parametrize("apart_us", [-600, 0, 600])
def test_inference_gives_way_to_what_a_better_source_saw(apart_us: int) -> None:
    """Segments infer that a silent member failed; the log has its leave, in whatever order."""
    events = [
        told(Event.MEMBER_LEFT, 97_000_000, Source.BROKER_LOG),
        told(Event.MEMBER_FAILED, 100_000_000, Source.OFFSETS_SEGMENT, 0.6),
        told(Event.JOIN_COMPLETE, 100_000_000, Source.OFFSETS_SEGMENT),
        told(Event.JOIN_COMPLETE, 100_000_000 + apart_us, Source.BROKER_LOG),
    ]
    events.sort(key=lambda event: event.ts_us)
    dropped: list[Event] = []
    precedence = Precedence(Skews(), lambda event, _own: dropped.append(event.event))
    kept = [*precedence.chosen(events), *precedence.finish()]
    assert [event.event for event in kept] == [Event.MEMBER_LEFT, Event.JOIN_COMPLETE]
    assert sorted(each.value for each in dropped) == ["JOIN_COMPLETE", "MEMBER_FAILED"]
    assert precedence.left_out == {Source.OFFSETS_SEGMENT: 2}


def test_inferred_arrival_gives_way_to_a_generation_told_a_moment_later() -> None:
    """The broker's line of the same instant comes second in the merged order."""
    arrived = msgspec.structs.replace(
        told(Event.MEMBER_FAILED, 100_000_000, Source.OFFSETS_SEGMENT, 0.9),
        event=Event.MEMBER_ADDED,
    )
    later = told(Event.JOIN_COMPLETE, 100_000_600, Source.BROKER_LOG)
    precedence = Precedence(Skews(), lambda _event, _own: None)
    kept = [*precedence.chosen([arrived, later]), *precedence.finish()]
    assert kept == [later]


def test_returning_static_member_counts_once(tmp_path: Path) -> None:
    """The log names whom it replaces, requests and segments also its new id; together all do."""
    left = leave_behind(scenario_named("static-leader-restart"), tmp_path)
    read_again(tmp_path / "t", left.broker_log, left.request_log, left.log_dir)
    found, expected = (
        [event for event in events if event.event is Event.STATIC_REPLACED]
        for events in (list(read_run(tmp_path / "t").events()), left.events)
    )
    assert [event.member_id for event in found] == [event.member_id for event in expected]
    assert len(found) == 1


def test_trace_keeps_what_was_read_and_how_far_clocks_are_apart(tmp_path: Path) -> None:
    """What the summary says of files and clocks is in `run.json`, for reports."""
    left = leave_behind(scenario_named("static-leader-restart"), tmp_path)
    importing = read_again(tmp_path / "t", left.broker_log, left.request_log, left.log_dir)
    kept = read_run(tmp_path / "t").info
    assert kept.skews == importing.skews
    assert [file.path for file in kept.files] == [str(one.path) for one in importing.files]
    assert sum(file.events for file in kept.files) == kept.counts["events"]
    (segment,) = [file for file in kept.files if file.kind == "segment"]
    assert (segment.missing_offsets, segment.skipped_bytes) == (0, 0)
    assert segment.offsets == segment.lines
