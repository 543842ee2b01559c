"""Messages of a coordinator about its partitions, loading, offsets, and minor matters.

Source: GroupMetadataManager.scala (0.9 to 3.9); CoordinatorRuntime, GroupCoordinatorShard,
GroupCoordinatorService, GroupMetadataManager (.java, 3.7 to 4.4).
"""

from typing import Final

from coordinator_sim.logtext.reading.templates import GENERATION, GROUP, LOG, METADATA, template
from coordinator_sim.trace.events import Event

LOADING: Final = (
    template(
        "elected",
        Event.COORD_ELECTED,
        "Elected as the group coordinator",
        r"for partition (?P<p>\d+) in epoch (?P<a_epoch>\d+)",
    ),
    template(
        "resigned",
        Event.COORD_RESIGNED,
        "Resigned as the group coordinator",
        r"for partition (?P<p>\d+)(?: in epoch (?P<a_epoch>.+?))?\.?$",
    ),
    template(
        "load-scheduled",
        Event.LOAD_START,
        "Scheduling loading of",
        rf"Scheduling loading of (?:offsets and group )?metadata from {LOG}"
        r"(?: (?:for|with) epoch (?P<a_epoch>\d+))?",
    ),
    template(
        "load-start-old",
        Event.LOAD_START,
        "Loading offsets",
        rf"Loading offsets(?: and group metadata)? from {LOG}",
    ),
    template(
        "load-done-java",
        Event.LOAD_DONE,
        "Finished loading of metadata",
        rf"Finished loading of metadata from {LOG} with epoch (?P<a_epoch>\d+) in (?P<ms>\d+)ms "
        r"where (?P<a_scheduler_ms>\d+)ms was spent in the scheduler"
        r"(?:\. Loaded (?P<a_records>\d+) records which total to (?P<a_bytes>\d+) bytes)?",
    ),
    template(
        "load-done-3.7",
        Event.LOAD_DONE,
        "Finished loading of metadata",
        rf"Finished loading of metadata from (?:(?P<ms>\d+) in )?{LOG}",
    ),
    template(
        "load-done",
        Event.LOAD_DONE,
        "Finished loading offsets",
        rf"Finished loading offsets(?: and group metadata)? from {LOG} in (?P<ms>\d+) milliseconds"
        r"(?: for epoch (?P<a_epoch>\d+))?(?:, of which (?P<a_scheduler_ms>\d+) milliseconds)?",
    ),
    template(
        "load-failed",
        Event.LOAD_FAILED,
        "Error loading offsets",
        rf"Error loading offsets from {LOG}",
    ),
    template(
        "load-failed-java",
        Event.LOAD_FAILED,
        "Failed to load metadata",
        rf"Failed to load metadata from {LOG} with epoch (?P<a_epoch>\d+)"
        r"(?: due to (?P<a_error>.*?))?\.?$",
    ),
    template(
        "unload-done",
        Event.UNLOAD_DONE,
        "Finished unloading ",
        rf"Finished unloading (?:metadata for )?{LOG}"
        r"(?:\.? (?:for coordinator|with) epoch (?P<a_epoch>[^.]*))?"
        r"(?:\.? Removed (?P<a_offsets>\d+) cached offsets and (?P<a_groups>\d+) cached groups)?",
    ),
    template(
        "unload-done-old",
        Event.UNLOAD_DONE,
        "cached offsets for",
        rf"Removed (?P<a_offsets>\d+) cached offsets for {LOG}",
    ),
    template(
        "group-loaded",
        Event.GROUP_LOADED,
        "Loading group metadata for",
        rf"Loading group metadata for {GROUP} with generation {GENERATION}",
    ),
    template(
        "group-loaded-java",
        Event.GROUP_LOADED,
        " with ",
        r"Loaded (?P<a_group_type>\w+) group (?P<group_id>.*) with (?P<members>\d+) members",
    ),
    template(
        "member-loaded",
        Event.GROUP_LOADED,
        "Loaded member",
        # The generation printed here is the previous one, not the group's present one.
        rf"Loaded member {METADATA} in group {GROUP} with generation (?P<a_stored_generation>\d+)",
    ),
    template(
        "member-loaded-java",
        Event.GROUP_LOADED,
        "Loaded member",
        r"Loaded member (?P<member_id>.*?) in (?P<a_group_type>\w+) group (?P<group_id>.*?)\.?$",
    ),
    template(
        "group-unloaded-java",
        Event.GROUP_UNLOADED,
        "] Unloading group metadata for",
        rf"\[GroupId={GROUP}\] Unloading group metadata for generation {GENERATION}",
    ),
    template(
        "group-unloaded",
        Event.GROUP_UNLOADED,
        "Unloading group metadata for",
        rf"Unloading group metadata for {GROUP} with generation {GENERATION}",
    ),
    template(
        "group-unloaded-consumer",
        Event.GROUP_UNLOADED,
        "Unloaded group metadata for",
        rf"\[GroupId={GROUP}\] Unloaded group metadata for group epoch (?P<a_group_epoch>\d+)",
    ),
)

OFFSETS: Final = (
    template(
        "groups-deleted",
        Event.GROUP_DEAD,
        "The following groups were deleted",
        r"The following groups were deleted: (?P<groups>.*?)(?:\. A total of (?P<a_offsets>\d+) "
        r"offsets|$)",
        cause="deleted",
    ),
    template(
        "offsets-deleted",
        Event.OFFSET_TOMBSTONE,
        "The following offsets of the group",
        rf"The following offsets of the group {GROUP} were deleted: (?P<a_partitions>.*?)"
        r"(?:\. A total of (?P<a_count>\d+) offsets|$)",
    ),
    template(
        "offsets-orphaned",
        Event.OFFSET_TOMBSTONE,
        "offsets associated with deleted partitions",
        r"Removed (?P<a_count>\d+) offsets associated with deleted partitions: "
        r"(?P<a_partitions>.*)",
    ),
    template(
        "offsets-expired",
        Event.OFFSET_EXPIRED,
        "expired offsets in",
        r"Removed (?P<a_count>\d+) expired offsets in (?P<ms>\d+) milliseconds",
    ),
    template(
        "tombstones",
        Event.OFFSET_EXPIRED,
        "tombstone records",
        r"Generated (?P<a_count>\d+) tombstone records (?:while cleaning up group metadata )?in "
        r"(?P<ms>\d+) milliseconds(?: while deleting offsets for (?P<a_deleted>.*?)\.?$)?",
    ),
    template(
        "store-failed",
        Event.STORE_FAILED,
        "Failed to ",
        rf"Failed to (?:write empty|persist) metadata for group {GROUP}"
        r"(?: static member .*? due to (?P<a_static_error>.*?)\. Reverting.*|: (?P<a_error>.*))?$",
    ),
    template(
        "append-failed",
        Event.STORE_FAILED,
        "failed due to",
        rf"Appending metadata message for group {GROUP} generation {GENERATION} failed due to "
        r"(?P<a_error>.*?)(?:, returning.*)?$",
    ),
    template(
        "append-failed-debug",
        Event.STORE_FAILED,
        "failed when appending to log",
        rf"Metadata from group {GROUP} with generation {GENERATION} failed when appending to "
        r"log due to (?P<a_error>.*)",
    ),
    template(
        "write-failed",
        Event.STORE_FAILED,
        "Failed to ",
        r"Failed to (?:write (?:records|the transaction marker|a batch of \d+ record\(s\))|"
        rf"flush the pending records) to {LOG}:? (?P<a_error>.*)",
    ),
    template(
        "lifecycle",
        Event.LIFECYCLE,
        ".",
        r"\[GroupCoordinator [^\]]*\]:? (?P<a_what>Starting up|Startup complete|"
        r"Shutting down|Shutdown complete)\.",
    ),
)

KNOWN: Final = tuple(
    template(name, None, anchor)
    for name, anchor in (
        ("static-no-rebalance", "will not trigger "),
        ("rejoin-bad-state", "Attempt to add rejoining member"),
        ("protocol-unparsable", "Failed to parse Consumer Protocol"),
        ("upgrade-refused", "Cannot upgrade classic group"),
        ("downgrade-refused", "downgrade"),
        ("join-phase-refused", "Cannot complete join phase"),
        ("load-repeated", "lready loading"),
        ("load-ignored", "Not loading"),
        ("load-ignored-java", "gnored loading"),
        ("load-active", "is already active"),
        ("load-buffer", "larger than configured offsets.load.buffer.size"),
        ("load-buffer-old", "buffer larger ("),
        ("unload-scheduled", "cheduling unloading"),
        ("unload-started", "tarted unloading"),
        ("unload-ignored", "gnored unloading"),
        ("unload-refused", "Not removing offsets"),
        ("cached-groups", "cached groups for"),
        ("simple-group", "Creating a simple consumer group via manual offset commit"),
        ("group-epoch", "Bumped group epoch"),
        ("streams-epoch", "Bumped streams group epoch"),
        ("metadata-hash", "omputed new metadata hash"),
        ("subscribed-metadata", "omputed new subscription metadata"),
        ("target-assignment", "Computed a new target assignment"),
        ("assignment-state", "new assignment state"),
        ("subscription", "updated its subscribed"),
        ("member-metadata", "updated its member metadata"),
        ("unknown-id-consumer", "joins the consumer group. Created a new member id"),
        ("assignment-delayed", "Assignment delayed"),
        ("rebalance-timeout-ignored", "Ignoring rebalance timeout"),
        ("not-fenced", "Could not fence"),
        ("expiration-late", "Received notification of "),
        ("expiration-unexpected", "Received unexpected notification of "),
        ("new-image", "new metadata image"),
        ("runtime-closing", "oordinator runtime"),
        ("transition", "Transition from "),
        ("initial-delay-skipped", "Cannot find the group, skipping"),
        ("dead-group", "is dead, skipping rebalance"),
        ("reload", "is out of sync with the underlying log"),
        ("offsets-committed", "Committing offsets"),
        ("member-gone", "has already been removed from the group"),
        ("instance-owned", "because the instance id is owned by"),
        ("migration-refused", "Cannot join the consumer group"),
        ("deleted-topics", "deleted topics"),
        ("regex", "egular expression"),
        ("topology", "topology"),
        ("task-assignor", "task assignor"),
        ("refined-assignment", "refined assignment"),
        ("assignment-settings", "Assignment configurations changed"),
        ("target-assignment-skipped", "Skipping delayed target assignment"),
        ("group-not-found", "Group not found during"),
        ("group-type", "unknown group type"),
        ("unload-failed", "Failed to unload"),
        ("load-late", "load completion"),
        ("load-vanished", "Failed to complete the loading"),
        ("load-refused", "Cannot load coordinator"),
        ("operation-failed", "Execution of "),
        ("replay-failed", "Replaying record"),
        ("transactions", "transactional offset commit"),
        ("tombstones-failed", "tombstones to "),
    )
)
