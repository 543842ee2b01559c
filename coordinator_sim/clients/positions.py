"""Start positions of a consumer: committed offsets of new partitions, and resets without one.

A port has no log: the driver is asked for the beginning or the end of a partition
(`ResetPositions`) and answers with `positions_found`.

Source: kafka trunk, ClassicKafkaConsumer.updateFetchPositions, ConsumerCoordinator.java,
fetchCommittedOffsets, SubscriptionState.resetInitializingPositions.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast

from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.clients.consumer_leader import ConsumerLeader
from coordinator_sim.clients.effects import Effects, ResetPositions
from coordinator_sim.clients.exceptions import NO_OFFSET, RETRIABLE
from coordinator_sim.clients.generation import Generation, MemberState
from coordinator_sim.clients.network import Future
from coordinator_sim.clients.port_core import Wait
from coordinator_sim.kafka.resources import TopicPartition


class _PositionFetch(NamedTuple):
    """An OffsetFetch, and the partitions and generation it was sent for."""

    partitions: tuple[TopicPartition, ...]
    generation: Generation | None
    """Generation at the send; None unless the member was STABLE."""
    future: Future


class ConsumerPositions(ConsumerLeader):
    """Next offset of each assigned partition, once it is known."""

    __slots__ = (
        "_fetch_attempts",
        "_pending_revocation",
        "_position_fetch",
        "_resets",
        "_steady_version",
        "_unasked_resets",
    )

    def _init_positions(self) -> None:
        self._next_auto_commit_ms = self._consumer_config.auto_commit_interval_ms
        self._fetch_attempts = 0
        self._pending_revocation = False
        self._position_fetch: _PositionFetch | None = None
        self._resets: dict[TopicPartition, OffsetReset] = {}
        self._unasked_resets: dict[TopicPartition, None] = {}
        self._steady_version = -1

    # What the driver sees and tells.

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every assigned partition whose position is known."""
        assigned = self._assigned
        if None not in assigned.values():  # faster for hundreds of partitions
            return cast("dict[TopicPartition, int]", assigned.copy())
        return {tp: offset for tp, offset in assigned.items() if offset is not None}

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Positions of the partitions to fetch from; empty during a commit before a revocation."""
        return {} if self._pending_revocation else self.positions

    def advance_position(self, partition: TopicPartition, offset: int) -> None:
        """Set a position after consumption or a seek; ignored where not assigned."""
        if partition in self._assigned:
            self._assigned[partition] = offset
            self._resets.pop(partition, None)

    def advance_all(self, partitions: Collection[TopicPartition], offset: int) -> bool:
        """Set the position of all assigned partitions after consumption.

        Returns:
            Whether these are all of them; otherwise nothing is set.
        """
        if self._resets or len(partitions) != len(self._assigned):
            return False
        self._assigned.update(dict.fromkeys(partitions, offset))
        return True

    def seek_to(self, partitions: Sequence[TopicPartition], to: OffsetReset) -> None:
        """Reset the positions of partitions at the next poll (seekToBeginning, seekToEnd)."""
        for partition in partitions:
            self._request_reset(partition, to)

    def positions_found(self, found: Mapping[TopicPartition, int], now_ms: int) -> Effects:
        """Adopt the answer to `ResetPositions`; ignored where no reset is pending any more."""
        for partition, offset in found.items():
            if partition in self._resets:
                self.advance_position(partition, offset)
                self._activity = True
        return self._settle(now_ms)

    # Commits that are due.

    def _maybe_auto_commit(self, now_ms: int) -> None:
        config = self._consumer_config
        if config.enable_auto_commit and now_ms >= self._next_auto_commit_ms:
            self._next_auto_commit_ms = now_ms + max(1, config.auto_commit_interval_ms)
            self._commit_async(None, self.positions, now_ms)

    # Positions of new partitions.

    def _initializing(self) -> tuple[TopicPartition, ...]:
        resets = self._resets
        return tuple(tp for tp, at in self._assigned.items() if at is None and tp not in resets)

    def _update_positions(self, now_ms: int) -> None:
        """Fetch missing committed offsets, then wait for records."""
        self._fetch_attempts = 0
        self._fetch_round(now_ms)

    def _fetch_round(self, now_ms: int) -> None:
        if self._initializing():
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._fetch_coordinator_ready
            )
        else:
            self._positions_updated(now_ms)

    def _positions_updated(self, now_ms: int) -> None:
        self._steady_version = self._metadata_snapshot_version
        self._ask_for_resets()
        self._poll_network_wait(now_ms)

    def _fetch_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        node_id = self._coordinator
        if not ready or node_id is None:
            self._poll_network_wait(now_ms)
            return
        wanted = self._initializing()
        generation = self._generation if self._state is MemberState.STABLE else None
        pending = self._position_fetch
        if pending is None or pending[:2] != (wanted, generation):
            pending = self._position_fetch = _PositionFetch(wanted, generation, Future())
            self._send_offset_fetch(node_id, wanted, pending.future, now_ms)
        self._block(Wait.FUTURE, self._call_deadline_ms, self._fetch_resolved, pending.future)

    def _fetch_resolved(self, now_ms: int) -> None:
        pending = self._position_fetch
        if pending is None or not pending.future.done:
            self._poll_network_wait(now_ms)
            return
        self._position_fetch = None
        error = pending.future.error
        if error is None:
            self._fetched_committed(pending.partitions, now_ms)
        elif error not in RETRIABLE:
            self._end_call(now_ms, error)
        elif now_ms >= self._call_deadline_ms:
            self._poll_network_wait(now_ms)
        else:
            backoff_ms = self._config.retry_backoff().backoff_ms(
                self._fetch_attempts, self._jitter, site="fetch-backoff", key=self._client_id
            )
            self._fetch_attempts += 1
            until_ms = min(now_ms + backoff_ms, self._call_deadline_ms)
            self._block(Wait.SLEEP, until_ms, self._fetch_round)

    def _fetched_committed(self, partitions: tuple[TopicPartition, ...], now_ms: int) -> None:
        for partition in partitions:
            offset = self._fetched_offsets.get(partition, -1)
            if offset >= 0 and self._assigned.get(partition, 0) is None:
                self._assigned[partition] = offset
        missing = self._initializing()
        reset = self._consumer_config.auto_offset_reset
        if missing and reset is OffsetReset.NONE:
            self._end_call(now_ms, NO_OFFSET)
            return
        for partition in missing:
            self._request_reset(partition, reset)
        self._positions_updated(now_ms)

    # Resets.

    def _request_reset(self, partition: TopicPartition, to: OffsetReset) -> None:
        if partition in self._assigned:
            self._assigned[partition] = None
            self._resets[partition] = to
            self._unasked_resets[partition] = None
            self._steady_version = -1

    def _ask_for_resets(self) -> None:
        """Ask the driver, once for each pending reset."""
        if not self._unasked_resets:
            return
        wanted = [(tp, self._resets[tp]) for tp in self._unasked_resets if tp in self._resets]
        self._unasked_resets.clear()
        for reset in OffsetReset:
            partitions = tuple(tp for tp, to in wanted if to is reset)
            if partitions:
                self._out.append(ResetPositions(partitions=partitions, to=reset))

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        super()._drop(partitions)
        for partition in partitions:
            self._resets.pop(partition, None)

    def _adopt_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Replace the assigned partitions; those kept keep their positions."""
        owned = self._assigned
        self._assigned = {tp: owned.get(tp) for tp in partitions}
        self._resets = {tp: to for tp, to in self._resets.items() if tp in self._assigned}
        self._steady_version = -1

    # What the part above provides.

    @abstractmethod
    def _poll_network_wait(self, now_ms: int) -> None:
        """Wait for any event, as pollForFetches does."""
