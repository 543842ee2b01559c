"""Offsets of a librdkafka consumer: looked up for new partitions, stored, committed.

Source: librdkafka 2.15, rdkafka_assignment.c; rdkafka_cgrp.c,
rd_kafka_cgrp_op_handle_OffsetCommit.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Unpack

from coordinator_sim.clients.background_port import BackgroundPort
from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.client_traits import LIBRDKAFKA, ClientTraits
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CommitCompleted
from coordinator_sim.clients.exceptions import COMMIT_FAILED, exception_name
from coordinator_sim.clients.librdkafka.states import CoordinatorState, JoinState
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import offset_fetch
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_COMMIT_FAILURES: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
)
_OFFSET_FETCH_RETRIED: Final = (
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


_MAX_RETRIES: Final = 2
"""Source: librdkafka 2.15, rdkafka_proto.h, RD_KAFKA_REQUEST_DEFAULT_RETRIES."""


class Commit(NamedTuple):
    """Offsets being committed; with a token if the application asked.

    Attributes:
        offsets: The offsets.
        token: The application's token; None for a commit of the client's own.
        request: The request that was sent, to be sent again as it is.
        retry_count: How often it was sent again.
    """

    offsets: dict[TopicPartition, int]
    token: int | None = None
    request: OffsetCommitRequest | None = None
    retry_count: int = 0


class LibrdkafkaOffsets(BackgroundPort):
    """Consumed and committed offsets of the partitions assigned now."""

    TRAITS: ClassVar[ClientTraits] = LIBRDKAFKA
    """Values of the client, which differ between the group protocols."""

    __slots__ = (
        "_assignment_lost",
        "_commits_in_flight",
        "_commits_to_retry",
        "_committed",
        "_coordinator_state",
        "_deferred_commits",
        "_fatal_error",
        "_join_state",
        "_pending",
        "_queried",
        "_stored",
        "_waiting_commit_count",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, self.TRAITS, **setup)
        self._join_state = JoinState.INIT
        self._coordinator_state = CoordinatorState.QUERY_COORD
        self._assignment_lost = False
        self._fatal_error: str | None = None
        self._pending: tuple[TopicPartition, ...] = ()
        self._queried: tuple[TopicPartition, ...] = ()
        self._stored: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._waiting_commit_count = 0
        self._deferred_commits: list[Commit] = []
        self._commits_to_retry: list[tuple[int, Commit]] = []
        """Instant and commit, for those that were refused for the time being."""
        self._commits_in_flight: dict[int, Commit] = {}

    # Committed offsets.

    def _send_offset_fetch(self, now_ms: int) -> None:
        topics = tuple(
            offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=tuple(numbers))
            for topic, numbers in _by_topic(self._queried).items()
        )
        group = offset_fetch.OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
        self._request(
            RequestKind.OFFSET_FETCH,
            self._coordinator_node_id,
            offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=True),
            now_ms,
        )

    def _on_offset_fetch(self, response: offset_fetch.OffsetFetchResponse, now_ms: int) -> None:
        """Adopt committed offsets; unstable ones are asked for again, other errors are final."""
        unset: list[TopicPartition] = []
        for group in response.groups:
            if group.error_code is not ErrorCode.NONE:
                retry = group.error_code in _OFFSET_FETCH_RETRIED
                self._offset_fetch_failed(now_ms, retry=retry)
                return
            for topic in group.topics:
                for fetched in topic.partitions:
                    self._adopt_offset(
                        TopicPartition(topic.name, fetched.partition_index), fetched, unset
                    )
        self._reset_positions(unset)
        self._serve_assignment(now_ms)

    def _adopt_offset(
        self,
        partition: TopicPartition,
        fetched: offset_fetch.OffsetFetchResponsePartitions,
        unset: list[TopicPartition],
    ) -> None:
        if partition not in self._queried:
            return
        self._queried = tuple(tp for tp in self._queried if tp != partition)
        if fetched.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
            self._pending = (*self._pending, partition)
        elif fetched.error_code is ErrorCode.NONE and fetched.committed_offset >= 0:
            self._assigned[partition] = fetched.committed_offset
        elif fetched.error_code is ErrorCode.NONE:
            unset.append(partition)

    def _offset_fetch_failed(self, now_ms: int, *, retry: bool) -> None:
        """Look up the offsets again, or leave the partitions without a position."""
        if retry:
            self._pending = (*self._pending, *self._queried)
        self._queried = ()
        if not retry:
            self._serve_assignment(now_ms)

    # Commits.

    def _on_consumed(self, partition: TopicPartition, offset: int) -> None:
        self._stored[partition] = offset

    def _commit_by_interval(self, now_ms: int) -> None:
        """Commit consumed offsets newer than the last commit, in a steady group only.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_offset_commit_tmr_cb.
        """
        if self._join_state is not JoinState.STEADY or self._assignment_lost:
            return
        offsets = {
            tp: self._stored[tp]
            for tp in sorted(self._assigned)
            if tp in self._stored and self._stored[tp] > self._committed.get(tp, -1)
        }
        if offsets:
            self._commit(offsets, now_ms)

    def _commit_for_application(
        self, token: int, offsets: dict[TopicPartition, int], now_ms: int
    ) -> None:
        if self._fatal_error is not None:
            self._out.append(CommitCompleted(token=token, error=self._fatal_error))
        else:
            self._commit(offsets, now_ms, token)

    def _commit(
        self, offsets: dict[TopicPartition, int], now_ms: int, token: int | None = None
    ) -> None:
        if self._fatal_error is not None:
            return
        self._waiting_commit_count += 1
        commit = Commit(offsets, token)
        if self._coordinator_state is CoordinatorState.UP:
            self._send_commit(commit, now_ms)
        else:
            self._deferred_commits.append(commit)

    def _send_deferred_commits(self, now_ms: int) -> None:
        deferred, self._deferred_commits = self._deferred_commits, []
        for commit in deferred:
            self._send_commit(commit, now_ms)

    def _send_commit(self, commit: Commit, now_ms: int) -> None:
        request = commit.request or self._commit_request(commit.offsets)
        pending = self._request(RequestKind.COMMIT, self._coordinator_node_id, request, now_ms)
        self._commits_in_flight[pending.correlation_id] = commit._replace(request=request)

    def _commit_request(self, offsets: dict[TopicPartition, int]) -> OffsetCommitRequest:
        topics = tuple(
            OffsetCommitRequestTopic(
                topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(number, offsets[TopicPartition(topic, number)])
                    for number in numbers
                ),
            )
            for topic, numbers in _by_topic(offsets).items()
        )
        return OffsetCommitRequest(
            group_id=self._group_id,
            topics=topics,
            generation_id_or_member_epoch=self._generation_id,
            member_id=self._member_id,
            group_instance_id=self._config.group_instance_id,
        )

    def _commit_retry_due_ms(self) -> int:
        return min((due_ms for due_ms, _ in self._commits_to_retry), default=FOREVER)

    def _retry_due_commits(self, now_ms: int) -> None:
        """Send commits again whose backoff is over; without a coordinator they wait for one."""
        waiting, self._commits_to_retry = self._commits_to_retry, []
        for due_ms, commit in waiting:
            if now_ms < due_ms:
                self._commits_to_retry.append((due_ms, commit))
            elif self._coordinator_id is None:
                self._defer_commit(commit)
            else:
                self._send_commit(commit, now_ms)

    def _defer_commit(self, commit: Commit) -> None:
        """Commit anew, once the coordinator is available.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_defer_offset_commit.
        """
        self._deferred_commits.append(Commit(commit.offsets, commit.token))

    def _retry_commit(self, commit: Commit, now_ms: int) -> bool:
        """Send the same commit again after a backoff, twice at most; return whether it will be.

        Source: librdkafka 2.15, rdkafka_buf.c, rd_kafka_buf_retry; rdkafka_broker.c,
        rd_kafka_broker_buf_retry.
        """
        if commit.retry_count >= _MAX_RETRIES:
            return False
        backoff_ms = self._config.retry_backoff().backoff_ms(
            commit.retry_count, self._jitter, site="commit-backoff", key=self._client_id
        )
        again = commit._replace(retry_count=commit.retry_count + 1)
        self._commits_to_retry.append((now_ms + backoff_ms, again))
        return True

    def _on_commit(
        self, pending: PendingRequest, response: OffsetCommitResponse, now_ms: int
    ) -> None:
        """Handle a commit's answer; the first error of any partition counts.

        Source: librdkafka 2.15, rdkafka_cgrp.c, rd_kafka_cgrp_op_handle_OffsetCommit.
        """
        commit = self._commits_in_flight.pop(pending.correlation_id)
        results = [p.error_code for topic in response.topics for p in topic.partitions]
        error = next((e for e in results if e is not ErrorCode.NONE), ErrorCode.NONE)
        if error is ErrorCode.NONE:
            self._committed.update(commit.offsets)
        elif self._tries_again(commit, error, now_ms):
            return
        self._commit_ended(commit, error, now_ms)

    def _tries_again(self, commit: Commit, error: ErrorCode, now_ms: int) -> bool:
        """Handle the error of a commit; return whether the commit is sent again.

        Source: librdkafka 2.15, rdkafka_request.c, rd_kafka_handle_OffsetCommit_error;
        rdkafka_cgrp.c, rd_kafka_cgrp_op_handle_OffsetCommit.
        """
        match error:
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = UNKNOWN_MEMBER_ID
                self._maybe_revoke_all(now_ms, lost=True)
            case ErrorCode.ILLEGAL_GENERATION if not self._is_rebalancing():
                self._generation_id = NO_GENERATION_ID
                self._maybe_revoke_all(now_ms, lost=True)
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._coordinator_dead(now_ms)
                if not self._retry_commit(commit, now_ms):
                    self._defer_commit(commit)
                return True
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return self._retry_commit(commit, now_ms)
            case ErrorCode.FENCED_INSTANCE_ID:
                self._fail_for_good(error)
            case _:
                pass
        return False

    def _commit_lost(self, pending: PendingRequest) -> None:
        """Resend a commit of a broken connection once the coordinator is available."""
        self._defer_commit(self._commits_in_flight.pop(pending.correlation_id))

    def _commit_ended(self, commit: Commit, error: ErrorCode, now_ms: int) -> None:
        if commit.token is not None:
            name = COMMIT_FAILED if error in _COMMIT_FAILURES else exception_name(error)
            self._out.append(
                CommitCompleted(token=commit.token, error=None if error is ErrorCode.NONE else name)
            )
        self._waiting_commit_count -= 1
        if self._waiting_commit_count == 0:
            self._serve_assignment(now_ms)

    def _fail_for_good(self, error: ErrorCode) -> None:
        """Handle a fatal error: the next poll raises it, and the group is no longer served."""
        self._fatal_error = self._poll_error = exception_name(error)

    # What the parts above provide.

    @abstractmethod
    def _serve_assignment(self, now_ms: int) -> None: ...

    @abstractmethod
    def _is_rebalancing(self) -> bool: ...

    @abstractmethod
    def _maybe_revoke_all(self, now_ms: int, *, lost: bool) -> None: ...

    @abstractmethod
    def _coordinator_dead(self, now_ms: int) -> None: ...


def _by_topic(
    partitions: Sequence[TopicPartition] | Mapping[TopicPartition, int],
) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
