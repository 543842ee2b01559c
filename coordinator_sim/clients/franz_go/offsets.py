"""Offsets of a franz-go consumer: polled, ready to commit, committed.

Offsets of polled records become ready to commit when the next poll begins. Commits are sent one
after another, and never between JoinGroup and the answer to SyncGroup.

Source: franz-go 1.22, pkg/kgo/consumer_group.go, updateUncommitted, undirtyUncommitted,
loopCommit, commitOffsetsSync, commit, updateCommitted, fetchOffsets, defaultRevoke.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from coordinator_sim.clients.background_requests import ConsumerSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CommitCompleted
from coordinator_sim.clients.exceptions import COMMIT_FAILED, TIMEOUT, exception_name
from coordinator_sim.clients.franz_go.requests import FranzGoRequests
from coordinator_sim.clients.network import RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
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
from coordinator_sim.messages.requests import Response

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


class FranzGoOffsets(FranzGoRequests):
    """Commits, and the lookup of committed offsets."""

    __slots__ = (
        "_commit_is_owed",
        "_commit_queue",
        "_commits_in_flight",
        "_is_joining",
        "_sync_commit_count",
        "_uncommitted",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[ConsumerSetup]) -> None:
        super().__init__(config, **setup)
        self._uncommitted: dict[TopicPartition, Uncommitted] = {}
        self._is_joining = False
        self._commit_is_owed = False
        self._commits_in_flight = 0
        self._sync_commit_count = 0
        self._commit_queue: list[tuple[dict[TopicPartition, int], CommitDone]] = []

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
