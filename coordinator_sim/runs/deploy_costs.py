"""Costs of what happens to one group from an instant on, as of a deploy in a simulated run.

Other than the costs of rebalances, it counts time in which the group is empty, and charges nothing
to single rebalances: what nobody reads, nobody reads, also while the only member is restarted.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from coordinator_sim.runs.holdings import Holding, covered, gaps, holdings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import repetitions

_BEGINS: frozenset[Event] = frozenset({Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED})


class DeployCosts(Struct, frozen=True, kw_only=True):
    """Costs of one group from an instant to the end of its trace.

    Args:
        unowned_us: Time without an owner, summed over partitions.
        stopped_us: Time in which no member owned anything.
        longest_us: Longest time without an owner of any partition.
        moved: How often a partition got an owner other than its last one.
        reprocessed: Records read again by a successor; 0 where the trace tells of no work.
        rebalances: Rebalances, or epochs of a consumer group, that began.
    """

    unowned_us: int
    stopped_us: int
    longest_us: int
    moved: int
    reprocessed: int
    rebalances: int


def deploy_costs(events: Sequence[TraceEvent], group_id: str, since_us: int) -> DeployCosts:
    """Return the costs of a group from an instant on.

    Args:
        events: Events of one trace, in emission order; it ends with its last event.
        group_id: The group.
        since_us: The instant; what nobody owned since before counts from then on.
    """
    ends_us = max((event.ts_us for event in events), default=0)
    own = holdings(events).get(group_id, [])
    by_resource: dict[str, list[Holding]] = {}
    for holding in sorted(own, key=lambda each: (each.from_us, each.to_us)):
        by_resource.setdefault(holding.resource, []).append(holding)
    gaps_us = [
        length_us
        for held in by_resource.values()
        for length_us in _gaps_us(held, since_us, ends_us)
    ]
    again = repetitions(events).get(group_id, [])
    return DeployCosts(
        unowned_us=sum(gaps_us),
        stopped_us=sum(_gaps_us(own, since_us, ends_us)),
        longest_us=max(gaps_us, default=0),
        moved=sum(
            after.member_key != before.member_key and after.from_us >= since_us
            for held in by_resource.values()
            for before, after in pairwise(held)
        ),
        reprocessed=sum(count for at_us, count in again if at_us >= since_us),
        rebalances=sum(
            event.group_id == group_id and event.event in _BEGINS and event.ts_us >= since_us
            for event in events
        ),
    )


def _gaps_us(held: Sequence[Holding], since_us: int, ends_us: int) -> list[int]:
    """Return the lengths of the times that nobody holds, from an instant to the end."""
    idle = gaps(covered((each.from_us, each.to_us) for each in held), ends_us)
    return [to_us - max(from_us, since_us) for from_us, to_us in idle if to_us > since_us]
