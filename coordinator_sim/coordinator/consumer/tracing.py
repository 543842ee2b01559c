"""How the life of consumer groups is told to the trace. Called only while the trace is on.

What a batch of records tells is said in `trace.consumer_groups`, for this trace and for those that
are read from an offsets topic. Here is what only the coordinator knows: topics' names, requests and
their answers, loads.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import JOIN_EPOCH
from coordinator_sim.coordinator.consumer.records import (
    assignment_record,
    member_record,
    target_record,
)
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.partition import Partition
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.consumer_records import CONSUMER_RECORD_TYPES
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.records import GroupMetadataKey, LogRecord
from coordinator_sim.kafka.states import DEAD, EMPTY, STABLE
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.trace.consumer_groups import (
    CONSUMER,
    GROUP_TYPE,
    SCANNED,
    ConsumerGroupStory,
)
from coordinator_sim.trace.consumer_members import assignment_bytes, held, id_text
from coordinator_sim.trace.events import Event

_ATTRS: Final = {GROUP_TYPE: CONSUMER}


class Trace(Protocol):
    """What a coordinator has and does for its trace."""

    config: CoordinatorConfig
    profile: Profile
    topics: KnownTopics
    stories: dict[str, ConsumerGroupStory]
    tells_heartbeats: bool

    def partition_index(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""
        ...

    def emit(self, event: Event, **columns: Any) -> None:  # noqa: ANN401 - columns differ in type
        """Add an event; the columns are those of `TraceEvent`."""
        ...


# -- records -----------------------------------------------------------------------------------


def trace_records(trace: Trace, partition: Partition, effect: Effect) -> None:
    """Tell what the records of consumer groups in a batch mean, before they are applied."""
    by_group = _by_group(effect.records)
    if not by_group:
        return
    for group_id, records in by_group.items():
        story = _story(trace, partition, group_id)
        beside = replace(
            effect.beside,
            name_of=lambda topic_id: _topic_name(trace, topic_id),
            had_members=_had_members(partition, group_id),
            has_hash=trace.profile.consumer_hashes_topics,
        )
        for event, columns in story.told(records, beside):
            trace.emit(event, group_id=group_id, offsets_partition=partition.index, **dict(columns))
            if event is Event.GROUP_DEAD:
                trace.stories.pop(group_id, None)


def _by_group(records: tuple[LogRecord, ...]) -> dict[str, list[LogRecord]]:
    """Records by group, of those groups that have some of a consumer group."""
    found: dict[str, list[LogRecord]] = {}
    is_consumer: set[str] = set()
    for record in records:
        key = record.key
        if type(key) in CONSUMER_RECORD_TYPES:
            is_consumer.add(key.group_id)  # type: ignore[union-attr]
        elif not isinstance(key, GroupMetadataKey):
            continue
        found.setdefault(key.group_id, []).append(record)  # type: ignore[union-attr]
    return {group_id: found[group_id] for group_id in found if group_id in is_consumer}


def _had_members(partition: Partition, group_id: str) -> bool:
    group = partition.groups.get(group_id)
    return isinstance(group, Group) and group.state is not EMPTY


def _topic_name(trace: Trace, topic_id: bytes) -> str:
    topic = trace.topics.by_id.get(topic_id)
    return id_text(topic_id) if topic is None else topic.name


def _story(trace: Trace, partition: Partition, group_id: str) -> ConsumerGroupStory:
    """What was told of a group; of one that nothing was told of, what it is."""
    found = trace.stories.get(group_id)
    if found is None:
        found = trace.stories[group_id] = ConsumerGroupStory()
        group = partition.consumer_group(group_id)
        if group is not None:
            heads = group.heads
            found.loaded(_records_of(group), heads.group_epoch, heads.assignment_epoch)
    return found


def _records_of(group: ConsumerGroup) -> Iterator[LogRecord]:
    for member in group.members.entries.values():
        yield member_record(group.group_id, member)
        yield assignment_record(group.group_id, member, with_epochs=False)
    for member_id, target in group.targets.entries.items():
        yield target_record(group.group_id, member_id, target)


def trace_undone(trace: Trace, partition: Partition) -> None:
    """Tell of groups that are again what they were before an append that was refused."""
    here = [name for name in trace.stories if trace.partition_index(name) == partition.index]
    for group_id in here:
        told = trace.stories.pop(group_id)
        now = _story(trace, partition, group_id)
        if not now.is_as(told):
            trace.emit(
                Event.STORE_FAILED,
                group_id=group_id,
                offsets_partition=partition.index,
                generation=max(now.group_epoch, 0),
                members=len(now.members),
                attrs=_ATTRS,
            )


def trace_id_assigned(
    trace: Trace, request: JoinGroupRequest, context: RequestContext, member_id: str
) -> None:
    """Tell that a classic member was given an id, with which it is to join again."""
    trace.emit(
        Event.MEMBER_ID_ASSIGNED,
        group_id=request.group_id,
        offsets_partition=trace.partition_index(request.group_id),
        member_id=member_id,
        client_id=context.client_id,
        client_host=context.client_host,
        session_timeout_ms=request.session_timeout_ms,
        attrs=_ATTRS,
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


def trace_group_loaded(trace: Trace, group: ConsumerGroup) -> None:
    """Tell of a group that was loaded."""
    heads = group.heads
    is_settled = not heads.unreconciled_count and heads.assignment_epoch >= heads.group_epoch
    trace.emit(
        Event.GROUP_LOADED,
        group_id=group.group_id,
        offsets_partition=trace.partition_index(group.group_id),
        generation=heads.group_epoch,
        protocol_type=CONSUMER,
        members=len(group.members),
        static_members=len(group.static_members),
        state_to=EMPTY if group.is_empty else STABLE if is_settled else None,
        attrs=_ATTRS,
    )


def trace_group_unloaded(trace: Trace, group: ConsumerGroup) -> None:
    """Tell of a group whose partition is given up."""
    trace.stories.pop(group.group_id, None)
    trace.emit(
        Event.GROUP_UNLOADED,
        group_id=group.group_id,
        offsets_partition=trace.partition_index(group.group_id),
        generation=group.heads.group_epoch,
        protocol_type=CONSUMER,
        state_to=DEAD,
        attrs=_ATTRS,
    )


# -- requests ----------------------------------------------------------------------------------


def trace_heartbeat_request(
    trace: Trace, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> None:
    """Tell of a heartbeat that joins or leaves; the others are told when answered."""
    if request.member_epoch > JOIN_EPOCH:
        return
    joins = request.member_epoch == JOIN_EPOCH
    attrs = {"member_epoch": str(request.member_epoch)}
    if joins:
        said = {
            "topics": ",".join(request.subscribed_topic_names or ()),
            "regex": request.subscribed_topic_regex,
            "assignor": request.server_assignor,
        }
        attrs |= {name: value for name, value in said.items() if value}
    trace.emit(
        Event.JOIN_REQ if joins else Event.LEAVE_REQ,
        **_columns(trace, request, context),
        protocol_type=CONSUMER,
        member_id=request.member_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms if joins else None,
        client_id=context.client_id,
        client_host=context.client_host,
        attrs=attrs,
    )


def trace_heartbeat_answer(
    trace: Trace,
    request: ConsumerGroupHeartbeatRequest,
    context: RequestContext,
    response: ConsumerGroupHeartbeatResponse,
) -> None:
    """Tell what a member was answered; plain heartbeats only where heartbeats are told."""
    given = response.assignment
    joins = request.member_epoch == JOIN_EPOCH
    is_plain = given is None and response.error_code is NO_ERROR and not joins
    if is_plain and (request.member_epoch < JOIN_EPOCH or not trace.tells_heartbeats):
        return
    assignment = None
    if given is not None:
        partitions = held(given.topic_partitions)
        assignment = assignment_bytes(partitions, lambda topic_id: _topic_name(trace, topic_id))
    is_refused = response.error_code is not NO_ERROR
    trace.emit(
        Event.JOIN_RESP if joins else Event.HEARTBEAT,
        **_columns(trace, request, context),
        error_code=response.error_code,
        protocol_type=CONSUMER,
        member_id=response.member_id or request.member_id,
        generation=request.member_epoch if is_refused else response.member_epoch,
        assignment=assignment,
        attrs=_holder(trace, request, response.error_code),
    )


def _columns(
    trace: Trace, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> dict[str, Any]:
    return {
        "api_key": int(request.api_key),
        "api_version": context.api_version,
        "correlation_id": context.token,
        "group_id": request.group_id,
        "offsets_partition": trace.partition_index(request.group_id),
        "group_instance_id": request.instance_id,
    }


def _holder(
    trace: Trace, request: ConsumerGroupHeartbeatRequest, error: ErrorCode
) -> dict[str, str]:
    """Who has the instance id of a member that was refused for it."""
    story = trace.stories.get(request.group_id)
    if error not in _OF_INSTANCES or story is None:
        return {}
    holders = (
        name for name, each in story.members.items() if each.instance_id == request.instance_id
    )
    holder = next(holders, None)
    return {} if holder is None else {"current_member_id": holder}


_OF_INSTANCES: Final = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})
