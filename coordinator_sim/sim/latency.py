"""Latency laws as functions of choices, in integers.

Choice 0 is the smallest latency of a law.
"""

from collections.abc import Callable
from typing import assert_never

from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.world import (
    ConstantLatency,
    LatencyLaw,
    TableLatency,
    UniformLatency,
)

DrawLatency = Callable[[str], int]
"""Returns the one-way latency in microseconds of the next message in a direction."""


def drawn_latency(law: LatencyLaw, choices: Choices) -> DrawLatency:
    """Return a function that draws latencies of the law from the choices of a run.

    A constant law draws nothing, whatever its name.
    """
    match law:
        case ConstantLatency(us=us):
            return lambda _direction: us
        case UniformLatency(low_us=low_us, high_us=high_us):
            options = high_us - low_us + 1
            return lambda direction: low_us + choices.choose("latency", direction, options)
        case TableLatency(quantiles_us=quantiles):
            return lambda direction: drawn(quantiles, choices, "latency", direction)
        case _:
            assert_never(law)
