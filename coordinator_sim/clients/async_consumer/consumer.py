"""The application's side of the consumer protocol: poll, commit, close; and one thread's turn.

Java has two threads. The network thread sends what is due whenever something happens; the
application's tells it of each poll, and runs the callbacks that it has been asked for. The
application asks for them at the beginning of a turn of its loop: a callback that becomes due while
it waits for records is run with the next turn.

DEVIATION: the network thread takes up at once what the application tells it.

Source: kafka 4.4, clients/.../consumer/internals/AsyncKafkaConsumer.java,
ConsumerNetworkThread.java, events/ApplicationEventProcessor.java.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.consumer_membership import ConsumerMembership
from coordinator_sim.clients.async_consumer.membership import AppEvent
from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.background_port import PendingCallback
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import (
    CallbackKind,
    CommitCompleted,
    Effects,
    RunCallback,
    StreamsTasks,
)
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, TIMEOUT
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN, AppCall
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from coordinator_sim.messages.offset_commit import OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.requests import Response

_LONGEST_TURN_MS: Final = 5_000
"""Longest wait of the network thread. Source: ConsumerNetworkThread.MAX_POLL_TIMEOUT_MS."""
_FETCH_WAIT_MS: Final = 500
"""Default of `fetch.max.wait.ms`: a fetch without records wakes the application then."""


class _PollEvent:
    """State of one poll, set by the network thread. Source: AsyncPollEvent."""

    __slots__ = ("deadline_ms", "error", "is_complete")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.is_complete = False
        self.error: str | None = None


class AsyncConsumer(ConsumerMembership):
    """The port of a consumer with `group.protocol=consumer`.

    Args:
        config: Timeouts and switches.
        setup: See `MemberSetup`; `assignors` are of no use here, and empty.
    """

    __slots__ = (
        "_app_wake_ms",
        "_callback_error",
        "_draining",
        "_fetch_wake_ms",
        "_inflight_poll",
        "_pass_error",
        "_turn_due_ms",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._app_wake_ms = FOREVER
        self._callback_error: str | None = None
        self._draining: deque[AppEvent] = deque()
        self._fetch_wake_ms = FOREVER
        self._inflight_poll: _PollEvent | None = None
        self._pass_error: str | None = None
        self._turn_due_ms = FOREVER

    # The application's calls.

    def subscribe_regex(self, regex: str, now_ms: int) -> Effects:
        """Subscribe to the topics that match an RE2 expression, which the coordinator resolves."""
        self._subscription, self._metadata.wanted_topics = (), ()
        self._regex = regex
        self._subscription_updated = True
        return self._settle(now_ms)

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, Effects]:
        """Commit the offsets; the commit ends with `CommitCompleted` and the returned token."""
        token, self._next_token = self._next_token, self._next_token + 1

        def ended(error: str | None, at_ms: int) -> None:
            del at_ms
            self._out.append(CommitCompleted(token=token, error=error))

        if not offsets:
            ended(None, now_ms)
        elif sync:
            deadline_ms = now_ms + self._config.default_api_timeout_ms
            self._commit_sync(dict(offsets), deadline_ms, now_ms).then(ended, now_ms)
        else:
            self._commit_async(dict(offsets), now_ms).then(ended, now_ms)
        return token, self._settle(now_ms)

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:
        """Continue after an application callback; its exception stops a reconciliation.

        Raises:
            InvariantViolation: no callback with this token is outstanding.
        """
        if token == NOTIFICATION_TOKEN:
            return ()
        callback, self._callback = self._callback, None
        if callback is None or token != self._callback_token:
            raise InvariantViolation(f"callback {token} is not outstanding")
        if self._is_closed():
            return ()
        self._callback_error = outcome
        callback.then(now_ms)
        return self._settle(now_ms)

    # The application's loop.

    def _on_start(self, now_ms: int) -> None:
        self._restart_auto_commit(now_ms)
        self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms

    def _on_poll(self, now_ms: int) -> None:
        if not self._subscription and self._regex is None:
            self._poll_error = ILLEGAL_STATE
            return
        before = self._inflight_poll
        if before is not None and (before.is_complete or now_ms >= before.deadline_ms):
            # Source: maybeClearPreviousInflightPoll.
            self._inflight_poll = None
            if before.error is not None:
                self._poll_error = before.error
                return
        self._run_pass(now_ms)
        self._serve(now_ms)

    def _run_pass(self, now_ms: int) -> None:
        """Run one turn of the loop of `poll`, up to a callback or to where it waits.

        Source: AsyncKafkaConsumer.poll, checkInflightPoll, pollForFetches.
        """
        self._app_wake_ms = FOREVER
        self._draining, self._app_events = self._app_events, deque()
        event = self._inflight_poll
        is_new = event is None
        if event is None:
            event = self._inflight_poll = _PollEvent(self._call_deadline_ms)
            self._take_poll_event(event, now_ms)
        elif event.is_complete or now_ms >= event.deadline_ms:
            self._pass_error = self._pass_error or event.error
            self._inflight_poll = None
        if is_new and event.is_complete and event.error is not None:
            self._pass_error = self._pass_error or event.error
            self._inflight_poll = None
        self._drain(now_ms)

    def _drain(self, now_ms: int) -> None:
        """Handle what the network thread asks for (processBackgroundEvents)."""
        while self._draining:
            event = self._draining.popleft()
            if event.error is not None:
                self._pass_error = self._pass_error or event.error
                continue
            if event.assignment is not None:
                self._apply_assignment(event.assignment, event.partitions)
            self._start_callback(event)
            return
        self._end_pass(now_ms)

    def _start_callback(self, event: AppEvent) -> None:
        def completed(now_ms: int) -> None:
            error = self._callback_error
            self._pass_error = self._pass_error or error
            event.outcome.complete(now_ms, error)
            self._drain(now_ms)

        self._run_callback(event.kind, event.partitions, completed, event.streams)

    def _run_callback(
        self,
        kind: CallbackKind,
        partitions: tuple[TopicPartition, ...],
        then: Callable[[int], None],
        streams: StreamsTasks | None = None,
    ) -> None:
        self._callback = PendingCallback(kind, partitions, then)
        self._callback_token = token = self._next_token
        self._next_token += 1
        self._out.append(
            RunCallback(token=token, kind=kind, partitions=partitions, streams=streams)
        )

    def _end_pass(self, now_ms: int) -> None:
        if self._call is not AppCall.POLL:
            return
        error, self._pass_error = self._pass_error, None
        if error is not None:
            self._inflight_poll = None
            self._poll_error = error
            return
        wait_ms = min(self._longest_wait_ms(now_ms), self._call_deadline_ms - now_ms)
        if not self._assigned or self._lacks_position():
            wait_ms = min(wait_ms, self._config.retry_backoff_ms)
        self._app_wake_ms = now_ms + max(wait_ms, 1)

    def _on_poll_ended(self, now_ms: int) -> None:
        del now_ms
        self._app_wake_ms = FOREVER
        self._fetch_wake_ms = FOREVER

    def _take_poll_event(self, event: _PollEvent, now_ms: int) -> None:
        """Do what a poll is the time for (ApplicationEventProcessor.process, AsyncPollEvent)."""
        self._maybe_reconcile(now_ms, may_commit=True)
        self._maybe_commit_by_interval(now_ms)
        self._on_consumer_poll()
        self._restart_poll_timer(now_ms)

        def updated(error: str | None, at_ms: int) -> None:
            event.is_complete = True
            event.error = None if error == TIMEOUT else error
            if error is None and self._fetch_wake_ms == FOREVER and self.fetchable:
                self._fetch_wake_ms = at_ms + _FETCH_WAIT_MS

        self._update_positions(event.deadline_ms, now_ms).then(updated, now_ms)

    def _offer_callback(self) -> None:
        """Leave callbacks to the turns of the loop."""

    # The network thread.

    def _serve(self, now_ms: int) -> None:
        """Run one turn, in the order of Java's request managers (ConsumerNetworkThread.runOnce)."""
        waits = [
            self._poll_coordinator(now_ms),
            self._poll_commits(now_ms),
            self._poll_heartbeat(now_ms),
        ]
        self._maybe_reconcile(now_ms, may_commit=False)
        waits.append(self._poll_offset_fetch(now_ms))
        self._turn_due_ms = now_ms + max(1, min(_LONGEST_TURN_MS, *waits))

    def _fire_due(self, now_ms: int) -> bool:
        is_waiting = self._call is AppCall.POLL and self._callback is None
        woken = min(self._app_wake_ms, self._fetch_wake_ms)
        if is_waiting and woken <= now_ms < self._call_deadline_ms:
            if now_ms >= self._fetch_wake_ms:
                self._fetch_wake_ms = FOREVER
            self._run_pass(now_ms)
            return True
        return now_ms >= self._turn_due_ms

    def _next_wake_ms(self) -> int:
        if self._call is AppCall.POLL and self._callback is None:
            return min(self._turn_due_ms, self._app_wake_ms, self._fetch_wake_ms)
        return self._turn_due_ms

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match response:
            case ConsumerGroupHeartbeatResponse():
                if pending.kind is RequestKind.HEARTBEAT:
                    self._on_heartbeat(response, now_ms)
            case FindCoordinatorResponse():
                self._on_find_coordinator(response, now_ms)
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
        match pending.kind:
            case RequestKind.METADATA:
                self._metadata_failed(now_ms)
            case RequestKind.LOOKUP:
                self._lookup_failed(error, now_ms)
            case RequestKind.HEARTBEAT:
                self._heartbeat_lost(error, now_ms)
            case RequestKind.COMMIT:
                self._commit_lost(pending, error, now_ms)
            case RequestKind.OFFSET_FETCH:
                self._offset_fetch_failed(error, now_ms)
            case _:
                pass  # nobody waits for the answer to a leave

    def _metadata_request(self) -> MetadataRequest:
        """Ask for the subscribed topics; with a regex for those assigned (ConsumerMetadata)."""
        if self._regex is None:
            return super()._metadata_request()
        ids = self._target.partitions
        return MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=each, name=None) for each in ids)
        )

    def _commit_for_application(
        self, token: int, offsets: dict[TopicPartition, int], now_ms: int
    ) -> None:
        raise InvariantViolation(f"commit {token} of {offsets} at {now_ms} goes by `commit`")

    def _on_consumed(self, partition: TopicPartition, offset: int) -> None:
        """Commits take the positions themselves."""

    def _on_subscription_changed(self, now_ms: int) -> None:
        del now_ms
        self._regex = None
        self._subscription_updated = True

    # Closing: commit, callbacks, leave.

    def _begin_close(self, now_ms: int) -> None:
        """Close. Source: AsyncKafkaConsumer.close."""
        limit_ms = now_ms + self._config.request_timeout_ms
        self._call_deadline_ms = deadline_ms = min(self._call_deadline_ms, limit_ms)
        committed = Promise()
        if self._config.enable_auto_commit:
            committed = self._commit_sync(self.positions, deadline_ms, now_ms)
        else:
            committed.complete(now_ms)
        committed.then(self._close_committed, now_ms)

    def _close_committed(self, error: str | None, now_ms: int) -> None:
        """Go on although the commit failed; run the callbacks (runRebalanceCallbacksOnClose)."""
        del error
        self._refuses_commits = self._stops_lookups = True
        owned = self.owned_partitions
        if not owned:
            self._close_leave(now_ms)
            return
        is_member = self._generation_id > 0
        kind = CallbackKind.PARTITIONS_REVOKED if is_member else CallbackKind.PARTITIONS_LOST
        self._run_callback(kind, owned, self._close_leave)
