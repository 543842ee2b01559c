"""A franz-go consumer: the loop that joins, runs a session, and joins again.

The loop does not depend on the application's polls: a consumer that never polls keeps its
partitions, because there is no `max.poll.interval.ms`. An error other than a rebalance loses all
partitions; the loop waits for a backoff that grows with every such error since the last rebalance,
and joins again, also after fencing.

A group session of franz-go: from the answer to SyncGroup to the next JoinGroup.

Revoking, assigning, looking up offsets and heartbeats overlap as the goroutines of
setupAssignedAndHeartbeat do. Heartbeats go on while the application's revocation runs. A session
that ends otherwise than by a rebalance loses all partitions.

Source: franz-go 1.22, pkg/kgo/consumer_group.go, manage, manageFailWait, joinAndSync,
handleJoinResp, leave, findNewAssignments; group_balancer.go, balanceGroup; franz-go 1.22,
pkg/kgo/consumer_group.go, setupAssignedAndHeartbeat, heartbeat, revoke, assignRevokeSession,
diffAssigned.
"""

from dataclasses import dataclass
from typing import Final, Unpack

from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    ConsumerAssignor,
    RebalanceProtocol,
)
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.clients.background_requests import ConsumerSetup, members_of
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.franz_go.offsets import FranzGoOffsets
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.context import UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

_FAST_CHECK_MS: Final = 500
"""Interval of one early heartbeat, which soon notices a cooperative group's second rebalance."""
_AFTER_REVOKING: Final = "after revoking what we lost from a rebalance"

Partitions = tuple[TopicPartition, ...]


@dataclass(slots=True)
class Session:
    """State of one group session."""

    heartbeat_due_ms: int
    fast_check_due_ms: int
    beats: bool = False
    assigned: bool = False
    revoking: bool = False
    revoked: bool = False
    last_error: ErrorCode = ErrorCode.NONE
    rejoin_why: str = ""


_FIRST_JOIN: Final = "beginning to manage the group lifecycle"
_AFTER_REBALANCE: Final = "rejoining from normal rebalance"
_AFTER_ERROR: Final = "rejoining after we previously errored and backed off"
_NEW_TOPICS: Final = (
    "rejoining because there are more topics to consume, our interests have changed"
)
_NEW_PARTITIONS: Final = (
    "rejoining because we are the leader and noticed some topics have new partitions"
)
_STALE_PLAN: Final = (
    "instance group leader restarted and was reassigned old plan, our topic interests changed and "
    "we must rejoin to force a rebalance"
)
_LEAVING: Final = "client leaving group per normal operation"
_NO_GENERATION_USER_DATA: Final = bytes(4)
"""User data of a sticky member without partitions and generation: only an empty list."""


class FranzGoConsumer(FranzGoOffsets):
    """The model of a franz-go group consumer of the classic protocol, with default options.

    DEVIATION: the sticky assignors are Java's. franz-go's own may keep other partitions where
    they are.
    """

    __slots__ = (
        "_cooperative",
        "_error_count",
        "_is_backing_off",
        "_is_leader",
        "_is_leaving",
        "_is_managing",
        "_join_why",
        "_known_partition_counts",
        "_last_assigned",
        "_now_assigned",
        "_rejoin_is_owed",
        "_rejoin_why",
        "_session",
        "_waiting_plan",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        self._session: Session | None = None
        self._cooperative = False
        self._is_leaving = False
        self._now_assigned: Partitions = ()
        self._last_assigned: Partitions = ()
        self._rejoin_why: str | None = None
        self._rejoin_is_owed = False
        self._is_managing = False
        self._is_backing_off = False
        self._is_leader = False
        self._join_why = _FIRST_JOIN
        self._error_count = 0
        self._known_partition_counts: dict[str, int] = {}
        self._waiting_plan: JoinGroupResponse | None = None

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions assigned now, by topic and partition."""
        return self._now_assigned

    # The beginning.

    def _begin_session(self, now_ms: int) -> None:
        fast_ms = now_ms + _FAST_CHECK_MS if self._cooperative else FOREVER
        session = Session(now_ms + self._config.heartbeat_interval_ms, fast_ms)
        self._session = session
        added = self._now_assigned
        lost: Partitions = ()
        if self._cooperative:
            last = self._last_assigned
            added = tuple(tp for tp in self._now_assigned if tp not in last)
            lost = tuple(tp for tp in last if tp not in self._now_assigned)
        self._last_assigned = self._now_assigned
        if lost:
            self._revoke_lost(session, lost, added, now_ms)
        else:
            self._assign(session, added)

    def _revoke_lost(
        self, session: Session, lost: Partitions, added: Partitions, now_ms: int
    ) -> None:
        """Give up partitions that go to another member (cooperative), then join again."""
        self._stop_fetching(lost)

        def called(at_ms: int) -> None:
            del at_ms
            self._forget(lost)
            self._rejoin_is_owed = True
            self._rejoin(_AFTER_REVOKING)
            self._assign(session, added)

        self._commit_before_revoking(
            lambda _: self._enqueue_callback(CallbackKind.PARTITIONS_REVOKED, lost, called), now_ms
        )

    def _assign(self, session: Session, added: Partitions) -> None:
        """Notify the application, always; then look up start offsets."""
        self._assigned.update((tp, None) for tp in added if tp not in self._assigned)

        def called(at_ms: int) -> None:
            session.assigned = True
            if session.revoking:
                self._revoke(session, at_ms)
            elif added and not self._is_leaving:
                self._fetch_offsets(added, lambda e, ms: self._fetched(session, e, ms), at_ms)

        self._enqueue_callback(CallbackKind.PARTITIONS_ASSIGNED, added, called)

    def _fetched(self, session: Session, error: ErrorCode | None, now_ms: int) -> None:
        if error is not None and session is self._session and not session.revoking:
            self._lose_session(now_ms)

    # Heartbeats.

    def _serve(self, now_ms: int) -> None:
        """Serve what a session waits for, in an order that Go's select leaves open.

        UNSPECIFIED: of two timers that are due together, the one made earlier is served first.
        """
        session = self._session
        if session is None or session.beats:
            return
        if self._is_leaving and session.assigned and not session.revoking:
            self._session = None
            self._revoke_to_leave(now_ms)
        elif self._rejoin_why is not None and not session.revoking:
            session.rejoin_why, self._rejoin_why = self._rejoin_why, None
            self._begin_revoking(session, now_ms)
        elif now_ms >= session.heartbeat_due_ms:
            self._beat(session, now_ms)
        elif now_ms >= session.fast_check_due_ms:
            session.fast_check_due_ms = FOREVER
            self._beat(session, now_ms)

    def _next_wake_ms(self) -> int:
        session = self._session
        timers_ms = super()._next_wake_ms()
        if session is None or session.beats:
            return timers_ms
        return min(timers_ms, session.heartbeat_due_ms, session.fast_check_due_ms)

    def _beat(self, session: Session, now_ms: int) -> None:
        session.beats = True
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
        )
        self._ask(
            RequestKind.HEARTBEAT, request, lambda r, ms: self._on_heartbeat(session, r, ms), now_ms
        )

    def _on_heartbeat(self, session: Session, response: Response | None, now_ms: int) -> None:
        """Handle Heartbeat. Source: franz-go 1.22, pkg/kgo/consumer_group.go, heartbeat."""
        if session is not self._session:
            return
        session.beats = False
        session.heartbeat_due_ms = now_ms + self._config.heartbeat_interval_ms
        error = ErrorCode.REQUEST_TIMED_OUT
        if isinstance(response, HeartbeatResponse):
            error = response.error_code
        if session.revoked:
            self._end_session(session, now_ms)
        elif error is ErrorCode.NONE:
            pass
        elif session.revoking:
            session.last_error = error
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._begin_revoking(session, now_ms)
        else:
            self._lose_session(now_ms)

    # The end by a rebalance.

    def _begin_revoking(self, session: Session, now_ms: int) -> None:
        """Revoke once the application's assignment is over; offset lookups stop."""
        session.revoking = True
        session.last_error = ErrorCode.REBALANCE_IN_PROGRESS
        if session.assigned:
            self._revoke(session, now_ms)

    def _revoke(self, session: Session, now_ms: int) -> None:
        """Revoke everything (eager), or topics that are no longer subscribed (cooperative)."""
        lost = self._now_assigned
        if self._cooperative and not self._is_leaving:
            lost = tuple(tp for tp in lost if tp.topic not in self._subscription)
        self._stop_fetching(lost)

        def called(at_ms: int) -> None:
            self._give_up(lost)
            session.revoked = True
            if not session.beats:
                self._end_session(session, at_ms)

        self._commit_before_revoking(
            lambda _: self._enqueue_callback(CallbackKind.PARTITIONS_REVOKED, lost, called), now_ms
        )

    def _end_session(self, session: Session, now_ms: int) -> None:
        if session is not self._session:
            return
        self._session = None
        if self._is_leaving:
            self._revoke_to_leave(now_ms)
        elif session.last_error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join_anew(session.rejoin_why, now_ms)
        else:
            self._manage_failed(now_ms)

    def _lose_session(self, now_ms: int) -> None:
        self._session = None
        self._manage_failed(now_ms)

    def _revoke_to_leave(self, now_ms: int) -> None:
        """Commit and revoke all owned partitions before leaving, in either protocol."""
        owned = self._now_assigned
        self._stop_fetching(owned)

        def called(at_ms: int) -> None:
            self._give_up(owned)
            self._leave(at_ms)

        self._commit_before_revoking(
            lambda _: self._enqueue_callback(CallbackKind.PARTITIONS_REVOKED, owned, called), now_ms
        )

    # What is owned.

    def _stop_fetching(self, partitions: Partitions) -> None:
        for partition in partitions:
            self._assigned.pop(partition, None)

    def _give_up(self, partitions: Partitions) -> None:
        self._stop_fetching(partitions)
        self._forget(partitions)
        self._now_assigned = tuple(tp for tp in self._now_assigned if tp not in partitions)
        self._last_assigned = tuple(tp for tp in self._last_assigned if tp not in partitions)

    def _rejoin(self, why: str) -> None:
        """End the session as if the group rebalanced; the first reason is kept."""
        if self._rejoin_why is None:
            self._rejoin_why = why

    # The beginning, and what metadata says.

    def _on_start(self, now_ms: int) -> None:
        """Do nothing: the first metadata response begins the loop."""

    def _on_poll_ended(self, now_ms: int) -> None:
        """Do nothing: franz-go does not watch polls."""

    def _on_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        """Join on new topics. Source: franz-go 1.22, consumer_group.go, findNewAssignments."""
        self._adopt_metadata(response, now_ms)
        known, counts = self._known_partition_counts, self._partition_counts()
        self._known_partition_counts = counts
        if not self._is_managing and counts:
            self._is_managing = True
            if self._config.enable_auto_commit:
                interval_ms = self._config.auto_commit_interval_ms
                self._call_at(now_ms + interval_ms, self._commit_by_interval)
            self._join(now_ms)
        elif any(topic not in known for topic in counts):
            self._rejoin(_NEW_TOPICS)
        elif self._is_leader and any(counts[topic] > known[topic] for topic in counts):
            self._rejoin(_NEW_PARTITIONS)
        if self._waiting_plan is not None:
            plan, self._waiting_plan = self._waiting_plan, None
            self._balance(plan, now_ms)

    def _on_subscription_changed(self, now_ms: int) -> None:
        del now_ms
        self._rejoin(_NEW_TOPICS)

    # JoinGroup.

    def _join_anew(self, why: str, now_ms: int) -> None:
        """Join after a rebalance ended the session; earlier errors are forgotten."""
        self._error_count = 0
        self._join_why = why or _AFTER_REBALANCE
        self._join(now_ms)

    def _join(self, now_ms: int) -> None:
        self._is_joining = True
        self._is_leader = False
        self._rejoin_why = None
        config = self._config
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            member_id=self._member_id,
            group_instance_id=config.group_instance_id,
            protocol_type="consumer",
            protocols=tuple(
                JoinGroupRequestProtocol(assignor.name, self._subscription_blob(assignor))
                for assignor in self._assignors
            ),
            reason=self._join_why,
        )
        self._ask(RequestKind.JOIN, request, self._on_join_group, now_ms)

    def _subscription_blob(self, assignor: ConsumerAssignor) -> bytes:
        """Return the JoinGroup metadata. Source: group_balancer.go, JoinGroupMetadata."""
        owned = self._last_assigned
        cooperative = max(assignor.supported_protocols) is RebalanceProtocol.COOPERATIVE
        user_data: bytes | None = None
        if assignor.name in ("sticky", "cooperative-sticky"):
            user_data = _NO_GENERATION_USER_DATA
            if self._generation_id >= 0:
                user_data = encode_sticky_user_data(owned, self._generation_id)
        return encode_subscription(
            Subscription(
                topics=self._subscription,
                user_data=user_data,
                owned_partitions=owned if cooperative else (),
                generation_id=self._generation_id,
                rack_id=self._config.client_rack or self._traits.rack_when_unset,
            )
        )

    def _on_join_group(self, response: Response | None, now_ms: int) -> None:
        """Handle JoinGroup. Source: franz-go 1.22, pkg/kgo/consumer_group.go, handleJoinResp."""
        if not isinstance(response, JoinGroupResponse):
            self._manage_failed(now_ms)
            return
        match response.error_code:
            case ErrorCode.NONE:
                self._joined(response, now_ms)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
                self._join(now_ms)
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = UNKNOWN_MEMBER_ID
                self._join(now_ms)
            case _:
                self._manage_failed(now_ms)

    def _joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        assignor = self._assignor(response.protocol_name)
        if assignor is None:
            self._manage_failed(now_ms)
            return
        self._member_id = response.member_id
        self._generation_id = response.generation_id
        self._cooperative = max(assignor.supported_protocols) is RebalanceProtocol.COOPERATIVE
        if response.leader == response.member_id:
            self._is_leader = True
            self._balance(response, now_ms)
        else:
            self._sync(response, (), now_ms)

    def _balance(self, response: JoinGroupResponse, now_ms: int) -> None:
        """Assign, after asking for metadata of topics that only others subscribe to."""
        try:
            members = members_of(response)
        except WireFormatError:
            self._manage_failed(now_ms)
            return
        topics = dict.fromkeys(t for member in members for t in member.subscription.topics)
        wanted = self._metadata.wanted_topics or ()
        if any(topic not in wanted for topic in topics):
            self._metadata.wanted_topics = tuple(sorted(dict.fromkeys((*wanted, *topics))))
            self._metadata.request_update_for_new_topics()
            self._waiting_plan = response
            return
        assignor = self._assignor(response.protocol_name)
        plan = None if assignor is None else self._plan(assignor, tuple(topics), members)
        if plan is None:
            self._manage_failed(now_ms)
        else:
            self._sync(response, plan, now_ms)

    def _plan(
        self,
        assignor: ConsumerAssignor,
        topics: tuple[str, ...],
        members: list[AssignorMember],
    ) -> tuple[SyncGroupRequestAssignment, ...] | None:
        """Return all assignments by member id, partitions ascending; None if it fails."""
        try:
            assigned = assignor.assign(self._topic_racks(topics), members)
        except AssignmentFailed:
            return None
        return tuple(
            SyncGroupRequestAssignment(
                member_id,
                encode_assignment(
                    ConsumerAssignment(partitions=tuple(sorted(assigned[member_id]))), version=0
                ),
            )
            for member_id in sorted(assigned)
        )

    # SyncGroup.

    def _sync(
        self, joined: JoinGroupResponse, plan: tuple[SyncGroupRequestAssignment, ...], now_ms: int
    ) -> None:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=() if joined.skip_assignment else plan,
        )
        stale = plan if joined.skip_assignment else ()
        self._ask(RequestKind.SYNC, request, lambda r, ms: self._on_sync(stale, r, ms), now_ms)

    def _on_sync(
        self, plan: tuple[SyncGroupRequestAssignment, ...], response: Response | None, now_ms: int
    ) -> None:
        """Adopt the assignment. A static leader that returned checks it against its own plan."""
        if not isinstance(response, SyncGroupResponse):
            self._manage_failed(now_ms)
            return
        if response.error_code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join(now_ms)
            return
        try:
            blob = response.assignment
            assigned = decode_assignment(blob).partitions if blob else ()
        except WireFormatError:
            self._manage_failed(now_ms)
            return
        if response.error_code is not ErrorCode.NONE:
            self._manage_failed(now_ms)
            return
        self._is_joining = False
        self._rejoin_is_owed = False
        self._now_assigned = tuple(sorted(assigned))
        mine = [entry for entry in plan if entry.member_id == self._member_id]
        if mine and sorted(decode_assignment(mine[0].assignment).partitions) != sorted(assigned):
            self._rejoin(_STALE_PLAN)
        self._begin_session(now_ms)
        self._send_queued_commits(now_ms)

    # Errors other than rebalances.

    def _manage_failed(self, now_ms: int) -> None:
        """Lose all partitions, tell the application, wait, and join again.

        Source: franz-go 1.22, pkg/kgo/consumer_group.go, manageFailWait.
        """
        self._is_joining = False
        self._is_leader = False
        if self._is_leaving:
            self._revoke_to_leave(now_ms)
            return
        lost = self._now_assigned
        self._stop_fetching(tuple(self._assigned))
        self._error_count += 1
        self._is_backing_off = True
        self._enqueue_callback(CallbackKind.PARTITIONS_LOST, lost, self._lost)

    def _lost(self, now_ms: int) -> None:
        self._give_up(self._now_assigned)
        self._uncommitted.clear()
        if self._is_leaving:
            self._leave(now_ms)
            return
        self._join_why = _AFTER_ERROR
        self._call_at(now_ms + self._backoff_ms(self._error_count), self._backed_off)

    def _backed_off(self, now_ms: int) -> None:
        if self._is_backing_off:
            self._is_backing_off = False
            self._join(now_ms)

    # Leaving.

    def _begin_close(self, now_ms: int) -> None:
        """Leave the group, after a join in flight or a running callback has ended.

        Source: franz-go 1.22, pkg/kgo/consumer_group.go, leave, manageFailWait.
        """
        self._is_leaving = True
        if not self._is_managing:
            self._finish_close()
        elif self._is_backing_off:
            if self._callback is None and not self._callbacks:
                self._is_backing_off = False
                self._leave(now_ms)
        elif self._session is not None:
            self._session.beats = False
            self._serve(now_ms)

    def _leave(self, now_ms: int) -> None:
        """Send LeaveGroup, unless the member is static and need not rejoin."""
        is_static = self._config.group_instance_id is not None
        if not self._member_id or (is_static and not self._rejoin_is_owed):
            self._finish_close()
            return
        leaver = MemberIdentity(
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
            reason=_LEAVING,
        )
        request = LeaveGroupRequest(group_id=self._group_id, members=(leaver,))
        self._ask(RequestKind.LEAVE, request, self._left, now_ms)

    def _left(self, response: Response | None, now_ms: int) -> None:
        del response, now_ms
        self._finish_close()
