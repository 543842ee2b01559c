"""Ends of the network that send late, as `tc` makes them do it."""

from statistics import NormalDist, mean, pstdev

import pytest

from coordinator_sim.clients.effects import Send
from coordinator_sim.sim import degradation
from coordinator_sim.sim.scenario import Choices
from tests.unit.sim.test_network import BEAT, LATENCY_US, Wire

TABLE_ENTRIES = 4_096


def netem_entry(index: int) -> float:
    """An entry of netem's table: a quarter of a normal law and three of a Pareto law of 3."""
    probability = index / TABLE_ENTRIES
    normal = NormalDist().inv_cdf(probability + 0.5 / (4 * TABLE_ENTRIES))
    pareto = (1 / (1 - probability) ** (1 / 3) - 1.5) * 4 / 3
    return (normal + 3 * min(pareto, 32_767 / degradation.SCALE)) / 4


def test_the_quantiles_are_those_of_netem() -> None:
    """Every 32nd entry of its table, to a thousandth of the jitter, and its last one."""
    step = TABLE_ENTRIES // (len(degradation.PARETONORMAL) - 1)
    entries = [*range(0, TABLE_ENTRIES, step), TABLE_ENTRIES - 1]

    for entry, value in zip(entries, degradation.PARETONORMAL, strict=True):
        assert value / degradation.SCALE == pytest.approx(netem_entry(entry), abs=0.001)


def test_delays_scatter_around_the_latency() -> None:
    """Ten thousand delays of 100 ms with a jitter of 10 ms: mean, spread and bounds."""
    degradations = degradation.Degradations(Choices(7))
    degradations.begin("a", 100)
    delays = [degradations.delay_us("a", "a>1") for _ in range(10_000)]

    assert degradation.jitter_ms(100) == 10
    assert mean(delays) == pytest.approx(99_700, abs=300)
    assert pstdev(delays) == pytest.approx(8_300, rel=0.03)
    assert min(delays) >= 100_000 - 15_100
    assert max(delays) <= degradation.longest_delay_ms(100) * 1_000 == 139_000


def test_delays_of_two_degradations_add_up_until_one_ends() -> None:
    """Less than a millisecond of latency is never owed by the jitter: no delay is negative."""
    degradations = degradation.Degradations(Choices(0))
    degradations.begin(1, 1)
    degradations.begin(1, 900)
    assert degradations.delay_us(1, "1>a") > 800_000
    degradations.finish(1, 900)

    delays = [degradations.delay_us(1, "1>a") for _ in range(1_000)]
    assert min(delays) == 0
    assert degradations.is_late(1)
    degradations.finish(1, 1)
    assert degradations.delay_us(1, "1>a") == 0


def test_a_member_sends_late_and_hears_in_time() -> None:
    """Requests take a second more, answers what they took before; then both are as before."""
    wire = Wire()
    wire.run_until(200)
    wire.network.degrade("a", 1_000)
    wire.request(1)
    wire.run_until(2_000_000)
    wire.network.restore("a", 1_000)
    wire.request(2)
    wire.run_until(3_000_000)

    (_, (asked_us, _), again) = wire.server.seen
    assert 950_000 < asked_us < 1_130_000
    assert wire.client.seen[1:] == [
        (asked_us + LATENCY_US, "response 1"),
        (2_000_000 + 2 * LATENCY_US, "response 2"),
    ]
    assert again == (2_000_000 + LATENCY_US, "request 2")


def test_a_broker_answers_late_and_in_order() -> None:
    """Delays differ, but nothing overtakes on a connection, not even after the end."""
    wire = Wire()
    wire.run_until(200)
    wire.network.degrade(1, 400)
    for correlation_id in range(50):
        wire.connection.request(Send(1, correlation_id, BEAT))
    wire.run_until(400)
    wire.network.restore(1, 400)
    wire.request(50)
    wire.run_until(2_000_000)

    answers = wire.client.seen[1:]
    assert [what for _, what in answers] == [f"response {number}" for number in range(51)]
    assert answers[0][0] > 370_000
    assert len({at_us for at_us, _ in answers}) > 2


def test_the_same_seed_delays_alike() -> None:
    """The jitter comes from the choices of the run."""
    one, same, other = (degradation.Degradations(Choices(seed)) for seed in (1, 1, 2))
    drawn = []
    for each in (one, same, other):
        each.begin("a", 50)
        drawn.append([each.delay_us("a", "a>1") for _ in range(5)])

    assert drawn[0] == drawn[1] != drawn[2]
