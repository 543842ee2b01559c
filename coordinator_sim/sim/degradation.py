"""Ends of the network that send late, as `tc qdisc add ... netem delay` makes a device do it.

A message of such an end is delayed by a time of its own, around the given latency; a connection
keeps its order. What an end receives is as fast as ever, and so is what brokers send each other,
which the simulator has no messages for.

Source: kafka trunk, DegradedNetworkFaultWorker.java, enableTrafficControl; Linux, sch_netem.c,
tabledist; iproute2, netem/paretonormal.c.
"""

from math import isqrt
from typing import Final

from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.quantiles import drawn

End = str | int
"""A machine by the name of its member, or a broker by its id."""

_US_PER_MS: Final = 1_000
SCALE: Final = 8_192
"""`NETEM_DIST_SCALE`: what a table's values are divided by to be in units of the jitter."""
PARETONORMAL: Final = (
    *(-12305, -9023, -8462, -8100, -7822, -7593, -7395, -7219, -7059, -6912, -6774, -6644, -6521),
    *(-6404, -6291, -6183, -6078, -5977, -5877, -5781, -5687, -5594, -5503, -5414, -5326, -5238),
    *(-5153, -5067, -4983, -4900, -4816, -4735, -4652, -4571, -4490, -4409, -4328, -4248, -4168),
    *(-4087, -4006, -3926, -3846, -3765, -3685, -3604, -3522, -3441, -3359, -3276, -3194, -3110),
    *(-3026, -2942, -2857, -2772, -2686, -2599, -2511, -2423, -2334, -2243, -2152, -2059, -1966),
    *(-1872, -1776, -1679, -1581, -1482, -1381, -1279, -1174, -1068, -961, -852, -741, -627, -512),
    *(-395, -275, -153, -28, 99, 230, 363, 500, 641, 785, 932, 1084, 1241, 1401, 1567, 1738, 1915),
    *(2097, 2286, 2483, 2686, 2898, 3118, 3348, 3589, 3842, 4106, 4385, 4679, 4990, 5320, 5672),
    *(6048, 6451, 6887, 7361, 7877, 8444, 9073, 9778, 10578, 11496, 12573, 13864, 15464, 17535),
    *(20408, 24893, 29529, 31789),
)
"""Quantiles of netem's distribution of that name at steps of 1/128: a quarter normal, three Pareto.

Each is the entry of its 4,096 that begins the step; the last is the last one.
"""


def jitter_ms(latency_ms: int) -> int:
    """Return the jitter that Kafka gives to `tc` with a latency."""
    return max(1, isqrt(latency_ms))


def longest_delay_ms(latency_ms: int) -> int:
    """Return the longest delay of a message, rounded up."""
    return latency_ms - (-jitter_ms(latency_ms) * PARETONORMAL[-1] // SCALE)


class Degradations:
    """The ends that send late.

    Args:
        choices: Source of the delays.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._latencies_ms: dict[End, list[int]] = {}

    def begin(self, end: End, latency_ms: int) -> None:
        """Delay what an end sends; delays of several degradations add up."""
        self._latencies_ms.setdefault(end, []).append(latency_ms)

    def finish(self, end: End, latency_ms: int) -> None:
        """End one degradation of that latency."""
        self._latencies_ms[end].remove(latency_ms)

    @property
    def is_on(self) -> bool:
        """Whether any end sends late at present."""
        return any(self._latencies_ms.values())

    def is_late(self, end: End) -> bool:
        """Whether an end sends late at present."""
        return bool(self._latencies_ms.get(end))

    def delay_us(self, end: End, direction: str) -> int:
        """Draw the delay of the next message of an end in a direction, 0 where it is not late."""
        return sum(
            self._delay_us(latency_ms, direction) for latency_ms in self._latencies_ms.get(end, ())
        )

    def _delay_us(self, latency_ms: int, direction: str) -> int:
        deviation = drawn(PARETONORMAL, self._choices, "netem", direction)
        delay_us = latency_ms * _US_PER_MS + jitter_ms(latency_ms) * _US_PER_MS * deviation // SCALE
        return max(0, delay_us)
