"""Quantile tables: distributions as plain data, drawn with whole numbers only.

A table lists values at equal steps of probability, from the smallest to the largest; values in
between are interpolated. Choice 0 is the smallest value. Pure; draws only through `Choices`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.choices import Choices

_STEPS: Final = 1_024
"""Steps between two quantiles of a table: finer than a tenth of a percent of a step."""


def table_options(quantiles: tuple[int, ...]) -> int:
    """Return the number of values that a quantile table has to choose from."""
    return (len(quantiles) - 1) * _STEPS


def interpolated(quantiles: tuple[int, ...], chosen: int) -> int:
    """Return the value of a quantile table at a choice from `table_options`; 0 is the smallest."""
    index, step = divmod(chosen, _STEPS)
    low = quantiles[index]
    return low + (quantiles[index + 1] - low) * step // _STEPS


def drawn(quantiles: tuple[int, ...], choices: Choices, site: str, key: str) -> int:
    """Return the next value of a table at a choice site, for one key of the site."""
    return interpolated(quantiles, choices.choose(site, key, table_options(quantiles)))


def drawer(quantiles: tuple[int, ...], choices: Choices, site: str, key: str) -> Callable[[], int]:
    """Return a function that draws what `drawn` would, for a key that is drawn of often."""
    values = _values(quantiles)
    choose = choices.drawer(site, key, len(values))
    return lambda: values[choose()]


@lru_cache(maxsize=16)
def _values(quantiles: tuple[int, ...]) -> tuple[int, ...]:
    """Every value of a table, by its choice: about a megabyte for a table of 50."""
    return tuple(interpolated(quantiles, chosen) for chosen in range(table_options(quantiles)))


def check_table(name: str, quantiles: tuple[int, ...], low: int, high: int) -> None:
    """Refuse a table that is too short, descends, or leaves its bounds.

    Raises:
        ScenarioError: names the table, the value, the bound and the fix.
    """
    if len(quantiles) < 2:  # noqa: PLR2004 - a span has two ends
        raise ScenarioError(
            f"{name}={list(quantiles)}: give at least two values, the smallest and the largest"
        )
    for index, value in enumerate(quantiles):
        least = max(low, quantiles[index - 1]) if index else low
        if not least <= value <= high:
            raise ScenarioError(
                f"{name}[{index}]={value}: must be from {least} to {high}; "
                "quantiles go from the smallest to the largest"
            )
