"""The members of a group in the table that Kafka keeps them in, whose order they are listed in."""

from collections.abc import Iterable

from coordinator_sim.coordinator.member import Member
from coordinator_sim.kafka.orders.iteration_order import MIN_TABLE_CAPACITY, old_scala_set_order
from coordinator_sim.kafka.orders.table_order import TABLE_ORDERS, HashOrder, old_scala_map_order


class MemberTable:
    """Members by id.

    Args:
        hash_order: Whose hash map it is.

    Attributes:
        members: By id, in order of insertion; `ordered` gives the order Kafka lists them in.
    """

    __slots__ = ("_ordered", "_table_capacity", "_table_order", "_table_rank", "members")

    def __init__(self, hash_order: HashOrder) -> None:
        self.members: dict[str, Member] = {}
        self._ordered: list[Member] | None = None
        self._table_capacity = MIN_TABLE_CAPACITY
        self._table_rank = 0
        self._table_order = TABLE_ORDERS[hash_order]

    def ordered(self) -> list[Member]:
        """The members in the order of Kafka's hash map of ids. The list must not be changed."""
        if self._ordered is None:
            capacity = self._table_capacity
            place = self._table_order.place
            listed: Iterable[Member] = self.members.values()
            if self._table_order.newest_first:
                listed = sorted(listed, key=lambda member: -member.table_rank)
            self._ordered = sorted(listed, key=lambda member: place(member.name_hash, capacity))
        return self._ordered

    def _copied(self) -> list[Member]:
        """The members in the order of the map that a leader is told of.

        Source: in 0.10.2 currentMemberMetadata makes another map, and a third that is immutable.
        """
        members = self.ordered()
        if not self._table_order.newest_first:
            return members
        by_id = {member.member_id: member for member in members}
        copied = old_scala_map_order(by_id)
        return [by_id[member_id] for member_id in old_scala_set_order(copied)]

    def _first_member_id(self) -> str | None:
        if not self.members:
            return None
        if self._table_order.newest_first:
            return self.ordered()[0].member_id
        capacity = self._table_capacity
        place = self._table_order.place
        return min(
            self.members.values(), key=lambda member: place(member.name_hash, capacity)
        ).member_id

    def _insert(self, member: Member) -> None:
        members = self.members
        members[member.member_id] = member
        self._ordered = None
        capacity = self._table_order.grown(self._table_capacity, len(members))
        if self._table_order.newest_first:
            self._table_rank += 1
            member.table_rank = self._table_rank
            if capacity != self._table_capacity:
                # QUIRK: the table turns every bucket around when it grows.
                for each in members.values():
                    each.table_rank = -each.table_rank
        self._table_capacity = capacity
