"""Trace events of group requests and their responses.

Called only while the trace is on.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.effects import Parked
from coordinator_sim.coordinator.epoch_tracing import (
    EpochHeartbeat,
    trace_heartbeat_answer,
    trace_heartbeat_request,
)
from coordinator_sim.coordinator.epoch_tracing import Trace as EpochTrace
from coordinator_sim.coordinator.partition import Partition
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.trace.events import Event, OffsetEntry

_TRACED_WHEN_ANSWERED: Final = frozenset({OffsetCommitRequest, OffsetFetchRequest})


class Trace(EpochTrace, Protocol):
    """What a coordinator has and does for its trace."""

    groups: dict[str, Group]


def trace_request(trace: Trace, request: GroupRequest, context: RequestContext) -> None:
    """Emit an event for a request that changes membership; commits emit when answered."""
    if type(request) in _TRACED_WHEN_ANSWERED:
        return
    if isinstance(request, EpochHeartbeat):
        trace_heartbeat_request(trace, request, context)
        return
    if not isinstance(request, JoinGroupRequest | SyncGroupRequest | LeaveGroupRequest):
        return
    common: dict[str, Any] = {
        "api_key": int(request.api_key),
        "api_version": context.api_version,
        "correlation_id": context.token,
        "client_id": context.client_id,
        "client_host": context.client_host,
        "group_id": request.group_id,
        "offsets_partition": trace.partition_index(request.group_id),
    }
    match request:
        case JoinGroupRequest():
            trace.emit(
                Event.JOIN_REQ,
                **common,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                protocol_type=request.protocol_type,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                client_reason=request.reason,
                subscription=request.protocols[0].metadata if request.protocols else None,
                attrs={"protocols": ",".join(protocol.name for protocol in request.protocols)},
            )
        case SyncGroupRequest():
            trace.emit(
                Event.SYNC_REQ,
                **common,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                generation=request.generation_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
            )
        case LeaveGroupRequest():
            for member in request.members:
                trace.emit(
                    Event.LEAVE_REQ,
                    **common,
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_reason=member.reason,
                )


def trace_response(trace: Trace, parked: Parked, response: Response) -> None:
    """Emit the event of a response, if the trace has one for it."""
    tell = _ANSWERS.get(type(response))
    if tell is not None:
        tell(trace, parked.request, parked.context, response)


def _trace_joined(
    trace: Trace,
    request: JoinGroupRequest,
    context: RequestContext,
    response: JoinGroupResponse,
) -> None:
    _tell(
        trace,
        Event.JOIN_RESP,
        request,
        context,
        error_code=response.error_code,
        member_id=response.member_id or request.member_id,
        generation=response.generation_id,
        leader_id=response.leader,
        members=len(response.members),
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        attrs=_fencing(trace, request, response.error_code),
    )


def _trace_synced(
    trace: Trace,
    request: SyncGroupRequest,
    context: RequestContext,
    response: SyncGroupResponse,
) -> None:
    _tell(
        trace,
        Event.SYNC_RESP,
        request,
        context,
        error_code=response.error_code,
        member_id=request.member_id,
        generation=request.generation_id,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        assignment=response.assignment,
        attrs=_fencing(trace, request, response.error_code),
    )


def _trace_heartbeat(
    trace: Trace,
    request: HeartbeatRequest,
    context: RequestContext,
    response: HeartbeatResponse,
) -> None:
    _tell(
        trace,
        Event.HEARTBEAT,
        request,
        context,
        error_code=response.error_code,
        member_id=request.member_id,
        generation=request.generation_id,
        attrs=_fencing(trace, request, response.error_code),
    )


def _trace_committed(
    trace: Trace,
    request: OffsetCommitRequest,
    context: RequestContext,
    response: OffsetCommitResponse,
) -> None:
    _tell(
        trace,
        Event.OFFSET_COMMIT,
        request,
        context,
        error_code=_first_error(response),
        member_id=request.member_id,
        generation=request.generation_id_or_member_epoch,
        offsets=tuple(
            [
                OffsetEntry(
                    topic.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                )
                for topic in request.topics
                for each in topic.partitions
            ]
        ),
    )


def _tell(
    trace: Trace,
    event: Event,
    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | OffsetCommitRequest,
    context: RequestContext,
    **columns: Any,  # noqa: ANN401 - columns differ in type
) -> None:
    trace.emit(
        event,
        api_key=int(request.api_key),
        api_version=context.api_version,
        correlation_id=context.token,
        group_id=request.group_id,
        offsets_partition=trace.partition_index(request.group_id),
        group_instance_id=request.group_instance_id,
        **columns,
    )


_Fencing = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest


def _fencing(trace: Trace, request: _Fencing, error: ErrorCode) -> dict[str, str]:
    """The member that owns the instance id of a fenced request, as event attributes."""
    if error is not ErrorCode.FENCED_INSTANCE_ID:
        return {}
    group = trace.groups.get(request.group_id)
    instance_id = request.group_instance_id or ""
    current = None if group is None else group.static_members.get(instance_id)
    is_returning = isinstance(request, JoinGroupRequest) and not request.member_id
    if current is None or is_returning or current == request.member_id:
        return {}
    return {"current_member_id": current}


def trace_fetch(trace: Trace, context: RequestContext, response: OffsetFetchResponse) -> None:
    """Emit one event per group that an OffsetFetch read."""
    for group in response.groups:
        trace.emit(
            Event.OFFSET_FETCH,
            api_key=int(ApiKey.OFFSET_FETCH),
            api_version=context.api_version,
            correlation_id=context.token,
            group_id=group.group_id,
            offsets_partition=trace.partition_index(group.group_id),
            error_code=group.error_code,
            offsets=tuple(
                [
                    OffsetEntry(
                        topic.name,
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                    )
                    for topic in group.topics
                    for each in topic.partitions
                ]
            ),
        )


def trace_member_loaded(group: Group, member: Member) -> None:
    """Emit the event of a member in a loaded record. Source: GroupMetadata.loadGroup (Scala)."""
    group.emit(
        Event.LIFECYCLE,
        member,
        reason_text="member loaded",
        attrs={"protocols": ",".join(protocol.name for protocol in member.protocols)},
    )


def trace_stale_resignation(trace: Trace, partition: Partition, epoch: int | None) -> None:
    """Emit an event for a resignation that found nothing to unload or had an old epoch.

    Source: GroupMetadataManager.removeGroupsAndOffsets (Scala).
    """
    attrs = {} if epoch is None else {"epoch": str(epoch)}
    trace.emit(Event.COORD_RESIGNED, offsets_partition=partition.index, attrs=attrs)
    if epoch is None or epoch >= partition.leader_epoch:
        counts = {"groups": "0", "offsets": "0"}
        trace.emit(Event.UNLOAD_DONE, offsets_partition=partition.index, attrs=attrs | counts)
        return
    trace.emit(
        Event.LIFECYCLE,
        offsets_partition=partition.index,
        reason_text="unload refused",
        attrs=attrs | {"current_epoch": str(partition.leader_epoch)},
    )


def trace_fenced_leave(group: Group, entry: MemberIdentity) -> None:
    """Emit the fencing of a LeaveGroup entry whose instance id another member owns."""
    current = group.static_members.get(entry.group_instance_id or "", "")
    group.tell(
        Event.MEMBER_FENCED,
        member_id=entry.member_id,
        group_instance_id=entry.group_instance_id,
        attrs={"current_member_id": current, "operation": "leave-group"},
    )


def trace_groups_deleted(
    trace: Trace, partition: Partition | None, gone: list[tuple[str, int]]
) -> None:
    """Emit the outcome of a DeleteGroups, which Java handles one offsets partition at a time."""
    trace.emit(
        Event.LIFECYCLE,
        offsets_partition=None if partition is None else partition.index,
        reason_text="groups deleted",
        attrs={
            "groups": ", ".join(group_id for group_id, _ in gone),
            "offsets": str(sum(count for _, count in gone)),
        },
    )


def trace_offsets_deleted(group: Group, keys: list[OffsetCommitKey]) -> None:
    """Emit the event of an OffsetDelete, by the offset keys it removed."""
    places = [TopicPartition(key.topic, key.partition) for key in keys]
    trace_partitions_deleted(group, places, len(keys))


def trace_partitions_deleted(group: Group, places: list[TopicPartition], count: int) -> None:
    """Emit the event of an OffsetDelete of these partitions; `count` of them had an offset."""
    group.tell(Event.OFFSET_TOMBSTONE, attrs=_deleted(places, count))


def trace_topics_deleted(trace: Trace, places: list[TopicPartition], count: int) -> None:
    """Emit how many offsets of all groups were deleted with these partitions."""
    trace.emit(Event.OFFSET_TOMBSTONE, attrs=_deleted(places, count))


def _deleted(places: list[TopicPartition], count: int) -> dict[str, str]:
    names = ", ".join(f"{place.topic}-{place.partition}" for place in places)
    return {"partitions": names, "count": str(count)}


def trace_offsets_expired(trace: Trace, partition: Partition | None, count: int) -> None:
    """Emit how many offsets expired, in one offsets partition or in all (None)."""
    trace.emit(
        Event.OFFSET_EXPIRED,
        offsets_partition=None if partition is None else partition.index,
        attrs={"count": str(count)},
    )


def _first_error(response: OffsetCommitResponse) -> ErrorCode:
    """The first outcome that is not NONE: a commit has no error of its own."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code is not NO_ERROR:
                return partition.error_code
    return NO_ERROR


_ANSWERS: Final[dict[type[Response], Callable[[Trace, Any, RequestContext, Any], None]]] = {
    JoinGroupResponse: _trace_joined,
    SyncGroupResponse: _trace_synced,
    HeartbeatResponse: _trace_heartbeat,
    OffsetCommitResponse: _trace_committed,
    ConsumerGroupHeartbeatResponse: trace_heartbeat_answer,
    ShareGroupHeartbeatResponse: trace_heartbeat_answer,
    StreamsGroupHeartbeatResponse: trace_heartbeat_answer,
}
