"""Moves between the assignments of a group, and their balance: the one definition of both.

Everything is computed from the dense form: the owners of a generation are one tuple of places, and
two of them are compared place by place. Definitions: `docs/trace-schema.md`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, pairwise, zip_longest
from math import sqrt
from operator import ne
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.trace.schema import GenerationRow

_CONNECT: Final = "connect"
_CONNECT_KINDS: Final = {"connector": "c:", "task": "t:"}
_STREAMS: Final = "streams"
_NOBODY: Final = -1
_GONE: Final = -2
"""Place of a member that left; distinct from the place of a resource without an owner."""


class Handed(Struct, frozen=True):
    """What one generation gave to whom, of one kind of resources.

    Args:
        kind: `partition`, `connector` or `task`.
        owners: Place of each resource's owner among the members; -1 is nobody.
        loads: Resources of each member.
    """

    kind: str
    row: GenerationRow
    owners: tuple[int, ...]
    loads: tuple[int, ...]


class Move(Struct, frozen=True, kw_only=True):
    """The moves of one kind of resources between two completed generations.

    Members are compared by key, so that a static member stays itself across restarts.

    Args:
        chain_generations: How many generations the hand-over took; 1 for eager protocols.
        resource_count: Resources with an owner now.
        orphaned: Resources with another owner because the old one is gone.
        voluntary: Resources with another owner although the old one stayed.
        held_by_survivors: What members that stayed had of the resources with an owner now.
        lb_sizes: The fewest moves to what each member has now.
        lb_balanced: The fewest moves to any balanced assignment; None where subscriptions differ
            or are not known.
        excess_moves: Moves beyond `lb_balanced`, or, for a result that is less balanced, beyond
            `lb_sizes`; None where `lb_balanced` is.
    """

    kind: str
    row: GenerationRow
    previous_generation: int
    chain_generations: int
    resource_count: int
    member_count: int
    kept: int
    moved: int
    orphaned: int
    voluntary: int
    added: int
    dropped: int
    held_by_survivors: int
    lb_sizes: int
    lb_balanced: int | None
    excess_moves: int | None

    @property
    def stickiness(self) -> float:
        """The share of what survivors had that they kept; 1 where they had nothing."""
        return self.kept / self.held_by_survivors if self.held_by_survivors else 1.0

    @property
    def ideal_stickiness(self) -> float | None:
        """The most that `stickiness` can be with a balanced result."""
        if self.lb_balanced is None:
            return None
        if not self.held_by_survivors:
            return 1.0
        return 1.0 - (self.lb_balanced - self.orphaned) / self.held_by_survivors


class Balance(Struct, frozen=True, kw_only=True):
    """How evenly a generation's resources of one kind are shared out.

    Args:
        lasted_us: Until the next generation's assignment, or the end of the trace.
        spread: Most less fewest resources of a member.
        cv: Coefficient of variation over the members; 0 where nothing is owned.
        gini: Gini index, 0 for all equal.
    """

    kind: str
    row: GenerationRow
    lasted_us: int | None
    spread: int
    cv: float
    gini: float


def handed_out(
    generations: Sequence[GenerationRow], names: Mapping[int, Sequence[str]]
) -> list[list[Handed]]:
    """Return what generations gave, in order, by incarnation and kind of resources.

    Assignors balance each kind by itself: generations of Connect are split in two.

    Args:
        generations: Of one group.
        names: Resources by the id of their list; within an incarnation a later list extends an
            earlier one.
    """
    lives: defaultdict[tuple[int, str], list[Handed]] = defaultdict(list)
    places: dict[tuple[int, str], list[int]] = {}
    for row in sorted(generations, key=lambda row: (row.incarnation, row.generation)):
        if row.protocol_type != _CONNECT:
            kind = "task" if row.protocol_type == _STREAMS else "partition"
            lives[row.incarnation, kind].append(Handed(kind, row, row.owners, row.loads))
            continue
        for kind, prefix in _CONNECT_KINDS.items():
            key = (row.resource_list_id, kind)
            if key not in places:
                listed = enumerate(names[row.resource_list_id])
                places[key] = [place for place, name in listed if name.startswith(prefix)]
            owners = tuple(row.owners[place] for place in places[key])
            counts = Counter(owners)
            loads = tuple(counts[member] for member in range(len(row.member_keys)))
            lives[row.incarnation, kind].append(Handed(kind, row, owners, loads))
    return list(lives.values())


def moves_of(lives: Sequence[Sequence[Handed]]) -> list[Move]:
    """Return what moved in a group (`handed_out`), in order of generations within each life.

    The first generation of an incarnation has nothing to be compared with.
    """
    return [
        _move(before, after, chain)
        for life in lives
        for (_, before), (chain, after) in pairwise(_complete(life))
    ]


def balances_of(lives: Sequence[Sequence[Handed]], end_us: int) -> Iterator[Balance]:
    """Yield the balance of each generation that has members.

    Args:
        lives: `handed_out`.
        end_us: End of the trace.
    """
    for life in lives:
        for handed, following in zip_longest(life, life[1:]):
            if handed.loads:
                until_us = None if following is None else following.row.sync_us
                until_us = end_us if until_us is None else until_us
                since_us = handed.row.sync_us
                lasted_us = None if since_us is None else max(0, until_us - since_us)
                yield _balance(handed, lasted_us)


def _balance(handed: Handed, lasted_us: int | None) -> Balance:
    loads, count, total = handed.loads, len(handed.loads), sum(handed.loads)
    cv = gini = 0.0
    if total:
        mean = total / count
        variance = max(0.0, sum(load * load for load in loads) / count - mean * mean)
        ranked = sum(rank * load for rank, load in enumerate(sorted(loads), 1))
        cv, gini = sqrt(variance) / mean, 2 * ranked / (count * total) - (count + 1) / count
    return Balance(
        kind=handed.kind,
        row=handed.row,
        lasted_us=lasted_us,
        spread=max(loads) - min(loads),
        cv=cv,
        gini=gini,
    )


def _complete(life: Sequence[Handed]) -> Iterator[tuple[int, Handed]]:
    """Yield the generations in which a hand-over is complete, with the length of its chain.

    A cooperative group takes a resource away in one generation and gives it out in a later one.
    Comparing neighbours would count a drop and an addition where there was one move.
    """
    before: tuple[int, ...] = ()
    chain = 0
    for handed in life:
        row, owners = handed.row, handed.owners
        chain += 1
        cooperative = is_cooperative(row.protocol_name)
        is_open = False
        if cooperative and row.member_keys:
            pairs = zip(before, owners, strict=False)
            is_open = row.delay_ms > 0 or any(old >= 0 > new for old, new in pairs)
        before = owners if cooperative else ()
        if not is_open:
            yield chain, handed
            chain = 0


def _move(before: Handed, after: Handed, chain: int) -> Move:
    """Compare two generations; only what changed is looked at one by one."""
    old_keys, keys, owners = before.row.member_keys, after.row.member_keys, after.owners
    places: Sequence[int] = range(len(keys))
    old = before.owners
    if old_keys != keys:
        now_at = {key: place for place, key in enumerate(keys)}
        places = [now_at.get(key, _GONE) for key in old_keys]
        old = tuple(map([*places, _NOBODY].__getitem__, old))
    old += (_NOBODY,) * (len(owners) - len(old))
    moved = orphaned = added = dropped = 0
    held = list(before.loads)
    for resource in compress(range(len(owners)), map(ne, old, owners)):
        if owners[resource] == _NOBODY:
            dropped += 1
            held[before.owners[resource]] -= 1
        elif old[resource] == _NOBODY:
            added += 1
        else:
            moved += 1
            orphaned += old[resource] == _GONE
    resource_count = sum(after.loads)
    had = [count for count, now in zip(held, places, strict=True) if now != _GONE]
    have = [after.loads[now] for now in places if now != _GONE]
    lb_sizes = orphaned + sum(
        count - load for count, load in zip(had, have, strict=True) if count > load
    )
    lb_balanced = None
    if after.row.subscriptions_equal and keys:
        lb_balanced = orphaned + _over_fair_share(had, resource_count, len(keys))
    excess = None
    if lb_balanced is not None:
        excess = moved - (lb_balanced if moved >= lb_balanced else lb_sizes)
    return Move(
        kind=after.kind,
        row=after.row,
        previous_generation=before.row.generation,
        chain_generations=chain,
        resource_count=resource_count,
        member_count=len(keys),
        kept=resource_count - moved - added,
        moved=moved,
        orphaned=orphaned,
        voluntary=moved - orphaned,
        added=added,
        dropped=dropped,
        held_by_survivors=sum(had),
        lb_sizes=lb_sizes,
        lb_balanced=lb_balanced,
        excess_moves=excess,
    )


def _over_fair_share(had: Sequence[int], resources: int, members: int) -> int:
    """Return what survivors must give up; as many as the remainder may keep one more."""
    fair, remainder = divmod(resources, members)
    rich = [count for count in had if count > fair]
    return sum(rich) - len(rich) * fair - min(len(rich), remainder)
