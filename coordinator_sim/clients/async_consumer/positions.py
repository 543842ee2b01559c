"""Start positions: committed offsets of new partitions, and resets without one.

A port has no log: the driver finds the beginning or the end of a partition (`ResetPositions`).

Source: kafka 4.4, clients/.../consumer/internals/OffsetsRequestManager.java,
updateFetchPositions; CommitRequestManager.java, fetchOffsets; SubscriptionState.java.
"""

from itertools import groupby
from typing import Final, Unpack

from coordinator_sim.clients import exceptions
from coordinator_sim.clients.async_consumer.commits import COORDINATOR_GONE, STALE, AsyncCommits
from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.async_consumer.request_states import RequestState
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig, OffsetReset
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import offset_fetch

_MISSING: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_PASSED_ON: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
"""Errors of a whole answer that the application is told by their own name."""


class _Fetch:
    """A look-up of committed offsets, over all attempts.

    Attributes:
        partitions: The partitions without a position.
        deadline_ms: Instant from which no further attempt is made.
        state: The backoff between attempts.
        outcome: Its end.
        found: The offsets, -1 for none.
    """

    __slots__ = ("deadline_ms", "found", "outcome", "partitions", "state")

    def __init__(
        self, partitions: tuple[TopicPartition, ...], deadline_ms: int, state: RequestState
    ) -> None:
        self.partitions = partitions
        self.deadline_ms = deadline_ms
        self.state = state
        self.outcome = Promise()
        self.found: dict[TopicPartition, int] = {}


class AsyncPositions(AsyncCommits):
    """Next offset of each assigned partition, once it is known."""

    __slots__ = (
        "_awaits_callback",
        "_cached_position_error",
        "_offset_fetch",
        "_pending_revocation",
        "_resets",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._awaits_callback: dict[TopicPartition, None] = {}
        self._cached_position_error: str | None = None
        self._offset_fetch: _Fetch | None = None
        self._pending_revocation: dict[TopicPartition, None] = {}
        self._resets: dict[TopicPartition, None] = {}

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Positions of the partitions to fetch from.

        Those about to be revoked are left out, and those whose callback has not run.

        Source: SubscriptionState.TopicPartitionState.isFetchable.
        """
        held_back = {**self._pending_revocation, **self._awaits_callback}
        if not held_back:
            return self.positions
        return {tp: offset for tp, offset in self.positions.items() if tp not in held_back}

    def _initializing(self) -> tuple[TopicPartition, ...]:
        return tuple(
            tp
            for tp, offset in sorted(self._assigned.items())
            if offset is None and tp not in self._resets and tp not in self._pending_revocation
        )

    def _lacks_position(self) -> bool:
        return any(offset is None for offset in self._assigned.values())

    def _update_positions(self, deadline_ms: int, now_ms: int) -> Promise:
        """Find the positions that are missing (OffsetsRequestManager.updateFetchPositions)."""
        ended = Promise()
        error, self._cached_position_error = self._cached_position_error, None
        wanted = self._initializing()
        if error is not None or not wanted:
            ended.complete(now_ms, error)
            return ended
        fetch = self._offset_fetch
        if fetch is None or fetch.partitions != wanted:
            latest_ms = max(deadline_ms, now_ms + self._config.default_api_timeout_ms)
            fetch = _Fetch(wanted, latest_ms, self._request_state("fetch-backoff"))
            self._offset_fetch = fetch

        def refreshed(failure: str | None, at_ms: int) -> None:
            failure = failure or self._reset_unset(fetch)
            if failure is not None and at_ms >= deadline_ms:
                self._cached_position_error = failure
            ended.complete(at_ms, failure)

        fetch.outcome.then(refreshed, now_ms)
        return ended

    def _reset_unset(self, fetch: _Fetch) -> str | None:
        """Adopt what was found, and have the rest reset; return the error where nothing says how.

        Source: ConsumerUtils.refreshCommittedOffsets, SubscriptionState.resetInitializingPositions.
        """
        for partition, offset in fetch.found.items():
            is_initializing = self._assigned.get(partition, 0) is None
            if offset >= 0 and is_initializing and partition not in self._resets:
                self._assigned[partition] = offset
        wanted = dict.fromkeys(fetch.partitions)
        unset = [tp for tp in self._initializing() if tp in wanted]
        if unset and self._config.auto_offset_reset is OffsetReset.NONE:
            return exceptions.NO_OFFSET
        self._resets.update(dict.fromkeys(unset))
        self._reset_positions(unset)
        return None

    # On the network thread.

    def _poll_offset_fetch(self, now_ms: int) -> int:
        """Send the look-up if it may be sent; return how long there is nothing to do."""
        fetch = self._offset_fetch
        if fetch is None or fetch.outcome.is_done or self._coordinator_id is None:
            if fetch is not None and self._fatal_lookup_error is not None:
                self._end_offset_fetch(fetch, self._fatal_lookup_error, now_ms)
            return FOREVER
        if not fetch.state.may_send(now_ms):
            return FOREVER if fetch.state.is_in_flight else fetch.state.backoff_left_ms(now_ms)
        fetch.state.sent()
        epoch = self._known_epoch
        group = offset_fetch.OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=None if epoch is None else self._known_member_id,
            member_epoch=-1 if epoch is None else epoch,
            topics=tuple(
                offset_fetch.OffsetFetchRequestTopics(
                    topic, self._topic_id_of(topic), tuple(tp.partition for tp in own)
                )
                for topic, own in groupby(fetch.partitions, key=lambda tp: tp.topic)
            ),
        )
        request = offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=True)
        self._request(RequestKind.OFFSET_FETCH, self._coordinator_node_id, request, now_ms)
        return FOREVER

    def _on_offset_fetch(self, response: offset_fetch.OffsetFetchResponse, now_ms: int) -> None:
        """Adopt or refuse an answer (OffsetFetchRequestState.onResponse).

        An answer to a look-up that was replaced is dropped.
        """
        fetch = self._offset_fetch
        group = next((each for each in response.groups if each.group_id == self._group_id), None)
        if fetch is None or group is None or not fetch.state.is_in_flight:
            return
        error = self._offset_fetch_error(group)
        if error is None:
            by_id = {each.topic_id: each.name or "" for each in self._metadata.topics.values()}
            found = {
                TopicPartition(topic.name or by_id.get(topic.topic_id, ""), each.partition_index): (
                    each.committed_offset if each.error_code is ErrorCode.NONE else -1
                )
                for topic in group.topics
                for each in topic.partitions
            }
            if any(tp in found for tp in fetch.partitions):
                fetch.state.succeeded(now_ms)
                fetch.found = found
                self._end_offset_fetch(fetch, None, now_ms)
            return
        self._offset_fetch_failed(error, now_ms)

    def _offset_fetch_error(self, group: offset_fetch.OffsetFetchResponseGroup) -> str | None:
        """Return the exception of an answer (OffsetFetchRequestState.onFailure, onSuccess)."""
        error = group.error_code
        if error in COORDINATOR_GONE:
            self._coordinator_id = None
        if error is not ErrorCode.NONE:
            name = exceptions.exception_name(error)
            return name if error in _PASSED_ON or name in exceptions.RETRIABLE else exceptions.KAFKA
        codes = {each.error_code: None for topic in group.topics for each in topic.partitions}
        known = (_MISSING, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if any(code not in (*known, refused, ErrorCode.NONE) for code in codes):
            return exceptions.KAFKA
        if refused in codes:
            return exceptions.exception_name(refused)
        if ErrorCode.UNSTABLE_OFFSET_COMMIT in codes:
            return exceptions.exception_name(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return exceptions.exception_name(_MISSING) if any(code in codes for code in known) else None

    def _offset_fetch_failed(self, error: str, now_ms: int) -> None:
        """Try again, or give up (CommitRequestManager.handleGroupLevelError)."""
        fetch = self._offset_fetch
        if fetch is None or not fetch.state.is_in_flight:
            return
        fetch.state.failed(now_ms)
        self._lost_contact(error)
        if error not in exceptions.RETRIABLE and not (
            error == STALE and self._known_epoch is not None
        ):
            self._end_offset_fetch(fetch, error, now_ms)
        elif now_ms >= fetch.deadline_ms:
            self._end_offset_fetch(fetch, exceptions.TIMEOUT, now_ms)

    def _end_offset_fetch(self, fetch: _Fetch, error: str | None, now_ms: int) -> None:
        self._offset_fetch = None
        fetch.outcome.complete(now_ms, error)
