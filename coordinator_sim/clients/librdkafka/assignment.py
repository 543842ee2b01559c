"""Partitions that a librdkafka consumer owns: rebalance callbacks, and what follows them.

The application gets an assignment or a revocation and calls assign() or unassign(); the group
continues when commits and offset lookups have ended. The group machine is in the other modules of
this package.

Source: librdkafka 2.15, rdkafka_assignment.c; rdkafka_cgrp.c, rd_kafka_rebalance_op,
rd_kafka_rebalance_op_incr, rd_kafka_cgrp_assignment_done.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Unpack

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.librdkafka.offsets import LibrdkafkaOffsets
from coordinator_sim.clients.librdkafka.states import CoordinatorState, JoinState
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition


class LibrdkafkaAssignment(LibrdkafkaOffsets):
    """The assignment of a librdkafka consumer."""

    __slots__ = (
        "_chosen_assignor",
        "_group_assignment",
        "_incremental_assignment",
        "_is_terminating",
        "_leaves_on_unassign_done",
        "_rejoins_after_rebalance",
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

    @abstractmethod
    def _watch_polls(self, now_ms: int) -> None: ...
