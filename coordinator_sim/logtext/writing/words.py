"""Common base of the log wording of every generation of coordinators.

A class logs an event by a method `_tell_` and the event's name; without one it logs nothing.
"""

from collections.abc import Callable, Iterator
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.logtext.writing.entries import INFO, Entry
from coordinator_sim.logtext.writing.reasons import NOT_PROVIDED
from coordinator_sim.trace.events import Event, TraceEvent

OPERATIONS: Final = {
    Event.HEARTBEAT: "heartbeat",
    Event.SYNC_RESP: "sync-group",
    Event.JOIN_RESP: "join-group",
    Event.MEMBER_FENCED: "leave-group",
}
"""Event -> name of the request in which a static member is fenced."""

Teller = Callable[[TraceEvent], Iterator[Entry]]
"""Yields the log entries of one event."""


class Words:
    """One generation of coordinators: which events it logs, and how.

    Args:
        profile: Profile of the coordinator.
    """

    holds_departures: bool = False
    """Whether a LeaveGroup is logged after the rebalance that it causes."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        told = ((event, getattr(self, f"_tell_{event.name.lower()}", None)) for event in Event)
        self._tellers: dict[Event, Teller] = {event: tell for event, tell in told if tell}

    def entries(self, event: TraceEvent) -> Iterator[Entry]:
        """Return the log entries of an event: none, one or several."""
        tell = self._tellers.get(event.event)
        return iter(()) if tell is None else tell(event)

    def removed(self, events: list[TraceEvent]) -> Iterator[Entry]:
        """Return the log entries of members that did not rejoin in time; there is at least one."""
        raise NotImplementedError

    def rebalancing(self, event: TraceEvent, leaver: TraceEvent | None) -> Iterator[Entry]:
        """Return the log entries of a PREPARE_REBALANCE.

        Args:
            event: The rebalance.
            leaver: Departure that caused it, where the coordinator logs that later.
        """
        raise NotImplementedError

    def coordinator(self, event: TraceEvent, text: str, level: str = INFO) -> Entry:
        """Return an entry of the class that keeps groups, with its message prefix."""
        raise NotImplementedError

    def state(self, event: TraceEvent) -> str:
        """Return the state of the group at the event, by the name that clients know."""
        return self.shown(event.attrs.get("in_state", ""))

    def shown(self, name: str) -> str:
        """Return a state by the name that clients know."""
        return name.replace("AwaitingSync", self.profile.awaiting_sync_name)


def groups_deleted(event: TraceEvent) -> str:
    """Return the text for groups that a DeleteGroups removed, in every release."""
    return (
        f"The following groups were deleted: {event.attrs.get('groups', '')}. A total of "
        f"{event.attrs.get('offsets', 0)} offsets were removed."
    )


def partitions_deleted(event: TraceEvent) -> str:
    """Return the text for deleted topics. Source: GroupCoordinator.handleDeletedPartitions."""
    return (
        f"Removed {event.attrs.get('count')} offsets associated with deleted partitions: "
        f"{event.attrs.get('partitions')}."
    )


def offsets_log(event: TraceEvent) -> str:
    """Return the offsets partition of an event, by its name."""
    return f"{OFFSETS_TOPIC}-{event.offsets_partition}"


def client_reason(event: TraceEvent) -> str:
    """Return why the client left, as Kafka logs it. Source: LeaveGroupRequest.leaveReason."""
    return event.client_reason or NOT_PROVIDED


def listed(text: str) -> list[str]:
    """Return the elements of an attribute that lists names."""
    return text.split(", ") if text else []


def raw_error(event: TraceEvent) -> ErrorCode:
    """Return the error of an append, before it was translated for clients."""
    return ErrorCode.__members__.get(event.reason_text or "", ErrorCode.UNKNOWN_SERVER_ERROR)
