"""Log wording of the Scala coordinator before 3.0: of 2.8, and of 0.10.2.

Source: kafka 2.8.2, core/.../coordinator/group: GroupCoordinator.scala, GroupMetadata.scala; kafka
0.10.2.2, core/.../coordinator: GroupCoordinator.scala, GroupMetadataManager.scala.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.logtext.writing.entries import ERROR, Entry
from coordinator_sim.logtext.writing.every_scala import EveryScalaWords
from coordinator_sim.logtext.writing.reasons import scala_2_reason, told
from coordinator_sim.logtext.writing.scala import ScalaWords
from coordinator_sim.logtext.writing.scala_values import member_metadata, option
from coordinator_sim.logtext.writing.words import OPERATIONS, offsets_log
from coordinator_sim.trace.events import TraceEvent

_NOT_STORED: Final = {"empty generation": "write empty"}


class Scala2Words(ScalaWords):
    """The coordinator of 2.8: no client reasons, departures first, few joins at INFO."""

    holds_departures = False

    def member(self, event: TraceEvent) -> str:
        """Format the member of an event in full."""
        return member_metadata(event, ending=", ")

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Return why the group rebalances."""
        return scala_2_reason(told(event, self.shown("AwaitingSync"), leaver))

    def _tell_member_id_assigned(self, event: TraceEvent) -> Iterator[Entry]:
        """Log nothing: 2.8 does not log it at INFO."""
        del event
        yield from ()

    def _tell_member_added(self, event: TraceEvent) -> Iterator[Entry]:
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

    def _tell_member_left(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("pending"):
            text = f"Pending member {event.member_id} is leaving group {event.group_id}."
        else:
            text = (
                f"Member[group.instance.id {option(event.group_instance_id)}, member.id "
                f"{event.member_id}] in group {event.group_id} has left, removing it from the group"
            )
        yield self.coordinator(event, text)

    def replaced(self, event: TraceEvent) -> str:
        """Return the text for a static member that returned without its id."""
        return (
            f"Static member {option(event.group_instance_id)} of group {event.group_id} with "
            f"unknown member id rejoins, assigning new member id {event.member_id}, while old "
            f"member id {event.attrs.get('old_member_id')} will be removed."
        )

    def fenced(self, event: TraceEvent, current: str) -> Entry:
        """Return the entry of a fenced member. Source: GroupMetadata.isStaticMemberFenced."""
        text = (
            f"given member.id {event.member_id} is identified as a known static member "
            f"{event.group_instance_id}, but not matching the expected member.id {current} "
            f"during {OPERATIONS[event.event]}, will respond with instance fenced error"
        )
        return self.metadata(text, ERROR)

    def _tell_sync_leader(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Assignment received from leader for group {event.group_id} for generation "
            f"{event.generation}. The group has {event.members} members, {event.static_members} of "
            "which are static.",
        )

    def epoch(self, event: TraceEvent) -> str:
        """Format a leader epoch that may be unknown."""
        return option(event.attrs.get("epoch"))


class LegacyWords(EveryScalaWords):
    """The coordinator of 0.10.2: states of groups, no members, no reasons."""

    package = "kafka.coordinator"
    manager_prefix = "[Group Metadata Manager on Broker {}]: "
    not_stored = _NOT_STORED

    def error_text(self, code: ErrorCode) -> str:
        """Return the message of an error in 0.10.2."""
        return _MESSAGES.get(code) or error_message(code)

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Log nothing: 0.10.2 drops members that did not rejoin silently."""
        del events
        yield from ()

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """Log a rebalance without its reason. Source: GroupCoordinator.prepareRebalance."""
        del leaver
        yield self.coordinator(
            event,
            f"Preparing to restabilize group {event.group_id} with old generation "
            f"{event.generation}",
        )

    def _tell_join_complete(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event, f"Stabilized group {event.group_id} generation {event.generation}"
        )

    def _tell_sync_leader(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Assignment received from leader for group {event.group_id} for generation "
            f"{event.generation}",
        )

    def _tell_group_empty(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event, f"Group {event.group_id} with generation {event.generation} is now empty"
        )

    def _tell_load_start(self, event: TraceEvent) -> Iterator[Entry]:
        place = offsets_log(event)
        yield self.manager(event, f"Loading offsets and group metadata from {place}")

    def _tell_load_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished loading offsets from {offsets_log(event)} in "
            f"{(event.latency_us or 0) // 1_000} milliseconds.",
        )

    def _tell_unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        """Log an unload of offsets. Source: GroupMetadataManager.removeGroupsForPartition."""
        place = f"{offsets_log(event)} on follower transition."
        for what in ("offsets", "groups"):
            count = event.attrs.get(what, "0")
            if count != "0":
                yield self.manager(event, f"Removed {count} cached {what} for {place}")

    def _tell_offset_tombstone(self, event: TraceEvent) -> Iterator[Entry]:
        """Log an expired offset. Source: GroupMetadataManager.cleanupGroupMetadata."""
        if event.group_id is None:
            yield from self._tell_offset_expired(event)


_MESSAGES: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The group coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator for this group.",
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request"
    ),
}
"""Messages that differ in 0.10.2. Source: its Errors.java."""
