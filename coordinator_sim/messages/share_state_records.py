"""Keys and values of share state records.

Written by tools/write_messages.py from schemas/ShareSnapshotRecord.json,
schemas/ShareUpdateRecord.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.messages.schema import ZERO_UUID


class ShareSnapshotKey(Struct, frozen=True, gc=False):
    """ShareSnapshotKey of versions 0 to 0."""

    record_type: ClassVar[int] = 0
    group_id: str = ""
    topic_id: bytes = ZERO_UUID
    partition: int = 0


class StateBatch(Struct, frozen=True, gc=False):
    """An entry of `stateBatches`."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class ShareSnapshotValue(Struct, frozen=True, gc=False):
    """ShareSnapshotValue of versions 0 to 0."""

    record_type: ClassVar[int] = 0
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: tuple[StateBatch, ...] = ()


class ShareUpdateKey(Struct, frozen=True, gc=False):
    """ShareUpdateKey of versions 0 to 0."""

    record_type: ClassVar[int] = 1
    group_id: str = ""
    topic_id: bytes = ZERO_UUID
    partition: int = 0


class ShareUpdateValue(Struct, frozen=True, gc=False):
    """ShareUpdateValue of versions 0 to 0."""

    record_type: ClassVar[int] = 1
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()


ShareStateKey = ShareSnapshotKey | ShareUpdateKey
"""A key of these records."""


ShareStateValue = ShareSnapshotValue | ShareUpdateValue
"""A value of these records."""
