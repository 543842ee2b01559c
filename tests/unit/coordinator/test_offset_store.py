"""Offsets as applied, as committed, and in transactions."""

from coordinator_sim.coordinator.offsets.offset_store import OffsetStore
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch, LogRecord

KEY = OffsetCommitKey("g", "t", 0)
PRODUCER = 7


def batch(
    base_offset: int, *offsets: int | None, producer_id: int = -1, key: OffsetCommitKey = KEY
) -> LogBatch:
    """A batch that stores these offsets one after the other; None is a tombstone."""
    records = tuple(
        LogRecord(key, None if offset is None else OffsetCommitValue(offset=offset), 3)
        for offset in offsets
    )
    return LogBatch(
        partition=0,
        base_offset=base_offset,
        timestamp_ms=0,
        records=records,
        producer_id=producer_id,
        transactional=producer_id != -1,
    )


def marker(base_offset: int, *, committed: bool, producer_id: int = PRODUCER) -> LogBatch:
    """The end of a producer's transaction."""
    return LogBatch(
        partition=0,
        base_offset=base_offset,
        timestamp_ms=0,
        records=(),
        producer_id=producer_id,
        transactional=True,
        marker=EndTransactionMarker(committed=committed),
    )


def offset_of(store: OffsetStore, position: int = 1 << 62) -> int | None:
    """The offset that a reader at that position sees."""
    value = store.get(KEY, position)
    return None if value is None else value.offset


def test_removed_offset_is_seen_until_its_tombstone_is_committed() -> None:
    """A reader below the tombstone's position still sees the value."""
    store = OffsetStore()
    store.appended(batch(0, 1), 1)
    store.appended(batch(1, None), 1)

    assert offset_of(store, 1) == 1
    store.committed(2)
    assert offset_of(store, 2) is None
    assert not store.has_offsets("g")


def test_removing_what_is_not_there_changes_nothing() -> None:
    """A tombstone of an unknown offset leaves no trace."""
    store = OffsetStore()
    store.appended(batch(0, None), 1)
    assert offset_of(store) is None
    assert list(store.all_of("g")) == []


def test_offset_of_a_transaction_counts_when_its_marker_commits() -> None:
    """Until the marker the offset is open and readers see the one before."""
    store = OffsetStore()
    store.appended(batch(0, 1), 1)
    store.appended(batch(1, 2, producer_id=PRODUCER), 2)
    assert (offset_of(store), store.is_open(KEY)) == (1, True)

    store.appended(marker(2, committed=True), 3)

    assert (offset_of(store), store.is_open(KEY)) == (2, False)


def test_offset_of_an_aborted_transaction_is_dropped() -> None:
    """An abort leaves what was committed before."""
    store = OffsetStore()
    store.appended(batch(0, 2, producer_id=PRODUCER), 1)
    store.appended(marker(1, committed=False), 2)
    assert (offset_of(store), store.has_open_transactions("g")) == (None, False)


def test_plain_commit_after_the_transactional_one_wins_over_a_later_marker() -> None:
    """Kafka compares the records' offsets, not when they began to count (KAFKA-5247)."""
    store = OffsetStore()
    store.appended(batch(0, 10, producer_id=PRODUCER), 1)
    store.appended(batch(1, 20), 2)
    store.appended(marker(2, committed=True), 3)
    assert offset_of(store) == 20


def test_tombstone_removes_what_a_transaction_holds() -> None:
    """After a tombstone a commit marker has nothing to store."""
    store = OffsetStore()
    store.appended(batch(0, 10, producer_id=PRODUCER), 1)
    store.appended(batch(1, None), 2)
    assert not store.is_open(KEY)

    store.appended(marker(2, committed=True), 3)

    assert offset_of(store) is None


def test_refused_batch_leaves_values_and_open_transactions() -> None:
    """A refused append changes nothing that a named fetch shows."""
    store = OffsetStore()
    store.appended(batch(0, 1), 1)
    store.refused(batch(1, 2))
    store.refused(batch(1, 3, producer_id=PRODUCER))
    assert (offset_of(store), store.is_open(KEY)) == (1, False)


def test_refused_batch_lists_an_offset_twice_until_the_next_is_committed() -> None:
    """Kafka's table remembers what it took back."""
    store = OffsetStore()
    store.appended(batch(0, 1), 1)
    store.refused(batch(1, 2))

    (_, listed), *_ = store.all_of("g", 1)
    assert [index for index, _ in listed] == [0, 0]

    store.appended(batch(1, 3), 2)
    (_, listed), *_ = store.all_of("g", 2)
    assert [(index, value.offset) for index, value in listed] == [(0, 3)]


def test_every_offset_of_a_group_is_listed_for_its_deletion() -> None:
    """Committed offsets first, then those that only a transaction holds."""
    store = OffsetStore()
    held = OffsetCommitKey("g", "held", 1)
    store.appended(batch(0, 1), 1)
    store.appended(batch(1, 2, producer_id=PRODUCER), 2)
    store.appended(batch(2, 3, producer_id=PRODUCER, key=held), 3)
    assert store.delete_all_offsets("g") == [KEY, held]


def test_offset_that_two_transactions_hold_is_open_until_both_end() -> None:
    """The first marker leaves the offset open for the other producer."""
    store = OffsetStore()
    store.appended(batch(0, 1, producer_id=PRODUCER), 1)
    store.appended(batch(1, 2, producer_id=PRODUCER + 1), 2)

    store.appended(marker(2, committed=True), 3)
    assert store.is_open(KEY)

    store.appended(marker(3, committed=False, producer_id=PRODUCER + 1), 4)
    assert (store.is_open(KEY), store.has_open_transactions("g"), offset_of(store)) == (
        False,
        False,
        1,
    )


def test_offsets_of_two_groups_in_one_batch_stay_apart() -> None:
    """A batch may hold the same topic for several groups, one record after the other."""
    store = OffsetStore()
    keys = [OffsetCommitKey(group_id, "t", 0) for group_id in ("g", "h", "g")]
    records = tuple(
        LogRecord(key, OffsetCommitValue(offset=offset), 3) for offset, key in enumerate(keys)
    )
    store.appended(LogBatch(partition=0, base_offset=0, timestamp_ms=0, records=records), 3)
    offsets = [value.offset for value in map(store.get, keys) if value is not None]
    assert offsets == [2, 1, 2]
