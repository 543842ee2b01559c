"""Log wording common to coordinators since 2.x: members, rebalances, ends of join phases.

Releases differ in the logging class, the place of the offsets partition and full stops.

Source: kafka 3.9, GroupCoordinator.scala; kafka trunk, group-coordinator GroupMetadataManager.
"""

from collections.abc import Iterator

from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.logtext.writing.entries import ERROR, WARN, Entry
from coordinator_sim.logtext.writing.words import OPERATIONS, Words, listed
from coordinator_sim.trace.events import TraceEvent


class MemberWords(Words):
    """A coordinator that logs its members' actions."""

    full_stop: str = ""
    """End of messages that some releases end with a full stop."""
    quiet_return: str
    """Text for a static member that returned without changing anything else."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._tellers |= dict.fromkeys(OPERATIONS, self._tell_fenced)

    # -- wording that differs between releases ---------------------------------------------

    def place(self, event: TraceEvent) -> str:
        """Return the group's offsets partition as it ends some messages."""
        del event
        return ""

    def reason(self, event: TraceEvent, leaver: TraceEvent | None) -> str:
        """Return why the group rebalances; the arguments are those of `rebalancing`."""
        raise NotImplementedError

    def names(self, member_ids: list[str]) -> str:
        """Format members that did not rejoin, as a collection."""
        raise NotImplementedError

    def unassigned(self, member_ids: list[str]) -> str:
        """Format members without an assignment from the leader, as a collection."""
        raise NotImplementedError

    def fenced(self, event: TraceEvent, current: str) -> Entry:
        """Return the entry of a static member that another one, `current`, replaced."""
        raise NotImplementedError

    def replaced(self, event: TraceEvent) -> str:
        """Return the text for a static member that returned without its id."""
        return (
            f"Static member with groupInstanceId={event.group_instance_id} and unknown member id "
            f"joins group {event.group_id} in {self.state(event)} state. Replacing previously "
            f"mapped member {event.attrs.get('old_member_id')} with this groupInstanceId."
        )

    def epoch(self, event: TraceEvent) -> str:
        """Format a leader epoch that may be unknown."""
        epoch = event.attrs.get("epoch")
        return "OptionalInt.empty" if epoch is None else f"OptionalInt[{epoch}]"

    # -- members ---------------------------------------------------------------------------

    def _tell_member_failed(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Member {event.member_id} in group {event.group_id} has failed, removing it from the "
            f"group{self.full_stop}",
        )

    def _tell_pending_expired(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Pending member {event.member_id} in group {event.group_id} has been removed after "
            "session timeout expiration.",
        )

    def _tell_static_replaced(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("undone"):
            return
        yield self.coordinator(event, self.replaced(event))
        if event.attrs.get("rebalance") == "0":
            yield self.coordinator(event, self.quiet_return)

    def _tell_fenced(self, event: TraceEvent) -> Iterator[Entry]:
        current = event.attrs.get("current_member_id")
        if current is not None:
            yield self.fenced(event, current)

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Log kicked members. Source: onCompleteJoin of 3.9, completeClassicGroupJoin of 4.x."""
        names = self.names([str(event.member_id) for event in events])
        yield self.coordinator(
            events[0],
            f"Group {events[0].group_id} removed dynamic members who haven't joined: {names}",
        )

    def nobody_rejoined(self, event: TraceEvent) -> Entry:
        """Return the entry of a join phase that ended without a member."""
        return self.coordinator(
            event,
            f"Group {event.group_id} could not complete rebalance because no members rejoined"
            f"{self.full_stop}",
            ERROR,
        )

    # -- rebalances ------------------------------------------------------------------------

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """Log a rebalance and its reason. Source: prepareRebalance."""
        yield self.coordinator(
            event,
            f"Preparing to rebalance group {event.group_id} in state PreparingRebalance with old "
            f"generation {event.generation}{self.place(event)} "
            f"(reason: {self.reason(event, leaver)}){self.full_stop}",
        )

    def _tell_join_complete(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Stabilized group {event.group_id} generation {event.generation}"
            f"{self.place(event)} with {event.members} members{self.full_stop}",
        )

    def _tell_sync_leader(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Assignment received from leader {event.leader_id} for group {event.group_id} for "
            f"generation {event.generation}. The group has {event.members} members, "
            f"{event.static_members} of which are static.",
        )

    def _tell_empty_assignment(self, event: TraceEvent) -> Iterator[Entry]:
        if event.attrs.get("sent"):
            text = (
                f"Sending empty assignment to member {event.member_id} of {event.group_id} for "
                f"generation {event.generation} with no errors"
            )
        else:
            members = self.unassigned(listed(event.attrs["member_ids"]))
            text = (
                f"Setting empty assignments for members {members} of {event.group_id} for "
                f"generation {event.generation}{self.full_stop}"
            )
        yield self.coordinator(event, text, WARN)

    def _tell_group_empty(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Group {event.group_id} with generation {event.generation} is now empty"
            f"{self.place(event)}{self.full_stop}",
        )
