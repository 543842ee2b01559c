"""Costs of rebalances summed by group, by deploy of a group and by day, and by storm.

Sums are over the rebalances that tell a figure; where none does, the sum is None. By group and by
day the sums are the same: every rebalance has one group and one day.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.replay.charges import Charge

GROUP: Final = "group"
DEPLOY: Final = "deploy"
DAY: Final = "day"
SCOPES: Final = (GROUP, DEPLOY, DAY)
LOOP_COUNT: Final = 4
"""Rebalances of a client that goes and comes back twice."""
_LOOP: Final = "loop"
_STORM: Final = "storm"
_US_PER_S: Final = 1_000_000


class Sums(Struct, frozen=True, kw_only=True):
    """Figures of several rebalances: seconds, resources and records; None where none tells.

    `paused_s` is member-seconds, `unowned_s` resource-seconds; `charges` defines both, and
    `stopped_s`.
    """

    rebalancing_s: float | None
    paused_s: float | None
    stopped_s: float | None
    unowned_s: float | None
    moved: int | None
    voluntary: int | None
    needless: int | None
    reprocessed: int | None


class CostSum(Struct, frozen=True, kw_only=True):
    """Costs of a group, of a deploy of a group, or of a day.

    Args:
        scope: One of `SCOPES`.
        group_id: None for a day.
        deploy_no: Number of the deploy in its group, from 1; None but for a deploy.
        day: UTC date; None but for a day.
        first_us: When the first line of its first rebalance was written.
        last_us: When its last rebalance was over.
        assigned: Rebalances with known assignments; moves and unowned time are theirs.
    """

    scope: str
    group_id: str | None
    deploy_no: int | None
    day: str | None
    first_us: int
    last_us: int
    rebalances: int
    assigned: int
    sums: Sums


class Storm(Struct, frozen=True, kw_only=True):
    """Rebalances of a group of which any five in a row began within five minutes.

    Args:
        storm_no: Number in its group, from 1.
        kind: `deploy` where most of them are a deploy's, `loop` where most were begun by clients
            that began at least `LOOP_COUNT` of them, or `storm`.
        assigned: Rebalances with known assignments.
        members: The most in it; None where no line tells.
        clients: How many began a rebalance of it.
        first_no: Number of its first rebalance.
        trigger: What began the first, in a word or two.
        trigger_client: Client id of who began it; empty where none is named.
    """

    group_id: str
    storm_no: int
    kind: str
    first_us: int
    last_us: int
    rebalances: int
    assigned: int
    members: int | None
    clients: int
    first_no: int
    trigger: str
    trigger_client: str
    sums: Sums


def summed(charges: Iterable[Charge], scope: str) -> list[CostSum]:
    """Return the costs by `scope`: days in order, groups and deploys the costliest first."""
    of: dict[tuple[object, ...], list[Charge]] = {}
    keys: dict[str, Callable[[Charge], tuple[str | None, int | None, str | None]]] = {
        GROUP: lambda each: (each.group_id, None, None),
        DEPLOY: lambda each: (each.group_id, each.cost.deploy, None),
        DAY: lambda each: (None, None, each.day),
    }
    for each in charges:
        if scope != DEPLOY or each.cost.deploy:
            of.setdefault(keys[scope](each), []).append(each)
    rows = [_cost_sum(scope, own, keys[scope](own[0])) for own in of.values()]
    if scope == DAY:
        return sorted(rows, key=lambda row: row.day or "")
    return sorted(rows, key=_costliest_first)


def storms_in(charges: Iterable[Charge]) -> list[Storm]:
    """Return the storms of all groups, in order of time."""
    of: dict[tuple[str, int], list[Charge]] = {}
    for each in charges:
        if each.storm:
            of.setdefault((each.group_id, each.storm), []).append(each)
    storms = [_storm(own) for own in of.values()]
    return sorted(storms, key=lambda each: (each.first_us, each.group_id))


def sums_of(charges: Sequence[Charge]) -> Sums:
    """Return the sums of the figures of rebalances."""
    return Sums(
        rebalancing_s=_seconds(each.rebalancing_us for each in charges),
        paused_s=_seconds(each.paused_us for each in charges),
        stopped_s=_seconds(each.stopped_us for each in charges),
        unowned_s=_seconds(each.unowned_us for each in charges),
        moved=_sum(each.moved for each in charges),
        voluntary=_sum(each.voluntary for each in charges),
        needless=_sum(each.needless for each in charges),
        reprocessed=_sum(each.reprocessed for each in charges),
    )


def _costliest_first(row: CostSum) -> tuple[float, float, str, int]:
    sums = row.sums
    return (
        -(sums.unowned_s or 0.0),
        -(sums.rebalancing_s or 0.0),
        row.group_id or "",
        row.deploy_no or 0,
    )


def _cost_sum(
    scope: str, own: Sequence[Charge], key: tuple[str | None, int | None, str | None]
) -> CostSum:
    group_id, deploy_no, day = key
    return CostSum(
        scope=scope,
        group_id=group_id,
        deploy_no=deploy_no,
        day=day,
        first_us=min(each.seen_us for each in own),
        last_us=_last_us(own),
        rebalances=len(own),
        assigned=sum(each.unowned_us is not None for each in own),
        sums=sums_of(own),
    )


def _storm(own: Sequence[Charge]) -> Storm:
    first = own[0]
    clients = Counter(each.cost.client for each in own if each.cost.client)
    kind = _STORM
    if sum(bool(each.cost.deploy) for each in own) * 2 > len(own):
        kind = DEPLOY
    elif sum(count for count in clients.values() if count >= LOOP_COUNT) * 2 > len(own):
        kind = _LOOP
    # Logs up to 2.x count members nowhere but in a group that is empty.
    members = [each.cost.members for each in own if each.cost.members]
    return Storm(
        group_id=first.group_id,
        storm_no=first.storm,
        kind=kind,
        first_us=min(each.seen_us for each in own),
        last_us=_last_us(own),
        rebalances=len(own),
        assigned=sum(each.unowned_us is not None for each in own),
        members=max(members, default=None),
        clients=len(clients),
        first_no=first.cost.number,
        trigger=first.cost.trigger,
        trigger_client=first.cost.client,
        sums=sums_of(own),
    )


def _last_us(own: Sequence[Charge]) -> int:
    return max(each.seen_us if each.end_us is None else each.end_us for each in own)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def _seconds(values_us: Iterable[int | None]) -> float | None:
    total_us = _sum(values_us)
    return None if total_us is None else total_us / _US_PER_S
