"""Requests with their answers as trace events, wherever they were written down.

A request log and a capture both tell what clients asked and what brokers answered. What that means
for a group is said once, here: the requests and answers themselves, and what a coordinator's own
log would have said, as far as the answers show it.

`ToldGroup`: what requests and their answers have told of a group so far.

`Silences`: when the sessions of a group's members ran out, as their requests show it.

A coordinator removes a member that it heard nothing of for a session timeout. Requests and answers
show both: the last sign of life, and the timeout that the member asked for.

Source: kafka 4.4, GroupMetadataManager and GroupCoordinatorService: when which answer is given;
kafka 4.4, GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat and its callers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.trace.events import (
    Event,
    OffsetEntry,
    RebalanceReason,
    Source,
    TimeKind,
    TraceEvent,
)
from coordinator_sim.trace.exchange import Exchange

_MS: Final = 1_000
"""Microseconds of a millisecond."""
_HEARD: Final = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
"""Answers to a member whose session began anew."""


class Silences:
    """Last signs of life of the members of one group."""

    _heard_us: dict[str, int]
    _session_us: dict[str, int]

    def __init__(self) -> None:
        self._heard_us = {}
        self._session_us = {}

    def joined(self, member_id: str, session_timeout_ms: int, at_us: int) -> None:
        """Note a member that is in a generation from an instant on."""
        self._session_us[member_id] = session_timeout_ms * _MS
        self._heard_us[member_id] = at_us

    def heard(self, member_id: str, error: ErrorCode | None, at_us: int) -> None:
        """Note an answered request; those of unknown members and refused ones say nothing."""
        if error in _HEARD and member_id in self._session_us:
            self._heard_us[member_id] = max(at_us, self._heard_us[member_id])

    def ran_out_us(self, member_id: str, until_us: int) -> int | None:
        """Return when a member's session ran out; None if not by then, or if it never joined."""
        session_us = self._session_us.get(member_id)
        if session_us is None:
            return None
        at_us = self._heard_us[member_id] + session_us
        return at_us if at_us <= until_us else None

    def session_timeout_ms(self, member_id: str) -> int | None:
        """Return the session timeout that a member asked for; None if it never joined."""
        session_us = self._session_us.get(member_id)
        return None if session_us is None else session_us // _MS

    def forget(self, member_id: str) -> None:
        """Stop following a member that has left the group."""
        self._heard_us.pop(member_id, None)
        self._session_us.pop(member_id, None)


@dataclass(slots=True)
class ToldGroup:
    """One group, as its members' requests and the answers to them show it."""

    generation: int | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    """Members of the generation, with their instance ids."""
    subscriptions: dict[str, bytes] = field(default_factory=dict)
    leader_id: str = ""
    synced: int | None = None
    """The generation whose assignment was received."""
    began_us: int | None = None
    """First sign that the generation ended."""
    shown_us: int = 0
    """When that sign was answered."""
    left_us: int = 0
    """When the LeaveGroup was received that is the reason."""
    reason: RebalanceReason | None = None
    cause: dict[str, Any] = field(default_factory=dict)
    joins: dict[int, tuple[int, Exchange]] = field(default_factory=dict)
    silences: Silences = field(default_factory=Silences)

    def begin(self, heartbeat: Exchange) -> None:
        """Note a heartbeat whose answer says that the generation ended; the first sign counts."""
        if self.began_us is None or heartbeat.asked_us < self.began_us:
            self.began_us, self.shown_us = heartbeat.asked_us, heartbeat.done_us
            if self.reason is not None and heartbeat.done_us < self.left_us:
                self.reason, self.cause = None, {}

    def begin_by_leave(self, leave: Exchange, cause: dict[str, Any]) -> None:
        """Note that a member has left.

        It explains a heartbeat that was answered after the LeaveGroup had come: on a busy broker
        that answer may leave first.
        """
        is_first = self.began_us is None or leave.done_us < self.began_us
        if is_first:
            self.began_us = self.shown_us = leave.done_us
        if is_first or (self.reason is None and leave.asked_us <= self.shown_us):
            self.reason, self.cause = RebalanceReason.MEMBER_LEFT, cause
            self.left_us = leave.asked_us

    def holder(self, instance_id: str | None) -> str | None:
        """Return the member that has an instance id; None without one."""
        held = {name: member_id for member_id, name in self.members.items() if name is not None}
        return None if instance_id is None else held.get(instance_id)

    def take_over(self, instance_id: str, member_id: str) -> str | None:
        """Give a static member its new id, and return its old one; None where it has no other."""
        old_id = self.holder(instance_id)
        if old_id is None or old_id == member_id:
            return None
        self.members = {
            member_id if each == old_id else each: name for each, name in self.members.items()
        }
        self.silences.forget(old_id)
        return old_id

    def remove(self, member_id: str | None) -> bool:
        """Remove a member; False if the group has no such member."""
        if member_id is None or member_id not in self.members:
            return False
        del self.members[member_id]
        self.silences.forget(member_id)
        return True

    def empty(self, generation: int) -> None:
        """Note the generation in which nobody is left."""
        self.generation, self.members = generation, {}
        self.began_us, self.reason, self.cause = None, None, {}

    def was_empty_before(self, generation: int, failed: int) -> bool:
        """Whether the group was empty for a generation that no request is in.

        Args:
            generation: The generation that comes.
            failed: How many members of the last one failed since.
        """
        skipped = self.generation is not None and generation == self.generation + 2
        return skipped and 0 < failed == len(self.members)

    def failures(self, members: dict[str, str | None], at_us: int) -> list[tuple[str, int]]:
        """Return who is not in the next generation as its session ran out, and when it did.

        A member that was removed before its session ran out is omitted: a join timeout did that.

        Args:
            members: Members of the next generation, with their instance ids.
            at_us: When that generation was complete.

        Returns:
            Member ids and instants, in the order of the instants.
        """
        stay = {*members, *filter(None, members.values())}
        found = []
        for member_id, name in self.members.items():
            ran_out_us = self.silences.ran_out_us(member_id, at_us)
            if not {member_id, name} & stay and ran_out_us is not None:
                found.append((member_id, ran_out_us))
        return sorted(found, key=lambda entry: entry[1])

    def cause_of(
        self, first: Exchange, members: dict[str, str | None]
    ) -> tuple[RebalanceReason, dict[str, Any]]:
        """Return why the group rebalanced, as far as its members show it.

        Args:
            first: The first JoinGroup of the next generation.
            members: Members of that generation, with their instance ids.

        Returns:
            The reason, and what tells more of it, by columns of an event.
        """
        # Who joins an empty group first leads it.
        joined = first.response.member_id if self.members else first.response.leader
        known = {*self.members, *filter(None, self.members.values())}
        new = [each for each, name in members.items() if not {each, name} & known]
        if self.members and new and joined not in new:
            # A member that is told of a rebalance may be answered before the one that caused it.
            named = {"member_id": new[0]} if len(new) == 1 else {}
            return RebalanceReason.MEMBER_JOINED, named
        is_known = joined in self.members
        said = first.request.reason if joined == first.response.member_id else None
        reason = RebalanceReason.UNKNOWN if is_known else RebalanceReason.MEMBER_JOINED
        return reason, {"member_id": joined, "client_reason": said}


def leave_errors(request: LeaveGroupRequest, response: LeaveGroupResponse) -> dict[int, ErrorCode]:
    """Return what was answered for each member of a LeaveGroup, by its place."""
    if response.error_code is not ErrorCode.NONE or not response.members:
        return dict.fromkeys(range(len(request.members)), response.error_code)
    return {
        index: answered.error_code
        for index, answered in enumerate(response.members[: len(request.members)])
    }


_INFERRED_CONFIDENCE: Final = 0.8
_MEMBERS_REMEMBERED: Final = 100_000
"""Limit of remembered JoinGroup requests, by which members are named."""


class Exchanges:
    """Turns exchanges into events; those of one cluster are to come in the order of answers.

    The events of an exchange are not in the order of their times: a request was received long
    before its answer. The merge stage sorts them.

    Args:
        source: REQUEST_LOG or WIRE.
    """

    _source: Source
    _kind: TimeKind
    _groups: dict[str, ToldGroup]
    _clients: dict[str, tuple[str | None, str | None]]

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kind = TimeKind.EVENT if source is Source.WIRE else TimeKind.LOGGED
        self._groups = {}
        self._clients = {}

    def read(self, exchange: Exchange) -> Iterator[TraceEvent]:
        """Yield the events of one exchange."""
        tell = _TELLERS.get(type(exchange.request))
        if tell is not None:
            yield from tell(self, exchange)

    # -- membership --------------------------------------------------------------------------

    def _joined(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: JoinGroupRequest = exchange.request
        response: JoinGroupResponse | None = exchange.response
        group = self._groups.setdefault(request.group_id, ToldGroup())
        common = self._common(exchange, request.group_id)
        first = request.protocols[0].metadata if request.protocols else None
        yield TraceEvent(
            event=Event.JOIN_REQ,
            ts_us=exchange.asked_us,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_host=exchange.client_host,
            protocol_type=request.protocol_type or None,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=_told(request.rebalance_timeout_ms),
            client_reason=request.reason,
            subscription=first if exchange.has_bytes else None,
            **_with(common, protocols=",".join(each.name for each in request.protocols)),
        )
        if response is None:
            return
        member_id = response.member_id or request.member_id
        self._name(member_id, exchange)
        error = response.error_code
        if error is ErrorCode.NONE:
            yield from self._generation(exchange, group)
            group.silences.joined(member_id, request.session_timeout_ms, exchange.done_us)
        yield TraceEvent(
            event=Event.JOIN_RESP,
            ts_us=exchange.sent_us,
            latency_us=exchange.latency_us,
            error_code=error,
            member_id=member_id or None,
            group_instance_id=request.group_instance_id,
            generation=_told(response.generation_id),
            leader_id=response.leader or None,
            members=len(response.members),
            protocol_type=response.protocol_type or request.protocol_type or None,
            protocol_name=response.protocol_name or None,
            **common,
        )
        if error is ErrorCode.MEMBER_ID_REQUIRED and member_id:
            yield self._about(Event.MEMBER_ID_ASSIGNED, exchange, member_id=member_id)
        if error is ErrorCode.FENCED_INSTANCE_ID:
            yield self._fenced(exchange, request)

    def _generation(self, exchange: Exchange, group: ToldGroup) -> Iterator[TraceEvent]:
        """Note that a member is in a generation; the leader's answer tells that it began."""
        request, response = exchange.request, exchange.response
        generation = response.generation_id
        name = request.group_instance_id
        returns = name is not None and name in group.members.values()
        is_known = group.generation == generation and (
            group.leader_id == response.leader or returns
        )
        if not is_known:
            first = group.joins.get(generation)
            if first is None or exchange.asked_us < first[0]:
                group.joins[generation] = (exchange.asked_us, exchange)
        is_leader = response.leader == response.member_id
        if not is_leader or is_known:
            # A group that its coordinator lost begins again, with a generation that was there.
            if is_known and returns:
                yield from self._replaced(exchange, group)
            return
        members = {each.member_id: each.group_instance_id for each in response.members}
        members = members or {response.member_id: request.group_instance_id}
        failed = self._failed(exchange, group, members)
        yield from failed
        if group.was_empty_before(generation, len(failed)):
            yield from self._emptied(exchange, group, failed[0], failed[-1].ts_us)
            failed = []
        yield from self._prepared(exchange, group, members, next(iter(failed), None))
        group.joins.clear()
        group.generation, group.leader_id, group.synced = generation, response.leader, None
        group.members = members
        group.subscriptions = {
            each.member_id: each.metadata for each in response.members if exchange.has_bytes
        }
        group.began_us, group.reason, group.cause = None, None, {}
        yield self._about(
            Event.JOIN_COMPLETE,
            exchange,
            generation=generation,
            leader_id=response.leader,
            members=len(group.members),
            static_members=sum(name is not None for name in group.members.values()),
            protocol_type=response.protocol_type or request.protocol_type or None,
            protocol_name=response.protocol_name or None,
        )

    def _replaced(self, exchange: Exchange, group: ToldGroup) -> Iterator[TraceEvent]:
        """Yield that a static member came back under a new id, to the generation that was there."""
        name: str = exchange.request.group_instance_id
        new_id: str = exchange.response.member_id
        old_id = group.take_over(name, new_id)
        if old_id is not None:
            replaced = self._about(
                Event.STATIC_REPLACED,
                exchange,
                generation=group.generation,
                member_id=new_id,
                group_instance_id=name,
            )
            replaced.attrs.update(old_member_id=old_id, rebalance="0")
            yield replaced

    def _failed(
        self, exchange: Exchange, group: ToldGroup, members: dict[str, str | None]
    ) -> list[TraceEvent]:
        """Return the members that are gone as their session ran out, in the order of failure."""
        found = []
        for member_id, at_us in group.failures(members, exchange.done_us):
            client_id, client_host = self._clients.get(member_id, (None, None))
            common = _inferred(self._common(exchange, exchange.request.group_id))
            found.append(
                TraceEvent(
                    event=Event.MEMBER_FAILED,
                    ts_us=at_us,
                    generation=group.generation,
                    member_id=member_id,
                    group_instance_id=group.members[member_id],
                    session_timeout_ms=group.silences.session_timeout_ms(member_id),
                    **{**common, "client_id": client_id, "client_host": client_host},
                )
            )
        return found

    def _prepared(
        self,
        exchange: Exchange,
        group: ToldGroup,
        members: dict[str, str | None],
        failed: TraceEvent | None,
    ) -> Iterator[TraceEvent]:
        """Yield when the rebalance began, as far as requests show it.

        Args:
            exchange: The leader's JoinGroup.
            group: The group before it.
            members: Of the generation that it led to.
            failed: The first member that failed, if one did.
        """
        generation = exchange.response.generation_id
        asked_us, first = group.joins.get(generation, (exchange.asked_us, exchange))
        reason, cause = group.reason, dict(group.cause)
        began_us = asked_us if group.began_us is None else min(asked_us, group.began_us)
        if failed is not None and failed.ts_us < began_us:
            began_us, reason = failed.ts_us, RebalanceReason.MEMBER_FAILED
            cause = {"member_id": failed.member_id}
        if reason is None:
            reason, cause = group.cause_of(first, members)
        old = generation - 1 if group.generation is None else group.generation
        yield TraceEvent(
            event=Event.PREPARE_REBALANCE,
            ts_us=began_us,
            generation=old,
            reason=reason,
            **cause,
            **_inferred(self._common(exchange, exchange.request.group_id)),
        )

    def _synced(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: SyncGroupRequest = exchange.request
        response: SyncGroupResponse | None = exchange.response
        group = self._groups.setdefault(request.group_id, ToldGroup())
        common = self._common(exchange, request.group_id)
        names: dict[str, Any] = {
            "member_id": request.member_id,
            "group_instance_id": request.group_instance_id,
            "generation": request.generation_id,
        }
        protocols: dict[str, Any] = {
            "protocol_type": request.protocol_type or None,
            "protocol_name": request.protocol_name or None,
        }
        yield TraceEvent(
            event=Event.SYNC_REQ, ts_us=exchange.asked_us, **names, **protocols, **common
        )
        if response is None:
            return
        group.silences.heard(request.member_id, response.error_code, exchange.done_us)
        is_leader = bool(request.assignments) and response.error_code is ErrorCode.NONE
        if is_leader and group.synced != request.generation_id:
            group.synced = request.generation_id
            yield from self._assignments(exchange, group)
        protocols = {name: getattr(response, name) or asked for name, asked in protocols.items()}
        yield TraceEvent(
            event=Event.SYNC_RESP,
            ts_us=exchange.sent_us,
            latency_us=exchange.latency_us,
            error_code=response.error_code,
            assignment=response.assignment if exchange.has_bytes else None,
            **names,
            **protocols,
            **common,
        )
        if response.error_code is ErrorCode.FENCED_INSTANCE_ID:
            yield self._fenced(exchange, request)

    def _assignments(self, exchange: Exchange, group: ToldGroup) -> Iterator[TraceEvent]:
        request, response = exchange.request, exchange.response
        is_known = group.generation == request.generation_id
        shared: dict[str, Any] = {
            "ts_us": exchange.asked_us,
            "generation": request.generation_id,
            "leader_id": request.member_id,
            "protocol_type": response.protocol_type or request.protocol_type or None,
            "protocol_name": response.protocol_name or request.protocol_name or None,
            **self._common(exchange, request.group_id),
        }
        given = {each.member_id: each.assignment for each in request.assignments}
        members = group.members if is_known else dict.fromkeys(given)
        yield TraceEvent(event=Event.SYNC_LEADER, members=len(members), **shared)
        if not exchange.has_bytes:
            return
        for member_id, instance_id in members.items():
            client_id, client_host = self._clients.get(member_id, (None, None))
            columns = {**shared, "client_id": client_id, "client_host": client_host}
            yield TraceEvent(
                event=Event.ASSIGNED,
                member_id=member_id,
                group_instance_id=instance_id,
                subscription=group.subscriptions.get(member_id) if is_known else None,
                assignment=given.get(member_id, b""),
                **columns,
            )

    def _beat(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: HeartbeatRequest = exchange.request
        response: HeartbeatResponse | None = exchange.response
        error = None if response is None else response.error_code
        group = self._groups.setdefault(request.group_id, ToldGroup())
        group.silences.heard(request.member_id, error, exchange.done_us)
        is_told = error is ErrorCode.REBALANCE_IN_PROGRESS
        if is_told and group.generation == request.generation_id:
            group.begin(exchange)
        yield TraceEvent(
            event=Event.HEARTBEAT,
            ts_us=exchange.sent_us,
            latency_us=exchange.latency_us,
            error_code=error,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            generation=request.generation_id,
            **self._common(exchange, request.group_id),
        )
        if error is ErrorCode.FENCED_INSTANCE_ID:
            yield self._fenced(exchange, request)

    def _left(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: LeaveGroupRequest = exchange.request
        response: LeaveGroupResponse | None = exchange.response
        group = self._groups.setdefault(request.group_id, ToldGroup())
        common = self._common(exchange, request.group_id)
        errors = {} if response is None else leave_errors(request, response)
        for index, member in enumerate(request.members):
            error = errors.get(index)
            yield TraceEvent(
                event=Event.LEAVE_REQ,
                ts_us=exchange.asked_us,
                error_code=error,
                latency_us=exchange.latency_us,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_reason=member.reason,
                **common,
            )
        gone = [index for index, error in errors.items() if error is ErrorCode.NONE]
        for index in gone:
            member = request.members[index]
            member_id = member.member_id or group.holder(member.group_instance_id)
            yield self._about(
                Event.MEMBER_LEFT,
                exchange,
                generation=group.generation,
                member_id=member_id,
                group_instance_id=member.group_instance_id,
                client_reason=member.reason,
            )
            if group.remove(member_id):
                cause = {"member_id": member_id, "client_reason": member.reason}
                group.begin_by_leave(exchange, cause)
        if gone and not group.members and group.generation is not None:
            yield from self._emptied(exchange, group, None, exchange.done_us)

    def _emptied(
        self, exchange: Exchange, group: ToldGroup, failed: TraceEvent | None, at_us: int
    ) -> Iterator[TraceEvent]:
        """Yield that nobody is left: all have left by a request, or failed, this one first."""
        inferred = _inferred(self._common(exchange, exchange.request.group_id))
        generation = group.generation or 0
        began_us = at_us if group.began_us is None else group.began_us
        reason, cause = RebalanceReason.MEMBER_LEFT, group.cause
        if failed is not None:
            began_us, reason = failed.ts_us, RebalanceReason.MEMBER_FAILED
            cause = {"member_id": failed.member_id}
        yield TraceEvent(
            event=Event.PREPARE_REBALANCE,
            ts_us=began_us,
            generation=generation,
            reason=reason,
            **cause,
            **inferred,
        )
        yield TraceEvent(
            event=Event.GROUP_EMPTY, ts_us=at_us, generation=generation + 1, **inferred
        )
        group.empty(generation + 1)

    # -- offsets -----------------------------------------------------------------------------

    def _committed(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: OffsetCommitRequest = exchange.request
        response: OffsetCommitResponse | None = exchange.response
        errors = (
            []
            if response is None
            else [each.error_code for topic in response.topics for each in topic.partitions]
        )
        failed = [error for error in errors if error is not ErrorCode.NONE]
        group = self._groups.get(request.group_id)
        if group is not None and errors and not failed:
            group.silences.heard(request.member_id, ErrorCode.NONE, exchange.done_us)
        yield TraceEvent(
            event=Event.OFFSET_COMMIT,
            ts_us=exchange.sent_us,
            latency_us=exchange.latency_us,
            error_code=failed[0] if failed else (ErrorCode.NONE if errors else None),
            member_id=request.member_id or None,
            group_instance_id=request.group_instance_id,
            generation=_told(request.generation_id_or_member_epoch),
            offsets=tuple(
                OffsetEntry(
                    topic.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or None,
                )
                for topic in request.topics
                for each in topic.partitions
            ),
            **self._common(exchange, request.group_id),
        )

    def _fetched(self, exchange: Exchange) -> Iterator[TraceEvent]:
        request: OffsetFetchRequest = exchange.request
        response: OffsetFetchResponse | None = exchange.response
        if response is None:
            return
        asked = request.groups[0].group_id if len(request.groups) == 1 else ""
        for group in response.groups:
            yield TraceEvent(
                event=Event.OFFSET_FETCH,
                ts_us=exchange.sent_us,
                latency_us=exchange.latency_us,
                error_code=group.error_code,
                offsets=tuple(
                    OffsetEntry(
                        topic.name,
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata or None,
                    )
                    for topic in group.topics
                    for each in topic.partitions
                ),
                **self._common(exchange, group.group_id or asked),
            )

    # -- columns -----------------------------------------------------------------------------

    def _common(self, exchange: Exchange, group_id: str) -> dict[str, Any]:
        attrs = {"connection": exchange.connection} if exchange.connection else {}
        if exchange.client_software:
            attrs["client_sw"] = exchange.client_software
        return {
            "seq": exchange.seq,
            "group_id": group_id,
            "broker_id": exchange.broker_id,
            "api_key": int(type(exchange.request).api_key),
            "api_version": exchange.api_version,
            "correlation_id": exchange.correlation_id,
            "client_id": exchange.client_id,
            "ts_kind": self._kind,
            "ts_err_us": exchange.ts_err_us,
            "source": self._source,
            "source_ref": exchange.source_ref,
            "attrs": attrs,
            "raw": exchange.raw,
        }

    def _about(self, event: Event, exchange: Exchange, **columns: Any) -> TraceEvent:  # noqa: ANN401 - columns differ in type
        """Return what the coordinator did at the instant of an answer."""
        common = self._common(exchange, exchange.request.group_id)
        return TraceEvent(event=event, ts_us=exchange.done_us, **columns, **common)

    def _fenced(
        self, exchange: Exchange, request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
    ) -> TraceEvent:
        return self._about(
            Event.MEMBER_FENCED,
            exchange,
            error_code=ErrorCode.FENCED_INSTANCE_ID,
            member_id=request.member_id or None,
            group_instance_id=request.group_instance_id,
        )

    def _name(self, member_id: str, exchange: Exchange) -> None:
        if member_id and len(self._clients) < _MEMBERS_REMEMBERED:
            self._clients[member_id] = (exchange.client_id, exchange.client_host)


_TELLERS: Final[dict[type, Callable[[Exchanges, Exchange], Iterator[TraceEvent]]]] = {
    JoinGroupRequest: Exchanges._joined,  # noqa: SLF001 - a table of its methods
    SyncGroupRequest: Exchanges._synced,  # noqa: SLF001
    HeartbeatRequest: Exchanges._beat,  # noqa: SLF001
    LeaveGroupRequest: Exchanges._left,  # noqa: SLF001
    OffsetCommitRequest: Exchanges._committed,  # noqa: SLF001
    OffsetFetchRequest: Exchanges._fetched,  # noqa: SLF001
}


def _told(number: int) -> int | None:
    return None if number < 0 else number


def _with(common: dict[str, Any], **attrs: str) -> dict[str, Any]:
    return {**common, "attrs": {**common["attrs"], **attrs}}


def _inferred(common: dict[str, Any]) -> dict[str, Any]:
    return {**common, "ts_kind": TimeKind.INFERRED, "confidence": _INFERRED_CONFIDENCE}
