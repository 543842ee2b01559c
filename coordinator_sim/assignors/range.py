"""The range assignor: each topic's partitions in contiguous ranges over its sorted members.

Source: kafka trunk, clients/.../consumer/RangeAssignor.java.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from coordinator_sim.assignors import subscriptions
from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment

_Assignment = dict[str, list[TopicPartition]]


class _TopicState:
    """One topic during its assignment.

    Source: RangeAssignor.TopicAssignmentState.
    """

    __slots__ = (
        "_extra",
        "_given",
        "_quota",
        "members",
        "needs_racks",
        "racks",
        "topic",
        "unassigned",
    )

    def __init__(
        self,
        topic: str,
        partitions: Sequence[tuple[str, ...]],
        members: Sequence[str],
        rack_of: dict[str, str],
    ) -> None:
        self.topic = topic
        self.members = {member: rack_of.get(member) for member in members}
        self.unassigned = dict.fromkeys(range(len(partitions)))
        self._given = dict.fromkeys(members, 0)
        self._quota, self._extra = divmod(len(partitions), len(members)) if members else (0, 0)
        present = [rack for rack in self.members.values() if rack is not None]
        self.racks = [frozenset(racks) for racks in partitions] if present else []
        self.needs_racks = bool(present) and subscriptions.is_rack_aware(present, self.racks)

    def racks_match(self, member: str, partition: int) -> bool:
        """Whether the racks allow the member the partition; a member without rack always."""
        rack = self.members[member]
        return rack is None or (partition < len(self.racks) and rack in self.racks[partition])

    def max_assignable(self, member: str) -> int:
        """Return how many more partitions the member may take."""
        return max(0, self._quota + (self._extra > 0) - self._given[member])

    def give(self, member: str, partitions: Sequence[int], assignment: _Assignment) -> None:
        """Assign partitions; an assignment beyond the quota uses up one of the extras."""
        assignment[member] += [TopicPartition(self.topic, number) for number in partitions]
        self._given[member] += len(partitions)
        if self._given[member] > self._quota:
            self._extra -= 1
        for number in partitions:
            del self.unassigned[number]


class RangeAssignor:
    """Kafka's `range`: contiguous ranges of each topic, aligned on racks where that is balanced.

    Not sticky, and without memory.
    """

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return "range"

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
        """Return partitions of each member, in Java's topic order, or sorted with racks.

        Source: RangeAssignor.assignPartitions.
        """
        ordered = subscriptions.members_in_map_order(members)
        states = _topic_states(topics, ordered)
        assignment: _Assignment = {member.member_id: [] for member in ordered}
        use_racks = any(state.needs_racks for state in states)
        if use_racks:
            _assign_by_rack(states, assignment)
        for state in states:
            _assign_ranges(state, _any_member, assignment)
        if use_racks:
            for partitions in assignment.values():
                partitions.sort(key=lambda tp: (java_string_key(tp.topic), tp.partition))
        return assignment


def _any_member(member: str, partition: int) -> bool:  # noqa: ARG001  the shape of racks_match
    return True


def _topic_states(topics: TopicRacks, ordered: Sequence[AssignorMember]) -> list[_TopicState]:
    rack_of = subscriptions.member_racks(ordered)
    subscribers: dict[str, list[str]] = {}
    for member in sorted(ordered, key=subscriptions.member_sort_key):
        for topic in dict.fromkeys(member.subscription.topics):
            subscribers.setdefault(topic, []).append(member.member_id)
    return [
        _TopicState(topic, partitions, subscribers[topic], rack_of)
        for topic, partitions in subscriptions.subscribed_topics(topics, ordered).items()
    ]


def _assign_ranges(
    state: _TopicState, may_assign: Callable[[str, int], bool], assignment: _Assignment
) -> None:
    """Assign the ranges of one topic. Source: RangeAssignor.assignRanges."""
    for member in state.members:
        if not state.unassigned:
            break
        eligible = (number for number in state.unassigned if may_assign(member, number))
        taken = list(islice(eligible, state.max_assignable(member)))
        if taken:
            state.give(member, taken, assignment)


def _assign_by_rack(states: Sequence[_TopicState], assignment: _Assignment) -> None:
    """Assign topics with the same members and partition count together.

    Source: RangeAssignor.assignWithRackMatching.
    """
    groups: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_TopicState]] = {}
    for state in states:
        groups.setdefault((tuple(state.members.items()), len(state.racks)), []).append(state)
    for (_, partition_count), group in groups.items():
        if len(group) > 1:
            _assign_co_partitioned(group, partition_count, assignment)
        elif group[0].needs_racks:
            _assign_ranges(group[0], group[0].racks_match, assignment)


def _assign_co_partitioned(
    states: Sequence[_TopicState], partition_count: int, assignment: _Assignment
) -> None:
    """Assign topics with the same members and partition count by rack.

    Source: RangeAssignor.assignCoPartitionedWithRackMatching.
    """
    remaining = list(states[0].members)
    for number in range(partition_count):
        for member in remaining:
            if all(s.racks_match(member, number) and s.max_assignable(member) for s in states):
                break
        else:
            continue
        for state in states:
            state.give(member, [number], assignment)
        if not any(state.max_assignable(member) for state in states):
            remaining.remove(member)
            if not remaining:
                return


OFFERED: Final = (RangeAssignor,)
"""See `registry`."""
