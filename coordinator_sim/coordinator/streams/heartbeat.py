"""StreamsGroupHeartbeat: a member that joins, goes on, gives tasks up, or leaves.

A heartbeat makes the records of one batch, whose replay changes the group, and arms timers. What no
record tells (the configured topology, endpoints, offsets of copies) changes as it goes, and stays
where the heartbeat ends with an error after that.

Source: kafka 4.4, GroupMetadataManager.streamsGroupHeartbeat and what it calls;
GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid and
throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_members import (
    Found,
    found_member,
    start_rebalance,
    start_session,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    group_is_full,
    other_type,
    refused,
    unknown_group,
)
from coordinator_sim.coordinator.modern.consumer.heartbeat import empty_field
from coordinator_sim.coordinator.offsets.expiry import RemoveGroups
from coordinator_sim.coordinator.offsets.offset_records import group_tombstone
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.streams.answering import AnsweredHeartbeat, heartbeat_response
from coordinator_sim.coordinator.streams.group import (
    Refined,
    StreamsGroup,
    StreamsGroupState,
    TaskOffsets,
)
from coordinator_sim.coordinator.streams.internal_topics import configured_topology
from coordinator_sim.coordinator.streams.leaving import leave_streams_group
from coordinator_sim.coordinator.streams.member import (
    NO_TOPOLOGY_EPOCH,
    StreamsGroupMember,
)
from coordinator_sim.coordinator.streams.reconciliation import CurrentAssignmentBuilder
from coordinator_sim.coordinator.streams.target import (
    Aim,
    Question,
    assignment_settings,
    updated_target,
)
from coordinator_sim.coordinator.streams.tasks import NOTHING_WANTED, Tasks, is_contained, reported
from coordinator_sim.coordinator.streams.timers import start_initial_delay
from coordinator_sim.coordinator.streams.topology import (
    ConfiguredTopology,
    Topology,
    distinct,
    topology_from,
    topology_value,
)
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import EMPTY
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskOffset,
)
from coordinator_sim.messages.streams_group_records import Endpoint
from coordinator_sim.trace.epoch_records import STREAMS


def invalid_streams_heartbeat(
    request: StreamsGroupHeartbeatRequest, profile: Profile
) -> Refusal | None:
    """The first invalid field of a streams heartbeat; None for a valid request."""
    text = _unsupported(request, profile)
    if text is not None:
        return _invalid(text)
    empty = empty_field(
        MemberId=request.member_id,
        GroupId=request.group_id,
        InstanceId=request.instance_id,
        RackId=request.rack_id,
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        refusal = _join_fault(request)
        if refusal is not None:
            return refusal
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        return _invalid(
            f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        )
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    given = sum(each is not None for each in roles)
    if 0 < given < len(roles):
        return _invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        return _invalid("Topology can only be provided when (re-)joining.")
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest, profile: Profile) -> str | None:
    if not profile.streams_has_static_members and request.instance_id is not None:
        return "Static membership is not yet supported."
    if not profile.streams_takes_offsets:
        for name, is_set in (
            ("TaskOffsets", request.task_offsets is not None),
            ("TaskEndOffsets", request.task_end_offsets is not None),
            ("WarmupTasks", bool(request.warmup_tasks)),
        ):
            if is_set:
                return f"{name} are not supported yet."
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _join_fault(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    if request.rebalance_timeout_ms == -1:
        return _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            return _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        return _invalid("Topology must be non-null when (re-)joining.")
    for part in request.topology.subtopologies:
        for info in part.state_changelog_topics:
            if info.partitions != 0:
                return Refusal(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {info.name} must have an undefined partition count, but it "
                    f"is set to {info.partitions}.",
                )
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


LEAVING: Final = (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
"""Epochs of heartbeats that leave."""


_SECOND_EPOCH = 2
"""What follows the epoch 0 that groups of 4.2 begin with: members that wait have 1."""


_NO_TOPOLOGY_UPDATE: Final = Refusal(
    ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."
)
"""A member joins with another topology than the group's, of its epoch or a later one."""

_UNKNOWN_STATE: Final = Refusal(
    ErrorCode.FENCED_MEMBER_EPOCH,
    "The streams group member is in a unknown state. The member must abandon all its tasks and "
    "rejoin.",
)
"""A member whose record has a state that nobody knows."""


def handle_streams_heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: StreamsGroupHeartbeatRequest,
    parked: Parked,
) -> Effect | None:
    """Take a heartbeat whose form is right; a refusal is answered at once."""
    if request.member_epoch in LEAVING:
        outcome = leave_streams_group(runtime, partition, request)
    else:
        outcome = _heartbeat(runtime, partition, request, parked.context)
    if isinstance(outcome, Refusal):
        runtime.answer(parked, refused(StreamsGroupHeartbeatResponse, outcome))
        return None
    return outcome


class _Heartbeat(Struct, frozen=True):
    """A heartbeat under way.

    Args:
        request: The heartbeat.
        group: As it is; perhaps not in its partition's table yet.
        found: The member as it was.
        updated: The member with what the heartbeat says of it.
        topology: That the group runs, or shall run.
        configured: The same with the topics that there are.
        metadata_hash: Of its topics.
        records: What is to be appended, in order.
    """

    request: StreamsGroupHeartbeatRequest
    group: StreamsGroup
    found: Found[StreamsGroupMember]
    updated: StreamsGroupMember
    topology: Topology
    configured: ConfiguredTopology
    metadata_hash: int
    records: list[LogRecord]


def _heartbeat(
    runtime: Runtime,
    partition: Partition,
    request: StreamsGroupHeartbeatRequest,
    context: RequestContext,
) -> Effect | Refusal:
    group = _group_of(runtime, partition, request)
    if isinstance(group, Refusal):
        return group
    group.remember_from(partition.end_offset)
    records: list[LogRecord] = []
    is_conversion = partition.classic_group(request.group_id) is not None
    if is_conversion:
        records.append(group_tombstone(request.group_id))
    if request.member_epoch == JOIN_EPOCH:
        limit = runtime.config.group_streams_max_size
        refusal = _full_group(runtime.profile, group, request, limit)
        if refusal is not None:
            return refusal
    found = _found_member(group, request)
    if isinstance(found, Refusal):
        return found
    records += found.records
    heartbeat = _updated_heartbeat(runtime, group, request, found, context, records)
    if isinstance(heartbeat, Refusal):
        return heartbeat
    refusal = _invalid_tasks(heartbeat) or _report_offsets(heartbeat)
    if refusal is not None:
        return refusal
    aim = _aim(runtime, partition, heartbeat)
    after = _reconciled(runtime, partition, heartbeat, aim)
    if after is None:
        return _UNKNOWN_STATE
    start_session(runtime, partition, group, request.member_id)
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    answered = AnsweredHeartbeat(
        request=request,
        api_version=context.api_version,
        group=group,
        found=found,
        updated=heartbeat.updated,
        after=after,
        configured=heartbeat.configured,
        delay=aim.delay,
        is_stored=request.group_id in partition.groups,
    )
    response = heartbeat_response(runtime, answered)
    removal = RemoveGroups(runtime, partition, "converted") if is_conversion else None
    return Effect(
        records=tuple(records),
        response=response,
        apply=removal,
        internal_topics=heartbeat.configured.missing_topics,
    )


def _group_of(
    runtime: Runtime, partition: Partition, request: StreamsGroupHeartbeatRequest
) -> StreamsGroup | Refusal:
    """The group of a heartbeat; a new one, not in the partition's table yet, for one that joins.

    An Empty classic group gives way to it, and its offsets stay.

    Source: getOrCreateStreamsGroup and getStreamsGroupOrThrow.
    """
    group_id = request.group_id
    known = partition.groups.get(group_id)
    if isinstance(known, StreamsGroup):
        return known
    if request.member_epoch != JOIN_EPOCH:
        return (unknown_group if known is None else other_type)(STREAMS, group_id)
    if known is None or (isinstance(known, Group) and known.state is EMPTY):
        return StreamsGroup(Timeline(), group_id, runtime.profile)
    return other_type(STREAMS, group_id)


def _full_group(
    profile: Profile, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, limit: int
) -> Refusal | None:
    """Why a group takes nobody in; None if it does.

    QUIRK: up to 4.3 a full group refuses members that join again, too.
    """
    if profile.streams_full_group_takes_members and (
        (request.instance_id is not None and request.instance_id in group.static_members)
        or request.member_id in group.members
    ):
        return None
    return None if len(group.members) < limit else group_is_full(STREAMS, limit)


def _found_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> Found[StreamsGroupMember] | Refusal:
    """The member of a heartbeat, its epoch checked."""
    owner = None if request.instance_id is None else group.static_member(request.instance_id)
    if owner is not None and owner.member_id != request.member_id:
        # QUIRK: this stays, also where the heartbeat is refused.
        _relabel(group, owner.member_id, request.member_id)

    def has_no_more(member: StreamsGroupMember) -> bool:
        held = member.assigned
        return (
            is_contained(request.active_tasks, held.active)
            and is_contained(request.standby_tasks, held.standby)
            and is_contained(request.warmup_tasks, held.warmup)
        )

    new = StreamsGroupMember(member_id=request.member_id)
    return found_member(group, request, new, has_no_more, rejoins=True)


def _relabel(group: StreamsGroup, old_id: str, new_id: str) -> None:
    targets = dict(group.refined.targets)
    inherited = targets.pop(old_id, None)
    if inherited is not None:
        targets[new_id] = inherited
        group.refine(Refined(group.refined.epoch, targets))


def _updated_heartbeat(
    runtime: Runtime,
    group: StreamsGroup,
    request: StreamsGroupHeartbeatRequest,
    found: Found[StreamsGroupMember],
    context: RequestContext,
    records: list[LogRecord],
) -> _Heartbeat | Refusal:
    """Update the member and the topology, and see to the topics."""
    updated = _updated(runtime, found.member, request, context)
    if updated != found.member:
        records.append(group.member_record(updated))
    topology = _topology(group, request, records)
    if isinstance(topology, Refusal):
        return topology
    epochs = group.epochs
    configured, metadata_hash = group.configured(), epochs.metadata_hash
    names = () if epochs.topology is None else epochs.topology.required_topics()
    if (
        epochs.topology is None
        or configured is None
        or group.has_metadata_expired(runtime.topics, names, runtime.wall_ms)
    ):
        metadata_hash = runtime.topics.hash_of_all(topology.required_topics())
        is_new = epochs.topology is None or metadata_hash != epochs.metadata_hash
        if is_new or configured is None:
            made = configured_topology(topology, runtime.topics)
            if isinstance(made, Refusal):
                return made
            configured = made
            group.configure(configured)
    return _Heartbeat(request, group, found, updated, topology, configured, metadata_hash, records)


def _updated(
    runtime: Runtime,
    member: StreamsGroupMember,
    request: StreamsGroupHeartbeatRequest,
    context: RequestContext,
) -> StreamsGroupMember:
    """The member updated by a heartbeat; fields that the request leaves unset stay unchanged.

    Source: StreamsGroupMember.Builder.maybeUpdate...
    """
    endpoint = member.user_endpoint
    if request.user_endpoint is not None:
        endpoint = Endpoint(request.user_endpoint.host, request.user_endpoint.port)
    elif request.member_epoch == JOIN_EPOCH and runtime.profile.streams_join_says_endpoint:
        endpoint = None
    tags = member.client_tags
    if request.client_tags is not None:
        distinct((each.key for each in request.client_tags), "a tag")
        tags = {each.key: each.value for each in request.client_tags}
    timeout_ms = request.rebalance_timeout_ms
    topology = request.topology
    return replace(
        member,
        instance_id=_changed(request.instance_id, member.instance_id),
        rack_id=_changed(request.rack_id, member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        client_id=context.client_id,
        client_host=context.client_host,
        process_id=_changed(request.process_id, member.process_id),
        user_endpoint=endpoint,
        client_tags=tags,
    )


def _changed(sent: str | None, current: str | None) -> str | None:
    return current if sent is None else sent


def _topology(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, records: list[LogRecord]
) -> Topology | Refusal:
    """The topology that the group runs, or shall run. Source: maybeUpdateTopology."""
    known = group.epochs.topology
    if request.topology is None:
        if known is None:
            raise OperationAborted(f"group {group.group_id}: there is no topology")
        return known
    value = topology_value(request.topology)
    wanted = topology_from(value)
    if known is None:
        records.append(group.topology_record(value))
        return wanted
    if known.epoch <= wanted.epoch and not known.is_same_as(wanted):
        return _NO_TOPOLOGY_UPDATE
    return known


def _invalid_tasks(heartbeat: _Heartbeat) -> Refusal | None:
    """Why reported tasks are refused. Source: throwIfRequestContainsInvalidTasks."""
    parts, request = heartbeat.configured.subtopologies, heartbeat.request
    if not heartbeat.configured.is_ready or parts is None:
        return None
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for each in tasks or ():
            part = parts.get(each.subtopology_id)
            if part is None:
                return _no_subtopology(each.subtopology_id)
            for number in each.partitions:
                if not 0 <= number < part.task_count:
                    return _no_task(each.subtopology_id, number, part.task_count)
    return None


def _report_offsets(heartbeat: _Heartbeat) -> Refusal | None:
    """Keep how far the copies of the member are. Source: MemberTaskOffsets.update."""
    request, group = heartbeat.request, heartbeat.group
    if request.task_offsets is None and request.task_end_offsets is None:
        return None
    known = group.offsets_of(request.member_id)
    offsets, ends = known.offsets, known.end_offsets
    for told in (request.task_offsets, request.task_end_offsets):
        if told is None:
            continue
        found = _nested(told)
        if isinstance(found, Refusal):
            return found
        if told is request.task_offsets:
            offsets = found
        else:
            ends = found
    group.task_offsets[request.member_id] = TaskOffsets(offsets, ends)
    return None


def _nested(offsets: tuple[TaskOffset, ...]) -> dict[str, dict[int, int]] | Refusal:
    found: dict[str, dict[int, int]] = {}
    for each in offsets:
        numbers = found.setdefault(each.subtopology_id, {})
        if each.partition in numbers:
            return _repeated_offset(each.subtopology_id, each.partition)
        numbers[each.partition] = each.offset
    return found


def _needs_target(heartbeat: _Heartbeat, settings: dict[str, str]) -> bool:
    """Whether the heartbeat is reason for another target.

    A static member that comes back as it was is none.

    Source: hasStreamsMemberMetadataChanged, hasEpochRelevantMemberConfigChanged.
    """
    before, updated, epochs = heartbeat.found.member, heartbeat.updated, heartbeat.group.epochs
    has_changed = updated != before
    if has_changed and heartbeat.request.instance_id is not None:
        has_changed = (
            updated.topology_epoch != before.topology_epoch
            or updated.rack_id != before.rack_id
            or updated.client_tags != before.client_tags
            or updated.process_id != before.process_id
        )
    return (
        has_changed
        or heartbeat.metadata_hash != epochs.metadata_hash
        or _validated(heartbeat) != epochs.validated_topology_epoch
        or settings != epochs.settings
    )


def _validated(heartbeat: _Heartbeat) -> int:
    return heartbeat.topology.epoch if heartbeat.configured.is_ready else NO_TOPOLOGY_EPOCH


def _aim(runtime: Runtime, partition: Partition, heartbeat: _Heartbeat) -> Aim:
    """Begin another epoch where that is due; where the members go then.

    Source: streamsGroupHeartbeat, refineAssignment (which changes nothing in 4.4) and
    refinedAssignmentForEpoch.
    """
    group, epochs, member_id = heartbeat.group, heartbeat.group.epochs, heartbeat.request.member_id
    settings = assignment_settings(runtime, heartbeat.group.group_id)
    recomputes = _needs_target(heartbeat, settings)
    refined = None
    deviates = False
    if not recomputes and runtime.profile.streams_refines and group.state is _STABLE:
        refined = dict(group.targets.entries)
        held = heartbeat.updated.assigned
        deviates = not refined.get(member_id, NOTHING_WANTED).is_same_as(held)
    epoch = epochs.group_epoch
    if recomputes or deviates:
        epoch = epoch + 1 if epoch else _SECOND_EPOCH
        begun = replace(
            epochs,
            group_epoch=epoch,
            metadata_hash=heartbeat.metadata_hash,
            validated_topology_epoch=_validated(heartbeat),
            settings=settings,
        )
        heartbeat.records.append(group.group_record(begun))
        group.set_metadata_refresh(runtime.topics, epoch, runtime.wall_ms)
    if group.is_empty:
        start_initial_delay(runtime, partition, group.group_id)
    if deviates:
        timestamp_ms = epochs.assignment_timestamp_ms
        heartbeat.records.append(group.target_epoch_record(epoch, timestamp_ms))
        aim = Aim(epoch, group.with_member(heartbeat.updated)[1])
    else:
        question = Question(group, epoch, heartbeat.updated, heartbeat.configured, settings)
        aim = updated_target(runtime, question, heartbeat.records)
    return _refined(runtime, group, aim, refined)


_STABLE = StreamsGroupState.STABLE


def _refined(
    runtime: Runtime, group: StreamsGroup, aim: Aim, refined: dict[str, Tasks] | None
) -> Aim:
    """The aim with the targets that its epoch was refined to.

    They are remembered for all members while the group may have warm-up replicas.
    """
    if not runtime.profile.streams_refines:
        return aim
    keeps = runtime.config_of(group.group_id).group_streams_num_warmup_replicas > 0
    if refined is None:
        known = group.refined
        if known.epoch == aim.epoch:
            return replace(aim, targets=dict(known.targets))
        refined = aim.targets
    if keeps:
        group.refine(Refined(aim.epoch, refined))
    return replace(aim, targets=refined)


def _reconciled(
    runtime: Runtime, partition: Partition, heartbeat: _Heartbeat, aim: Aim
) -> StreamsGroupMember | None:
    """Let the member take its next step; None for one that must abandon all.

    Source: GroupMetadataManager.maybeReconcile.
    """
    request, updated, group = heartbeat.request, heartbeat.updated, heartbeat.group
    if updated.is_reconciled_to(aim.epoch):
        return updated
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    owned = None
    if roles[0] is not None and roles[1] is not None and roles[2] is not None:
        owned = Tasks(reported(roles[0]), reported(roles[1]), reported(roles[2]))
    builder = CurrentAssignmentBuilder(
        member=updated,
        epoch=aim.epoch,
        target=aim.targets.get(request.member_id, NOTHING_WANTED),
        owned=owned,
        owners=group.owners(),
        swaps_roles=runtime.profile.streams_swaps_roles,
    )
    after = builder.build()
    if after is None or after == updated:
        return after
    heartbeat.records.append(group.assignment_record(after))
    start_rebalance(runtime, partition, group, after)
    return after


def _no_subtopology(name: str) -> Refusal:
    """A member reports tasks of no subtopology."""
    return Refusal(ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")


def _no_task(name: str, number: int, count: int) -> Refusal:
    """A member reports a task that there is none of."""
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Task {number} for subtopology {name} is invalid. Number of tasks for this subtopology: "
        f"{count}",
    )


def _repeated_offset(name: str, number: int) -> Refusal:
    """A member reports two offsets of a task."""
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Task offsets contain a duplicate entry for subtopology {name} and partition {number}.",
    )
