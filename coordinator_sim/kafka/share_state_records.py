"""Records of the share coordinator (KIP-932) in the `__share_group_state` log, as plain data.

Names, fields and defaults are those of Kafka's schema files, so that the recorded schemas
`messages/schemas/ShareSnapshotRecord.json` and `ShareUpdateRecord.json` describe their bytes and
their JSON. A snapshot says all that is kept of a share partition, an update what has changed since;
a snapshot without a value takes everything back.

Source: kafka 4.4, share-coordinator/src/main/resources/common/message/Share*.json.
"""

from typing import Final

from msgspec import Struct


class ShareSnapshotKey(Struct, frozen=True, gc=False):
    """Key type 0: everything of a share partition."""

    group_id: str = ""
    topic_id: bytes = bytes(16)
    partition: int = 0


class ShareUpdateKey(Struct, frozen=True, gc=False):
    """Key type 1: what changed of a share partition."""

    group_id: str = ""
    topic_id: bytes = bytes(16)
    partition: int = 0


class StateBatch(Struct, frozen=True, gc=False):
    """Consecutive records with one state.

    Args:
        last_offset: Of the last record, inclusive.
        delivery_state: 0 available, 2 acknowledged, 4 archived.
        delivery_count: How often they were handed out.
    """

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class ShareSnapshotValue(Struct, frozen=True, gc=False):
    """Everything of a share partition.

    Args:
        snapshot_epoch: Grows with each snapshot.
        state_epoch: The group's epoch when the state was initialized.
        leader_epoch: Of the leader that wrote last.
        start_offset: The first offset that is not done with; -1 where nothing was decided.
        delivery_complete_count: Records from there on that are acknowledged or archived; -1 where
            it is not known.
        create_timestamp: When the snapshot's state was written, in milliseconds.
        write_timestamp: When the snapshot was; later where it was made of a cold partition.
        state_batches: The records from `start_offset` on that are not just available.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: tuple[StateBatch, ...] = ()


class ShareUpdateValue(Struct, frozen=True, gc=False):
    """What changed of a share partition; fields as in `ShareSnapshotValue`.

    Args:
        snapshot_epoch: Of the snapshot before it.
        start_offset: -1 leaves it.
        state_batches: What changed.
    """

    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()


ShareStateKey = ShareSnapshotKey | ShareUpdateKey
"""A key of a record of the share coordinator."""

ShareStateValue = ShareSnapshotValue | ShareUpdateValue
"""A value of a record of the share coordinator."""

SHARE_STATE_RECORD_TYPES: Final[dict[type[ShareStateKey], int]] = {
    ShareSnapshotKey: 0,
    ShareUpdateKey: 1,
}
"""The number that a key's bytes begin with. Source: share-coordinator, CoordinatorRecordType."""
