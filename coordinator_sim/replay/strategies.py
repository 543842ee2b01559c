"""Strategies that share a group's work out: consumer assignors and Connect's protocols.

Each keeps the memory that the members, or the leader, would have from round to round.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from coordinator_sim.assignors.contract import (
    AssignorMember,
    ConnectAssignor,
    ConnectMember,
    ConsumerAssignor,
)
from coordinator_sim.assignors.registry import make_connect_assignor, make_consumer_assignor
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import (
    ConsumerAssignment,
    Subscription,
    is_cooperative,
)
from coordinator_sim.replay.course import Seat
from coordinator_sim.replay.work import GroupWork

Owners = dict[object, str]
"""Partition, connector or task -> key of its owner; without an entry it has none."""


class Result(Struct, frozen=True):
    """What one round of a strategy gives.

    Args:
        owners: Owners once the members have their assignments.
        is_done: Whether nothing is left to hand over; otherwise members rejoin at once.
        delay_ms: Time until the strategy asks for another round; 0 for none.
    """

    owners: Owners
    is_done: bool = True
    delay_ms: int = 0


class ConsumerStrategy:
    """A consumer assignor with the memory of every member.

    Args:
        name: Protocol name of the assignor.
        work: The group's topics.
    """

    def __init__(self, name: str, work: GroupWork) -> None:
        self.name = name
        self.is_cooperative = is_cooperative(name)
        self.is_connect = False
        self.size = work.size
        subscriptions = {frozenset(topics) for topics in work.subscriptions.values()}
        self.is_uniform = len(subscriptions) <= 1
        self._work = work
        self._topics = {topic: ((),) * count for topic, count in work.topics.items()}
        self._all = tuple(work.topics)
        self._assignors: dict[str, ConsumerAssignor] = {}
        self._generation = 0

    def share(self, seats: Sequence[Seat], owners: Owners, now_ms: int) -> Result:
        """Assign all partitions; `owners` are those that members keep meanwhile."""
        del now_ms
        held: dict[str, list[TopicPartition]] = {}
        for item, key in owners.items():
            if isinstance(item, TopicPartition):
                held.setdefault(key, []).append(item)
        self._assignors = {
            seat.member_id: self._assignors.get(seat.member_id) or make_consumer_assignor(self.name)
            for seat in seats
        }
        members = [self._member(seat, held.get(seat.key, [])) for seat in seats]
        leader = self._assignors[seats[0].member_id]
        given = leader.assign(self._topics, members)
        self._generation += 1
        fresh: Owners = {}
        for seat in seats:
            partitions = tuple(given[seat.member_id])
            self._assignors[seat.member_id].on_assignment(
                ConsumerAssignment(partitions=partitions), self._generation
            )
            fresh.update(dict.fromkeys(partitions, seat.key))
        # A cooperative leader leaves out what its owner has to give up first.
        is_done = not self.is_cooperative or not any(
            item not in fresh for item in owners if owners[item] in {seat.key for seat in seats}
        )
        return Result(fresh, is_done)

    def _member(self, seat: Seat, held: list[TopicPartition]) -> AssignorMember:
        topics = self._work.subscriptions.get(seat.client, self._all)
        assignor = self._assignors[seat.member_id]
        subscription = Subscription(
            topics=topics,
            user_data=assignor.subscription_user_data(topics),
            owned_partitions=tuple(sorted(held)) if self.is_cooperative else (),
            generation_id=self._generation,
        )
        return AssignorMember(
            member_id=seat.member_id,
            subscription=subscription,
            group_instance_id=seat.key if seat.is_static else None,
        )


class ConnectStrategy:
    """A Connect protocol with the memory of its leader.

    Args:
        protocol: `eager`, `compatible` or `sessioned`.
        work: The cluster's connectors.
        max_delay_ms: `scheduled.rebalance.max.delay.ms`.
    """

    def __init__(self, protocol: str, work: GroupWork, max_delay_ms: int) -> None:
        self.name = protocol
        self.is_cooperative = is_cooperative(protocol)
        self.is_connect = True
        self.is_uniform = True
        self.size = work.size
        self._configured = work.connectors
        self._max_delay_ms = max_delay_ms
        self._leader = ""
        self._generation = 0
        self._assignor = self._new_assignor()

    def _new_assignor(self) -> ConnectAssignor:
        wire_name = "default" if self.name == "eager" else self.name
        return make_connect_assignor(wire_name, scheduled_rebalance_max_delay_ms=self._max_delay_ms)

    def share(self, seats: Sequence[Seat], owners: Owners, now_ms: int) -> Result:
        """Assign all work; `owners` are those that keep working meanwhile."""
        if seats[0].member_id != self._leader:
            self._leader = seats[0].member_id
            self._assignor = self._new_assignor()
        held: dict[str, list[object]] = {seat.key: [] for seat in seats}
        for item, key in owners.items():
            if key in held:
                held[key].append(item)
        members = [_worker(seat, held[seat.key]) for seat in seats]
        self._generation += 1
        plan = self._assignor.assign(
            configured=self._configured,
            members=members,
            generation_id=self._generation,
            last_completed_generation_id=self._generation - 1,
            now_ms=now_ms,
        )
        keys = {seat.member_id: seat.key for seat in seats}
        fresh = {item: key for item, key in owners.items() if key in held}
        if not self.is_cooperative:
            fresh = {}
        for member_id, load in plan.revoked.items():
            for item in (*load.connectors, *load.tasks):
                if fresh.get(item) == keys[member_id]:
                    del fresh[item]
        for member_id, load in plan.assigned.items():
            fresh.update(dict.fromkeys((*load.connectors, *load.tasks), keys[member_id]))
        return Result(fresh, not plan.revoked, plan.delay_ms)


def _worker(seat: Seat, held: Iterable[object]) -> ConnectMember:
    names = [item for item in held if isinstance(item, str)]
    tasks = [item for item in held if not isinstance(item, str)]
    return ConnectMember(
        member_id=seat.member_id,
        connectors=tuple(names),
        tasks=tuple(tasks),  # type: ignore[arg-type]  # what a worker holds is a name or a task
    )


Strategy = ConsumerStrategy | ConnectStrategy


def fewest_moves(before: Owners, after: Owners, keys: Sequence[str]) -> int:
    """Return the fewest moves from the owners before to any balanced assignment among `keys`.

    Only items that have an owner afterwards count, and all members must be able to take all items.

    Source: definition of `lb_balanced` in `docs/trace-schema.md`.
    """
    counts = dict.fromkeys(keys, 0)
    orphaned = 0
    for item, key in before.items():
        if item not in after:
            continue
        if key in counts:
            counts[key] += 1
        else:
            orphaned += 1
    if not counts:
        return 0
    share, rest = divmod(len(after), len(counts))
    rich = [count for count in counts.values() if count > share]
    return orphaned + sum(rich) - share * len(rich) - min(len(rich), rest)


def moves_between(before: Owners, after: Owners) -> int:
    """Return how many items have another owner; those without one on either side do not count."""
    return sum(item in after and key != after[item] for item, key in before.items())
