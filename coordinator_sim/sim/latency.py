"""Latency laws as functions of choices, in integers.

Choice 0 is the smallest latency of a law.
"""

from collections.abc import Callable
from typing import Final, assert_never

from coordinator_sim.scenario.choices import Choices
from coordinator_sim.scenario.world import (
    ConstantLatency,
    LatencyLaw,
    TableLatency,
    UniformLatency,
)

DrawLatency = Callable[[str], int]
"""The one-way latency in microseconds of the next message of the named direction."""

_STEPS: Final = 1_024
"""Steps between two quantiles of a table: finer than a tenth of a percent of a step."""


def drawn_latency(law: LatencyLaw, choices: Choices) -> DrawLatency:
    """The law as a function that draws from the choices of a run.

    A constant law draws nothing, whatever its name says.
    """
    match law:
        case ConstantLatency(us=us):
            return lambda _direction: us
        case UniformLatency(low_us=low_us, high_us=high_us):
            options = high_us - low_us + 1
            return lambda direction: low_us + choices.choose("latency", direction, options)
        case TableLatency(quantiles_us=quantiles):
            options = table_options(quantiles)
            return lambda direction: interpolated(
                quantiles, choices.choose("latency", direction, options)
            )
        case _:
            assert_never(law)


def table_options(quantiles: tuple[int, ...]) -> int:
    """How many values a quantile table has to choose from."""
    return (len(quantiles) - 1) * _STEPS


def interpolated(quantiles: tuple[int, ...], chosen: int) -> int:
    """The value of a quantile table at a choice from `table_options`; 0 is the smallest."""
    index, step = divmod(chosen, _STEPS)
    low = quantiles[index]
    return low + (quantiles[index + 1] - low) * step // _STEPS
