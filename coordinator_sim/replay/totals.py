"""Figures of several groups together."""

from collections.abc import Sequence

from msgspec.structs import replace

from coordinator_sim.replay.report import RunFigures, WhatIf
from coordinator_sim.replay.sharing import SharingCosts


def total_of(runs: Sequence[RunFigures]) -> RunFigures:
    """Return the sums over groups; durations of groups add up even where they overlap.

    Args:
        runs: One run a group, at least one. Where one has no costs of sharing, the total has none.
    """
    shared = [run.sharing for run in runs if run.sharing is not None]
    kept = [run.never_stopped for run in runs if run.never_stopped is not None]
    return RunFigures(
        rebalances=sum(run.rebalances for run in runs),
        last_generation=max(run.last_generation for run in runs),
        join_ms=sum(run.join_ms for run in runs),
        rebalancing_ms=sum(run.rebalancing_ms for run in runs),
        removed=sum(run.removed for run in runs),
        unnoticed_ms=sum(run.unnoticed_ms for run in runs),
        outcomes={},
        returns=sum(run.returns for run in runs),
        away_ms=sum(run.away_ms for run in runs),
        sharing=_shared(shared) if len(shared) == len(runs) else None,
        never_stopped=sum(kept) if len(kept) == len(runs) else None,
        is_epochs=any(run.is_epochs for run in runs),
        is_bound=any(run.is_bound for run in runs),
    )


def _shared(parts: Sequence[SharingCosts]) -> SharingCosts:
    total = parts[0]
    for each in parts[1:]:
        total = total.plus(each)
    return replace(total, items=sum(each.items for each in parts))


def total_entry(entries: Sequence[WhatIf], name: str) -> WhatIf | None:
    """Return what the groups have together with one combination of settings.

    Args:
        entries: One a group, all of one combination; those that were not computed are left out.
        name: Stands in the place of a group's id.

    Returns:
        None for fewer than two groups.
    """
    before = [each.as_is for each in entries if each.as_is and each.with_settings]
    after = [each.with_settings for each in entries if each.as_is and each.with_settings]
    if len(before) < 2:  # noqa: PLR2004 - a total of one group is the group
        return None
    return WhatIf(
        source_ref=None,
        group_id=name,
        settings=entries[0].settings,
        as_is=total_of(before),
        with_settings=total_of(after),
    )
