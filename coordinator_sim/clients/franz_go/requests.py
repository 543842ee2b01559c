"""Requests to the coordinator, each retried until its time is over.

franz-go wraps every request: a broker that is not the coordinator is forgotten and looked up again,
a broken connection is reopened, both after a backoff that grows with the tries of this request. The
caller sees none of that. JoinGroup and SyncGroup, which may be parked, have a separate connection.

Source: franz-go 1.22, pkg/kgo/client.go, retryable.Request, shouldRetry,
maybeDeleteStaleCoordinator, validateCfg (retryTimeout); errors.go, isRetryableBrokerErr.
"""

import heapq
from abc import abstractmethod
from collections.abc import Callable
from itertools import count
from typing import Final, Unpack

from coordinator_sim.clients.background_port import BackgroundPort
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.client_traits import FRANZ_GO
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import Effects
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupResponse

_MAX_TRIES: Final = 20
"""Number of tries, `RequestRetries`."""
_RETRY_TIMEOUT_MS: Final = 30_000
_COORDINATOR_GONE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_APART: Final = (RequestKind.JOIN, RequestKind.SYNC)
_WITHIN_SESSION: Final = (RequestKind.JOIN, RequestKind.SYNC, RequestKind.HEARTBEAT)

Answered = Callable[[Response | None, int], None]
"""Called with the answer and the instant; None when no more tries were left."""


class Question:
    """A request to the coordinator over all its tries."""

    __slots__ = ("answered", "began_ms", "kind", "request", "try_count")

    def __init__(
        self, kind: RequestKind, request: Request, answered: Answered, began_ms: int
    ) -> None:
        self.kind = kind
        self.request = request
        self.answered = answered
        self.began_ms = began_ms
        self.try_count = 0


class FranzGoRequests(BackgroundPort):
    """Sends requests to the coordinator, and keeps the client's timers."""

    __slots__ = (
        "_asked",
        "_awaiting_coordinator",
        "_broken_nodes",
        "_looks_up",
        "_lookup_tries",
        "_timer_order",
        "_timers",
        "_unread_nodes",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, FRANZ_GO, **setup)
        self._asked: dict[int, Question] = {}
        self._awaiting_coordinator: list[Question] = []
        self._broken_nodes: dict[int, None] = {}
        self._looks_up = False
        self._lookup_tries = 0
        self._timers: list[tuple[int, int, Callable[[int], None]]] = []
        self._timer_order = count()
        # Nodes from which an answer came that no request has read.
        self._unread_nodes: dict[int, None] = {}

    # Timers.

    def _call_at(self, at_ms: int, action: Callable[[int], None]) -> None:
        heapq.heappush(self._timers, (at_ms, next(self._timer_order), action))

    def _fire_due(self, now_ms: int) -> bool:
        fired = False
        while self._timers and self._timers[0][0] <= now_ms:
            fired = True
            heapq.heappop(self._timers)[2](now_ms)
        return fired or now_ms >= self._next_wake_ms()

    def _next_wake_ms(self) -> int:
        return self._timers[0][0] if self._timers else FOREVER

    # Questions.

    def _ask(self, kind: RequestKind, request: Request, answered: Answered, now_ms: int) -> None:
        """Send a request to the coordinator, with as many tries as needed."""
        self._try(Question(kind, request, answered, now_ms), now_ms)

    def _try(self, question: Question, now_ms: int) -> None:
        if self._coordinator_id is None:
            self._awaiting_coordinator.append(question)
            self._look_up(now_ms)
            return
        question.try_count += 1
        node_id = self._coordinator_id
        if question.kind in _APART:
            node_id = self._coordinator_node_id
        if node_id in self._broken_nodes:
            # A connection that broke while idle is noticed by the first request on it.
            del self._broken_nodes[node_id]
            self._try_again(question, None, now_ms)
            return
        timeout_ms = self._timeout_ms(question.kind)
        pending = self._request(question.kind, node_id, question.request, now_ms, timeout_ms)
        self._asked[pending.correlation_id] = question

    def _timeout_ms(self, kind: RequestKind) -> int:
        """Return the time limit for an answer. Source: pkg/kgo/client.go, connTimeouter."""
        rebalance_timeout_ms = self._config.rebalance_timeout_ms
        if kind is RequestKind.JOIN:
            return rebalance_timeout_ms + self._traits.join_timeout_lapse_ms
        if kind is RequestKind.SYNC:
            return rebalance_timeout_ms
        return self._config.request_timeout_ms

    def _try_again(self, question: Question, answer: Response | None, now_ms: int) -> None:
        """Wait and send again; without tries or time left, deliver the last answer."""
        backoff_ms = self._backoff_ms(question.try_count)
        late_ms = now_ms + backoff_ms - question.began_ms
        if question.try_count <= _MAX_TRIES and late_ms <= self._retry_timeout_ms(question.kind):
            self._call_at(now_ms + backoff_ms, lambda at_ms: self._try(question, at_ms))
        else:
            question.answered(answer, now_ms)

    def _retry_timeout_ms(self, kind: RequestKind) -> int:
        return self._config.session_timeout_ms if kind in _WITHIN_SESSION else _RETRY_TIMEOUT_MS

    def _backoff_ms(self, failure_count: int) -> int:
        return self._config.retry_backoff().backoff_ms(
            failure_count - 1, self._jitter, site="franz-go-backoff", key=self._client_id
        )

    # The coordinator.

    def _look_up(self, now_ms: int) -> None:
        if self._looks_up:
            return
        self._looks_up = True
        node_id = self._net.least_loaded(self._metadata.nodes, now_ms)
        if node_id is None:
            self._look_up_later(now_ms)
        else:
            request = FindCoordinatorRequest(coordinator_keys=(self._group_id,))
            self._request(RequestKind.LOOKUP, node_id, request, now_ms)

    def _look_up_refused(self, now_ms: int) -> None:
        """Fail all requests that wait for the coordinator, because no broker can be reached."""
        self._looks_up = False
        waiting, self._awaiting_coordinator = self._awaiting_coordinator, []
        for question in waiting:
            question.answered(None, now_ms)

    def _look_up_later(self, now_ms: int) -> None:
        self._lookup_tries += 1
        self._call_at(now_ms + self._backoff_ms(self._lookup_tries), self._look_up_again)

    def _look_up_again(self, now_ms: int) -> None:
        self._looks_up = False
        self._look_up(now_ms)

    def _on_find_coordinator(self, response: FindCoordinatorResponse, now_ms: int) -> None:
        answer = response.coordinators[0]
        if answer.error_code is not ErrorCode.NONE:
            self._look_up_later(now_ms)
            return
        self._looks_up = False
        self._lookup_tries = 0
        self._coordinator_id = answer.node_id
        waiting, self._awaiting_coordinator = self._awaiting_coordinator, []
        for question in waiting:
            self._try(question, now_ms)

    # Connections.

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """Send what waited for this connection, from which nothing was sent yet."""
        self._unread_nodes.pop(node_id, None)
        return super().on_connected(node_id, now_ms)

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Close the connection: all requests on it are tried again.

        A connection is read only for a request, so an answer that comes while there is none meets
        the next request.

        Source: franz-go 1.22, pkg/kgo/broker.go, readResponse, handleResp, die.
        """
        if self._net.has_in_flight(node_id):
            self._net.disconnect(node_id, now_ms)
        else:
            self._unread_nodes[node_id] = None
        return self._settle(now_ms)

    def _request(
        self, kind: RequestKind, node_id: int, request: Request, now_ms: int, timeout_ms: int = -1
    ) -> PendingRequest:
        pending = super()._request(kind, node_id, request, now_ms, timeout_ms)
        if pending.was_sent and node_id in self._unread_nodes:
            del self._unread_nodes[node_id]
            self._call_at(now_ms, lambda at_ms: self._net.disconnect(node_id, at_ms))
        return pending

    # Answers and failures.

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        if isinstance(response, FindCoordinatorResponse):
            self._on_find_coordinator(response, now_ms)
            return
        if isinstance(response, MetadataResponse):
            self._on_metadata(response, now_ms)
            return
        question = self._asked.pop(pending.correlation_id)
        if _error_of(response) in _COORDINATOR_GONE:
            self._coordinator_id = None
            self._try_again(question, response, now_ms)
        else:
            question.answered(response, now_ms)

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Retry a failed request; a connection that cannot be opened makes the coordinator unknown.

        Source: franz-go 1.22, pkg/kgo/client.go, handleDialErr.
        """
        del error
        if pending.kind is RequestKind.METADATA:
            self._metadata_failed(now_ms)
        elif pending.kind is RequestKind.LOOKUP and pending.was_sent:
            self._look_up_later(now_ms)
        elif pending.kind is RequestKind.LOOKUP:
            self._look_up_refused(now_ms)
        else:
            if not pending.was_sent:
                self._coordinator_id = None
            self._try_again(self._asked.pop(pending.correlation_id), None, now_ms)

    def _on_link_broken(self, node_id: int, now_ms: int) -> None:
        del now_ms
        if not self._net.has_pending(node_id):
            self._broken_nodes[node_id] = None

    # What the parts above provide.

    @abstractmethod
    def _on_metadata(self, response: MetadataResponse, now_ms: int) -> None: ...


def _error_of(response: Response) -> ErrorCode:
    """Return the top-level error of a response to the coordinator's APIs."""
    match response:
        case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse() | LeaveGroupResponse():
            return response.error_code
        case OffsetFetchResponse():
            return response.groups[0].error_code
        case OffsetCommitResponse():
            codes = [p.error_code for topic in response.topics for p in topic.partitions]
            return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)
        case _:
            return ErrorCode.NONE
