"""Committing and fetching offsets: requests, error tables, and completions.

Source: kafka trunk, clients/.../consumer/internals/ConsumerCoordinator.java, commitOffsetsAsync,
commitOffsetsSync, OffsetCommitResponseHandler, fetchCommittedOffsets, OffsetFetchResponseHandler.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator_sim.clients import exceptions
from coordinator_sim.clients.abstract_coordinator import AbstractCoordinator
from coordinator_sim.clients.effects import CommitCompleted
from coordinator_sim.clients.generation import NO_GENERATION, Generation, MemberState
from coordinator_sim.clients.network import Future, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import Continuation, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import offset_fetch
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.requests import Response

_REBALANCING: Final = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)


class AsyncCommit(NamedTuple):
    """An asynchronous commit without an outcome yet; token None is the automatic one."""

    token: int | None
    offsets: dict[TopicPartition, int]
    future: Future


class OffsetCommits(AbstractCoordinator):
    """The offset half of a consumer's coordinator."""

    __slots__ = (
        "_async_commit_fenced",
        "_async_commits",
        "_commit_attempts",
        "_commit_future",
        "_commit_offsets",
        "_completed_commits",
        "_fetched_offsets",
        "_next_auto_commit_ms",
        "_unsent_commits",
    )

    def _init_commits(self) -> None:
        self._async_commits: list[AsyncCommit] = []
        self._unsent_commits: list[AsyncCommit] = []
        self._completed_commits: list[tuple[int | None, str | None]] = []
        self._async_commit_fenced = False
        self._commit_offsets: dict[TopicPartition, int] = {}
        self._commit_attempts = 0
        self._commit_future: Future | None = None
        self._fetched_offsets: dict[TopicPartition, int] = {}
        self._next_auto_commit_ms = 0

    # The asynchronous commit.

    def _commit_async(
        self, token: int | None, offsets: Mapping[TopicPartition, int], now_ms: int
    ) -> Future | None:
        """Send at once, or return None and send after the coordinator lookup that this starts."""
        commit = AsyncCommit(token, dict(offsets), Future())
        if not offsets or not self._coordinator_unknown(now_ms):
            self._start_async_commit(commit, now_ms)
            return commit.future
        self._unsent_commits.append(commit)
        if self._lookup_coordinator(now_ms).done:
            self._fail_unsent_commits()
        return None

    def _look_before_commit(self, now_ms: int) -> str | None:
        """Start a lookup if the coordinator is unknown; return the error that a failed one throws.

        Source: kafka trunk, AbstractCoordinator.ensureCoordinatorReadyAsync.
        """
        if not self._coordinator_unknown(now_ms):
            return None
        fatal, self._fatal_lookup_error = self._fatal_lookup_error, None
        if fatal is not None:
            return fatal
        lookup = self._lookup_coordinator(now_ms)
        self._poll_network(now_ms)
        if not lookup.done:
            return None
        self._lookup = None
        if lookup.error is not None and lookup.error not in exceptions.RETRIABLE:
            return lookup.error
        self._metadata.request_update()
        return None

    def _start_async_commit(self, commit: AsyncCommit, now_ms: int) -> None:
        self._async_commits.append(commit)
        self._send_offset_commit(commit.offsets, commit.future, now_ms)
        self._settle_commits()

    def _fail_unsent_commits(self) -> None:
        waiting, self._unsent_commits = self._unsent_commits, []
        for commit in waiting:
            commit.future.fail(exceptions.RETRIABLE_COMMIT_FAILED)
            self._async_commits.append(commit)
        self._settle_commits()

    def _settle_commits(self) -> None:
        """Turn finished asynchronous commits into completions for the application's thread."""
        finished = [commit for commit in self._async_commits if commit.future.done]
        if not finished:
            return
        self._async_commits = [c for c in self._async_commits if not c.future.done]
        for commit in finished:
            error = commit.future.error
            if error is not None and error in exceptions.RETRIABLE:
                error = exceptions.RETRIABLE_COMMIT_FAILED
            if error == exceptions.FENCED_INSTANCE_ID:
                self._async_commit_fenced = True
            if commit.token is not None or error is not None:
                self._completed_commits.append((commit.token, error))

    def _invoke_completed_commits(self, now_ms: int) -> str | None:
        """Run the callbacks of finished commits; return an error if the member was fenced.

        Source: kafka trunk, ConsumerCoordinator.invokeCompletedOffsetCommitCallbacks.
        """
        if self._async_commit_fenced:
            return exceptions.FENCED_INSTANCE_ID
        for token, error in self._completed_commits:
            if token is not None:
                self._out.append(CommitCompleted(token=token, error=error))
            elif error == exceptions.RETRIABLE_COMMIT_FAILED:
                self._next_auto_commit_ms = now_ms + self._config.retry_backoff_ms
        self._completed_commits.clear()
        return None

    def _on_find_coordinator(
        self, pending: PendingRequest, response: FindCoordinatorResponse, now_ms: int
    ) -> None:
        super()._on_find_coordinator(pending, response, now_ms)
        self._retry_unsent_commits(pending, now_ms)

    def _retry_unsent_commits(self, pending: PendingRequest, now_ms: int) -> None:
        if not self._unsent_commits:
            return
        if pending.future.error is not None:
            self._fail_unsent_commits()
            return
        waiting, self._unsent_commits = self._unsent_commits, []
        for commit in waiting:
            self._start_async_commit(commit, now_ms)

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        super()._on_failure(pending, error, now_ms)
        if pending.kind is RequestKind.LOOKUP:
            self._retry_unsent_commits(pending, now_ms)
        elif pending.kind is RequestKind.COMMIT:
            self._settle_commits()

    # The synchronous commit: the application's thread waits.

    def _commit_sync(self, offsets: Mapping[TopicPartition, int], now_ms: int) -> None:
        self._commit_offsets = dict(offsets)
        self._commit_attempts = 0
        if not offsets:
            self._await_async_commits(now_ms)
        else:
            self._commit_round(now_ms)

    def _commit_round(self, now_ms: int) -> None:
        self._ensure_coordinator_ready(
            now_ms, deadline_ms=self._call_deadline_ms, then=self._commit_coordinator_ready
        )

    def _commit_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        if not ready:
            self._commit_sync_ended(exceptions.TIMEOUT, now_ms)
            return
        future = self._commit_future = Future()
        self._send_offset_commit(self._commit_offsets, future, now_ms)
        self._block(Wait.FUTURE, self._call_deadline_ms, self._commit_resolved, future)

    def _commit_resolved(self, now_ms: int) -> None:
        future = self._commit_future
        self._commit_future = None
        # Commits in flight before this one complete first, in order.
        fenced = self._invoke_completed_commits(now_ms)
        if fenced is not None:
            self._commit_sync_ended(fenced, now_ms)
        elif future is None or not future.done:
            self._commit_sync_ended(exceptions.TIMEOUT, now_ms)
        elif future.error is None or future.error not in exceptions.RETRIABLE:
            self._commit_sync_ended(future.error, now_ms)
        else:
            self._retry_commit(self._commit_round, now_ms)

    def _retry_commit(self, resume: Continuation, now_ms: int) -> None:
        if now_ms >= self._call_deadline_ms:
            self._commit_sync_ended(exceptions.TIMEOUT, now_ms)
            return
        backoff_ms = self._config.retry_backoff().backoff_ms(
            self._commit_attempts, self._jitter, site="commit-backoff", key=self._client_id
        )
        self._commit_attempts += 1
        until_ms = min(now_ms + backoff_ms, self._call_deadline_ms)
        self._block(Wait.SLEEP, until_ms, resume)

    def _await_async_commits(self, now_ms: int) -> None:
        """Wait for asynchronous commits in flight: a synchronous commit without offsets does so.

        Source: kafka trunk, ConsumerCoordinator.invokePendingAsyncCommits.
        """
        if not self._async_commits:
            self._commit_sync_ended(None, now_ms)
        else:
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._poll_async_commits
            )

    def _poll_async_commits(self, ready: bool, now_ms: int) -> None:  # noqa: ARG002 - either way
        self._block(Wait.NETWORK, self._call_deadline_ms, self._polled_async_commits)

    def _polled_async_commits(self, now_ms: int) -> None:
        fenced = self._invoke_completed_commits(now_ms)
        if fenced is not None:
            self._commit_sync_ended(fenced, now_ms)
        elif not self._async_commits:
            self._commit_sync_ended(None, now_ms)
        else:
            self._retry_commit(self._await_async_commits, now_ms)

    def _commit_sync_ended(self, error: str | None, now_ms: int) -> None:
        self._end_call(now_ms, error)

    # OffsetCommit.

    def _send_offset_commit(
        self, offsets: Mapping[TopicPartition, int], future: Future, now_ms: int
    ) -> None:
        """Send the commit, or settle its future where no request may be sent.

        Source: kafka trunk, ConsumerCoordinator.sendOffsetCommitRequest.
        """
        node_id = self._coordinator
        if not offsets:
            future.complete()
        elif self._coordinator_unknown(now_ms) or node_id is None:
            future.fail(exceptions.COORDINATOR_NOT_AVAILABLE)
        elif min(offsets.values()) < 0:
            future.fail(exceptions.ILLEGAL_ARGUMENT)
        elif self._is_group_subscribed() and self._state is not MemberState.STABLE:
            future.fail(
                exceptions.REBALANCE_IN_PROGRESS
                if self._state in _REBALANCING
                else exceptions.COMMIT_FAILED
            )
        else:
            generation = self._generation if self._is_group_subscribed() else NO_GENERATION
            pending = PendingRequest(
                RequestKind.COMMIT,
                node_id,
                self._offset_commit_request(offsets, generation),
                generation=self._generation,
                future=future,
            )
            self._net.send(pending, self._config.request_timeout_ms, now_ms)

    def _offset_commit_request(
        self, offsets: Mapping[TopicPartition, int], generation: Generation
    ) -> OffsetCommitRequest:
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(OffsetCommitRequestPartition(partition, offset))
        grouped = self._is_group_subscribed()
        return OffsetCommitRequest(
            group_id=self._group_id,
            topics=tuple(
                OffsetCommitRequestTopic(t, partitions=tuple(ps)) for t, ps in by_topic.items()
            ),
            generation_id_or_member_epoch=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._config.group_instance_id if grouped else None,
        )

    def _on_offset_commit(
        self, pending: PendingRequest, response: OffsetCommitResponse, now_ms: int
    ) -> None:
        """End the commit by the first decisive partition error; denied topics are collected."""
        future = pending.future
        denied = False
        for topic in response.topics:
            for partition in topic.partitions:
                code = partition.error_code
                if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    denied = True
                elif code is not ErrorCode.NONE:
                    future.fail(self._commit_error(pending.generation, code, now_ms))
                    self._settle_commits()
                    return
        if denied:
            future.fail(exceptions.exception_name(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            future.complete()
        self._settle_commits()

    def _commit_error(self, sent: Generation, code: ErrorCode, now_ms: int) -> str:
        """Return the exception for a partition's error, and apply its effect on membership.

        Source: kafka trunk, ConsumerCoordinator.OffsetCommitResponseHandler.handle.
        """
        preparing = self._state is MemberState.PREPARING_REBALANCE
        unchanged = self._generation_unchanged(sent)
        match code:
            case (
                ErrorCode.COORDINATOR_NOT_AVAILABLE
                | ErrorCode.NOT_COORDINATOR
                | ErrorCode.REQUEST_TIMED_OUT
            ):
                self._mark_coordinator_unknown(now_ms)
            case ErrorCode.FENCED_INSTANCE_ID:
                if not unchanged:
                    return (
                        exceptions.REBALANCE_IN_PROGRESS if preparing else exceptions.COMMIT_FAILED
                    )
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.request_rejoin("offset commit failed since group is already rebalancing")
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                if not unchanged and preparing:
                    return exceptions.REBALANCE_IN_PROGRESS
                # QUIRK: while completing a newer rebalance a late error of the old generation
                # resets the new one; Java guards PREPARING_REBALANCE only.
                self._reset_state_and_rejoin(
                    f"encountered {code.name} from OFFSET_COMMIT response",
                    reset_member_id=code is ErrorCode.UNKNOWN_MEMBER_ID,
                )
                return exceptions.COMMIT_FAILED
            case (
                ErrorCode.GROUP_AUTHORIZATION_FAILED
                | ErrorCode.OFFSET_METADATA_TOO_LARGE
                | ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            ):
                pass
            case _:
                return exceptions.KAFKA
        return exceptions.exception_name(code)

    # OffsetFetch.

    def _send_offset_fetch(
        self, node_id: int, partitions: tuple[TopicPartition, ...], future: Future, now_ms: int
    ) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        wanted = tuple(
            offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=tuple(ps))
            for topic, ps in by_topic.items()
        )
        request = offset_fetch.OffsetFetchRequest(
            groups=(offset_fetch.OffsetFetchRequestGroup(group_id=self._group_id, topics=wanted),),
            require_stable=True,
        )
        pending = PendingRequest(
            RequestKind.OFFSET_FETCH, node_id, request, generation=self._generation, future=future
        )
        self._net.send(pending, self._config.request_timeout_ms, now_ms)

    def _on_offset_fetch(
        self, pending: PendingRequest, response: offset_fetch.OffsetFetchResponse, now_ms: int
    ) -> None:
        """Keep the offsets of the one requested group, or fail as the error table says."""
        group = next((g for g in response.groups if g.group_id == self._group_id), None)
        if group is None:
            pending.future.fail(exceptions.KAFKA)
            return
        error = group.error_code
        if error is not ErrorCode.NONE:
            if error in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
                self._mark_coordinator_unknown(now_ms)
            name = exceptions.exception_name(error)
            known = name in exceptions.RETRIABLE or error is ErrorCode.GROUP_AUTHORIZATION_FAILED
            pending.future.fail(name if known else exceptions.KAFKA)
            return
        self._on_fetched_offsets(pending.future, group)

    def _on_fetched_offsets(
        self, future: Future, group: offset_fetch.OffsetFetchResponseGroup
    ) -> None:
        offsets: dict[TopicPartition, int] = {}
        denied = unstable = False
        for topic in group.topics:
            for fetched in topic.partitions:
                match fetched.error_code:
                    case ErrorCode.NONE:
                        offsets[TopicPartition(topic.name, fetched.partition_index)] = (
                            fetched.committed_offset
                        )
                    case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        denied = True
                    case ErrorCode.UNSTABLE_OFFSET_COMMIT:
                        unstable = True
                    case _:
                        future.fail(exceptions.KAFKA)
                        return
        if denied:
            future.fail(exceptions.exception_name(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif unstable:
            future.fail(exceptions.exception_name(ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            self._fetched_offsets = offsets
            future.complete()

    def _on_other_response(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match pending.kind, response:
            case RequestKind.COMMIT, OffsetCommitResponse():
                self._on_offset_commit(pending, response, now_ms)
            case RequestKind.OFFSET_FETCH, offset_fetch.OffsetFetchResponse():
                self._on_offset_fetch(pending, response, now_ms)
            case _:
                super()._on_other_response(pending, response, now_ms)

    @abstractmethod
    def _is_group_subscribed(self) -> bool:
        """Whether offsets are committed as a member of the group."""
