"""An assignor from outside as a consumer's assignor: it is asked, and its answer is checked."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.assignors.foreign.contract import (
    Answer,
    AssignFunction,
    AssignorFault,
    Member,
    Topics,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, is_cooperative

_SHOWN_MEMBERS: Final = 3

Assignment = dict[str, list[TopicPartition]]


class AskedAssignor:
    """A consumer assignor that asks a function, without memory of its own.

    The function answers with the goal. A cooperative assignor hands it over in two rebalances, as
    Kafka's does: what another member still owns is given to nobody until that member let it go.

    Args:
        name: Protocol name in JoinGroup.
        function: Asked with topics and members; raises AssignorFault where it cannot answer.
    """

    def __init__(self, name: str, function: AssignFunction) -> None:
        self._name = name
        self._function = function

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return self._name

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Supported rebalance protocols, as its name says."""
        if is_cooperative(self._name):
            return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002  contract
        """Return None: members tell what they own in their subscriptions."""
        return None

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Do nothing: the assignor has no memory."""

    def assign(self, topics: TopicRacks, members: Sequence[AssignorMember]) -> Assignment:
        """Return the partitions of each member, sorted.

        Raises:
            AssignorFault: the assignor fails, or its answer is no assignment of this group.
        """
        asked = tuple(map(asked_member, members))
        known: Topics = {topic: tuple(map(tuple, racks)) for topic, racks in topics.items()}
        goal = self.goal(known, asked)
        return _handed_over(goal, asked) if is_cooperative(self._name) else goal

    def goal(self, topics: Topics, members: tuple[Member, ...]) -> Assignment:
        """Return each member's final assignment, sorted, before cooperative revocations.

        Raises:
            AssignorFault: the assignor fails, or its answer is no assignment of this group.
        """
        return checked(self._name, self._function(topics, members), topics, members)


def asked_member(member: AssignorMember) -> Member:
    """A member as assignors from outside see it."""
    subscription = member.subscription
    return Member(
        id=member.member_id,
        topics=subscription.topics,
        owned=subscription.owned_partitions,
        generation=subscription.generation_id,
        instance=member.group_instance_id,
        rack=subscription.rack_id,
    )


def checked(name: str, answer: Answer, topics: Topics, members: Sequence[Member]) -> Assignment:
    """Return an answer as the assignment of every member, in their order, partitions sorted.

    Raises:
        AssignorFault: a member or partition is unknown, is not subscribed to, or is there twice.
    """
    if not isinstance(answer, Mapping):
        raise AssignorFault(
            f"assignor {name!r} answers with {type(answer).__name__}: must be the partitions of "
            "each member, such as {'consumer-1': [('orders', 0)]}"
        )
    by_id = {member.id: member for member in members}
    owners: dict[TopicPartition, str] = {}
    for member_id, given in answer.items():
        partitions = [_partition(name, member_id, each) for each in _listed(name, member_id, given)]
        member = by_id.get(member_id)
        if member is None and partitions:
            shown = ", ".join(list(by_id)[:_SHOWN_MEMBERS])
            raise AssignorFault(
                f"assignor {name!r} gives {_text(partitions[0])} to {member_id!r}, which is not "
                f"among the {len(by_id)} members of the group ({shown})"
            )
        subscribed = dict.fromkeys(member.topics) if member is not None else {}
        for partition in partitions:
            _check_partition(name, member_id, partition, topics, subscribed)
            other = owners.setdefault(partition, member_id)
            if other != member_id:
                raise AssignorFault(
                    f"assignor {name!r} gives {_text(partition)} to {other} and to {member_id}: "
                    "a partition has one owner"
                )
        if len(dict.fromkeys(partitions)) < len(partitions):
            twice = Counter(partitions).most_common(1)[0][0]
            raise AssignorFault(f"assignor {name!r} gives {_text(twice)} to {member_id} twice")
    found: Assignment = {member_id: [] for member_id in by_id}
    for partition in sorted(owners):
        found[owners[partition]].append(partition)
    return found


def _listed(name: str, member_id: str, given: object) -> Iterable[object]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return given
    raise AssignorFault(
        f"assignor {name!r} gives {given!r} to {member_id}: must be a list of partitions, such as "
        "[('orders', 0)]"
    )


def _partition(name: str, member_id: str, given: object) -> TopicPartition:
    match given:
        case (str() as topic, int() as number) if not isinstance(number, bool):
            return TopicPartition(topic, number)
    raise AssignorFault(
        f"assignor {name!r} gives {given!r} to {member_id}: a partition is a topic and a number, "
        "such as ('orders', 0)"
    )


def _check_partition(
    name: str,
    member_id: str,
    partition: TopicPartition,
    topics: Topics,
    subscribed: Mapping[str, None],
) -> None:
    gives = f"assignor {name!r} gives {_text(partition)} to {member_id}"
    racks = topics.get(partition.topic)
    if racks is None:
        raise AssignorFault(f"{gives}: there is no such topic")
    if not 0 <= partition.partition < len(racks):
        raise AssignorFault(f"{gives}: topic {partition.topic} has {len(racks)} partitions, from 0")
    if partition.topic not in subscribed:
        raise AssignorFault(f"{gives}, which does not subscribe to {partition.topic}")


def _text(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _handed_over(goal: Assignment, members: Sequence[Member]) -> Assignment:
    """Return the goal without what another member owns, as of the latest generation that owns it.

    Source: kafka trunk, CooperativeStickyAssignor.adjustAssignment.
    """
    owners: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        for partition in member.owned:
            generation = owners.get(partition, (-1, ""))[0]
            if member.generation >= generation:
                owners[partition] = (member.generation, member.id)
    return {
        member_id: [each for each in own if owners.get(each, (0, member_id))[1] == member_id]
        for member_id, own in goal.items()
    }
