"""Heartbeats of a librdkafka member of the consumer protocol: what they say, when, and the answers.

The coordinator sets the interval. What cannot wait for it expedites the next heartbeat: a target
that was reconciled, another subscription, another coordinator, a lost membership. Such heartbeats
back off from 1 ms on as long as none succeeds.

DEVIATION: an unanswered heartbeat is given up at a full second after it was sent. librdkafka looks
for such requests once a second, at an instant that depends on what its thread did before.

What a librdkafka member of the consumer protocol has, and what it is to have (KIP-848).

A target comes by topic ids. The names of topics that the member does not know are asked for on the
coordinator's connection, and the partitions are reconciled when they are known: revoked ones first,
then added ones, both by the application's callbacks. The next target waits until this one has been
acknowledged.

Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_consumer_serve,
rd_kafka_cgrp_consumer_group_heartbeat, rd_kafka_cgrp_handle_ConsumerGroupHeartbeat; librdkafka
2.15, rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_next_assignment and what calls it.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.states import PartitionsById
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.backoff import ExponentialBackoff
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.librdkafka.coordinator import COORDINATOR_GONE, LibrdkafkaCoordinator
from coordinator_sim.clients.librdkafka.states import CoordinatorState, JoinState
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


def _partitions_of(partitions: PartitionsById) -> dict[bytes, tuple[int, ...]]:
    """Return partitions in a form in which equal sets are equal; a topic without any is left out.

    Source: librdkafka 2.15, rdkafka_partition.c, rd_kafka_topic_partition_list_cmp.
    """
    return {topic_id: tuple(sorted(each)) for topic_id, each in partitions.items() if each}


def told_partitions(partitions: PartitionsById) -> tuple[TopicPartitions, ...]:
    """Return partitions as a heartbeat tells them, in the order in which they came."""
    return tuple(TopicPartitions(topic_id, each) for topic_id, each in partitions.items())


_EXPEDITED_BACKOFF_MS: Final = 1
_ROUNDED_MS: Final = 1
"""Source: librdkafka 2.15, rdkafka.c, rd_kafka_thread_main: waits are whole milliseconds."""
_SCAN_MS: Final = 1_000
"""Interval at which requests are looked at for timeouts. Source: rdkafka_broker.c."""
_MAX_RETRIES: Final = 2
"""Source: rdkafka_proto.h, RD_KAFKA_REQUEST_DEFAULT_RETRIES."""
_LEAVES: Final = -1
_LEAVES_TO_RETURN: Final = -2
_REJOINS: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_TEMPORARY: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
_IGNORED: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)
"""Errors without a consequence but a log line. Source: rdkafka_request.c, rd_kafka_err_action."""


class LibrdkafkaHeartbeats(LibrdkafkaCoordinator):
    """Sends ConsumerGroupHeartbeat, handles its answers, and works towards their targets."""

    __slots__ = (
        "_beats_since_success",
        "_current",
        "_heartbeat",
        "_heartbeat_due_ms",
        "_heartbeat_expires_ms",
        "_heartbeat_interval_ms",
        "_heartbeat_retry_count",
        "_heartbeat_retry_due_ms",
        "_is_heartbeat_in_flight",
        "_is_rejoining",
        "_names_by_id",
        "_next_target",
        "_sends_ack",
        "_sends_everything",
        "_sends_subscription",
        "_target",
        "_target_queries",
        "_topics_in_order",
        "_waits_for_ack",
        "_wants_rejoin",
        "_wants_subscription_sent",
    )

    def __init__(
        self, config: ConsumerConfig, *, member_id: str, **setup: Unpack[ConsumerSetup]
    ) -> None:
        super().__init__(config, **setup)
        self._current: PartitionsById = {}
        """What the coordinator knows that the member has."""
        self._target: PartitionsById | None = None
        """What is being reconciled, or waits for its acknowledgement."""
        self._next_target: PartitionsById | None = None
        self._names_by_id: dict[bytes, str] = {}
        self._target_queries: dict[int, None] = {}
        self._waits_for_ack = False
        self._sends_ack = False
        self._member_id = member_id
        self._topics_in_order = tuple(dict.fromkeys(setup["topics"]))
        self._heartbeat: ConsumerGroupHeartbeatRequest | None = None
        """The heartbeat in flight, or to be sent again."""
        self._heartbeat_interval_ms = 0
        """The coordinator's interval; 0 until its first answer."""
        self._heartbeat_due_ms = FOREVER
        self._heartbeat_expires_ms = FOREVER
        self._heartbeat_retry_count = 0
        self._heartbeat_retry_due_ms = FOREVER
        self._is_heartbeat_in_flight = False
        self._beats_since_success = 0
        self._sends_everything = False
        self._wants_subscription_sent = False
        self._sends_subscription = False
        self._wants_rejoin = False
        self._is_rejoining = False

    def _take_target(self, assignment: Assignment) -> None:
        """Keep a target that is not the one known; it replaces one that still waits."""
        told = {each.topic_id: each.partitions for each in assignment.topic_partitions}
        self._next_target = told if self._is_news(told) else None

    def _is_news(self, told: PartitionsById) -> bool:
        """Whether partitions differ from those reconciled, or from the present ones.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_is_new_assignment_different.
        """
        known = self._current if self._target is None else self._target
        return _partitions_of(told) != _partitions_of(known)

    def _take_acknowledgement(self) -> None:
        """Record that the coordinator knows what was reconciled."""
        self._current = self._target or {}
        self._target = None
        self._waits_for_ack = False

    def _serve_next_target(self, now_ms: int) -> None:
        """Begin the next target, or ask for the names of its topics.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_next_target_assignment_request_metadata.
        """
        told = self._next_target
        if told is None:
            return
        unknown = [topic_id for topic_id in told if topic_id not in self._names_by_id]
        if not unknown:
            self._begin_target(told, is_whole=True)
            return
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=each, name=None) for each in unknown),
            allow_auto_topic_creation=False,
        )
        node_id = self._coordinator_node_id
        pending = self._request(RequestKind.METADATA, node_id, request, now_ms)
        self._target_queries[pending.correlation_id] = None

    def _is_target_query(self, pending: PendingRequest) -> bool:
        return pending.correlation_id in self._target_queries

    def _target_query_ended(
        self, pending: PendingRequest, response: MetadataResponse | None
    ) -> None:
        """Begin the next target as far as its topics are known; None for a lost request.

        A target with unknown topics stays the next one, and each heartbeat's answer asks again.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_Metadata_op.
        """
        del self._target_queries[pending.correlation_id]
        if response is not None:
            self._learn_names(response)
        told = self._next_target
        if told is not None:
            known = {each: told[each] for each in told if each in self._names_by_id}
            self._begin_target(known, is_whole=len(known) == len(told))

    def _learn_names(self, response: MetadataResponse) -> None:
        for topic in response.topics:
            if topic.error_code is ErrorCode.NONE and topic.name is not None:
                self._names_by_id[topic.topic_id] = topic.name

    def _begin_target(self, partitions: PartitionsById, *, is_whole: bool) -> None:
        """Reconcile these partitions, unless others are being reconciled.

        Args:
            partitions: The next target, or the part of it whose topics are known.
            is_whole: Whether it is all of the next target.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_handle_next_assignment.
        """
        if self._waits_for_ack:
            return
        if self._is_news(partitions):
            if self._join_state not in (JoinState.INIT, JoinState.STEADY):
                return
            self._waits_for_ack = True
            self._target = partitions
            self._refresh_own_topics()
            self._adopt_incrementally(self._named(partitions))
        if is_whole:
            self._next_target = None

    def _refresh_own_topics(self) -> None:
        """Have Metadata ask for the topics that the member has, or is to have."""
        known = {**self._current, **(self._target or {})}
        self._metadata.wanted_topics = tuple(sorted(self._names_by_id[each] for each in known))

    def _named(self, partitions: PartitionsById) -> Sequence[TopicPartition]:
        return sorted(
            TopicPartition(self._names_by_id[topic_id], number)
            for topic_id, numbers in partitions.items()
            for number in numbers
        )

    def _forget_targets(self) -> None:
        """Begin anew, as a member that has nothing."""
        self._current = {}
        self._target = self._next_target = None
        self._waits_for_ack = self._sends_ack = False

    # The timers.

    def _thread_due_ms(self) -> int:
        return min(super()._thread_due_ms(), self._heartbeat_due_ms)

    def _next_wake_ms(self) -> int:
        return min(super()._next_wake_ms(), self._heartbeat_retry_due_ms)

    def _fire_due(self, now_ms: int) -> bool:
        if now_ms >= self._heartbeat_retry_due_ms:
            self._send_again(now_ms)
        return super()._fire_due(now_ms)

    def _thread_woken(self, now_ms: int) -> None:
        """Let a heartbeat go that is due within the wait of the thread, which is rounded up."""
        if now_ms + _ROUNDED_MS >= self._heartbeat_due_ms:
            self._heartbeat_due_ms = FOREVER
            self._heartbeat_interval.backoff_ms -= _ROUNDED_MS

    def _expedite_heartbeat(self, now_ms: int) -> None:
        """Let the next heartbeat wait only for a backoff.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_expedite_next_heartbeat.
        """
        backoff_ms = 0
        if self._beats_since_success:
            backoff_ms = ExponentialBackoff(
                _EXPEDITED_BACKOFF_MS, self._config.retry_backoff_max_ms
            ).backoff_ms(
                self._beats_since_success - 1,
                self._jitter,
                site="expedite-backoff",
                key=self._client_id,
            )
        self._heartbeat_interval.last_ms = now_ms - self._heartbeat_interval_ms
        self._heartbeat_interval.backoff_ms = backoff_ms
        self._heartbeat_due_ms = now_ms + backoff_ms

    def _coordinator_changed(self, now_ms: int) -> None:
        self._expedite_heartbeat(now_ms)

    # One turn of the thread.

    def _serve_join_state(self, now_ms: int) -> None:
        """Serve the membership. Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_serve."""
        if self._fatal_error is not None:
            return
        tells_all = self._sends_everything
        if self._wants_rejoin:
            if self._is_rebalancing():
                return
            self._wants_rejoin = False
            self._is_rejoining = True
            self._revoke_all(now_ms, lost=True)
        acknowledges = False
        if self._join_state is JoinState.INIT:
            self._is_rejoining = False
            self._apply_next_subscription(now_ms)
            tells_all = True
        elif self._join_state is JoinState.STEADY:
            acknowledges = self._waits_for_ack
        if self._may_send_heartbeat(now_ms):
            interval_ms = self._heartbeat_interval_ms
            if self._heartbeat_interval.passes(now_ms, interval_ms):
                self._send_heartbeat(now_ms, tells_all=tells_all, acknowledges=acknowledges)
            left_ms = self._heartbeat_interval.left_ms(now_ms, interval_ms)
            if interval_ms > 0:
                self._heartbeat_due_ms = min(self._heartbeat_due_ms, now_ms + left_ms)

    def _may_send_heartbeat(self, now_ms: int) -> bool:
        """Whether a heartbeat may be sent at all.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_heartbeat_preconditions_met.
        """
        return (
            bool(self._subscription)
            and not self._is_heartbeat_in_flight
            and not self._is_rejoining
            and not (self._max_poll_exceeded and self._is_poll_overdue(now_ms))
            and not self._will_leave()
        )

    def _will_leave(self) -> bool:
        return self._leaves_on_unassign_done or self._waits_for_leave

    def _has_subscription_to_send(self) -> bool:
        return self._wants_subscription_sent and not self._is_rebalancing()

    # Requests.

    def _send_heartbeat(self, now_ms: int, *, tells_all: bool, acknowledges: bool) -> None:
        """Send a heartbeat. Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_group_heartbeat."""
        config = self._config
        self._max_poll_exceeded = False
        partitions = None
        if acknowledges:
            partitions = self._target
            self._sends_ack = True
        elif tells_all:
            # QUIRK: what the application is being given is not told, so that the coordinator takes
            # it for given up, and gives it to others; the application has it all the same. Seen
            # with 2.16.0 after NOT_COORDINATOR during a callback.
            partitions = self._current
        if self._has_subscription_to_send() or self._sends_subscription:
            self._wants_subscription_sent = False
            self._sends_subscription = True
        tells_topics = tells_all or self._sends_subscription
        names, regex = _split(self._topics_in_order)
        self._beats_since_success += 1
        self._heartbeat = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=max(self._generation_id, 0),
            instance_id=config.group_instance_id if tells_all else None,
            rack_id=(config.client_rack or None) if tells_all else None,
            rebalance_timeout_ms=config.rebalance_timeout_ms if tells_all else -1,
            subscribed_topic_names=names if tells_topics else None,
            subscribed_topic_regex=regex if tells_topics else None,
            server_assignor=config.group_remote_assignor if tells_all else None,
            topic_partitions=None if partitions is None else told_partitions(partitions),
        )
        self._heartbeat_retry_count = 0
        self._heartbeat_expires_ms = now_ms + self._heartbeat_timeout_ms()
        self._transmit_heartbeat(self._heartbeat, now_ms)

    def _heartbeat_timeout_ms(self) -> int:
        """Return the time for an answer. Source: rd_kafka_ConsumerGroupHeartbeatRequest."""
        return self._heartbeat_interval_ms or self._config.session_timeout_ms

    def _transmit_heartbeat(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> None:
        self._is_heartbeat_in_flight = True
        kind, node_id = RequestKind.HEARTBEAT, self._coordinator_node_id
        left_ms = self._heartbeat_expires_ms - now_ms
        self._request(kind, node_id, request, now_ms, _to_scan_ms(left_ms))

    def _leave(self, now_ms: int) -> None:
        """Leave at once. Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_leave."""
        self._waits_for_leave = True
        if self._coordinator_state is not CoordinatorState.UP:
            self._left()
            return
        instance_id = self._config.group_instance_id
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=_LEAVES if instance_id is None else _LEAVES_TO_RETURN,
            instance_id=instance_id,
        )
        timeout_ms = _to_scan_ms(self._heartbeat_timeout_ms())
        self._request(RequestKind.LEAVE, self._coordinator_node_id, request, now_ms, timeout_ms)

    def _left(self) -> None:
        """Handle the end of a leave, however it ended.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_handle_ConsumerGroupHeartbeat_leave.
        """
        self._reset_membership()
        self._waits_for_leave = False

    def _reset_membership(self) -> None:
        """Forget epoch and targets, keep the member id.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_consumer_reset.
        """
        self._generation_id = 0
        self._forget_targets()
        self._sends_everything = self._wants_rejoin = False
        self._wants_subscription_sent = self._sends_subscription = False

    # Answers.

    def _on_heartbeat(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        """Handle an answer; the order of its steps decides what the next heartbeat says.

        Source: rdkafka_cgrp.c, rd_kafka_cgrp_handle_ConsumerGroupHeartbeat.
        """
        self._is_heartbeat_in_flight = False
        if response.error_code is not ErrorCode.NONE:
            self._heartbeat_refused(response.error_code, now_ms)
            return
        if response.member_id is not None:
            self._member_id = response.member_id
        self._generation_id = response.member_epoch
        if self._will_leave():
            return
        if response.heartbeat_interval_ms > 0:
            self._heartbeat_interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self._take_target(response.assignment)
        if self._join_state is JoinState.STEADY and self._waits_for_ack:
            self._reconciled_target_answered(now_ms)
        if self._subscription:
            self._serve_next_target(now_ms)
        else:
            self._next_target = None
        if self._has_subscription_to_send():
            self._expedite_heartbeat(now_ms)
        self._sends_subscription = self._sends_everything = self._sends_ack = False
        self._beats_since_success = 0

    def _reconciled_target_answered(self, now_ms: int) -> None:
        """Take what the heartbeat acknowledged, or acknowledge it with the next one at once."""
        if self._sends_ack:
            self._take_acknowledgement()
        else:
            self._expedite_heartbeat(now_ms)

    def _heartbeat_refused(self, error: ErrorCode, now_ms: int) -> None:
        """Handle an error: look up the coordinator, join anew, try again, or give up for good."""
        if error in _REJOINS:
            self._wants_rejoin = True
            return
        if error is ErrorCode.GROUP_ID_NOT_FOUND and self._waits_for_leave:
            return
        is_gone = error in COORDINATOR_GONE
        if not is_gone and error not in _TEMPORARY and error not in _IGNORED:
            self._fail_for_good(error)
            self._maybe_revoke_all(now_ms, lost=True)
            self._serve_assignment(now_ms)
            return
        # A first heartbeat is always tried again: without an interval it would be sent on and on.
        is_first = not self._heartbeat_interval_ms
        if is_gone:
            self._coordinator_lost(now_ms)
        if is_first or error in _TEMPORARY:
            self._retry_heartbeat(now_ms)

    def _heartbeat_lost(self, pending: PendingRequest, now_ms: int) -> None:
        """Handle a broken connection; a heartbeat that was not answered in time has no other end.

        Source: rdkafka_request.c, rd_kafka_err_action (RD_KAFKA_RESP_ERR__TIMED_OUT).
        """
        self._is_heartbeat_in_flight = False
        if now_ms < pending.deadline_ms:
            self._coordinator_lost(now_ms)
        if not self._heartbeat_interval_ms:
            self._retry_heartbeat(now_ms)

    def _coordinator_lost(self, now_ms: int) -> None:
        """Tell everything with the next heartbeat, and look up the coordinator."""
        self._sends_everything = True
        self._query_coordinator(now_ms)

    def _retry_heartbeat(self, now_ms: int) -> None:
        """Send the same heartbeat again after a backoff, twice at most.

        Source: librdkafka 2.15, rdkafka_buf.c, rd_kafka_buf_retry; rdkafka_broker.c,
        rd_kafka_broker_buf_retry.
        """
        may_retry = (
            self._heartbeat_retry_count < _MAX_RETRIES and now_ms <= self._heartbeat_expires_ms
        )
        if not self._subscription or self._will_leave() or not may_retry:
            return
        backoff_ms = self._config.retry_backoff().backoff_ms(
            self._heartbeat_retry_count,
            self._jitter,
            site="heartbeat-backoff",
            key=self._client_id,
        )
        self._heartbeat_retry_count += 1
        self._heartbeat_retry_due_ms = now_ms + backoff_ms
        self._is_heartbeat_in_flight = True

    def _send_again(self, now_ms: int) -> None:
        self._heartbeat_retry_due_ms = FOREVER
        if self._heartbeat is None or self._coordinator_id is None:
            self._is_heartbeat_in_flight = False
            return
        self._transmit_heartbeat(self._heartbeat, now_ms)

    # What the parts above provide.

    @abstractmethod
    def _apply_next_subscription(self, now_ms: int) -> None: ...


def _to_scan_ms(timeout_ms: int) -> int:
    """Return when a timeout is noticed: at a full second."""
    return max(-(-timeout_ms // _SCAN_MS), 1) * _SCAN_MS


def _split(topics: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return names and expressions of a subscription as a heartbeat tells them.

    An expression begins with `^`; several are one, and none is an empty one. Names go last first.

    Source: librdkafka 2.15, rdkafka_partition.c, rd_kafka_topic_partition_list_combine_regexes;
    rdkafka_request.c, rd_kafka_ConsumerGroupHeartbeatRequest.
    """
    names = tuple(each for each in reversed(topics) if not each.startswith("^"))
    regexes = [each for each in topics if each.startswith("^")]
    return names, f"({')|('.join(regexes)})" if regexes else ""
