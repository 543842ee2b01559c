"""The Scala coordinator's words before 3.0: those of 2.8, and those of 0.10.2.

Source: kafka 2.8.2, core/.../coordinator/group: GroupCoordinator.scala, GroupMetadata.scala; kafka
0.10.2.2, core/.../coordinator: GroupCoordinator.scala, GroupMetadataManager.scala.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.log_lines.entries import ERROR, INFO, WARN, Entry
from coordinator_sim.log_lines.reasons import scala_2_reason, told
from coordinator_sim.log_lines.scala import ScalaWords
from coordinator_sim.log_lines.scala_values import member_metadata, option
from coordinator_sim.log_lines.words import OPERATIONS, Words, raw_error
from coordinator_sim.protocol.error_texts import error_message, exception_name
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import Profile
from coordinator_sim.trace.events import Event, TraceEvent

_TOPIC: Final = "__consumer_offsets"


class Scala2Words(ScalaWords):
    """The coordinator of 2.8: no client reasons, departures first, little of joins at INFO."""

    holds_departures = False

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.texts |= {
            Event.MEMBER_ADDED: self._added_2,
            Event.MEMBER_LEFT: self._left_2,
            Event.STATIC_REPLACED: self._replaced_2,
            Event.SYNC_LEADER: self._assignment_2,
            Event.COORD_RESIGNED: self._resigned_2,
            Event.UNLOAD_DONE: self._unload_done_2,
            **dict.fromkeys(OPERATIONS, self._fenced_2),
        }
        del self.texts[Event.MEMBER_ID_ASSIGNED]

    def member(self, event: TraceEvent) -> str:
        """The member of an event with all that is known of it."""
        return member_metadata(event, ending=", ")

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Why the group rebalances."""
        return scala_2_reason(told(event, self.shown("AwaitingSync"), leaver))

    def _added_2(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("member_id_was") == "pending":
            return
        instance = event.group_instance_id
        kind = "Dynamic" if instance is None else "Static"
        yield self.coordinator(
            event,
            f"{kind} Member with unknown member id joins group {event.group_id} in "
            f"{self.state(event)} state. Created a new member id {event.member_id} for this member "
            "and add to the group.",
        )
        if instance is not None:
            yield self.coordinator(
                event,
                f"Adding new static member {option(instance)} to group {event.group_id} with "
                f"member id {event.member_id}.",
            )

    def _left_2(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("pending"):
            text = f"Pending member {event.member_id} is leaving group {event.group_id}."
        else:
            text = (
                f"Member[group.instance.id {option(event.group_instance_id)}, member.id "
                f"{event.member_id}] in group {event.group_id} has left, removing it from the group"
            )
        yield self.coordinator(event, text)

    def _replaced_2(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("undone"):
            return
        yield self.coordinator(
            event,
            f"Static member {option(event.group_instance_id)} of group {event.group_id} with "
            f"unknown member id rejoins, assigning new member id {event.member_id}, while old "
            f"member id {event.attrs.get('old_member_id')} will be removed.",
        )
        yield from self.quiet_return(event)

    def _fenced_2(self, event: TraceEvent) -> Iterator[Entry]:
        current = event.attrs.get("current_member_id")
        if current is not None:
            text = (
                f"given member.id {event.member_id} is identified as a known static member "
                f"{event.group_instance_id}, but not matching the expected member.id {current} "
                f"during {OPERATIONS[event.event]}, will respond with instance fenced error"
            )
            yield Entry(f"{self.coordinator_logger[:-11]}Metadata", text, ERROR)

    def _assignment_2(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Assignment received from leader for group {event.group_id} for generation "
            f"{event.generation}. The group has {event.members} members, {event.static_members} of "
            "which are static.",
        )

    def epoch(self, event: TraceEvent) -> str:
        """A leader epoch that need not be known."""
        return option(event.attrs.get("epoch"))

    def _resigned_2(self, event: TraceEvent) -> Iterator[Entry]:
        partition, epoch = event.offsets_partition, option(event.attrs.get("epoch"))
        yield self.coordinator(
            event, f"Resigned as the group coordinator for partition {partition} in epoch {epoch}"
        )
        yield self.manager(
            event,
            f"Scheduling unloading of offsets and group metadata from {_TOPIC}-{partition}",
        )

    def _unload_done_2(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished unloading {_TOPIC}-{event.offsets_partition} for coordinator epoch "
            f"{option(event.attrs.get('epoch'))}. Removed {event.attrs.get('offsets', 0)} cached "
            f"offsets and {event.attrs.get('groups', 0)} cached groups.",
        )


class LegacyWords(Words):
    """The coordinator of 0.10.2: states of groups, nothing of members, no reasons."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.texts = {
            Event.JOIN_COMPLETE: self._stabilized,
            Event.SYNC_LEADER: self._assignment,
            Event.GROUP_EMPTY: self._empty,
            Event.STORE_FAILED: self._store_failed,
            Event.GROUP_LOADED: self._loaded,
            Event.GROUP_UNLOADED: self._unloaded,
            Event.LOAD_START: self._load_start,
            Event.LOAD_DONE: self._load_done,
            Event.LOAD_FAILED: self._load_failed,
            Event.UNLOAD_DONE: self._unload_done,
            Event.GROUP_DEAD: self._dead,
            Event.OFFSET_EXPIRED: self._offsets_expired,
            Event.OFFSET_TOMBSTONE: self._offsets_deleted,
        }

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Members that did not rejoin are dropped in silence."""
        del events
        yield from ()

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """A rebalance, without its reason. Source: GroupCoordinator.prepareRebalance."""
        del leaver
        yield _coordinator(
            event,
            f"Preparing to restabilize group {event.group_id} with old generation "
            f"{event.generation}",
        )

    def _stabilized(self, event: TraceEvent) -> Iterator[Entry]:
        yield _coordinator(
            event, f"Stabilized group {event.group_id} generation {event.generation}"
        )

    def _assignment(self, event: TraceEvent) -> Iterator[Entry]:
        yield _coordinator(
            event,
            f"Assignment received from leader for group {event.group_id} for generation "
            f"{event.generation}",
        )

    def _empty(self, event: TraceEvent) -> Iterator[Entry]:
        yield _coordinator(
            event, f"Group {event.group_id} with generation {event.generation} is now empty"
        )

    def _store_failed(self, event: TraceEvent) -> Iterator[Entry]:
        """Source: GroupMetadataManager.prepareStoreGroup, then onCompleteJoin's callback."""
        raw = raw_error(event)
        append = (
            f"Appending metadata message for group {event.group_id} generation {event.generation} "
        )
        if raw in _TOO_LARGE:
            text = (
                f"failed due to {exception_name(raw)}, returning UNKNOWN error code to the client"
            )
            yield _manager(event, append + text, ERROR)
        elif raw not in _EXPECTED:
            text = f"failed due to unexpected error: {exception_name(raw)}"
            yield _manager(event, append + text, ERROR)
        if event.attrs.get("what") == "empty generation":
            code = event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
            message = _MESSAGES.get(code) or error_message(code)
            text = f"Failed to write empty metadata for group {event.group_id}: {message}"
            yield _coordinator(event, text, WARN)

    def _loaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield _coordinator(
            event,
            f"Loading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _unloaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield _coordinator(
            event,
            f"Unloading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _load_start(self, event: TraceEvent) -> Iterator[Entry]:
        place = f"{_TOPIC}-{event.offsets_partition}"
        yield _manager(event, f"Loading offsets and group metadata from {place}")

    def _load_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield _manager(
            event,
            f"Finished loading offsets from {_TOPIC}-{event.offsets_partition} in "
            f"{(event.latency_us or 0) // 1_000} milliseconds.",
        )

    def _load_failed(self, event: TraceEvent) -> Iterator[Entry]:
        place = f"{_TOPIC}-{event.offsets_partition}"
        yield _manager(event, f"Error loading offsets from {place}", ERROR)

    def _unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        """Source: GroupMetadataManager.removeGroupsForPartition; zero is not worth a line."""
        place = f"{_TOPIC}-{event.offsets_partition} on follower transition."
        for what in ("offsets", "groups"):
            count = event.attrs.get(what, "0")
            if count != "0":
                yield _manager(event, f"Removed {count} cached {what} for {place}")

    def _dead(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("cause") == "no offsets":
            text = f"Group {event.group_id} transitioned to Dead in generation {event.generation}"
            yield _manager(event, text)

    def _offsets_deleted(self, event: TraceEvent) -> Iterator[Entry]:
        """Source: GroupMetadataManager.cleanupGroupMetadata, which calls them expired."""
        if event.group_id is None:
            yield from self._offsets_expired(event)

    def _offsets_expired(self, event: TraceEvent) -> Iterator[Entry]:
        count = event.attrs.get("count")
        yield _manager(event, f"Removed {count} expired offsets in 0 milliseconds.")


_TOO_LARGE: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}
)
_EXPECTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_MESSAGES: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The group coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator for this group.",
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request"
    ),
}
"""Messages that read otherwise in 0.10.2. Source: its Errors.java."""


def _coordinator(event: TraceEvent, text: str, level: str = INFO) -> Entry:
    prefix = f"[GroupCoordinator {event.broker_id}]: "
    return Entry("kafka.coordinator.GroupCoordinator", prefix + text, level)


def _manager(event: TraceEvent, text: str, level: str = INFO) -> Entry:
    prefix = f"[Group Metadata Manager on Broker {event.broker_id}]: "
    return Entry("kafka.coordinator.GroupMetadataManager", prefix + text, level)
