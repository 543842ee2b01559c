"""The server-side assignors of consumer groups (KIP-848): range and uniform.

Topics are named by their ids. `UniformBalancer` is for members of different subscriptions.

Source: kafka trunk, group-coordinator-api/.../group/api/assignor/PartitionAssignor.java;
group-coordinator/.../assignor: RangeAssignor, UniformAssignor, UniformHomogeneousAssignmentBuilder,
UniformHeterogeneousAssignmentBuilder.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    java_string_key,
    uuid_hash,
)

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


class ServerUniformAssignor:
    """Kafka's server-side `uniform`: the same number for all, and sticky.

    Args:
        yields_extra: Whether a member without use for it yet leaves the one partition more than
            the others to a later member, who may hold it; so from 4.0 on. False: the first members
            get it, whatever they hold, as in 3.9.
    """

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
