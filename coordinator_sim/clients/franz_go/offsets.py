"""Offsets of a franz-go consumer: polled, ready to commit, committed.

Offsets of polled records become ready to commit when the next poll begins. Commits are sent one
after another, and never between JoinGroup and the answer to SyncGroup.

Requests to the coordinator, each retried until its time is over.

franz-go wraps every request: a broker that is not the coordinator is forgotten and looked up again,
a broken connection is reopened, both after a backoff that grows with the tries of this request. The
caller sees none of that. JoinGroup and SyncGroup, which may be parked, have a separate connection.

Source: franz-go 1.22, pkg/kgo/consumer_group.go, updateUncommitted, undirtyUncommitted, loopCommit,
commitOffsetsSync, commit, updateCommitted, fetchOffsets, defaultRevoke; franz-go 1.22,
pkg/kgo/client.go, retryable.Request, shouldRetry, maybeDeleteStaleCoordinator, validateCfg
(retryTimeout); errors.go, isRetryableBrokerErr.
"""

import heapq
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Unpack

from coordinator_sim.clients.background_port import BackgroundPort
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.client_traits import FRANZ_GO
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CommitCompleted, Effects
from coordinator_sim.clients.exceptions import COMMIT_FAILED, TIMEOUT, exception_name
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
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


_UNSTABLE_RETRY_MS: Final = 1_000
_COMMIT_FAILURES: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
)

CommitDone = Callable[[str | None, int], None]
"""Called with the exception's name, None for success, and the instant."""


@dataclass(slots=True)
class Uncommitted:
    """Offsets of one partition: position after polled records, ready to commit, committed."""

    dirty: int = 0
    head: int = 0
    committed: int = 0


class FranzGoOffsets(BackgroundPort):
    """Requests to the coordinator, the client's timers, commits and committed offsets."""

    __slots__ = (
        "_asked",
        "_awaiting_coordinator",
        "_broken_nodes",
        "_commit_is_owed",
        "_commit_queue",
        "_commits_in_flight",
        "_is_joining",
        "_looks_up",
        "_lookup_tries",
        "_sync_commit_count",
        "_timer_order",
        "_timers",
        "_uncommitted",
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
        self._uncommitted: dict[TopicPartition, Uncommitted] = {}
        self._is_joining = False
        self._commit_is_owed = False
        self._commits_in_flight = 0
        self._sync_commit_count = 0
        self._commit_queue: list[tuple[dict[TopicPartition, int], CommitDone]] = []

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

    # What was polled.

    def _on_consumed(self, partition: TopicPartition, offset: int) -> None:
        entry = self._uncommitted.setdefault(partition, Uncommitted())
        entry.dirty = offset
        if not self._config.enable_auto_commit:
            entry.head = offset

    def _on_poll(self, now_ms: int) -> None:
        del now_ms
        for entry in self._uncommitted.values():
            entry.head = entry.dirty

    def _ready_to_commit(self) -> dict[TopicPartition, int]:
        return {
            tp: self._uncommitted[tp].head
            for tp in sorted(self._uncommitted)
            if self._uncommitted[tp].head != self._uncommitted[tp].committed
        }

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._uncommitted.pop(partition, None)

    # Commits.

    def _commit_by_interval(self, now_ms: int) -> None:
        """Commit ready offsets, after a join in progress; not during an awaited commit."""
        self._call_at(now_ms + self._config.auto_commit_interval_ms, self._commit_by_interval)
        if self._is_joining:
            self._commit_is_owed = True
        elif not self._sync_commit_count and (ready := self._ready_to_commit()):
            self._commit(ready, _nobody_waits, now_ms)

    def _commit_for_application(
        self, token: int, offsets: dict[TopicPartition, int], now_ms: int
    ) -> None:
        def done(error: str | None, at_ms: int) -> None:
            del at_ms
            self._out.append(CommitCompleted(token=token, error=error))

        self._commit(offsets, done, now_ms)

    def _commit_before_revoking(self, then: Callable[[int], None], now_ms: int) -> None:
        """Commit ready offsets and wait for the answer, if auto-commit is on."""
        ready = self._ready_to_commit() if self._config.enable_auto_commit else {}
        if not ready:
            then(now_ms)
            return
        self._sync_commit_count += 1

        def done(error: str | None, at_ms: int) -> None:
            del error
            self._sync_commit_count -= 1
            then(at_ms)

        self._commit(ready, done, now_ms)

    def _commit(self, offsets: dict[TopicPartition, int], done: CommitDone, now_ms: int) -> None:
        if self._is_joining or self._commits_in_flight:
            self._commit_queue.append((offsets, done))
        else:
            self._send_commit(offsets, done, now_ms)

    def _send_commit(
        self, offsets: Mapping[TopicPartition, int], done: CommitDone, now_ms: int
    ) -> None:
        self._commits_in_flight += 1
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            entry = OffsetCommitRequestPartition(
                partition, offset, committed_metadata=self._member_id
            )
            topics.setdefault(topic, []).append(entry)
        request = OffsetCommitRequest(
            group_id=self._group_id,
            topics=tuple(
                OffsetCommitRequestTopic(topic, partitions=tuple(entries))
                for topic, entries in topics.items()
            ),
            generation_id_or_member_epoch=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
        )

        def answered(response: Response | None, at_ms: int) -> None:
            self._commits_in_flight -= 1
            done(self._committed(offsets, response), at_ms)
            self._send_queued_commits(at_ms)

        self._ask(RequestKind.COMMIT, request, answered, now_ms)

    def _committed(
        self, offsets: Mapping[TopicPartition, int], response: Response | None
    ) -> str | None:
        """Note committed offsets; return the name of the first error, if any."""
        if not isinstance(response, OffsetCommitResponse):
            return TIMEOUT
        failure: str | None = None
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                error = result.error_code
                entry = self._uncommitted.get(partition)
                if error is ErrorCode.NONE and entry is not None:
                    entry.committed = offsets.get(partition, entry.committed)
                elif error is not ErrorCode.NONE and failure is None:
                    refused = error in _COMMIT_FAILURES
                    failure = COMMIT_FAILED if refused else exception_name(error)
        return failure

    def _send_queued_commits(self, now_ms: int) -> None:
        """Send the next waiting commit, after a join or another commit."""
        if self._is_joining or self._commits_in_flight:
            return
        if self._commit_queue:
            offsets, done = self._commit_queue.pop(0)
            self._send_commit(offsets, done, now_ms)
        elif self._commit_is_owed:
            self._commit_is_owed = False
            if ready := self._ready_to_commit():
                self._commit(ready, _nobody_waits, now_ms)

    # Committed offsets.

    def _fetch_offsets(
        self,
        partitions: Sequence[TopicPartition],
        then: Callable[[ErrorCode | None, int], None],
        now_ms: int,
    ) -> None:
        """Look up start offsets; `then` gets None, or an error, which ends the session."""
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            topics=tuple(
                OffsetFetchRequestTopics(t, partition_indexes=tuple(sorted(ps)))
                for t, ps in topics.items()
            ),
            member_id=self._member_id,
            member_epoch=self._generation_id,
        )

        def answered(response: Response | None, at_ms: int) -> None:
            if not isinstance(response, OffsetFetchResponse):
                then(ErrorCode.REQUEST_TIMED_OUT, at_ms)
            elif response.groups[0].error_code is not ErrorCode.NONE:
                then(response.groups[0].error_code, at_ms)
            elif _is_unstable(response):
                self._call_at(
                    at_ms + _UNSTABLE_RETRY_MS,
                    lambda ms: self._fetch_offsets(partitions, then, ms),
                )
            else:
                self._adopt_offsets(partitions, response)
                then(None, at_ms)

        request = OffsetFetchRequest(groups=(group,), require_stable=True)
        self._ask(RequestKind.OFFSET_FETCH, request, answered, now_ms)

    def _adopt_offsets(
        self, partitions: Sequence[TopicPartition], response: OffsetFetchResponse
    ) -> None:
        unset: list[TopicPartition] = []
        for topic in response.groups[0].topics:
            for fetched in topic.partitions:
                partition = TopicPartition(topic.name, fetched.partition_index)
                if partition not in partitions or partition not in self._assigned:
                    continue
                if fetched.committed_offset < 0:
                    unset.append(partition)
                else:
                    self._assigned[partition] = fetched.committed_offset
                    self._uncommitted[partition] = Uncommitted(*(fetched.committed_offset,) * 3)
        self._reset_positions(unset)


def _is_unstable(response: OffsetFetchResponse) -> bool:
    return any(
        fetched.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        for topic in response.groups[0].topics
        for fetched in topic.partitions
    )


def _nobody_waits(error: str | None, at_ms: int) -> None:
    """Ignore the end of an automatic commit: the next one repeats what failed."""
    del error, at_ms
