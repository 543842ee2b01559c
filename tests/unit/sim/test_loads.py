"""Topics with a load: their checks and curves, and what consumers make of them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.arrivals import TopicArrivals
from coordinator_sim.sim.lag_meter import LagMeter
from coordinator_sim.sim.processing import Pace
from coordinator_sim.sim.scenario import load as loads
from coordinator_sim.sim.scenario.files import (
    read_recorded_load,
    scenario_from_json,
    scenario_to_json,
)
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.lag import GroupLag, group_lags
from coordinator_sim.trace.work import count_work
from tests.simulated import events_of, scenario_of

S = 1_000_000
"""Microseconds of a second."""


def world(*happenings: scenarios.Happening, **topic: Any) -> scenarios.Scenario:  # noqa: ANN401 - fields
    """Two consumers of six partitions for two virtual minutes."""
    return scenario_of(
        name="loaded",
        duration_ms=120_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=6, **topic),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="readers",
                topics=("orders",),
                members=tuple(scenarios.ConsumerSpec(name=name) for name in "ab"),
            ),
        ),
        happenings=happenings,
        objective_lag_ms=5_000,
    )


def lag_of(scenario: scenarios.Scenario) -> GroupLag:
    """The lag of the only group."""
    (lag,) = group_lags(events_of(scenario), scenario.duration_ms * 1_000)
    return lag


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (
            {"load": loads.ConstantLoad(total_per_s=-1)},
            "total_per_s of load of topic 'orders'=-1: must be from 0 to 1000000000",
        ),
        (
            {"load": loads.ConstantLoad(total_per_s=1), "records_per_s": 7},
            "topic 'orders' has records_per_s=7 and a load: leave out one of them",
        ),
        (
            {
                "load": loads.BurstLoad(
                    base_total_per_s=0, burst_total_per_s=1, for_ms=9, every_ms=8
                )
            },
            "for_ms of load of topic 'orders'=9: must be from 1 to 8",
        ),
        (
            {"load": loads.RecordedLoad(points=((0, 1),))},
            "must be at least two pairs",
        ),
        (
            {"load": loads.RecordedLoad(points=((60, 1), (60, 1)))},
            "a second in points of load of topic 'orders'=60: must be from 61",
        ),
        (
            {"load": loads.DiurnalLoad(base_total_per_s=0, peak_total_per_s=1, period_ms=5)},
            "period_ms of load of topic 'orders'=5: must be from 1000",
        ),
        ({"keys": loads.ZipfKeys()}, "topic 'orders' has keys and no load"),
        (
            {
                "load": loads.ConstantLoad(total_per_s=1),
                "keys": loads.WeightedKeys(weights=(1, 2)),
            },
            "weights of topic 'orders': 2 for 6 partitions; give one for each that it ever has",
        ),
        ({"poison": loads.PoisonRecords(ms=5)}, "hits no record: give every or at"),
        ({"poison": loads.PoisonRecords(ms=0, every=9)}, "ms of poison in topic 'orders'=0"),
    ],
)
def test_an_impossible_load_is_refused(topic: dict[str, Any], message: str) -> None:
    """One line names the value, the bound and the fix."""
    with pytest.raises(ScenarioError) as caught:
        world(**topic)
    assert message in str(caught.value)


def test_an_objective_of_nothing_is_refused() -> None:
    """Zero is no objective: any record would exceed it."""
    with pytest.raises(ScenarioError, match="objective_lag_ms=0: must be from 1"):
        msgspec.structs.replace(world(), objective_lag_ms=0)


def test_a_load_is_read_from_a_scenario_file_and_leaves_others_alone() -> None:
    """The JSON form keeps it; a topic without load has the fields that it always had."""
    scenario = world(load=loads.RecordedLoad(points=((0, 100), (60, 2_000))), keys=loads.ZipfKeys())
    text = scenario_to_json(scenario)
    assert scenario_from_json(text) == scenario
    assert b'"type": "recorded"' in text
    plain = msgspec.to_builtins(scenarios.TopicSpec(name="t", partitions=1))
    assert plain == {"name": "t", "partitions": 1, "records_per_s": 100}


def test_a_recording_is_read_from_a_csv_file(tmp_path: Path) -> None:
    """With a header or without; what is no row of two numbers is named with its line."""
    path = tmp_path / "day.csv"
    path.write_text("second,records\n0,100\n60, 2000\n\n", encoding="utf-8")
    load = read_recorded_load(path)
    assert load == loads.RecordedLoad(points=((0, 100), (60, 2_000)))
    text = scenario_to_json(world(load=load)).decode()
    points = text[text.index('"points"') : text.index('"repeats"')]
    (tmp_path / "mine.json").write_text(text.replace(points, '"file": "day.csv",'))
    assert scenarios.load_scenario(tmp_path / "mine.json") == world(load=load)
    path.write_text("0,100\n60,2e3\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"day\.csv:2: '60,2e3': give whole numbers"):
        read_recorded_load(path)


def test_a_recording_is_spread_evenly_between_its_seconds() -> None:
    """100 records in the first minute, 2,000 in the second, none after it."""
    arrivals = TopicArrivals(loads.RecordedLoad(points=((0, 100), (60, 2_000))), None, 1)
    counts = [arrivals.count(0, second * S) for second in (0, 30, 60, 90, 120, 10_000)]
    assert counts == [0, 50, 100, 1_100, 2_100, 2_100]
    arrived = [arrivals.arrival_us(0, number) for number in (49, 99, 2_099, 2_100)]
    assert arrived == [30 * S, 60 * S, 120 * S, None]


def test_a_record_of_a_whole_second_arrives_at_its_end() -> None:
    """The first of one record a second arrives after a second, the hundredth after a hundred."""
    arrivals = TopicArrivals(loads.ConstantLoad(total_per_s=1), None, 1)
    assert [arrivals.arrival_us(0, number) for number in (0, 1, 99)] == [S, 2 * S, 100 * S]


def test_a_diurnal_load_is_lowest_and_highest_half_a_day_apart() -> None:
    """The rates of half an hour around both are the base and the peak, and the curve is even."""
    load = loads.DiurnalLoad(base_total_per_s=100, peak_total_per_s=900)
    arrivals = TopicArrivals(load, None, 1)

    def rate(hour: float) -> float:
        at_us = int(hour * 3_600 * S)
        return (arrivals.count(0, at_us + 600 * S) - arrivals.count(0, at_us - 600 * S)) / 1_200

    assert (rate(14), rate(2), rate(26)) == (900, 100, 100)
    assert rate(8) == rate(20) == 500
    assert [rate(hour) for hour in range(2, 15)] == sorted(rate(hour) for hour in range(2, 15))
    assert 0.99 < arrivals.count(0, 24 * 3_600 * S) / (500 * 24 * 3_600) <= 1


def test_new_partitions_share_the_load_from_their_beginning_on() -> None:
    """What was written before stays where it is; the rate of the topic is the same."""
    grown = world(
        scenarios.AddPartitions(at_ms=60_000, topic="orders", to=12),
        load=loads.ConstantLoad(total_per_s=600),
    )
    reached = {
        event.offsets[0].partition: (event.position or 0) + int(event.attrs["lag"])
        for event in events_of(grown)
        if event.event is Event.RECORDS_PROCESSED
    }
    logs = TopicLogs(grown.topics)
    logs.grow("orders", 12, 60 * S)
    ends = {p: logs.end_offset(TopicPartition("orders", p), 120 * S) for p in range(12)}
    assert ends == {p: 9_000 if p < 6 else 3_000 for p in range(12)}
    assert {p: reached[p] for p in range(6)} == dict.fromkeys(range(6), 9_000)


def test_a_record_is_fetched_when_it_arrives_and_not_when_the_poll_times_out() -> None:
    """One record a second is done a poll's processing after its arrival, and a round trip."""
    lag = lag_of(world(load=loads.ConstantLoad(total_per_s=1)))
    assert 190_000 < lag.delay_p50_us < 260_000
    assert lag.records == 119


def test_a_slow_downstream_slows_all_members_for_a_time() -> None:
    """At ten times the time for a poll the group falls behind, and catches up afterwards."""
    load = loads.ConstantLoad(total_per_s=2_000)
    slow = scenarios.SlowDownstream(at_ms=30_000, group_id="readers", percent=1_000, for_ms=20_000)
    events = events_of(world(slow, load=load))
    (calm,) = group_lags(events_of(world(load=load)))
    (lag,) = group_lags(events)
    faults = [event.reason_text for event in events if event.event is Event.FAULT]
    assert faults == ["SlowDownstream", "DownstreamRecovered"]
    assert calm.max_lag_us < 10 * S < lag.max_lag_us
    assert calm.delay_p50_us < lag.delay_p50_us
    assert count_work(events)[0].final_lag < 2_000


def test_time_without_an_owner_is_time_above_the_objective() -> None:
    """A group that comes back after 40 s exceeded 5 s for about 35 s on every partition."""
    stops = [scenarios.StopMember(at_ms=40_000, member=name) for name in "ab"]
    starts = [scenarios.StartMember(at_ms=80_000, member=name) for name in "ab"]
    load = loads.ConstantLoad(total_per_s=6)
    away, there = lag_of(world(*stops, *starts, load=load)), lag_of(world(load=load))
    assert 35 * 6 * S < away.above_us - there.above_us < 45 * 6 * S
    assert away.max_lag_us > 40 * S
    assert there.member_us - away.member_us > 70 * S
    assert (away.max_members, there.max_members) == (2, 2)


def test_the_last_owner_s_backlog_grows_to_the_end_of_the_run() -> None:
    """Nobody comes back after a crash: the oldest record left is as old as the run has gone on."""
    crashes = [scenarios.CrashMember(at_ms=60_000, member=name) for name in "ab"]
    lag = lag_of(world(*crashes, load=loads.ConstantLoad(total_per_s=600)))
    assert 59 * S < lag.max_lag_us < 61 * S
    assert 55 * 6 * S < lag.above_us < 60 * 6 * S


def test_a_partition_of_two_owners_is_counted_once() -> None:
    """From the second owner's beginning on, the first one's lag is not the partition's."""
    spec = scenarios.TopicSpec(name="t", partitions=1, load=loads.ConstantLoad(total_per_s=1))
    meter, partition = LagMeter(TopicLogs((spec,)), 2 * S), TopicPartition("t", 0)
    zombie = meter.begin("g", partition, 0, 1 * S)
    owner = meter.begin("g", partition, 0, 5 * S)
    told = [meter.attrs(lag, partition, 0, 9 * S) for lag in (zombie, owner)]
    assert [each["above_us"] for each in told] == [str(2 * S), str(4 * S)]


def test_skewed_keys_make_one_partition_lag() -> None:
    """All of the load on one partition exceeds what its owner can process; others are idle."""
    keys = loads.WeightedKeys(weights=(1, 0, 0, 0, 0, 0))
    load = loads.ConstantLoad(total_per_s=3_000)
    skewed = lag_of(world(load=load, keys=keys))
    assert lag_of(world(load=load)).max_lag_us < 15 * S < skewed.max_lag_us


def test_percentiles_of_a_trace_by_hand() -> None:
    """Records are counted by rungs: 90 took 5 to 10 ms, 9 took 50 to 100 ms, one up to 120 ms."""
    events = [
        TraceEvent(
            event=Event.RECORDS_PROCESSED,
            ts_us=at_us,
            group_id="g",
            latency_us=10 * S,
            offsets=(OffsetEntry("t", 0, 0),),
            attrs={"lag_us": "0", "delays": delays},
        )
        for at_us, delays in ((10 * S, "3:90"), (20 * S, "6:9 7:1"))
    ]
    (lag,) = group_lags(events)
    assert (lag.records, lag.objective_us) == (100, None)
    assert (lag.delay_p50_us, lag.delay_p95_us) == (
        5_000 + 5_000 * 50 // 90,
        50_000 + 50_000 * 5 // 9,
    )
    assert lag.delay_p99_us == 100_000


@pytest.mark.parametrize(
    ("elapsed_us", "done"), [(0, 0), (3_999, 1), (4_000, 2), (8_999, 2), (9_000, 3), (99_000, 5)]
)
def test_poison_stops_the_records_behind_it(elapsed_us: int, done: int) -> None:
    """Two records of 2 ms are done, the third takes 3 ms longer, then the others follow."""
    pace = Pace(0, 2_000, ((2, 3_000),))
    assert pace.busy_us(5) == 13_000
    assert pace.done_after(elapsed_us, 5) == done


def test_one_in_so_many_records_is_poison_in_every_partition() -> None:
    """Each 500 records of a partition have one, and it takes 400 ms wherever it is met."""
    poison = loads.PoisonRecords(ms=400, every=500)
    load = loads.ConstantLoad(total_per_s=60)
    clean, poisoned = lag_of(world(load=load)), lag_of(world(load=load, poison=poison))
    assert clean.delay_p95_us + 300_000 < poisoned.delay_p95_us
