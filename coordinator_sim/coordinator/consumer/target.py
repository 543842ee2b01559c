"""The target of a consumer group: who shall have which partitions.

Source: kafka 4.4, group-coordinator/.../modern/TargetAssignmentBuilder.java,
UpdatedMembersAndTargetAssignmentView.java and GroupMetadataManager.maybeUpdateTargetAssignment.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.foreign.contract import AssignorFault
from coordinator_sim.assignors.foreign.in_coordinators import NamedTopic, assigned_by_own
from coordinator_sim.assignors.server_contract import ServerAssignor, ServerMember, TopicAssignment
from coordinator_sim.coordinator.consumer.group import ConsumerGroup, Target
from coordinator_sim.coordinator.consumer.member import ConsumerMember
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.orders.iteration_order import java_hash_order


class TargetFailed(Struct, frozen=True):
    """An assignor could not finish; the text says why."""

    text: str


def subscribed_ids(
    names: Iterable[str], regex_topics: frozenset[str], topics: KnownTopics
) -> tuple[bytes, ...]:
    """The ids of the topics that a member subscribes to and that exist, in Kafka's order."""
    ordered = java_hash_order(sorted(names))
    ordered += (name for name in sorted(regex_topics) if name not in names)
    found = (topics.by_name.get(name) for name in ordered)
    return tuple(topic.topic_id for topic in found if topic is not None)


class View(Struct, frozen=True):
    """The members and their targets once a member is added or replaced.

    Args:
        members: In the order of Kafka's overlay.
        targets: What they shall have so far; one without an entry never had a target.
    """

    members: dict[str, ConsumerMember]
    targets: dict[str, Target]


def view_with(group: ConsumerGroup, updated: ConsumerMember) -> View:
    """The group with a member that is not in its records yet.

    A static member takes the place and the target of the one whose instance id it has.

    Source: UpdatedMembersAndTargetAssignmentView.addOrUpdateMember.
    """
    members = dict(group.members.items())
    targets = dict(group.targets.entries)
    members[updated.member_id] = updated
    if updated.instance_id is not None:
        predecessor = group.static_members.get(updated.instance_id)
        if predecessor is not None and predecessor != updated.member_id:
            members.pop(predecessor, None)
            inherited = targets.pop(predecessor, None)
            if inherited is not None:
                targets[updated.member_id] = inherited
    return View(members, targets)


def computed_targets(
    group: ConsumerGroup,
    view: View,
    topics: KnownTopics,
    *,
    assignors: Mapping[str, ServerAssignor],
    assignor: str,
    is_homogeneous: bool,
) -> dict[str, Target] | TargetFailed:
    """What each member shall have, in the order in which Kafka writes it.

    Args:
        group: Whose expressions are resolved.
        view: Its members as they will be, with the targets that the assignor tries to keep.
        topics: Of the cluster.
        assignors: Those that the coordinator brings along.
        assignor: Its name.
        is_homogeneous: Whether all subscribe to the same topics, by Kafka's counting.

    Returns:
        A target for every member, also where it has nothing.
    """
    asked = [
        ServerMember(
            member_id=member_id,
            group_instance_id=member.instance_id,
            rack_id=member.rack_id,
            subscribed=subscribed_ids(
                member.subscribed_topic_names,
                group.regex_topics(member.subscribed_topic_regex),
                topics,
            ),
            assigned=view.targets.get(member_id, {}),
        )
        for member_id, member in view.members.items()
    ]
    try:
        if assignor in assignors:
            counts = {topic.topic_id: topic.partition_count for topic in topics.by_id.values()}
            found = assignors[assignor].assign(counts, asked, is_homogeneous=is_homogeneous)
        else:
            found = _assigned_by_own(assignor, group.epochs.assignment_epoch, asked, topics)
    except (AssignmentFailed, AssignorFault) as error:
        return TargetFailed(str(error))
    return {
        member_id: {
            topic_id: tuple(sorted(partitions))
            for topic_id, partitions in found.get(member_id, {}).items()
            if partitions
        }
        for member_id in java_hash_order(view.members)
    }


def _assigned_by_own(
    assignor: str, epoch: int, asked: Sequence[ServerMember], topics: KnownTopics
) -> dict[str, TopicAssignment]:
    ids = dict.fromkeys(topic_id for member in asked for topic_id in member.subscribed)
    known = (topics.by_id[topic_id] for topic_id in ids)
    named = {
        topic.topic_id: NamedTopic(topic.name, topic.racks or ((),) * topic.partition_count)
        for topic in known
    }
    return assigned_by_own(assignor, epoch, named, asked)
