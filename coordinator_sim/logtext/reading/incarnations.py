"""Numbers the incarnations of groups: one per life of a group id.

Generations restart when a group vanishes and returns under its name, so a generation alone
is ambiguous: (group, incarnation, generation) is not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coordinator_sim.trace import batches
from coordinator_sim.trace.events import Event

_AFTER_DEATH: Final = frozenset(
    {
        batches.KIND_NUMBERS[Event.GROUP_DEAD],
        batches.KIND_NUMBERS[Event.GROUP_UNLOADED],
        batches.KIND_NUMBERS[Event.OFFSET_TOMBSTONE],
    }
)
"""Events that may follow a group's end without starting it anew."""
_ANSWERED: Final = (
    batches.KIND_NUMBERS[Event.JOIN_COMPLETE],
    batches.KIND_NUMBERS[Event.SYNC_LEADER],
    batches.KIND_NUMBERS[Event.GROUP_EMPTY],
)
"""Events of requests that tell a coordinator's generation; the others have that of a client."""
_BEHIND: Final = tuple(
    batches.KIND_NUMBERS[kind]
    for kind in (
        Event.MEMBER_STEP,
        Event.TARGET_COMPUTED,
        Event.TARGET_ASSIGNED,
        Event.TARGET_REACHED,
    )
)
"""Events of consumer groups whose epoch is a member's or a target's, behind the group's own."""
_JOIN: Final = batches.KIND_NUMBERS[Event.JOIN_REQ]
_DEAD: Final = batches.KIND_NUMBERS[Event.GROUP_DEAD]
_UNPARSED: Final = batches.KIND_NUMBERS[Event.UNPARSED]


@dataclass(slots=True)
class _Life:
    incarnation: int = 0
    generation: int = -1
    is_over: bool = False


class IncarnationCounter:
    """Numbers the incarnations of every group of one cluster, from 0.

    A new incarnation begins with the first event after a group's death, and when a coordinator logs
    a lower generation than before. Late lines of clients and requests do not count: a client's
    generation may be one behind.
    """

    _generations: batches.FallingGroups
    _odd: dict[int, _Life]

    def __init__(self) -> None:
        self._generations = batches.FallingGroups(-1)
        self._odd = {}
        """Groups that began anew or are over, by their numbers; the others have one life so far."""

    def number(self, batch: batches.EventBatch) -> batches.EventBatch:
        """Return the events with their incarnations; they must come in the order they happened."""
        groups, kinds = batch.groups, batch.kinds
        has_group = groups != batches.NOBODY
        asks = batch.is_request & ~np.isin(kinds, _ANSWERED)
        counts = has_group & ~batch.is_client & ~asks & (kinds != _UNPARSED)
        counts &= ~np.isin(kinds, _BEHIND)
        deaths = groups[counts & (kinds == _DEAD)]
        for group in np.unique(deaths).tolist():
            self._life(group)
        known = np.flatnonzero(counts & (batch.generations != batches.UNKNOWN))
        if self._odd:
            known = known[~self._are_odd(groups[known])]
        for group in self._generations.find(groups, batch.generations, known):
            self._life(group)
        if not self._odd:
            return batch
        odd = np.flatnonzero(has_group & self._are_odd(groups))
        joins = asks & (kinds == _JOIN)
        incarnations = batch.incarnations.copy()
        for group, rows in batches.group_runs(groups, odd):
            life = self._odd[group]
            told = zip(
                rows.tolist(),
                kinds[rows].tolist(),
                batch.generations[rows].tolist(),
                counts[rows].tolist(),
                joins[rows].tolist(),
                strict=True,
            )
            for row, kind, generation, is_counted, is_join in told:
                if is_counted or (is_join and life.is_over):
                    _follow(life, kind, batches.UNKNOWN if is_join else generation)
                incarnations[row] = life.incarnation
        return batch.having(incarnations=incarnations)

    def _are_odd(self, groups: batches.Int32s) -> NDArray[np.bool_]:
        """Which of these are followed event by event; as fast however many groups ended so far."""
        return np.isin(groups, [each for each in np.unique(groups).tolist() if each in self._odd])

    def _life(self, group: int) -> None:
        """Follow a group event by event from now on."""
        self._generations.make_room(group)
        if group not in self._odd:
            self._odd[group] = _Life(generation=int(self._generations.last[group]))


def _follow(life: _Life, kind: int, generation: int) -> None:
    if life.is_over and kind not in _AFTER_DEATH:
        life.incarnation += 1
        life.generation = -1
        life.is_over = False
    if kind == _DEAD:
        life.is_over = True
    elif generation != batches.UNKNOWN and not life.is_over:
        if generation < life.generation:
            life.incarnation += 1
        life.generation = generation
