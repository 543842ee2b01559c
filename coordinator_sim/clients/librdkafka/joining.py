"""How a librdkafka consumer joins: JoinGroup, the leader's duties, SyncGroup.

Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_join, rd_kafka_cgrp_handle_JoinGroup,
rd_kafka_cgrp_assignor_run, rd_kafka_cgrp_handle_SyncGroup.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Unpack

from coordinator_sim.assignors.contract import AssignmentFailed, AssignorMember
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.clients.background_requests import ConsumerSetup, members_of
from coordinator_sim.clients.cluster_metadata import replica_racks
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.librdkafka.coordinator import COORDINATOR_GONE, LibrdkafkaCoordinator
from coordinator_sim.clients.librdkafka.states import Interval, JoinState
from coordinator_sim.clients.network import PendingRequest, RequestKind
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import metadata_request
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

_JOIN_INTERVAL_MS: Final = 1_000
_JOIN_BACKOFF_MS: Final = 1_000
_STICKY: Final = "cooperative-sticky"


class LibrdkafkaJoining(LibrdkafkaCoordinator):
    """Takes the member from INIT to its rebalance callback.

    DEVIATION: the cooperative-sticky assignor is Java's. librdkafka's own may leave other
    partitions where they are, but moves as many.
    """

    __slots__ = (
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

    # What the parts above provide.

    @abstractmethod
    def _send_heartbeat(self, now_ms: int) -> None: ...


def _assignment_blob(member: AssignorMember, partitions: Sequence[TopicPartition]) -> bytes:
    """Encode a member's assignment, with the user data that the member sent.

    Source: librdkafka 2.15, rdkafka_request.c, rd_kafka_group_MemberState_consumer_write.
    """
    assignment = ConsumerAssignment(
        partitions=tuple(partitions), user_data=member.subscription.user_data
    )
    return encode_assignment(assignment, version=0)
