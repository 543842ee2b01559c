"""Groups with epochs in the report: epochs, and who held what when."""

from typing import Any

import pytest
from msgspec import to_builtins

from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.runs.step_holdings import step_holdings
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.schema import plain, rows_of
from coordinator_sim_reports.transforms.moves import moves
from coordinator_sim_reports.transforms.rebalances import generations, group_events, rebalances
from coordinator_sim_reports.transforms.working import stepping
from tests.reports.conftest import Frame
from tests.unit.coordinator.consumer.test_consumer_trace import Told
from tests.unit.coordinator.share import test_share_trace as share
from tests.unit.coordinator.streams import test_streams_trace as streams
from tests.unit.coordinator.streams.test_streams_groups import STATEFUL

INFO = RunInfo(
    trace_id="t", source=Source.SIM, cluster_id="c", version="0", profile="4.4", scenario="story"
)


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


def rows(events: list[TraceEvent]) -> list[dict[str, Any]]:
    """Events as rows of the table of events."""
    return [
        {column: plain(getattr(row, column)) for column in row.__struct_fields__}
        | {"cluster_id": "c"}
        for ordinal, event in enumerate(events)
        for row in rows_of(event, ordinal, INFO)
    ]


def test_holdings_on_spark_are_those_of_findings(frame: Frame, events: list[TraceEvent]) -> None:
    """One function says who held what: Spark only brings the events together."""
    ends_us = max(event.ts_us for event in events)
    table = group_events(frame("events", rows(events)))
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": ends_us}])
    found = {
        (row.resource, row.member_key, row.from_us, row.to_us, row.first_generation)
        for row in stepping(table, runs).collect()
    }
    assert found == {
        (each.resource, each.member_key, each.from_us, each.to_us, each.first_generation)
        for each in step_holdings(events, ends_us)
    }
    assert {resource for resource, *_ in found} == {f"p:foo-{index}" for index in range(6)}


def test_an_epoch_is_a_rebalance_for_which_nobody_stops(
    frame: Frame, events: list[TraceEvent]
) -> None:
    """Each has its reason, its target and its end; the protocol is one that keeps what it has."""
    table = group_events(frame("events", rows(events)))
    held = rebalances(table)
    found = held.orderBy("rebalance_no").collect()
    assert [(row.generation, row.reason, row.outcome) for row in found] == [
        (2, "MEMBER_JOINED", "STABLE"),
        (3, "MEMBER_JOINED", "STABLE"),
        (4, "MEMBER_JOINED", "STABLE"),
        (5, "MEMBER_LEFT", "SUPERSEDED"),
        (6, "MEMBER_FAILED", "STABLE"),
    ]
    assert {row.protocol_name for row in found} == {"server:uniform"}
    assert not any(row.followup or row.initial_delay for row in found)
    assert {row.ghosts_before for row in generations(table, held).collect()} == {0}


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


def test_tasks_of_a_streams_group_have_owners_and_copies_are_none(frame: Frame) -> None:
    """Spark's holdings are those of findings, of active tasks alone; moves are of tasks."""
    events = streams_story()
    ends_us = max(event.ts_us for event in events)
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": ends_us}])
    found = {
        (row.resource, row.member_key, row.from_us, row.to_us)
        for row in stepping(group_events(frame("events", rows(events))), runs).collect()
    }
    assert found == {
        (each.resource, each.member_key, each.from_us, each.to_us)
        for each in step_holdings(events, ends_us)
    }
    assert {resource for resource, *_ in found} == {f"s:0_{number}" for number in range(4)}
    generations_told, resources = dense_rows(events, "t", "c")
    told = moves(
        frame("generations", [to_builtins(each) for each in generations_told]),
        frame("resources", [to_builtins(each) for each in resources]),
    ).collect()
    assert {row.kind for row in told} == {"task"}
    # Two go to the second instance, and come back when it falls silent.
    assert sum(row.moved for row in told) == 4


def test_a_share_group_has_epochs_and_no_owners(frame: Frame) -> None:
    """Each epoch is a rebalance; nothing is held, for a partition has several members."""
    events = share_story()
    ends_us = max(event.ts_us for event in events)
    table = group_events(frame("events", rows(events)))
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": ends_us}])
    assert stepping(table, runs).collect() == []
    assert [(row.reason, row.protocol_name) for row in rebalances(table).collect()] == [
        ("MEMBER_JOINED", "server:simple"),
        ("PARTITIONS_INITIALIZED", "server:simple"),
        ("MEMBER_JOINED", "server:simple"),
    ]
