"""The assignor `simple` of share groups, and its way where all members subscribe to the same.

Every partition goes to about as many members as every other, every member has about as many as
every other; what is as it should be stays.

The assignor `simple` of share groups where members subscribe to different topics.

Topic by topic, among those that subscribe to it.

QUIRK: a topic that nobody subscribes to any more stays in the target of who had it; what a member
is given of a target is filtered by its subscription.

Source: kafka 4.2 to 4.4, group-coordinator/.../assignor/SimpleAssignor.java and
SimpleHomogeneousAssignmentBuilder.java; kafka 4.2 to 4.4,
group-coordinator/.../assignor/SimpleHeterogeneousAssignmentBuilder.java.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_sim.assignors import share_contract
from coordinator_sim.kafka.orders.iteration_order import JavaHashSet, integer_hash, uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap, roomy_capacity

_Indexes = JavaHashMap[int, JavaHashSet[int]]


def assign_mixed(
    members: Sequence[share_contract.ShareMember], topics: share_contract.ShareTopics
) -> dict[str, share_contract.Target]:
    """Each member's target, by id; empty when no subscribed topic exists.

    Args:
        members: In the order of their map.
        topics: Topics and partitions that may be assigned.
    """
    subscribed = JavaHashSet(uuid_hash)
    places: dict[bytes, list[int]] = {}
    for place, member in enumerate(members):
        for topic_id in member.subscribed:
            subscribed.add(topic_id)
            places.setdefault(topic_id, []).append(place)
    if not len(subscribed):
        return {}
    old = [share_contract.held(member.assigned) for member in members]
    work = share_contract.Sharing(old)
    for topic_id in subscribed:
        _OfTopic(topic_id, topics.partitions(topic_id), places[topic_id], old, work).run()
    return work.targets(members)


class _OfTopic:
    """The assignment of one topic."""

    __slots__ = (
        "_counts",
        "_members",
        "_of_member",
        "_of_partition",
        "_old",
        "_sharing",
        "_topic_id",
        "_wanted",
        "_work",
    )

    def __init__(
        self,
        topic_id: bytes,
        wanted: list[int],
        members: list[int],
        old: Sequence[share_contract.Held],
        work: share_contract.Sharing,
    ) -> None:
        self._topic_id = topic_id
        self._wanted = wanted
        self._members = members
        self._old = old
        self._work = work
        self._sharing = share_contract.wanted_sharing(len(members), len(wanted))
        fair = share_contract.fair_counts(len(members), self._sharing, len(wanted))
        self._counts = dict(zip(members, fair, strict=True))
        self._of_partition: _Indexes = JavaHashMap(
            integer_hash, capacity=roomy_capacity(len(wanted))
        )
        self._of_member: _Indexes = JavaHashMap(integer_hash, capacity=roomy_capacity(len(members)))

    def run(self) -> None:
        """Take away what members have too much of or share too widely; then deal the rest."""
        for place, old in enumerate(self._old):
            for index in old.get(self._topic_id) or ():
                self._of_partition.compute(index, share_contract.new_indexes).add(place)
                self._of_member.compute(place, share_contract.new_indexes).add(index)
        for place, indexes in self._of_member.items():
            self._relieve(place, indexes)
        for index, places in self._of_partition.items():
            self._thin_out(index, places)
        for index in self._wanted:
            self._of_partition.compute(index, self._new_sharers)
        self._deal()

    def _new_sharers(self) -> JavaHashSet[int]:
        return JavaHashSet(integer_hash, capacity=roomy_capacity(len(self._members)))

    def _relieve(self, place: int, indexes: JavaHashSet[int]) -> None:
        """Source: revokeOverfilledMembers."""
        surplus = len(indexes) - self._counts.get(place, 0)
        for index in list(indexes)[: max(surplus, 0)]:
            shared = self._of_partition.get(index)
            if shared is not None:
                shared.discard(place)
            indexes.discard(index)
            self._take(place, index)

    def _thin_out(self, index: int, places: JavaHashSet[int]) -> None:
        """Source: revokeOversharedPartitions."""
        surplus = len(places) - self._sharing
        if surplus <= 0:
            return
        for place in list(places):
            if self._take(place, index):
                surplus -= 1
                places.discard(place)
                mine = self._of_member.get(place)
                if mine is not None:
                    mine.discard(index)
            if surplus <= 0:
                return

    def _take(self, place: int, index: int) -> bool:
        """Take a partition from a member; whether it had it."""
        partitions = self._work.changeable(place).get(self._topic_id)
        if partitions is None or index not in partitions:
            return False
        partitions.discard(index)
        return True

    def _deal(self) -> None:
        """Source: assignRemainingPartitions."""
        unfilled = JavaHashSet(integer_hash, capacity=roomy_capacity(len(self._old)))
        for member in self._members:
            if len(self._of_member.get(member) or ()) < self._counts[member]:
                unfilled.add(member)
        dealing = share_contract.Dealing(unfilled)
        for index, places in self._of_partition.items():
            missing = self._sharing - len(places)
            while missing > 0 and (place := dealing.next_place()) is not None:
                if place in places:
                    continue
                self._work.give(place, self._topic_id, index)
                mine = self._of_member.compute(place, share_contract.new_indexes)
                mine.add(index)
                missing -= 1
                dealing.given(place, has_enough=len(mine) >= self._counts[place])
            if dealing.is_over:
                return


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
