"""The sticky assignment when all members subscribe to the same topics.

Cost: sorting the partitions, plus one step per partition; with racks, up to one scan of the
unfilled members per partition.

Source: kafka trunk, AbstractStickyAssignor.ConstrainedAssignmentBuilder.
"""

from collections import deque

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.sticky_ownership import Ownership, Racks, Topics, without_sorted
from coordinator_sim.assignors.subscriptions import topic_partitions
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    java_string_key,
)
from coordinator_sim.kafka.resources import TopicPartition


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
