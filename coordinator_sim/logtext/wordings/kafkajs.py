"""Log lines of kafkajs about its group, from 1.0 to 2.2, which are JSON.

The members of the JSON object are values of a line, like those in its message. They are only read;
`reading/client_log` adds what they omit.

Source: kafkajs 2.2.4, src/consumer/consumerGroup.js, runner.js, index.js; src/loggers.
"""

from typing import Final

from coordinator_sim.logtext.wordings.rows import row
from coordinator_sim.trace.events import Event

KAFKAJS: Final = (
    row("k-joined", Event.SYNC_RESP, "-", error="NONE").says("Consumer has joined the group"),
    row("k-rebalancing", Event.JOIN_REQ, "-").says("The group is rebalancing, re-joining"),
    row("k-unknown-member", Event.JOIN_REQ, "-").says(
        "The coordinator is not aware of this member, re-joining the group"
    ),
    row("k-stale-metadata", Event.JOIN_REQ, "-").says("Stale cluster metadata, refreshing"),
    row("k-stale-assignment", Event.JOIN_REQ, "-").says(", resync group"),
    row("k-crash", None, "-").says("Crash: {client_reason}"),
    row("k-stopped", Event.LEAVE_REQ, "-").says("Stopped"),
    row("k-assignment", None, "-").says("Received assignment"),
)
"""Lines in the order in which the reader tries them."""
FIELDS_OF_JSON: Final = {
    "groupId": "group_id",
    "memberId": "member_id",
    "generationId": "generation",
    "leaderId": "leader_id",
    "groupProtocol": "protocol_name",
    "clientId": "client_id",
    "error": "client_reason",
}
"""Members of the JSON object, and the kinds of values that they are."""
