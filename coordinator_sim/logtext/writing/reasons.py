"""Reasons of rebalances in the wording of coordinators before 4.0.

The core words its reasons like Kafka 4.4. They are parsed here and put into the wording of the
Scala coordinator, which changed a little between releases.

Source: GroupCoordinator.scala of 2.8 and 3.9, every call of prepareRebalance and
maybePrepareRebalance.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.logtext.reading.reasons import Cause, classify
from coordinator_sim.logtext.writing.scala_values import option, scala_set
from coordinator_sim.trace.events import RebalanceReason, TraceEvent

NOT_PROVIDED: Final = "not provided"
"""Reason of a client that gives none. Source: JoinGroupRequest.joinReason."""
_STATE: Final = re.compile(r" during (\w+)(?:;|$)")
_LIMIT: Final = re.compile(r"over capacity (\d+)")
_CODE: Final = re.compile(r"^Error (\w+) when")
_LISTED: Final = re.compile(r"[\[(](.*)[\])]", re.DOTALL)


class Told(Struct, frozen=True):
    """A reason to be worded.

    Args:
        cause: Parsed reason.
        text: Reason as the core words it.
        state: State of the group, by the name that clients know.
        leaver: Event of the member that left, if one did.
    """

    cause: Cause
    text: str
    state: str
    leaver: TraceEvent | None


def told(event: TraceEvent, awaiting_sync: str, leaver: TraceEvent | None) -> Told:
    """Return the reason of a PREPARE_REBALANCE, ready to be worded."""
    text = event.reason_text or ""
    cause = classify(text)
    found = _STATE.search(text)
    state = "" if found is None else found[1].replace("AwaitingSync", awaiting_sync)
    return Told(cause, text, state, leaver)


def scala_3_reason(why: Told) -> str:
    """Return the reason as 3.2 to 3.9 log it, the client's included (KIP-800)."""
    text = _SCALA_3[why.cause.reason](why)
    if why.cause.reason in _WITH_CLIENT_REASON:
        return f"{text}; client reason: {_client_reason(why)}"
    return text


def scala_2_reason(why: Told) -> str:
    """Return the reason as 2.8 logs it."""
    return _SCALA_2.get(why.cause.reason, _SCALA_3[why.cause.reason])(why)


def _client_reason(why: Told) -> str:
    leaver = why.leaver
    if why.cause.reason is RebalanceReason.MEMBER_LEFT and leaver is not None:
        return leaver.client_reason or NOT_PROVIDED
    reason = why.cause.client_reason
    return NOT_PROVIDED if reason is None else reason


def _member(why: Told) -> str:
    leaver = why.leaver
    if why.cause.reason is RebalanceReason.MEMBER_LEFT and leaver is not None:
        return leaver.member_id or ""
    return why.cause.member_id or ""


def _joined(why: Told) -> str:
    instance = option(why.cause.group_instance_id)
    return f"Adding new member {_member(why)} with group instance id {instance}"


def _metadata(why: Told) -> str:
    if "static member" in why.text:
        instance = why.cause.group_instance_id
        return f"Updating metadata for static member {_member(why)} with instance id {instance}"
    return f"Updating metadata for member {_member(why)} during {why.state}"


def _metadata_2(why: Told) -> str:
    if "static member" in why.text:
        instance = option(why.cause.group_instance_id)
        return f"Updating metadata for static member {_member(why)} with instance id {instance}"
    return _metadata(why)


def _protocol(why: Told) -> str:
    return _protocol_of(why, why.cause.group_instance_id)


def _protocol_2(why: Told) -> str:
    return _protocol_of(why, option(why.cause.group_instance_id))


def _protocol_of(why: Told, instance: str | None) -> str:
    return (
        f"Group's selectedProtocol will change because static member {_member(why)} with "
        f"instance id {instance} joined with change of protocol"
    )


def _code(why: Told) -> str:
    found = _CODE.match(why.text)
    return "" if found is None else found[1]


def _listed(why: Told) -> list[str]:
    found = _LISTED.search(why.text)
    return [] if found is None else found[1].split(", ")


def _limit(why: Told) -> str:
    found = _LIMIT.search(why.text)
    return "" if found is None else found[1]


_AFTER_CAPACITY: Final = "in order to give a chance for consumers to commit offsets"

_SCALA_3: Final[dict[RebalanceReason, Callable[[Told], str]]] = {
    RebalanceReason.MEMBER_JOINED: _joined,
    RebalanceReason.METADATA_CHANGED: _metadata,
    RebalanceReason.LEADER_REJOIN: lambda why: (
        f"Leader {_member(why)} re-joining group during {why.state}"
    ),
    RebalanceReason.MEMBER_REJOIN: lambda why: (
        f"Member {_member(why)} joining group during {why.state}"
    ),
    RebalanceReason.MEMBER_LEFT: lambda why: f"Removing member {_member(why)} on LeaveGroup",
    RebalanceReason.MEMBER_FAILED: lambda why: (
        f"removing member {_member(why)} on heartbeat expiration"
    ),
    RebalanceReason.SYNC_TIMEOUT: lambda why: (
        f"Removing {scala_set(_listed(why))} on pending sync request expiration"
    ),
    RebalanceReason.STATIC_PROTOCOL_CHANGE: _protocol,
    RebalanceReason.STORE_ERROR: lambda why: (
        f"Error {_code(why)} when storing group assignment during SyncGroup "
        f"(member: {_member(why)})"
    ),
    RebalanceReason.OVER_CAPACITY: lambda why: (
        f"Freshly-loaded group is over capacity ({_limit(why)}). Rebalancing {_AFTER_CAPACITY}"
    ),
    RebalanceReason.DOWNGRADE: lambda why: why.text,
    RebalanceReason.UNKNOWN: lambda why: why.text,
}
_WITH_CLIENT_REASON: Final = frozenset(
    {
        RebalanceReason.MEMBER_JOINED,
        RebalanceReason.METADATA_CHANGED,
        RebalanceReason.LEADER_REJOIN,
        RebalanceReason.MEMBER_REJOIN,
        RebalanceReason.MEMBER_LEFT,
        RebalanceReason.STATIC_PROTOCOL_CHANGE,
    }
)
_SCALA_2: Final[dict[RebalanceReason, Callable[[Told], str]]] = {
    RebalanceReason.METADATA_CHANGED: _metadata_2,
    RebalanceReason.LEADER_REJOIN: lambda why: (
        f"leader {_member(why)} re-joining group during {why.state}"
    ),
    RebalanceReason.MEMBER_LEFT: lambda why: f"removing member {_member(why)} on LeaveGroup",
    RebalanceReason.STATIC_PROTOCOL_CHANGE: _protocol_2,
    RebalanceReason.STORE_ERROR: lambda why: (
        f"error when storing group assignment during SyncGroup (member: {_member(why)})"
    ),
    # QUIRK: 2.2 to 3.0 print the whole configuration where its limit is meant, and misspell the
    # word after it. The values but the limit are those of a broker's defaults here.
    # Source: kafka 2.8, GroupCoordinator.onGroupLoaded.
    RebalanceReason.OVER_CAPACITY: lambda why: (
        f"Freshly-loaded group is over capacity (GroupConfig(6000,1800000,{_limit(why)},3000)"
        f".groupMaxSize). Rebalacing {_AFTER_CAPACITY}"
    ),
}
