"""The assignor lab: what an assignor moves, how it balances, crosses racks, and what it costs.

A group of equal members is assigned afresh; then one joins, one leaves, and some are restarted one
by one. Everything but the CPU time is the same each time. Definitions are those of the reports:
a partition is moved if its owner before and its owner after differ; the fewest moves are those
that any balanced assignment needs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.assignors.contract import AssignorMember, ConsumerAssignor, TopicRacks
from coordinator_sim.assignors.foreign.contract import AssignorFault
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import Subscription, is_cooperative

MAX_MEMBERS: Final = 5_000
MAX_PARTITIONS: Final = 200_000
_RESTARTED: Final = 10
"""Members of the deploy: more would tell the same, and take long in large groups."""
_REPLICAS: Final = 2
_MOST_ROUNDS: Final = 5
"""Rebalances after which a cooperative handover that does not end is a fault of the assignor."""

Owned = dict[str, list[TopicPartition]]
Clock = Callable[[], float]


class Size(Struct, frozen=True, kw_only=True):
    """A group: equal members that read all topics.

    Args:
        partitions: Of all topics together.
        racks: Racks that members and replicas are spread over; 0 for none.
    """

    members: int
    topics: int
    partitions: int
    racks: int


class StoryResult(Struct, frozen=True, kw_only=True):
    """What one story did to a group, over all its rebalances.

    Args:
        story: `join`, `leave` or `deploy`.
        assignments: Assignments computed; a cooperative handover takes more than one.
        moved: Partitions with another owner than before.
        fewest: Of these, how many any balanced assignment needs.
        excess: Moves from members that stayed, beyond the fewest.
        stickiness: Of what members that stayed owned, the share that they kept.
        stopped: Partitions taken from members that stayed, for good or only for the rebalance.
        spread: The largest spread after a step: fullest member less emptiest.
    """

    story: str
    assignments: int
    moved: int
    fewest: int
    excess: int
    stickiness: float
    stopped: int
    spread: int


class LabResult(Struct, frozen=True, kw_only=True):
    """One assignor at one size.

    Args:
        assignor: Its name.
        spread: Partitions of the fullest member less those of the emptiest, at first.
        crossing: Share of partitions whose owner is in none of their racks; None without racks.
        fresh_ms: CPU time of a fresh assignment, in milliseconds.
        join_ms: CPU time of the assignment after a member joined.
        stories: What it did when members came and went.
        failed: Properties that do not hold, each with what breaks it.
    """

    assignor: str
    size: Size
    spread: int
    crossing: float | None
    fresh_ms: float
    join_ms: float
    stories: tuple[StoryResult, ...]
    failed: dict[str, str]


PROPERTIES: Final = {
    "owned once": "every partition has an owner",
    "balanced": "no member has two partitions more than another",
    "repeatable": "the same question gets the same answer",
    "sticky": "nothing moves beyond the fewest when a member joins or leaves",
    "mixed": "every partition has an owner where members subscribe to half of the topics each",
}
"""What is checked; by the answers' form, none has two owners, or one that may not have it."""


def examine(name: str, size: Size, clock: Clock) -> LabResult:
    """Try an assignor at one size.

    Args:
        name: Name of a consumer assignor.
        size: The group.
        clock: CPU time used so far, in seconds.

    Raises:
        ConfigError: the name is unknown, or the size outside its bounds.
        AssignorFault: the assignor is the user's own, and its answer no assignment.
    """
    _check(size)
    lab = _Lab(name, size)
    ids = lab.first_ids()
    started = clock()
    fresh = lab.assign(ids, {})
    after_fresh = clock()
    owned, _ = lab.settled(ids, {})
    joined = [*ids, "joiner"]
    before_join = clock()
    lab.assign(joined, owned)
    after_join = clock()
    stories = (
        lab.told("join", owned, [joined]),
        lab.told("leave", owned, [_without(ids, len(ids) // 2)]),
        lab.told("deploy", owned, list(_deploy(ids))),
    )
    loads = [len(own) for own in owned.values()]
    return LabResult(
        assignor=name,
        size=size,
        spread=max(loads) - min(loads),
        crossing=lab.crossing(owned),
        fresh_ms=round((after_fresh - started) * 1000, 3),
        join_ms=round((after_join - before_join) * 1000, 3),
        stories=stories,
        failed=dict(_failures(lab, ids, fresh, owned, stories)),
    )


def _check(size: Size) -> None:
    for what, value, low, high in (
        ("--members", size.members, 2, MAX_MEMBERS),
        ("--partitions", size.partitions, size.topics, MAX_PARTITIONS),
        ("--topics", size.topics, 2, MAX_PARTITIONS),
        ("--racks", size.racks, 0, 100),
    ):
        if not low <= value <= high:
            raise ConfigError(f"{what} {value}: must be from {low} to {high}")


def _without(ids: Sequence[str], index: int) -> list[str]:
    return [*ids[:index], *ids[index + 1 :]]


def _deploy(ids: Sequence[str]) -> Iterator[list[str]]:
    """Yield the members after each step of a deploy: one is gone, then it is back as another."""
    now = list(ids)
    for index in range(min(len(ids), _RESTARTED)):
        yield _without(now, index)
        now[index] = f"restarted-{index:04}"
        yield list(now)


class _Lab:
    """A group of one size under one assignor."""

    def __init__(self, name: str, size: Size) -> None:
        self.name = name
        self.size = size
        self._assignor: ConsumerAssignor = make_consumer_assignor(name)
        least, more = divmod(size.partitions, size.topics)
        self.topics: TopicRacks = {
            f"topic-{n:04}": [self._racks_of(p) for p in range(least + (n < more))]
            for n in range(size.topics)
        }
        self.every = [
            TopicPartition(topic, n)
            for topic, racks in self.topics.items()
            for n in range(len(racks))
        ]
        self._number: dict[str, int] = {}

    def first_ids(self) -> list[str]:
        return [f"member-{n:04}" for n in range(self.size.members)]

    def _racks_of(self, partition: int) -> tuple[str, ...]:
        racks = self.size.racks
        return tuple(f"rack-{(partition + n) % racks}" for n in range(min(_REPLICAS, racks)))

    def _rack_of(self, member_id: str) -> str | None:
        number = self._number.setdefault(member_id, len(self._number))
        return f"rack-{number % self.size.racks}" if self.size.racks else None

    def assign(
        self,
        ids: Sequence[str],
        owned: Mapping[str, Sequence[TopicPartition]],
        *,
        mixed: bool = False,
    ) -> Owned:
        """Assign once, members in the order of their ids."""
        members = []
        for index, member_id in enumerate(ids):
            own = tuple(owned.get(member_id, ()))
            topics = [t for n, t in enumerate(self.topics) if not mixed or (n + index) % 2 == 0]
            user_data = encode_sticky_user_data(own, 1) if own and self.name == "sticky" else None
            members.append(
                AssignorMember(
                    member_id=member_id,
                    subscription=Subscription(
                        topics=tuple(topics),
                        user_data=user_data,
                        owned_partitions=own,
                        generation_id=1 if own else -1,
                        rack_id=self._rack_of(member_id),
                    ),
                )
            )
        return self._assignor.assign(self.topics, members)

    def settled(
        self, ids: Sequence[str], owned: Mapping[str, Sequence[TopicPartition]]
    ) -> tuple[Owned, int]:
        """Assign until nothing is handed over any more; return the number of assignments too."""
        for rounds in range(1, _MOST_ROUNDS + 1):
            after = self.assign(ids, owned)
            given = sum(map(len, after.values()))
            if not is_cooperative(self.name) or given == len(self.every) or after == owned:
                return after, rounds
            owned = after
        return after, _MOST_ROUNDS

    def told(self, story: str, owned: Owned, steps: Sequence[Sequence[str]]) -> StoryResult:
        """Go through the members of each step; return what that did."""
        moved = fewest = excess = kept = could = stopped = assignments = spread = 0
        for ids in steps:
            after, rounds = self.settled(ids, owned)
            assignments += rounds
            step = _moves(owned, after, ids)
            orphaned = step["moved"] - step["avoidable"]
            needed = fewest_moves(owned, ids, len(self.every))
            moved += step["moved"]
            fewest += orphaned + needed
            excess += max(0, step["avoidable"] - needed)
            kept += step["kept"]
            could += step["could"]
            stopped += step["avoidable"] if is_cooperative(self.name) else step["could"]
            loads = [len(own) for own in after.values()]
            spread = max(spread, max(loads) - min(loads))
            owned = after
        return StoryResult(
            story=story,
            assignments=assignments,
            moved=moved,
            fewest=fewest,
            excess=excess,
            stickiness=round(kept / could, 4) if could else 1.0,
            stopped=stopped,
            spread=spread,
        )

    def crossing(self, owned: Owned) -> float | None:
        """The share of partitions whose owner is in none of the racks of their replicas."""
        if not self.size.racks:
            return None
        far = sum(
            self._rack_of(member_id) not in self.topics[tp.topic][tp.partition]
            for member_id, own in owned.items()
            for tp in own
        )
        return round(far / len(self.every), 4)


def _moves(before: Owned, after: Owned, ids: Sequence[str]) -> Counter[str]:
    """Count moved partitions, those whose old owner stayed, and what those that stayed kept."""
    here = dict.fromkeys(ids)
    owner = {tp: member_id for member_id, own in after.items() for tp in own}
    count: Counter[str] = Counter()
    for member_id, own in before.items():
        for tp in own:
            if member_id in here:
                count["could"] += 1
                count["kept"] += owner.get(tp) == member_id
            if owner.get(tp, member_id) != member_id:
                count["moved"] += 1
                count["avoidable"] += member_id in here
    return count


def fewest_moves(owned: Owned, ids: Sequence[str], partitions: int) -> int:
    """Return how many partitions members that stay must give up in any balanced assignment.

    The largest holders keep one more where the partitions cannot be divided evenly.
    """
    floor, more = divmod(partitions, len(ids))
    loads = sorted((len(owned.get(member_id, ())) for member_id in ids), reverse=True)
    return sum(max(0, load - floor - (rank < more)) for rank, load in enumerate(loads))


def _failures(
    lab: _Lab, ids: Sequence[str], fresh: Owned, owned: Owned, stories: Sequence[StoryResult]
) -> Iterator[tuple[str, str]]:
    """Yield the properties that do not hold, each with what shows it."""
    missing = _unowned(lab.every, owned)
    if missing:
        yield "owned once", missing
    loads = {member_id: len(own) for member_id, own in owned.items()}
    fullest, emptiest = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
    uneven = next((told for told in stories if told.spread > 1), None)
    if loads[fullest] - loads[emptiest] > 1:
        yield "balanced", f"{fullest} has {loads[fullest]}, {emptiest} has {loads[emptiest]}"
    elif uneven is not None:
        yield "balanced", f"{uneven.story}: one member has {uneven.spread} more than another"
    if lab.assign(ids, {}) != fresh:
        yield "repeatable", "two fresh assignments of one group differ"
    for told in stories[:2]:
        if told.excess:
            yield "sticky", f"{told.story}: {told.moved} moves where {told.fewest} do"
            break
    try:
        missing = _unowned(lab.every, lab.assign(ids, {}, mixed=True))
    except AssignorFault as error:
        missing = str(error)
    if missing:
        yield "mixed", missing


def _unowned(every: Sequence[TopicPartition], owned: Owned) -> str:
    given = {tp: member_id for member_id, own in owned.items() for tp in own}
    missing = [tp for tp in every if tp not in given]
    if not missing:
        return ""
    return f"{missing[0].topic}-{missing[0].partition} has no owner, of {len(missing)} such"
