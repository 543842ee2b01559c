"""The application's side of a share consumer: poll, acknowledge, commit, close; and its membership.

As with the new consumer there are two threads: the application's asks, the network thread sends
what is due whenever something happens.

DEVIATION: the network thread takes up at once what the application tells it.

Source: kafka 4.4, clients/.../consumer/internals/ShareConsumerImpl.java,
ShareMembershipManager.java, ShareHeartbeatRequestManager.java, ConsumerNetworkThread.java,
events/ApplicationEventProcessor.java.
"""

from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.heartbeats import Step
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.async_consumer.states import MemberState
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import IMPLICIT, ShareConsumerConfig
from coordinator_sim.clients.effects import AcknowledgementsCompleted, CommitCompleted, Effects
from coordinator_sim.clients.exceptions import ILLEGAL_STATE
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import AppCall
from coordinator_sim.clients.share_consumer.answers import ShareAnswers
from coordinator_sim.clients.share_consumer.fetched import ShareFetch
from coordinator_sim.clients.share_consumer.requests import ByPlace
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.share_acknowledge import ShareAcknowledgeResponse
from coordinator_sim.messages.share_fetch import ShareFetchResponse
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_LONGEST_TURN_MS: Final = 5_000
"""Longest wait of the network thread. Source: ConsumerNetworkThread.MAX_POLL_TIMEOUT_MS."""


class ShareConsumer(ShareAnswers):
    """The port of a share consumer.

    Args:
        config: Timeouts, limits and modes.
        setup: See `MemberSetup`; `assignors` are of no use here, and empty.
    """

    __slots__ = ("_app_wake_ms", "_cached_wait_ms", "_held", "_is_found", "_sends_fetch",
                 "_sent_rack", "_sent_topics", "_turn_due_ms")  # fmt: skip

    def __init__(self, config: ShareConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._app_wake_ms = FOREVER
        self._cached_wait_ms = _LONGEST_TURN_MS
        """How long the application waits for records, by the network thread's last turn."""
        self._held = ShareFetch()
        """What the last poll returned, until it is acknowledged (currentFetch)."""
        self._is_found = False
        """Whether the present poll has records to return."""
        self._sends_fetch = False
        """Whether the present poll has not asked for records yet (shouldSendShareFetchEvent)."""
        self._sent_rack: str | None = None
        self._sent_topics: tuple[str, ...] | None = None
        self._turn_due_ms = FOREVER

    @property
    def records(self) -> dict[TopicPartition, dict[int, int]]:
        """Records that the application has: the delivery count of each, by partition and offset."""
        return self._held.records()

    # Calls.

    def acknowledge(
        self, partition: TopicPartition, offset: int, kind: AcknowledgeType
    ) -> str | None:
        """Acknowledge a record; return the name of the exception that Java raises."""
        is_implicit = self._share_config.acknowledgement_mode == IMPLICIT
        if is_implicit or not self._held.acknowledge(partition, offset, kind):
            return ILLEGAL_STATE
        return None

    def commit_sync(self, now_ms: int) -> tuple[int, Effects]:
        """Send the acknowledgements; ends with `CommitCompleted` and the returned token.

        Its error is that of the first partition that has one.
        """
        token, self._next_token = self._next_token, self._next_token + 1

        def ended(error: str | None, at_ms: int) -> None:
            del at_ms
            self._handle_outcomes()
            self._out.append(CommitCompleted(token=token, error=error))

        acks = self._acknowledgements_to_send()
        outcome = kept()
        if acks:
            deadline_ms = now_ms + self._config.default_api_timeout_ms
            outcome = self._commit_sync(acks, deadline_ms, now_ms)
        outcome.then(ended, now_ms)
        return token, self._settle(now_ms)

    def commit_async(self, now_ms: int) -> Effects:
        """Send the acknowledgements without waiting for the outcome."""
        self._acknowledge_async(self._acknowledgements_to_send(), now_ms)
        return self._settle(now_ms)

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:
        """Refuse: a share consumer has no callback to wait for.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation(f"callback {token} is not outstanding: {outcome} at {now_ms}")

    def _acknowledgements_to_send(self) -> ByPlace:
        self._handle_outcomes()
        self._acknowledge_implicitly()
        return self._held.take_acknowledged()

    def _acknowledge_implicitly(self) -> None:
        """Accept what was delivered (acknowledgeBatchIfImplicitAcknowledgement)."""
        if self._share_config.acknowledgement_mode == IMPLICIT:
            self._held.acknowledge_all(AcknowledgeType.ACCEPT)

    def _acknowledge_async(self, acks: ByPlace, now_ms: int) -> None:
        if acks:
            self._commit_async(acks, now_ms + self._config.default_api_timeout_ms, now_ms)

    def _handle_outcomes(self) -> None:
        """Tell the application of outcomes, and hand out renewed records next.

        Source: handleCompletedAcknowledgements, ShareAcknowledgementEventProcessor.
        """
        while self._outcomes:
            outcomes, renews = self._outcomes.popleft()
            for tip, each in outcomes.items():
                types = {offset: int(each.types[offset]) for offset in sorted(each.types)}
                self._out.append(
                    AcknowledgementsCompleted(
                        partition=tip.topic_partition, types=types, error=each.error
                    )
                )
            if renews:
                self._held.renew(outcomes)

    def _raised(self) -> str | None:
        """Return the first error that the network thread reported (processBackgroundEvents)."""
        errors = [each.error for each in self._app_events if each.error is not None]
        self._app_events.clear()
        return errors[0] if errors else None

    # The loop of `poll`.

    def _on_start(self, now_ms: int) -> None:
        self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms

    def _on_poll(self, now_ms: int) -> None:
        self._poll_error = self._raised()
        if self._poll_error is not None:
            return
        self._handle_outcomes()
        self._acknowledge_implicitly()
        # With implicit acknowledgement, all are by now.
        if not self._subscription or not self._held.is_all_acknowledged:
            self._poll_error = ILLEGAL_STATE
            return
        self._sends_fetch = True
        self._run_pass(now_ms)
        self._serve(now_ms)

    def _run_pass(self, now_ms: int) -> None:
        """Run one turn of the loop, up to where it waits (checkInFlightPoll, pollForFetches)."""
        self._maybe_reconcile(now_ms, may_commit=True)
        self._on_consumer_poll()
        self._restart_poll_timer(now_ms)
        wait_ms = min(self._cached_wait_ms, self._call_deadline_ms - now_ms)
        self._app_wake_ms = now_ms + max(wait_ms, 1)
        self._collect(self._held.take_acknowledged(), now_ms)

    def _collect(self, acks: ByPlace, now_ms: int) -> None:
        """Find records for the poll, and send what was acknowledged (collect).

        QUIRK: the error of a partition ends the poll, and the acknowledgements are forgotten.
        """
        held = self._held
        if not held.is_empty or held.has_renewals:
            if held.has_renewals:
                held.take_renewed()
                if held.has_renewals:
                    acks = self._ask_for_records(acks)
            self._acknowledge_async(acks, now_ms)
            self._is_found = not held.is_empty
            return
        fetch, stale, self._poll_error = self._buffer.collect(self._share_config.max_poll_records)
        if stale:
            self._metadata.request_update()
        if self._poll_error is not None:
            return
        self._is_found = not fetch.is_empty
        if self._is_found:
            self._held = fetch
        else:
            self._acknowledge_async(fetch.take_acknowledged(), now_ms)
            acks = self._ask_for_records(acks)
        self._acknowledge_async(acks, now_ms)

    def _ask_for_records(self, acks: ByPlace) -> ByPlace:
        """Fetch, once a poll; return the acknowledgements that do not go along."""
        if not self._sends_fetch:
            return acks
        self._sends_fetch = False
        self._fetch(acks)
        return {}

    def _wake(self, now_ms: int) -> None:
        """Go on with the poll: records came, or it is time to look around."""
        if self._is_found:
            return
        self._collect({}, now_ms)
        self._poll_error = self._poll_error or (None if self._is_found else self._raised())
        if self._poll_error is None and not self._is_found and now_ms < self._call_deadline_ms:
            self._run_pass(now_ms)

    def _maybe_end_call(self, now_ms: int) -> None:
        is_overdue = self._call is AppCall.CLOSE and now_ms >= self._call_deadline_ms
        if is_overdue and self._has_started:
            self._close_promise.complete(now_ms)
        if self._call is AppCall.POLL and self._is_found:
            self._end_poll(now_ms)
        else:
            super()._maybe_end_call(now_ms)

    def _on_poll_ended(self, now_ms: int) -> None:
        del now_ms
        self._app_wake_ms, self._is_found = FOREVER, False
        if self._poll_error is None:
            self._handle_outcomes()

    # The network thread.

    def _serve(self, now_ms: int) -> None:
        """Run one turn, in the order of Java's request managers (ConsumerNetworkThread.runOnce)."""
        self._cached_wait_ms = self._longest_wait_ms(now_ms)
        lookup_ms, beat_ms = self._poll_coordinator(now_ms), self._poll_heartbeat(now_ms)
        self._maybe_reconcile(now_ms, may_commit=True)
        count = len(self._out)
        self._poll_consume(now_ms)
        if len(self._out) > count:
            # What is sent wakes the thread at once, and a new assignment is acknowledged then.
            beat_ms = self._poll_heartbeat(now_ms)
        self._turn_due_ms = now_ms + max(1, min(_LONGEST_TURN_MS, lookup_ms, beat_ms))

    def _fire_due(self, now_ms: int) -> bool:
        is_polling = self._call is AppCall.POLL
        is_awake = is_polling and self._app_wake_ms <= now_ms < self._call_deadline_ms
        if is_awake:
            self._wake(now_ms)
        return is_awake or now_ms >= self._turn_due_ms

    def _next_wake_ms(self) -> int:
        is_polling = self._call is AppCall.POLL
        return min(self._turn_due_ms, self._app_wake_ms if is_polling else FOREVER)

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match response:
            case ShareGroupHeartbeatResponse():
                if pending.kind is RequestKind.HEARTBEAT:
                    self._on_heartbeat(response, now_ms)
            case ShareFetchResponse():
                self._on_share_fetch(pending, response)
                if self._buffer.completed and self._call is AppCall.POLL:
                    self._wake(now_ms)
            case ShareAcknowledgeResponse():
                self._on_share_acknowledge(pending, response, now_ms)
            case FindCoordinatorResponse():
                self._on_find_coordinator(response, now_ms)
            case MetadataResponse():
                self._adopt_metadata(response, now_ms)
            case _:
                name = type(response).__name__
                raise InvariantViolation(f"{name} answers a {pending.kind.value} request")

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        match pending.kind:
            case RequestKind.METADATA:
                self._metadata_failed(now_ms)
            case RequestKind.LOOKUP:
                self._lookup_failed(error, now_ms)
            case RequestKind.HEARTBEAT:
                self._heartbeat_lost(error, now_ms)
            case RequestKind.SHARE_FETCH:
                self._share_fetch_lost(pending, error)
            case RequestKind.SHARE_ACKNOWLEDGE:
                self._share_acknowledge_lost(pending, error, now_ms)
            case _:
                pass  # nobody waits for the answer to a leave

    def _offer_callback(self) -> None:
        """Run none: a share consumer has no rebalance callbacks."""

    # Membership.

    def _heartbeat_request(self) -> ShareGroupHeartbeatRequest:
        """Tell rack and topics when joining, and what has changed (HeartbeatState)."""
        rack: str | None = None
        if self._sent_rack is None:
            rack = self._sent_rack = self._config.client_rack or None
        topics: tuple[str, ...] | None = None
        if self._member_state is MemberState.JOINING or self._subscription != self._sent_topics:
            topics, self._sent_topics = self._subscription, self._subscription
        return ShareGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self._generation_id,
            rack_id=rack,
            subscribed_topic_names=topics,
        )

    def _reset_sent_fields(self) -> None:
        self._sent_rack = self._sent_topics = None

    def _assign(self, step: Step) -> Promise:
        self._assigned = dict.fromkeys(step.assigned)
        return kept()

    def _on_subscription_changed(self, now_ms: int) -> None:
        del now_ms
        self._subscription_updated = True

    def _on_consumed(self, partition: TopicPartition, offset: int) -> None:
        """Keep no positions: the brokers know what is acknowledged."""

    def _commit_for_application(
        self, token: int, offsets: dict[TopicPartition, int], now_ms: int
    ) -> None:
        raise InvariantViolation(f"commit {token} of {offsets} at {now_ms}: acknowledge instead")

    # Closing: the last acknowledgements, then leave.

    def _begin_close(self, now_ms: int) -> None:
        """Close; what was delivered and not acknowledged is left to others (ShareConsumerImpl)."""
        limit_ms = now_ms + self._config.request_timeout_ms
        self._call_deadline_ms = deadline_ms = min(self._call_deadline_ms, limit_ms)
        acks = self._held.take_acknowledged()
        self._acknowledge_on_close(acks, deadline_ms, now_ms).then(self._close_acknowledged, now_ms)

    def _close_acknowledged(self, error: str | None, now_ms: int) -> None:
        del error
        self._unsubscribe()
        self._close_leave(now_ms)
        self._poll_heartbeat(now_ms)

    def _close_left(self, error: str | None, now_ms: int) -> None:
        self._stops_lookups = True
        self._handle_outcomes()
        super()._close_left(error, now_ms)
