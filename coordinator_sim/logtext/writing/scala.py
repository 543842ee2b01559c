"""Log wording of the Scala coordinator, 3.2 to 3.9.

Source: kafka 3.9, core/.../coordinator/group: GroupCoordinator.scala, GroupMetadataManager.scala,
GroupMetadata.scala.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.logtext.writing.entries import INFO, Entry
from coordinator_sim.logtext.writing.every_scala import APPEND_ERRORS, EveryScalaWords
from coordinator_sim.logtext.writing.member_words import MemberWords
from coordinator_sim.logtext.writing.reasons import scala_3_reason, told
from coordinator_sim.logtext.writing.scala_values import (
    member_metadata,
    option,
    scala_key_set,
    scala_set,
)
from coordinator_sim.logtext.writing.words import (
    OPERATIONS,
    client_reason,
    groups_deleted,
    offsets_log,
    partitions_deleted,
)
from coordinator_sim.trace.events import TraceEvent

_NOT_STORED: Final = {"empty generation": "write empty", "static member": "persist"}


class ScalaWords(EveryScalaWords, MemberWords):
    """The coordinator of 3.2 to 3.9; older ones differ in some messages."""

    holds_departures = True
    package = "kafka.coordinator.group"
    manager_prefix = "[GroupMetadataManager brokerId={}] "
    expected = APPEND_ERRORS | {ErrorCode.KAFKA_STORAGE_ERROR}
    not_stored = _NOT_STORED
    quiet_return = (
        "Static member which joins during Stable stage and doesn't affect selectProtocol "
        "will not trigger rebalance."
    )

    def place(self, event: TraceEvent) -> str:
        """Return the group's offsets partition as it ends some messages."""
        return f" ({offsets_log(event)})"

    # -- members ---------------------------------------------------------------------------

    def _tell_member_id_assigned(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Dynamic member with unknown member id joins group {event.group_id} in "
            f"{self.state(event)} state. Created a new member id {event.member_id} and request "
            "the member to rejoin with this id.",
        )

    def _tell_member_added(self, event: TraceEvent) -> Iterator[Entry]:
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

    def _tell_member_left(self, event: TraceEvent) -> Iterator[Entry]:
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

    def fenced(self, event: TraceEvent, current: str) -> Entry:
        """Return the entry of a fenced member. Source: GroupCoordinator.validateCurrentMember."""
        return self.coordinator(
            event,
            f"Request memberId={event.member_id} for static member with "
            f"groupInstanceId={event.group_instance_id} is fenced by current "
            f"memberId={current} during operation {OPERATIONS[event.event]}",
        )

    def names(self, member_ids: list[str]) -> str:
        """Format members that did not rejoin, as the keys of a map."""
        return scala_key_set(member_ids)

    def unassigned(self, member_ids: list[str]) -> str:
        """Format members without an assignment from the leader, as a set."""
        return scala_set(member_ids)

    def _tell_leader_replaced(self, event: TraceEvent) -> Iterator[Entry]:
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
            yield self.nobody_rejoined(event)
        else:
            text += f"while new leader {self.member(event)} was elected."
            yield self.metadata(text)

    def member(self, event: TraceEvent) -> str:
        """Format the member of an event in full."""
        return member_metadata(event)

    # -- rebalances ------------------------------------------------------------------------

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Return why the group rebalances."""
        return scala_3_reason(told(event, self.shown("AwaitingSync"), leaver))

    # -- offsets partitions ----------------------------------------------------------------

    def _tell_load_start(self, event: TraceEvent) -> Iterator[Entry]:
        partition, epoch = event.offsets_partition, event.attrs.get("epoch")
        place = offsets_log(event)
        yield self.coordinator(
            event, f"Elected as the group coordinator for partition {partition} in epoch {epoch}"
        )
        yield self.manager(
            event,
            f"Scheduling loading of offsets and group metadata from {place} for epoch {epoch}",
        )

    def _tell_load_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished loading offsets and group metadata from {offsets_log(event)} in "
            f"{(event.latency_us or 0) // 1_000} milliseconds for epoch "
            f"{event.attrs.get('epoch')}, of which 0 milliseconds was spent in the scheduler.",
        )

    def _tell_coord_resigned(self, event: TraceEvent) -> Iterator[Entry]:
        partition, epoch = event.offsets_partition, self.epoch(event)
        yield self.coordinator(
            event,
            f"Resigned as the group coordinator for partition {partition} in epoch {epoch}",
        )
        yield self.manager(
            event,
            f"Scheduling unloading of offsets and group metadata from {offsets_log(event)}",
        )

    def _tell_unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.manager(
            event,
            f"Finished unloading {offsets_log(event)} for coordinator epoch "
            f"{self.epoch(event)}. Removed {event.attrs.get('offsets', 0)} cached offsets and "
            f"{event.attrs.get('groups', 0)} cached groups.",
        )

    def _tell_offset_tombstone(self, event: TraceEvent) -> Iterator[Entry]:
        if event.group_id is None:
            yield self.coordinator(event, partitions_deleted(event))
            return
        yield self.coordinator(
            event,
            f"The following offsets of the group {event.group_id} were deleted: "
            f"{event.attrs.get('partitions')}. A total of {event.attrs.get('count')} offsets were "
            "removed.",
        )

    def _tell_lifecycle(self, event: TraceEvent) -> Iterator[Entry]:
        match event.reason_text:
            case "groups deleted":
                yield self.coordinator(event, groups_deleted(event))
            case "member loaded":
                text = (
                    f"Loaded member {self.member(event)} in group {event.group_id} with generation "
                    f"{event.generation}."
                )
                # The companion object logs this one.
                yield Entry(f"{self.package}.GroupMetadata$", text)
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
                    f"Not removing offsets and group metadata for {offsets_log(event)} "
                    f"in epoch {self.epoch(event)} since current epoch "
                    f"is {event.attrs.get('current_epoch')}",
                )
            case _:
                return

    # -- logging classes -------------------------------------------------------------------

    def metadata(self, text: str, level: str = INFO) -> Entry:
        """Return an entry of GroupMetadata, which does not name the group."""
        return Entry(f"{self.package}.GroupMetadata", text, level)
