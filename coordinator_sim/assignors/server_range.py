"""The server-side range assignor.

Source: kafka trunk, group-coordinator/.../assignor/RangeAssignor.java.
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.server_contract import ServerMember, TopicAssignment
from coordinator_sim.kafka.orders.iteration_order import java_string_key


class ServerRangeAssignor:
    """Kafka's server-side `range`: each topic in contiguous ranges over its sorted members."""

    @property
    def name(self) -> str:
        """Name in `group.consumer.assignors`."""
        return "range"

    def assign(
        self,
        topics: Mapping[bytes, int],
        members: Sequence[ServerMember],
        *,
        is_homogeneous: bool | None = None,
    ) -> dict[str, TopicAssignment]:
        """Return partitions of each member; the first members of a topic get its extra partitions.

        Raises:
            AssignmentFailed: a member subscribes to a topic that does not exist.
        """
        ordered = sorted(members, key=_sort_key)
        assignment: dict[str, TopicAssignment] = {member.member_id: {} for member in ordered}
        subscribers: dict[bytes, list[str]] = {}
        for member in ordered:
            # QUIRK: where all are told to subscribe to the same, the first one speaks for all.
            for topic_id in (ordered[0] if is_homogeneous else member).subscribed:
                subscribers.setdefault(topic_id, []).append(member.member_id)
        for topic_id, member_ids in subscribers.items():
            if topic_id not in topics:
                raise AssignmentFailed(
                    f"topic id {topic_id.hex()} does not exist (Java: PartitionAssignorException)"
                )
            quota, extra = divmod(topics[topic_id], len(member_ids))
            start = 0
            for rank, member_id in enumerate(member_ids):
                end = start + quota + (rank < extra)
                if end > start:
                    assignment[member_id][topic_id] = list(range(start, end))
                start = end
        return assignment


def _sort_key(member: ServerMember) -> tuple[bool, bytes]:
    """Sort key: static members by instance id, then dynamic ones by member id."""
    if member.group_instance_id is not None:
        return False, java_string_key(member.group_instance_id)
    return True, java_string_key(member.member_id)
