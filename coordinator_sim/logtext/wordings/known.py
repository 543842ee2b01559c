"""Log lines of a coordinator that the reader knows, and that tell a trace nothing.

Source: GroupCoordinator.scala and GroupMetadataManager.scala (0.9 to 3.9); GroupMetadataManager,
OffsetMetadataManager, CoordinatorRuntime (.java, 3.7 to 4.4). Most are only read, by the words that
they all have.
"""

from typing import Final

from coordinator_sim.logtext.wordings.loggers import COMMITS, COORDINATOR, PARTITIONS
from coordinator_sim.logtext.wordings.rows import Telling, happening, having, row
from coordinator_sim.trace.events import Event

_WRITTEN: Final = (
    row(
        "static-no-rebalance",
        None,
        "2.3-",
        Telling(COORDINATOR, of=(Event.STATIC_REPLACED,), when=having("rebalance", "0")),
    ).says(
        "<Static member which joins during Stable stage and doesn't affect "
        "><2.3-3.9|selectProtocol ><java|the selected protocol >will not trigger <java|a >"
        "<rebalance.>"
    ),
    row("unload-scheduled", None, "1.0-", Telling(PARTITIONS, of=(Event.COORD_RESIGNED,))).says(
        "<S>cheduling unloading< of ><-3.9|offsets and group metadata from {any_log}>"
        "<java|metadata for {any_log} with epoch {optional_epoch}>"
    ),
    row("unload-started", None, "java", Telling(PARTITIONS, of=(Event.COORD_RESIGNED,))).says(
        "<S>tarted unloading< metadata for {any_log} with epoch {optional_epoch}.>"
    ),
    row("unload-refused", None, "2.8-3.9", happening(PARTITIONS, "unload refused")).says(
        "Not removing offsets< and group metadata for {any_log} in epoch {optional_epoch} since "
        "current epoch is {current_epoch}>"
    ),
    row("simple-group", None, "java", happening(COMMITS, "simple group created")).says(
        "<[GroupId {group_id}] >Creating a simple consumer group via manual offset commit<.>"
    ),
    row(
        "expiration-late", None, "2.8-", happening(COORDINATOR, "session of a dead group", "java")
    ).says(
        "Received notification of <heartbeat expiration for member {member_id} after group "
        "{group_id} had already been unloaded or deleted.>"
    ),
)
_READ: Final = tuple(
    row(name, None, "-").says(text)
    for name, text in (
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
        ("unload-ignored", "gnored unloading"),
        ("metadata-hash", "omputed new metadata hash"),
        ("subscribed-metadata", "omputed new subscription metadata"),
        ("assignment-state", "new assignment state"),
        ("subscription", "updated its subscribed"),
        ("member-metadata", "updated its member metadata"),
        ("unknown-id-consumer", "joins the consumer group. Created a new member id"),
        ("assignment-delayed", "Assignment delayed"),
        ("rebalance-timeout-ignored", "Ignoring rebalance timeout"),
        ("not-fenced", "Could not fence"),
        ("expiration-unexpected", "Received unexpected notification of "),
        ("new-image", "new metadata image"),
        ("runtime-closing", "oordinator runtime"),
        ("transition", "Transition from "),
        ("initial-delay-skipped", "Cannot find the group, skipping"),
        ("dead-group", "is dead, skipping rebalance"),
        ("reload", "is out of sync with the underlying log"),
        ("offsets-committed", "Committing offsets"),
        ("member-gone", "has already been removed from the group"),
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
KNOWN: Final = (*_WRITTEN, *_READ)
"""Lines in the order in which the reader tries them, after all others."""
