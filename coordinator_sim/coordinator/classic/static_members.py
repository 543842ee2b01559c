"""Static members that come back under a new id.

Source: kafka trunk, GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin and
ClassicGroup.replaceStaticMember (KIP-345, KIP-814).
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.classic.group import Group, Member, Protocols
from coordinator_sim.coordinator.classic.join_phase import (
    Join,
    complete_join_of,
    group_record,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete,
    start_session,
    trace_store_failure,
    update_member,
)
from coordinator_sim.coordinator.runtime import Effect, Runtime, metadata_append_error
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import PREPARING_REBALANCE, GroupState
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.trace.events import Event, RebalanceReason

_SKIP_ASSIGNMENT_VERSION: Final = 9


def rejoin_static(
    runtime: Runtime, group: Group, join: Join, old: Member, member_id: str
) -> Effect | ErrorCode:
    """Give a static member its new id, and rebalance only if the group's protocol would change.

    Source: updateStaticMemberThenRebalanceOrCompleteJoin.
    """
    old_leader = group.leader_id or ""
    old_member_id = old.member_id
    member = replace_static_member(runtime, group, old, member_id)
    # QUIRK: the first session of the new id runs with the old timeout.
    start_session(runtime, group, member)
    before = StaticMemberBefore(
        old_member_id, member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    )
    update_member(runtime, group, member, join)
    instance = join.request.group_instance_id
    reason = f"client reason: {join.client_reason}"
    if group.state is GroupState.STABLE:
        if group.select_protocol() == (group.protocol_name or ""):
            _trace_replaced(group, old_member_id, member, {"rebalance": "0"})
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            return Effect(
                records=(group_record(runtime, group, group.as_record(assignments)),),
                follow=StoreStaticMember(
                    runtime, group, member, member_id, join, before, old_leader
                ),
            )
        _trace_replaced(group, old_member_id, member, {})
        text = (
            f"Group's selectedProtocol will change because static member {member_id} with "
            f"instance id {instance} joined with change of protocol; {reason}"
        )
        kind = RebalanceReason.STATIC_PROTOCOL_CHANGE
        return rebalance_or_complete(runtime, group, kind, text)
    _trace_replaced(group, old_member_id, member, {})
    if group.state is GroupState.AWAITING_SYNC:
        text = (
            f"Updating metadata for static member {member_id} with instance id {instance}; {reason}"
        )
        return prepare_rebalance(runtime, group, RebalanceReason.METADATA_CHANGED, text)
    if group.state in {GroupState.EMPTY, GroupState.DEAD}:
        # QUIRK: Kafka throws IllegalStateException here, which clients see as this error.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return maybe_complete_join(runtime, group)


def replace_static_member(runtime: Runtime, group: Group, old: Member, new_id: str) -> Member:
    """Fence the old id's parked requests and hand its place to a new id.

    Source: ClassicGroup.replaceStaticMember.
    """
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if runtime.tracing and (old.awaiting_join is not None or old.awaiting_sync is not None):
        group.emit(Event.MEMBER_FENCED, old)
    complete_join_of(
        runtime,
        group,
        old,
        JoinGroupResponse(error_code=fenced, member_id=old.member_id, protocol_name=None),
    )
    if old.awaiting_sync is not None:
        runtime.answer(old.awaiting_sync, SyncGroupResponse(error_code=fenced))
        old.awaiting_sync = None
    return group.replace_static(old, new_id)


def _trace_replaced(group: Group, old_id: str, new: Member, attrs: dict[str, str]) -> None:
    """Tell of the replacement, in the state that it happened in."""
    if group.runtime.tracing:
        group.emit(
            Event.STATIC_REPLACED,
            new,
            reason_text=f"was {old_id}",
            attrs={"old_member_id": old_id, "in_state": group.state.value, **attrs},
        )


class StaticMemberBefore(Struct, frozen=True):
    """A static member before its replacement, to go back to when storing it fails."""

    member_id: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


class StoreStaticMember(Struct, eq=False):
    """The record of a static member that came back under a new id in a Stable group."""

    runtime: Runtime
    group: Group
    member: Member
    member_id: str
    join: Join
    before: StaticMemberBefore
    old_leader: str

    def finish(self, error: ErrorCode) -> None:
        """Tell the member its generation, or take the replacement back."""
        if error is not ErrorCode.NONE:
            self._undo(error)
            return
        group, member_id = self.group, self.member_id
        if self.join.context.api_version >= _SKIP_ASSIGNMENT_VERSION:
            is_leader = group.leader_id == member_id
            if is_leader and group.state is PREPARING_REBALANCE:
                # QUIRK: Kafka throws when it lists the members here, and so the leader stays
                # parked. Source: ClassicGroup.currentClassicGroupMembers.
                return
            leader, skips = group.leader_id or "", is_leader
            members = group.member_list() if is_leader and self.member.awaiting_join else ()
        else:
            # QUIRK: before SkipAssignment a returning leader is told the old leader's id, so that
            # it does not assign again.
            leader, skips, members = self.old_leader, False, ()
        complete_join_of(
            self.runtime,
            group,
            self.member,
            JoinGroupResponse(
                generation_id=group.generation_id,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=leader,
                skip_assignment=skips,
                member_id=member_id,
                members=members,
            ),
        )

    def _undo(self, error: ErrorCode) -> None:
        runtime, group, member, before = self.runtime, self.group, self.member, self.before
        trace_store_failure(runtime, group, error, "static member")
        # QUIRK: Scala keeps the new protocols, as it reads the old ones too late.
        restores = runtime.profile.failed_replacement_restores_protocols
        group.update(member, before.protocols if restores else member.protocols, None)
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.session_timeout_ms = before.session_timeout_ms
        if self.member_id not in group.members:
            # QUIRK: it was replaced again or left meanwhile. Kafka throws here, after it has put
            # the forgotten member's protocols on the group's counts; Java then answers with the
            # operation's own error, Scala not at all.
            return
        old = replace_static_member(runtime, group, member, before.member_id)
        _trace_replaced(group, self.member_id, old, {"undone": "1"})
        start_session(runtime, group, old)
        runtime.answer(
            self.join.parked,
            JoinGroupResponse(
                error_code=metadata_append_error(error, runtime.profile),
                generation_id=group.generation_id,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=self.old_leader,
            ),
        )
