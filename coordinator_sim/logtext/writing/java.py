"""Log wording of the Java coordinator, 4.0 to 4.4.

Source: kafka trunk, group-coordinator: GroupMetadataManager, OffsetMetadataManager,
GroupCoordinatorShard, GroupCoordinatorService, classic/ClassicGroup; coordinator-common:
CoordinatorRuntime. The words are those that these classes of 4.4.0 write.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.logtext.writing.entries import ERROR, INFO, WARN, Entry
from coordinator_sim.logtext.writing.member_words import MemberWords
from coordinator_sim.logtext.writing.reasons import NOT_PROVIDED
from coordinator_sim.logtext.writing.words import (
    OPERATIONS,
    client_reason,
    groups_deleted,
    offsets_log,
    raw_error,
)
from coordinator_sim.trace.events import RebalanceReason, TraceEvent

_PACKAGE: Final = "org.apache.kafka.coordinator"
_GROUPS: Final = f"{_PACKAGE}.group.GroupMetadataManager"
_CLASSIC: Final = f"{_PACKAGE}.group.classic.ClassicGroup"
_OFFSETS: Final = f"{_PACKAGE}.group.OffsetMetadataManager"
_SHARD: Final = f"{_PACKAGE}.group.GroupCoordinatorShard"
_RUNTIME: Final = f"{_PACKAGE}.common.runtime.CoordinatorRuntime"
_NO_REASON: Final = "; client reason: "


class JavaWords(MemberWords):
    """The coordinator of 4.x."""

    full_stop = "."
    quiet_return = (
        "Static member which joins during Stable stage and doesn't affect the selected protocol "
        "will not trigger a rebalance."
    )

    # -- members ---------------------------------------------------------------------------

    def _tell_member_id_assigned(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Dynamic member with unknown member id joins group {event.group_id} in "
            f"{self.state(event)} state. Created a new member id {event.member_id} and requesting "
            "the member to rejoin with this id.",
        )

    def _tell_member_added(self, event: TraceEvent) -> Iterator[Entry]:
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
        yield self.coordinator(event, text)

    def _tell_member_left(self, event: TraceEvent) -> Iterator[Entry]:
        who = "Pending member" if event.attrs.get("pending") else "Member"
        yield self.coordinator(
            event,
            f"[Group {event.group_id}] {who} {event.member_id} has left group through explicit "
            f"`LeaveGroup` request; client reason: {client_reason(event)}",
        )

    def fenced(self, event: TraceEvent, current: str) -> Entry:
        """Return the entry of a fenced member. Source: ClassicGroup.validateMember."""
        return self.coordinator(
            event,
            f"Request memberId={event.member_id} for static member with "
            f"groupInstanceId={event.group_instance_id} is fenced by existing "
            f"memberId={current} during operation {OPERATIONS[event.event]}",
            logger=_CLASSIC,
        )

    def names(self, member_ids: list[str]) -> str:
        """Format members that did not rejoin, as a Java list."""
        return f"[{', '.join(member_ids)}]"

    def unassigned(self, member_ids: list[str]) -> str:
        """Format members without an assignment from the leader, as a Java map."""
        # QUIRK: Kafka prints a map of byte arrays, so each member comes with the identity
        # hash of an array, which differs from process to process; it is 0 here.
        # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
        return f"{{{', '.join(f'{name}=[B@0' for name in member_ids)}}}"

    def _tell_leader_replaced(self, event: TraceEvent) -> Iterator[Entry]:
        text = (
            f"Group leader [memberId: {event.attrs.get('old_leader_id')}, groupInstanceId: "
            f"{event.attrs.get('old_instance_id', 'null')}] failed to join before the rebalance "
            "timeout"
        )
        if event.attrs.get("outcome") == "no_member_joined":
            text += (
                " and the group couldn't proceed to the next generation because no member joined."
            )
            yield self.coordinator(event, text, logger=_CLASSIC)
            yield self.nobody_rejoined(event)
        else:
            text += f". Member {_member(event)} was elected as the new leader."
            yield self.coordinator(event, text, logger=_CLASSIC)

    # -- rebalances ------------------------------------------------------------------------

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Return the reason, which the core words like Java."""
        del leaver
        reason = self.shown(event.reason_text or "")
        if reason.endswith(_NO_REASON):
            reason += NOT_PROVIDED
        if event.reason is RebalanceReason.STORE_ERROR:
            # QUIRK: two pieces of this text are put together without a blank.
            # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
            reason = reason.replace("assignment during", "assignmentduring")
        return reason

    def _tell_store_failed(self, event: TraceEvent) -> Iterator[Entry]:
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
        yield self.coordinator(event, text, WARN)

    # -- offsets partitions ----------------------------------------------------------------

    def _tell_group_loaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event, f"Loaded classic group {event.group_id} with {event.members} members."
        )

    def _tell_group_unloaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"[GroupId={event.group_id}] Unloading group metadata for generation "
            f"{event.generation}.",
        )

    def _tell_load_start(self, event: TraceEvent) -> Iterator[Entry]:
        place = offsets_log(event)
        yield _broker(
            event,
            f"Scheduling loading of metadata from {place} with epoch {event.attrs.get('epoch')}",
        )

    def _tell_load_done(self, event: TraceEvent) -> Iterator[Entry]:
        # DEVIATION: the size in bytes is 0, for the core knows records and not their bytes.
        yield _broker(
            event,
            f"Finished loading of metadata from {offsets_log(event)} with epoch "
            f"{event.attrs.get('epoch')} in {(event.latency_us or 0) // 1_000}ms where 0ms was "
            f"spent in the scheduler. Loaded {event.attrs.get('records', 0)} records which total "
            f"to {event.attrs.get('bytes', 0)} bytes.",
        )

    def _tell_load_failed(self, event: TraceEvent) -> Iterator[Entry]:
        error = event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
        yield _broker(
            event,
            f"Failed to load metadata from {offsets_log(event)} with epoch "
            f"{event.attrs.get('epoch')} due to {error_message(error)}.",
            ERROR,
        )

    def _tell_coord_resigned(self, event: TraceEvent) -> Iterator[Entry]:
        place, epoch = offsets_log(event), self.epoch(event)
        yield _broker(event, f"Scheduling unloading of metadata for {place} with epoch {epoch}")
        yield _broker(event, f"Started unloading metadata for {place} with epoch {epoch}.")

    def _tell_unload_done(self, event: TraceEvent) -> Iterator[Entry]:
        place = offsets_log(event)
        yield _broker(
            event, f"Finished unloading metadata for {place} with epoch {self.epoch(event)}."
        )

    def _tell_lifecycle(self, event: TraceEvent) -> Iterator[Entry]:
        if event.reason_text == "groups deleted":
            yield self.coordinator(event, groups_deleted(event), logger=_SHARD)
        if event.reason_text == "simple group created":
            yield self.coordinator(
                event,
                f"[GroupId {event.group_id}] Creating a simple consumer group via manual offset "
                "commit.",
                logger=_OFFSETS,
            )

    def coordinator(
        self, event: TraceEvent, text: str, level: str = INFO, *, logger: str = _GROUPS
    ) -> Entry:
        """Return an entry of the coordinator of one offsets partition."""
        prefix = (
            f"[GroupCoordinator id={event.broker_id} topic={OFFSETS_TOPIC} "
            f"partition={event.offsets_partition}] "
        )
        return Entry(logger, prefix + text, level)


def _member(event: TraceEvent) -> str:
    """Format the member of an event in full. Source: ClassicGroupMember.toString."""
    protocols = event.attrs.get("protocols", "").replace(",", ", ")
    return (
        f"ClassicGroupMember(memberId='{event.member_id}', "
        f"groupInstanceId='{event.group_instance_id or ''}', clientId='{event.client_id}', "
        f"clientHost='{event.client_host}', rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"sessionTimeoutMs={event.session_timeout_ms}, protocolType='{event.protocol_type}', "
        f"supportedProtocols=[{protocols}])"
    )


def _broker(event: TraceEvent, text: str, level: str = INFO) -> Entry:
    """Return an entry about an offsets partition as a whole."""
    return Entry(_RUNTIME, f"[GroupCoordinator id={event.broker_id}] {text}", level)
