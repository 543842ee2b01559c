"""A group session of franz-go: from the answer to SyncGroup to the next JoinGroup.

Revoking, assigning, looking up offsets and heartbeats overlap as the goroutines of
setupAssignedAndHeartbeat do. Heartbeats go on while the application's revocation runs. A session
that ends otherwise than by a rebalance loses all partitions.

Source: franz-go 1.22, pkg/kgo/consumer_group.go, setupAssignedAndHeartbeat, heartbeat, revoke,
assignRevokeSession, diffAssigned.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Final, Unpack

from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.franz_go.offsets import FranzGoOffsets
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.requests import Response

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


class FranzGoSession(FranzGoOffsets):
    """Runs sessions; the layers above begin them and continue after them."""

    __slots__ = (
        "_cooperative",
        "_is_leaving",
        "_last_assigned",
        "_now_assigned",
        "_rejoin_is_owed",
        "_rejoin_why",
        "_session",
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

    # What the parts above provide.

    @abstractmethod
    def _join_anew(self, why: str, now_ms: int) -> None: ...

    @abstractmethod
    def _manage_failed(self, now_ms: int) -> None: ...

    @abstractmethod
    def _leave(self, now_ms: int) -> None: ...
