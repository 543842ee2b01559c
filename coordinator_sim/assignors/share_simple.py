"""The assignor `simple` of share groups, and its way where all members subscribe to the same.

Every partition goes to about as many members as every other, every member has about as many as
every other; what is as it should be stays.

Source: kafka 4.2 to 4.4, group-coordinator/.../assignor/SimpleAssignor.java and
SimpleHomogeneousAssignmentBuilder.java.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.assignors import share_contract
from coordinator_sim.assignors.share_simple_mixed import assign_mixed
from coordinator_sim.kafka.orders.iteration_order import JavaHashSet, integer_hash, uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap, roomy_capacity

SIMPLE_NAME: Final = "simple"
"""Name of the assignor in `group.share.assignors`."""

_Place = tuple[bytes, int]
"""A partition of a topic."""


def assign_simple(
    members: Iterable[share_contract.ShareMember],
    topics: share_contract.ShareTopics,
    *,
    is_homogeneous: bool,
) -> dict[str, share_contract.Target]:
    """What each member of a share group shall have.

    Args:
        members: In the order in which their coordinator lists them.
        topics: What may be assigned.
        is_homogeneous: Whether all subscribe to the same topics.

    Returns:
        Members that are not in it shall have nothing.
    """
    ordered = share_contract.in_map_order(members)
    if not ordered:
        return {}
    if is_homogeneous:
        return _Alike(ordered, topics).run() if ordered[0].has_topics else {}
    return assign_mixed(ordered, topics)


def _place_hash(place: _Place) -> int:
    """Source: TopicIdPartition.hashCode."""
    return 31 * uuid_hash(place[0]) + place[1]


def _new_places() -> JavaHashSet[_Place]:
    return JavaHashSet(_place_hash)


class _Alike:
    """Computes an assignment of a group whose members all subscribe to equal topics."""

    __slots__ = (
        "_counts",
        "_members",
        "_of_member",
        "_of_place",
        "_old",
        "_overfilled",
        "_sharing",
        "_subscribed",
        "_unfilled",
        "_wanted",
        "_work",
    )

    def __init__(
        self, members: list[share_contract.ShareMember], topics: share_contract.ShareTopics
    ) -> None:
        count = len(members)
        self._members = members
        self._subscribed = frozenset(members[0].subscribed)
        self._wanted: list[_Place] = [
            (topic_id, index)
            for topic_id in members[0].subscribed
            for index in topics.partitions(topic_id)
        ]
        self._sharing = share_contract.wanted_sharing(count, len(self._wanted))
        self._counts = share_contract.fair_counts(count, self._sharing, len(self._wanted))
        self._old = [share_contract.held(member.assigned) for member in members]
        self._work = share_contract.Sharing(self._old)
        room = roomy_capacity(count)
        self._of_place: JavaHashMap[_Place, JavaHashSet[int]] = JavaHashMap(
            _place_hash, capacity=roomy_capacity(len(self._wanted))
        )
        self._of_member: dict[int, JavaHashSet[_Place]] = {}
        self._unfilled = JavaHashSet(integer_hash, capacity=room)
        self._overfilled = JavaHashSet(integer_hash, capacity=room)

    def run(self) -> dict[str, share_contract.Target]:
        """Take away what nobody should have, or has too often; then deal the rest."""
        for place, old in enumerate(self._old):
            self._look_at(place, old)
        for place in self._overfilled:
            self._relieve(place)
        for partition, places in self._of_place.items():
            self._thin_out(partition, places)
        for partition in self._wanted:
            self._of_place.compute(partition, share_contract.new_indexes)
        self._deal()
        return self._work.targets(self._members)

    def _look_at(self, place: int, old: share_contract.Held) -> None:
        """Count what a member has; topics that are not subscribed to are taken away.

        Source: revokeUnassignablePartitions.
        """
        count = 0
        for topic_id, partitions in old.items():
            if topic_id not in self._subscribed:
                self._work.changeable(place).remove(topic_id)
                continue
            for index in partitions:
                count += 1
                self._of_place.compute((topic_id, index), share_contract.new_indexes).add(place)
                self._of_member.setdefault(place, _new_places()).add((topic_id, index))
                if count >= self._counts[place]:
                    self._work.changeable(place)
        if count < self._counts[place]:
            self._unfilled.add(place)
        elif count > self._counts[place]:
            self._overfilled.add(place)

    def _relieve(self, place: int) -> None:
        """Take away what a member has too much. Source: revokeOverfilledMembers."""
        mine = self._of_member[place]
        assigned = self._work.changeable(place)
        for partition in list(mine)[: max(len(mine) - self._counts[place], 0)]:
            _take(assigned, partition)
            shared = self._of_place.get(partition)
            if shared is not None:
                shared.discard(place)
            mine.discard(partition)

    def _thin_out(self, partition: _Place, places: JavaHashSet[int]) -> None:
        """Take a partition from members that are too many. Source: revokeOversharedPartitions."""
        surplus = len(places) - self._sharing
        if surplus <= 0:
            return
        for place in list(places):
            if _take(self._work.changeable(place), partition):
                surplus -= 1
                places.discard(place)
                self._of_member[place].discard(partition)
                self._unfilled.add(place)
            if surplus <= 0:
                return

    def _deal(self) -> None:
        """Give partitions to members with too little. Source: assignRemainingPartitions."""
        dealing = share_contract.Dealing(self._unfilled)
        if dealing.is_over:
            return
        for partition, places in self._of_place.items():
            missing = self._sharing - len(places)
            while missing > 0 and (place := dealing.next_place()) is not None:
                if place in places:
                    continue
                self._work.give(place, *partition)
                mine = self._of_member.setdefault(place, _new_places())
                mine.add(partition)
                missing -= 1
                dealing.given(place, has_enough=len(mine) >= self._counts[place])
            if dealing.is_over:
                return


def _take(assigned: share_contract.Held, partition: _Place) -> bool:
    """Take a partition away; whether it was there."""
    partitions = assigned.get(partition[0])
    if partitions is None or partition[1] not in partitions:
        return False
    partitions.discard(partition[1])
    return True
