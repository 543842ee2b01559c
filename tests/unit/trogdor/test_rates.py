"""Workloads go as fast as Kafka's do, told by instants instead of waiting threads."""

import pytest

from coordinator_sim.trogdor import generator_specs
from coordinator_sim.trogdor.java_random import JavaRandom, gaussian_size
from coordinator_sim.trogdor.rates import (
    Throttle,
    Throughput,
    flushes_of,
    per_period,
    throughput_of,
)


@pytest.mark.parametrize(
    ("per_sec", "in_period"), [(1000, 100), (10, 1), (1, 1), (0, 1), (-5, 1), (15, 1), (25, 2)]
)
def test_a_rate_is_at_least_one_in_a_period(per_sec: int, in_period: int) -> None:
    """J11: rates per second, in periods of 100 ms, without their fraction."""
    assert per_period(per_sec, 100) == in_period


def test_a_throttle_counts_by_periods_of_the_clock() -> None:
    """Three in each period of 1 s: the fourth waits for the next multiple of the period."""
    throttle = Throttle(3, 1000)

    assert [throttle.increment(2400) for _ in range(4)] == [0, 0, 0, 600]
    assert throttle.last_time_ms == 2400
    assert [throttle.increment(3000) for _ in range(4)] == [0, 0, 0, 1000]
    # Who was late may go at once, and has the whole count of the period it is in.
    assert [throttle.increment(9999) for _ in range(4)] == [0, 0, 0, 1]


def sent_at(throughput: Throughput, count: int, now_ms: int) -> list[int]:
    """When records are sent by a thread that waits as it is told."""
    instants = []
    for _ in range(count):
        now_ms += throughput.throttle(now_ms)
        instants.append(now_ms)
    return instants


def test_the_last_record_of_a_window_waits_for_its_end() -> None:
    """Two in each window of 10 ms: the second is held back, so the rate is right on average."""
    spec = generator_specs.ConstantThroughputGenerator(messages_per_window=2, window_size_ms=10)
    throughput = throughput_of(spec, seed=0, now_ms=5)

    assert sent_at(throughput, 6, 7) == [7, 15, 15, 25, 25, 35]


def test_windows_stay_on_their_grid() -> None:
    """A pause of several windows is no reason to begin windows elsewhere."""
    spec = generator_specs.ConstantThroughputGenerator(messages_per_window=1, window_size_ms=10)
    throughput = throughput_of(spec, seed=0, now_ms=5)

    assert sent_at(throughput, 1, 42) == [45]


def test_a_rate_of_nothing_is_no_bound() -> None:
    """0 messages in a window mean as many as can be."""
    throughput = throughput_of(generator_specs.ConstantThroughputGenerator(), seed=0, now_ms=0)

    assert sent_at(throughput, 3, 0) == [0, 0, 0]


def test_a_drawn_rate_holds_for_its_windows() -> None:
    """Rates are drawn from the seed, each for two windows, and are never below 1."""
    spec = generator_specs.GaussianThroughputGenerator(
        messages_per_window_average=3,
        messages_per_window_deviation=2.0,
        windows_until_rate_change=2,
        window_size_ms=100,
    )
    random = JavaRandom(9)
    rates = [gaussian_size(random, 3, 2.0, 1) for _ in range(4)]

    instants = sent_at(throughput_of(spec, seed=9, now_ms=0), 2 * sum(rates), 0)

    # The last record of a window is sent as the window ends.
    ends = [100 * (n + 1) for n in range(8)]
    counts = [rate for rate in rates for _ in range(2)]
    assert instants == [
        end - (100 if i < count - 1 else 0)
        for end, count in zip(ends, counts, strict=True)
        for i in range(count)
    ]


def test_a_drawn_rate_after_a_pause() -> None:
    """A record that comes after its window counts in the window it is in."""
    spec = generator_specs.GaussianThroughputGenerator(
        messages_per_window_average=2, window_size_ms=0
    )
    throughput = throughput_of(spec, seed=0, now_ms=0)

    assert sent_at(throughput, 2, 333) == [333, 400]


def test_flushes_come_after_so_many_records() -> None:
    """Each third record, or each one where fewer than one is asked for."""
    three = flushes_of(generator_specs.ConstantFlushGenerator(messages_per_flush=3), seed=0)
    each = flushes_of(generator_specs.ConstantFlushGenerator(), seed=0)

    assert [three.increment() for _ in range(6)] == [False, False, True] * 2
    assert [each.increment() for _ in range(2)] == [True, True]


def test_drawn_flushes_are_drawn_anew() -> None:
    """The records between flushes are those that the seed gives."""
    spec = generator_specs.GaussianFlushGenerator(
        messages_per_flush_average=4, messages_per_flush_deviation=3.0
    )
    random = JavaRandom(3)
    sizes = [gaussian_size(random, 4, 3.0, 1) for _ in range(5)]

    flushes = flushes_of(spec, seed=3)

    assert len(set(sizes)) > 1
    assert [flushes.increment() for _ in range(sum(sizes))] == [
        n == size for size in sizes for n in range(1, size + 1)
    ]


def test_an_unknown_family_is_a_bug() -> None:
    """A class that nobody implements is not silently unbounded."""
    with pytest.raises(TypeError):
        throughput_of(generator_specs.ThroughputGenerator(), seed=0, now_ms=0)
    with pytest.raises(TypeError):
        flushes_of(generator_specs.FlushGenerator(), seed=0)
