"""The sticky assignors: balance first, then keep partitions with their owners.

Where members subscribe to different topics, the algorithm keeps what can be kept, assigns the rest
to the least loaded, then moves partitions while that improves the balance. Java checks before every
partition whether all is balanced; the answer is remembered here until a partition moves.

Where all subscribe to the same topics, the cost is that of sorting the partitions, plus one step
per partition; with racks, up to one scan of the unfilled members per partition.

Source: kafka trunk, clients/.../consumer/StickyAssignor.java, CooperativeStickyAssignor.java and
internals/AbstractStickyAssignor.java; AbstractStickyAssignor.GeneralAssignmentBuilder;
AbstractStickyAssignor.ConstrainedAssignmentBuilder.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from coordinator_sim.assignors import user_data
from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    RebalanceProtocol,
    TopicRacks,
)
from coordinator_sim.assignors.partition_movements import PartitionMovements
from coordinator_sim.assignors.sticky_ownership import (
    Ownership,
    Racks,
    Topics,
    settle_ownership,
    without_sorted,
)
from coordinator_sim.assignors.subscriptions import (
    members_in_map_order,
    subscribed_topics,
    topic_partitions,
)
from coordinator_sim.assignors.user_data import DEFAULT_GENERATION, MemberData
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    java_string_key,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription


class ConstrainedAssignment:
    """One run, in which every member ends with floor or ceil of the average.

    Attributes:
        assignment: Member id -> partitions in list order, keys in map order.
        transferring: Partitions that move away from a member that owned them -> new owner.
    """

    def __init__(self, topics: Topics, racks: Racks, ownership: Ownership) -> None:
        # Java copies the map of members, and a copy may have twice the buckets.
        copied = java_hash_order(ownership.owned, java_copy_capacity(len(ownership.owned)))
        self.assignment: dict[str, list[TopicPartition]] = {m: [] for m in java_hash_order(copied)}
        self.transferring: dict[TopicPartition, str] = {}
        self._topic_rank = {
            topic: rank for rank, topic in enumerate(sorted(topics, key=java_string_key))
        }
        self._all = topic_partitions(self._topic_rank, topics)
        self._racks = racks
        self._ownership = ownership
        self._min_quota, self._expected_over = divmod(len(self._all), len(ownership.owned))
        self._max_quota = self._min_quota + (self._expected_over > 0)
        self._over = 0
        self._under_min: list[str] = []
        self._exactly_min: deque[str] = deque()
        self._maybe_revoked: dict[TopicPartition, str] = {}

    def run(self) -> None:
        """Fill `assignment` and `transferring`.

        Raises:
            AssignmentFailed: members stay below the quota or partitions are left over, which only
                owned partitions beyond their topic's count can cause.

        Source: ConstrainedAssignmentBuilder.build.
        """
        kept = self._keep_owned()
        kept.sort(key=lambda tp: (self._topic_rank[tp.topic], tp.partition))
        unassigned = without_sorted(self._all, kept)
        self._under_min.sort(key=java_string_key)
        self._exactly_min = deque(sorted(self._exactly_min, key=java_string_key))
        unassigned = self._racks.by_local_members(unassigned)
        if self._racks.rack_of:
            unassigned = self._fill_by_rack(unassigned)
        self._fill_round_robin(unassigned)
        self._verify()

    def _valid_owned(self, member_id: str, owned: list[TopicPartition]) -> list[TopicPartition]:
        """Return what the member may keep, by partition and then topic."""
        valid = []
        for partition in owned:
            if self._racks.mismatch(member_id, partition):
                self._maybe_revoked[partition] = member_id
            else:
                valid.append(partition)
        valid.sort(key=lambda tp: (tp.partition, self._topic_rank[tp.topic]))
        if self._ownership.multiple_owners:
            claimed = frozenset(valid)
            for partition in self._ownership.multiple_owners:
                if partition in claimed:
                    valid.remove(partition)
        return valid

    def _keep_owned(self) -> list[TopicPartition]:
        """Keep owned partitions. Source: ConstrainedAssignmentBuilder.assignOwnedPartitions."""
        kept: list[TopicPartition] = []
        for member_id, owned in self._ownership.owned.items():
            valid = self._valid_owned(member_id, owned)
            quota = self._min_quota
            if len(valid) < self._min_quota:
                self._under_min.append(member_id)
            elif len(valid) >= self._max_quota and self._over < self._expected_over:
                quota = self._max_quota
                self._count_over()
            elif self._over < self._expected_over:
                self._exactly_min.append(member_id)
            self.assignment[member_id] += valid[:quota]
            kept += valid[:quota]
            for partition in valid[quota:]:
                self._maybe_revoked[partition] = member_id
        return kept

    def _count_over(self) -> None:
        """Count a member above the minimum; at the expected number no other may exceed it."""
        self._over += 1
        if self._over == self._expected_over:
            self._exactly_min.clear()

    def _fill_by_rack(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members of their racks; return the rest.

        Source: ConstrainedAssignmentBuilder.assignRackAwareRoundRobin.
        """
        cursor = 0
        left = []
        for partition in unassigned:
            index = self._racks.next_match(partition, self._under_min, cursor)
            if index >= 0:
                member_id = self._under_min[index]
                cursor = self._advance_cursor(index)
                self._give(partition, member_id)
                continue
            index = self._racks.next_match(partition, self._exactly_min, 0)
            if index < 0:
                left.append(partition)
                continue
            member_id = self._exactly_min[index]
            if len(self.assignment[member_id]) + 1 == self._max_quota:
                del self._exactly_min[index]
                self._count_over()
            self._give(partition, member_id)
        return left

    def _advance_cursor(self, index: int) -> int:
        """Return where the next rack search starts, after the unfilled member at `index`."""
        member_id = self._under_min[index]
        count = len(self.assignment[member_id]) + 1
        if count >= self._min_quota:
            self._under_min.remove(member_id)
            if count < self._max_quota and self._over < self._expected_over:
                self._exactly_min.append(member_id)
        else:
            index += 1
        return index % len(self._under_min) if self._under_min else 0

    def _fill_round_robin(self, unassigned: list[TopicPartition]) -> None:
        """Assign the rest in turn. Source: ConstrainedAssignmentBuilder.assignRoundRobin."""
        index = 0
        for partition in unassigned:
            if index >= len(self._under_min):
                index = 0
            if self._under_min:
                member_id = self._under_min[index]
                index += 1
            elif self._exactly_min:
                member_id = self._exactly_min.popleft()
            else:
                raise AssignmentFailed(
                    f"no member may take {partition.resource()} "
                    "(Java: IllegalStateException, no more unfilled consumers)"
                )
            self._give(partition, member_id)
            count = len(self.assignment[member_id])
            if count == self._min_quota:
                index -= 1
                del self._under_min[index]
                self._exactly_min.append(member_id)
            elif count == self._max_quota:
                self._over += 1

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        """Assign one partition. Source: ConstrainedAssignmentBuilder.assignNewPartition."""
        self.assignment[member_id].append(partition)
        revoked_from = self._maybe_revoked.get(partition, member_id)
        if revoked_from != member_id or partition in self._ownership.multiple_owners:
            self.transferring[partition] = member_id

    def _verify(self) -> None:
        """Check the quotas. Source: ConstrainedAssignmentBuilder.verifyUnfilledMembers."""
        for member_id in self._under_min:
            count = len(self.assignment[member_id])
            if self._over != self._expected_over or count != self._min_quota:
                raise AssignmentFailed(
                    f"member {member_id!r} has {count} partitions where {self._min_quota} are due "
                    "(Java: IllegalStateException)"
                )


_Assignment = dict[str, list[TopicPartition]]


class _LoadOrder:
    """Member ids by (number of partitions, id), kept sorted while the numbers change.

    Source: AbstractStickyAssignor.SubscriptionComparator over a TreeSet.
    """

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


class _StickyEngine:
    """The common algorithm and its one memory: the highest generation ever seen.

    Args:
        read_member_data: Reads the owned partitions from a subscription.
    """

    def __init__(self, read_member_data: Callable[[Subscription], user_data.MemberData]) -> None:
        self._read_member_data = read_member_data
        self._max_generation = user_data.DEFAULT_GENERATION

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> tuple[_Assignment, dict[TopicPartition, str] | None]:
        """Return the assignment, and the partitions that move with their new owners.

        The second is None where subscriptions differ: it is then not computed.

        Source: AbstractStickyAssignor.assignPartitions.
        """
        ordered = members_in_map_order(members)
        if not ordered:
            return {}, {}
        known = subscribed_topics(topics, ordered)
        data = {m.member_id: self._read_member_data(m.subscription) for m in ordered}
        ownership = settle_ownership(known, ordered, data, self._max_generation)
        self._max_generation = ownership.max_generation
        racks = Racks(known, ordered)
        if ownership.all_equal:
            constrained = ConstrainedAssignment(known, racks, ownership)
            constrained.run()
            return constrained.assignment, constrained.transferring
        general = GeneralAssignment(known, racks, ownership, ordered, data)
        general.run()
        return general.assignment, None


class StickyAssignor:
    """Kafka's `sticky`: eager; owned partitions travel in the user data."""

    def __init__(self) -> None:
        self._engine = _StickyEngine(_sticky_member_data)
        self._partitions: tuple[TopicPartition, ...] | None = None
        self._generation_id = user_data.DEFAULT_GENERATION

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return "sticky"

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Supported rebalance protocols: eager only."""
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002  contract
        """Return the last assignment with its generation; None before the first one."""
        if self._partitions is None:
            return None
        return user_data.encode_sticky_user_data(self._partitions, self._generation_id)

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Remember this member's assignment."""
        self._partitions = assignment.partitions
        self._generation_id = generation_id

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return partitions of each member: balanced, then with the fewest moves Java finds.

        Raises:
            AssignmentFailed: owned partitions contradict each other.
        """
        return self._engine.assign(topics, members)[0]


class CooperativeStickyAssignor:
    """Kafka's `cooperative-sticky`: a partition that moves has no owner for one round."""

    def __init__(self) -> None:
        self._engine = _StickyEngine(_cooperative_member_data)
        self._generation_id = user_data.DEFAULT_GENERATION

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return "cooperative-sticky"

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Supported rebalance protocols: both, so that a group can move to cooperative."""
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002  contract
        """Return the generation of the last assignment; -1 before the first one."""
        return user_data.encode_cooperative_user_data(self._generation_id)

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:  # noqa: ARG002  contract
        """Remember the generation; the owned partitions travel in the subscription."""
        self._generation_id = generation_id

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return partitions of each member, without those that another member must give up first.

        Raises:
            AssignmentFailed: owned partitions contradict each other.

        Source: CooperativeStickyAssignor.assignPartitions and adjustAssignment.
        """
        assignment, transferring = self._engine.assign(topics, members)
        if transferring is None:
            transferring = _transferring(members, assignment)
        for partition, member_id in transferring.items():
            assignment[member_id].remove(partition)
        return assignment


def _sticky_member_data(subscription: Subscription) -> user_data.MemberData:
    return user_data.decode_sticky_user_data(subscription.user_data)


def _cooperative_member_data(subscription: Subscription) -> user_data.MemberData:
    """Read cooperative member data. Source: CooperativeStickyAssignor.memberData."""
    if subscription.generation_id >= 0:
        return user_data.MemberData(subscription.owned_partitions, subscription.generation_id)
    generation_id = user_data.decode_cooperative_generation(subscription.user_data)
    return user_data.MemberData(subscription.owned_partitions, generation_id)


def _transferring(
    members: Sequence[AssignorMember], assignment: _Assignment
) -> dict[TopicPartition, str]:
    """Return the partitions added to one member and taken from another.

    Source: CooperativeStickyAssignor.computePartitionsTransferringOwnership.
    """
    owned = {m.member_id: frozenset(m.subscription.owned_partitions) for m in members}
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, partitions in assignment.items():
        added.update({tp: member_id for tp in partitions if tp not in owned[member_id]})
        revoked |= owned[member_id].difference(partitions)
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}


OFFERED: Final = (StickyAssignor, CooperativeStickyAssignor)
"""See `registry`."""
