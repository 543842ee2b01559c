"""Java's HashMap order, checked on values that Java itself gave."""

import uuid

import pytest

from coordinator_sim.kafka.orders.iteration_order import (
    ConcurrentHashTable,
    JavaHashSet,
    connector_task_hash,
    integer_hash,
    java_copy_capacity,
    java_hash_order,
    java_table_capacity,
    topic_partition_hash,
    uuid_hash,
)
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition


def test_three_consumers_iterate_in_reverse() -> None:
    """The order that decides which of three consumers keeps the extra partition."""
    names = ["consumer1", "consumer2", "consumer3"]
    assert java_hash_order(names) == ["consumer3", "consumer2", "consumer1"]


@pytest.mark.parametrize(
    ("size", "grown", "copied"),
    [(0, 16, 16), (11, 16, 16), (12, 16, 32), (13, 32, 32), (24, 32, 64), (25, 64, 64)],
)
def test_capacity_at_the_load_factor(size: int, grown: int, copied: int) -> None:
    """A table doubles above 3/4 full; a copied set is already larger at 3/4."""
    assert java_table_capacity(size) == grown
    assert java_copy_capacity(size) == copied


def test_hashes_wrap_to_signed_32_bits() -> None:
    """Each key type hashes as its Java class does."""
    assert topic_partition_hash(TopicPartition("t", 0)) == 31 * 31 + ord("t")
    assert connector_task_hash(ConnectorTaskId("a", 3)) == 31 * ord("a") + 3
    assert uuid_hash(uuid.UUID(int=(1 << 96) + 5).bytes) == 1 ^ 5
    assert uuid_hash(b"\x80" + bytes(15)) == -(1 << 31)
    assert integer_hash(-7) == -7


def test_colliding_keys_keep_the_order_of_insertion() -> None:
    """Inside one bucket the order of insertion decides, and a repeated key keeps its place."""
    keys = [33, 1, 17, 0, 33]
    assert java_hash_order(keys, hash_of=integer_hash) == [0, 33, 1, 17]
    assert java_hash_order(keys, 64, hash_of=integer_hash) == [0, 1, 17, 33]


def test_high_bits_are_spread_into_the_bucket() -> None:
    """The upper half of a hash is folded into the lower one before the mask."""
    assert java_hash_order([0x30000, 1], hash_of=integer_hash) == [1, 0x30000]


def test_a_live_set_never_shrinks() -> None:
    """After a removal the order is still that of the larger table."""
    live = JavaHashSet(integer_hash, range(20))
    assert live.capacity == 32
    for key in range(1, 20):
        live.discard(key)
    live.add(16)
    live.add(32)
    assert list(live) == [0, 32, 16]
    assert (len(live), live.first(), 16 in live, 99 in live) == (3, 0, True, False)


def test_a_key_added_again_goes_to_the_end_of_its_bucket() -> None:
    """Removing and adding moves a key; adding twice does not."""
    live = JavaHashSet(integer_hash, [1, 17])
    live.add(1)
    assert list(live) == [1, 17]
    live.discard(1)
    live.add(1)
    assert list(live) == [17, 1]


def test_characters_outside_the_basic_plane_hash_by_code_unit() -> None:
    """A surrogate pair counts as two units."""
    assert java_string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_a_growing_concurrent_table_turns_its_buckets_round() -> None:
    """What is not the last run of keys to one new bucket changes its order; removal does not."""
    table = ConcurrentHashTable(integer_hash)
    for key in (16, 32, 48, 64, 1, 2, 3, 4, 5, 6, 7):
        table.add(key)
    assert list(table) == [16, 32, 48, 64, 1, 2, 3, 4, 5, 6, 7]
    table.add(8)
    table.add(8)
    assert list(table) == [32, 64, 1, 2, 3, 4, 5, 6, 7, 8, 48, 16]
    for key in (8, 7, 6, 99):
        table.discard(key)
    assert list(table) == [32, 64, 1, 2, 3, 4, 5, 48, 16]
