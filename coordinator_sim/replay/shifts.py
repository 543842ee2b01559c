"""What changed hands between the generations of a group.

The definitions are those of `docs/trace-schema.md`; the reports compute the same in Spark.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.replay.strategies import Owners, fewest_moves, moves_between
from coordinator_sim.runs.holdings import Names
from coordinator_sim.trace.schema import GenerationRow

_CONNECT: Final = "connect"
_CONNECT_KINDS: Final = ("c:", "t:")


class Shift(Struct, frozen=True, kw_only=True):
    """The moves of one kind of resources between two completed generations.

    Args:
        at_us: When the later one was handed out.
        moved: Resources with another owner.
        voluntary: Of these, those whose old owner stayed.
        needless: Moves beyond the fewest that a balanced result needs, or, for a result that is
            less balanced, beyond the fewest to its sizes; None where subscriptions differ.
    """

    at_us: int
    moved: int
    voluntary: int
    needless: int | None


class _Handed(Struct, frozen=True):
    """What one generation gave to whom."""

    row: GenerationRow
    owners: Owners


def shifts_of(generations: Sequence[GenerationRow], names: Names) -> list[Shift]:
    """Return what moved in a group, in order; each generation after its first has a row a kind."""
    lives: defaultdict[tuple[int, str], list[_Handed]] = defaultdict(list)
    for row in sorted(generations, key=lambda row: (row.incarnation, row.generation)):
        for kind in _CONNECT_KINDS if row.protocol_type == _CONNECT else ("",):
            lives[row.incarnation, kind].append(_Handed(row, _owners(row, names, kind)))
    return [
        _shift(before, after)
        for life in lives.values()
        for before, after in pairwise(_complete(life))
    ]


def _owners(row: GenerationRow, names: Names, prefix: str) -> Owners:
    listed = names[row.resource_list_id]
    return {
        listed[place]: row.member_keys[owner]
        for place, owner in enumerate(row.owners)
        if owner >= 0 and listed[place].startswith(prefix)
    }


def _complete(life: Sequence[_Handed]) -> Iterator[_Handed]:
    """Yield the generations in which a hand-over is complete."""
    before: Owners = {}
    for handed in life:
        row = handed.row
        cooperative = is_cooperative(row.protocol_name)
        drops = any(resource not in handed.owners for resource in before)
        if not (cooperative and row.member_keys and (row.delay_ms > 0 or drops)):
            yield handed
        before = handed.owners if cooperative else {}


def _shift(before: _Handed, after: _Handed) -> Shift:
    old, new, keys = before.owners, after.owners, after.row.member_keys
    moved = moves_between(old, new)
    survivors = set(keys)
    orphaned = sum(
        resource in new and key not in survivors and key != new[resource]
        for resource, key in old.items()
    )
    needless = None
    if after.row.subscriptions_equal and keys:
        fewest = fewest_moves(old, new, keys)
        needless = moved - (fewest if moved >= fewest else _fewest_to_sizes(old, new, survivors))
    return Shift(
        at_us=after.row.sync_us or 0,
        moved=moved,
        voluntary=moved - orphaned,
        needless=needless,
    )


def _fewest_to_sizes(old: Owners, new: Owners, survivors: set[str]) -> int:
    """Return the fewest moves from the old owners to what each member has now."""
    held: defaultdict[str, int] = defaultdict(int)
    orphaned = 0
    for resource, key in old.items():
        if resource not in new:
            continue
        if key in survivors:
            held[key] += 1
        else:
            orphaned += 1
    loads: defaultdict[str, int] = defaultdict(int)
    for key in new.values():
        loads[key] += 1
    return orphaned + sum(max(0, count - loads[key]) for key, count in held.items())
