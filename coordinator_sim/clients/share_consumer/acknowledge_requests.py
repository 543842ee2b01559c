"""ShareAcknowledge requests to one broker over all attempts: asynchronous, synchronous, the last.

Source: kafka 4.4, clients/.../consumer/internals/ShareConsumeRequestManager.java,
AcknowledgeRequestState, ResultHandler and Tuple.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, unique

from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.async_consumer.request_states import RequestState
from coordinator_sim.clients.exceptions import TIMEOUT
from coordinator_sim.clients.share_consumer.acknowledgements import (
    Acknowledgements,
    TopicIdPartition,
    in_java_order,
)
from coordinator_sim.clients.share_consumer.sessions import ShareSession

Outcomes = dict[TopicIdPartition, Acknowledgements]
Events = deque[tuple[Outcomes, bool]]
"""Messages to the application: outcomes, and whether to look for renewals among them."""
INVALID_RESPONSE = "InvalidRecordStateException"
"""The outcome of acknowledgements of which a response says nothing."""


@unique
class AcknowledgeKind(Enum):
    """Which call of the application a request belongs to."""

    COMMIT_ASYNC = "COMMIT_ASYNC"
    COMMIT_SYNC = "COMMIT_SYNC"
    CLOSE = "CLOSE"


class Results:
    """Gathers the outcomes of one call (ResultHandler).

    Args:
        events: Takes them for the application (maybeSendShareAcknowledgementEvent).
        is_gathered: Whether one event has all of them, when the last one is known.

    Attributes:
        ended: Kept when the last one is known.
        remaining: Number of partitions without an outcome.
    """

    __slots__ = ("_events", "_found", "_is_gathered", "ended", "remaining")

    def __init__(self, events: Events, *, is_gathered: bool) -> None:
        self._events = events
        self._is_gathered = is_gathered
        self._found: Outcomes = {}
        self.ended = Promise()
        self.remaining = 0

    @property
    def first_error(self) -> str | None:
        """Name of the first partition's exception; None if all succeeded."""
        return next((each.error for each in self._found.values() if each.error), None)

    def complete(
        self, tip: TopicIdPartition, outcome: Acknowledgements, now_ms: int, *, renews: bool
    ) -> None:
        """Take one outcome."""
        if not self._is_gathered:
            self._events.append(({tip: outcome}, renews))
            return
        self._found[tip] = outcome
        self.remaining -= 1
        if self.remaining == 0:
            self._events.append((self._found, renews))
            self.ended.complete(now_ms, self.first_error)

    def complete_if_empty(self, now_ms: int) -> None:
        """End a call that waits for nothing."""
        if self._is_gathered and self.remaining == 0:
            self.ended.complete(now_ms, self.first_error)


class AcknowledgeRequest:
    """One request over all attempts (AcknowledgeRequestState).

    Attributes:
        to_send: Acknowledgements of the next attempt, unless some are `incomplete`.
        incomplete: Those of a failed attempt that is to be repeated.
        in_flight: Those without an answer.
        is_processed: Whether an answer, or a failure for good, has been taken.
    """

    __slots__ = ("_deadline_ms", "_results", "_timeout_ms", "in_flight", "incomplete",
                 "is_processed", "kind", "node_id", "session", "state", "to_send")  # fmt: skip

    def __init__(  # noqa: PLR0913 - a request, and for whom it is, by keyword
        self,
        kind: AcknowledgeKind,
        node_id: int,
        session: ShareSession,
        *,
        state: RequestState,
        results: Results,
        now_ms: int,
        deadline_ms: int,
    ) -> None:
        self.kind = kind
        self.node_id = node_id
        self.session = session
        self.state = state
        self._results = results
        self._deadline_ms = deadline_ms
        self._timeout_ms = max(0, deadline_ms - now_ms)
        self.to_send: Outcomes = {}
        self.incomplete: Outcomes = {}
        self.in_flight: Outcomes = {}
        self.is_processed = False

    @property
    def is_close(self) -> bool:
        """Whether it ends the session."""
        return self.kind is AcknowledgeKind.CLOSE

    @property
    def is_in_progress(self) -> bool:
        """Whether something is still to be done (isRequestStateInProgress)."""
        if self.is_close:
            return not self.is_processed
        return bool(self.to_send or self.incomplete or self.in_flight)

    def expired(self, now_ms: int) -> bool:
        """Give up what failed before, if the time is over (maybeExpire); return whether it is."""
        if not self.state.attempts or now_ms < self._deadline_ms:
            return False
        for tip, each in in_java_order(self.incomplete):
            each.complete(TIMEOUT)
            self._results.complete(tip, each, now_ms, renews=True)
        self.incomplete.clear()
        self._restart(now_ms)
        return True

    def taken_in_flight(self) -> None:
        """Count the acknowledgements of the next attempt as sent."""
        sent = self.incomplete or self.to_send
        self.in_flight.update(sent)
        sent.clear()

    def fail_unsendable(self, error_of: Callable[[TopicIdPartition], str], now_ms: int) -> None:
        """Fail what cannot be sent (failPendingAcknowledgementsCannotBeSent)."""
        unsent = self.incomplete or self.to_send
        for tip, each in in_java_order(unsent):
            each.complete(error_of(tip))
            self._results.complete(tip, each, now_ms, renews=True)
        unsent.clear()
        self.end_attempt(now_ms)

    def complete(
        self, tip: TopicIdPartition, error: str | None, now_ms: int, *, renews: bool
    ) -> None:
        """Take a partition's outcome (handleAcknowledgeErrorCode)."""
        outcome = self.in_flight.pop(tip, None)
        if outcome is not None:
            outcome.complete(error)
            self._results.complete(tip, outcome, now_ms, renews=renews)

    def fail_in_flight(self, error: str, now_ms: int) -> None:
        """Fail what is left in flight (processPendingInFlightAcknowledgements)."""
        for tip, _ in in_java_order(self.in_flight):
            self.complete(tip, error, now_ms, renews=True)

    def retry(self, tip: TopicIdPartition) -> bool:
        """Send a partition's acknowledgements again (moveToIncompleteAcks)."""
        outcome = self.in_flight.pop(tip, None)
        if outcome is not None:
            self.incomplete[tip] = outcome
        return outcome is not None

    def end_attempt(self, now_ms: int) -> None:
        """End an attempt that is not repeated (processingComplete)."""
        self.fail_in_flight(INVALID_RESPONSE, now_ms)
        self._results.complete_if_empty(now_ms)
        self.is_processed = True
        self._restart(now_ms)

    def _restart(self, now_ms: int) -> None:
        """Let an asynchronous request take further acknowledgements in."""
        if self.kind is AcknowledgeKind.COMMIT_ASYNC:
            self._deadline_ms = now_ms + self._timeout_ms
            self.state.reset()


class NodeRequests:
    """The acknowledge requests of one broker (Tuple)."""

    __slots__ = ("close", "commit_async", "commits_sync")

    def __init__(self) -> None:
        self.commit_async: AcknowledgeRequest | None = None
        self.commits_sync: list[AcknowledgeRequest] = []
        self.close: AcknowledgeRequest | None = None

    def prune(self) -> bool:
        """Drop requests that are done; return whether nothing is left."""
        if self.commit_async is not None and not self.commit_async.is_in_progress:
            self.commit_async = None
        if not any(each.is_in_progress for each in self.commits_sync):
            self.commits_sync = []
        if self.close is not None and not self.close.is_in_progress:
            self.close = None
        return not (self.commit_async or self.commits_sync or self.close)
