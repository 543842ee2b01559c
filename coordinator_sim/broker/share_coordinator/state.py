"""What is kept of one share partition, and how records change it.

Source: kafka 4.3, ShareGroupOffset.java; ShareCoordinatorShard.merge;
ShareCoordinatorRecordHelpers.java.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.share_coordinator.batches import combined
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateKey,
    ShareStateValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

UNDECIDED: Final = -1
"""The start offset of a share partition where nothing was decided yet, and one that a write leaves
as it is. Source: PartitionFactory.UNINITIALIZED_START_OFFSET."""


class ShareRecord(Struct, frozen=True, gc=False):
    """A record to be written; None as its value takes everything of its key back."""

    key: ShareStateKey
    value: ShareStateValue | None


def partition_of(key: ShareStateKey) -> SharePartitionKey:
    """The share partition that a record is about."""
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def snapshot(key: SharePartitionKey, value: ShareSnapshotValue) -> ShareRecord:
    """A record of all that is kept of a share partition."""
    return ShareRecord(ShareSnapshotKey(*key), value)


def update(key: SharePartitionKey, value: ShareUpdateValue) -> ShareRecord:
    """A record of what changed since the snapshot."""
    return ShareRecord(ShareUpdateKey(*key), value)


def tombstone(key: SharePartitionKey) -> ShareRecord:
    """A record that takes everything back."""
    return ShareRecord(ShareSnapshotKey(*key), None)


def updated(
    state: ShareSnapshotValue | None, change: ShareUpdateValue, *, sweeps: bool
) -> ShareSnapshotValue:
    """The state after an update; one without a snapshot before it stands for itself.

    Args:
        state: The state before it.
        change: The update.
        sweeps: See `combined`.
    """
    if state is None:
        return ShareSnapshotValue(
            snapshot_epoch=change.snapshot_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=change.state_batches,
        )
    leaves_start = change.start_offset == UNDECIDED
    start_offset = state.start_offset if leaves_start else change.start_offset
    leaves_leader = change.leader_epoch == -1
    return replace(
        state,
        start_offset=start_offset,
        delivery_complete_count=change.delivery_complete_count,
        leader_epoch=state.leader_epoch if leaves_leader else change.leader_epoch,
        state_batches=combined(
            state.state_batches, change.state_batches, start_offset, sweeps=sweeps
        ),
    )
