"""A librdkafka consumer: heartbeats, rejoining, leaving, closing, and the table of answers.

How a librdkafka consumer joins: JoinGroup, the leader's duties, SyncGroup.

Source: librdkafka 2.15, rdkafka_cgrp.c; librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_join,
rd_kafka_cgrp_handle_JoinGroup, rd_kafka_cgrp_assignor_run, rd_kafka_cgrp_handle_SyncGroup.
"""

from collections.abc import Sequence
from typing import Final, Unpack

from coordinator_sim.assignors.contract import AssignmentFailed, AssignorMember
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.clients.background_requests import ConsumerSetup, members_of
from coordinator_sim.clients.cluster_metadata import replica_racks
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, Effects
from coordinator_sim.clients.librdkafka.coordinator import COORDINATOR_GONE, LibrdkafkaCoordinator
from coordinator_sim.clients.librdkafka.states import CoordinatorState, Interval, JoinState
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.errors import InvariantViolation, WireFormatError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.requests import Response, metadata_request
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

_JOIN_INTERVAL_MS: Final = 1_000
_JOIN_BACKOFF_MS: Final = 1_000
_STICKY: Final = "cooperative-sticky"


def _assignment_blob(member: AssignorMember, partitions: Sequence[TopicPartition]) -> bytes:
    """Encode a member's assignment, with the user data that the member sent.

    Source: librdkafka 2.15, rdkafka_request.c, rd_kafka_group_MemberState_consumer_write.
    """
    assignment = ConsumerAssignment(
        partitions=tuple(partitions), user_data=member.subscription.user_data
    )
    return encode_assignment(assignment, version=0)


class LibrdkafkaConsumer(LibrdkafkaCoordinator):
    """The model of a librdkafka consumer of the classic group protocol.

    DEVIATION: the cooperative-sticky assignor is Java's. librdkafka's own may leave other
    partitions where they are, but moves as many.
    """

    __slots__ = (
        "_heartbeat_in_flight",
        "_join_interval",
        "_known_partition_counts",
        "_leader_members",
        "_leader_query",
        "_sticky_generation_id",
        "_sync_in_flight",
        "_wait_join",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        self._join_interval = Interval()
        self._leader_members: list[AssignorMember] = []
        self._leader_query: PendingRequest | None = None
        self._sticky_generation_id: int | None = None
        self._known_partition_counts: dict[str, int] = {}
        self._wait_join: PendingRequest | None = None
        self._sync_in_flight: PendingRequest | None = None
        self._heartbeat_in_flight = False

    # JoinGroup.

    def _serve_join_state(self, now_ms: int) -> None:
        """Serve the join state. Source: rdkafka_cgrp.c, rd_kafka_cgrp_join_state_serve."""
        if self._fatal_error is not None:
            return
        match self._join_state:
            case JoinState.INIT:
                if (
                    self._wait_join is None
                    and self._sync_in_flight is None
                    and self._subscription
                    and self._join_interval.passes(now_ms, _JOIN_INTERVAL_MS)
                ):
                    self._join(now_ms)
            case JoinState.STEADY | JoinState.WAIT_ASSIGN_CALL | JoinState.WAIT_UNASSIGN_CALL:
                interval_ms = self._config.heartbeat_interval_ms
                if self._subscription and self._heartbeat_interval.passes(now_ms, interval_ms):
                    self._send_heartbeat(now_ms)
            case _:
                pass

    def _join(self, now_ms: int) -> None:
        """Send JoinGroup. Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_join."""
        if self._max_poll_exceeded and self._is_poll_overdue(now_ms):
            return
        self._max_poll_exceeded = False
        if not self._partition_counts():
            self._metadata.request_update()
            self._join_interval.reset()
            return
        self._known_partition_counts = self._partition_counts()
        config = self._config
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            member_id=self._member_id,
            group_instance_id=config.group_instance_id,
            protocol_type="consumer",
            protocols=tuple(
                JoinGroupRequestProtocol(assignor.name, self._subscription_blob(assignor.name))
                for assignor in self._assignors
            ),
        )
        self._join_state = JoinState.WAIT_JOIN
        timeout_ms = config.rebalance_timeout_ms + self._traits.join_timeout_lapse_ms
        self._wait_join = self._request(
            RequestKind.JOIN, self._coordinator_node_id, request, now_ms, timeout_ms
        )

    def _subscription_blob(self, assignor_name: str) -> bytes:
        """Return the subscription; only the sticky assignor's has owned partitions and generation.

        Source: librdkafka 2.15, rdkafka_sticky_assignor.c, get_metadata; rdkafka_assignor.c.
        """
        owned = self._group_assignment or ()
        generation_id = self._sticky_generation_id
        user_data = b""
        if assignor_name == _STICKY and generation_id is not None:
            user_data = encode_sticky_user_data(owned, generation_id)
        return encode_subscription(
            Subscription(
                topics=self._subscription,
                user_data=user_data,
                owned_partitions=owned,
                generation_id=NO_GENERATION_ID if generation_id is None else generation_id,
                rack_id=self._config.client_rack or self._traits.rack_when_unset,
            )
        )

    def _on_join_group(self, response: JoinGroupResponse, now_ms: int) -> None:
        """Handle JoinGroup. Source: rdkafka_cgrp.c, rd_kafka_cgrp_handle_JoinGroup."""
        self._wait_join = None
        if self._is_terminating or self._join_state is not JoinState.WAIT_JOIN:
            return
        assignor = self._assignor(response.protocol_name)
        if response.error_code is not ErrorCode.NONE or assignor is None:
            self._join_failed(response.error_code, response.member_id, now_ms)
            return
        self._member_id = response.member_id
        self._generation_id = response.generation_id
        self._chosen_assignor = assignor
        if response.leader == response.member_id:
            self._lead(response, now_ms)
        else:
            self._send_sync_group((), now_ms)

    def _join_failed(self, error: ErrorCode, member_id: str, now_ms: int) -> None:
        """Handle an error answer: look up a lost coordinator again, and join by interval."""
        self._join_interval.backoff_ms = _JOIN_BACKOFF_MS
        if error in COORDINATOR_GONE:
            self._query_coordinator(now_ms)
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._fail_for_good(error)
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = UNKNOWN_MEMBER_ID
        elif error is ErrorCode.ILLEGAL_GENERATION:
            self._generation_id = NO_GENERATION_ID
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = member_id
            self._join_interval.reset()
        lost = error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.MEMBER_ID_REQUIRED)
        if self._is_cooperative() and lost:
            self._revoke_all(now_ms, lost=True)
        else:
            self._rejoin(now_ms)

    def _lead(self, response: JoinGroupResponse, now_ms: int) -> None:
        """Ask the coordinator for metadata of the group's topics, then assign."""
        self._join_state = JoinState.WAIT_METADATA
        try:
            self._leader_members = members_of(response)
        except WireFormatError:
            self._leader_members = []
        topics = dict.fromkeys(t for m in self._leader_members for t in m.subscription.topics)
        self._leader_query = self._request(
            RequestKind.METADATA,
            self._coordinator_node_id,
            metadata_request(sorted(topics)),
            now_ms,
        )

    def _on_leader_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        self._leader_query = None
        assignor = self._chosen_assignor
        has_members = self._join_state is JoinState.WAIT_METADATA and self._leader_members
        if assignor is None or not has_members:
            return
        of_broker = {each.node_id: each.rack for each in response.brokers if each.rack is not None}
        racks = {
            topic.name or "": replica_racks(topic, of_broker)
            for topic in response.topics
            if topic.error_code is ErrorCode.NONE
        }
        try:
            plan = assignor.assign(racks, self._leader_members)
        except AssignmentFailed:
            self._rejoin(now_ms)
            return
        blobs = tuple(
            SyncGroupRequestAssignment(
                member.member_id, _assignment_blob(member, plan.get(member.member_id, ()))
            )
            for member in self._leader_members
        )
        self._send_sync_group(blobs, now_ms)

    # SyncGroup.

    def _send_sync_group(self, blobs: tuple[SyncGroupRequestAssignment, ...], now_ms: int) -> None:
        self._join_state = JoinState.WAIT_SYNC
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
            assignments=blobs,
        )
        self._request_sync(request, now_ms)

    def _request_sync(self, request: SyncGroupRequest, now_ms: int) -> None:
        """Send SyncGroup. Source: rdkafka_request.c, rd_kafka_SyncGroupRequest."""
        timeout_ms = self._config.session_timeout_ms + self._traits.join_timeout_lapse_ms
        self._sync_in_flight = self._request(
            RequestKind.SYNC, self._coordinator_node_id, request, now_ms, timeout_ms
        )

    def _on_sync_group(self, response: SyncGroupResponse, now_ms: int) -> None:
        """Handle SyncGroup. Source: rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup."""
        self._sync_in_flight = None
        if self._join_state is not JoinState.WAIT_SYNC:
            return
        error = response.error_code
        if error in COORDINATOR_GONE:
            self._query_coordinator(now_ms)
        if error is not ErrorCode.NONE or self._is_terminating:
            self._sync_failed(error, now_ms)
            return
        try:
            blob = response.assignment
            assigned = decode_assignment(blob).partitions if blob else ()
        except WireFormatError:
            self._rejoin(now_ms)
            return
        self._session_deadline_ms = now_ms + self._config.session_timeout_ms
        if self._chosen_assignor is not None and self._chosen_assignor.name == _STICKY:
            self._sticky_generation_id = self._generation_id
        if self._is_cooperative():
            self._adopt_incrementally(assigned)
        else:
            self._rebalance(CallbackKind.PARTITIONS_ASSIGNED, assigned)

    def _sync_failed(self, error: ErrorCode, now_ms: int) -> None:
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._fail_for_good(error)
        elif error is ErrorCode.ILLEGAL_GENERATION:
            self._generation_id = NO_GENERATION_ID
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = UNKNOWN_MEMBER_ID
        lost = error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
        if self._is_cooperative() and lost:
            self._revoke_all(now_ms, lost=True)
        else:
            # The join interval does not delay it (seen with 2.16.0).
            self._rejoin(now_ms, at_once=True)

    # Requests lost with a connection.

    def _join_lost(self, now_ms: int) -> None:
        self._wait_join = None
        if not self._is_terminating and self._join_state is JoinState.WAIT_JOIN:
            self._join_interval.backoff_ms = _JOIN_BACKOFF_MS
            self._rejoin(now_ms)

    def _leader_metadata_lost(self, now_ms: int) -> None:
        self._leader_query = None
        self._rejoin(now_ms)

    def _sync_lost(self, pending: PendingRequest, now_ms: int) -> None:
        """Send a lost SyncGroup again on the next connection."""
        self._sync_in_flight = None
        request = pending.request
        waits = self._join_state is JoinState.WAIT_SYNC and not self._is_terminating
        if waits and isinstance(request, SyncGroupRequest):
            self._request_sync(request, now_ms)

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
