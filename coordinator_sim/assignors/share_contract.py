"""Inputs and results of the assignor of share groups (KIP-932); topics are named by their ids.

Partitions of a share group may have several members at once. What an assignor keeps depends on the
order of Java's hash maps, so assignments are such maps.

Source: kafka 4.4, group-coordinator-api/.../assignor/ShareGroupPartitionAssignor.java;
group-coordinator/.../assignor/AssignorHelpers.java.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil

from msgspec import Struct

from coordinator_sim.kafka.orders.iteration_order import (
    JavaHashSet,
    integer_hash,
    java_copy_capacity,
    java_hash_order,
    uuid_hash,
)
from coordinator_sim.kafka.orders.java_map import JavaHashMap, sized_capacity

Held = JavaHashMap[bytes, JavaHashSet[int]]
"""Partitions by topic id."""
Target = tuple[tuple[bytes, tuple[int, ...]], ...]
"""The same as a value, topics and partitions in the order of the maps."""


class ShareMember(Struct, frozen=True, kw_only=True):
    """A member as its coordinator sees it.

    Args:
        member_id: Its id.
        has_topics: Whether it names any topic, existing or not.
        subscribed: Ids of the topics that it names and that exist, in the order of its names.
        assigned: What it shall have so far, in the order of the record that says so.
    """

    member_id: str
    has_topics: bool
    subscribed: tuple[bytes, ...]
    assigned: Target = ()


class ShareTopics(Struct, frozen=True):
    """What may be assigned.

    Args:
        counts: How many partitions a topic has.
        assignable: The partitions whose state has begun to be kept; no others are assigned.
    """

    counts: Mapping[bytes, int]
    assignable: Mapping[bytes, Container[int]]

    def partitions(self, topic_id: bytes) -> list[int]:
        """The partitions of a topic that may be assigned, ascending."""
        allowed = self.assignable.get(topic_id, ())
        return [index for index in range(self.counts[topic_id]) if index in allowed]


def held(target: Target) -> Held:
    """A map with these partitions. Source: Assignment.fromRecord."""
    return JavaHashMap(uuid_hash, ((topic_id, _indexes(each)) for topic_id, each in target))


def copied(assigned: Held) -> Held:
    """A copy down to its sets. Source: AssignorHelpers.deepCopyAssignment."""
    entries = ((topic_id, _indexes(tuple(each))) for topic_id, each in assigned.items())
    return JavaHashMap(uuid_hash, entries, capacity=sized_capacity(len(assigned)))


def as_target(assigned: Held) -> Target:
    """The partitions of a map, in its order."""
    return tuple((topic_id, tuple(each)) for topic_id, each in assigned.items())


def new_indexes() -> JavaHashSet[int]:
    """An empty set of partitions, or of members by their place."""
    return JavaHashSet(integer_hash)


def _indexes(partitions: Sequence[int]) -> JavaHashSet[int]:
    return JavaHashSet(integer_hash, partitions, capacity=java_copy_capacity(len(partitions)))


def in_map_order(members: Iterable[ShareMember]) -> list[ShareMember]:
    """The members in the order of a HashMap filled in this order."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in java_hash_order(by_id)]


def fair_counts(member_count: int, sharing: int, partition_count: int) -> list[int]:
    """How many partitions each of some members should have, in their order.

    Args:
        member_count: At least 1.
        sharing: How many members a partition should have.
        partition_count: How many there are.
    """
    # Java computes in floating point and rounds up, which decides who has one more.
    precise = sharing * partition_count / member_count
    ceilings = [ceil(precise * place) for place in range(member_count + 1)]
    return [after - before for before, after in pairwise(ceilings)]


def wanted_sharing(member_count: int, partition_count: int) -> int:
    """How many members a partition should have, rounded up; 0 without partitions."""
    return -(-member_count // partition_count) if partition_count else 0


class Sharing:
    """The members that partitions have while an assignment is made.

    What members are left with are copies of what they had, made when first changed.

    Args:
        old: What each member has, in their order.

    Attributes:
        new: What those members have that were changed, by their place.
    """

    def __init__(self, old: Sequence[Held]) -> None:
        self._old = old
        self.new: dict[int, Held] = {}

    def changeable(self, place: int) -> Held:
        """What a member has, to be changed."""
        if place not in self.new:
            self.new[place] = copied(self._old[place])
        return self.new[place]

    def give(self, place: int, topic_id: bytes, partition: int) -> None:
        """Assign a partition to a member."""
        self.changeable(place).compute(topic_id, new_indexes).add(partition)

    def targets(self, members: Sequence[ShareMember]) -> dict[str, Target]:
        """What each member shall have."""
        return {
            member.member_id: as_target(self.new.get(place, self._old[place]))
            for place, member in enumerate(members)
        }


class Dealing:
    """Members take turns to be given what is missing, until each has enough.

    Args:
        unfilled: The places of members with too little, in the order of their set.
    """

    def __init__(self, unfilled: Iterable[int]) -> None:
        self._unfilled = dict.fromkeys(unfilled)
        self._turns = iter(list(self._unfilled))
        self._has_given = False

    @property
    def is_over(self) -> bool:
        """Whether every member has enough."""
        return not self._unfilled

    def next_place(self) -> int | None:
        """The next member's index; None if all are full, or if a whole round gave nothing."""
        place = next(self._turns, None)
        if place is None and self._has_given:
            self._turns = iter(list(self._unfilled))
            self._has_given = False
            place = next(self._turns, None)
        return place

    def given(self, place: int, *, has_enough: bool) -> None:
        """The member whose turn it was got something."""
        self._has_given = True
        if has_enough:
            del self._unfilled[place]
