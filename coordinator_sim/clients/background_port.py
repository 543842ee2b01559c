"""Base of consumers whose group protocol runs independently of the application's polls.

Java's client serves its group while the application polls. librdkafka has a main thread for it,
franz-go goroutines: joins go on while the application processes records. This module has the verbs
of a port, requests and connections, metadata, and the queue of callbacks; no group logic.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Unpack

from coordinator_sim.clients import effects
from coordinator_sim.clients.background_requests import BackgroundRequests, ConsumerSetup
from coordinator_sim.clients.client_traits import ClientTraits
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import WAKEUP
from coordinator_sim.clients.network import (
    FOREVER,
    PendingRequest,
)
from coordinator_sim.clients.port_core import AppCall
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.requests import Response


class PendingCallback(NamedTuple):
    """A callback that the application has not run yet, and its continuation."""

    kind: effects.CallbackKind
    partitions: tuple[TopicPartition, ...]
    then: Callable[[int], None]


class BackgroundPort(BackgroundRequests, ABC):
    """A consumer as its driver sees it; subclasses are the group machines."""

    __slots__ = (
        "_call",
        "_call_deadline_ms",
        "_callback",
        "_callback_token",
        "_callbacks",
        "_deadline_ms",
        "_has_started",
        "_next_token",
        "_poll_error",
        "_wakeup_requested",
        "max_poll_records",
    )

    def __init__(
        self, config: ConsumerConfig, traits: ClientTraits, **setup: Unpack[ConsumerSetup]
    ) -> None:
        super().__init__(config, traits, **setup)
        self.max_poll_records = config.max_poll_records
        self._callbacks: deque[PendingCallback] = deque()
        self._callback: PendingCallback | None = None
        self._callback_token = 0
        self._next_token = 1
        self._call = AppCall.NONE
        self._call_deadline_ms = FOREVER
        self._deadline_ms = FOREVER
        self._has_started = False
        self._wakeup_requested = False
        self._poll_error: str | None = None

    # What the driver sees and tells.

    @property
    def traits(self) -> ClientTraits:
        """Values in which the client differs from Java's."""
        return self._traits

    @property
    def member_id(self) -> str:
        """Member id given by the coordinator; empty before, and after a reset."""
        return self._member_id

    @property
    def generation_id(self) -> int:
        """Generation the member believes to be in; -1 for none."""
        return self._generation_id

    @property
    def coordinator_node(self) -> int | None:
        """Broker that coordinates the group, as far as the member knows; None when unknown."""
        return self._coordinator_id

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions assigned now, by topic and partition."""
        return tuple(sorted(self._assigned))

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every partition that may be consumed now."""
        return {tp: offset for tp, offset in self._assigned.items() if offset is not None}

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Positions of the partitions to fetch from."""
        return self.positions

    @property
    def awaits_records(self) -> bool:
        """Whether records that arrive now would end the application's poll."""
        return self._call is AppCall.POLL and not self._is_app_in_callback()

    def advance_position(self, partition: TopicPartition, offset: int) -> None:
        """Record consumption up to `offset`; ignored where the partition is not assigned."""
        if partition in self._assigned:
            self._assigned[partition] = offset
            self._on_consumed(partition, offset)

    def advance_all(self, partitions: Collection[TopicPartition], offset: int) -> bool:
        """Record consumption up to `offset` of all partitions, if these are all."""
        if len(partitions) != len(self._assigned):
            return False
        for partition in partitions:
            self.advance_position(partition, offset)
        return True

    def next_deadline_ms(self) -> int | None:
        """The one alarm to arm; None when only an event from outside can matter."""
        return self._deadline_ms if self._deadline_ms < FOREVER else None

    def poll(self, now_ms: int, timeout_ms: int) -> effects.Effects:
        """Begin the application's poll; the first one starts the client. Ends with `PollReturned`.

        Raises:
            InvariantViolation: the application is in a call.
        """
        if self._call is not AppCall.NONE:
            raise InvariantViolation(f"poll during {self._call.value}: one call at a time")
        self._call = AppCall.POLL
        self._call_deadline_ms = now_ms + timeout_ms
        if not self._has_started:
            self._has_started = True
            self._on_start(now_ms)
        self._on_poll(now_ms)
        return self._settle(now_ms, woken=False)

    def expire(self, now_ms: int) -> effects.Effects:
        """Fire every deadline up to now."""
        if self._is_closed():
            return ()
        return self._settle(now_ms, woken=self._fire_due(now_ms))

    def on_connected(self, node_id: int, now_ms: int) -> effects.Effects:
        """Send what waited for this connection."""
        self._net.on_connected(node_id)
        return self._settle(now_ms)

    def on_disconnected(self, node_id: int, now_ms: int) -> effects.Effects:
        """Fail the requests of this connection."""
        self._on_link_broken(node_id, now_ms)
        self._net.on_disconnected(node_id, now_ms)
        return self._settle(now_ms)

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> effects.Effects:
        """Handle an answer; unknown ids are ignored."""
        pending = self._net.take(correlation_id)
        if pending is None:
            return ()
        self._dispatch(pending, response, now_ms)
        return self._settle(now_ms)

    @abstractmethod
    def on_unexpected_response(self, node_id: int, now_ms: int) -> effects.Effects:
        """Handle an answer that is not the one to the oldest request of its connection."""

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> effects.Effects:
        """Continue after an application callback; an exception it raised is ignored.

        Raises:
            InvariantViolation: no callback with this token is outstanding.
        """
        callback, self._callback = self._callback, None
        if callback is None or token != self._callback_token:
            raise InvariantViolation(f"callback {token} ({outcome}) is not outstanding")
        if self._is_closed():
            return ()
        callback.then(now_ms)
        return self._settle(now_ms)

    def wakeup(self, now_ms: int) -> effects.Effects:
        """End the poll in progress, or the next one at once; a callback completes first."""
        self._wakeup_requested = True
        return self._settle(now_ms, woken=False)

    def fetch_completed(self, now_ms: int) -> effects.Effects:
        """Return from a poll that only waits for records."""
        if self.awaits_records:
            self._end_poll(now_ms)
        return self._settle(now_ms, woken=False)

    def positions_found(self, found: Mapping[TopicPartition, int], now_ms: int) -> effects.Effects:
        """Adopt the answer to `ResetPositions`; ignored where a position is known by now."""
        for partition, offset in found.items():
            if partition in self._assigned and self._assigned[partition] is None:
                self._assigned[partition] = offset
        return self._settle(now_ms, woken=False)

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, effects.Effects]:
        """Commit the offsets; the commit ends with `CommitCompleted` and the returned token.

        Only the application knows whether it waits for the end (`sync`).
        """
        del sync
        token = self._next_token
        self._next_token += 1
        if offsets:
            self._commit_for_application(token, dict(sorted(offsets.items())), now_ms)
        else:
            self._out.append(effects.CommitCompleted(token=token))
        return token, self._settle(now_ms)

    def topic_unknown(self, now_ms: int) -> effects.Effects:
        """Ask for metadata, as a fetch was answered with UNKNOWN_TOPIC_OR_PARTITION.

        Source: kafka 4.4, FetchCollector.handleInitializeErrors; librdkafka, rdkafka_fetcher.c;
        franz-go, source.handleReqResp.
        """
        self._metadata.request_update()
        return self._settle(now_ms)

    def subscribe(self, topics: Sequence[str], now_ms: int) -> effects.Effects:
        """Replace the subscription and rejoin."""
        self._subscription = tuple(sorted(dict.fromkeys(topics)))
        self._metadata.wanted_topics = self._subscription
        self._metadata.request_update()
        self._on_subscription_changed(now_ms)
        return self._settle(now_ms)

    def close(self, now_ms: int, timeout_ms: int) -> effects.Effects:
        """Leave the group where the client would; ends with `Closed`.

        Raises:
            InvariantViolation: the port is closed or closing.
        """
        if self._call in (AppCall.CLOSE, AppCall.CLOSED):
            raise InvariantViolation(f"close during {self._call.value}")
        self._call = AppCall.CLOSE
        self._call_deadline_ms = now_ms + timeout_ms
        if self._has_started:
            self._begin_close(now_ms)
        else:
            self._finish_close()
        return self._settle(now_ms)

    # Calls and callbacks.

    def _is_app_in_callback(self) -> bool:
        return self._callback is not None and self._traits.callbacks_need_poll

    def _enqueue_callback(
        self,
        kind: effects.CallbackKind,
        partitions: Sequence[TopicPartition],
        then: Callable[[int], None],
    ) -> None:
        self._callbacks.append(PendingCallback(kind, tuple(partitions), then))

    def _offer_callback(self) -> None:
        """Run the next callback once the application is free to run it."""
        if not self._callbacks or self._callback is not None:
            return
        if self._traits.callbacks_need_poll and self._call not in (AppCall.POLL, AppCall.CLOSE):
            return
        self._callback = self._callbacks.popleft()
        self._callback_token = self._next_token
        self._next_token += 1
        self._out.append(
            effects.RunCallback(
                token=self._callback_token,
                kind=self._callback.kind,
                partitions=self._callback.partitions,
            )
        )

    def _maybe_end_call(self, now_ms: int) -> None:
        if self._is_app_in_callback():
            return
        if self._call is AppCall.POLL:
            if self._wakeup_requested:
                self._wakeup_requested = False
                self._poll_error = self._poll_error or WAKEUP
                self._end_poll(now_ms)
            elif self._poll_error is not None or now_ms >= self._call_deadline_ms:
                self._end_poll(now_ms)
        elif self._call is AppCall.CLOSE and now_ms >= self._call_deadline_ms:
            self._finish_close()

    def _end_poll(self, now_ms: int) -> None:
        self._call = AppCall.NONE
        self._call_deadline_ms = FOREVER
        self._on_poll_ended(now_ms)
        error, self._poll_error = self._poll_error, None
        self._out.append(effects.PollReturned(error))

    def _finish_close(self) -> None:
        self._call = AppCall.CLOSED
        self._net.close()
        self._callbacks.clear()
        self._out.append(effects.Closed())

    # The loop.

    def _settle(self, now_ms: int, *, woken: bool = True) -> effects.Effects:
        """Let the group's thread run as far as it can; return the requested effects.

        Args:
            now_ms: The present instant.
            woken: Whether the event wakes the group's thread.
        """
        net = self._net
        if self._has_started and not self._is_closed():
            if now_ms >= net.deadline_ms:
                net.expire(now_ms)
            while net.failed:
                self._on_failure(*net.failed.popleft(), now_ms)
                woken = True
            self._refresh_metadata(now_ms)
            if woken:
                self._serve(now_ms)
        if self._call is not AppCall.CLOSED:
            self._offer_callback()
            self._maybe_end_call(now_ms)
        self._arm()
        out = tuple(self._out)
        self._out.clear()
        return out

    def _arm(self) -> None:
        if self._call is AppCall.CLOSED:
            self._deadline_ms = FOREVER
            return
        deadline_ms = FOREVER
        if self._has_started:
            deadline_ms = min(self._net.deadline_ms, self._metadata.due_ms, self._next_wake_ms())
        if not self._is_app_in_callback():
            deadline_ms = min(deadline_ms, self._call_deadline_ms)
        self._deadline_ms = deadline_ms

    def _is_closed(self) -> bool:
        return self._call is AppCall.CLOSED

    def _on_link_broken(self, node_id: int, now_ms: int) -> None:
        """Record that a connection broke; its requests in flight fail next."""

    # What a client provides.

    @abstractmethod
    def _on_start(self, now_ms: int) -> None:
        """Start the client: the application has subscribed and polls for the first time."""

    @abstractmethod
    def _on_poll(self, now_ms: int) -> None:
        """Handle the beginning of an application's poll."""

    @abstractmethod
    def _on_poll_ended(self, now_ms: int) -> None:
        """Handle the end of an application's poll."""

    @abstractmethod
    def _on_consumed(self, partition: TopicPartition, offset: int) -> None:
        """Record that the application received the records before `offset`."""

    @abstractmethod
    def _commit_for_application(
        self, token: int, offsets: dict[TopicPartition, int], now_ms: int
    ) -> None:
        """Commit offsets for the application; ends with `CommitCompleted`."""

    @abstractmethod
    def _on_subscription_changed(self, now_ms: int) -> None:
        """Handle a changed subscription."""

    @abstractmethod
    def _begin_close(self, now_ms: int) -> None:
        """Leave the group, then call `_finish_close`."""

    @abstractmethod
    def _fire_due(self, now_ms: int) -> bool:
        """Fire the client's own timers; return whether that woke the group's thread."""

    @abstractmethod
    def _serve(self, now_ms: int) -> None:
        """Run one turn of the group's thread."""

    @abstractmethod
    def _next_wake_ms(self) -> int:
        """Return the earliest of the client's own timers."""

    @abstractmethod
    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        """Pass an answer to its handler."""

    @abstractmethod
    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Handle a request that will not be answered."""
