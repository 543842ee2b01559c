"""Inputs and results of server-side assignors (KIP-848); topics are named by their ids.

Source: kafka trunk, group-coordinator-api/.../group/api/assignor/PartitionAssignor.java.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from coordinator_sim.kafka.orders.iteration_order import java_hash_order

TopicAssignment = dict[bytes, list[int]]
"""Topic id -> partitions, ascending."""


class ServerMember(Struct, frozen=True, kw_only=True):
    """A member as its coordinator sees it.

    Args:
        subscribed: Topic ids of 16 bytes.
        assigned: Topic id -> partitions it holds now, ascending.
        rack_id: Where it is; Kafka's own assignors do not look at it.
    """

    member_id: str
    subscribed: tuple[bytes, ...]
    assigned: Mapping[bytes, Sequence[int]] = {}
    group_instance_id: str | None = None
    rack_id: str | None = None


class ServerAssignor(Protocol):
    """A server-side assignor: a pure function."""

    @property
    def name(self) -> str:
        """Name in `group.consumer.assignors`."""
        ...

    def assign(
        self,
        topics: Mapping[bytes, int],
        members: Sequence[ServerMember],
        *,
        is_homogeneous: bool | None = None,
    ) -> dict[str, TopicAssignment]:
        """Return partitions of each member.

        Args:
            topics: Topic id -> number of partitions.
            members: In the order in which their coordinator lists them.
            is_homogeneous: Whether all subscribe to the same topics, as the coordinator counted,
                which also counts topics that do not exist; None compares what they subscribe to.
        """
        ...


def in_map_order(members: Sequence[ServerMember]) -> list[ServerMember]:
    """Return the members in the order of a HashMap filled in this order."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in java_hash_order(by_id)]
