"""Loads in closed form: the same counts, instants and lags as record by record."""

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.arrivals import TopicArrivals
from coordinator_sim.sim.lag_meter import LagMeter
from coordinator_sim.sim.scenario import TopicSpec
from coordinator_sim.sim.scenario.load import (
    BurstLoad,
    ConstantLoad,
    DiurnalLoad,
    Keys,
    Load,
    RecordedLoad,
    WeightedKeys,
    ZipfKeys,
)
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.trace.lag import RUNGS_US
from coordinator_sim_scenarios.strategies import loads

PARTITIONS = 3
KEYS: st.SearchStrategy[Keys | None] = st.sampled_from(
    (None, ZipfKeys(), ZipfKeys(exponent_percent=0), WeightedKeys(weights=(5, 0, 2)))
)
INSTANTS = st.integers(0, 200_000_000)


def records_of(load: Load, until_us: int) -> Fraction:
    """The records of the whole topic up to an instant, added up second by second and piece."""
    total = Fraction(0)
    match load:
        case ConstantLoad(total_per_s=rate):
            return Fraction(rate * until_us, 1_000_000)
        case BurstLoad():
            total += Fraction(load.base_total_per_s * until_us, 1_000_000)
            began_us = load.first_at_ms * 1_000
            while began_us < until_us:
                lasted_us = min(load.for_ms * 1_000, until_us - began_us)
                more = load.burst_total_per_s - load.base_total_per_s
                total += Fraction(more * lasted_us, 1_000_000)
                began_us += load.every_ms * 1_000
        case RecordedLoad(points=points):
            seconds = [second for second, _ in points]
            seconds.append(2 * seconds[-1] - seconds[-2])
            turn_us = (seconds[-1] - seconds[0]) * 1_000_000
            for turn in range(until_us // turn_us + 1 if load.repeats else 1):
                for (from_s, to_s), (_, records) in zip(pairwise(seconds), points, strict=True):
                    began_us = from_s * 1_000_000 + turn * turn_us
                    lasted_us = min(max(0, until_us - began_us), (to_s - from_s) * 1_000_000)
                    parts = records * 1_000_000 * lasted_us // ((to_s - from_s) * 1_000_000)
                    total += Fraction(parts, 1_000_000)
        case DiurnalLoad():
            raise AssertionError(load)
    return total


@pytest.mark.property
@given(loads(), KEYS, INSTANTS)
def test_count_is_what_is_counted_record_by_record(load: Load, keys: Keys | None, at: int) -> None:
    """Each partition has as many records as its share of the load has reached, one after another.

    Diurnal curves have a test of their own.
    """
    if isinstance(load, DiurnalLoad):
        return
    arrivals = TopicArrivals(load, keys, PARTITIONS)
    exact = records_of(load, at)
    weights: tuple[int, ...] = (1, 1, 1)
    if isinstance(keys, WeightedKeys):
        weights = keys.weights
    elif isinstance(keys, ZipfKeys) and keys.exponent_percent:
        weights = (10**9, 5 * 10**8, 10**9 // 3)
    for partition, weight in enumerate(weights):
        due = exact * weight / sum(weights) + Fraction(partition, PARTITIONS)
        counted = 0
        while counted + 1 <= due:
            counted += 1
        assert arrivals.count(partition, at) == counted


@pytest.mark.property
@given(loads(), KEYS, INSTANTS, st.one_of(st.none(), INSTANTS))
def test_arrival_is_the_inverse_of_count(
    load: Load, keys: Keys | None, at: int, grows_at: int | None
) -> None:
    """A record is there from its arrival on and not earlier, also in a topic that has grown."""
    arrivals = TopicArrivals(load, keys, PARTITIONS)
    count = PARTITIONS
    if grows_at is not None and not isinstance(keys, WeightedKeys):
        count = 5
        arrivals.grow(count, grows_at)
    for partition in range(count):
        there = arrivals.count(partition, at)
        coming = arrivals.arrival_us(partition, there)
        assert coming is None or coming > at
        if coming is not None:
            assert (
                arrivals.count(partition, coming) > there == arrivals.count(partition, coming - 1)
            )
        if there:
            arrived = arrivals.arrival_us(partition, there - 1)
            assert arrived is not None
            assert arrived <= at
            assert arrivals.count(partition, arrived - 1) < there


@pytest.mark.property
@given(loads(), KEYS, st.lists(INSTANTS, min_size=2, max_size=9))
def test_counts_add_up_over_time_and_partitions(
    load: Load, keys: Keys | None, instants: list[int]
) -> None:
    """Nothing is taken back, and all partitions have the topic's records, but for fractions."""
    arrivals = TopicArrivals(load, keys, PARTITIONS)
    whole = TopicArrivals(load, None, 1)
    for before, after in pairwise(sorted(instants)):
        gained = [arrivals.count(p, after) - arrivals.count(p, before) for p in range(PARTITIONS)]
        assert min(gained) >= 0
        total = whole.count(0, after) - whole.count(0, before)
        assert abs(sum(gained) - total) <= (1 if keys is None else PARTITIONS)


@pytest.mark.property
@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 60)), min_size=1, max_size=30),
    st.sampled_from((10, 130, 1_000)),
    st.integers(0, 5),
)
def test_lag_and_delays_are_those_of_every_record_at_every_millisecond(
    polls: list[tuple[int, int]], objective_ms: int, first: int
) -> None:
    """Polls at some milliseconds take some records; each record and millisecond is looked at."""
    spec = TopicSpec(name="t", partitions=1, load=ConstantLoad(total_per_s=100), keys=UNSET)
    logs = TopicLogs((spec,), with_instants=True)
    partition = TopicPartition("t", 0)
    meter = LagMeter(logs, objective_ms * 1_000)
    now_ms = 50
    first = min(first, logs.end_offset(partition, now_ms * 1_000))
    lag = meter.begin("g", partition, first, now_ms * 1_000)
    delays: dict[int, int] = {}
    above_ms = 0
    position = first
    for wait_ms, count in polls:
        for at_ms in range(now_ms, now_ms + wait_ms):
            above_ms += at_ms - 10 * (position + 1) >= objective_ms
        now_ms += wait_ms
        end = min(position + count, now_ms // 10)
        meter.done(lag, partition, (position, end), now_ms * 1_000)
        for offset in range(position, end):
            rung = bisect_right(RUNGS_US, (now_ms - 10 * (offset + 1)) * 1_000)
            delays[rung] = delays.get(rung, 0) + 1
        position = end
    told = meter.attrs(lag, partition, position, now_ms * 1_000)

    assert lag.counts == delays
    assert int(told["above_us"]) == above_ms * 1_000
    assert int(told["lag_us"]) == max(0, now_ms - 10 * (position + 1)) * 1_000


@pytest.mark.property
@given(st.lists(st.tuples(st.integers(0, 9_000_000), st.integers(1, 9)), max_size=12), INSTANTS)
def test_appended_records_arrive_when_they_are_appended(
    appended: list[tuple[int, int]], at: int
) -> None:
    """Records of a connector lie between those that the topic's rate adds, in order of time."""
    spec = TopicSpec(name="t", partitions=1, records_per_s=3)
    logs = TopicLogs((spec,), with_instants=True)
    partition = TopicPartition("t", 0)
    arrivals = [second * 1_000_000 // 3 + (second % 3 > 0) for second in range(1, 40)]
    for at_us, count in sorted(appended):
        logs.append(partition, count, at_us)
        arrivals += [at_us] * count
    arrivals.sort()
    for offset, arrival_us in enumerate(arrivals):
        assert logs.arrival_us(partition, offset) == arrival_us
    at %= 13_000_000
    assert logs.end_offset_at(partition, at) == bisect_right(arrivals, at)
