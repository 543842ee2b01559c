"""Log lines about consumer groups (KIP-848); share and streams groups have some of them too.

Source: GroupMetadataManager.java of 4.0.2, 4.1.2, 4.2.1 and 4.3.1, and the class of 4.4.0. The rows
without a telling are only read: they are logged below INFO, or of groups that the core has not.
"""

from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.logtext.wordings.loggers import COORDINATOR
from coordinator_sim.logtext.wordings.releases import Release
from coordinator_sim.logtext.wordings.rows import (
    ANY,
    CONSUMER,
    Telling,
    When,
    having,
    row,
)
from coordinator_sim.trace.epoch_groups import SCANNED
from coordinator_sim.trace.events import Event, TraceEvent


def _is_static(event: TraceEvent, _: Release) -> bool:
    return event.group_instance_id is not None


def _is_dynamic(event: TraceEvent, _: Release) -> bool:
    return event.group_instance_id is None


def _is_static_for_good(event: TraceEvent, _: Release) -> bool:
    return event.group_instance_id is not None and "temporary" not in event.attrs


def _refused(error: ErrorCode) -> When:
    return lambda event, _: event.error_code is error and "current_member_id" in event.attrs


def _told(when: When | None = None, *of: Event, groups: str = CONSUMER) -> Telling:
    return Telling(COORDINATOR, of=of, when=when, groups=groups)


_ANSWERS: Final = (Event.JOIN_RESP, Event.HEARTBEAT)
_FENCED: Final = _told(_refused(ErrorCode.FENCED_INSTANCE_ID), *_ANSWERS)
_OWNED: Final = _told(_refused(ErrorCode.UNRELEASED_INSTANCE_ID), *_ANSWERS)

_COMING: Final = (
    row("consumer-fenced", Event.MEMBER_FENCED, "java", _FENCED, group_type="consumer").says(
        "[GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} is "
        "fenced by existing member {current_member_id}."
    ),
    row("consumer-owned", None, "java", _OWNED).says(
        "[GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} "
        "cannot join the group because the instance id is owned by member {current_member_id}."
    ),
    row("consumer-static-joins", Event.MEMBER_ADDED, "java", _told(_is_static)).says(
        "[GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} joins "
        "the {group_type} group< using the {used_protocol} protocol.>"
    ),
    row("consumer-joins", Event.MEMBER_ADDED, "java", _told(_is_dynamic)).says(
        "[GroupId {group_id}]<none|[MemberId {member_id}]> {Member}< {member_id}> joins the "
        "{group_type} group< using the {used_protocol} protocol.>"
    ),
    row("consumer-replaces", Event.STATIC_REPLACED, "java", _told()).says(
        "[GroupId {group_id}]<none|[MemberId {any}]> Static member with instance id "
        "{group_instance_id} re-joins the {group_type} group< using the {used_protocol} protocol.>"
        " Created a new member {member_id} to replace the existing member {old_member_id}."
    ),
)
_GOING: Final = (
    row("consumer-away", Event.MEMBER_LEFT, "java", _told(having("temporary"))).says(
        "[GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} "
        "{temporary} left the {group_type} group<.>"
    ),
    row("consumer-static-left", Event.MEMBER_LEFT, "java", _told(_is_static_for_good)).says(
        "[GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} left "
        "the {group_type} group<.>"
    ),
    row("consumer-left", Event.MEMBER_LEFT, "java", _told(_is_dynamic)).says(
        "[GroupId {group_id}]<none|[MemberId {any}]> {Member} {member_id} left the {group_type} "
        "group<.>"
    ),
    row("streams-failed", Event.MEMBER_FAILED, "java", group_type="streams").says(
        "[GroupId {group_id}] Streams member {member_id} fenced from the group because the member "
        "session expired<.>"
    ),
    row("consumer-failed", Event.MEMBER_FAILED, "java", _told(), group_type="consumer").says(
        "[GroupId {group_id}] {Member} {member_id} fenced from the group because the member "
        "session expired<.>"
    ),
    row(
        "consumer-late",
        Event.MEMBER_KICKED,
        "java",
        _told(),
        group_type="consumer",
        cause="rebalance_timeout",
    ).says(
        "[GroupId {group_id}] {Member} {member_id} fenced from the group because it failed to "
        "transition from epoch {unreached_epoch} within {rebalance_timeout_ms}ms<.>"
    ),
    row("consumer-kicked", Event.MEMBER_KICKED, "java", group_type="consumer").says(
        "[GroupId {group_id}] {Member} {member_id} fenced from the group because {cause}."
    ),
)
_EPOCHS: Final = (
    row("group-epoch", Event.EPOCH_BUMPED, "java", _told()).says(
        "[GroupId {group_id}]<none|[MemberId {any}]> Bumped <none|streams >group epoch to "
        "{epoch_generation}{with_hash}<none|{rest}><.>"
    ),
    row("target", Event.TARGET_COMPUTED, "java", _told()).says(
        "[GroupId {group_id}] Computed a new target assignment for epoch {epoch_generation} with "
        "'{assignor}' assignor in {assignment_ms}ms<.><none|: {any}>"
    ),
    row("regexes", Event.LIFECYCLE, "java", _told(having(SCANNED), groups=ANY)).says(
        "[GroupId {group_id}] Scanned {scanned} topics to refresh regular expressions {regexes} "
        "in {assignment_ms}ms<.>"
    ),
    row("converted", Event.LIFECYCLE, "java", _told(having("from_type"), groups=ANY)).says(
        "[GroupId {group_id}] Converted the {empty_group}{from_type} group to a {to_type} group<.>"
    ),
    row("group-unloaded-consumer", Event.GROUP_UNLOADED, "java", _told()).says(
        "[GroupId={group_id}] Unloaded group metadata for group epoch {epoch_generation}<.>"
    ),
)
CONSUMER_GROUPS: Final = (*_COMING, *_GOING, *_EPOCHS)
"""Lines in the order in which the reader tries them, and the writer writes those of one event."""
