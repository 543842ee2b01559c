"""Log lines of librdkafka about its group, from 1.0 to 2.16: with `debug=cgrp`, and warnings.

confluent-kafka for Python, Go and .NET, node-rdkafka and other bindings write the same messages in
layouts of their own. They are only read; `reading/client_log` adds what they omit.

Source: librdkafka 1.0 to 2.16, src/rdkafka_cgrp.c; src/rdkafka_broker.c (REQTMOUT).
"""

from typing import Final

from coordinator_sim.logtext.wordings.rows import row
from coordinator_sim.trace.events import Event

_NO_ERROR: Final = "NONE"
_TIMED_OUT: Final = "REQUEST_TIMED_OUT"

_REASONS: Final = (
    row("r-rebalance", None, "-").says('Group "{group_id}" is rebalancing {any}: {client_reason}'),
    row("r-rebalance-begun", None, "-").says(
        'Group "{group_id}" initiating rebalance {any}: {client_reason}'
    ),
    row("r-rejoin", None, "-").says(
        'Group "{group_id}" (re)joining in join-state {any}: {client_reason}'
    ),
    row("r-rejoining", None, "-").says('Group "{group_id}": Rejoining group{any}: {client_reason}'),
    row("r-joining", None, "-").says('Group "{group_id}": Joining group{any}: {client_reason}'),
)
_JOINING: Final = (
    row("r-join", Event.JOIN_REQ, "-").says(
        'Joining group "{group_id}" with {any} subscribed topic(s)< and member id "{quoted_member}>'
    ),
    row("r-joined", Event.JOIN_RESP, "-").says(
        "JoinGroup response: GenerationId {any_generation}, Protocol {any_protocol}, "
        "LeaderId {any_leader}< (me)>, my MemberId {any_member}, {any}: {error_text}"
    ),
    row("r-synced", Event.SYNC_RESP, "-", error=_NO_ERROR).says("SyncGroup response: Success"),
    row("r-sync-failed", Event.SYNC_RESP, "-").says(
        "SyncGroup response: {error_words} ({any} bytes of MemberState"
    ),
    row("r-join-timeout", Event.JOIN_RESP, "-", error=_TIMED_OUT).says("Timed out JoinGroupReq"),
    row("r-sync-timeout", Event.SYNC_RESP, "-", error=_TIMED_OUT).says("Timed out SyncGroupReq"),
    row("r-member-id", None, "-").says(
        'Group "{group_id}": updating member id "{any}" -{any} "{quoted_member}'
    ),
)
_HEARTBEATS: Final = (
    row("r-heartbeat-failed", Event.HEARTBEAT, "-").says(
        'Group "{group_id}" heartbeat error response in state {any}: {error_text}'
    ),
    row("r-heartbeat-timeout", Event.HEARTBEAT, "-", error=_TIMED_OUT).says(
        "Timed out <ConsumerGroup>HeartbeatRequest"
    ),
    row("r-fenced", Event.HEARTBEAT, "-").says(
        "Heartbeat failed due to: {inner_reason}: will rejoin the group"
    ),
    row("r-heartbeat-error", Event.HEARTBEAT, "-").says("Heartbeat failed{error_text}"),
    row("r-epoch-join", Event.JOIN_REQ, "-").says(
        'ConsumerGroupHeartbeat of member id "{quoted_member}", group id "{group_id}", '
        "generation id 0,"
    ),
    row("r-epoch", None, "-").says(
        'ConsumerGroupHeartbeat response received for member id "{quoted_member}" with epoch '
        "{generation}"
    ),
)
_OWNERSHIP: Final = (
    row("r-target", Event.ASSIGNED, "-").says(
        'Target assignment acked, new current assignment{any}"'
    ),
    row("r-holds", None, "-").says("GRPASSIGNMENT{any} List with {partition_count} partition(s)"),
    row("r-held", Event.ASSIGNED, "-").says("GRPASSIGNMENT{any}:  {partition} offset "),
    row("r-assigned", Event.ASSIGNED, "-", delta="1").says(
        'Group "{group_id}": delegating <incremental >assign of {partition_count} partition(s)'
    ),
    row("r-revoked", Event.REVOKED, "-").says(
        'Group "{group_id}": delegating <incremental >revoke of {partition_count} partition(s) '
        "to application {any}: {client_reason}"
    ),
    row("r-session-timeout", Event.LOST, "-").says(
        "Consumer group {inner_reason}: revoking assignment and rejoining group"
    ),
    row("r-lost", Event.LOST, "-").says(
        'Group "{group_id}": current assignment of {partition_count} partition(s) lost: '
        "{client_reason}"
    ),
    row("r-poll-timeout", Event.LEAVE_REQ, "-").says(
        "Application {inner_reason} (adjust max.poll.interval.ms"
    ),
    row("r-subscribed", Event.LIFECYCLE, "-", sign="subscribed").says(
        'Group "{group_id}": subscribe to new subscription of {first_topics}'
    ),
    row("r-leave-waits", None, "-").says('Group "{group_id}": leave (in state {any}): '),
    row("r-leave", Event.LEAVE_REQ, "-").says('Group "{group_id}": leave (in state '),
    row("r-other", None, "-").says('Group "{group_id}"'),
)
LIBRDKAFKA: Final = (*_REASONS, *_JOINING, *_HEARTBEATS, *_OWNERSHIP)
"""Lines in the order in which the reader tries them."""
