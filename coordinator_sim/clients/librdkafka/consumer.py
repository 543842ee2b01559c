"""A librdkafka consumer: heartbeats, rejoining, leaving, closing, and the table of answers.

Source: librdkafka 2.15, rdkafka_cgrp.c.
"""

from typing import Unpack

from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, Effects
from coordinator_sim.clients.librdkafka.joining import LibrdkafkaJoining
from coordinator_sim.clients.librdkafka.states import CoordinatorState, JoinState
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import SyncGroupResponse


class LibrdkafkaConsumer(LibrdkafkaJoining):
    """The model of a librdkafka consumer of the classic group protocol."""

    __slots__ = ("_heartbeat_in_flight",)

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        self._heartbeat_in_flight = False

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Drop an answer to no request; requests are found by their ids, in any order.

        Source: librdkafka 2.15, rdkafka_broker.c, rd_kafka_req_response, rd_kafka_waitresp_find.
        """
        del node_id, now_ms
        return ()

    # Heartbeats.

    def _send_heartbeat(self, now_ms: int) -> None:
        if self._max_poll_exceeded or self._heartbeat_in_flight:
            return
        self._heartbeat_in_flight = True
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
        )
        timeout_ms = self._config.session_timeout_ms
        self._request(RequestKind.HEARTBEAT, self._coordinator_node_id, request, now_ms, timeout_ms)

    def _on_heartbeat(self, error: ErrorCode, now_ms: int) -> None:
        """Handle Heartbeat. Source: rdkafka_cgrp.c, rd_kafka_cgrp_handle_Heartbeat."""
        self._heartbeat_in_flight = False
        if error is ErrorCode.NONE:
            self._prolong_session(now_ms)
            return
        if self._join_state <= JoinState.WAIT_SYNC:
            return
        match error:
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
                # The member stays, and keeps sending heartbeats to the coordinator it knows.
                self._query_coordinator(now_ms)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._prolong_session(now_ms)
                if not self._waits_for_assign_call():
                    self._group_is_rebalancing(now_ms)
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = UNKNOWN_MEMBER_ID
                self._maybe_revoke_all(now_ms, lost=True)
            case ErrorCode.ILLEGAL_GENERATION:
                self._generation_id = NO_GENERATION_ID
                self._maybe_revoke_all(now_ms, lost=True)
            case ErrorCode.FENCED_INSTANCE_ID:
                self._fail_for_good(error)
                self._maybe_revoke_all(now_ms, lost=True)
            case _:
                pass

    def _heartbeat_lost(self, now_ms: int) -> None:
        self._heartbeat_in_flight = False
        if self._join_state > JoinState.WAIT_SYNC:
            self._query_coordinator(now_ms)

    def _prolong_session(self, now_ms: int) -> None:
        if self._session_deadline_ms is not None:
            self._session_deadline_ms = now_ms + self._config.session_timeout_ms

    def _group_is_rebalancing(self, now_ms: int) -> None:
        """Give up all partitions, then join (eager); join by interval (cooperative)."""
        if not self._is_cooperative():
            self._maybe_revoke_all(now_ms, lost=False)
        elif not self._is_rebalancing():
            self._rejoin(now_ms)

    # Rejoining and leaving.

    def _rejoin(self, now_ms: int, *, at_once: bool = False) -> None:
        """Return to the initial join state; without a subscription, leave if still pending.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_rejoin.
        """
        if at_once:
            self._join_interval.reset()
        if not self._subscription:
            self._maybe_leave(now_ms)
        self._join_state = JoinState.INIT

    def _revoke_all(self, now_ms: int, *, lost: bool) -> None:
        """Revoke all partitions. Source: rdkafka_cgrp.c, rd_kafka_cgrp_revoke_all_rejoin."""
        owned = self._group_assignment
        self._assignment_lost = self._assignment_lost or (lost and owned is not None)
        if not self._is_cooperative():
            if owned is not None and not self._waits_for_assign_call():
                self._rebalance(CallbackKind.PARTITIONS_REVOKED, owned)
            else:
                self._rejoin(now_ms, at_once=True)
        elif owned:
            self._rebalance_incrementally(
                CallbackKind.PARTITIONS_REVOKED, owned, rejoin=not self._is_terminating
            )
        elif self._is_terminating:
            self._maybe_leave(now_ms)
            self._join_state = JoinState.INIT
        else:
            self._rejoin(now_ms)

    def _maybe_leave(self, now_ms: int) -> bool:
        """Leave if asked to. Source: rdkafka_cgrp.c, rd_kafka_cgrp_leave_maybe."""
        leaves, self._leaves_on_unassign_done = self._leaves_on_unassign_done, False
        if self._config.group_instance_id is not None and self._is_terminating:
            return False
        if leaves:
            self._leave(now_ms)
        return leaves

    def _polls_stopped(self, now_ms: int) -> None:
        """Leave at once; a static member only gives everything up."""
        if self._config.group_instance_id is None:
            self._leave(now_ms)
        self._member_id = UNKNOWN_MEMBER_ID
        self._maybe_revoke_all(now_ms, lost=True)

    def _leave(self, now_ms: int) -> None:
        """Forget the member id, and tell the coordinator if it can be reached."""
        member_id, self._member_id = self._member_id, UNKNOWN_MEMBER_ID
        if self._waits_for_leave or self._coordinator_state is not CoordinatorState.UP:
            return
        self._waits_for_leave = True
        request = LeaveGroupRequest(
            group_id=self._group_id, members=(MemberIdentity(member_id=member_id),)
        )
        timeout_ms = self._traits.leave_timeout_ms
        self._request(RequestKind.LEAVE, self._coordinator_node_id, request, now_ms, timeout_ms)

    # Subscribing and closing.

    def _on_subscription_changed(self, now_ms: int) -> None:
        if self._is_cooperative():
            self._rejoin(now_ms, at_once=True)
        else:
            self._revoke_all(now_ms, lost=False)

    def _begin_close(self, now_ms: int) -> None:
        """Begin to close. Source: rdkafka_cgrp.c, rd_kafka_cgrp_terminate0, _unsubscribe."""
        self._is_terminating = True
        self._poll_check_due_ms = FOREVER
        self._subscription = ()
        self._leader_members = []
        self._leaves_on_unassign_done = bool(self._member_id)
        if not self._assignment_lost:
            self._revoke_all(now_ms, lost=False)
        if not self._waits_for_assign_call():
            self._remove(tuple(self._assigned), now_ms)
            self._serve_assignment(now_ms)

    # Metadata.

    def _on_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        """Rejoin when a topic of the subscription changed: every member does, not the leader alone.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_metadata_update_check.
        """
        self._adopt_metadata(response, now_ms)
        counts = self._partition_counts()
        if self._join_state is not JoinState.STEADY or counts == self._known_partition_counts:
            return
        self._known_partition_counts = counts
        if self._is_cooperative():
            self._rejoin(now_ms)
        else:
            self._revoke_all(now_ms, lost=False)

    # Answers and failures to their handlers.

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match response:
            case HeartbeatResponse():
                self._on_heartbeat(response.error_code, now_ms)
            case JoinGroupResponse():
                self._on_join_group(response, now_ms)
            case SyncGroupResponse():
                self._on_sync_group(response, now_ms)
            case FindCoordinatorResponse():
                self._on_find_coordinator(response, now_ms)
            case MetadataResponse() if pending is self._leader_query:
                self._on_leader_metadata(response, now_ms)
            case MetadataResponse():
                self._on_metadata(response, now_ms)
            case OffsetFetchResponse():
                self._on_offset_fetch(response, now_ms)
            case OffsetCommitResponse():
                self._on_commit(pending, response, now_ms)
            case LeaveGroupResponse():
                self._waits_for_leave = False
            case _:
                name = type(response).__name__
                raise InvariantViolation(f"{name} answers a {pending.kind.value} request")

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Handle a broken connection or a timeout: some requests are sent again."""
        del error
        match pending.kind:
            case RequestKind.METADATA if pending is self._leader_query:
                self._leader_metadata_lost(now_ms)
            case RequestKind.METADATA:
                self._metadata_failed(now_ms)
            case RequestKind.LOOKUP:
                self._query_failed()
            case RequestKind.HEARTBEAT:
                self._heartbeat_lost(now_ms)
            case RequestKind.JOIN:
                self._join_lost(now_ms)
            case RequestKind.SYNC:
                self._sync_lost(pending, now_ms)
            case RequestKind.LEAVE:
                self._waits_for_leave = False
            case RequestKind.COMMIT:
                self._commit_lost(pending)
            case RequestKind.OFFSET_FETCH:
                self._offset_fetch_failed(now_ms, retry=True)
