"""Assignors from outside in the coordinator of a group of the consumer protocol (KIP-848).

They are the same as in consumers, and are asked by the names of topics, as a leader would ask.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.assignors.foreign.contract import AssignorFault, Member
from coordinator_sim.assignors.registry import make_asked_assignor
from coordinator_sim.assignors.server import ServerMember, TopicAssignment
from coordinator_sim.kafka.resources import TopicPartition

_LOG: Final = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())


class NamedTopic(Struct, frozen=True):
    """A topic as an assignor of the user's own sees it.

    Args:
        name: Its name.
        racks: Of each partition the racks of its replicas; empty where they are unknown.
    """

    name: str
    racks: tuple[tuple[str, ...], ...]


def assigned_by_own(
    name: str, epoch: int, topics: Mapping[bytes, NamedTopic], members: Sequence[ServerMember]
) -> dict[str, TopicAssignment]:
    """Ask an assignor of the user's own what each member of a group shall have.

    A fault goes to the log too, since a member is told no reason.

    Args:
        name: Its name.
        epoch: The epoch of the assignment that the members have.
        topics: By id, all to which members subscribe.
        members: In the order in which their coordinator lists them.

    Raises:
        AssignorFault: It fails, or its answer is no assignment of this group.
        ConfigError: There is no such assignor, or it runs in consumers only.
    """
    assignor = make_asked_assignor(name)
    ids = {topic.name: topic_id for topic_id, topic in topics.items()}
    asked = tuple(_named_member(member, epoch, topics) for member in members)
    by_name = {topic.name: topic.racks for topic in topics.values()}
    found: dict[str, TopicAssignment] = {}
    try:
        goal = assignor.goal(by_name, asked)
    except AssignorFault as fault:
        _LOG.error("%s", fault)
        raise
    for member_id, partitions in goal.items():
        given = found[member_id] = {}
        for each in partitions:
            given.setdefault(ids[each.topic], []).append(each.partition)
    return found


def _named_member(member: ServerMember, epoch: int, topics: Mapping[bytes, NamedTopic]) -> Member:
    owned = tuple(
        TopicPartition(topics[topic_id].name, partition)
        for topic_id, partitions in member.assigned.items()
        if topic_id in topics
        for partition in partitions
    )
    return Member(
        id=member.member_id,
        topics=tuple(topics[topic_id].name for topic_id in member.subscribed),
        owned=owned,
        generation=epoch if owned else -1,
        instance=member.group_instance_id,
        rack=member.rack_id,
    )
