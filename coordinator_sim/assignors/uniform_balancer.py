"""The server-side uniform assignment when members subscribe to different topics.

Source: kafka trunk, group-coordinator/.../assignor/UniformHeterogeneousAssignmentBuilder.java.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator_sim.assignors.server_contract import ServerMember, TopicAssignment

MAX_SWEEPS: Final = 16
"""Largest number of passes over the topics, as in Java."""

UNASSIGNED: Final = -1


def _signed_uuid(topic_id: bytes) -> tuple[int, int]:
    """Sort key: the id's two halves as signed integers. Source: Uuid.compareTo."""
    most = int.from_bytes(topic_id[:8], "big", signed=True)
    return most, int.from_bytes(topic_id[8:], "big", signed=True)


class _Loads:
    """One topic's subscribers by (number of partitions, member number), taken from both ends.

    Source: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
    """

    __slots__ = (
        "_counts",
        "_least_end",
        "_least_pointer",
        "_members",
        "_most_end",
        "_most_pointer",
        "_most_start",
        "least_level",
        "most_level",
    )

    def __init__(self, subscribers: Sequence[int], counts: list[int]) -> None:
        self._counts = counts
        self._members = sorted(subscribers, key=lambda number: (counts[number], number))
        size = len(self._members)
        self._least_end = self._least_pointer = 0
        self.least_level = counts[self._members[0]] - 1
        self._most_start = self._most_end = size
        self._most_pointer = size - 1
        self.most_level = counts[self._members[-1]] + 1

    def spread(self) -> int:
        """Difference between the most and the least loaded subscriber at the start."""
        return self._counts[self._members[-1]] - self._counts[self._members[0]]

    def next_least(self) -> int:
        """Return the next of the least loaded, level by level."""
        if self._least_pointer >= self._least_end:
            self.least_level += 1
            while (
                self._least_end < len(self._members)
                and self._counts[self._members[self._least_end]] == self.least_level
            ):
                self._least_end += 1
            self._least_pointer = 0
        self._least_pointer += 1
        return self._members[self._least_pointer - 1]

    def next_most(self) -> int | None:
        """Return the next of the most loaded, level by level; None when all are excluded."""
        if self._most_pointer < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self.most_level = self._counts[self._members[self._most_start - 1]]
            else:
                self.most_level -= 1
            while (
                self._most_start > 0
                and self._counts[self._members[self._most_start - 1]] == self.most_level
            ):
                self._most_start -= 1
            self._most_pointer = self._most_end - 1
        if self._most_pointer < 0:
            return None
        self._most_pointer -= 1
        return self._members[self._most_pointer + 1]

    def exclude_most(self) -> None:
        """Remove the member that `next_most` just returned from its range."""
        last, index = self._most_end - 1, self._most_pointer + 1
        members = self._members
        members[index], members[last] = members[last], members[index]
        self._most_end -= 1


class UniformBalancer:
    """One run over numbered members.

    Args:
        topics: Topic id -> number of partitions.
        members: Members in map order, which numbers them.
    """

    def __init__(self, topics: Mapping[bytes, int], members: Sequence[ServerMember]) -> None:
        self._members = members
        self._counts = [0] * len(members)
        self._subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(members):
            for topic_id in dict.fromkeys(member.subscribed):
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners = {topic_id: [UNASSIGNED] * topics[topic_id] for topic_id in self._subscribers}
        self._topic_order = sorted(
            self._subscribers,
            key=lambda topic_id: (
                -topics[topic_id] / len(self._subscribers[topic_id]),
                len(self._subscribers[topic_id]),
                _signed_uuid(topic_id),
            ),
        )

    def run(self) -> dict[str, TopicAssignment]:
        """Keep held partitions, assign the rest, then balance topic by topic."""
        self._keep()
        self._hand_out()
        self._balance()
        assignment: dict[str, TopicAssignment] = {m.member_id: {} for m in self._members}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                own = assignment[self._members[owner].member_id]
                own.setdefault(topic_id, []).append(partition)
        return assignment

    def _keep(self) -> None:
        for number, member in enumerate(self._members):
            for topic_id, partitions in member.assigned.items():
                if topic_id not in member.subscribed:
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    if partition < len(owners) and owners[partition] == UNASSIGNED:
                        owners[partition] = number
                        self._counts[number] += 1

    def _hand_out(self) -> None:
        for topic_id in self._topic_order:
            owners = self._owners[topic_id]
            loads = _Loads(self._subscribers[topic_id], self._counts)
            for partition, owner in enumerate(owners):
                if owner == UNASSIGNED:
                    owners[partition] = number = loads.next_least()
                    self._counts[number] += 1

    def _balance(self) -> None:
        """Balance all topics. Source: UniformHeterogeneousAssignmentBuilder.balance."""
        contested = [t for t in self._topic_order if len(self._subscribers[t]) > 1]
        last_changed: bytes | None = None
        for _ in range(MAX_SWEEPS):
            for topic_id in contested:
                if topic_id == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of one topic from the most to the least loaded.

        Source: UniformHeterogeneousAssignmentBuilder.balanceTopic.
        """
        loads = _Loads(self._subscribers[topic_id], self._counts)
        if loads.spread() <= 1:
            return False
        owners = self._owners[topic_id]
        left: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            left.setdefault(owner, []).append(partition)
        moved = False
        while True:
            giver = loads.next_most()
            while giver is not None and not left.get(giver):
                loads.exclude_most()
                giver = loads.next_most()
            if giver is None:
                return moved
            partition = left[giver].pop()
            taker = loads.next_least()
            if loads.most_level - loads.least_level <= 1:
                return moved
            owners[partition] = taker
            self._counts[giver] -= 1
            self._counts[taker] += 1
            moved = True
