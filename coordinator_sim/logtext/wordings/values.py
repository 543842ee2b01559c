"""Values inside log lines as Scala and Java print them, and how they are read back.

A function that prints stands beside the one that reads the same thing. Whole lines are not known
here.
"""

import re
from collections.abc import Sequence
from typing import Final

from coordinator_sim.kafka.error_texts import error_message, exception_name
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import scala_set_order
from coordinator_sim.logtext.wordings.releases import Release
from coordinator_sim.trace.events import Event, TraceEvent

NOT_PROVIDED: Final = "not provided"
"""Reason of a client that gives none. Source: JoinGroupRequest.joinReason."""
OPERATIONS: Final = {
    Event.HEARTBEAT: "heartbeat",
    Event.SYNC_RESP: "sync-group",
    Event.JOIN_RESP: "join-group",
    Event.MEMBER_FENCED: "leave-group",
}
"""Event -> name of the request in which a static member is fenced."""
_NO_INSTANCE: Final = frozenset({"", "None", "null", "Some(null)", "Optional.empty"})
_WRAPPED: Final = re.compile(r"(?:Some\(|Optional\[)(.*)[)\]]$", re.DOTALL)
_COLLECTION: Final = re.compile(r"^(?:[A-Za-z]\w*)?[(\[{](.*)[)\]}]\.?$", re.DOTALL)
_PYTHON_PARTITION: Final = re.compile(r"TopicPartition\(topic='([^']*)', partition=(\d+)\)")
_PYTHON_EMPTY: Final = frozenset({"set()", "frozenset()"})
_INT32_END: Final = 2**31
_INT32_DIGITS: Final = 11
"""Characters of the longest int32, with its sign; Python refuses to read numbers of 4,300."""
_SMALL: Final = 4
"""Largest size of Scala's small sets; larger ones print as HashSet."""
_EARLY_MESSAGES: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The group coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator for this group.",
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request"
    ),
}
"""Messages that differ in 0.10.2. Source: its Errors.java."""
TOO_LARGE: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}
)
"""Errors of an append that is too large to be tried again."""
_EXPECTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Append errors that every release handles."""


def whole_number(text: str) -> int | None:
    """Parse a number in the range of Kafka's ints; None for any other."""
    if len(text) > _INT32_DIGITS:
        text = text.lstrip("0") or "0"
    value = int(text) if len(text) <= _INT32_DIGITS else _INT32_END
    return value if value < _INT32_END else None


def milliseconds(text: str) -> int | None:
    """Parse a duration in milliseconds as microseconds; None for one out of range."""
    duration_ms = whole_number(text)
    return None if duration_ms is None else duration_ms * 1_000


# -- optional values -----------------------------------------------------------------------


def instance_id(text: str | None) -> str | None:
    """Parse a group instance id as Java or Scala prints it: `None`, `Some(x)`, `null` or bare."""
    if text is None or text in _NO_INSTANCE:
        return None
    wrapped = _WRAPPED.match(text)
    return wrapped.group(1) if wrapped is not None else text


def option(value: str | None, release: Release) -> str:
    """Format an optional value: `None` or `Some(x)` in Scala, `null` or bare in Java."""
    if release.is_in("java"):
        return "null" if value is None else value
    return "None" if value is None else f"Some({value})"


def early_option(value: str | None, release: Release) -> str:
    """Format a value that only Scala before 3.0 prints as an option."""
    return option(value, release) if release.is_in("-2.8") else str(value)


def optional_epoch(event: TraceEvent, release: Release) -> str:
    """Format a leader epoch that may be unknown."""
    epoch = event.attrs.get("epoch")
    if release.is_in("-2.8"):
        return option(epoch, release)
    return "OptionalInt.empty" if epoch is None else f"OptionalInt[{epoch}]"


# -- collections ---------------------------------------------------------------------------


def listed(text: str) -> list[str]:
    """Split a collection as Scala or Java print it: `Set(a, b)`, `[a, b]` or `a, b`."""
    wrapped = _COLLECTION.match(text)
    inner = wrapped.group(1) if wrapped is not None else text
    return [name for name in inner.split(", ") if name]


def partition_names(text: str) -> str:
    """Return a list of partitions as Java prints it, of Python's `{TopicPartition(topic=...)}`."""
    found = _PYTHON_PARTITION.findall(text)
    if not found:
        return "" if text in _PYTHON_EMPTY else text
    return ", ".join(f"{topic}-{partition}" for topic, partition in found)


def name_set(names: Sequence[str], release: Release) -> str:
    """Format names as an immutable set of Scala, or as a list of Java.

    Small sets of Scala keep their order. Source: scala 2.13, Set1-4, HashSet.
    """
    if release.is_in("java"):
        return f"[{', '.join(names)}]"
    if len(names) <= _SMALL:
        return f"Set({', '.join(names)})"
    return f"HashSet({', '.join(scala_set_order(names))})"


def name_keys(names: Sequence[str], release: Release) -> str:
    """Format the keys of an immutable map of Scala, or a list of Java.

    Source: scala 2.13, keySet of Map1-4 and HashMap.
    """
    if release.is_in("java"):
        return f"[{', '.join(names)}]"
    return f"Set({', '.join(scala_set_order(names))})"


def unassigned(event: TraceEvent, release: Release) -> str:
    """Format members without an assignment from the leader: a set of Scala, a map of Java."""
    text = event.attrs["member_ids"]
    names = text.split(", ") if text else []
    if release.is_in("java"):
        # QUIRK: Kafka prints a map of byte arrays, so each member comes with the identity
        # hash of an array, which differs from process to process; it is 0 here.
        # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
        return f"{{{', '.join(f'{name}=[B@0' for name in names)}}}"
    return name_set(names, release)


# -- members -------------------------------------------------------------------------------


def member_in_full(event: TraceEvent, release: Release) -> str:
    """Format the member of an event with all its columns, and its protocols in `attrs`.

    Source: MemberMetadata.toString (Scala), ClassicGroupMember.toString (Java).
    """
    protocols = event.attrs.get("protocols", "").replace(",", ", ")
    if release.is_in("java"):
        return (
            f"ClassicGroupMember(memberId='{event.member_id}', "
            f"groupInstanceId='{event.group_instance_id or ''}', clientId='{event.client_id}', "
            f"clientHost='{event.client_host}', rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
            f"sessionTimeoutMs={event.session_timeout_ms}, protocolType='{event.protocol_type}', "
            f"supportedProtocols=[{protocols}])"
        )
    ending = ", " if release.is_in("-2.8") else ""
    return (
        f"MemberMetadata(memberId={event.member_id}, "
        f"groupInstanceId={option(event.group_instance_id, release)}, clientId={event.client_id}, "
        f"clientHost={event.client_host}, sessionTimeoutMs={event.session_timeout_ms}, "
        f"rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"supportedProtocols=List({protocols}){ending})"
    )


def leave_reason(event: TraceEvent, _: Release) -> str:
    """Return why the client left, as Kafka logs it. Source: LeaveGroupRequest.leaveReason."""
    return event.client_reason or NOT_PROVIDED


def join_reason(event: TraceEvent, release: Release) -> str:
    """Return why the client joins; Java takes an empty reason for none."""
    reason = event.client_reason
    return NOT_PROVIDED if reason is None or (not reason and release.is_in("java")) else reason


# -- errors of appends ---------------------------------------------------------------------


def raw_error(event: TraceEvent) -> ErrorCode:
    """Return the error of an append, before it was translated for clients."""
    return ErrorCode.__members__.get(event.reason_text or "", ErrorCode.UNKNOWN_SERVER_ERROR)


def is_unexpected(event: TraceEvent, release: Release) -> bool:
    """Whether a release calls the error of an append unexpected."""
    raw = raw_error(event)
    is_known = raw is ErrorCode.KAFKA_STORAGE_ERROR and not release.is_in("-0.10")
    return raw not in _EXPECTED and raw not in TOO_LARGE and not is_known


def exception_of(event: TraceEvent, _: Release) -> str:
    """Return the class of an append's exception."""
    return exception_name(raw_error(event))


def answered_error(event: TraceEvent, release: Release) -> str:
    """Return the message of the error that clients are told."""
    code = event.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
    early = _EARLY_MESSAGES.get(code) if release.is_in("-0.10") else None
    return early or error_message(code)


def store_error(event: TraceEvent, release: Release) -> str:
    """Return the message of a failed write of a group without members.

    Java tells the log's own error of a new group. Source: GroupMetadataManager.java.
    """
    if not release.is_in("java") or event.attrs.get("what") == "empty generation":
        return answered_error(event, release)
    raw = raw_error(event)
    if event.attrs.get("what") == "new group, late" and raw is ErrorCode.REQUEST_TIMED_OUT:
        timeout_ms = event.attrs.get("timeout_ms")
        return f"CoordinatorWriteEvent(name=classic-group-join) timed out after {timeout_ms}ms"
    return error_message(raw)
