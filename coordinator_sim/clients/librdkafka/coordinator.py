"""The main thread of a librdkafka consumer: its timers, the coordinator, the application's polls.

The thread wakes on answers, on the application's calls and on three timers: every second, every
500 ms once partitions were assigned (the check of `max.poll.interval.ms`), and for commits. So a
heartbeat, a join or a lookup that became due waits for the next of these.

Partitions that a librdkafka consumer owns: rebalance callbacks, and what follows them.

The application gets an assignment or a revocation and calls assign() or unassign(); the group
continues when commits and offset lookups have ended. The group machine is in the other modules of
this package.

Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_serve and what it calls; rdkafka.c,
rd_kafka_thread_main; rdinterval.h; librdkafka 2.15, rdkafka_assignment.c; rdkafka_cgrp.c,
rd_kafka_rebalance_op, rd_kafka_rebalance_op_incr, rd_kafka_cgrp_assignment_done.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Final, Unpack

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.librdkafka.offsets import LibrdkafkaOffsets
from coordinator_sim.clients.librdkafka.states import CoordinatorState, Interval, JoinState
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.clients.port_core import AppCall
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.context import UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_TICK_MS: Final = 1_000
_POLL_CHECK_MS: Final = 500
_QUERY_INTERVAL_MS: Final = 500
_TRANSPORT_QUERY_INTERVAL_MS: Final = 1_000
_RELAXED_QUERY_INTERVAL_MS: Final = 600_000
"""Value of `coordinator.query.interval.ms`."""
COORDINATOR_GONE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class LibrdkafkaCoordinator(LibrdkafkaOffsets):
    """The assignment; finds the coordinator and starts the work that is due."""

    __slots__ = (
        "_auto_commit_due_ms",
        "_chosen_assignor",
        "_group_assignment",
        "_heartbeat_interval",
        "_incremental_assignment",
        "_is_terminating",
        "_last_poll_ms",
        "_leaves_on_unassign_done",
        "_max_poll_exceeded",
        "_poll_check_due_ms",
        "_query_interval",
        "_rejoins_after_rebalance",
        "_session_deadline_ms",
        "_tick_due_ms",
        "_waits_for_leave",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        if len(dict.fromkeys(max(a.supported_protocols) for a in self._assignors)) > 1:
            names = ",".join(assignor.name for assignor in self._assignors)
            raise ConfigError(
                f"partition.assignment.strategy={names}: librdkafka wants assignors of one "
                "rebalance protocol; name cooperative-sticky alone, or none of it"
            )
        self._chosen_assignor: ConsumerAssignor | None = None
        self._group_assignment: tuple[TopicPartition, ...] | None = None
        self._incremental_assignment: tuple[TopicPartition, ...] | None = None
        self._rejoins_after_rebalance = False
        self._leaves_on_unassign_done = False
        self._waits_for_leave = False
        self._is_terminating = False
        self._auto_commit_due_ms = FOREVER
        self._heartbeat_interval = Interval()
        self._last_poll_ms = 0
        self._max_poll_exceeded = False
        self._poll_check_due_ms = FOREVER
        self._query_interval = Interval()
        self._session_deadline_ms: int | None = None
        self._tick_due_ms = FOREVER

    @property
    def join_state(self) -> JoinState:
        """State of the member in its join."""
        return self._join_state

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every partition; empty while an unserved callback pauses them all."""
        return {} if self._waits_for_assign_call() else super().positions

    def _is_cooperative(self) -> bool:
        """Whether the group has chosen an assignor of the cooperative protocol."""
        chosen = self._chosen_assignor
        return (
            chosen is not None and max(chosen.supported_protocols) is RebalanceProtocol.COOPERATIVE
        )

    def _waits_for_assign_call(self) -> bool:
        return self._join_state in (JoinState.WAIT_ASSIGN_CALL, JoinState.WAIT_UNASSIGN_CALL)

    def _is_rebalancing(self) -> bool:
        """Whether a rebalance is going on. Source: rdkafka_cgrp.c, RD_KAFKA_CGRP_REBALANCING."""
        state = self._join_state
        if state in (JoinState.WAIT_JOIN, JoinState.WAIT_METADATA):
            return bool(self._member_id)
        return (
            state not in (JoinState.INIT, JoinState.STEADY)
            or self._incremental_assignment is not None
            or self._rejoins_after_rebalance
        )

    # Callbacks into the application.

    def _rebalance(self, kind: CallbackKind, partitions: Sequence[TopicPartition]) -> None:
        """Delegate a whole assignment, or the revocation of all partitions, to the application.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_rebalance_op.
        """
        assigns = kind is CallbackKind.PARTITIONS_ASSIGNED
        self._group_assignment = tuple(sorted(partitions)) if assigns else None
        if self._fatal_error is not None:
            self._forget_assignment()
            return
        self._delegate(kind, partitions, whole=True, joined=JoinState.WAIT_UNASSIGN_TO_COMPLETE)

    def _rebalance_incrementally(
        self, kind: CallbackKind, partitions: Sequence[TopicPartition], *, rejoin: bool
    ) -> None:
        """Delegate added or removed partitions to the application.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_rebalance_op_incr.
        """
        self._rejoins_after_rebalance = rejoin
        owned = self._group_assignment or ()
        if kind is CallbackKind.PARTITIONS_ASSIGNED:
            self._group_assignment = tuple(sorted((*owned, *partitions)))
        else:
            self._group_assignment = tuple(tp for tp in owned if tp not in partitions) or None
        if self._fatal_error is not None:
            self._forget_assignment()
            return
        self._delegate(
            kind, partitions, whole=False, joined=JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE
        )

    def _forget_assignment(self) -> None:
        self._assigned.clear()
        self._pending = self._queried = ()

    def _adopt_incrementally(self, assigned: Sequence[TopicPartition]) -> None:
        """Revoke removed partitions, and only then assign new ones.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_handle_assignment_cooperative.
        """
        owned = self._group_assignment or ()
        added = tuple(tp for tp in assigned if tp not in owned)
        revoked = tuple(tp for tp in owned if tp not in assigned)
        if revoked:
            self._incremental_assignment = added
            self._rebalance_incrementally(CallbackKind.PARTITIONS_REVOKED, revoked, rejoin=False)
        else:
            self._rebalance_incrementally(CallbackKind.PARTITIONS_ASSIGNED, added, rejoin=False)

    def _delegate(
        self,
        kind: CallbackKind,
        partitions: Sequence[TopicPartition],
        *,
        whole: bool,
        joined: JoinState,
    ) -> None:
        given = tuple(partitions)
        if kind is CallbackKind.PARTITIONS_ASSIGNED:
            self._join_state = JoinState.WAIT_ASSIGN_CALL
            self._enqueue_callback(kind, given, partial(self._assign_called, given, whole=whole))
            return
        self._join_state = JoinState.WAIT_UNASSIGN_CALL
        if self._assignment_lost:
            kind = CallbackKind.PARTITIONS_LOST
        taken = None if whole else given
        self._enqueue_callback(kind, given, partial(self._unassign_called, taken, joined))

    def _assign_called(
        self, partitions: tuple[TopicPartition, ...], now_ms: int, *, whole: bool
    ) -> None:
        """Handle the application's assign(); for a client that ends, it means unassign().

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_handle_assign_op.
        """
        if self._is_terminating or self._fatal_error is not None:
            self._incremental_assignment = None
            self._join_state = JoinState.WAIT_UNASSIGN_CALL
            self._unassign_called(None, JoinState.WAIT_UNASSIGN_TO_COMPLETE, now_ms)
            return
        if whole:
            self._assigned.clear()
        self._assigned.update((tp, None) for tp in partitions)
        self._pending = (*self._pending, *partitions)
        self._assignment_lost = False
        if self._join_state is JoinState.WAIT_ASSIGN_CALL:
            self._join_state = JoinState.STEADY
            self._watch_polls(now_ms)
        self._serve_assignment(now_ms)

    def _unassign_called(
        self, partitions: tuple[TopicPartition, ...] | None, joined: JoinState, now_ms: int
    ) -> None:
        """Handle the application's unassign(); None means all partitions."""
        removed = tuple(self._assigned) if partitions is None else partitions
        lost, self._assignment_lost = self._assignment_lost, False
        if self._join_state is JoinState.WAIT_UNASSIGN_CALL:
            self._join_state = joined
        self._remove(removed, now_ms, lost=lost)
        self._serve_assignment(now_ms)

    def _remove(
        self, partitions: Sequence[TopicPartition], now_ms: int, *, lost: bool = False
    ) -> None:
        """Stop partitions; their consumed offsets are committed unless they are lost.

        Source: librdkafka 2.15, rdkafka_assignment.c, rd_kafka_assignment_serve_removals.
        """
        self._pending = tuple(tp for tp in self._pending if tp not in partitions)
        self._queried = tuple(tp for tp in self._queried if tp not in partitions)
        final = {tp: self._stored.pop(tp) for tp in sorted(partitions) if tp in self._stored}
        for tp in partitions:
            self._assigned.pop(tp, None)
        if self._config.enable_auto_commit and final and not lost:
            self._commit(final, now_ms)

    # The turn of the assignment.

    def _serve_assignment(self, now_ms: int) -> None:
        """Look up offsets of new partitions; tell the group when no work is in progress.

        Source: librdkafka 2.15, rdkafka_assignment.c, rd_kafka_assignment_serve.
        """
        if self._waiting_commit_count == 0 and self._pending and not self._queried:
            if self._coordinator_state is not CoordinatorState.UP:
                return
            self._queried, self._pending = tuple(sorted(self._pending)), ()
            self._send_offset_fetch(now_ms)
        if not (self._waiting_commit_count or self._pending or self._queried):
            self._assignment_done(now_ms)

    def _is_assignment_in_progress(self) -> bool:
        return bool(self._waiting_commit_count or self._pending or self._queried)

    def _assignment_done(self, now_ms: int) -> None:
        """Continue after an assignment. Source: rdkafka_cgrp.c, rd_kafka_cgrp_assignment_done."""
        match self._join_state:
            case JoinState.WAIT_UNASSIGN_TO_COMPLETE:
                self._maybe_leave(now_ms)
                self._rejoin(now_ms, at_once=True)
            case JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE:
                self._incremental_unassign_done(now_ms)
            case JoinState.STEADY if self._rejoins_after_rebalance:
                self._rejoins_after_rebalance = False
                self._rejoin(now_ms, at_once=True)
            case _:
                pass

    def _incremental_unassign_done(self, now_ms: int) -> None:
        """Continue the revocation. Source: rdkafka_cgrp.c, rd_kafka_cgrp_incr_unassign_done."""
        added = self._incremental_assignment
        if self._is_terminating:
            self._remove(tuple(self._assigned), now_ms)
            self._join_state = JoinState.WAIT_UNASSIGN_TO_COMPLETE
            self._serve_assignment(now_ms)
        elif added is not None:
            self._incremental_assignment = None
            self._rebalance_incrementally(CallbackKind.PARTITIONS_ASSIGNED, added, rejoin=True)
        else:
            self._rejoins_after_rebalance = False
            self._rejoin(now_ms, at_once=True)

    def _maybe_revoke_all(self, now_ms: int, *, lost: bool) -> None:
        """Revoke all partitions unless a rebalance is going on.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_revoke_all_rejoin_maybe.
        """
        if not self._is_rebalancing():
            self._revoke_all(now_ms, lost=lost)

    def _is_terminated(self) -> bool:
        """Whether closing is over. Source: rdkafka_cgrp.c, rd_kafka_cgrp_try_terminate."""
        return (
            self._is_terminating
            and not self._waits_for_assign_call()
            and not self._is_assignment_in_progress()
            and not self._waits_for_leave
        )

    # What the group machine provides.

    @abstractmethod
    def _revoke_all(self, now_ms: int, *, lost: bool) -> None: ...

    @abstractmethod
    def _rejoin(self, now_ms: int, *, at_once: bool = False) -> None: ...

    @abstractmethod
    def _maybe_leave(self, now_ms: int) -> bool: ...

    # The main thread's timers.

    def _on_start(self, now_ms: int) -> None:
        self._tick_due_ms = now_ms + _TICK_MS
        if self._config.enable_auto_commit and self._config.auto_commit_interval_ms > 0:
            self._auto_commit_due_ms = now_ms + self._config.auto_commit_interval_ms
        self._serve(now_ms)

    def _next_wake_ms(self) -> int:
        broker_thread_ms = min(self._reconnect_due_ms(), self._commit_retry_due_ms())
        return min(self._thread_due_ms(), broker_thread_ms)

    def _thread_due_ms(self) -> int:
        return min(self._tick_due_ms, self._poll_check_due_ms, self._auto_commit_due_ms)

    def _reconnect_due_ms(self) -> int:
        """Return when the coordinator's own thread reconnects; the main thread sleeps on.

        While the coordinator is looked for, and no broker can be asked, any of them is tried.
        """
        due_ms = FOREVER
        if self._coordinator_id is not None:
            due_ms = self._net.retry_at_ms(self._coordinator_node_id)
        for node_id in self._nodes_to_connect():
            due_ms = min(due_ms, self._net.retry_at_ms(node_id))
        return due_ms

    def _nodes_to_connect(self) -> list[int]:
        """Return the brokers of which one is needed, and none is connected."""
        nodes = [node.node_id for node in self._metadata.nodes]
        is_asking = self._coordinator_state is CoordinatorState.QUERY_COORD
        return nodes if is_asking and not any(map(self._net.is_ready, nodes)) else []

    def _fire_due(self, now_ms: int) -> bool:
        """Serve the group on each wake-up of the thread, then run the timers that are due."""
        if now_ms >= self._commit_retry_due_ms():
            self._retry_due_commits(now_ms)
        if now_ms >= self._reconnect_due_ms():
            if self._coordinator_id is not None:
                self._net.try_connect(self._coordinator_node_id, now_ms)
            for node_id in self._nodes_to_connect():
                self._net.try_connect(node_id, now_ms)
        if not self._has_started or now_ms < self._thread_due_ms():
            return False
        self._thread_woken(now_ms)
        self._serve(now_ms)
        if now_ms >= self._tick_due_ms:
            self._tick_due_ms = now_ms + _TICK_MS
        if now_ms >= self._poll_check_due_ms:
            self._poll_check_due_ms = now_ms + _POLL_CHECK_MS
            self._check_polls(now_ms)
        if now_ms >= self._auto_commit_due_ms:
            self._auto_commit_due_ms = now_ms + self._config.auto_commit_interval_ms
            if self._subscription:
                self._commit_by_interval(now_ms)
        return True

    def _watch_polls(self, now_ms: int) -> None:
        self._poll_check_due_ms = now_ms + _POLL_CHECK_MS

    # max.poll.interval.ms

    def _on_poll(self, now_ms: int) -> None:
        del now_ms

    def _on_poll_ended(self, now_ms: int) -> None:
        self._last_poll_ms = now_ms

    def _is_poll_overdue(self, now_ms: int) -> bool:
        polls = self._call is not AppCall.NONE
        return not polls and now_ms - self._last_poll_ms > self._config.rebalance_timeout_ms

    def _check_polls(self, now_ms: int) -> None:
        """Leave when the application stops polling; its next poll reports the error.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_max_poll_interval_check_tmr_cb.
        """
        if not self._is_poll_overdue(now_ms):
            return
        self._max_poll_exceeded = True
        self._poll_check_due_ms = FOREVER
        self._polls_stopped(now_ms)

    # One turn of the thread.

    def _serve(self, now_ms: int) -> None:
        """Serve the group. Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_serve."""
        connected = self._keep_coordinator_connected(now_ms)
        if not connected and self._coordinator_state is CoordinatorState.UP:
            self._coordinator_state = CoordinatorState.QUERY_COORD
        if self._is_terminated():
            self._finish_close()
            return
        if self._join_state is JoinState.STEADY:
            self._check_session(now_ms)
        match self._coordinator_state:
            case CoordinatorState.QUERY_COORD:
                self._maybe_query(now_ms, _QUERY_INTERVAL_MS)
            case CoordinatorState.WAIT_COORD:
                pass
            case CoordinatorState.WAIT_BROKER_TRANSPORT if not connected:
                self._maybe_query(now_ms, _TRANSPORT_QUERY_INTERVAL_MS)
            case CoordinatorState.WAIT_BROKER_TRANSPORT:
                self._coordinator_state = CoordinatorState.UP
                self._serve_join_state(now_ms)
                self._serve_assignment(now_ms)
            case CoordinatorState.UP:
                self._serve_up(now_ms)

    def _serve_up(self, now_ms: int) -> None:
        self._send_deferred_commits(now_ms)
        self._maybe_query(now_ms, _RELAXED_QUERY_INTERVAL_MS)
        self._serve_join_state(now_ms)
        if self._pending:
            self._serve_assignment(now_ms)

    def _check_session(self, now_ms: int) -> None:
        """Check the session. Source: rdkafka_cgrp.c, rd_kafka_cgrp_session_timeout_check."""
        deadline_ms = self._session_deadline_ms
        if deadline_ms is None or now_ms < deadline_ms:
            return
        self._session_deadline_ms = None
        self._member_id = UNKNOWN_MEMBER_ID
        self._maybe_revoke_all(now_ms, lost=True)

    # The coordinator.

    def _keep_coordinator_connected(self, now_ms: int) -> bool:
        """Reconnect to a known coordinator; return whether the connection is open."""
        if self._coordinator_id is None:
            return False
        if self._net.is_ready(self._coordinator_node_id):
            return True
        self._net.try_connect(self._coordinator_node_id, now_ms)
        return False

    def _maybe_query(self, now_ms: int, interval_ms: int) -> None:
        if self._query_interval.passes(now_ms, interval_ms):
            self._query_coordinator(now_ms)

    def _query_coordinator(self, now_ms: int) -> None:
        """Query the coordinator, as soon as a broker is connected.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_coord_query.
        """
        node_id = self._net.least_loaded(self._metadata.nodes, now_ms)
        if node_id is None or not self._net.is_ready(node_id):
            self._query_interval.reset()
            if node_id is not None:
                self._net.try_connect(node_id, now_ms)
            return
        request = FindCoordinatorRequest(coordinator_keys=(self._group_id,))
        self._request(RequestKind.LOOKUP, node_id, request, now_ms)
        if self._coordinator_state is CoordinatorState.QUERY_COORD:
            self._coordinator_state = CoordinatorState.WAIT_COORD
        self._query_interval.last_ms = now_ms
        self._query_interval.backoff_ms = 0

    def _on_find_coordinator(self, response: FindCoordinatorResponse, now_ms: int) -> None:
        answer = response.coordinators[0]
        if answer.error_code is ErrorCode.NONE:
            self._update_coordinator(answer.node_id, now_ms)
        elif answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._update_coordinator(None, now_ms)
        else:
            self._coordinator_state = CoordinatorState.QUERY_COORD

    def _query_failed(self) -> None:
        if self._coordinator_state is CoordinatorState.WAIT_COORD:
            self._coordinator_state = CoordinatorState.QUERY_COORD

    def _update_coordinator(self, coordinator_id: int | None, now_ms: int) -> None:
        """Set the coordinator. Source: rdkafka_cgrp.c, rd_kafka_cgrp_coord_update."""
        if coordinator_id != self._coordinator_id:
            if self._coordinator_id is not None:
                self._net.disconnect(self._coordinator_node_id, now_ms)
            self._coordinator_id = coordinator_id
            if coordinator_id is not None:
                # A new coordinator is queried once more, to be sure of it.
                self._query_interval.reset()
            self._coordinator_changed(now_ms)
        if coordinator_id is None:
            self._coordinator_state = CoordinatorState.QUERY_COORD
        elif self._coordinator_state is not CoordinatorState.UP:
            self._coordinator_state = CoordinatorState.WAIT_BROKER_TRANSPORT

    def _coordinator_dead(self, now_ms: int) -> None:
        """Forget the coordinator and look for it.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_coord_dead.
        """
        self._update_coordinator(None, now_ms)
        self._coordinator_state = CoordinatorState.QUERY_COORD
        self._query_coordinator(now_ms)

    def _thread_woken(self, now_ms: int) -> None:
        """Handle the beginning of a turn of the main thread that a timer began."""

    def _coordinator_changed(self, now_ms: int) -> None:
        """React to a changed or lost coordinator; members of classic groups do nothing."""

    # What the parts above provide.

    @abstractmethod
    def _serve_join_state(self, now_ms: int) -> None: ...

    @abstractmethod
    def _polls_stopped(self, now_ms: int) -> None: ...
