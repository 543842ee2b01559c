"""Messages of a coordinator about a group's rebalances and members, in every Kafka version.

Source: GroupCoordinator.scala and GroupMetadataManager.scala (0.9 to 3.9); GroupMetadataManager,
ClassicGroup (.java, 3.7 to 4.4).
"""

from typing import Final

from coordinator_sim.logtext.reading.templates import (
    CLIENT_REASON,
    GENERATION,
    GROUP,
    LEAVE,
    MEMBER,
    METADATA,
    PARTITION,
    STATE,
    template,
)
from coordinator_sim.trace.events import Event

REBALANCE: Final = (
    template(
        "prepare",
        Event.PREPARE_REBALANCE,
        "Preparing to re",
        rf"Preparing to re(?:balance|stabilize) group {GROUP} (?:in state (?P<a_in_state>\w+) )?"
        rf"with old generation {GENERATION}{PARTITION}(?: \(reason: (?P<reason>.*))?",
    ),
    template(
        "stabilized",
        Event.JOIN_COMPLETE,
        "Stabilized group",
        rf"Stabilized group {GROUP} generation {GENERATION}{PARTITION}"
        r"(?: with (?P<members>\d+) members)?",
    ),
    template(
        "assignment",
        Event.SYNC_LEADER,
        "Assignment received from leader",
        rf"Assignment received from leader(?: (?P<leader_id>.*?))? for group {GROUP} "
        rf"for generation {GENERATION}(?:\. The group has (?P<members>\d+) members, "
        r"(?P<static_members>\d+) of which)?",
    ),
    template(
        "empty",
        Event.GROUP_EMPTY,
        " is now empty",
        rf"Group {GROUP} with generation {GENERATION} is now empty{PARTITION}",
    ),
    template(
        "dead",
        Event.GROUP_DEAD,
        "transitioned to Dead",
        rf"Group {GROUP} transitioned to Dead in generation {GENERATION}",
    ),
    template(
        "dead-0.9",
        Event.GROUP_DEAD,
        "is dead and removed",
        rf"Group {GROUP} generation {GENERATION} is dead and removed",
    ),
    template(
        "leader-replaced",
        Event.LEADER_REPLACED,
        "failed to join before",
        r"Group leader \[member(?:\.id:|Id:) (?P<a_old_leader_id>.*?), group(?:\.instance\.id|"
        r"InstanceId): (?P<instance>.*?)\] failed to join before (?:the )?rebalance timeout"
        r"(?:, while new leader (?:MemberMetadata\(memberId=)?(?P<leader_id>.*?)"
        r"(?:, groupInstanceId=.*)? was elected"
        r"|\. Member (?:ClassicGroupMember\(memberId=')?(?P<leader_id2>.*?)"
        r"(?:', groupInstanceId=.*)? was elected)",
    ),
    template(
        "no-join",
        Event.LEADER_REPLACED,
        "failed to join before",
        r"Group leader \[member(?:\.id:|Id:) (?P<a_old_leader_id>.*?), group(?:\.instance\.id|"
        r"InstanceId): (?P<instance>.*?)\] failed to join before (?:the )?rebalance timeout"
        r",? and the group",
        outcome="no_member_joined",
    ),
    template(
        "no-rejoin",
        Event.LEADER_REPLACED,
        "could not complete rebalance because no",
        rf"Group {GROUP} could not complete rebalance because no",
        outcome="no_member_joined",
    ),
    template(
        "join-kick",
        Event.MEMBER_KICKED,
        "who haven't joined",
        rf"Group {GROUP} removed dynamic members who haven't joined: (?P<many>.*)",
        cause="join_timeout",
    ),
    template(
        "sync-kick",
        Event.MEMBER_KICKED,
        "who haven't sent their sync",
        rf"Group {GROUP} removed members who haven't sent their sync requests?: (?P<many>.*)",
        cause="sync_timeout",
    ),
    template(
        "empty-assignment",
        Event.EMPTY_ASSIGNMENT,
        "Setting empty assignments",
        rf"Setting empty assignments for members (?P<a_member_ids>.*) of {GROUP} "
        rf"for generation {GENERATION}",
    ),
    template(
        "empty-assignment-sent",
        Event.EMPTY_ASSIGNMENT,
        "Sending empty assignment",
        rf"Sending empty assignment to member {MEMBER} of {GROUP} for generation {GENERATION}",
        sent="1",
    ),
)

MEMBERS: Final = (
    template(
        "failed",
        Event.MEMBER_FAILED,
        "has failed",
        rf"Member {MEMBER} in group ?{GROUP} has failed",
    ),
    template(
        "left-2.4",
        Event.MEMBER_LEFT,
        "has left",
        r"Member ?\[group\.instance\.id (?P<instance>.*?), member\.id (?P<member_id>.*?)\] "
        rf"in group {GROUP} has left",
    ),
    template("left", Event.MEMBER_LEFT, "has left", rf"Member {MEMBER} in group {GROUP} has left"),
    template(
        "left-3.0",
        Event.MEMBER_LEFT,
        "has left group",
        rf"Member {METADATA} has left group {GROUP} {LEAVE}{CLIENT_REASON}",
    ),
    template(
        "pending-left-3.0",
        Event.MEMBER_LEFT,
        "Pending member with",
        rf"Pending member with memberId={MEMBER} has left group {GROUP} {LEAVE}{CLIENT_REASON}",
        pending="1",
    ),
    template(
        "pending-left-java",
        Event.MEMBER_LEFT,
        "] Pending member",
        rf"\[Group(?:Id)? {GROUP}\] Pending member {MEMBER} has left group {LEAVE}{CLIENT_REASON}",
        pending="1",
    ),
    template(
        "pending-leaving",
        Event.MEMBER_LEFT,
        "is leaving group",
        r"Pending member (?P<member_id>.*?) is leaving group (?P<group_id>.*?)\.?$",
        pending="1",
    ),
    template(
        "left-java",
        Event.MEMBER_LEFT,
        "has left group",
        rf"\[Group(?:Id)? {GROUP}\] (?:Dynamic |Static )?[Mm]ember {MEMBER}"
        rf"(?: with instance id (?P<instance>.*?))? has left group {LEAVE}{CLIENT_REASON}",
    ),
    template(
        "pending-expired",
        Event.PENDING_EXPIRED,
        "after session timeout expiration",
        rf"Pending member {MEMBER} in group {GROUP} has been removed after session timeout",
    ),
    template(
        "static-replaced",
        Event.STATIC_REPLACED,
        "Replacing previously mapped member",
        rf"Static member with groupInstanceId=(?P<instance>.*?) and unknown member id joins group "
        rf"{GROUP} {STATE}\. Replacing previously mapped member "
        r"(?P<a_old_member_id>.*?) with this groupInstanceId",
    ),
    template(
        "static-replaced-2.5",
        Event.STATIC_REPLACED,
        "rejoins, assigning new member id",
        r"Static member (?P<instance>.*?)(?: of group (?P<group_id>.*?))? with unknown member id "
        rf"rejoins, assigning new member id {MEMBER}, while old member (?:id )?"
        r"(?P<a_old_member_id>.*?) will be removed",
    ),
    template(
        "static-added",
        Event.MEMBER_ADDED,
        "Adding new static member",
        r"Adding new static member (?P<instance>.*?) to group (?P<group_id>.*) "
        r"with member id (?P<member_id>.*?)\.?$",
    ),
    template(
        "static-added-3.0",
        Event.MEMBER_ADDED,
        "Static member with groupInstanceId",
        rf"Static member with groupInstanceId=(?P<instance>.*?) and unknown member id joins group "
        rf"{GROUP} {STATE}\. Created a new member id {MEMBER} for this member",
    ),
    template(
        "id-assigned",
        Event.MEMBER_ID_ASSIGNED,
        "to rejoin with this id",
        rf"ember with unknown member id (?:re)?joins group {GROUP} {STATE}\. "
        rf"Created a new member id {MEMBER} and request(?:ing)? the member",
    ),
    template(
        "id-added",
        Event.MEMBER_ADDED,
        "Created a new member id",
        rf"ember with unknown member id (?:re)?joins group {GROUP} {STATE}\. "
        rf"Created a new member id {MEMBER} (?:for this member|and added)",
    ),
    template(
        "id-cut",
        Event.MEMBER_ID_ASSIGNED,
        "with unknown member id",
        rf"ember with unknown member id (?:re)?joins group {GROUP} {STATE}\."
        rf"(?: Created a new member id {MEMBER}(?: .*)?$)?",
    ),
    template(
        "pending-joins",
        Event.MEMBER_ADDED,
        "Pending dynamic member with id",
        rf"Pending dynamic member with id {MEMBER} joins group {GROUP} {STATE}\.",
    ),
    template(
        "specific-joins",
        Event.MEMBER_ADDED,
        "with specific member id",
        rf"with specific member id {MEMBER} joins group {GROUP} {STATE}\.",
    ),
    template(
        "fenced",
        Event.MEMBER_FENCED,
        "is fenced by",
        rf"Request memberId={MEMBER} for static member with groupInstanceId=(?P<instance>.*?) is "
        r"fenced by (?:current|existing) memberId=(?P<a_current_member_id>.*?) during operation "
        r"(?P<a_operation>[\w-]+)",
    ),
    template(
        "fenced-2.4",
        Event.MEMBER_FENCED,
        "is identified as a known static member",
        rf"given member\.id {MEMBER} is identified as a known static member "
        r"(?P<instance>.*?),\s?but not matching the expected member\.id "
        r"(?P<a_current_member_id>.*?)"
        r"(?: during (?P<a_operation>[\w-]+).*)?$",
    ),
)

CONSUMER_GROUPS: Final = (
    template(
        "consumer-fenced",
        Event.MEMBER_FENCED,
        "is fenced by existing member",
        rf"\[GroupId {GROUP}\] Static member {MEMBER} with instance id (?P<instance>.*?) is "
        r"fenced by existing member (?P<a_current_member_id>.*?)\.?$",
    ),
    template(
        "consumer-joins",
        Event.MEMBER_ADDED,
        " joins the ",
        rf"\[GroupId {GROUP}\](?:\[MemberId (?P<member_id2>.*?)\])? "
        rf"(?:Static )?[Mm]ember(?: {MEMBER})?"
        r"(?: with instance id (?P<instance>.*?))? joins the (?P<a_group_type>\w+) group",
    ),
    template(
        "consumer-replaces",
        Event.STATIC_REPLACED,
        "re-joins the ",
        rf"\[GroupId {GROUP}\](?:\[MemberId .*?\])? Static member with instance id "
        rf"(?P<instance>.*?) re-joins the (?P<a_group_type>\w+) group.*"
        rf"Created a new member {MEMBER} to replace the existing member "
        r"(?P<a_old_member_id>.*?)\.?$",
    ),
    template(
        "consumer-left",
        Event.MEMBER_LEFT,
        " left the ",
        rf"\[GroupId {GROUP}\](?:\[MemberId .*?\])? (?:Static )?[Mm]ember {MEMBER}"
        r"(?: with instance id (?P<instance>.*?))? (?P<a_temporary>temporarily )?left the "
        r"(?P<a_group_type>\w+) group",
    ),
    template(
        "consumer-failed",
        Event.MEMBER_FAILED,
        "fenced from the group because the member session expired",
        rf"\[GroupId {GROUP}\] (?:Streams )?[Mm]ember {MEMBER} fenced from the group because",
    ),
    template(
        "consumer-kicked",
        Event.MEMBER_KICKED,
        "fenced from the group because",
        rf"\[GroupId {GROUP}\] (?:Streams )?[Mm]ember {MEMBER} fenced from the group because "
        r"(?P<a_cause>.*?)\.?$",
    ),
    template(
        "converted",
        Event.LIFECYCLE,
        "Converted the ",
        rf"\[GroupId {GROUP}\] Converted the (?:empty )?(?P<a_from_type>\w+) group to a "
        r"(?P<a_to_type>\w+) group",
    ),
)
