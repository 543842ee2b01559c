"""ConsumerGroupHeartbeat: a member joins, says what it has, and is told what to have.

A handler changes nothing in the group: it makes the records of one batch, whose replay changes it,
and arms timers.

Source: kafka 4.4, GroupMetadataManager.consumerGroupHeartbeat and what it calls;
GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.foreign.contract import AssignorFault
from coordinator_sim.assignors.foreign.in_coordinators import NamedTopic, assigned_by_own
from coordinator_sim.assignors.server import ServerMember, TopicAssignment
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_members import (
    Found,
    found_member,
    member_of,
    replacing_member,
    start_rebalance,
    start_session,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    group_is_full,
    other_type,
    refused,
    unknown_group,
    unknown_member,
)
from coordinator_sim.coordinator.modern.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    CopiedCounts,
    Epochs,
    Owned,
    Target,
    is_subset,
)
from coordinator_sim.coordinator.modern.consumer.leaving import leave_consumer_group
from coordinator_sim.coordinator.modern.consumer.reconciliation import (
    CurrentAssignmentBuilder,
    MemberTarget,
)
from coordinator_sim.coordinator.modern.consumer.regex import RegexChange, change_regex
from coordinator_sim.coordinator.modern.consumer.upgrade import upgraded
from coordinator_sim.coordinator.modern.group import CountedTopics, is_homogeneous
from coordinator_sim.coordinator.offsets.expiry import CONVERTED, RemoveGroups
from coordinator_sim.coordinator.offsets.offset_records import group_tombstone
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import EMPTY
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
    TopicPartitions,
)
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.epoch_groups import NOTHING_BESIDE, Beside
from coordinator_sim.trace.epoch_records import CONSUMER

_TRIMMED: Final = "".join(chr(code) for code in range(ord(" ") + 1))
"""What Java's String.trim takes away."""

_NAMED_VERSION: Final = 1
"""First version whose members make their own ids. Source: KIP-1082."""

_UNKNOWN_STATE: Final = Refusal(
    ErrorCode.FENCED_MEMBER_EPOCH,
    "The consumer group member is in a unknown state. The member must abandon all its partitions "
    "and rejoin.",
)
"""A member whose record has a state that nobody knows."""


def handle_consumer_heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    parked: Parked,
) -> Effect | None:
    """Take a heartbeat whose form is right; a refusal is answered at once."""
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        outcome = leave_consumer_group(runtime, partition, request)
    else:
        outcome = _heartbeat(runtime, partition, request, parked.context)
    if isinstance(outcome, Refusal):
        runtime.answer(parked, refused(ConsumerGroupHeartbeatResponse, outcome))
        return None
    return outcome


def _heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    context: RequestContext,
) -> Effect | Refusal:
    records: list[LogRecord] = []
    group = _group_of(runtime, partition, request, records)
    if isinstance(group, Refusal):
        return group
    limit = runtime.config.group_consumer_max_size
    refusal = full_group(runtime.profile, group, request.member_id, request.instance_id, limit)
    if refusal is not None:
        return refusal
    member_id = request.member_id or new_member_id(runtime)
    owned = None if request.topic_partitions is None else _owned(request.topic_partitions)
    found = found_member(
        group,
        request,
        ConsumerGroupMember(member_id=member_id),
        lambda member: is_subset(owned, member.assigned),
        rejoins=runtime.profile.consumer_rejoins_with_epoch_zero,
    )
    if isinstance(found, Refusal):
        return found
    records += found.records
    before, updated = found.member, _updated(found.member, request, context)
    if updated != before:
        records.append(group.member_record(updated))
    # Where the group has no expression, and this member no new one, `change_regex` does nothing.
    regex_change: RegexChange | Refusal = RegexChange.NONE
    is_regex_new = updated.subscribed_topic_regex != before.subscribed_topic_regex
    if is_regex_new or group.regex_counts.entries:
        regex_change = change_regex(runtime, partition, group, (before, updated), records, context)
    if isinstance(regex_change, Refusal):
        return regex_change
    change = MemberChange(runtime, group, before, updated, records, regex_change)
    target = member_target(change)
    if isinstance(target, Refusal):
        return target
    after = reconciled(change, partition, target, owned)
    if after is None:
        return _UNKNOWN_STATE
    start_session(runtime, partition, group, member_id)
    is_upgrade = isinstance(partition.groups.get(request.group_id), Group)
    removal = RemoveGroups(runtime, partition, CONVERTED) if is_upgrade else None
    response = _answer(runtime, request, before, after)
    beside = Beside(assignor=assignor_of(change)) if runtime.tracing and records else NOTHING_BESIDE
    return Effect(records=tuple(records), response=response, apply=removal, beside=beside)


def _group_of(
    runtime: Runtime,
    partition: Partition,
    request: ConsumerGroupHeartbeatRequest,
    records: list[LogRecord],
) -> ConsumerGroup | Refusal:
    """The group of a heartbeat.

    Where a member joins and there is none, a new group that only makes records; their replay makes
    the one that stays (`Partition._persisted`). A classic group gives way to it, and its offsets
    stay; `records` get what that takes.

    Source: getOrMaybeCreateConsumerGroup.
    """
    group_id = request.group_id
    known = partition.groups.get(group_id)
    joins = request.member_epoch == JOIN_EPOCH
    if isinstance(known, ConsumerGroup):
        return known
    if not joins:
        return (unknown_group if known is None else other_type)(CONSUMER, group_id)
    if isinstance(known, Group):
        if known.state is not EMPTY:
            return upgraded(runtime, partition, known, records)
        records.append(group_tombstone(group_id))
    elif known is not None:
        return other_type(CONSUMER, group_id)
    return ConsumerGroup(Timeline(), group_id, runtime.profile)


def _owned(reported: tuple[TopicPartitions, ...]) -> Owned:
    """The partitions that a member reports to have."""
    return tuple((each.topic_id, each.partitions) for each in reported)


def _answer(
    runtime: Runtime,
    request: ConsumerGroupHeartbeatRequest,
    before: ConsumerGroupMember,
    after: ConsumerGroupMember,
) -> ConsumerGroupHeartbeatResponse:
    """The answer: what the member has is told when it may not know it."""
    is_full = (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )
    is_told = request.member_epoch == JOIN_EPOCH or is_full
    if not is_told and before.assigned is not after.assigned:
        is_told = _has_changed(runtime, before.assigned, after.assigned)
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=runtime.config_of(
            request.group_id
        ).group_consumer_heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if is_told else None,
    )


def _has_changed(runtime: Runtime, before: Epochs, after: Epochs) -> bool:
    """Whether a member has other partitions, or the same since another epoch where that counts."""
    if before == after:
        return False
    if runtime.profile.consumer_stores_assignment_epochs:
        return True
    return {topic: set(held) for topic, held in before.items()} != {
        topic: set(held) for topic, held in after.items()
    }


def _assignment(assigned: Epochs) -> Assignment:
    return Assignment(
        tuple(
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, tuple(sorted(held)))
            for topic_id, held in sorted(assigned.items())
        )
    )


# -- what a request must look like ----------------------------------------------------------------


def invalid_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, config: CoordinatorConfig
) -> Refusal | None:
    """Return the first fault that a heartbeat shows without its group; None if valid."""
    epoch = request.member_epoch
    has_id = api_version >= _NAMED_VERSION or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    empty = empty_field(
        MemberId=request.member_id if has_id else None,
        GroupId=request.group_id,
        InstanceId=request.instance_id,
        RackId=request.rack_id,
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    text = None if epoch > JOIN_EPOCH else _epoch_fault(request)
    if text is not None:
        return _invalid(text)
    assignor = request.server_assignor
    if assignor is not None and assignor not in config.group_consumer_assignors:
        known = ", ".join(java_hash_order(config.group_consumer_assignors))
        return Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {known}.",
        )
    return None


def empty_field(**fields: str | None) -> str | None:
    """The name of the first field that is empty but not null. Source: throwIfEmptyString."""
    for name, text in fields.items():
        if text is not None and not text.strip(_TRIMMED):
            return name
    return None


def _epoch_fault(request: ConsumerGroupHeartbeatRequest) -> str | None:
    """What is wrong for a member at the request's epoch; None if nothing is."""
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            return "InstanceId can't be null."
    elif epoch < STATIC_LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


# -- the member -----------------------------------------------------------------------------------


def full_group(
    profile: Profile,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    limit: int,
) -> Refusal | None:
    """Why a group takes nobody in; None if it does. Members are never refused."""
    replaces = instance_id is not None and instance_id in group.static_members
    if replaces and profile.consumer_full_group_takes_replacement:
        return None
    is_known = bool(member_id) and member_id in group.members.entries
    return None if is_known or len(group.members) < limit else group_is_full(CONSUMER, limit)


def new_member_id(runtime: Runtime) -> str:
    """An id for a member that brings none: a Kafka Uuid. Source: Uuid.randomUuid.

    Terminates: one in three draws has a dash and is refused, and ids never run out.
    """
    while True:
        drawn = bytes.fromhex(runtime.ids.new_uuid().replace("-", ""))
        text = urlsafe_b64encode(drawn).decode().rstrip("=")
        is_refused = "-" in text if runtime.profile.uuids_without_dash else text[0] == "-"
        if not is_refused:
            return text


def found_classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, creates: bool
) -> Found[ConsumerGroupMember] | Refusal:
    """The member of a JoinGroup; its epoch does not count, and a live one may be replaced.

    Args:
        group: As it is.
        member_id: Of the request, or one that was made for it.
        instance_id: Of a static member.
        creates: Whether an unknown member is a new one.
    """
    if instance_id is not None:
        lost_id = group.lost_member(instance_id)
        if lost_id is not None:
            return unknown_member(group.group_id, lost_id)
        if not creates:
            member = member_of(group, member_id, instance_id)
            return member if isinstance(member, Refusal) else Found(member)
        owner = group.static_member(instance_id)
        if owner is not None:
            return replacing_member(group, owner, member_id)
    return Found(group.joined(member_id))


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupMember:
    """Return the member updated from its heartbeat; fields that the heartbeat omits stay.

    Source: ConsumerGroupMember.Builder.maybeUpdate...
    """
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    assignor = request.server_assignor
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if assignor is None else assignor,
        subscribed_topic_names=(
            member.subscribed_topic_names if names is None else frozenset(names)
        ),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


# -- the group epoch, the target and the member's next assignment ---------------------------------


class MemberChange(Struct, frozen=True):
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
    updated = change.updated
    regex = updated.subscribed_topic_regex
    matched = change.group.regex_topics(regex) if regex else frozenset[str]()
    return MemberTarget(
        epoch=epoch,
        partitions=target,
        names=updated.subscribed_topic_names | matched,
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
    if not target.is_new and updated.is_reconciled_to(target.epoch):
        return updated
    builder = CurrentAssignmentBuilder(
        runtime.profile, runtime.topics, updated, target, owned, group.partition_epoch
    )
    after = builder.build()
    if after is None or after == updated:
        return after
    change.records.append(group.assignment_record(after))
    if after.classic is None:
        start_rebalance(runtime, partition, group, after)
    return after
