"""The sticky assignment when members subscribe to different topics.

The algorithm keeps what can be kept, assigns the rest to the least loaded, then moves partitions
while that improves the balance. Java checks before every partition whether all is balanced; the
answer is remembered here until a partition moves.

Source: kafka trunk, AbstractStickyAssignor.GeneralAssignmentBuilder.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import AssignmentFailed, AssignorMember
from coordinator_sim.assignors.partition_movements import PartitionMovements
from coordinator_sim.assignors.sticky_ownership import Ownership, Racks, Topics, without_sorted
from coordinator_sim.assignors.subscriptions import topic_partitions
from coordinator_sim.assignors.user_data import DEFAULT_GENERATION, MemberData
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key
from coordinator_sim.kafka.resources import TopicPartition

_Assignment = dict[str, list[TopicPartition]]


class _LoadOrder:
    """Member ids by (number of partitions, id), kept sorted while the numbers change.

    Source: AbstractStickyAssignor.SubscriptionComparator over a TreeSet.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, bytes, str]] = []

    def add(self, member_id: str, count: int) -> None:
        insort(self._entries, (count, java_string_key(member_id), member_id))

    def remove(self, member_id: str, count: int) -> None:
        entry = (count, java_string_key(member_id), member_id)
        index = bisect_left(self._entries, entry)
        if index < len(self._entries) and self._entries[index] == entry:
            del self._entries[index]

    def member_ids(self) -> list[str]:
        return [member_id for _, _, member_id in self._entries]

    def first_subscribed(self, subscribers: Mapping[str, object]) -> str | None:
        for _, _, member_id in self._entries:
            if member_id in subscribers:
                return member_id
        return None

    def counts(self) -> tuple[int, int]:
        """Return the least and the greatest count."""
        if not self._entries:
            raise AssignmentFailed(
                "no member can take part in balancing (Java: NoSuchElementException)"
            )
        return self._entries[0][0], self._entries[-1][0]


class GeneralAssignment:
    """One run of the algorithm.

    Attributes:
        assignment: Member id -> partitions in list order; while balancing, only of the members that
            take part in it.
    """

    def __init__(
        self,
        topics: Topics,
        racks: Racks,
        ownership: Ownership,
        members: Sequence[AssignorMember],
        member_data: Mapping[str, MemberData],
    ) -> None:
        self.assignment: _Assignment = ownership.owned
        self._topics = topics
        self._racks = racks
        self._previous = _previous_owners(member_data, ownership.max_generation)
        self._potential: dict[str, dict[str, None]] = {topic: {} for topic in topics}
        self._wanted: dict[str, list[str]] = {}
        for member in members:
            known = [topic for topic in member.subscription.topics if topic in topics]
            self._wanted[member.member_id] = known
            for topic in known:
                self._potential[topic][member.member_id] = None
        self._max_size = {m: _max_size(wanted, topics) for m, wanted in self._wanted.items()}
        self._owner = {tp: m for m, owned in self.assignment.items() for tp in owned}
        self._topic_rank = {
            topic: rank
            for rank, topic in enumerate(
                sorted(topics, key=lambda t: (len(self._potential[t]), java_string_key(t)))
            )
        }
        self._order = _LoadOrder()
        self._movements = PartitionMovements()
        self._revocation_required = False
        self._balanced: bool | None = None
        self._sound: bool | None = None

    def run(self) -> None:
        """Fill `assignment`, keys in map order.

        Raises:
            AssignmentFailed: the owned partitions contradict each other in a way that ends in an
                exception in Java too.

        Source: GeneralAssignmentBuilder.build and balance.
        """
        everything = topic_partitions(self._topic_rank, self._topics)
        kept = self._keep_owned()
        kept.sort(key=lambda tp: (self._topic_rank[tp.topic], tp.partition))
        unassigned = without_sorted(everything, kept) if kept else everything
        for member_id, partitions in self.assignment.items():
            self._order.add(member_id, len(partitions))
        initializing = self._order.counts()[1] == 0
        self._hand_out(unassigned)
        contested = {topic for topic, members in self._potential.items() if len(members) > 1}
        left_out = self._leave_out_settled(contested)
        self._rebalance(
            [tp for tp in unassigned if tp.topic in contested],
            [tp for tp in everything if tp.topic in contested],
            initializing=initializing,
        )
        # Excluded members are put back behind the others of their bucket.
        self.assignment.update(left_out)
        self.assignment = {
            member_id: self.assignment[member_id] for member_id in java_hash_order(self.assignment)
        }

    def _keep_owned(self) -> list[TopicPartition]:
        """Keep owned partitions. Source: GeneralAssignmentBuilder.assignOwnedPartitions."""
        kept: list[TopicPartition] = []
        for member_id, owned in self.assignment.items():
            wanted = frozenset(self._wanted[member_id])
            valid = [
                partition
                for partition in owned
                if partition.topic in wanted and not self._racks.mismatch(member_id, partition)
            ]
            self._revocation_required |= len(valid) < len(owned)
            self.assignment[member_id] = valid
            kept += valid
        return kept

    def _hand_out(self, unassigned: Sequence[TopicPartition]) -> None:
        """Assign each partition to the least loaded subscriber, in its racks first.

        Source: GeneralAssignmentBuilder.maybeAssign.
        """
        left = unassigned
        if self._racks.rack_of:
            left = []
            for partition in unassigned:
                subscribers = {
                    member_id: None
                    for member_id in self._potential[partition.topic]
                    if not self._racks.mismatch(member_id, partition)
                }
                if not self._give_to_first(partition, subscribers):
                    left.append(partition)
        for partition in left:
            self._give_to_first(partition, self._potential[partition.topic])

    def _give_to_first(self, partition: TopicPartition, subscribers: Mapping[str, None]) -> bool:
        member_id = self._order.first_subscribed(subscribers) if subscribers else None
        if member_id is None:
            return False
        held = self.assignment[member_id]
        self._order.remove(member_id, len(held))
        held.append(partition)
        self._order.add(member_id, len(held))
        self._owner[partition] = member_id
        return True

    def _leave_out_settled(self, contested: set[str]) -> _Assignment:
        """Remove the members that hold all they can get and share no topic.

        Source: GeneralAssignmentBuilder.canConsumerParticipateInReassignment.
        """
        settled: _Assignment = {}
        for member_id, partitions in self.assignment.items():
            if len(partitions) < self._max_size[member_id]:
                continue
            if not any(partition.topic in contested for partition in partitions):
                settled[member_id] = partitions
        for member_id, partitions in settled.items():
            self._order.remove(member_id, len(partitions))
            del self.assignment[member_id]
        return settled

    def _rebalance(
        self,
        unassigned: Sequence[TopicPartition],
        everything: Sequence[TopicPartition],
        *,
        initializing: bool,
    ) -> None:
        before = {member_id: list(held) for member_id, held in self.assignment.items()}
        if not self._revocation_required:
            self._perform(unassigned)
        moved = self._perform(everything)
        if not initializing and moved and _score(self.assignment) >= _score(before):
            self.assignment = before

    def _perform(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions while that helps; return whether any moved.

        Source: GeneralAssignmentBuilder.performReassignments. Terminates because every move takes
            from a member with at least two partitions more than some other one.
        """
        moved = False
        modified = True
        while modified:
            modified = False
            for partition in partitions:
                if self._is_balanced():
                    break
                if self._improve(partition):
                    moved = modified = True
        return moved

    def _improve(self, partition: TopicPartition) -> bool:
        owner = self._owner.get(partition)
        previous = self._previous.get(partition)
        if previous is not None and self._count(owner) > self._count(previous) + 1:
            self._move(partition, previous)
            return True
        potential = self._potential[partition.topic]
        if owner is not None and self._racks.match(owner, partition):
            for member_id in potential:
                if self._racks.match(member_id, partition) and self._helps(owner, member_id):
                    return self._move_to_least_loaded(partition)
        for member_id in potential:
            if self._helps(owner, member_id):
                return self._move_to_least_loaded(partition)
        return False

    def _count(self, member_id: str | None) -> int:
        held = None if member_id is None else self.assignment.get(member_id)
        if held is None:
            raise AssignmentFailed(
                f"member {member_id!r} takes no part in balancing but a partition points to it "
                "(Java: NullPointerException)"
            )
        return len(held)

    def _helps(self, owner: str | None, member_id: str) -> bool:
        return self._count(owner) > self._count(member_id) + 1

    def _move_to_least_loaded(self, partition: TopicPartition) -> bool:
        """Move it to the least loaded; GeneralAssignmentBuilder.reassignPartition(partition)."""
        target = self._order.first_subscribed(self._potential[partition.topic])
        if target is None:
            raise AssignmentFailed(
                f"nobody in the balancing subscribes to {partition.topic!r} (Java: AssertionError)"
            )
        self._move(partition, target)
        return True

    def _move(self, partition: TopicPartition, target: str) -> None:
        """Move a partition. Source: reassignPartition(partition, newConsumer)."""
        actual = self._movements.partition_to_move(partition, self._owner[partition], target)
        source = self._owner[actual]
        for member_id in dict.fromkeys((source, target)):
            self._order.remove(member_id, self._count(member_id))
        self._movements.record(actual, source, target)
        if actual in self.assignment[source]:
            self.assignment[source].remove(actual)
        self.assignment[target].append(actual)
        self._owner[actual] = target
        for member_id in dict.fromkeys((target, source)):
            self._order.add(member_id, self._count(member_id))
        self._balanced = None

    def _is_balanced(self) -> bool:
        if self._balanced is None:
            least, greatest = self._order.counts()
            self._balanced = least >= greatest - 1 or not self._has_improvement()
        return self._balanced

    def _has_improvement(self) -> bool:
        """Whether some member may take a partition from one with two more.

        Source: GeneralAssignmentBuilder.isBalanced.
        """
        owner = {tp: member_id for member_id, held in self.assignment.items() for tp in held}
        if not self._is_sound(owner):
            return self._has_improvement_among(owner)
        # With one owner each, only the greatest load over a topic's owners matters.
        greatest: dict[str, int] = {}
        for partition, member_id in owner.items():
            count = len(self.assignment[member_id])
            if count > greatest.get(partition.topic, 0):
                greatest[partition.topic] = count
        # QUIRK: as many partitions as its topics have count as all of them, even where a move to
        # a previous owner brought one of another topic.
        return any(
            greatest[topic] > len(held) + 1
            for member_id, held in self.assignment.items()
            if len(held) != self._max_size[member_id]
            for topic in self._wanted[member_id]
        )

    def _is_sound(self, owner: Mapping[TopicPartition, str]) -> bool:
        """Whether each partition that a member wants has one owner, and no other exists.

        Moves keep it so, hence it is computed once.
        """
        if self._sound is None:
            wanted = {topic for member_id in self.assignment for topic in self._wanted[member_id]}
            held_count = sum(len(held) for held in self.assignment.values())
            everything = topic_partitions(self._topic_rank, self._topics)
            expected = {partition for partition in everything if partition.topic in wanted}
            self._sound = held_count == len(owner) and owner.keys() == expected
        return self._sound

    def _has_improvement_among(self, owner: Mapping[TopicPartition, str]) -> bool:
        """Do the same check in Java's order, which decides between an answer and a failure."""
        for member_id in self._order.member_ids():
            wanted = self._wanted[member_id]
            held = self.assignment[member_id]
            if len(held) == self._max_size[member_id]:
                continue
            mine = frozenset(held)
            for partition in topic_partitions(wanted, self._topics):
                if partition in mine:
                    continue
                if self._count(owner.get(partition)) > len(held) + 1:
                    return True
        return False


def _max_size(wanted: Sequence[str], topics: Topics) -> int:
    """Return how many partitions a member can get.

    Source: GeneralAssignmentBuilder.getMaxAssignmentSize.
    """
    names = topics if len(wanted) == len(topics) else wanted
    return sum(len(topics[topic]) for topic in names)


def _previous_owners(
    member_data: Mapping[str, MemberData], max_generation: int
) -> dict[TopicPartition, str]:
    """Return partition -> owner in the latest generation before the highest one.

    Source: GeneralAssignmentBuilder.prepopulateCurrentAssignments and updatePrevAssignment.
    """
    owners: dict[TopicPartition, tuple[int, str]] = {}
    for member_id, data in member_data.items():
        generation_id = data.generation_id
        if generation_id is None:
            generation_id = DEFAULT_GENERATION
        if generation_id >= max_generation:
            continue
        for partition in data.partitions:
            if partition not in owners or generation_id > owners[partition][0]:
                owners[partition] = (generation_id, member_id)
    return {partition: member_id for partition, (_, member_id) in owners.items()}


def _score(assignment: _Assignment) -> int:
    """Return the sum of absolute differences of counts over all pairs of members.

    Source: GeneralAssignmentBuilder.getBalanceScore.
    """
    counts = sorted(len(held) for held in assignment.values())
    last = len(counts) - 1
    return sum(count * (2 * index - last) for index, count in enumerate(counts))
