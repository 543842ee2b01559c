"""Wording common to the Scala coordinators of all releases: groups and offsets of a partition.

Source: kafka 0.10.2 and 3.9, core/.../coordinator: GroupMetadataManager.scala.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_sim.kafka.error_texts import error_message, exception_name
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.logtext.writing.entries import ERROR, INFO, WARN, Entry
from coordinator_sim.logtext.writing.words import Words, offsets_log, raw_error
from coordinator_sim.trace.events import TraceEvent

_TOO_LARGE: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}
)
APPEND_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Append errors that every release handles."""


class EveryScalaWords(Words):
    """Any Scala coordinator; releases set the package and the manager's prefix."""

    package: str
    """Package of the logging classes."""
    manager_prefix: str
    """Prefix of GroupMetadataManager's messages: a format of its broker's id."""
    expected: frozenset[ErrorCode] = APPEND_ERRORS
    """Append errors that are not called unexpected."""
    not_stored: Mapping[str, str]
    """Text for each kind of append whose failure is logged."""

    def error_text(self, code: ErrorCode) -> str:
        """Return the message of an error."""
        return error_message(code)

    def _tell_store_failed(self, event: TraceEvent) -> Iterator[Entry]:
        """Log a failed append.

        Source: storeGroup (0.10.2: prepareStoreGroup), then GroupCoordinator's callbacks.
        """
        raw = raw_error(event)
        append = (
            f"Appending metadata message for group {event.group_id} generation {event.generation} "
        )
        if raw in _TOO_LARGE:
            told = "returning UNKNOWN error code to the client"
            text = f"{append}failed due to {exception_name(raw)}, {told}"
            yield self.manager(event, text, ERROR)
        elif raw not in self.expected:
            text = f"{append}failed due to unexpected error: {exception_name(raw)}"
            yield self.manager(event, text, ERROR)
        what = self.not_stored.get(event.attrs.get("what", ""))
        if what is not None:
            message = self.error_text(event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
            text = f"Failed to {what} metadata for group {event.group_id}: {message}"
            yield self.coordinator(event, text, WARN)

    def _tell_group_loaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Loading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _tell_group_unloaded(self, event: TraceEvent) -> Iterator[Entry]:
        yield self.coordinator(
            event,
            f"Unloading group metadata for {event.group_id} with generation {event.generation}",
        )

    def _tell_load_failed(self, event: TraceEvent) -> Iterator[Entry]:
        place = offsets_log(event)
        yield self.manager(event, f"Error loading offsets from {place}", ERROR)

    def _tell_group_dead(self, event: TraceEvent) -> Iterator[Entry]:
        """Log a group without offsets. Source: GroupMetadataManager.cleanupGroupMetadata."""
        if event.attrs.get("cause") == "no offsets":
            text = f"Group {event.group_id} transitioned to Dead in generation {event.generation}"
            yield self.manager(event, text)

    def _tell_offset_expired(self, event: TraceEvent) -> Iterator[Entry]:
        count = event.attrs.get("count")
        yield self.manager(event, f"Removed {count} expired offsets in 0 milliseconds.")

    # -- logging classes -------------------------------------------------------------------

    def coordinator(self, event: TraceEvent, text: str, level: str = INFO) -> Entry:
        """Return an entry of GroupCoordinator."""
        prefix = f"[GroupCoordinator {event.broker_id}]: "
        return Entry(f"{self.package}.GroupCoordinator", prefix + text, level)

    def manager(self, event: TraceEvent, text: str, level: str = INFO) -> Entry:
        """Return an entry of GroupMetadataManager."""
        prefix = self.manager_prefix.format(event.broker_id)
        return Entry(f"{self.package}.GroupMetadataManager", prefix + text, level)
