"""A librdkafka consumer of the consumer protocol: rejoining, leaving, subscribing, closing.

The member names itself, and keeps that id until the client closes. Partitions are given up and
taken over by callbacks of the application, as in a cooperative classic group, and the coordinator
is told when both are over.

Source: librdkafka 2.15, rdkafka_cgrp.c.
"""

from collections.abc import Sequence
from typing import ClassVar, Unpack

from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.client_traits import LIBRDKAFKA_CONSUMER, ClientTraits
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, Effects
from coordinator_sim.clients.librdkafka.heartbeats import LibrdkafkaHeartbeats
from coordinator_sim.clients.librdkafka.offsets import Commit
from coordinator_sim.clients.librdkafka.states import JoinState
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.requests import Response


class LibrdkafkaNewConsumer(LibrdkafkaHeartbeats):
    """The model of a librdkafka consumer of the consumer protocol.

    Args:
        config: Timeouts and switches.
        setup: See `MemberSetup`; `assignors` are of no use here, and empty. A topic that begins
            with `^` is an expression, which the coordinator resolves.
    """

    TRAITS: ClassVar[ClientTraits] = LIBRDKAFKA_CONSUMER

    __slots__ = ("_down_nodes", "_has_next_subscription")

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._has_next_subscription = False
        self._down_nodes: dict[int, None] = {}
        # The names of topics come with targets.
        self._metadata.wanted_topics = ()

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Drop an answer to no request; requests are found by their ids, in any order.

        Source: librdkafka 2.15, rdkafka_broker.c, rd_kafka_req_response, rd_kafka_waitresp_find.
        """
        del node_id, now_ms
        return ()

    # Brokers.

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """Send what waited for this connection; no broker counts as lost any more."""
        if node_id in self._node_ids():
            self._down_nodes.clear()
        return super().on_connected(node_id, now_ms)

    def _on_link_broken(self, node_id: int, now_ms: int) -> None:
        """Forget the coordinator when every broker is gone: the client begins with the first ones.

        Seen with 2.16.0: the heartbeat after that does not wait for its interval.

        Source: librdkafka 2.15, rdkafka_broker.c, rd_kafka_broker_set_state,
        rd_kafka_broker_decommission; rdkafka.c, rd_kafka_rebootstrap.
        """
        nodes = self._node_ids()
        if node_id not in nodes or node_id in self._down_nodes:
            return
        self._down_nodes[node_id] = None
        if all(each in self._down_nodes for each in nodes):
            self._update_coordinator(None, now_ms)

    def _node_ids(self) -> list[int]:
        return [node.node_id for node in self._metadata.nodes]

    # Subscribing.

    def subscribe(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Replace the subscription; no topic at all is to unsubscribe, and to leave."""
        self._topics_in_order = tuple(dict.fromkeys(topics))
        return super().subscribe(topics, now_ms)

    def _on_start(self, now_ms: int) -> None:
        self._wants_subscription_sent = bool(self._subscription)
        super()._on_start(now_ms)

    def _on_subscription_changed(self, now_ms: int) -> None:
        """Tell another subscription at once, but after a leave that is going on.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_subscribe.
        """
        self._refresh_own_topics()
        if not self._subscription:
            self._unsubscribe(now_ms)
            return
        self._has_next_subscription = True
        if not self._will_leave():
            self._apply_next_subscription(now_ms)

    def _apply_next_subscription(self, now_ms: int) -> None:
        """Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_apply_next_subscribe."""
        if self._has_next_subscription:
            self._has_next_subscription = False
            self._wants_subscription_sent = True
            self._expedite_heartbeat(now_ms)

    def _unsubscribe(self, now_ms: int) -> None:
        """Leave once everything is given up, if the member has joined.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_unsubscribe.
        """
        self._poll_check_due_ms = FOREVER
        self._subscription = ()
        self._has_next_subscription = False
        joins_anew = self._wants_rejoin or self._is_rejoining
        if self._generation_id > 0 and not joins_anew and not self._will_leave():
            self._leaves_on_unassign_done = True
            self._revoke_all(now_ms, lost=False)

    # Rejoining and leaving.

    def _rejoin(self, now_ms: int, *, at_once: bool = False) -> None:
        """Join anew. Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_rejoin."""
        del at_once  # No interval between joins delays it.
        self._maybe_leave(now_ms)
        self._reset_membership()
        self._join_state = JoinState.INIT
        self._expedite_heartbeat(now_ms)

    def _revoke_all(self, now_ms: int, *, lost: bool) -> None:
        """Revoke all partitions. Source: rdkafka_cgrp.c, rd_kafka_cgrp_revoke_all_rejoin."""
        owned = self._group_assignment
        if owned:
            self._assignment_lost = self._assignment_lost or lost
            self._rebalance_incrementally(
                CallbackKind.PARTITIONS_REVOKED, owned, rejoin=not self._is_terminating
            )
        elif not self._is_terminating:
            self._rejoin(now_ms)

    def _maybe_leave(self, now_ms: int) -> bool:
        """Leave if asked to. Source: rdkafka_cgrp.c, rd_kafka_cgrp_leave_maybe."""
        leaves, self._leaves_on_unassign_done = self._leaves_on_unassign_done, False
        if leaves:
            self._leave(now_ms)
        return leaves

    def _polls_stopped(self, now_ms: int) -> None:
        """Request a rejoin, and leave the group once its partitions are unassigned as lost."""
        self._wants_rejoin = True
        self._leaves_on_unassign_done = True
        self._expedite_heartbeat(now_ms)

    # After callbacks.

    def _unassign_called(
        self, partitions: tuple[TopicPartition, ...] | None, joined: JoinState, now_ms: int
    ) -> None:
        """Handle the application's call; for a client that ends, it means all partitions.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_handle_assign_op.
        """
        if self._is_terminating or self._fatal_error is not None:
            self._incremental_assignment = None
            partitions, joined = None, JoinState.WAIT_UNASSIGN_TO_COMPLETE
        super()._unassign_called(partitions, joined, now_ms)

    def _assignment_done(self, now_ms: int) -> None:
        """Continue when nothing of an assignment is under way.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_assignment_done.
        """
        match self._join_state:
            case JoinState.WAIT_UNASSIGN_TO_COMPLETE:
                self._maybe_leave(now_ms)
                self._rejoin(now_ms)
            case JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE:
                self._revocation_done(now_ms)
            case JoinState.INIT | JoinState.STEADY:
                if not self._maybe_leave(now_ms) and not self._is_terminated():
                    self._settle_assignment(now_ms)
            case _:
                pass

    def _revocation_done(self, now_ms: int) -> None:
        """Take over what follows, or join anew.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_incr_unassign_done.
        """
        added = self._incremental_assignment
        if self._is_terminating:
            self._remove(tuple(self._assigned), now_ms)
            self._maybe_leave(now_ms)
        elif added is not None:
            self._incremental_assignment = None
            self._rebalance_incrementally(CallbackKind.PARTITIONS_ASSIGNED, added, rejoin=False)
        else:
            self._rejoins_after_rebalance = False
            self._rejoin(now_ms)

    def _settle_assignment(self, now_ms: int) -> None:
        if self._join_state is JoinState.INIT:
            self._expedite_heartbeat(now_ms)
        elif self._rejoins_after_rebalance:
            self._rejoins_after_rebalance = False
            self._rejoin(now_ms)
        elif self._waits_for_ack:
            self._expedite_heartbeat(now_ms)

    # Commits.

    def _tries_again(self, commit: Commit, error: ErrorCode, now_ms: int) -> bool:
        """Handle the error of a commit; only one of the application ends for a stale epoch.

        A commit of the client's own is repeated until a heartbeat has brought the epoch. It is not
        given up after `session.timeout.ms`, as librdkafka does: by then the member is fenced.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_op_handle_OffsetCommit.
        """
        match error:
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._expedite_heartbeat(now_ms)
                return False
            case ErrorCode.STALE_MEMBER_EPOCH:
                self._expedite_heartbeat(now_ms)
                if commit.token is None:
                    self._defer_commit(commit)
                return commit.token is None
            case _:
                return super()._tries_again(commit, error, now_ms)

    # Closing.

    def _begin_close(self, now_ms: int) -> None:
        """Begin to close. Source: rdkafka_cgrp.c, rd_kafka_cgrp_terminate0."""
        self._is_terminating = True
        self._wants_rejoin = self._is_rejoining = False
        self._poll_check_due_ms = FOREVER
        if self._subscription:
            self._unsubscribe(now_ms)
        if not self._waits_for_assign_call():
            self._remove(tuple(self._assigned), now_ms)
        self._serve_assignment(now_ms)

    # Answers and failures to their handlers.

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match response:
            case ConsumerGroupHeartbeatResponse() if pending.kind is RequestKind.LEAVE:
                self._left()
            case ConsumerGroupHeartbeatResponse():
                self._on_heartbeat(response, now_ms)
            case FindCoordinatorResponse():
                self._on_find_coordinator(response, now_ms)
            case MetadataResponse() if self._is_target_query(pending):
                self._target_query_ended(pending, response)
            case MetadataResponse():
                self._adopt_metadata(response, now_ms)
            case OffsetFetchResponse():
                self._on_offset_fetch(response, now_ms)
            case OffsetCommitResponse():
                self._on_commit(pending, response, now_ms)
            case _:
                name = type(response).__name__
                raise InvariantViolation(f"{name} answers a {pending.kind.value} request")

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Handle a broken connection or a timeout: some requests are sent again."""
        del error
        match pending.kind:
            case RequestKind.METADATA if self._is_target_query(pending):
                self._target_query_ended(pending, None)
            case RequestKind.METADATA:
                self._metadata_failed(now_ms)
            case RequestKind.LOOKUP:
                self._query_failed()
            case RequestKind.HEARTBEAT:
                self._heartbeat_lost(pending, now_ms)
            case RequestKind.LEAVE:
                self._left()
            case RequestKind.COMMIT:
                self._commit_lost(pending)
            case RequestKind.OFFSET_FETCH:
                self._offset_fetch_failed(now_ms, retry=True)
