"""The server-side uniform assignor, for equal subscriptions; see `uniform_balancer` for others.

Source: kafka trunk, group-coordinator/.../assignor/UniformAssignor.java and
UniformHomogeneousAssignmentBuilder.java.
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.server_contract import (
    ServerMember,
    TopicAssignment,
    in_map_order,
)
from coordinator_sim.assignors.uniform_balancer import UniformBalancer
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    uuid_hash,
)


class ServerUniformAssignor:
    """Kafka's server-side `uniform`: the same number for all, and sticky.

    Args:
        yields_extra: Whether a member without use for it yet leaves the one partition more than
            the others to a later member, who may hold it; so from 4.0 on. False: the first members
            get it, whatever they hold, as in 3.9.
    """

    __slots__ = ("_yields_extra",)

    def __init__(self, *, yields_extra: bool = False) -> None:
        self._yields_extra = yields_extra

    @property
    def name(self) -> str:
        """Name in `group.consumer.assignors`."""
        return "uniform"

    def assign(
        self,
        topics: Mapping[bytes, int],
        members: Sequence[ServerMember],
        *,
        is_homogeneous: bool | None = None,
    ) -> dict[str, TopicAssignment]:
        """Return the partitions of each member.

        Raises:
            AssignmentFailed: a member subscribes to a topic that does not exist, or the members
                hold the same partition twice.

        Source: UniformAssignor.assign.
        """
        ordered = in_map_order(members)
        for member in ordered:
            for topic_id in member.subscribed:
                if topic_id not in topics:
                    raise AssignmentFailed(
                        f"topic id {topic_id.hex()} does not exist "
                        "(Java: PartitionAssignorException)"
                    )
        if is_homogeneous is None:
            is_homogeneous = len({frozenset(member.subscribed) for member in ordered}) <= 1
        if not is_homogeneous:
            return UniformBalancer(topics, ordered).run()
        return self._assign_equal(topics, ordered) if ordered else {}

    def _assign_equal(
        self, topics: Mapping[bytes, int], ordered: Sequence[ServerMember]
    ) -> dict[str, TopicAssignment]:
        """Assign with equal subscriptions. Source: UniformHomogeneousAssignmentBuilder.build."""
        subscribed = ordered[0].subscribed
        unassigned = _unassigned(topics, ordered)
        total = sum(topics[topic_id] for topic_id in subscribed)
        quota, extra = divmod(total, len(ordered))
        assignment: dict[str, TopicAssignment] = {}
        unfilled: list[tuple[str, int]] = []
        for rank, member in enumerate(ordered):
            may_have_extra = extra > 0
            room = quota + may_have_extra
            kept: TopicAssignment = {}
            for topic_id in java_hash_order(member.assigned, hash_of=uuid_hash):
                if topic_id not in subscribed:
                    continue
                held = sorted(member.assigned[topic_id])
                if held[:room]:
                    kept[topic_id] = held[:room]
                unassigned += [(topic_id, partition) for partition in held[room:]]
                room -= min(room, len(held))
            assignment[member.member_id] = kept
            if self._yields_extra and room > 0 and may_have_extra and len(ordered) - rank > extra:
                # Others may be able to keep what they hold by it.
                room -= 1
                may_have_extra = False
            extra -= may_have_extra
            if room > 0:
                unfilled.append((member.member_id, room))
        _fill(assignment, unfilled, unassigned)
        return assignment


def _unassigned(
    topics: Mapping[bytes, int], ordered: Sequence[ServerMember]
) -> list[tuple[bytes, int]]:
    """Return unassigned partitions, topics in the order of a copied HashSet."""
    subscribed = ordered[0].subscribed
    held = {
        (topic_id, partition)
        for member in ordered
        for topic_id, partitions in member.assigned.items()
        for partition in partitions
    }
    capacity = java_copy_capacity(len(subscribed))
    return [
        (topic_id, partition)
        for topic_id in java_hash_order(subscribed, capacity, hash_of=uuid_hash)
        for partition in range(topics[topic_id])
        if (topic_id, partition) not in held
    ]


def _fill(
    assignment: dict[str, TopicAssignment],
    unfilled: Sequence[tuple[str, int]],
    unassigned: Sequence[tuple[bytes, int]],
) -> None:
    start = 0
    for member_id, room in unfilled:
        for topic_id, partition in unassigned[start : start + room]:
            assignment[member_id].setdefault(topic_id, []).append(partition)
        for partitions in assignment[member_id].values():
            partitions.sort()
        start += room
    if start < len(unassigned):
        raise AssignmentFailed(
            f"{len(unassigned) - start} partitions are left over (Java: PartitionAssignorException)"
        )
