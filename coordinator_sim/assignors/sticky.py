"""The sticky assignors: balance first, then keep partitions with their owners.

Source: kafka trunk, clients/.../consumer/StickyAssignor.java, CooperativeStickyAssignor.java and
internals/AbstractStickyAssignor.java.
"""

from collections.abc import Callable, Sequence
from typing import Final

from coordinator_sim.assignors import user_data
from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.assignors.sticky_constrained import ConstrainedAssignment
from coordinator_sim.assignors.sticky_general import GeneralAssignment
from coordinator_sim.assignors.sticky_ownership import Racks, settle_ownership
from coordinator_sim.assignors.subscriptions import members_in_map_order, subscribed_topics
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription

_Assignment = dict[str, list[TopicPartition]]


class _StickyEngine:
    """The common algorithm and its one memory: the highest generation ever seen.

    Args:
        read_member_data: Reads the owned partitions from a subscription.
    """

    __slots__ = ("_max_generation", "_read_member_data")

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

    __slots__ = ("_engine", "_generation_id", "_partitions")

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
            AssignmentFailed: owned partitions contradict each other as in `sticky_general`.
        """
        return self._engine.assign(topics, members)[0]


class CooperativeStickyAssignor:
    """Kafka's `cooperative-sticky`: a partition that moves has no owner for one round."""

    __slots__ = ("_engine", "_generation_id")

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
            AssignmentFailed: owned partitions contradict each other as in `sticky_general`.

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
