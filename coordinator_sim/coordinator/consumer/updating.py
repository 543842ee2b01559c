"""What a heartbeat changes in its group: another epoch, another target, its member's next step.

The JoinGroup of a classic member does the same.

Source: kafka 4.4, GroupMetadataManager.consumerGroupHeartbeat, updateSubscriptionMetadata,
maybeUpdateTargetAssignment, hasPreferredServerAssignorChanged, maybeReconcile.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.foreign.contract import AssignorFault
from coordinator_sim.assignors.foreign.in_coordinators import NamedTopic, assigned_by_own
from coordinator_sim.assignors.server_contract import ServerMember, TopicAssignment
from coordinator_sim.coordinator.consumer.group import ConsumerGroup, Target
from coordinator_sim.coordinator.consumer.member import ConsumerGroupMember, Owned
from coordinator_sim.coordinator.consumer.reconciliation import (
    CurrentAssignmentBuilder,
    MemberTarget,
)
from coordinator_sim.coordinator.consumer.regex import RegexChange
from coordinator_sim.coordinator.consumer.subscription import CopiedCounts
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.coordinator.epoch_timers import start_rebalance
from coordinator_sim.coordinator.modern.group import CountedTopics, is_homogeneous
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.records import LogRecord


@dataclass(slots=True, frozen=True)
class MemberChange:
    """A heartbeat under way, or the JoinGroup of a classic member.

    Args:
        runtime: Its clock, topics and profile.
        group: As it is; perhaps not in its partition's table yet.
        before: The member as it was.
        updated: The member with what the heartbeat says of it.
        records: What is to be appended, in order.
        regex: What becomes of the member's expression.
    """

    runtime: Runtime
    group: ConsumerGroup
    before: ConsumerGroupMember
    updated: ConsumerGroupMember
    records: list[LogRecord]
    regex: RegexChange

    @property
    def names_changed(self) -> bool:
        """Whether the member names other topics than before."""
        return self.updated.subscribed_topic_names != self.before.subscribed_topic_names


def member_target(change: MemberChange) -> MemberTarget | Refusal:
    """Bump the group's epoch and compute its target where that is due; where the member shall go.

    At most one bump comes of a request.
    """
    epoch, alike = bump_epoch_if_due(change)
    found = _computed_or_last_target(change, epoch, alike=alike)
    return found if isinstance(found, Refusal) else _target_for(change, *found)


def last_member_target(change: MemberChange) -> MemberTarget:
    """Return what the member shall have by the current target."""
    group = change.group
    return _target_for(change, group.epochs.assignment_epoch, group.target_of(change.updated))


def _target_for(change: MemberChange, epoch: int, target: Target) -> MemberTarget:
    runtime, updated = change.runtime, change.updated
    regex = updated.subscribed_topic_regex
    matched = change.group.regex_topics(regex) if regex else frozenset[str]()
    return MemberTarget(
        epoch=epoch,
        partitions=target,
        topics=runtime.topics.ids_of(updated.subscribed_topic_names | matched),
        has_topics=bool(updated.subscribed_topic_names or matched),
        is_new=change.names_changed or change.regex is not RegexChange.NONE,
    )


def bump_epoch_if_due(change: MemberChange) -> tuple[int, bool]:
    """Look at the topics if that is due, and write another epoch where there is to be one.

    Returns:
        The group's epoch, and whether all members subscribe to the same topics.
    """
    epochs = change.group.epochs
    if change.updated.classic is not None:
        bumps = change.names_changed or change.regex is not RegexChange.NONE
    else:
        bumps = (
            change.names_changed
            or change.regex is RegexChange.RESOLVED
            or _assignor_changed(change)
            or epochs.group_epoch == 0 == change.runtime.profile.consumer_first_epoch
        )
    runtime, names = change.runtime, change.group.topic_counts.entries
    if bumps or change.group.has_metadata_expired(runtime.topics, names, runtime.wall_ms):
        return _bump_epoch(change, bumps=bumps)
    return epochs.group_epoch, epochs.is_homogeneous


def _bump_epoch(change: MemberChange, *, bumps: bool) -> tuple[int, bool]:
    """Look at the topics, and write another epoch if they changed, or if there is to be one.

    Returns:
        The group's epoch, and whether all members subscribe to the same topics.
    """
    runtime, group, before, updated = change.runtime, change.group, change.before, change.updated
    epochs = group.epochs
    topics = CountedTopics(group.topic_counts.entries)
    topics.replace(before, updated)
    regexes = dict(group.regex_counts.entries)
    old, new = before.subscribed_topic_regex or None, updated.subscribed_topic_regex or None
    if old != new:
        if old is not None and regexes.get(old) == 1:
            topics.step(group.regex_topics(old), -1, by_name=False)
        for regex, step in ((old, -1), (new, 1)):
            if regex is not None:
                regexes[regex] = regexes.get(regex, 0) + step
                if regexes[regex] == 0:
                    del regexes[regex]
    instance_id = updated.instance_id
    is_known = updated.member_id in group.members or instance_id in group.static_members
    count = len(group.members) + (not is_known)
    seen = group.topics_seen(runtime.topics, topics.counts)
    change.records.extend(seen.records)
    epoch = epochs.group_epoch
    if bumps or seen.has_changed:
        epoch += 1
        change.records.append(group.group_record(epoch, seen.metadata_hash))
    group.set_metadata_refresh(runtime.topics, epoch, runtime.wall_ms)
    if epochs.has_topic_record and runtime.profile.consumer_hashes_topics:
        change.records.append(group.topics_tombstone())
    return epoch, is_homogeneous(regexes, topics.counts, count)


def _assignor_changed(change: MemberChange) -> bool:
    """Whether the preferred assignor changes, and that bumps the epoch.

    While two assignors are preferred equally, it may change though no member's choice does: see
    `CopiedCounts`.
    """
    group, before, updated = change.group, change.before, change.updated
    is_same = updated.server_assignor == before.server_assignor
    if is_same and len(group.assignor_counts.entries) < 2:  # noqa: PLR2004 - no second one
        return False
    if not change.runtime.profile.consumer_assignor_change_bumps:
        return False
    default = change.runtime.config.group_consumer_assignors[0]
    return (group.preferred_assignor() or default) != assignor_of(change)


def assignor_of(change: MemberChange) -> str:
    """The assignor that most members would like, this one included.

    Source: ConsumerGroup.computePreferredServerAssignor.
    """
    group = change.group
    counts = CopiedCounts(group.assignor_counts.items())
    counts.replace(change.before.server_assignor, change.updated.server_assignor)
    return counts.copied().winner() or change.runtime.config.group_consumer_assignors[0]


def _computed_or_last_target(
    change: MemberChange, epoch: int, *, alike: bool
) -> tuple[int, Target] | Refusal:
    """The epoch and the target that the member goes to: the last one, or one computed now."""
    runtime, group, updated = change.runtime, change.group, change.updated
    epochs = group.epochs
    if epochs.assignment_epoch >= epoch:
        return epochs.assignment_epoch, group.target_of(updated)
    interval_ms = runtime.config_of(group.group_id).group_consumer_assignment_interval_ms
    has_interval = runtime.profile.consumer_assignment_interval
    if has_interval and not group.is_target_due(runtime.wall_ms, interval_ms):
        return epochs.assignment_epoch, group.target_of(updated)
    members, targets = group.with_member(updated)
    try:
        found = _compute_targets(change, members, targets, is_homogeneous=alike)
    except (AssignmentFailed, AssignorFault) as error:
        return Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Failed to compute a new target assignment for epoch {epoch}: {error}",
        )
    follows = runtime.profile.consumer_target_follows_replacement
    before = targets if follows else group.targets.entries
    now_ms = runtime.wall_ms if has_interval else 0
    change.records.extend(group.target_records(found, before, epoch, now_ms))
    return epoch, found[updated.member_id]


def _compute_targets(
    change: MemberChange,
    members: Mapping[str, ConsumerGroupMember],
    targets: Mapping[str, Target],
    *,
    is_homogeneous: bool,
) -> dict[str, Target]:
    """What each member shall have, in the order in which Kafka writes it.

    Args:
        change: Of a member of the group.
        members: As they will be.
        targets: What they shall have so far, which the assignor tries to keep.
        is_homogeneous: Whether all subscribe to the same topics, by Kafka's counting.

    Returns:
        A target for every member, also where it has nothing.

    Raises:
        AssignmentFailed: the assignor could not finish.
        AssignorFault: the user's own assignor failed.

    Source: modern/TargetAssignmentBuilder.java.
    """
    group, topics = change.group, change.runtime.topics
    assignor, assignors = assignor_of(change), change.runtime.assignors.consumer
    specs = [
        ServerMember(
            member_id=member_id,
            group_instance_id=member.instance_id,
            rack_id=member.rack_id,
            subscribed=_subscribed_ids(
                member.subscribed_topic_names,
                group.regex_topics(member.subscribed_topic_regex),
                topics,
            ),
            assigned=targets.get(member_id, {}),
        )
        for member_id, member in members.items()
    ]
    if assignor in assignors:
        counts = {topic.topic_id: topic.partition_count for topic in topics.by_id.values()}
        found = assignors[assignor].assign(counts, specs, is_homogeneous=is_homogeneous)
    else:
        found = _assigned_by_own(assignor, group.epochs.assignment_epoch, specs, topics)
    return {
        member_id: {
            topic_id: tuple(sorted(partitions))
            for topic_id, partitions in found.get(member_id, {}).items()
            if partitions
        }
        for member_id in java_hash_order(members)
    }


def _subscribed_ids(
    names: Iterable[str], regex_topics: frozenset[str], topics: KnownTopics
) -> tuple[bytes, ...]:
    """The ids of the topics that a member subscribes to and that exist, in Kafka's order."""
    ordered = java_hash_order(sorted(names))
    ordered += (name for name in sorted(regex_topics) if name not in names)
    found = (topics.by_name.get(name) for name in ordered)
    return tuple(topic.topic_id for topic in found if topic is not None)


def _assigned_by_own(
    assignor: str, epoch: int, specs: Sequence[ServerMember], topics: KnownTopics
) -> dict[str, TopicAssignment]:
    ids = dict.fromkeys(topic_id for member in specs for topic_id in member.subscribed)
    found = (topics.by_id[topic_id] for topic_id in ids)
    named = {
        topic.topic_id: NamedTopic(topic.name, topic.racks or ((),) * topic.partition_count)
        for topic in found
    }
    return assigned_by_own(assignor, epoch, named, specs)


def reconciled(
    change: MemberChange, partition: Partition, target: MemberTarget, owned: Owned | None
) -> ConsumerGroupMember | None:
    """Let the member take its next step; None for one that must abandon all.

    Source: GroupMetadataManager.maybeReconcile.
    """
    runtime, group, updated = change.runtime, change.group, change.updated
    builder = CurrentAssignmentBuilder(
        runtime.profile, updated, target, owned, group.partition_epoch
    )
    after = builder.build()
    if after is None or after == updated:
        return after
    change.records.append(group.assignment_record(after))
    if after.classic is None:
        start_rebalance(runtime, partition, group, after)
    return after
