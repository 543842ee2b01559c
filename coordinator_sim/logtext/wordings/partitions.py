"""Log lines about offsets partitions: who coordinates them, loading, offsets, failed appends.

Source: GroupMetadataManager.scala (0.9 to 3.9); CoordinatorRuntime, GroupCoordinatorShard,
GroupCoordinatorService, GroupMetadataManager (.java, 3.7 to 4.4). The rows without a telling are
only read: no release that is written logs them at INFO, or nothing in a trace causes them.
"""

from typing import Final

from coordinator_sim.logtext.wordings.loggers import COMPANION, COORDINATOR, DELETION, PARTITIONS
from coordinator_sim.logtext.wordings.releases import Release
from coordinator_sim.logtext.wordings.rows import (
    ANY,
    ERROR,
    WARN,
    Telling,
    When,
    happening,
    having,
    row,
)
from coordinator_sim.logtext.wordings.values import TOO_LARGE, is_unexpected, raw_error
from coordinator_sim.trace.events import Event, TraceEvent

_EMPTY: Final = ("new group", "new group, late", "empty generation")
"""What a group without members is stored for."""


def _was_empty(event: TraceEvent, release: Release) -> bool:
    what = event.attrs.get("what")
    return what in _EMPTY if release.is_in("java") else what == "empty generation"


def _is_expired(event: TraceEvent, release: Release) -> bool:
    """Whether offsets expired; before 2.0 those of deleted topics did so too."""
    return event.event is Event.OFFSET_EXPIRED or (event.group_id is None and release.is_in("-1.1"))


def _counts(name: str) -> When:
    """Return whether an event's count of this name is not 0."""
    return lambda event, _: event.attrs.get(name, "0") != "0"


_ELECTED: Final = Telling(COORDINATOR, of=(Event.LOAD_START,))
_LOAD_FAILED: Final = Telling(PARTITIONS, ERROR)
_HAD_OFFSETS: Final = Telling(PARTITIONS, when=_counts("offsets"))
_HAD_GROUPS: Final = Telling(PARTITIONS, of=(Event.UNLOAD_DONE,), when=_counts("groups"))
_GROUPS_DELETED: Final = happening(DELETION, "groups deleted")
_OF_GROUP: Final = Telling(
    COORDINATOR, when=lambda event, _: event.group_id is not None, silent="java"
)
_OF_ALL_GROUPS: Final = Telling(COORDINATOR, when=lambda event, _: event.group_id is None)
_EXPIRED: Final = Telling(
    PARTITIONS, of=(Event.OFFSET_EXPIRED, Event.OFFSET_TOMBSTONE), when=_is_expired
)
_TOO_LARGE: Final = Telling(PARTITIONS, ERROR, when=lambda event, _: raw_error(event) in TOO_LARGE)
_UNEXPECTED: Final = Telling(PARTITIONS, ERROR, when=is_unexpected)
_EMPTY_LOST: Final = Telling(COORDINATOR, WARN, when=_was_empty)
_STATIC_LOST: Final = Telling(COORDINATOR, WARN, when=having("what", "static member"))

_LOADING: Final = (
    row("elected", Event.COORD_ELECTED, "2.8-3.9", _ELECTED).says(
        "Elected as the group coordinator for partition {offsets_partition} in epoch {epoch}"
    ),
    row("resigned", Event.COORD_RESIGNED, "2.8-3.9", COORDINATOR).says(
        "Resigned as the group coordinator for partition {offsets_partition}"
        "< in epoch {resigned_epoch}>{end}"
    ),
    row("load-scheduled", Event.LOAD_START, "1.0-", PARTITIONS).says(
        "Scheduling loading of <-3.9|offsets and group >metadata from {any_log}"
        "<2.8-3.9!| for epoch {epoch}><java| with epoch {epoch}>"
    ),
    row("load-start-old", Event.LOAD_START, "-0.11", PARTITIONS).says(
        "Loading offsets< and group metadata> from {any_log}"
    ),
    row("load-done-java", Event.LOAD_DONE, "java", PARTITIONS).says(
        "Finished loading of metadata from {any_log} with epoch {epoch} in {ms}ms where "
        "{scheduler_ms}ms was spent in the scheduler<. Loaded {records} records which total to "
        "{bytes} bytes><.>"
    ),
    row("load-done-3.7", Event.LOAD_DONE, "java").says(
        "Finished loading of metadata from <{ms} in >{any_log}"
    ),
    row("load-done", Event.LOAD_DONE, "-3.9", PARTITIONS).says(
        "Finished loading offsets<1.0-3.9| and group metadata> from {any_log} in {ms} milliseconds"
        "<2.8-3.9!| for epoch {epoch}><2.6-3.9|, of which {scheduler_ms} milliseconds"
        "< was spent in the scheduler>><.>"
    ),
    row("load-failed", Event.LOAD_FAILED, "-3.9", _LOAD_FAILED).says(
        "Error loading offsets from {any_log}"
    ),
    row("load-failed-java", Event.LOAD_FAILED, "java", _LOAD_FAILED).says(
        "Failed to load metadata from {any_log} with epoch {epoch}< due to {load_error}>."
    ),
    row("unload-done", Event.UNLOAD_DONE, "1.0-", PARTITIONS).says(
        "Finished unloading <java|metadata for >{any_log}<2.8-3.9| for coordinator epoch "
        "{optional_epoch}><java| with epoch {optional_epoch}><.><-3.9| Removed {offsets} cached "
        "offsets and {group_count} cached groups><-3.9|.>"
    ),
    row("unload-done-old", Event.UNLOAD_DONE, "-0.11", _HAD_OFFSETS).says(
        "Removed {offsets} cached offsets for {any_log}< on follower transition.>"
    ),
    row("cached-groups", None, "-0.11", _HAD_GROUPS).says(
        "<Removed {group_count} >cached groups for< {any_log} on follower transition.>"
    ),
    row("group-loaded", Event.GROUP_LOADED, "-3.9", COORDINATOR).says(
        "Loading group metadata for {group_id} with generation {generation}"
    ),
    row("group-loaded-java", Event.GROUP_LOADED, "java", Telling(COORDINATOR, groups=ANY)).says(
        "Loaded {group_type} group {group_to_last} with {members} members<.>"
    ),
    # The generation printed here is the previous one, not the group's present one.
    row("member-loaded", Event.GROUP_LOADED, "2.8-3.9", happening(COMPANION, "member loaded")).says(
        "Loaded member {metadata} in group {group_id} with generation {stored_generation}<.>"
    ),
    row("member-loaded-java", Event.GROUP_LOADED, "java").says(
        "Loaded member {member_id} in {group_type} group {group_id}."
    ),
    row("group-unloaded-java", Event.GROUP_UNLOADED, "java", COORDINATOR).says(
        "[GroupId={group_id}] Unloading group metadata for generation {generation}<.>"
    ),
    row("group-unloaded", Event.GROUP_UNLOADED, "-3.9", COORDINATOR).says(
        "Unloading group metadata for {group_id} with generation {generation}"
    ),
)
_OFFSETS: Final = (
    row("groups-deleted", Event.GROUP_DEAD, "2.0-", _GROUPS_DELETED, cause="deleted").says(
        "The following groups were deleted: {groups}<. A total of {offsets} offsets>"
        "< were removed.>"
    ),
    row("offsets-deleted", Event.OFFSET_TOMBSTONE, "2.4-", _OF_GROUP).says(
        "The following offsets of the group {group_id} were deleted: {partitions}"
        "<. A total of {count} offsets>< were removed.>"
    ),
    row("offsets-orphaned", Event.OFFSET_TOMBSTONE, "2.0-3.9", _OF_ALL_GROUPS).says(
        "Removed {count} offsets associated with deleted partitions: {partitions}<.>"
    ),
    row("offsets-expired", Event.OFFSET_EXPIRED, "-3.9", _EXPIRED).says(
        "Removed {count} expired offsets in {ms} milliseconds<.>"
    ),
    row("tombstones", Event.OFFSET_EXPIRED, "java").says(
        "Generated {count} tombstone records <while cleaning up group metadata >in {ms} "
        "milliseconds< while deleting offsets for {deleted}.>"
    ),
)
_STORING: Final = (
    row("append-failed", Event.STORE_FAILED, "-3.9", _TOO_LARGE).says(
        "Appending metadata message for group {group_id} generation {generation} failed due to "
        "{exception}<, returning< UNKNOWN error code to the client>>"
    ),
    # Read by the row above: only the writer needs the words of its own.
    row("append-failed-unexpected", Event.STORE_FAILED, "-3.9", _UNEXPECTED).says(
        "Appending metadata message for group {group_id} generation {generation} failed due to "
        "<unexpected error: >{exception}"
    ),
    row("store-failed", Event.STORE_FAILED, "-", _EMPTY_LOST).says(
        "Failed to write empty metadata for group {group_id}<: {store_error}>"
    ),
    row("static-store-failed", Event.STORE_FAILED, "2.3-3.9", _STATIC_LOST).says(
        "Failed to persist metadata for group {group_id}"
        "<none| static member {any} due to {static_error}. Reverting><: {store_error}>"
    ),
    row("append-failed-debug", Event.STORE_FAILED, "-3.9").says(
        "Metadata from group {group_id} with generation {generation} failed when appending to log "
        "due to {error}"
    ),
    row("write-failed", Event.STORE_FAILED, "java").says(
        "Failed to {write_what} to {any_log}<:> {error}"
    ),
    row("lifecycle", Event.LIFECYCLE, "-").says("[GroupCoordinator {broker}]<:> {what}."),
)
PARTITION_LINES: Final = (*_LOADING, *_OFFSETS, *_STORING)
"""Lines in the order in which the reader tries them, and the writer writes those of one event."""
