"""One partition of the topic: what requests write, and how Kafkas differ in it."""

from typing import Any

import pytest
from msgspec import structs

from coordinator_sim.broker.share_coordinator import shard
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages import share_state_records

TOPIC = bytes(15) + b"\x07"
KEY = SharePartitionKey("g", TOPIC, 0)


class OneTopic:
    """A topic with two partitions."""

    def partition_count(self, topic_id: bytes) -> int | None:
        """How many partitions a topic has."""
        return 2 if topic_id == TOPIC else None


class Bench:
    """A shard whose records count as soon as they are made.

    Args:
        release: Of Kafka.
        updates: How many updates come between snapshots.
    """

    def __init__(self, release: str = "4.4", updates: int = 500) -> None:
        config = ShareCoordinatorConfig(updates_per_snapshot=updates, profile=PROFILES[release])
        self.shard = shard.ShareCoordinatorShard(config, OneTopic(), 0)
        self.written: list[Any] = []

    def take(self, records: shard.Records) -> None:
        """Let records count."""
        for record in records:
            self.shard.replay(len(self.written), record)
            self.written.append(record.value)

    def initialize(self, start_offset: int = 0, state_epoch: int = 1) -> ErrorCode:
        """Begin to keep the state."""
        records, refusal = self.shard.initialize(KEY, state_epoch, start_offset, 100)
        self.take(records)
        return error_of(refusal)

    def write(self, *batches: tuple[int, int, int, int], **changed: int) -> ErrorCode:
        """Keep batches: first offset, last offset, state, count."""
        writing = shard.Writing(
            key=KEY,
            state_epoch=1,
            leader_epoch=0,
            start_offset=-1,
            delivery_complete_count=0,
            batches=tuple(share_state_records.StateBatch(*each) for each in batches),
        )
        records, refusal = self.shard.write(structs.replace(writing, **changed), 200)
        self.take(records)
        return error_of(refusal)

    def read(self, leader_epoch: int) -> share_state_records.ShareSnapshotValue | shard.Refusal:
        """Read as a leader of that epoch."""
        records, found = self.shard.read(KEY, leader_epoch, 300)
        self.take(records)
        return found


def error_of(refusal: shard.Refusal | None) -> ErrorCode:
    """The error of a refusal; NONE for none."""
    return ErrorCode.NONE if refusal is None else refusal.error


def test_so_many_updates_come_between_snapshots() -> None:
    """Epochs of snapshots grow by one; a read of a new leader counts as an update."""
    bench = Bench(updates=2)
    bench.initialize(start_offset=3)
    for first in range(3):
        bench.write((first + 3, first + 3, 2, 1))
    bench.read(leader_epoch=5)
    kinds = [type(value) for value in bench.written]
    assert kinds == [
        share_state_records.ShareSnapshotValue,
        share_state_records.ShareUpdateValue,
        share_state_records.ShareUpdateValue,
        share_state_records.ShareSnapshotValue,
        share_state_records.ShareUpdateValue,
    ]
    epochs = [value.snapshot_epoch for value in bench.written]
    assert epochs == [0, 0, 0, 1, 1]
    assert bench.written[3].state_batches == (share_state_records.StateBatch(3, 5, 2, 1),)
    assert bench.written[4].leader_epoch == 5


def test_a_new_beginning_forgets_batches_and_fences_older_groups() -> None:
    """Deliveries are counted from a start offset on, and not where there is none."""
    bench = Bench()
    assert bench.initialize(start_offset=-1) is ErrorCode.NONE
    assert bench.written[-1].delivery_complete_count == -1
    bench.write((0, 4, 2, 1))
    assert bench.initialize(start_offset=9, state_epoch=2) is ErrorCode.NONE
    state = bench.shard.state_of(KEY)
    assert state is not None
    assert (state.start_offset, state.delivery_complete_count, state.state_batches) == (9, 0, ())
    assert bench.initialize(state_epoch=1) is ErrorCode.FENCED_STATE_EPOCH
    assert bench.write((9, 9, 2, 1)) is ErrorCode.FENCED_STATE_EPOCH


def test_a_read_fences_older_leaders() -> None:
    """The epoch is kept, for writes as for reads."""
    bench = Bench()
    bench.initialize()
    bench.read(leader_epoch=4)
    bench.read(leader_epoch=4)
    assert len(bench.written) == 2
    assert bench.write((0, 0, 2, 1), leader_epoch=3) is ErrorCode.FENCED_LEADER_EPOCH
    refused = bench.read(leader_epoch=3)
    assert isinstance(refused, shard.Refusal)
    assert refused.error is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("release", "error"), [("4.3", ErrorCode.NONE), ("4.4", ErrorCode.INVALID_REQUEST)]
)
def test_epoch_minus_one_fenced_nobody_up_to_4_3(release: str, error: ErrorCode) -> None:
    """Since 4.4 it is refused."""
    bench = Bench(release)
    bench.initialize(state_epoch=3)
    bench.read(leader_epoch=3)
    assert bench.write((0, 0, 2, 1), leader_epoch=-1, state_epoch=3) is error
    assert bench.write((0, 0, 2, 1), leader_epoch=3, state_epoch=-1) is error
    assert bench.initialize(state_epoch=-1) is error
    found = bench.read(leader_epoch=-1)
    assert (found.error if isinstance(found, shard.Refusal) else ErrorCode.NONE) is error


@pytest.mark.parametrize(("release", "start_offset", "count"), [("4.3", 2, 1), ("4.4", 5, 4)])
def test_a_start_offset_only_grows_since_4_4(release: str, start_offset: int, count: int) -> None:
    """An older one leaves what is kept; before, it counted."""
    bench = Bench(release)
    bench.initialize(start_offset=0)
    bench.write((5, 5, 2, 1), start_offset=5, delivery_complete_count=4)
    bench.write((6, 6, 2, 1), start_offset=2, delivery_complete_count=1)
    state = bench.shard.state_of(KEY)
    assert state is not None
    assert (state.start_offset, state.delivery_complete_count) == (start_offset, count)


def test_4_2_fences_reads_without_an_epoch() -> None:
    """Writes it lets pass."""
    bench = Bench("4.2")
    bench.initialize()
    refused = bench.read(leader_epoch=-1)
    assert isinstance(refused, shard.Refusal)
    assert refused.error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.write((0, 0, 2, 1), leader_epoch=-1) is ErrorCode.NONE


def test_an_unknown_topic_comes_after_the_state() -> None:
    """A partition beyond the topic's is unknown; nobody begins to keep it."""
    bench = Bench()
    beyond = SharePartitionKey("g", TOPIC, 2)
    _, refusal = bench.shard.initialize(beyond, 1, 0, 100)
    assert error_of(refusal) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = bench.shard.summary(SharePartitionKey("g", bytes(16), 0))
    assert isinstance(refused, shard.Refusal)
    _, found = bench.shard.read(beyond, 0, 100)
    assert isinstance(found, shard.Refusal)
    assert found.error is ErrorCode.INVALID_REQUEST


def test_cold_state_is_written_anew_while_something_is_warm() -> None:
    """Once everything is cold there is nothing to do."""
    bench = Bench()
    bench.initialize()
    assert bench.shard.cold_snapshots(150, interval_ms=100) == ()
    records = bench.shard.cold_snapshots(200, interval_ms=100)
    bench.take(records)
    assert bench.written[-1].write_timestamp == 200
    assert bench.written[-1].create_timestamp == 100
    assert bench.shard.cold_snapshots(900, interval_ms=100) == ()


def test_the_redundant_prefix_ends_at_the_oldest_snapshot() -> None:
    """Of the share partitions that are kept."""
    bench = Bench(updates=0)
    assert bench.shard.redundant.last() is None
    bench.initialize()
    assert bench.shard.redundant.last() is None
    bench.write((0, 0, 2, 1))
    bench.write((1, 1, 2, 1))
    assert bench.shard.redundant.last() == 2
