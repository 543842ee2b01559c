"""Commits of the consumer protocol, automatic ones too, and the look-up of committed offsets.

Both name the member by its id and its epoch, as long as it is in the group.

Source: kafka 4.4, clients/.../consumer/internals/CommitRequestManager.java.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.heartbeats import AsyncHeartbeats
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.async_consumer.request_states import RequestState
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import (
    COMMIT_FAILED,
    KAFKA,
    RETRIABLE,
    RETRIABLE_COMMIT_FAILED,
    TIMEOUT,
    exception_name,
)
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.schema import ZERO_UUID

STALE: Final = exception_name(ErrorCode.STALE_MEMBER_EPOCH)
_GONE_TOPIC: Final = exception_name(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
COORDINATOR_GONE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_PASSED_ON: Final = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)
"""Errors that end an attempt with the exception of their own name."""


class Commit:
    """Offsets to commit, over all attempts.

    Attributes:
        offsets: The offsets; a retry before a rebalance takes newer ones.
        deadline_ms: Instant from which no further attempt is made.
        state: The backoff between attempts.
        outcome: The outcome of the present attempt.
    """

    __slots__ = ("deadline_ms", "offsets", "outcome", "state")

    def __init__(
        self, offsets: dict[TopicPartition, int], deadline_ms: int, state: RequestState
    ) -> None:
        self.offsets = offsets
        self.deadline_ms = deadline_ms
        self.state = state
        self.outcome = Promise()


class AsyncCommits(AsyncHeartbeats):
    """Commits positions for the application, by interval and before reconciliations."""

    __slots__ = (
        "_auto_commit_due_ms",
        "_auto_commit_in_flight",
        "_commits_in_flight",
        "_known_epoch",
        "_known_member_id",
        "_refuses_commits",
        "_unsent_commits",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._auto_commit_due_ms = FOREVER
        self._auto_commit_in_flight = False
        self._commits_in_flight: dict[int, Commit] = {}
        self._known_epoch: int | None = None
        self._known_member_id = UNKNOWN_MEMBER_ID
        self._refuses_commits = False
        self._unsent_commits: list[Commit] = []

    # Requests for commits.

    def _commit_async(self, offsets: dict[TopicPartition, int], now_ms: int) -> Promise:
        """Commit once (CommitRequestManager.commitAsync)."""
        ended = Promise()

        def attempted(error: str | None, at_ms: int) -> None:
            ended.complete(at_ms, RETRIABLE_COMMIT_FAILED if error in RETRIABLE else error)

        self._enqueue_commit(self._new_commit(offsets, FOREVER)).then(attempted, now_ms)
        return ended

    def _commit_sync(
        self, offsets: dict[TopicPartition, int], deadline_ms: int, now_ms: int
    ) -> Promise:
        """Commit with retries up to the deadline (CommitRequestManager.commitSync)."""
        ended = Promise()
        if not offsets:
            return kept()
        commit = self._new_commit(offsets, deadline_ms)

        def attempted(error: str | None, at_ms: int) -> None:
            if error not in RETRIABLE:
                ended.complete(at_ms, COMMIT_FAILED if error == STALE else error)
            elif at_ms >= commit.deadline_ms:
                ended.complete(at_ms, TIMEOUT)
            else:
                self._enqueue_commit(commit).then(attempted, at_ms)

        self._enqueue_commit(commit).then(attempted, now_ms)
        return ended

    def _maybe_commit_by_interval(self, now_ms: int) -> None:
        """Commit consumed offsets when the interval is over (updateTimerAndMaybeCommit).

        Java counts on a shorter interval after a retriable failure, but looks for an exception that
        such an attempt never ends with.
        """
        is_due = now_ms >= self._auto_commit_due_ms and not self._auto_commit_in_flight
        if self._config.enable_auto_commit and is_due:
            self._auto_commit(self._new_commit(self.positions, FOREVER), now_ms)
            self._restart_auto_commit(now_ms)

    def _commit_before_rebalance(self, deadline_ms: int, now_ms: int) -> Promise:
        """Commit what is consumed, with retries (maybeAutoCommitSyncBeforeRebalance)."""
        if not self._config.enable_auto_commit:
            return kept()
        ended = Promise()
        commit = self._new_commit(self.positions, deadline_ms)

        def attempted(error: str | None, at_ms: int) -> None:
            is_stale = error == STALE and self._known_epoch is not None
            if error not in RETRIABLE and not is_stale:
                ended.complete(at_ms, error)
            elif at_ms >= commit.deadline_ms:
                ended.complete(at_ms, TIMEOUT)
            elif error == _GONE_TOPIC:
                ended.complete(at_ms, error)
            else:
                commit.offsets = self.positions
                self._auto_commit(commit, at_ms).then(attempted, at_ms)

        self._auto_commit(commit, now_ms).then(attempted, now_ms)
        return ended

    def _auto_commit(self, commit: Commit, now_ms: int) -> Promise:
        if not commit.offsets:
            return kept()
        self._auto_commit_in_flight = True
        outcome = self._enqueue_commit(commit)
        outcome.then(self._auto_commit_ended, now_ms)
        return outcome

    def _auto_commit_ended(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._auto_commit_in_flight = False

    def _restart_auto_commit(self, now_ms: int) -> None:
        if self._config.enable_auto_commit:
            self._auto_commit_due_ms = now_ms + self._config.auto_commit_interval_ms

    def _new_commit(self, offsets: Mapping[TopicPartition, int], deadline_ms: int) -> Commit:
        ordered = dict(sorted(offsets.items()))
        return Commit(ordered, deadline_ms, self._request_state("commit-backoff"))

    def _enqueue_commit(self, commit: Commit) -> Promise:
        commit.outcome = Promise()
        self._unsent_commits.append(commit)
        return commit.outcome

    # On the network thread.

    def _poll_commits(self, now_ms: int) -> int:
        """Send commits that may be sent; return how long there is nothing to do.

        Source: CommitRequestManager.poll, PendingRequests.drain.
        """
        if self._coordinator_id is None:
            if self._fatal_lookup_error is not None:
                self._fail_commits(self._fatal_lookup_error, now_ms)
            elif self._refuses_commits:
                self._fail_commits(COMMIT_FAILED, now_ms)
            return FOREVER
        unsent, self._unsent_commits = self._unsent_commits, []
        for commit in unsent:
            if commit.state.attempts and now_ms >= commit.deadline_ms:
                commit.outcome.complete(now_ms, TIMEOUT)
            elif self._refuses_commits or commit.state.may_send(now_ms):
                self._send_commit(commit, now_ms)
            else:
                self._unsent_commits.append(commit)
        backoffs = (each.state.backoff_left_ms(now_ms) for each in self._unsent_commits)
        return min(backoffs, default=FOREVER)

    def _fail_commits(self, error: str, now_ms: int) -> None:
        unsent, self._unsent_commits = self._unsent_commits, []
        for commit in unsent:
            commit.outcome.complete(now_ms, error)

    def _send_commit(self, commit: Commit, now_ms: int) -> None:
        """Send an attempt (OffsetCommitRequestState.toUnsentRequest).

        DEVIATION: topics and partitions are sorted; Java sends them in the order of its maps.
        """
        commit.state.sent()
        epoch = self._known_epoch
        request = OffsetCommitRequest(
            group_id=self._group_id,
            topics=tuple(
                OffsetCommitRequestTopic(
                    topic,
                    self._topic_id_of(topic),
                    tuple(OffsetCommitRequestPartition(tp.partition, at) for tp, at in own),
                )
                for topic, own in groupby(commit.offsets.items(), key=lambda each: each[0].topic)
            ),
            generation_id_or_member_epoch=NO_GENERATION_ID if epoch is None else epoch,
            member_id=self._known_member_id,
            group_instance_id=self._config.group_instance_id,
        )
        pending = self._request(RequestKind.COMMIT, self._coordinator_node_id, request, now_ms)
        self._commits_in_flight[pending.correlation_id] = commit

    def _topic_id_of(self, topic: str) -> bytes:
        known = self._metadata.topics.get(topic)
        return ZERO_UUID if known is None else known.topic_id

    def _on_commit(
        self, pending: PendingRequest, response: OffsetCommitResponse, now_ms: int
    ) -> None:
        """End an attempt by the first error that ends it (OffsetCommitRequestState.onResponse)."""
        commit = self._commits_in_flight.pop(pending.correlation_id)
        results = [p.error_code for topic in response.topics for p in topic.partitions]
        failures = [each for each in results if each is not ErrorCode.NONE]
        if not failures:
            commit.state.is_in_flight = False
            commit.outcome.complete(now_ms)
            return
        commit.state.failed(now_ms)
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        error = next((each for each in failures if each is not refused), refused)
        if error in COORDINATOR_GONE or error is ErrorCode.REQUEST_TIMED_OUT:
            self._coordinator_id = None
        commit.outcome.complete(now_ms, _commit_exception(error))

    def _commit_lost(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """End an attempt that is not answered (RetriableRequestState.handleClientResponse)."""
        commit = self._commits_in_flight.pop(pending.correlation_id)
        commit.state.failed(now_ms)
        self._lost_contact(error)
        commit.outcome.complete(now_ms, error)

    def _note_epoch(self, epoch: int | None) -> None:
        """Name the member by this epoch from now on (CommitRequestManager.onMemberEpochUpdated)."""
        self._known_epoch = epoch
        self._known_member_id = self._member_id


def _commit_exception(error: ErrorCode) -> str:
    retried = (*COORDINATOR_GONE, ErrorCode.REQUEST_TIMED_OUT)
    if error in retried or error in _PASSED_ON or error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return exception_name(error)
    return COMMIT_FAILED if error is ErrorCode.UNKNOWN_MEMBER_ID else KAFKA
