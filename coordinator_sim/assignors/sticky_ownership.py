"""Previous owners as the sticky assignors see them, and the racks they consider.

Source: kafka trunk, clients/.../consumer/internals/AbstractStickyAssignor.java
(allSubscriptionsEqual, RackInfo).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_sim.assignors.contract import AssignorMember
from coordinator_sim.assignors.subscriptions import is_rack_aware, member_racks
from coordinator_sim.assignors.user_data import DEFAULT_GENERATION, MemberData
from coordinator_sim.kafka.resources import TopicPartition

Topics = Mapping[str, Sequence[tuple[str, ...]]]


@dataclass(slots=True)
class Ownership:
    """Previous owners after conflicting claims are settled.

    Attributes:
        owned: Member id -> its valid partitions in list order; keys in map order.
        multiple_owners: Partitions that two members claimed in one generation.
        all_equal: Whether all members subscribe to the same topics.
        max_generation: The highest generation seen, now or before.
    """

    max_generation: int
    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    multiple_owners: dict[TopicPartition, None] = field(default_factory=dict)
    all_equal: bool = True


def settle_ownership(
    topics: Topics,
    members: Sequence[AssignorMember],
    member_data: Mapping[str, MemberData],
    max_generation: int,
) -> Ownership:
    """Settle which member owned which partitions.

    Args:
        topics: The subscribed topics that exist.
        members: Members in map order.
        member_data: Member id -> partitions it claims to have owned.
        max_generation: The highest generation of earlier assignments.

    Source: AbstractStickyAssignor.allSubscriptionsEqual.
    """
    # QUIRK: the generation of the earlier claimer is read from its subscription even where the
    # assignor takes it from user data.
    # QUIRK: a member that subscribes to nothing and comes before all others in map order does not
    # make the subscriptions unequal, and so receives partitions.
    result = Ownership(max_generation)
    subscribed: frozenset[str] = frozenset()
    claimers: dict[TopicPartition, AssignorMember] = {}
    for member in members:
        wanted = member.subscription.topics
        if not subscribed:
            subscribed = frozenset(wanted)
        elif len(wanted) != len(subscribed) or not subscribed.issuperset(wanted):
            result.all_equal = False
        data = member_data[member.member_id]
        generation_id = DEFAULT_GENERATION if data.generation_id is None else data.generation_id
        result.max_generation = max(result.max_generation, generation_id)
        result.owned[member.member_id] = []
        for partition in data.partitions:
            if partition.topic in topics:
                _claim(result, claimers, member, partition, generation_id)
    return result


def _claim(
    result: Ownership,
    claimers: dict[TopicPartition, AssignorMember],
    member: AssignorMember,
    partition: TopicPartition,
    generation_id: int,
) -> None:
    earlier = claimers.get(partition)
    if earlier is not None:
        earlier_generation_id = max(earlier.subscription.generation_id, DEFAULT_GENERATION)
        if generation_id < earlier_generation_id:
            return
        earlier_owned = result.owned[earlier.member_id]
        if partition in earlier_owned:
            earlier_owned.remove(partition)
        if generation_id == earlier_generation_id:
            result.multiple_owners[partition] = None
            claimers[partition] = member
            return
    result.owned[member.member_id].append(partition)
    claimers[partition] = member


class Racks:
    """Racks of members and partitions, empty unless racks can matter.

    Source: AbstractStickyAssignor.RackInfo.
    """

    def __init__(self, topics: Topics, members: Sequence[AssignorMember]) -> None:
        rack_of = member_racks(members)
        racks: dict[TopicPartition, frozenset[str]] = {}
        if rack_of:
            racks = {
                TopicPartition(topic, number): frozenset(replica_racks)
                for topic, partitions in topics.items()
                for number, replica_racks in enumerate(partitions)
            }
        members_by_rack: dict[str, int] = {}
        for rack in rack_of.values():
            members_by_rack[rack] = members_by_rack.get(rack, 0) + 1
        # The order by local members holds as soon as any member has a rack.
        self._local_members = {
            partition: sum(members_by_rack.get(rack, 0) for rack in own)
            for partition, own in racks.items()
        }
        aware = bool(rack_of) and is_rack_aware(rack_of.values(), list(racks.values()))
        self.rack_of = rack_of if aware else {}
        self._partition_racks = racks if aware else {}

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack and no replica of the partition is in it."""
        rack = self.rack_of.get(member_id)
        return rack is not None and rack not in self._partition_racks.get(partition, ())

    def match(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack and a replica of the partition is in it."""
        rack = self.rack_of.get(member_id)
        return rack is not None and rack in self._partition_racks.get(partition, ())

    def by_local_members(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Partitions with the fewest members in their racks first; stable."""
        if not self._local_members:
            return partitions
        return sorted(partitions, key=lambda tp: self._local_members.get(tp, 0))

    def next_match(
        self, partition: TopicPartition, member_ids: Sequence[str], first_index: int
    ) -> int:
        """Index of the first matching member, circularly from `first_index`; -1 if none."""
        count = len(member_ids)
        for step in range(count):
            index = (first_index + step) % count
            if self.match(member_ids[index], partition):
                return index
        return -1


def without_sorted(
    everything: Sequence[TopicPartition], assigned: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """The partitions not assigned; both lists in the same order.

    Source: AbstractStickyAssignor, both getUnassignedPartitions.
    """
    # QUIRK: one walk over both lists, as in Java: an assigned partition beyond the topic's count
    # stops the walk, and later assigned partitions come out as unassigned.
    rest = iter(assigned)
    current = next(rest, None)
    unassigned = []
    for partition in everything:
        if partition == current:
            current = next(rest, None)
        else:
            unassigned.append(partition)
    return unassigned
