"""The Scala coordinator's words, 3.2 to 3.9.

Source: kafka 3.9, core/.../coordinator/group: GroupCoordinator.scala, GroupMetadataManager.scala,
GroupMetadata.scala.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.log_lines.entries import ERROR, INFO, WARN, Entry
from coordinator_sim.log_lines.reasons import scala_3_reason, told
from coordinator_sim.log_lines.scala_values import (
    member_metadata,
    option,
    scala_key_set,
    scala_set,
)
from coordinator_sim.log_lines.words import (
    OPERATIONS,
    Words,
    client_reason,
    groups_deleted,
    listed,
    partitions_deleted,
    raw_error,
)
from coordinator_sim.protocol.error_texts import error_message, exception_name
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import Profile
from coordinator_sim.trace.events import Event, TraceEvent

_TOPIC: Final = "__consumer_offsets"
_TOO_LARGE: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}
)
_EXPECTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class ScalaWords(Words):
    """The coordinator of 3.2 to 3.9; older ones say some things otherwise."""

    holds_departures = True
    coordinator_logger = "kafka.coordinator.group.GroupCoordinator"
    manager_logger = "kafka.coordinator.group.GroupMetadataManager"
    unknown_error = "UNKNOWN"

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
            Event.GROUP_DEAD: self._dead,
            Event.OFFSET_TOMBSTONE: self._offsets_deleted,
            Event.OFFSET_EXPIRED: self._offsets_expired,
            Event.LIFECYCLE: self._lifecycle,
            **dict.fromkeys(OPERATIONS, self._fenced),
        }

    def place(self, event: TraceEvent) -> str:
        """The group's offsets partition as it ends some messages."""
        return f" ({_TOPIC}-{event.offsets_partition})"

    # -- members ---------------------------------------------------------------------------

    def _id_assigned(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Dynamic member with unknown member id joins group {event.group_id} in "
            f"{self.state(event)} state. Created a new member id {event.member_id} and request "
            "the member to rejoin with this id.",
        )

    def _added(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("member_id_was") == "pending":
            return
        who = "Dynamic Member with"
        if event.group_instance_id is not None:
            who = f"Static member with groupInstanceId={event.group_instance_id} and"
        yield self.coordinator(
            event,
            f"{who} unknown member id joins group {event.group_id} in {self.state(event)} state. "
            f"Created a new member id {event.member_id} for this member and add to the group.",
        )

    def _left(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("pending"):
            text = (
                f"Pending member with memberId={event.member_id} has left group {event.group_id} "
                "through explicit `LeaveGroup` request"
            )
        else:
            text = (
                f"Member {member_metadata(event)} has left group {event.group_id} through explicit "
                f"`LeaveGroup`; client reason: {client_reason(event)}"
            )
        yield self.coordinator(event, text)

    def _failed(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Member {event.member_id} in group {event.group_id} has failed, removing it from the "
            "group",
        )

    def _pending_expired(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Pending member {event.member_id} in group {event.group_id} has been removed after "
            "session timeout expiration.",
        )

    def _replaced(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("undone"):
            return
        yield self.coordinator(
            event,
            f"Static member with groupInstanceId={event.group_instance_id} and unknown member id "
            f"joins group {event.group_id} in {self.state(event)} state. Replacing previously "
            f"mapped member {event.attrs.get('old_member_id')} with this groupInstanceId.",
        )
        yield from self.quiet_return(event)

    def quiet_return(self, event: TraceEvent) -> Iterator[Entry]:
        """A static member came back and nothing else changed."""
        if event.attrs.get("rebalance") == "0":
            yield self.coordinator(
                event,
                "Static member which joins during Stable stage and doesn't affect selectProtocol "
                "will not trigger rebalance.",
            )

    def _fenced(self, event: TraceEvent) -> Iterator[Entry]:
        current = event.attrs.get("current_member_id")
        if current is not None:
            yield self.coordinator(
                event,
                f"Request memberId={event.member_id} for static member with "
                f"groupInstanceId={event.group_instance_id} is fenced by current "
                f"memberId={current} during operation {OPERATIONS[event.event]}",
            )

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Members that did not rejoin. Source: GroupCoordinator.onCompleteJoin."""
        names = scala_key_set([str(event.member_id) for event in events])
        yield self.coordinator(
            events[0],
            f"Group {events[0].group_id} removed dynamic members who haven't joined: {names}",
        )

    def _leader_replaced(self, event: TraceEvent) -> Iterator[Entry]:
        instance = option(event.attrs.get("old_instance_id"))
        text = (
            f"Group leader [member.id: {event.attrs.get('old_leader_id')}, group.instance.id: "
            f"{instance}] failed to join before rebalance timeout, "
        )
        if event.attrs.get("outcome") == "no_member_joined":
            # QUIRK: two pieces of this text are put together without a blank.
            # Source: kafka 3.9, GroupMetadata.maybeElectNewJoinedLeader.
            text += "and the group couldn't proceed to next generationbecause no member joined."
            yield self.metadata(text)
            yield self.coordinator(
                event,
                f"Group {event.group_id} could not complete rebalance because no members rejoined",
                ERROR,
            )
        else:
            text += f"while new leader {self.member(event)} was elected."
            yield self.metadata(text)

    def member(self, event: TraceEvent) -> str:
        """The member of an event with all that is known of it."""
        return member_metadata(event)

    # -- rebalances ------------------------------------------------------------------------

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """A rebalance and its reason. Source: GroupCoordinator.prepareRebalance."""
        reason = self.reason(event, leaver)
        yield self.coordinator(
            event,
            f"Preparing to rebalance group {event.group_id} in state PreparingRebalance with old "
            f"generation {event.generation}{self.place(event)} (reason: {reason})",
        )

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Why the group rebalances."""
        return scala_3_reason(told(event, self.shown("AwaitingSync"), leaver))

    def _stabilized(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Stabilized group {event.group_id} generation {event.generation}"
            f"{self.place(event)} with {event.members} members",
        )

    def _assignment(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
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
            members = scala_set(listed(event.attrs["member_ids"]))
            text = (
                f"Setting empty assignments for members {members} of {event.group_id} for "
                f"generation {event.generation}"
            )
        yield self.coordinator(event, text, WARN)

    def _empty(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Group {event.group_id} with generation {event.generation} is now empty"
            f"{self.place(event)}",
        )

    def _store_failed(self, event: TraceEvent) -> Iterator[Entry]:
        """Source: GroupMetadataManager.storeGroup, then the callbacks of GroupCoordinator."""
        raw = raw_error(event)
        group, exception = event.group_id, exception_name(raw)
        append = f"Appending metadata message for group {group} generation {event.generation} "
        if raw in _TOO_LARGE:
            unknown = self.unknown_error
            text = (
                f"{append}failed due to {exception}, returning {unknown} error code to the client"
            )
            yield self.manager(event, text, ERROR)
        elif raw not in _EXPECTED:
            text = f"{append}failed due to unexpected error: {exception}"
            yield self.manager(event, text, ERROR)
        what = _NOT_STORED.get(event.attrs.get("what", ""))
        if what is not None:
            message = error_message(event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
            text = f"Failed to {what} metadata for group {group}: {message}"
            yield self.coordinator(event, text, WARN)

    # -- offsets partitions ----------------------------------------------------------------

    def _loaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Loading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _unloaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Unloading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _load_start(self, event: TraceEvent) -> Iterator[Entry]:
        partition, epoch = event.offsets_partition, event.attrs.get("epoch")
        yield self.coordinator(
            event, f"Elected as the group coordinator for partition {partition} in epoch {epoch}"
        )
        yield self.manager(
            event,
            f"Scheduling loading of offsets and group metadata from {_TOPIC}-{partition} for epoch "
            f"{epoch}",
        )

    def _load_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished loading offsets and group metadata from {_TOPIC}-{event.offsets_partition} "
            f"in {(event.latency_us or 0) // 1_000} milliseconds for epoch "
            f"{event.attrs.get('epoch')}, of which 0 milliseconds was spent in the scheduler.",
        )

    def _load_failed(self, event: TraceEvent) -> Iterator[Entry]:
        place = f"{_TOPIC}-{event.offsets_partition}"
        yield self.manager(event, f"Error loading offsets from {place}", ERROR)

    def _resigned(self, event: TraceEvent) -> Iterator[Entry]:
        partition = event.offsets_partition
        yield self.coordinator(
            event,
            f"Resigned as the group coordinator for partition {partition} in epoch {_epoch(event)}",
        )
        yield self.manager(
            event,
            f"Scheduling unloading of offsets and group metadata from {_TOPIC}-{partition}",
        )

    def _unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished unloading {_TOPIC}-{event.offsets_partition} for coordinator epoch "
            f"{_epoch(event)}. Removed {event.attrs.get('offsets', 0)} cached offsets and "
            f"{event.attrs.get('groups', 0)} cached groups.",
        )

    def _dead(self, event: TraceEvent) -> Iterator[Entry]:
        """Source: GroupMetadataManager.cleanupGroupMetadata; other ends are told otherwise."""
        if event.attrs.get("cause") == "no offsets":
            text = f"Group {event.group_id} transitioned to Dead in generation {event.generation}"
            yield self.manager(event, text)

    def _offsets_deleted(self, event: TraceEvent) -> Iterator[Entry]:
        if event.group_id is None:
            yield self.coordinator(event, partitions_deleted(event))
            return
        yield self.coordinator(
            event,
            f"The following offsets of the group {event.group_id} were deleted: "
            f"{event.attrs.get('partitions')}. A total of {event.attrs.get('count')} offsets were "
            "removed.",
        )

    def _offsets_expired(self, event: TraceEvent) -> Iterator[Entry]:
        count = event.attrs.get("count")
        yield self.manager(event, f"Removed {count} expired offsets in 0 milliseconds.")

    def _lifecycle(self, event: TraceEvent) -> Iterator[Entry]:
        match event.reason_text:
            case "groups deleted":
                yield self.coordinator(event, groups_deleted(event))
            case "member loaded":
                text = (
                    f"Loaded member {self.member(event)} in group {event.group_id} with generation "
                    f"{event.generation}."
                )
                # It is the companion object that says so.
                yield Entry("kafka.coordinator.group.GroupMetadata$", text)
            case "session of a dead group":
                yield self.coordinator(
                    event,
                    "Received notification of heartbeat expiration for member "
                    f"{event.member_id} after group {event.group_id} had already been unloaded or "
                    "deleted.",
                )
            case "unload refused":
                yield self.manager(
                    event,
                    f"Not removing offsets and group metadata for {_TOPIC}-"
                    f"{event.offsets_partition} in epoch {self.epoch(event)} since current epoch "
                    f"is {event.attrs.get('current_epoch')}",
                )
            case _:
                return

    def epoch(self, event: TraceEvent) -> str:
        """A leader epoch that need not be known."""
        return _epoch(event)

    # -- who speaks ------------------------------------------------------------------------

    def coordinator(self, event: TraceEvent, text: str, level: str = INFO) -> Entry:
        """An entry of GroupCoordinator."""
        return Entry(
            self.coordinator_logger, f"[GroupCoordinator {event.broker_id}]: {text}", level
        )

    def manager(self, event: TraceEvent, text: str, level: str = INFO) -> Entry:
        """An entry of GroupMetadataManager."""
        prefix = f"[GroupMetadataManager brokerId={event.broker_id}] "
        return Entry(self.manager_logger, prefix + text, level)

    def metadata(self, text: str) -> Entry:
        """An entry of GroupMetadata, which does not say whose it is."""
        return Entry("kafka.coordinator.group.GroupMetadata", text)


_NOT_STORED: Final = {"empty generation": "write empty", "static member": "persist"}


def _epoch(event: TraceEvent) -> str:
    epoch = event.attrs.get("epoch")
    return "OptionalInt.empty" if epoch is None else f"OptionalInt[{epoch}]"
