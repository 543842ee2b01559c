"""Figures of a rehearsal as values: of a deploy over drawn worlds, and of one against another."""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.runs.deploy_costs import DeployCosts
from coordinator_sim.sim.scenario.upgrade import Deploy
from coordinator_sim_reports.rehearsal_history import History
from coordinator_sim_reports.rehearsal_plans import GroupPlan

MEASURES: Final = ("unowned_s", "stopped_s", "longest_s", "moved", "reprocessed", "rebalances")
"""Figures of a deploy, in the order of the tables."""
WEIGHED: Final = ("unowned_s", "stopped_s", "moved", "reprocessed")
"""Figures that add up over deploys, so that one may pay for another."""
_US_PER_S: Final = 1_000_000


class Spread(Struct, frozen=True, kw_only=True):
    """A figure in every drawn world.

    Args:
        values: By seed.
    """

    mean: float
    low: float
    high: float
    values: tuple[float, ...]


class DeployRow(Struct, frozen=True, kw_only=True):
    """What a deploy costs, by figure (`MEASURES`); `file` is its scenario."""

    deploy: Deploy
    costs: dict[str, Spread]
    file: str


class Balance(Struct, frozen=True, kw_only=True):
    """One figure of the upgrade against what each deploy afterwards saves.

    Args:
        extra: What the deploy that upgrades costs more than a usual one, world by world.
        saving: What a deploy afterwards costs less than one today.
        pays_after: Deploys afterwards until it has paid for itself, of the means; 0 where it costs
            no more than a usual one, None for never.
        worlds_saving: Drawn worlds in which a deploy afterwards costs less.
    """

    measure: str
    extra: Spread
    saving: Spread
    pays_after: int | None
    worlds_saving: int


class GroupRehearsal(Struct, frozen=True, kw_only=True):
    """One group, rehearsed; without `deploys` where it cannot be."""

    group: GroupPlan
    history: History
    deploys: tuple[DeployRow, ...]
    balance: tuple[Balance, ...]


class Rehearsal(Struct, frozen=True, kw_only=True):
    """The result for a trace.

    Args:
        trace: Its name.
        groups: Those that were rehearsed, most rebalances first.
        left_out: Names of further classic groups.
        seeds: Drawn worlds of each deploy.
        seeds_left: Worlds asked for that there was no time for.
        kept: Runs that were there from before.
        page: The HTML file.
    """

    trace: str
    groups: tuple[GroupRehearsal, ...]
    left_out: tuple[str, ...]
    seeds: int
    seeds_left: int
    kept: int
    page: str


def spreads_of(costs: Sequence[DeployCosts]) -> dict[str, Spread]:
    """Return every figure of a deploy over the drawn worlds."""
    return {
        "unowned_s": spread_of([each.unowned_us / _US_PER_S for each in costs]),
        "stopped_s": spread_of([each.stopped_us / _US_PER_S for each in costs]),
        "longest_s": spread_of([each.longest_us / _US_PER_S for each in costs]),
        "moved": spread_of([each.moved for each in costs]),
        "reprocessed": spread_of([each.reprocessed for each in costs]),
        "rebalances": spread_of([each.rebalances for each in costs]),
    }


def spread_of(values: Sequence[float]) -> Spread:
    """Return the mean of a figure with its least and its most."""
    return Spread(
        mean=math.fsum(values) / len(values),
        low=min(values),
        high=max(values),
        values=tuple(values),
    )


def balance_of(rows: Sequence[DeployRow]) -> tuple[Balance, ...]:
    """Weigh the deploy that upgrades against what each deploy afterwards saves."""
    by_deploy = {row.deploy: row.costs for row in rows}
    if not by_deploy:
        return ()
    found = []
    for measure in WEIGHED:
        today, upgrade, later = (
            by_deploy[deploy][measure].values
            for deploy in (Deploy.TODAY, Deploy.UPGRADE, Deploy.AFTERWARDS)
        )
        extra = spread_of([new - old for new, old in zip(upgrade, today, strict=True)])
        saving = spread_of([old - new for new, old in zip(later, today, strict=True)])
        found.append(
            Balance(
                measure=measure,
                extra=extra,
                saving=saving,
                pays_after=pays_after(extra.mean, saving.mean),
                worlds_saving=sum(value > 0 for value in saving.values),
            )
        )
    return tuple(found)


def pays_after(extra: float, saving: float) -> int | None:
    """Return after how many deploys a saving has made up for what the upgrade cost more.

    Returns:
        0 where it cost no more; None where nothing is saved.
    """
    if extra <= 0:
        return 0
    return None if saving <= 0 else math.ceil(extra / saving)
