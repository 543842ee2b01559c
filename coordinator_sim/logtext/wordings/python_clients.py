"""Log lines of aiokafka and kafka-python about their group, beside those they share with Java.

They are only read; `reading/client_log` adds what they omit.

Source: aiokafka 0.14, aiokafka/consumer/group_coordinator.py; kafka-python 1.4 to 3.0,
kafka/coordinator/base.py, consumer.py.
"""

from typing import Final

from coordinator_sim.logtext.wordings.rows import row
from coordinator_sim.trace.events import Event

_NO_ERROR: Final = "NONE"

_JOINING: Final = (
    row("p-joined", Event.JOIN_RESP, "-", error=_NO_ERROR).says(
        "Joined group '{group_id}' (generation {generation}) with member_id {member_to_last}"
    ),
    row("p-joined-3", Event.JOIN_RESP, "-", error=_NO_ERROR).says(
        "Successfully joined group {group_word} {any}Generation {generation} (member_id: "
        "{member_id}, protocol: {any_protocol})"
    ),
    row("p-member-id", Event.JOIN_RESP, "-", error="MEMBER_ID_REQUIRED").says(
        "Received member id {member_id} for group {group_word}; will retry"
    ),
    row("p-join-failed", Event.JOIN_RESP, "-").says(
        "Attempt to join group {group_word} failed due to {error_text}"
    ),
    row("p-join-loading", Event.JOIN_RESP, "-", error="COORDINATOR_LOAD_IN_PROGRESS").says(
        "Attempt to join group {group_word} rejected since coordinator"
    ),
    row("p-synced", Event.SYNC_RESP, "-", error=_NO_ERROR).says(
        "Successfully synced group {group_word} with generation {generation}"
    ),
    row("p-sync-failed", Event.SYNC_RESP, "-").says(
        "SyncGroup for group {group_word} failed due to {error_text}"
    ),
    row("p-elected", None, "-").says(
        "Elected group leader -- performing partition assignments using {any_protocol}"
    ),
)
_HEARTBEATS: Final = (
    row("p-rebalancing", Event.HEARTBEAT, "-").says(
        "Heartbeat failed for group {group_id} because it {client_reason}"
    ),
    row("p-fenced", Event.HEARTBEAT, "-").says(
        "Heartbeat failed for group {group_id} due to {client_reason}"
    ),
    row("p-heartbeat-failed", Event.HEARTBEAT, "-").says(
        "Heartbeat failed for group {group_id}: {client_reason}"
    ),
    row("p-heartbeat-unsent", Event.HEARTBEAT, "-").says(
        "Heartbeat send request failed: {error_text}"
    ),
    row("p-unknown-member", Event.HEARTBEAT, "-").says(
        "Heartbeat failed: {inner_reason}; resetting and re-joining"
    ),
    row("p-unknown-member-old", Event.HEARTBEAT, "-").says(
        "Heartbeat: {inner_reason}; this consumer needs to re-join"
    ),
    row("p-rebalancing-3", Event.HEARTBEAT, "-", error="REBALANCE_IN_PROGRESS").says(
        "Group {group_id} {inner_reason}; rejoining"
    ),
    row("p-session-timeout", Event.HEARTBEAT, "-", error="REQUEST_TIMED_OUT").says(
        "Heartbeat {inner_reason} - marking coordinator dead"
    ),
    row("p-session-timeout-old", Event.HEARTBEAT, "-", error="REQUEST_TIMED_OUT").says(
        "Heartbeat {inner_reason}, marking coordinator dead"
    ),
)
_OWNERSHIP: Final = (
    row("p-revoked-on-close", Event.REVOKED, "-").says(
        "Revoking previously assigned partitions {partitions} for group {group_word} on close"
    ),
    row("p-lost", Event.LOST, "-").says(
        "Group {group_word} lost membership; forcibly revoking {partitions}"
    ),
    row("p-poll-timeout", Event.LEAVE_REQ, "-").says("Heartbeat {poll_expired}, leaving group"),
    row("p-poll-timeout-3", Event.LEAVE_REQ, "-").says(
        "Consumer {inner_reason}. This means the time between"
    ),
    row("p-leave-3", Event.LEAVE_REQ, "-").says(
        "Leaving consumer group {group_id} (member {member_id})"
    ),
    row("p-leave", Event.LEAVE_REQ, "-").says("Leaving consumer group ({group_id})"),
    row("p-left", Event.LEAVE_REQ, "-").says("LeaveGroup request succeeded"),
    row("p-metadata", None, "-").says("Metadata for topic {client_reason}"),
    row("p-follow-up", None, "-").says("Triggering {inner_reason} for group {group_word} to "),
    row("p-commit-failed", None, "-").says(
        "OffsetCommit failed for group {group_id} due to group error ({inner_reason}), will rejoin"
    ),
)
PYTHON_CLIENTS: Final = (*_JOINING, *_HEARTBEATS, *_OWNERSHIP)
"""Lines in the order in which the reader tries them, before those that they share with Java."""
