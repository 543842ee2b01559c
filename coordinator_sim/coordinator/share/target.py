"""The target of a share group: who shall have which partitions.

Source: kafka 4.4, group-coordinator/.../modern/TargetAssignmentBuilder.java and
GroupMetadataManager.maybeUpdateTargetAssignment, initializedAssignmentPending.
"""

from msgspec import Struct

from coordinator_sim.assignors.share_contract import ShareMember as Asked
from coordinator_sim.assignors.share_contract import ShareTopics, Target
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import NO_TARGET, ShareMember, is_same
from coordinator_sim.coordinator.share.state import ShareState
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.records import LogRecord


class Goal(Struct, frozen=True):
    """A member's target partitions, and the epoch of that assignment."""

    epoch: int
    target: Target


class Topics(Struct, frozen=True):
    """What a heartbeat found of its group's topics.

    Args:
        epoch: Of the group, perhaps a new one.
        has_bumped: Whether it is new.
        names: What is subscribed to.
        is_homogeneous: Whether all members subscribe to the same topics.
    """

    epoch: int
    has_bumped: bool
    names: tuple[str, ...]
    is_homogeneous: bool


def goal_of(
    runtime: Runtime,
    partition: Partition,
    group: ShareGroup,
    updated: ShareMember,
    seen: Topics,
    records: list[LogRecord],
) -> Goal:
    """The target that a member goes to: the last one, or one computed now.

    Args:
        runtime: Its clock and topics.
        partition: Of the group.
        group: As it is; the member is in it.
        updated: The member with what the heartbeat says of it.
        seen: The group's topics.
        records: Gets those of a new target.
    """
    epoch = seen.epoch
    epochs = group.epochs
    if epochs.assignment_epoch >= epoch or not _is_due(runtime, group):
        return Goal(epochs.assignment_epoch, group.target_of(updated))
    members = {**dict(group.members.items()), updated.member_id: updated}
    by_name = runtime.topics.by_name
    asked = [
        Asked(
            member_id=member_id,
            has_topics=bool(member.subscribed_topic_names),
            subscribed=tuple(
                by_name[name].topic_id for name in member.subscribed_topic_names if name in by_name
            ),
            assigned=group.target_of(member),
        )
        for member_id, member in members.items()
    ]
    state = partition.share_states.get(group.group_id) or ShareState()
    topics = ShareTopics(
        {topic.topic_id: topic.partition_count for topic in by_name.values()},
        {topic_id: topic.partitions for topic_id, topic in state.initialized.items()},
    )
    found = runtime.assignors.share(asked, topics, is_homogeneous=seen.is_homogeneous)
    for member_id in java_hash_order(members):
        target = found.get(member_id, NO_TARGET)
        known = group.targets.get(member_id)
        if known is None or not is_same(target, known):
            records.append(group.target_record(member_id, target))
    now_ms = runtime.wall_ms if runtime.profile.consumer_assignment_interval else 0
    records.append(group.target_epoch_record(epoch, now_ms))
    return Goal(epoch, found.get(updated.member_id, NO_TARGET))


def _is_due(runtime: Runtime, group: ShareGroup) -> bool:
    """Whether enough time has passed since the last target. Source: canComputeNextTargetAssignment.

    QUIRK: nothing happens by itself when it has; the next heartbeat computes the target.
    """
    if not runtime.profile.consumer_assignment_interval:
        return True
    computed_ms = group.epochs.assignment_timestamp_ms
    interval_ms = runtime.config_of(group.group_id).group_share_assignment_interval_ms
    return not computed_ms or not interval_ms or runtime.wall_ms >= computed_ms + interval_ms


def has_unassigned(partition: Partition, group: ShareGroup) -> bool:
    """Whether partitions that may be assigned are in nobody's target, or more are than may be.

    Source: initializedAssignmentPending.
    """
    state = partition.share_states.get(group.group_id)
    if group.is_empty or state is None or not state.initialized:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.entries.values():
        for topic_id, partitions in target:
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        group.is_subscribed_to(topic.name)
        and (topic_id not in assigned or assigned[topic_id] != set(topic.partitions))
        for topic_id, topic in state.initialized.items()
    )
