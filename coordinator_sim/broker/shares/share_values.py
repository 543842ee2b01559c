"""What a share partition is asked and what it answers, as plain data, and what it asks in turn.

Source: kafka 4.3.1, core/.../share/SharePartition.java and ShareFetchUtils.java,
server/.../share/fetch/ShareAcquiredRecords.java, server-common/.../share/SharePartitionKey.java;
Uuid.java, fromString; ShareCoordinatorService.partitionFor.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from enum import IntEnum, unique
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from coordinator_sim.broker.shares.persister import SharePartitionKey, StateBatch
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.orders.iteration_order import uuid_hash
from coordinator_sim.kafka.partitioning import java_string_hash, partition_for
from coordinator_sim.kafka.share_types import ShareAcquireMode
from coordinator_sim.log.contract import AbortedTransaction
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.codec.json_form import uuid_text
from coordinator_sim.messages.fetch import AbortedTransaction as FetchedAbortion
from coordinator_sim.messages.share_acknowledge import (
    AcknowledgementBatch as AcknowledgedRecords,
)
from coordinator_sim.messages.share_fetch import AcknowledgementBatch, AcquiredRecords

_PARTS: Final = 3
_UUID: Final = re.compile(r"([A-Za-z0-9_-]{22})(?:==)?")
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""What String.trim takes away."""


class Progress(NamedTuple):
    """A change of a share partition's records, for a watcher of the broker.

    Args:
        key: The share partition.
        topic: Name of the partition's topic.
        start_offset: The partition's start offset by now.
        batches: The records, with their new states.
        holder: Member whose lock on them ran out; None where the states have been written.
        locked_ms: For how long the lock was on them.
    """

    key: SharePartitionKey
    topic: str
    start_offset: int
    batches: tuple[StateBatch, ...] = ()
    holder: str | None = None
    locked_ms: int = 0


Watch = Callable[[Progress], None]


def coordinator_key(key: SharePartitionKey) -> str:
    """A share partition as FindCoordinator names it. Source: asCoordinatorKey."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def state_partition(key: SharePartitionKey, partition_count: int) -> int:
    """The partition of `__share_group_state` that keeps a share partition."""
    return partition_for(coordinator_key(key), partition_count)


def key_from(text: str) -> SharePartitionKey | None:
    """The share partition that a text names, read from its end: a group may have colons.

    None where the text names none. Source: SharePartitionKey.getInstance.
    """
    tokens = text.split(":")
    while tokens and not tokens[-1]:
        # As String.split does.
        tokens.pop()
    if len(tokens) < _PARTS:
        return None
    group_id = ":".join(tokens[:-2])
    topic = _UUID.fullmatch(tokens[-2])
    partition = java_int(tokens[-1])
    if not group_id.strip(_TRIMMED) or topic is None or partition is None:
        return None
    return SharePartitionKey(group_id, urlsafe_b64decode(f"{topic[1]}=="), partition)


def share_partition_hash(key: SharePartitionKey) -> int:
    """The signed 32-bit hash of a share partition without its topic's name.

    Source: SharePartitionKey.hashCode, TopicIdPartition.hashCode and TopicPartition.hashCode.
    """
    place = 31 * (31 + uuid_hash(key.topic_id)) + 31 * (31 + key.partition)
    mixed = 31 * (31 + java_string_hash(key.group_id)) + place & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed


Acknowledgement = AcknowledgementBatch | AcknowledgedRecords
"""Consecutive records with one type for all or one for each, of ShareFetch or ShareAcknowledge."""

Aborted = AbortedTransaction | FetchedAbortion
"""An aborted transaction, of the log's index or as a Fetch tells it."""

NO_PRODUCER = -1


@unique
class PartitionState(IntEnum):
    """Whether a share partition can be used. Source: SharePartition.SharePartitionState."""

    EMPTY = 0
    INITIALIZING = 1
    ACTIVE = 2
    FAILED = 3
    FENCED = 4


class FetchedBatch(Struct, frozen=True, gc=False):
    """A batch of the log, as far as a share partition looks at it.

    Args:
        base_offset: Of the first record that there ever was.
        last_offset: Of the last record that there ever was.
        producer_id: Of an idempotent or transactional producer; -1 for none.
        is_transactional: Whether it belongs to a transaction.
        is_abort_marker: Whether it is the end of a transaction that was aborted.
    """

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER
    is_transactional: bool = False
    is_abort_marker: bool = False


def fetched_batches(data: bytes) -> tuple[FetchedBatch, ...]:
    """The whole batches in what was read of a log, in order."""
    return tuple(
        FetchedBatch(
            batch.base_offset,
            batch.last_offset,
            batch.producer_id,
            batch.transactional,
            batch.control and (marker := marker_of(batch)) is not None and not marker.committed,
        )
        for batch in batches_in(data)
    )


class AcquireRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Records that were fetched for one member, and how many of them it may acquire.

    Args:
        member_id: The member.
        mode: How the number is bounded.
        batch_size: Approximate number of records in one entry of the response.
        max_fetch_records: Records that the member wants, at most.
        fetch_offset: Offset from which the log was read.
        batches: The batches read, in offset order.
        aborted: The aborted transactions with records among them.
        is_read_committed: Whether records of aborted transactions are left out.
    """

    member_id: str
    mode: ShareAcquireMode = ShareAcquireMode.BATCH_OPTIMIZED
    batch_size: int
    max_fetch_records: int
    fetch_offset: int
    batches: tuple[FetchedBatch, ...]
    aborted: tuple[Aborted, ...] = ()
    is_read_committed: bool = False


class Acquired(Struct, frozen=True, gc=False):
    """The records that a member acquired.

    Args:
        records: Consecutive ones with the number of their deliveries, this one included.
        count: How many offsets these are.
    """

    records: tuple[AcquiredRecords, ...] = ()
    count: int = 0


class ShareSettings(Struct, frozen=True, kw_only=True, gc=False):
    """The settings of a share group that its partitions look at, as they are now.

    Args:
        record_lock_duration_ms: `share.record.lock.duration.ms`.
        delivery_count_limit: `share.delivery.count.limit`.
        partition_max_record_locks: `share.partition.max.record.locks`.
        auto_offset_reset: `share.auto.offset.reset`.
        is_renew_acknowledge_enabled: `share.renew.acknowledge.enable`.
    """

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2000
    auto_offset_reset: str = "latest"
    is_renew_acknowledge_enabled: bool = True


class LogOffsets(Protocol):
    """Where a group that never read a partition may begin.

    Each answers an offset, None where the log has none, or why it cannot be said.
    """

    def earliest_offset(self) -> int | Refusal | None:
        """The first offset."""
        ...

    def latest_offset(self) -> int | Refusal | None:
        """The high watermark."""
        ...

    def offset_for_timestamp(self, timestamp_ms: int) -> int | Refusal | None:
        """The offset of the first record from an instant on."""
        ...
