"""Builds trace events from a line and its row: columns, attributes, causes."""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.logtext.reading.envelopes import Envelope
from coordinator_sim.logtext.wordings.fields import EVENT_LISTS, FIELDS
from coordinator_sim.logtext.wordings.reasons import classify
from coordinator_sim.logtext.wordings.rows import Row
from coordinator_sim.logtext.wordings.values import listed
from coordinator_sim.trace.events import (
    Event,
    RebalanceReason,
    Source,
    TimeKind,
    TraceEvent,
)

_STATE_AFTER: Final = {
    Event.PREPARE_REBALANCE: GroupState.PREPARING_REBALANCE,
    Event.JOIN_COMPLETE: GroupState.AWAITING_SYNC,
    Event.GROUP_EMPTY: GroupState.EMPTY,
    Event.GROUP_DEAD: GroupState.DEAD,
}
_REASON_END: Final = re.compile(r"\)\.?$")


class Line(Struct, frozen=True):
    """One log line, ready to be interpreted.

    Args:
        number: Line number in its file, from 1; of the first line when several were joined.
        ts_us: Time of the line, or of an earlier line when it has none.
        truncated: Whether the end of the message is missing.
        raw: Text as found.
    """

    number: int
    envelope: Envelope
    ts_us: int
    ts_kind: TimeKind
    ts_err_us: int
    truncated: bool
    raw: str


class Match(Struct, frozen=True):
    """Values of a row in one line; those cut off by the line's end are absent.

    Args:
        values: Values by the names of their kinds.
        lost_group: Whether the group id was cut off, so that the event's group is unknown.
    """

    row: Row
    values: dict[str, str]
    lost_group: bool = False


def read_match(row: Row, match: re.Match[str], line: Line) -> Match:
    """Return the values of a match, without those that the end of a cut line may have shortened."""
    values: dict[str, str] = {}
    lost_group = False
    end = len(line.envelope.message)
    for group, value in enumerate(match.groups()):
        if value is None:
            continue
        kind, field = row.kinds[group]
        if line.truncated and match.end(group + 1) >= end and not field.is_free_text:
            lost_group = lost_group or kind == "group_id"
            continue
        values[kind] = value
    return Match(row, values, lost_group)


def base_columns(
    line: Line, source: Source, source_ref: str, *, keep_raw: bool
) -> dict[str, object]:
    """Return the columns that every event of a line has."""
    columns: dict[str, object] = {
        "ts_us": line.ts_us,
        "seq": line.number,
        "ts_kind": line.ts_kind,
        "ts_err_us": line.ts_err_us,
        "source": source,
        "source_ref": source_ref,
    }
    if keep_raw:
        columns["raw"] = line.raw
    return columns


def line_attrs(line: Line, fixed: dict[str, str]) -> dict[str, str]:
    """Return the attributes that a line gives to its events, besides the row's own."""
    attrs = dict(fixed)
    if line.truncated:
        attrs["truncated"] = "1"
    if line.envelope.collector_ts is not None:
        attrs["collector_ts"] = line.envelope.collector_ts
    return attrs


def build_events(
    match: Match, line: Line, columns: dict[str, object], attrs: dict[str, str]
) -> list[TraceEvent]:
    """Return the events of one line: one, or one per member or group that the message lists.

    Args:
        match: Match of the line's row.
        line: Line of the message.
        columns: Columns of `base_columns` and the line's prefix; extended here.
        attrs: Attributes of `line_attrs`; extended here.
    """
    event = match.row.event
    if event is None:
        return []
    _fill(match.values, columns, attrs)
    if event is Event.PREPARE_REBALANCE:
        _fill_cause(match.values.get("reason"), line, columns, attrs)
    state = _STATE_AFTER.get(event)
    if state is not None:
        columns["state_to"] = state
    for name, column in EVENT_LISTS.items():
        if name in match.values:
            return [
                TraceEvent(event=event, attrs=attrs, **(columns | {column: one}))  # type: ignore[arg-type]
                for one in listed(match.values[name])
            ]
    return [TraceEvent(event=event, attrs=attrs, **columns)]  # type: ignore[arg-type]


def _fill(values: dict[str, str], columns: dict[str, object], attrs: dict[str, str]) -> None:
    for name, value in values.items():
        field = FIELDS[name]
        if field.is_read:
            continue
        parsed = value if field.parse is None else field.parse(value)
        if field.attr:
            attrs[field.attr] = str(parsed)
        else:
            columns[field.column] = parsed


def _fill_cause(
    text: str | None, line: Line, columns: dict[str, object], attrs: dict[str, str]
) -> None:
    if text is None:
        columns["reason"] = RebalanceReason.UNKNOWN
        return
    if not line.truncated:
        text = _REASON_END.sub("", text)
    cause = classify(text)
    columns["reason"] = cause.reason
    columns["reason_text"] = cause.text
    columns["client_reason"] = cause.client_reason
    columns["group_instance_id"] = _whole(cause.group_instance_id, text, line)
    member_id = columns["member_id"] = _whole(cause.member_id, text, line)
    if cause.reason is RebalanceReason.MEMBER_LEFT and member_id is None and "(" in cause.text:
        attrs["member_ids"] = cause.text.partition("(")[2].partition(")")[0]


def _whole(name: str | None, text: str, line: Line) -> str | None:
    """Return a name of a reason; None when the end of a cut line may have shortened it."""
    is_cut = line.truncated and name is not None and text.endswith(name)
    return None if is_cut else name


def error_of(text: str) -> ErrorCode | None:
    """Return the error that a client's message describes; None when its words are unknown."""
    # A broker prints itself as a Node, since 4.0 with `isFenced: false`.
    lowered = text.lower().replace("isfenced", "")
    for name, code in ErrorCode.__members__.items():
        # Exceptions have the same names in another spelling: UnknownMemberIdError.
        if name in text or (code and name.replace("_", "").lower() in lowered):
            return code
    for words, code in _ERROR_WORDS:
        if words in lowered:
            return code
    return None


_ERROR_WORDS: Final = (
    ("(no error)", ErrorCode.NONE),
    ("is rebalancing", ErrorCode.REBALANCE_IN_PROGRESS),
    ("rebalance in progress", ErrorCode.REBALANCE_IN_PROGRESS),
    ("began another rebalance", ErrorCode.REBALANCE_IN_PROGRESS),
    ("is not current", ErrorCode.ILLEGAL_GENERATION),
    ("is not  current", ErrorCode.ILLEGAL_GENERATION),
    ("generation id is not valid", ErrorCode.ILLEGAL_GENERATION),
    ("is not valid", ErrorCode.UNKNOWN_MEMBER_ID),
    ("not aware of this member", ErrorCode.UNKNOWN_MEMBER_ID),
    ("unknown member", ErrorCode.UNKNOWN_MEMBER_ID),
    ("was not recognized", ErrorCode.UNKNOWN_MEMBER_ID),
    ("needs to have a valid member id", ErrorCode.MEMBER_ID_REQUIRED),
    ("needs a valid member id", ErrorCode.MEMBER_ID_REQUIRED),
    ("not the correct coordinator", ErrorCode.NOT_COORDINATOR),
    ("not coordinator", ErrorCode.NOT_COORDINATOR),
    ("not started or not valid", ErrorCode.NOT_COORDINATOR),
    ("coordinator is loading", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("is loading the group", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("coordinator load in progress", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("coordinator is not available", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("coordinator not available", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("reached its maximum size", ErrorCode.GROUP_MAX_SIZE_REACHED),
    ("reached maximum size", ErrorCode.GROUP_MAX_SIZE_REACHED),
    ("group authorization failed", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ("member epoch is fenced", ErrorCode.FENCED_MEMBER_EPOCH),
    ("instance id is still used", ErrorCode.UNRELEASED_INSTANCE_ID),
    ("inconsistent", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ("fenced", ErrorCode.FENCED_INSTANCE_ID),
)
