"""Log lines of consumers and Connect workers about their group, from 0.10 to 4.x.

They are only read: the writer writes brokers' logs. `reading/broker_log` adds what they omit.

Source: AbstractCoordinator, ConsumerCoordinator, ConsumerRebalanceListenerInvoker (clients),
AbstractMembershipManager (clients); WorkerCoordinator, DistributedHerder, WorkerTask
(connect/runtime); kafka-python's coordinator package.
"""

from typing import Final

from coordinator_sim.logtext.wordings.rows import Row, row
from coordinator_sim.trace.events import Event

_NO_ERROR: Final = "NONE"


def _sign(what: str, text: str) -> Row:
    return row(f"c-{what}", Event.LIFECYCLE, "-", sign=what).says(text)


_JOINING: Final = (
    row("c-joining", Event.JOIN_REQ, "-").says("(Re-)joining group< {group_word}>"),
    row("c-joined", Event.JOIN_RESP, "-", error=_NO_ERROR).says(
        "Successfully joined group with generation {member_generation}"
    ),
    # Up to 2.5 this line stands after SyncGroup; from 2.6 on after JoinGroup.
    row("c-joined-2.5", Event.SYNC_RESP, "-", error=_NO_ERROR).says(
        "Successfully joined group< {group_id}> with generation {generation}"
    ),
    row("c-synced", Event.SYNC_RESP, "-", error=_NO_ERROR).says(
        "Successfully synced group in generation {member_generation}"
    ),
    row("c-join-failed", Event.JOIN_RESP, "-").says(
        "Join<Group>< group> failed{failed_with}{error_text}"
    ),
    row("c-join-failed-0.11", Event.JOIN_RESP, "-").says(
        "Attempt to join group {any}failed {error_text}"
    ),
    row("c-sync-failed", Event.SYNC_RESP, "-").says("SyncGroup failed: {error_text}"),
    row("c-heartbeat-failed", Event.HEARTBEAT, "-").says("Attempt to heartbeat {error_text}"),
    # From 3.0 on a heartbeat that is answered so logs nothing else.
    row("c-rebalancing", Event.HEARTBEAT, "-", error="REBALANCE_IN_PROGRESS").says(
        "Request joining group due to: {heard_reason}"
    ),
    row("c-rejoin-reason", None, "-").says("Request joining group due to<:> {client_reason}"),
    row("c-leave", Event.LEAVE_REQ, "-").says(
        "Member {member_id} sending LeaveGroup request to coordinator {any}"
        "< due to {client_reason}>"
    ),
    row("c-reset", None, "-").says("Resetting generation"),
    row("c-epoch-joining", Event.JOIN_REQ, "-").says(
        "Member {member_id} with epoch {any} transitioned from {any} to JOINING"
    ),
    *(
        row("c-epoch-joined", Event.JOIN_RESP, "-", error=_NO_ERROR).says(
            f"Member {{member_id}} with epoch {{generation}} transitioned from JOINING to {state}"
        )
        for state in ("RECONCILING", "STABLE")
    ),
)
_OWNERSHIP: Final = (
    row("c-computed", Event.ASSIGNED, "-").says(
        "Finished assignment for group at generation {generation}: {map}"
    ),
    row("c-assigned", Event.ASSIGNED, "-", delta="1").says(
        "newly assigned partitions<:>< >{partitions}< for group {last_group_word}>"
    ),
    row("c-revoked", Event.REVOKED, "-").says(
        "Revok<e><ing> previously assigned partitions<:>< >{partitions}"
        "< for group {last_group_word}>"
    ),
    row("c-lost", Event.LOST, "-").says("Lost previously assigned partitions<:>< >{partitions}"),
    row("c-given-away", Event.LOST, "-").says("Giving away all assigned partitions as lost"),
    row("w-assigned", Event.ASSIGNED, "-").says(
        "Joined group <at generation {generation} with protocol version {version} >and got "
        "assignment: {assignment_text}"
    ),
    row("w-unreachable", Event.LOST, "-").says(
        "Broker coordinator was unreachable for {unreachable_ms}< >ms. Revoking previous "
        "assignment {assignment}"
    ),
    row("w-started", Event.TASKS_STARTED, "-").says("Finished starting connectors and tasks"),
    row("w-stopped", Event.TASKS_STOPPED, "-").says(
        "Finished stopping tasks in preparation for rebalance"
    ),
)
_WHY: Final = (
    _sign("subscribed", "Subscribed to topic(s): {named}"),
    _sign("subscribed", "Subscribed to pattern: '{named}'"),
    _sign("coordinator-lost", "Group coordinator {any} is unavailable or invalid<{lost_because}>"),
    _sign("coordinator-lost", "Marking the coordinator {any} dead"),
    _sign("coordinator-found", "Discovered group coordinator"),
    _sign("poll-timeout", "poll timeout has expired"),
    _sign("unsubscribed", "Unsubscribing all topics or patterns and assigned partitions"),
    _sign("fenced", "Member {member_id} with epoch {generation} transitioned from {any} to FENCED"),
    _sign("connector-updated", "Connector {connector} config updated"),
    _sign("connector-removed", "Connector {connector} config removed"),
    _sign("connector-state", "Connector {connector} target state change"),
    _sign("tasks-updated", "Tasks {tasks} configs updated"),
    _sign("config-behind", "Current config state offset {any} does not match group assignment"),
    _sign("worker-started", "Herder starting"),
    _sign("worker-stopped", "Herder stopping"),
    _sign("task-failed", "Task threw an uncaught and unrecoverable exception"),
)
"""What happened at a client before it joined or left."""
_STREAMS: Final = (
    _sign("thread-died", "Failed to process stream task"),
    _sign("thread-died", "Shutting down unclean"),
    # Up to 2.8 by the thread, since then by its client, with what the handler chose.
    _sign("thread-died", "Encountered the following exception during processing"),
    _sign("thread-replaced", "Replacing thread in the streams uncaught exception handler"),
    _sign("thread-stopped", "Informed to shut down"),
    _sign("thread-fenced", "Detected that the thread is being fenced"),
    _sign("tasks-corrupted", "Active task(s) got corrupted. Triggering a rebalance"),
    _sign("streams-error", "State transition from {any} to ERROR"),
    _sign("restored", "Restoration took {restored_ms} ms for all active tasks"),
    row("s-state", None, "-").says("State transition from {any}"),
)
"""What a stream thread, or its client, tells of itself.

Source: StreamThread and KafkaStreams, kafka 2.8 to 4.3.
"""
CLIENTS: Final = (*_JOINING, *_OWNERSHIP, *_WHY, *_STREAMS)
"""Lines in the order in which the reader tries them."""
