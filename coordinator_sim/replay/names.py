"""Members named in a line. Redacted names, without a letter or digit, count as no name."""

import re
from typing import Final

from coordinator_sim.logtext.wordings.reasons import classify
from coordinator_sim.trace.epoch_records import SHARE
from coordinator_sim.trace.events import TraceEvent

_BATCH: Final = re.compile(r"request for \((?P<ids>.*)\)", re.IGNORECASE)
_SET: Final = re.compile(r"removing (?:\w*Set\(|\w*\[|\{)(?P<ids>.*)[)\]}] on ", re.IGNORECASE)
_UUID: Final = re.compile(
    r"(?P<prefix>.+)-(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)


def members_of(line: TraceEvent) -> tuple[str | None, ...]:
    """Return the member ids of a line in its order; a single None when it names no member.

    A batched LeaveGroup and an expired sync phase name several.
    """
    if line.member_id is not None:
        return (_named(line.member_id),)
    for pattern in (_BATCH, _SET):
        match = pattern.search(line.reason_text or "")
        if match is not None:
            return tuple(_named(text.strip()) for text in match["ids"].split(",") if text.strip())
    if line.reason_text is not None and line.reason is not None:
        return (_named(classify(line.reason_text).member_id or ""),)
    return (None,)


def share_member_of(line: TraceEvent) -> str | None:
    """Return the client id of a share group's member, or its member id where no client id is told.

    A share consumer makes its member id up, without its client id in it.
    """
    return line.client_id or line.member_id


def names_of(line: TraceEvent) -> tuple[str | None, ...]:
    """Return the members of a line as people know them: of a share group by their client ids."""
    if line.protocol_type == SHARE and line.member_id is not None:
        return (_named(share_member_of(line) or ""),)
    return members_of(line)


def old_member_of(line: TraceEvent) -> str | None:
    """Return the member id that a static member's return replaces."""
    return _named(line.attrs.get("old_member_id", ""))


def instance_of(line: TraceEvent) -> str | None:
    """Return the group instance id of a line; None for a dynamic member."""
    return line.group_instance_id


def split_member_id(name: str) -> tuple[str, str] | None:
    """Split a member id into its client (or instance) id and its random part.

    Returns:
        None when the id is not `<client id>-<anything>`, so that no coordinator issues it.

    Source: kafka trunk, ClassicGroup.generateMemberId.
    """
    match = _UUID.fullmatch(name)
    if match is not None:
        return match["prefix"], match["uuid"]
    prefix, dash, rest = name.rpartition("-")
    return (prefix, rest) if dash else None


def _named(text: str) -> str | None:
    return text if any(letter.isalnum() for letter in text) else None
