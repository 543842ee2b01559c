"""Groups with epochs in the report: epochs, and who held what when."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import GroupStory, explain_group
from coordinator_sim.replay.compare import figures
from coordinator_sim.replay.course import Course
from coordinator_sim.runs.step_holdings import step_holdings
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim_reports.local_engine import LocalEngine
from tests.reports.groups import computed, of_events, rows
from tests.unit.coordinator.consumer.test_consumer_trace import Told
from tests.unit.coordinator.share import test_share_trace as share
from tests.unit.coordinator.streams import test_streams_trace as streams
from tests.unit.coordinator.streams.test_streams_groups import STATEFUL


def story() -> list[TraceEvent]:
    """Three members come and hand over, one leaves, one falls silent."""
    told = Told()
    for member in ("m1", "m2", "m3"):
        told.join(member)
        for _ in range(3):
            told.broker.advance(1_000)
            for each in ("m1", "m2", "m3"):
                if each in told.epochs:
                    told.beat(each)
    told.beat("m3", -1)
    del told.epochs["m3"]
    for _ in range(50):
        told.broker.advance(1_000)
        told.beat("m1")
    return told.events


@pytest.fixture(scope="module")
def events() -> list[TraceEvent]:
    """The events of the story."""
    return story()


def test_holdings_in_reports_are_those_of_findings(
    engine: LocalEngine, events: list[TraceEvent]
) -> None:
    """One function says who held what: an engine only brings the events together."""
    ends_us = max(event.ts_us for event in events)
    found = {
        (row["resource"], row["member_key"], row["from_us"], row["to_us"], row["first_generation"])
        for row in computed(engine, {"t": events}, ("ownership",))["ownership"]
    }
    assert found == {
        (each.resource, each.member_key, each.from_us, each.to_us, each.first_generation)
        for each in step_holdings(events, ends_us)
    }
    assert {resource for resource, *_ in found} == {f"p:foo-{index}" for index in range(6)}


def test_an_epoch_is_a_rebalance_for_which_nobody_stops(events: list[TraceEvent]) -> None:
    """Each has its reason, its target and its end; the protocol is one that keeps what it has."""
    of_group = of_events(events)
    found = rows(of_group, "rebalances")
    assert [(row["generation"], row["reason"], row["outcome"]) for row in found] == [
        (2, "MEMBER_JOINED", "STABLE"),
        (3, "MEMBER_JOINED", "STABLE"),
        (4, "MEMBER_JOINED", "STABLE"),
        (5, "MEMBER_LEFT", "SUPERSEDED"),
        (6, "MEMBER_FAILED", "STABLE"),
    ]
    assert {row["protocol_name"] for row in found} == {"server:uniform"}
    assert not any(row["followup"] or row["initial_delay"] for row in found)
    assert {row["ghosts_before"] for row in rows(of_group, "generations")} == {0}


def streams_story() -> list[TraceEvent]:
    """Two instances of an application with copies hand tasks over, and one falls silent."""
    told = streams.Told(STATEFUL, standbys=1)
    told.broker.set_topic("app-store-changelog", 4, streams.CHANGELOG)
    for member in ("a", "b", "a", "a", "b"):
        told.broker.advance(1_000)
        told.go(member)
    for _ in range(50):
        told.broker.advance(1_000)
        told.go("a")
    return told.events


def share_story() -> list[TraceEvent]:
    """Two members share one partition."""
    told = share.Told(count=1)
    for member in ("a", "a", "b", "a", "b"):
        told.broker.advance(1_000)
        told.go(member)
    return told.events


def test_tasks_of_a_streams_group_have_owners_and_copies_are_none() -> None:
    """Holdings are those of findings, of active tasks alone; moves are of tasks."""
    events = streams_story()
    of_group = of_events(events)
    found = {
        (row["resource"], row["member_key"], row["from_us"], row["to_us"])
        for row in rows(of_group, "ownership")
    }
    assert found == {
        (each.resource, each.member_key, each.from_us, each.to_us)
        for each in step_holdings(events, max(event.ts_us for event in events))
    }
    assert {resource for resource, *_ in found} == {f"s:0_{number}" for number in range(4)}
    told = rows(of_group, "moves")
    assert {row["kind"] for row in told} == {"task"}
    # Two go to the second instance, and come back when it falls silent.
    assert sum(row["moved"] for row in told) == 4


def test_a_share_group_has_epochs_and_no_owners() -> None:
    """Each epoch is a rebalance; nothing is held, for a partition has several members."""
    of_group = of_events(share_story())
    assert rows(of_group, "ownership") == []
    assert [(row["reason"], row["protocol_name"]) for row in rows(of_group, "rebalances")] == [
        ("MEMBER_JOINED", "server:simple"),
        ("PARTITIONS_INITIALIZED", "server:simple"),
        ("MEMBER_JOINED", "server:simple"),
    ]


# -- `explain`, `replay` and `report` give one trace one set of figures ------------------------


REPO = Path(__file__).resolve().parents[2]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
LOGS = [EXAMPLE, *sorted(SAMPLES.glob("*.log"))]

Key = tuple[str, str]
"""Trace and group."""


def stories_of(trace: str, events: list[TraceEvent]) -> dict[Key, GroupStory]:
    """What `explain` tells of each group of a trace that rebalances."""
    told = list(coordinator_events(events, Source.BROKER_LOG))
    stories = {
        (trace, group_id): explain_group(group_id, lines, [])
        for group_id, lines in group_lines(told).items()
    }
    return {key: story for key, story in stories.items() if story.rebalances}


def reported(
    engine: LocalEngine, traces: dict[str, list[TraceEvent]]
) -> dict[Key, list[dict[str, Any]]]:
    """What `report` has of each group, in order."""
    found: dict[Key, list[dict[str, Any]]] = {}
    told = computed(engine, traces, ("rebalances",), Source.BROKER_LOG)["rebalances"]
    for row in sorted(told, key=lambda row: row["rebalance_no"]):
        found.setdefault((row["trace_id"], row["group_id"]), []).append(row)
    return found


def check(engine: LocalEngine, traces: dict[str, list[TraceEvent]]) -> None:
    """Every figure of `explain` is that of `report`, and the sums are those of `replay`."""
    stories: dict[Key, GroupStory] = {}
    for name, events in traces.items():
        stories |= stories_of(name, events)
    table = reported(engine, traces)
    assert sorted(table) == sorted(stories)
    for key, story in stories.items():
        rows = table[key]
        assert [
            (r["outcome"], whole(r["join_ms"]), whole(r["sync_ms"]), whole(r["total_ms"]))
            for r in rows
        ] == [(e.outcome.value, e.join_ms, e.sync_ms, e.length_ms) for e in story.rebalances], key
        assert [(r["followup"], r["chain_no"], r["is_exact"]) for r in rows] == [
            (e.follows is not None, e.chain, e.is_exact) for e in story.rebalances
        ], key
        assert round(sum(r["total_ms"] or 0 for r in rows)) == story.rebalancing_ms
        lines = group_lines(list(coordinator_events(traces[key[0]], Source.BROKER_LOG)))[key[1]]
        if all(line.group_id is not None for line in lines):
            summed = figures(lines, Course())
            assert (summed.rebalances, summed.rebalancing_ms) == (len(rows), story.rebalancing_ms)


def whole(duration_ms: float | None) -> int | None:
    """Milliseconds as `explain` shows them."""
    return None if duration_ms is None else int(duration_ms)


def test_three_commands_agree_on_every_log(engine: LocalEngine) -> None:
    """The example of the repo, and real logs of 0.10 to 4.x where they are at hand."""
    traces = {}
    for path in LOGS:
        with path.open(encoding="utf-8", errors="replace") as lines:
            traces[path.name] = list(parse_broker_log(lines, source_ref=path.name, tz=UTC))
    check(engine, traces)


KINDS = (
    *(Event.PREPARE_REBALANCE, Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER),
    *(Event.GROUP_EMPTY, Event.GROUP_DEAD, Event.GROUP_UNLOADED, Event.UNLOAD_DONE),
    *(Event.GROUP_LOADED, Event.MEMBER_FAILED, Event.HEARTBEAT),
)


@st.composite
def histories(draw: st.DrawFn) -> list[TraceEvent]:
    """Lines of two groups in any order that no coordinator would write, at any times."""
    events = []
    count = draw(st.integers(0, 25))
    for seq in range(count):
        kind = draw(st.sampled_from(KINDS))
        event = TraceEvent(
            event=kind,
            ts_us=draw(st.integers(0, 60_000)) * 1_000,
            seq=seq,
            source_ref=draw(st.sampled_from(("a", "b"))),
            offsets_partition=draw(st.sampled_from((7, 9, None))),
        )
        if kind is not Event.UNLOAD_DONE:
            event = replace(
                event,
                group_id=draw(st.sampled_from(("g", "h"))),
                generation=draw(st.integers(0, 3)),
                incarnation=draw(st.sampled_from((0, 0, 0, 1))),
                members=draw(st.sampled_from((None, 2))),
            )
        events.append(event)
    return events


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)
@given(drawn=st.lists(histories(), min_size=8, max_size=12))
def test_three_commands_agree_on_any_lines(
    engine: LocalEngine, drawn: list[list[TraceEvent]]
) -> None:
    """Lines that contradict each other, times that run back: still one set of figures."""
    check(engine, {str(number): events for number, events in enumerate(drawn)})


def test_rebalance_that_never_settles_is_counted_and_open(engine: LocalEngine) -> None:
    """The rebalance has a start, no length, and is never one of 0 ms."""
    start = TraceEvent(event=Event.PREPARE_REBALANCE, ts_us=5_000_000, group_id="g", generation=4)
    ((row,),) = reported(engine, {"t": [start]}).values()
    assert (row["outcome"], row["start_us"], row["end_us"]) == ("OPEN", 5_000_000, None)
    assert row["total_ms"] is None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no sample logs beside the repo")
def test_sample_logs_are_among_them() -> None:
    """The comparison above is worth something only with the real logs."""
    assert len(LOGS) > 20
