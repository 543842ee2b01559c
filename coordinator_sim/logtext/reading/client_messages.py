"""Log messages of consumers and Connect workers about their group, from 0.10 to 4.x.

Templates have the form of the broker's; `client_lines` adds what the messages omit.

Source: AbstractCoordinator, ConsumerCoordinator, ConsumerRebalanceListenerInvoker (clients),
WorkerCoordinator, DistributedHerder (connect/runtime); kafka-python's coordinator package.
"""

import re
from typing import Final

from coordinator_sim.logtext.reading.templates import Template, template
from coordinator_sim.trace.events import Event

_GENERATION: Final = (
    r"Generation\{generationId=(?P<generation>-?\d+), memberId='(?P<member_id>.*?)', "
    r"protocol='(?P<protocol_name>.*?)'\}?"
)
_NONE: Final = "NONE"

JOINING: Final = (
    template(
        "c-joining",
        Event.JOIN_REQ,
        "(Re-)joining group",
        r"\(Re-\)joining group(?: (?P<group_id>\S+))?",
    ),
    template(
        "c-joined",
        Event.JOIN_RESP,
        "Successfully joined group",
        rf"Successfully joined group with generation {_GENERATION}",
        error=_NONE,
    ),
    # Up to 2.5 this line stands after SyncGroup; from 2.6 on after JoinGroup.
    template(
        "c-joined-2.5",
        Event.SYNC_RESP,
        "Successfully joined group",
        r"Successfully joined group(?: (?P<group_id>.*?))? with generation (?P<generation>\d+)",
        error=_NONE,
    ),
    template(
        "c-synced",
        Event.SYNC_RESP,
        "Successfully synced group",
        rf"Successfully synced group in generation {_GENERATION}",
        error=_NONE,
    ),
    template(
        "c-join-failed",
        Event.JOIN_RESP,
        "failed",
        r"Join(?:Group| group) failed(?::| with) (?P<a_error_text>.*)",
    ),
    template(
        "c-join-failed-0.11",
        Event.JOIN_RESP,
        "Attempt to join group",
        r"Attempt to join group .*?failed (?P<a_error_text>.*)",
    ),
    template(
        "c-sync-failed",
        Event.SYNC_RESP,
        "SyncGroup failed",
        r"SyncGroup failed: (?P<a_error_text>.*)",
    ),
    template(
        "c-heartbeat-failed",
        Event.HEARTBEAT,
        "Attempt to heartbeat",
        r"Attempt to heartbeat (?P<a_error_text>.*)",
    ),
    template(
        "c-rejoin-reason",
        None,
        "Request joining group due to",
        r"Request joining group due to:? (?P<client_reason>.*)",
    ),
    template(
        "c-leave",
        Event.LEAVE_REQ,
        "sending LeaveGroup",
        r"Member (?P<member_id>.*?) sending LeaveGroup request to coordinator "
        r".*?(?:\) due to (?P<client_reason>.*)|$)",
    ),
    template("c-reset", None, "Resetting generation"),
)

OWNERSHIP: Final = (
    template(
        "c-computed",
        Event.ASSIGNED,
        "Finished assignment for group at generation",
        r"Finished assignment for group at generation (?P<generation>\d+): \{(?P<map>.*)",
    ),
    template(
        "c-assigned",
        Event.ASSIGNED,
        "newly assigned partitions",
        r"newly assigned partitions:? ?(?P<a_partitions>.*?)"
        r"(?: for group (?P<group_id>\S+))?$",
        delta="1",
    ),
    template(
        "c-revoked",
        Event.REVOKED,
        "previously assigned partitions",
        r"Revok(?:e|ing) previously assigned partitions:? ?(?P<a_partitions>.*?)"
        r"(?: for group (?P<group_id>\S+))?$",
    ),
    template(
        "c-lost",
        Event.LOST,
        "Lost previously assigned partitions",
        r"Lost previously assigned partitions:? ?(?P<a_partitions>.*)",
    ),
    template("c-given-away", Event.LOST, "Giving away all assigned partitions as lost"),
    template(
        "w-assigned",
        Event.ASSIGNED,
        "and got assignment: Assignment",
        r"Joined group (?:at generation (?P<generation>\d+) with protocol version "
        r"(?P<version>\d+) )?and got assignment: Assignment\{(?P<assignment_text>.*)",
    ),
    template(
        "w-unreachable",
        Event.LOST,
        "Revoking previous assignment",
        r"Broker coordinator was unreachable for (?P<a_unreachable_ms>\d+)\s?ms\. "
        r"Revoking previous assignment (?P<a_assignment>.*)",
    ),
    template("w-started", Event.TASKS_STARTED, "Finished starting connectors and tasks"),
    template(
        "w-stopped", Event.TASKS_STOPPED, "Finished stopping tasks in preparation for rebalance"
    ),
)

CLIENT_CATALOGUE: Final = (*JOINING, *OWNERSHIP)
"""Templates in order: the first whose anchor and pattern match wins."""


def find_client(message: str) -> tuple[Template, re.Match[str]] | None:
    """Return the template of a client's message and its match; None for an irrelevant message."""
    for known in CLIENT_CATALOGUE:
        if known.anchor in message:
            match = known.match(message)
            if match is not None:
                return known, match
    return None
