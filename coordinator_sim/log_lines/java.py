"""The Java coordinator's words, 4.0 to 4.4.

Source: kafka trunk, group-coordinator: GroupMetadataManager, OffsetMetadataManager,
GroupCoordinatorShard, GroupCoordinatorService, classic/ClassicGroup; coordinator-common:
CoordinatorRuntime. The words are those that these classes of 4.4.0 write.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.log_lines.entries import ERROR, INFO, WARN, Entry
from coordinator_sim.log_lines.reasons import NOT_PROVIDED
from coordinator_sim.log_lines.words import (
    OPERATIONS,
    Words,
    client_reason,
    groups_deleted,
    listed,
    raw_error,
)
from coordinator_sim.protocol.error_texts import error_message
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import Profile
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

_PACKAGE: Final = "org.apache.kafka.coordinator"
_GROUPS: Final = f"{_PACKAGE}.group.GroupMetadataManager"
_CLASSIC: Final = f"{_PACKAGE}.group.classic.ClassicGroup"
_OFFSETS: Final = f"{_PACKAGE}.group.OffsetMetadataManager"
_SHARD: Final = f"{_PACKAGE}.group.GroupCoordinatorShard"
_RUNTIME: Final = f"{_PACKAGE}.common.runtime.CoordinatorRuntime"
_TOPIC: Final = "__consumer_offsets"
_NO_REASON: Final = "; client reason: "


class JavaWords(Words):
    """The coordinator of 4.x."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.texts = {
            Event.MEMBER_ID_ASSIGNED: self._id_assigned,
            Event.MEMBER_ADDED: self._added,
            Event.MEMBER_LEFT: self._left,
            Event.MEMBER_FAILED: self._failed,
            Event.PENDING_EXPIRED: self._pending_expired,
            Event.STATIC_REPLACED: self._replaced,
            Event.LEADER_REPLACED: self._leader_replaced,
            Event.JOIN_COMPLETE: self._stabilized,
            Event.SYNC_LEADER: self._assignment,
            Event.EMPTY_ASSIGNMENT: self._empty_assignment,
            Event.GROUP_EMPTY: self._empty,
            Event.STORE_FAILED: self._store_failed,
            Event.GROUP_LOADED: self._loaded,
            Event.GROUP_UNLOADED: self._unloaded,
            Event.LOAD_START: self._load_start,
            Event.LOAD_DONE: self._load_done,
            Event.LOAD_FAILED: self._load_failed,
            Event.COORD_RESIGNED: self._resigned,
            Event.UNLOAD_DONE: self._unload_done,
            Event.LIFECYCLE: self._lifecycle,
            **dict.fromkeys(OPERATIONS, self._fenced),
        }

    # -- members ---------------------------------------------------------------------------

    def _id_assigned(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"Dynamic member with unknown member id joins group {event.group_id} in "
            f"{self.state(event)} state. Created a new member id {event.member_id} and requesting "
            "the member to rejoin with this id.",
        )

    def _added(self, event: TraceEvent) -> Iterator[Entry]:
        group, member, state = event.group_id, event.member_id, self.state(event)
        if event.attrs.get("member_id_was") == "pending":
            text = (
                f"Pending dynamic member with id {member} joins group {group} in {state} state. "
                "Adding to the group now."
            )
        elif event.group_instance_id is not None:
            text = (
                f"Static member with groupInstanceId={event.group_instance_id} and unknown member "
                f"id joins group {group} in {state} state. Created a new member id {member} for "
                "this member and added to the group."
            )
        else:
            text = (
                f"Dynamic member with unknown member id joins group {group} in state {state}. "
                f"Created a new member id {member} and added the member to the group."
            )
        yield _shard(event, text)

    def _left(self, event: TraceEvent) -> Iterator[Entry]:
        who = "Pending member" if event.attrs.get("pending") else "Member"
        yield _shard(
            event,
            f"[Group {event.group_id}] {who} {event.member_id} has left group through explicit "
            f"`LeaveGroup` request; client reason: {client_reason(event)}",
        )

    def _failed(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"Member {event.member_id} in group {event.group_id} has failed, removing it from the "
            "group.",
        )

    def _pending_expired(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"Pending member {event.member_id} in group {event.group_id} has been removed after "
            "session timeout expiration.",
        )

    def _replaced(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("undone"):
            return
        yield _shard(
            event,
            f"Static member with groupInstanceId={event.group_instance_id} and unknown member id "
            f"joins group {event.group_id} in {self.state(event)} state. Replacing previously "
            f"mapped member {event.attrs.get('old_member_id')} with this groupInstanceId.",
        )
        if event.attrs.get("rebalance") == "0":
            yield _shard(
                event,
                "Static member which joins during Stable stage and doesn't affect the selected "
                "protocol will not trigger a rebalance.",
            )

    def _fenced(self, event: TraceEvent) -> Iterator[Entry]:
        current = event.attrs.get("current_member_id")
        if current is not None:
            yield _shard(
                event,
                f"Request memberId={event.member_id} for static member with "
                f"groupInstanceId={event.group_instance_id} is fenced by existing "
                f"memberId={current} during operation {OPERATIONS[event.event]}",
                logger=_CLASSIC,
            )

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Members that did not rejoin. Source: completeClassicGroupJoin."""
        names = ", ".join(str(event.member_id) for event in events)
        yield _shard(
            events[0],
            f"Group {events[0].group_id} removed dynamic members who haven't joined: [{names}]",
        )

    def _leader_replaced(self, event: TraceEvent) -> Iterator[Entry]:
        text = (
            f"Group leader [memberId: {event.attrs.get('old_leader_id')}, groupInstanceId: "
            f"{event.attrs.get('old_instance_id', 'null')}] failed to join before the rebalance "
            "timeout"
        )
        if event.attrs.get("outcome") == "no_member_joined":
            text += (
                " and the group couldn't proceed to the next generation because no member joined."
            )
            yield _shard(event, text, logger=_CLASSIC)
            yield _shard(
                event,
                f"Group {event.group_id} could not complete rebalance because no members rejoined.",
                ERROR,
            )
        else:
            text += f". Member {_member(event)} was elected as the new leader."
            yield _shard(event, text, logger=_CLASSIC)

    # -- rebalances ------------------------------------------------------------------------

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """A rebalance; its reason is in the core's own words. Source: prepareRebalance."""
        del leaver
        reason = self.shown(event.reason_text or "")
        if reason.endswith(_NO_REASON):
            reason += NOT_PROVIDED
        if event.reason is RebalanceReason.STORE_ERROR:
            # QUIRK: two pieces of this text are put together without a blank.
            # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
            reason = reason.replace("assignment during", "assignmentduring")
        yield _shard(
            event,
            f"Preparing to rebalance group {event.group_id} in state PreparingRebalance with old "
            f"generation {event.generation} (reason: {reason}).",
        )

    def _stabilized(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"Stabilized group {event.group_id} generation {event.generation} with "
            f"{event.members} members.",
        )

    def _assignment(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"Assignment received from leader {event.leader_id} for group {event.group_id} for "
            f"generation {event.generation}. The group has {event.members} members, "
            f"{event.static_members} of which are static.",
        )

    def _empty_assignment(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("sent"):
            text = (
                f"Sending empty assignment to member {event.member_id} of {event.group_id} for "
                f"generation {event.generation} with no errors"
            )
        else:
            # QUIRK: Kafka prints a map of byte arrays, so each member comes with the identity
            # hash of an array, which differs from process to process; it is 0 here.
            # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
            members = ", ".join(f"{name}=[B@0" for name in listed(event.attrs["member_ids"]))
            text = (
                f"Setting empty assignments for members {{{members}}} of {event.group_id} for "
                f"generation {event.generation}."
            )
        yield _shard(event, text, WARN)

    def _empty(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event, f"Group {event.group_id} with generation {event.generation} is now empty."
        )

    def _store_failed(self, event: TraceEvent) -> Iterator[Entry]:
        what = event.attrs.get("what")
        raw = raw_error(event)
        if what == "new group, late" and raw is ErrorCode.REQUEST_TIMED_OUT:
            timeout_ms = event.attrs.get("timeout_ms")
            write = "CoordinatorWriteEvent(name=classic-group-join)"
            message = f"{write} timed out after {timeout_ms}ms"
        elif what in ("new group", "new group, late"):
            message = error_message(raw)
        elif what == "empty generation":
            message = error_message(event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            return
        text = f"Failed to write empty metadata for group {event.group_id}: {message}"
        yield _shard(event, text, WARN)

    # -- offsets partitions ----------------------------------------------------------------

    def _loaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(event, f"Loaded classic group {event.group_id} with {event.members} members.")

    def _unloaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield _shard(
            event,
            f"[GroupId={event.group_id}] Unloading group metadata for generation "
            f"{event.generation}.",
        )

    def _load_start(self, event: TraceEvent) -> Iterator[Entry]:
        place = f"{_TOPIC}-{event.offsets_partition}"
        yield _broker(
            event,
            f"Scheduling loading of metadata from {place} with epoch {event.attrs.get('epoch')}",
        )

    def _load_done(self, event: TraceEvent) -> Iterator[Entry]:
        # DEVIATION: the size in bytes is 0, for the core knows records and not their bytes.
        yield _broker(
            event,
            f"Finished loading of metadata from {_TOPIC}-{event.offsets_partition} with epoch "
            f"{event.attrs.get('epoch')} in {(event.latency_us or 0) // 1_000}ms where 0ms was "
            f"spent in the scheduler. Loaded {event.attrs.get('records', 0)} records which total "
            f"to {event.attrs.get('bytes', 0)} bytes.",
        )

    def _load_failed(self, event: TraceEvent) -> Iterator[Entry]:
        error = event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
        yield _broker(
            event,
            f"Failed to load metadata from {_TOPIC}-{event.offsets_partition} with epoch "
            f"{event.attrs.get('epoch')} due to {error_message(error)}.",
            ERROR,
        )

    def _resigned(self, event: TraceEvent) -> Iterator[Entry]:
        place, epoch = f"{_TOPIC}-{event.offsets_partition}", _epoch(event)
        yield _broker(event, f"Scheduling unloading of metadata for {place} with epoch {epoch}")
        yield _broker(event, f"Started unloading metadata for {place} with epoch {epoch}.")

    def _unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        place = f"{_TOPIC}-{event.offsets_partition}"
        yield _broker(event, f"Finished unloading metadata for {place} with epoch {_epoch(event)}.")

    def _lifecycle(self, event: TraceEvent) -> Iterator[Entry]:
        if event.reason_text == "groups deleted":
            yield _shard(event, groups_deleted(event), logger=_SHARD)
        if event.reason_text == "simple group created":
            yield _shard(
                event,
                f"[GroupId {event.group_id}] Creating a simple consumer group via manual offset "
                "commit.",
                logger=_OFFSETS,
            )


def _member(event: TraceEvent) -> str:
    """The member of an event with all that is known of it. Source: ClassicGroupMember.toString."""
    protocols = event.attrs.get("protocols", "").replace(",", ", ")
    return (
        f"ClassicGroupMember(memberId='{event.member_id}', "
        f"groupInstanceId='{event.group_instance_id or ''}', clientId='{event.client_id}', "
        f"clientHost='{event.client_host}', rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"sessionTimeoutMs={event.session_timeout_ms}, protocolType='{event.protocol_type}', "
        f"supportedProtocols=[{protocols}])"
    )


def _epoch(event: TraceEvent) -> str:
    epoch = event.attrs.get("epoch")
    return "OptionalInt.empty" if epoch is None else f"OptionalInt[{epoch}]"


def _shard(event: TraceEvent, text: str, level: str = INFO, *, logger: str = _GROUPS) -> Entry:
    """An entry of the coordinator of one offsets partition."""
    prefix = (
        f"[GroupCoordinator id={event.broker_id} topic={_TOPIC} "
        f"partition={event.offsets_partition}] "
    )
    return Entry(logger, prefix + text, level)


def _broker(event: TraceEvent, text: str, level: str = INFO) -> Entry:
    """An entry about an offsets partition as a whole."""
    return Entry(_RUNTIME, f"[GroupCoordinator id={event.broker_id}] {text}", level)
