"""Storms: rebalances of one group that come close together."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.replay.costs import RebalanceCost

STORM_MS: Final = 300_000
STORM_COUNT: Final = 5
"""In a storm any rebalance is one of `STORM_COUNT` in a row that began within `STORM_MS`."""


def storms_of(costs: Sequence[RebalanceCost]) -> list[list[RebalanceCost]]:
    """Return the storms among rebalances of a group, each with its rebalances, in order.

    Two storms are one where they share a rebalance.
    """
    storms: list[list[RebalanceCost]] = []
    reached = 0
    for last in range(STORM_COUNT - 1, len(costs)):
        first = last - STORM_COUNT + 1
        if costs[last].start_ms - costs[first].start_ms > STORM_MS:
            continue
        if not storms or first >= reached:
            storms.append([])
        storms[-1].extend(costs[max(first, reached) : last + 1])
        reached = last + 1
    return storms


def storm_numbers(costs: Sequence[RebalanceCost]) -> dict[int, int]:
    """Return by number of a rebalance the number of its storm, from 1; others are absent."""
    return {
        each.number: number for number, storm in enumerate(storms_of(costs), 1) for each in storm
    }
