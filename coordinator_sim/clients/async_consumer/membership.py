"""The membership of a group with epochs: joining, being fenced, leaving, failing for good.

Consumers and share consumers have this in common.

Source: kafka 4.4, clients/.../consumer/internals/AbstractMembershipManager.java.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, Unpack

from coordinator_sim.clients.async_consumer import states
from coordinator_sim.clients.async_consumer.discovery import AsyncDiscovery
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, RunCallback, StreamsTasks
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
_LEAVES: Final = (states.MemberState.PREPARE_LEAVING, states.MemberState.LEAVING)


class AppEvent(NamedTuple):
    """A message from the network thread to the application's, handled within its next calls.

    Args:
        error: Exception to raise; then there is no callback.
        kind: Callback to run.
        partitions: Partitions that the callback is given.
        assignment: All partitions to own from now on; None where the callback assigns nothing.
        outcome: Its end.
        streams: Tasks of a stream thread; None for consumers.
    """

    outcome: Promise
    error: str | None = None
    kind: CallbackKind = CallbackKind.PARTITIONS_ASSIGNED
    partitions: tuple[TopicPartition, ...] = ()
    assignment: tuple[TopicPartition, ...] | None = None
    streams: StreamsTasks | None = None


class AsyncMembership(AsyncDiscovery):
    """The member's state, and the steps that leave the group or come back to it."""

    __slots__ = (
        "_app_events",
        "_current",
        "_is_poll_overdue",
        "_is_reconciling",
        "_leave_outcome",
        "_member_state",
        "_regex",
        "_rejoined_meanwhile",
        "_stale_release",
        "_subscription_updated",
        "_target",
        "_told_lost",
        "_topic_names",
    )

    def __init__(
        self, config: ConsumerConfig, *, member_id: str, **setup: Unpack[ConsumerSetup]
    ) -> None:
        super().__init__(config, **setup)
        self._member_id = member_id
        self._generation_id = JOIN_EPOCH
        self._regex: str | None = None
        self._app_events: deque[AppEvent] = deque()
        self._current: states.LocalAssignment = states.NO_ASSIGNMENT
        self._target: states.LocalAssignment = states.NO_ASSIGNMENT
        self._told_lost: dict[TopicPartition, None] = {}
        self._topic_names: dict[bytes, str] = {}
        self._member_state = states.MemberState.UNSUBSCRIBED
        self._is_poll_overdue = False
        self._is_reconciling = False
        self._rejoined_meanwhile = False
        self._leave_outcome: Promise | None = None
        self._subscription_updated = bool(self._subscription)
        self._stale_release = kept()

    @property
    def state(self) -> states.MemberState:
        """State of the member."""
        return self._member_state

    # States and epochs.

    def _transition(self, state: states.MemberState) -> None:
        """Change the state.

        Raises:
            InvariantViolation: the state does not follow the present one.
        """
        before = self._member_state
        if state is not before and before not in states.PREVIOUS[state]:
            raise InvariantViolation(
                f"member {self._member_id}: {state.value} after {before.value}"
            )
        self._member_state = state

    def _is_leaving(self) -> bool:
        return self._member_state in _LEAVES

    def _take_epoch(self, epoch: int) -> None:
        """Adopt an epoch; commits name the member only by a positive one (updateMemberEpoch)."""
        if epoch != self._generation_id:
            self._generation_id = epoch
            self._note_epoch(epoch if epoch > 0 else None)

    # Joining.

    def _on_consumer_poll(self) -> None:
        """Join after the application subscribed and polled (onConsumerPoll)."""
        updated, self._subscription_updated = self._subscription_updated, False
        if updated and self._member_state is states.MemberState.UNSUBSCRIBED:
            self._join()

    def _join(self) -> None:
        """Join with the next heartbeat (transitionToJoining)."""
        if self._member_state is states.MemberState.FATAL:
            return
        if self._is_reconciling:
            self._rejoined_meanwhile = True
        self._take_epoch(JOIN_EPOCH)
        self._transition(states.MemberState.JOINING)
        self._forget_target()

    def _forget_target(self) -> None:
        self._target = states.NO_ASSIGNMENT
        self._topic_names.clear()

    def _clear_assignment(self) -> None:
        self._assigned = {}
        self._current = states.NO_ASSIGNMENT
        self._forget_target()

    # Losing the membership.

    def _fence(self, now_ms: int) -> None:
        """Release everything as lost, then join again from epoch 0 (transitionToFenced)."""
        match self._member_state:
            case states.MemberState.PREPARE_LEAVING:
                self._begin_to_leave(is_poll_overdue=False)
                self._transition(states.MemberState.UNSUBSCRIBED)
                self._left(now_ms)
            case states.MemberState.LEAVING:
                self._transition(states.MemberState.UNSUBSCRIBED)
                self._left(now_ms)
            case states.MemberState.UNSUBSCRIBED:
                pass
            case _:
                self._transition(states.MemberState.FENCED)
                self._take_epoch(JOIN_EPOCH)
                self._lose_all(now_ms).then(self._fenced_released, now_ms)

    def _fenced_released(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._drop_all()
        if self._member_state is states.MemberState.FENCED:
            self._join()

    def _fail_for_good(self, error: str, now_ms: int) -> None:
        """Tell the application of an error that ends the membership (transitionToFatal)."""
        self._app_events.append(AppEvent(Promise(), error))
        before = self._member_state
        self._transition(states.MemberState.FATAL)
        self._note_epoch(None)
        if before is states.MemberState.UNSUBSCRIBED and self._left(now_ms):
            return
        if before in _LEAVES:
            self._left(now_ms)
            return
        self._lose_all(now_ms).then(self._fatal_released, now_ms)

    def _fatal_released(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._drop_all()

    def _drop_all(self) -> None:
        """Own nothing any more.

        QUIRK: what the application took over after its loss of all was on the way, from an
        assignment that was on the way before, is dropped without a callback. The driver is told.
        """
        dropped = tuple(sorted(tp for tp in self._assigned if tp not in self._told_lost))
        if dropped:
            kind = CallbackKind.PARTITIONS_LOST
            self._out.append(RunCallback(token=NOTIFICATION_TOKEN, kind=kind, partitions=dropped))
        self._clear_assignment()

    def _become_stale(self, now_ms: int) -> None:
        """Release everything as lost, and stay out until the next poll (transitionToStale)."""
        self._transition(states.MemberState.STALE)
        self._stale_release = self._lose_all(now_ms)
        self._stale_release.then(self._fatal_released, now_ms)

    def _maybe_rejoin_stale(self, now_ms: int) -> None:
        """Join again, once the partitions are released (maybeRejoinStaleMember)."""
        self._is_poll_overdue = False
        if self._member_state is states.MemberState.STALE:
            self._stale_release.then(self._stale_released, now_ms)

    def _stale_released(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._join()

    def _lose_all(self, now_ms: int) -> Promise:
        """Have the application told that all partitions are lost (signalPartitionsLost)."""
        self._mark_pending_revocation(self._assigned)
        self._told_lost = dict.fromkeys(self._assigned)
        return self._call_back(CallbackKind.PARTITIONS_LOST, self._assigned, now_ms)

    # Leaving.

    def _leave_group(self, now_ms: int, *, runs_callbacks: bool) -> Promise:
        """Leave; the promise is kept when the coordinator has answered (leaveGroup)."""
        if self._member_state in states.OUT_OF_GROUP:
            if self._member_state is states.MemberState.FENCED:
                self._clear_assignment()
                self._transition(states.MemberState.UNSUBSCRIBED)
            self._unsubscribe()
            return kept()
        if self._leave_outcome is not None:
            return self._leave_outcome
        self._transition(states.MemberState.PREPARE_LEAVING)
        outcome = self._leave_outcome = Promise()
        if runs_callbacks:
            self._release_to_leave(now_ms).then(self._released_to_leave, now_ms)
        else:
            self._released_to_leave(None, now_ms)
        return outcome

    def _release_to_leave(self, now_ms: int) -> Promise:
        """Have the application give everything up (signalMemberLeavingGroup)."""
        kind = CallbackKind.PARTITIONS_LOST
        if self._generation_id > 0:
            kind = CallbackKind.PARTITIONS_REVOKED
            self._mark_pending_revocation(self._assigned)
        return self._call_back(kind, self._assigned, now_ms)

    def _released_to_leave(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._unsubscribe()
        self._clear_assignment()
        self._begin_to_leave(is_poll_overdue=False)

    def _begin_to_leave(self, *, is_poll_overdue: bool) -> None:
        """Leave with the next heartbeat (transitionToSendingLeaveGroup)."""
        if self._member_state in (states.MemberState.FATAL, states.MemberState.UNSUBSCRIBED):
            return
        if is_poll_overdue:
            self._is_poll_overdue = True
            self._transition(states.MemberState.PREPARE_LEAVING)
        is_static = self._config.group_instance_id is not None
        self._take_epoch(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH)
        self._current = states.NO_ASSIGNMENT
        self._transition(states.MemberState.LEAVING)

    def _left(self, now_ms: int) -> bool:
        """End the leave in progress, if there is one (maybeCompleteLeaveInProgress)."""
        outcome, self._leave_outcome = self._leave_outcome, None
        if outcome is None:
            return False
        outcome.complete(now_ms)
        return True

    def _unsubscribe(self) -> None:
        """Give up subscription and partitions (SubscriptionState.unsubscribe)."""
        self._subscription = ()
        self._regex = None
        self._metadata.wanted_topics = ()
        self._assigned = {}

    # What only some members do.

    def _note_epoch(self, epoch: int | None) -> None:
        """Take a changed epoch; None outside the group (onMemberEpochUpdated)."""

    def _mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no more from partitions that are about to be given up."""

    def _call_back(
        self, kind: CallbackKind, partitions: Iterable[TopicPartition], now_ms: int
    ) -> Promise:
        """Have the application run a callback, if it has any; by default it has none."""
        del kind, partitions, now_ms
        return kept()
