"""Trace events of consumer, share and streams groups. Called only while the trace is on.

`trace.epoch_batches` derives events from a batch of records, for this trace and for an offsets
topic that is read. This module adds the facts that only the coordinator has: topic names, requests
and their responses, and loads.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from msgspec.structs import replace

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, EpochGroup
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.partition import Partition
from coordinator_sim.coordinator.streams.group import StreamsGroup, StreamsGroupState
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import DEAD, EMPTY, STABLE, GroupState, StreamsStatus
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.group_records import GroupMetadataKey
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.trace import epoch_members, epoch_records
from coordinator_sim.trace.epoch_batches import load, told_by
from coordinator_sim.trace.epoch_groups import (
    GROUP_TYPE,
    SCANNED,
    EpochGroupStory,
    EpochValue,
)
from coordinator_sim.trace.events import Event

AssignedGroup = ConsumerGroup | ShareGroup | StreamsGroup
"""A group with epochs."""
EpochHeartbeat = (
    ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
)
"""A heartbeat of a member of such a group."""
EpochAnswer = (
    ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse
)
"""Its answer."""


class Trace(Protocol):
    """What a coordinator has and does for its trace."""

    config: CoordinatorConfig
    profile: Profile
    topics: KnownTopics
    stories: dict[str, EpochGroupStory]
    tells_heartbeats: bool

    def partition_index(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""
        ...

    def emit(self, event: Event, **columns: Any) -> None:  # noqa: ANN401 - columns differ in type
        """Add an event; the columns are those of `TraceEvent`."""
        ...


# -- records -----------------------------------------------------------------------------------


def trace_records(trace: Trace, partition: Partition, effect: Effect) -> None:
    """Tell what the records of groups with epochs in a batch mean, before they are applied."""
    by_group = _by_group(effect.records)
    if not by_group:
        return
    for group_id, (group_type, records) in by_group.items():
        story = _story(trace, partition, group_id, group_type)
        beside = replace(
            effect.beside,
            name_of=lambda topic_id: _topic_name(trace, topic_id),
            had_members=_had_members(partition, group_id),
            has_hash=trace.profile.consumer_hashes_topics,
        )
        for event, columns in told_by(story, records, beside):
            trace.emit(event, group_id=group_id, offsets_partition=partition.index, **dict(columns))
            if event is Event.GROUP_DEAD:
                trace.stories.pop(group_id, None)


def _by_group(records: tuple[LogRecord, ...]) -> dict[str, tuple[str, list[LogRecord]]]:
    """Type and records by group, of those groups that have some of a group with epochs."""
    found: dict[str, list[LogRecord]] = {}
    types: dict[str, str] = {}
    for record in records:
        key = record.key
        group_type = epoch_records.TYPE_OF_KEY.get(type(key))
        if group_type is not None:
            types[epoch_records.group_of(key)] = group_type
        elif not isinstance(key, GroupMetadataKey):
            continue
        found.setdefault(epoch_records.group_of(key), []).append(record)
    return {group_id: (types[group_id], found[group_id]) for group_id in found if group_id in types}


def _had_members(partition: Partition, group_id: str) -> bool:
    group = partition.groups.get(group_id)
    return isinstance(group, Group) and group.state is not EMPTY


def _topic_name(trace: Trace, topic_id: bytes) -> str:
    topic = trace.topics.by_id.get(topic_id)
    return epoch_members.id_text(topic_id) if topic is None else topic.name


def _story(trace: Trace, partition: Partition, group_id: str, group_type: str) -> EpochGroupStory:
    """The trace state of a group, built from its records if it was not traced yet."""
    found = trace.stories.get(group_id)
    if found is None or found.group_type != group_type:
        found = trace.stories[group_id] = EpochGroupStory(group_type)
        group = partition.groups.get(group_id)
        if not isinstance(group, Group | None) and group.group_type == group_type:
            value: EpochValue = group.epoch_record().value  # type: ignore[assignment]  # of one
            load(found, _records_of(group), value, group.epochs.assignment_epoch)
    return found


def _records_of(group: EpochGroup[Any, Any, Any]) -> Iterator[LogRecord]:
    """The records of a group's members."""
    for member in group.members.entries.values():
        # One that joins a share group is there before its records are, and then without an epoch.
        if not isinstance(group, ShareGroup) or member.member_epoch != JOIN_EPOCH:
            yield group.member_record(member)
            yield group.assignment_record(member)
    for member_id, target in group.targets.entries.items():
        yield group.target_record(member_id, target)


def trace_undone(trace: Trace, partition: Partition) -> None:
    """Tell of groups that are again what they were before an append that was refused."""
    here = [name for name in trace.stories if trace.partition_index(name) == partition.index]
    for group_id in here:
        told = trace.stories.pop(group_id)
        now = _story(trace, partition, group_id, told.group_type)
        if not now.is_as(told):
            trace.emit(
                Event.STORE_FAILED,
                group_id=group_id,
                offsets_partition=partition.index,
                generation=max(now.group_epoch, 0),
                members=len(now.members),
                attrs={GROUP_TYPE: now.group_type},
            )


def trace_id_assigned(
    trace: Trace, request: JoinGroupRequest, context: RequestContext, member_id: str
) -> None:
    """Tell that a classic member was assigned an id, with which it is to join again."""
    trace.emit(
        Event.MEMBER_ID_ASSIGNED,
        group_id=request.group_id,
        offsets_partition=trace.partition_index(request.group_id),
        member_id=member_id,
        client_id=context.client_id,
        client_host=context.client_host,
        session_timeout_ms=request.session_timeout_ms,
        attrs={GROUP_TYPE: epoch_records.CONSUMER},
    )


def trace_scan(trace: Trace, group_id: str, regexes: Iterable[str]) -> None:
    """Tell that the cluster's topics were looked through for expressions."""
    trace.emit(
        Event.LIFECYCLE,
        group_id=group_id,
        offsets_partition=trace.partition_index(group_id),
        reason_text="topics scanned",
        attrs={SCANNED: str(len(trace.topics.by_name)), "regexes": f"[{', '.join(regexes)}]"},
    )


# -- loads -------------------------------------------------------------------------------------


def trace_group_loaded(trace: Trace, group: AssignedGroup) -> None:
    """Tell of a group that was loaded."""
    members = group.members.entries.values()
    trace.emit(
        Event.GROUP_LOADED,
        **_of_group(trace, group),
        members=len(members),
        static_members=len(group.static_members),
        state_to=_state_of(group),
    )


def trace_group_unloaded(trace: Trace, group: AssignedGroup) -> None:
    """Tell of a group whose partition is given up."""
    trace.stories.pop(group.group_id, None)
    trace.emit(Event.GROUP_UNLOADED, **_of_group(trace, group), state_to=DEAD)


def _of_group(trace: Trace, group: AssignedGroup) -> dict[str, Any]:
    group_type = group.group_type
    return {
        "group_id": group.group_id,
        "offsets_partition": trace.partition_index(group.group_id),
        "generation": group.epochs.group_epoch,
        "protocol_type": group_type,
        "attrs": {GROUP_TYPE: group_type},
    }


def _state_of(group: AssignedGroup) -> GroupState | None:
    """Empty or Stable as a classic group may be; None while members are on their way."""
    if group.is_empty:
        return EMPTY
    if isinstance(group, StreamsGroup):
        is_settled = group.state is StreamsGroupState.STABLE
    elif isinstance(group, ConsumerGroup):
        epochs = group.epochs
        is_settled = not epochs.unreconciled_count and epochs.assignment_epoch >= epochs.group_epoch
    else:
        is_settled = True
    return STABLE if is_settled else None


# -- requests ----------------------------------------------------------------------------------


def trace_heartbeat_request(trace: Trace, request: EpochHeartbeat, context: RequestContext) -> None:
    """Emit an event for a heartbeat that joins or leaves; other heartbeats emit when answered."""
    if request.member_epoch > JOIN_EPOCH:
        return
    joins = request.member_epoch == JOIN_EPOCH
    attrs = {"member_epoch": str(request.member_epoch)}
    if joins:
        attrs |= {name: value for name, value in _join_fields(request).items() if value}
    rebalance_ms = getattr(request, "rebalance_timeout_ms", None)
    trace.emit(
        Event.JOIN_REQ if joins else Event.LEAVE_REQ,
        **_columns(trace, request, context),
        member_id=request.member_id,
        rebalance_timeout_ms=rebalance_ms if joins else None,
        client_id=context.client_id,
        client_host=context.client_host,
        attrs=attrs,
    )


def _join_fields(request: EpochHeartbeat) -> dict[str, str | None]:
    """What a member asks for that joins."""
    if isinstance(request, StreamsGroupHeartbeatRequest):
        epoch = None if request.topology is None else str(request.topology.epoch)
        return {"process_id": request.process_id, "topology_epoch": epoch}
    fields: dict[str, str | None] = {"topics": ",".join(request.subscribed_topic_names or ())}
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        fields["regex"] = request.subscribed_topic_regex
        fields["assignor"] = request.server_assignor
    return fields


def trace_heartbeat_answer(
    trace: Trace, request: EpochHeartbeat, context: RequestContext, response: EpochAnswer
) -> None:
    """Tell what a member was answered; plain heartbeats only where heartbeats are told."""
    assigned = _assigned_part(response)
    joins = request.member_epoch == JOIN_EPOCH
    is_plain = assigned is None and response.error_code is NO_ERROR and not joins
    if is_plain and (request.member_epoch < JOIN_EPOCH or not trace.tells_heartbeats):
        return
    assignment, attrs = None, _holder(trace, request, response.error_code)
    if assigned is not None:
        assignment = epoch_members.assignment_bytes(
            assigned.owned, lambda each: _topic_name(trace, each)
        )
        attrs |= assigned.copies()
    if isinstance(response, StreamsGroupHeartbeatResponse) and response.status:
        attrs["status"] = ",".join(StreamsStatus(each.status_code).name for each in response.status)
    is_refused = response.error_code is not NO_ERROR
    trace.emit(
        Event.JOIN_RESP if joins else Event.HEARTBEAT,
        **_columns(trace, request, context),
        error_code=response.error_code,
        member_id=response.member_id or request.member_id,
        generation=request.member_epoch if is_refused else response.member_epoch,
        assignment=assignment,
        attrs=attrs,
    )


def _assigned_part(response: EpochAnswer) -> epoch_members.Part | None:
    """What an answer gives; None where it leaves all as it is."""
    if isinstance(response, StreamsGroupHeartbeatResponse):
        roles = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
        if roles == (None, None, None):
            return None
        return epoch_members.tasks_part(*(each or () for each in roles))
    return (
        None
        if response.assignment is None
        else epoch_members.Part(epoch_members.held(response.assignment.topic_partitions))
    )


_TYPES: Final = {
    ConsumerGroupHeartbeatRequest: epoch_records.CONSUMER,
    ShareGroupHeartbeatRequest: epoch_records.SHARE,
    StreamsGroupHeartbeatRequest: epoch_records.STREAMS,
}


def _columns(trace: Trace, request: EpochHeartbeat, context: RequestContext) -> dict[str, Any]:
    return {
        "api_key": int(request.api_key),
        "api_version": context.api_version,
        "correlation_id": context.token,
        "group_id": request.group_id,
        "offsets_partition": trace.partition_index(request.group_id),
        "group_instance_id": getattr(request, "instance_id", None),
        "protocol_type": _TYPES[type(request)],
    }


def _holder(trace: Trace, request: EpochHeartbeat, error: ErrorCode) -> dict[str, str]:
    """Who has the instance id of a member that was refused for it."""
    story = trace.stories.get(request.group_id)
    if (
        error not in _OF_INSTANCES
        or story is None
        or isinstance(request, ShareGroupHeartbeatRequest)
    ):
        return {}
    holders = (
        name for name, each in story.members.items() if each.instance_id == request.instance_id
    )
    holder = next(holders, None)
    return {} if holder is None else {"current_member_id": holder}


_OF_INSTANCES: Final = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})
