"""One partition of `__share_group_state` in memory: its share partitions, and what requests want.

A request for one share partition is answered here, with the records that it writes; `replay` makes
them count. Nothing here writes, waits or knows other partitions.

Source: kafka 4.3, share-coordinator/.../ShareCoordinatorShard.java.
"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.share_coordinator.batches import combined
from coordinator_sim.broker.share_coordinator.ports import KnownTopics, ShareCoordinatorConfig
from coordinator_sim.broker.share_coordinator.state import (
    UNDECIDED,
    ShareRecord,
    partition_of,
    snapshot,
    tombstone,
    update,
    updated,
)
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.broker.shares.share_values import share_partition_hash
from coordinator_sim.coordinator.common.runtime import CoordinatorShard, OpenBatch, WriteEvent
from coordinator_sim.coordinator.common.timeline import Timeline, TimelineTable, TimelineValue
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateValue,
    ShareUpdateValue,
    StateBatch,
)

ANY_EPOCH: Final = -1
"""An epoch that fences nobody, and that nobody is fenced by."""


class Refusal(Struct, frozen=True, gc=False):
    """Why a request is refused, with words for people."""

    error: ErrorCode
    message: str


class Writing(Struct, frozen=True, gc=False):
    """What a leader wants to be kept of a share partition; see `persister.WriteState`."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


Records = tuple[ShareRecord, ...]
"""What an operation writes."""

_NO_STATE: Final = ShareSnapshotValue(start_offset=UNDECIDED)
"""What is told of a share partition of which nothing is kept."""


class ShareCoordinatorShard(CoordinatorShard):
    """The share partitions of one partition of the topic.

    Args:
        config: Of the broker.
        topics: What topics there are.
        index: The partition's number.

    Attributes:
        redundant: Up to where the log can go.
    """

    def __init__(self, config: ShareCoordinatorConfig, topics: KnownTopics, index: int) -> None:
        super().__init__(index=index)
        timeline = self.timeline
        self._config = config
        self._topics = topics
        self._states: TimelineTable[SharePartitionKey, ShareSnapshotValue] = TimelineTable(
            timeline, share_partition_hash
        )
        self._leader_epochs = self._epochs(timeline)
        self._state_epochs = self._epochs(timeline)
        self._update_counts = self._epochs(timeline)
        self.redundant = RedundantOffsets(timeline)

    def _epochs(self, timeline: Timeline) -> TimelineTable[SharePartitionKey, int]:
        return TimelineTable(timeline, share_partition_hash)

    def __len__(self) -> int:
        """The number of share partitions of which something is kept."""
        return len(self._states)

    def state_of(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """What is kept of a share partition."""
        return self._states.get(key)

    # -- records ------------------------------------------------------------------------------

    def apply(self, batch: OpenBatch, write: WriteEvent, _wall_ms: int) -> None:
        """Let the records of an operation count."""
        for offset, record in enumerate(write.records, self.end_offset + len(batch.records)):
            self.replay(offset, record)

    def replay(self, offset: int, record: ShareRecord) -> None:
        """Let a record count that is written, or read by a load."""
        key, value = partition_of(record.key), record.value
        if isinstance(record.key, ShareSnapshotKey):
            self._replay_snapshot(key, value)
            self.redundant.snapshot_written(key, offset, is_tombstone=value is None)
        elif isinstance(value, ShareUpdateValue):
            self._raise(self._leader_epochs, key, value.leader_epoch)
            sweeps = self._config.profile.share_state_sweeps_batches
            self._states.put(key, updated(self._states.get(key), value, sweeps=sweeps))
            self._update_counts.put(key, (self._update_counts.get(key) or 0) + 1)

    def _replay_snapshot(self, key: SharePartitionKey, value: ShareStateValue | None) -> None:
        """Source: handleShareSnapshot."""
        if not isinstance(value, ShareSnapshotValue):
            for table in (self._states, self._leader_epochs, self._state_epochs):
                table.remove(key)
            self._update_counts.remove(key)
            return
        self._raise(self._leader_epochs, key, value.leader_epoch)
        self._raise(self._state_epochs, key, value.state_epoch)
        self._states.put(key, value)
        # QUIRK: the count goes on where a snapshot comes before enough updates do.
        count = self._update_counts.get(key)
        if count is not None and count >= self._config.updates_per_snapshot:
            self._update_counts.put(key, 0)

    def _raise(
        self, epochs: TimelineTable[SharePartitionKey, int], key: SharePartitionKey, epoch: int
    ) -> None:
        """Remember an epoch if it is the highest. Source: maybeUpdateLeaderEpochMap."""
        known = epochs.get(key)
        if known is None or known < epoch:
            epochs.put(key, epoch)

    # -- requests -----------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> tuple[Records, Refusal | None]:
        """Begin to keep the state of a share partition, or begin anew."""
        refusal = (
            self._bad_partition(key)
            or self._negative(state_epoch, "state")
            or self._fenced_state(key, state_epoch)
            or self._unknown_topic(key)
        )
        if refusal is not None:
            return (), refusal
        before = self._states.get(key)
        value = ShareSnapshotValue(
            snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=-1 if start_offset == UNDECIDED else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        return (snapshot(key, value),), None

    def write(self, writing: Writing, now_ms: int) -> tuple[Records, Refusal | None]:
        """Keep changes of a share partition. Source: writeState, maybeGetWriteStateError."""
        key = writing.key
        refusal = (
            self._bad_partition(key)
            or self._negative(writing.leader_epoch, "leader")
            or self._negative(writing.state_epoch, "state")
            or self._uninitialized(key, "Write")
            or self._fenced_leader(key, writing.leader_epoch)
            or self._fenced_state(key, writing.state_epoch)
            or self._unknown_topic(key)
        )
        if refusal is not None:
            return (), refusal
        # QUIRK: the leader epoch of a write is only compared; kept is that of the last read.
        leader_epoch = self._states.entries[key].leader_epoch
        return (self._change(writing, leader_epoch, now_ms),), None

    def read(
        self, key: SharePartitionKey, leader_epoch: int, now_ms: int
    ) -> tuple[Records, ShareSnapshotValue | Refusal]:
        """Tell what is kept of a share partition; a new leader's epoch fences older leaders.

        Source: readStateAndMaybeUpdateLeaderEpoch, maybeGetReadStateError.
        """
        refusal = (
            self._bad_partition(key)
            or self._negative(leader_epoch, "leader")
            or self._uninitialized(key, "Read")
            or self._fenced_leader(
                key, leader_epoch, is_exempt=self._config.profile.share_state_reads_unfenced
            )
            or self._unknown_topic(key)
        )
        if refusal is not None:
            return (), refusal
        state = self._states.entries[key]
        if leader_epoch in (ANY_EPOCH, self._leader_epochs.get(key)):
            return (), state
        writing = Writing(
            key=key,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            batches=(),
        )
        return (self._change(writing, leader_epoch, now_ms),), state

    def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | Refusal:
        """Tell where a group is in a share partition; nothing kept is no error here.

        Source: readStateSummary, maybeGetReadStateSummaryError.
        """
        refusal = self._bad_partition(key) or self._unknown_topic(key)
        if refusal is not None:
            return refusal
        return self._states.get(key) or _NO_STATE

    def delete(self, key: SharePartitionKey) -> tuple[Records, Refusal | None]:
        """Forget a share partition; one of which nothing is kept is forgotten already."""
        refusal = self._bad_partition(key) or self._unknown_topic(key)
        if refusal is not None:
            return (), refusal
        return (tombstone(key),) if key in self._states else (), None

    def _change(self, writing: Writing, leader_epoch: int, now_ms: int) -> ShareRecord:
        """The record of a change: an update, or a snapshot after so many of them.

        Source: generateShareStateRecord.
        """
        key, profile = writing.key, self._config.profile
        state = self._states.entries[key]
        if profile.share_state_start_only_grows:
            writing = _grown(writing, state)
        start_offset, sweeps = writing.start_offset, profile.share_state_sweeps_batches
        if (self._update_counts.get(key) or 0) < self._config.updates_per_snapshot:
            changed = ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=writing.delivery_complete_count,
                state_batches=combined((), writing.batches, start_offset, sweeps=sweeps),
            )
            return update(key, changed)
        if start_offset == UNDECIDED:
            start_offset = state.start_offset
        value = ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=writing.delivery_complete_count,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=combined(
                state.state_batches, writing.batches, start_offset, sweeps=sweeps
            ),
        )
        return snapshot(key, value)

    # -- refusals -----------------------------------------------------------------------------

    def _bad_partition(self, key: SharePartitionKey) -> Refusal | None:
        if key.partition >= 0:
            return None
        text = "The partition id cannot be a negative number."
        return Refusal(ErrorCode.INVALID_REQUEST, text)

    def _negative(self, epoch: int, whose: str) -> Refusal | None:
        if epoch >= 0 or not self._config.profile.share_state_refuses_negative_epochs:
            return None
        text = f"The {whose} epoch cannot be a negative number."
        return Refusal(ErrorCode.INVALID_REQUEST, text)

    def _uninitialized(self, key: SharePartitionKey, operation: str) -> Refusal | None:
        if key in self._states:
            return None
        text = f"{operation} operation on uninitialized share partition not allowed."
        return Refusal(ErrorCode.INVALID_REQUEST, text)

    def _fenced_leader(
        self, key: SharePartitionKey, epoch: int, *, is_exempt: bool = True
    ) -> Refusal | None:
        """Whether a newer leader was there; `is_exempt` lets `ANY_EPOCH` pass."""
        known = self._leader_epochs.get(key)
        if (epoch == ANY_EPOCH and is_exempt) or known is None or known <= epoch:
            return None
        error = ErrorCode.FENCED_LEADER_EPOCH
        return Refusal(error, error_message(error))

    def _fenced_state(self, key: SharePartitionKey, epoch: int) -> Refusal | None:
        known = self._state_epochs.get(key)
        if epoch == ANY_EPOCH or known is None or known <= epoch:
            return None
        text = self._config.profile.share_state_fenced_text
        return Refusal(ErrorCode.FENCED_STATE_EPOCH, text)

    def _unknown_topic(self, key: SharePartitionKey) -> Refusal | None:
        count = self._topics.partition_count(key.topic_id)
        if count is not None and key.partition < count:
            return None
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Refusal(error, error_message(error))

    # -- upkeep -------------------------------------------------------------------------------

    def cold_snapshots(self, now_ms: int, interval_ms: int) -> Records:
        """Snapshots of share partitions whose last one is old; none while all of them are cold.

        Source: snapshotColdPartitions.
        """
        states = self._states
        if all(state.create_timestamp != state.write_timestamp for _, state in states.items()):
            return ()
        return tuple(
            snapshot(
                key,
                replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now_ms),
            )
            for key, state in states.items()
            if now_ms - state.write_timestamp >= interval_ms
        )

    def without_topics(self, topic_ids: Collection[bytes]) -> Records:
        """Tombstones of the share partitions of deleted topics. Source: maybeCleanupShareState."""
        found = [key for key, _ in self._states.items() if key.topic_id in topic_ids]
        ordered = java_hash_order(found, hash_of=share_partition_hash)
        return tuple(tombstone(key) for key in ordered)


def _grown(writing: Writing, state: ShareSnapshotValue) -> Writing:
    """A write that does not go back behind what is kept.

    Source: kafka 4.4, ShareCoordinatorShard.generateShareStateRecord.
    """
    count = writing.delivery_complete_count
    if writing.start_offset == state.start_offset:
        count = max(count, state.delivery_complete_count)
    elif writing.start_offset < state.start_offset:
        count = state.delivery_complete_count
    return replace(
        writing,
        start_offset=max(writing.start_offset, state.start_offset),
        delivery_complete_count=count,
    )


_NOTHING_YET: Final = (1 << 63) - 1


class RedundantOffsets:
    """The latest snapshot of each share partition, by offset.

    Args:
        timeline: Of the partition.

    Source: kafka 4.3, ShareCoordinatorOffsetsManager.java.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._latest: TimelineTable[SharePartitionKey, int] = TimelineTable(
            timeline, share_partition_hash
        )
        self._redundant = TimelineValue(timeline, _NOTHING_YET)

    def snapshot_written(self, key: SharePartitionKey, offset: int, *, is_tombstone: bool) -> None:
        """A snapshot replaces what was written of a share partition before. Source: updateState."""
        self._redundant.value = min(self._redundant.value, offset)
        self._latest.put(key, offset)
        # Kafka stops at an offset that equals the last one, which no other can be below.
        self._redundant.value = min(self._latest.entries.values())
        if is_tombstone:
            self._latest.remove(key)

    def last(self) -> int | None:
        """The first offset that is needed; None where nothing before it can go."""
        value = self._redundant.value
        return None if value <= 0 or value == _NOTHING_YET else value
