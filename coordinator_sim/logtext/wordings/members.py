"""Log lines about the members of a group, classic and consumer groups'.

Source: GroupCoordinator.scala, GroupMetadata.scala (0.9 to 3.9); GroupMetadataManager and
ClassicGroup (.java, 3.7 to 4.4). The rows without a telling are only read: no release that is
written logs them at INFO, or the group is none that the core has.
"""

from typing import Final

from coordinator_sim.logtext.wordings.loggers import COORDINATOR, FENCING, GROUP
from coordinator_sim.logtext.wordings.releases import Release
from coordinator_sim.logtext.wordings.rows import ERROR, Telling, having, lacking, row
from coordinator_sim.logtext.wordings.values import OPERATIONS
from coordinator_sim.trace.events import Event, TraceEvent


def _is_dynamic(event: TraceEvent, _: Release) -> bool:
    return event.group_instance_id is None and event.attrs.get("member_id_was") != "pending"


def _is_static(event: TraceEvent, _: Release) -> bool:
    return event.group_instance_id is not None and event.attrs.get("member_id_was") != "pending"


_PENDING_LEFT: Final = Telling(COORDINATOR, when=having("pending"))
_LEFT: Final = Telling(COORDINATOR, when=lacking("pending"))
_REPLACED: Final = Telling(COORDINATOR, when=lacking("undone"))
_STATIC: Final = Telling(COORDINATOR, when=_is_static)
_DYNAMIC: Final = Telling(COORDINATOR, when=_is_dynamic)
_WAS_PENDING: Final = having("member_id_was", "pending")
_REFUSED: Final = having("current_member_id")
_FENCED_BY_GROUP: Final = Telling(GROUP, ERROR, of=tuple(OPERATIONS), when=_REFUSED)

_DEPARTURES: Final = (
    row("failed", Event.MEMBER_FAILED, "-", Telling(COORDINATOR, silent="-0.10")).says(
        "Member {member_id} in group< >{group_id} has failed<, removing it from the group{.}>"
    ),
    row("left-2.4", Event.MEMBER_LEFT, "2.4-2.8", _LEFT).says(
        "Member<none| >[group.instance.id {option}, member.id {member_id}] in group {group_id} has "
        "left<, removing it from the group>"
    ),
    row("left", Event.MEMBER_LEFT, "0.11-2.3").says(
        "Member {member_id} in group {group_id} has left<, removing it from the group>"
    ),
    row("left-3.0", Event.MEMBER_LEFT, "3.0-3.9", _LEFT).says(
        "Member {metadata} has left group {group_id} through explicit {LeaveGroup}"
        "<3.0-3.1| request><3.2-3.9|; client reason: {client_reason}>"
    ),
    row("pending-left-3.0", Event.MEMBER_LEFT, "3.0-3.9", _PENDING_LEFT, pending="1").says(
        "Pending member with memberId={member_id} has left group {group_id} through explicit "
        "{LeaveGroup}< request><none|; client reason: {client_reason}>"
    ),
    row("pending-left-java", Event.MEMBER_LEFT, "java", _PENDING_LEFT, pending="1").says(
        "[Group<none|Id> {group_id}] Pending member {member_id} has left group through explicit "
        "{LeaveGroup}< request><; client reason: {client_reason}>"
    ),
    row("pending-leaving", Event.MEMBER_LEFT, "2.4-2.8", _PENDING_LEFT, pending="1").says(
        "Pending member {member_id} is leaving group {group_id}."
    ),
    row("left-java", Event.MEMBER_LEFT, "java", _LEFT).says(
        "[Group<none|Id> {group_id}] {Member} {member_id}<none| with instance id "
        "{group_instance_id}> has left group through explicit {LeaveGroup}< request>"
        "<; client reason: {client_reason}>"
    ),
    row("pending-expired", Event.PENDING_EXPIRED, "2.4-", COORDINATOR).says(
        "Pending member {member_id} in group {group_id} has been removed after session timeout "
        "expiration<.>"
    ),
)
_ARRIVALS: Final = (
    row("static-replaced", Event.STATIC_REPLACED, "3.0-", _REPLACED).says(
        "Static member with groupInstanceId={group_instance_id} and unknown member id joins group "
        "{group_id} {in_x_state}. Replacing previously mapped member {old_member_id} with this "
        "groupInstanceId<.>"
    ),
    row("static-replaced-2.5", Event.STATIC_REPLACED, "2.3-2.8", _REPLACED).says(
        "Static member {option}<2.5-2.8| of group {group_id}> with unknown member id rejoins, "
        "assigning new member id {member_id}, while old member <2.5-2.8|id >{old_member_id} will "
        "be removed<.>"
    ),
    row("static-added-3.0", Event.MEMBER_ADDED, "3.0-", _STATIC).says(
        "Static member with groupInstanceId={group_instance_id} and unknown member id joins group "
        "{group_id} {in_x_state}. Created a new member id {member_id} for this member< and "
        "add<java|ed> to the group.>"
    ),
    row("id-assigned", Event.MEMBER_ID_ASSIGNED, "2.4-", Telling(COORDINATOR, silent="-2.8")).says(
        "<Dynamic m>ember with unknown member id <2.4|re>joins group {group_id} {in_x_state}. "
        "Created a new member id {member_id} and request<java|ing> the member< to rejoin with this "
        "id.>"
    ),
    row("static-id-added", Event.MEMBER_ADDED, "2.5-2.8", _STATIC).says(
        "Static Member with unknown member id joins group {group_id} {in_x_state}. Created a new "
        "member id {member_id} for this member< and add to the group.>"
    ),
    row("static-added", Event.MEMBER_ADDED, "2.5-2.8", _STATIC).says(
        "Adding new static member {option} to group {group_to_last} with member id {member_id}."
    ),
    row("id-added", Event.MEMBER_ADDED, "2.4-3.9", _DYNAMIC).says(
        "<Dynamic M>ember with unknown member id <2.4|re>joins group {group_id} {in_x_state}. "
        "Created a new member id {member_id} for this member< and add to the group.>"
    ),
    row("id-added-java", Event.MEMBER_ADDED, "java", _DYNAMIC).says(
        "<Dynamic m>ember with unknown member id joins group {group_id} {in_state_x}. Created a "
        "new member id {member_id} and added< the member to the group.>"
    ),
    row("id-cut", Event.MEMBER_ID_ASSIGNED, "2.4-").says(
        "<Dynamic m>ember with unknown member id <2.4|re>joins group {group_id} {in_x_state}."
        "< Created a new member id {member_id}{rest}>"
    ),
    row(
        "pending-joins",
        Event.MEMBER_ADDED,
        "3.0-3.9 4.x",
        Telling(COORDINATOR, when=_WAS_PENDING, silent="3.0-3.9"),
    ).says(
        "Pending dynamic member with id {member_id} joins group {group_id} {in_x_state}."
        "< Adding to the group now.>"
    ),
    row("specific-joins", Event.MEMBER_ADDED, "2.5-2.8").says(
        "<Dynamic Member >with specific member id {member_id} joins group {group_id} {in_x_state}."
        "< Adding to the group now.>"
    ),
)
_FENCED: Final = (
    row(
        "fenced", Event.MEMBER_FENCED, "3.0-", Telling(FENCING, of=tuple(OPERATIONS), when=_REFUSED)
    ).says(
        "Request memberId={member_id} for static member with groupInstanceId={group_instance_id} "
        "is fenced by <-3.9|current><java|existing> memberId={current_member_id} during operation "
        "{operation}"
    ),
    row("fenced-2.4", Event.MEMBER_FENCED, "2.4-2.8", _FENCED_BY_GROUP).says(
        "given member.id {member_id} is identified as a known static member {group_instance_id},"
        "< >but not matching the expected member.id {current_member_id}<2.5-2.8| during {operation}"
        "<, will respond with instance fenced error>>"
    ),
)
MEMBERS: Final = (*_DEPARTURES, *_ARRIVALS, *_FENCED)
"""Lines in the order in which the reader tries them, and the writer writes those of one event."""
