"""The round robin assignor: all partitions in turn over all members subscribed to them.

Source: kafka trunk, clients/.../consumer/RoundRobinAssignor.java.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.assignors.subscriptions import (
    member_sort_key,
    members_in_map_order,
    subscribed_topics,
    topic_partitions,
)
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment


class RoundRobinAssignor:
    """Kafka's `roundrobin`: neither sticky nor rack-aware, and without memory."""

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return "roundrobin"

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Supported rebalance protocols: eager only."""
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002  contract
        """Return None: the assignor sends no user data."""
        return None

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Do nothing: the assignor has no memory."""

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return partitions of each member, lists sorted by topic and partition.

        The pointer into the sorted members advances over the whole assignment; it skips members not
        subscribed to the current topic.

        Source: RoundRobinAssignor.assignPartitions.
        """
        ordered = members_in_map_order(members)
        known = subscribed_topics(topics, ordered)
        circle = [
            (member.member_id, frozenset(member.subscription.topics))
            for member in sorted(ordered, key=member_sort_key)
        ]
        assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in ordered}
        pointer = 0
        for partition in topic_partitions(sorted(known, key=java_string_key), known):
            # Terminates: some member subscribes to each known topic.
            while partition.topic not in circle[pointer][1]:
                pointer = (pointer + 1) % len(circle)
            assignment[circle[pointer][0]].append(partition)
            pointer = (pointer + 1) % len(circle)
        return assignment


OFFERED: Final = (RoundRobinAssignor,)
"""See `registry`."""
