"""Log lines about the rebalances of a group.

Source: GroupCoordinator.scala, GroupMetadata.scala and GroupMetadataManager.scala (0.9 to 3.9);
GroupMetadataManager and ClassicGroup (.java, 3.7 to 4.4). The rows without a telling are only read:
no release that is written logs them at INFO.
"""

from typing import Final

from coordinator_sim.logtext.wordings.loggers import COORDINATOR, GROUP, PARTITIONS
from coordinator_sim.logtext.wordings.rows import ERROR, WARN, Telling, having, lacking, row
from coordinator_sim.trace.events import Event

_NEW_LEADER: Final = Telling(GROUP, when=lacking("outcome"))
_NO_LEADER: Final = Telling(GROUP, when=having("outcome"))
_NOBODY: Final = Telling(COORDINATOR, ERROR, when=having("outcome"))
_NO_OFFSETS: Final = Telling(PARTITIONS, when=having("cause", "no offsets"))
_UNASSIGNED: Final = Telling(COORDINATOR, WARN, when=lacking("sent"))
_SENT_EMPTY: Final = Telling(COORDINATOR, WARN, when=having("sent"))

REBALANCES: Final = (
    row("prepare", Event.PREPARE_REBALANCE, "-", COORDINATOR).says(
        "Preparing to <-0.10|restabilize><0.11-|rebalance> group {group_id} "
        "<2.1-!|in state {preparing} >with old generation {generation}<0.11-3.9| ({offsets_log})>"
        "<2.1-| (reason: {reason})>{.}"
    ),
    row("stabilized", Event.JOIN_COMPLETE, "-", COORDINATOR).says(
        "Stabilized group {group_id} generation {generation}<0.11-3.9| ({offsets_log})>"
        "<2.8-!| with {members} members>{.}"
    ),
    row("assignment", Event.SYNC_LEADER, "-", COORDINATOR).says(
        "Assignment received from leader<3.0-!| {leader_id}> for group {group_id} for generation "
        "{generation}<2.8-!|. The group has {members} members, {static_members} of which"
        "< are static.>>"
    ),
    row("empty", Event.GROUP_EMPTY, "-", COORDINATOR).says(
        "Group {group_id} with generation {generation} is now empty<0.11-3.9| ({offsets_log})>{.}"
    ),
    row("dead", Event.GROUP_DEAD, "-3.9", _NO_OFFSETS).says(
        "Group {group_id} transitioned to Dead in generation {generation}"
    ),
    row("dead-0.9", Event.GROUP_DEAD, "-0.10").says(
        "Group {group_id} generation {generation} is dead and removed"
    ),
    row("leader-replaced", Event.LEADER_REPLACED, "2.4-3.9", _NEW_LEADER).says(
        "Group leader [member.id: {old_leader_id}, group.instance.id: {old_instance}] failed to "
        "join before rebalance timeout, while new leader {new_leader} was elected<.>"
    ),
    row("leader-replaced-java", Event.LEADER_REPLACED, "java", _NEW_LEADER).says(
        "Group leader [memberId: {old_leader_id}, groupInstanceId: {old_instance}] failed to join "
        "before the rebalance timeout. Member {new_leader} was elected< as the new leader.>"
    ),
    # QUIRK: two pieces of this text are put together without a blank.
    # Source: kafka 3.9, GroupMetadata.maybeElectNewJoinedLeader.
    row("no-join", Event.LEADER_REPLACED, "2.4-3.9", _NO_LEADER, outcome="no_member_joined").says(
        "Group leader [member.id: {old_leader_id}, group.instance.id: {old_instance}] failed to "
        "join before rebalance timeout, and the group< couldn't proceed to next generationbecause "
        "no member joined.>"
    ),
    row("no-join-java", Event.LEADER_REPLACED, "java", _NO_LEADER, outcome="no_member_joined").says(
        "Group leader [memberId: {old_leader_id}, groupInstanceId: {old_instance}] failed to join "
        "before the rebalance timeout and the group< couldn't proceed to the next generation "
        "because no member joined.>"
    ),
    row("no-rejoin", Event.LEADER_REPLACED, "2.4-", _NOBODY, outcome="no_member_joined").says(
        "Group {group_id} could not complete rebalance because no< members rejoined{.}>"
    ),
    row("join-kick", Event.MEMBER_KICKED, "2.8-", COORDINATOR, cause="join_timeout").says(
        "Group {group_id} removed dynamic members who haven't joined: {kicked}"
    ),
    row("sync-kick", Event.MEMBER_KICKED, "2.8-", cause="sync_timeout").says(
        "Group {group_id} removed members who haven't sent their sync request<s>: {kicked}"
    ),
    row("empty-assignment", Event.EMPTY_ASSIGNMENT, "2.5-", _UNASSIGNED).says(
        "Setting empty assignments for members {member_ids} of {group_id} for generation "
        "{generation}{.}"
    ),
    row("empty-assignment-sent", Event.EMPTY_ASSIGNMENT, "2.5-", _SENT_EMPTY, sent="1").says(
        "Sending empty assignment to member {member_id} of {group_id} for generation {generation}"
        "< with no errors>"
    ),
)
"""Lines in the order in which the reader tries them, and the writer writes those of one event."""
