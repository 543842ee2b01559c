"""Records of the `__consumer_offsets` log as plain data; `wire` turns them into bytes.

Source: kafka trunk, group-coordinator/src/main/resources/common/message, GroupMetadata* and
OffsetCommit* schemas.
"""

from msgspec import Struct


class GroupMetadataKey(Struct, frozen=True, gc=False):
    """Key version 2: names a classic group."""

    group_id: str


class GroupMetadataMember(Struct, frozen=True, kw_only=True):
    """A member as stored: its subscription is the one of the chosen protocol only."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(Struct, frozen=True, kw_only=True):
    """A generation as stored. `current_state_timestamp_ms` is -1 where the version lacks it."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[GroupMetadataMember, ...] = ()


class OffsetCommitKey(Struct, frozen=True, gc=False):
    """Key version 1: names one partition's offset in a group."""

    group_id: str
    topic: str
    partition: int


class OffsetCommitValue(Struct, frozen=True, kw_only=True, gc=False):
    """A stored offset. `expire_timestamp_ms` is -1 but for explicit retention."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    topic_id: bytes | None = None


LogKey = GroupMetadataKey | OffsetCommitKey
LogValue = GroupMetadataValue | OffsetCommitValue


class LogRecord(Struct, frozen=True):
    """One record: a value of None is a tombstone. `value_version` is the schema's version."""

    key: LogKey
    value: LogValue | None
    value_version: int


class EndTransactionMarker(Struct, frozen=True, kw_only=True, gc=False):
    """The one record of a control batch: how the transaction of its producer ended."""

    committed: bool
    coordinator_epoch: int = 0


class LogBatch(Struct, frozen=True, kw_only=True):
    """Records appended together, as a driver stores them and a load replays them.

    Args:
        partition: Partition of `__consumer_offsets`.
        base_offset: Offset of the first record; the others follow without gaps.
        timestamp_ms: Append time of every record of the batch.
        producer_id: Of a transaction; -1 for plain records.
        transactional: Whether the records count only once a COMMIT marker of the producer follows.
        marker: Of a control batch, which has no other records and takes one offset.
    """

    partition: int
    base_offset: int
    timestamp_ms: int
    records: tuple[LogRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    transactional: bool = False
    marker: EndTransactionMarker | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.base_offset + (len(self.records) if self.marker is None else 1)
