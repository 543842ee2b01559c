"""Members acquire records of a share partition: new ones, released ones, and as many as may be."""

from msgspec.structs import replace

from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.broker.shares.share_values import FetchedBatch
from coordinator_sim.log.contract import AbortedTransaction
from tests.unit.broker.shares.share_stage import ACCEPT, LOCK_MS, RELEASE, active


def test_new_records_are_acquired_once_and_the_next_fetch_is_behind_them() -> None:
    """Two members never get the same record at one time."""
    stage = active()

    assert stage.acquire("a", (0, 9)) == [(0, 9, 1)]
    assert stage.partition.next_fetch_offset() == 10
    assert stage.acquire("b", (0, 9), (10, 14)) == [(10, 14, 1)]


def test_released_records_come_first_with_their_deliveries_counted() -> None:
    """The next fetch goes back to a released record; accepted neighbours are left out."""
    stage = active()
    stage.acquire("a", (0, 4), (5, 9))
    stage.acknowledge("a", (0, 9, (1, 1, 2, 2, 1, 1, 1, 1, 1, 1)))

    assert stage.partition.next_fetch_offset() == 2
    assert stage.acquire("b", (0, 4), (5, 9), (10, 11)) == [(2, 3, 2), (10, 11, 1)]


def test_batches_are_cut_at_the_logs_batches_once_they_have_the_batch_size() -> None:
    """A part ends where a fetched batch begins, so it may be larger than asked for."""
    stage = active()

    parts = stage.acquire("a", (0, 3), (4, 7), (8, 11), (12, 30), batch_size=6)

    assert parts == [(0, 7, 1), (8, 30, 1)]


def test_batch_optimized_takes_a_whole_batch_beyond_the_number_wanted() -> None:
    """The number of records is a soft limit there."""
    assert active().acquire("a", (0, 3), (4, 9), (10, 12), max_records=5) == [(0, 9, 1)]


def test_record_limit_takes_no_record_too_many_and_leaves_the_rest_available() -> None:
    """The rest of the batch is cached, and counts as never delivered."""
    stage = active()

    assert stage.acquire("a", (0, 9), max_records=4, exactly=True) == [(0, 3, 1)]
    assert stage.partition.end_offset == 9
    assert stage.partition.next_fetch_offset() == 4
    assert stage.acquire("b", (0, 9), max_records=9, exactly=True) == [(4, 9, 1)]


def test_full_partition_hands_out_only_what_was_released() -> None:
    """At `share.partition.max.record.locks` nothing behind the end offset is acquired."""
    stage = active(partition_max_record_locks=10)
    stage.acquire("a", (0, 9))
    assert not stage.partition.can_acquire_records()
    stage.acknowledge("a", (4, 4, RELEASE))

    assert stage.partition.can_acquire_records()
    assert stage.acquire("b", (0, 9), (10, 19)) == [(4, 4, 2)]
    assert stage.acquire("b", (10, 19)) == []


def test_often_delivered_records_come_in_ever_smaller_parts() -> None:
    """From half the limit on the number is halved with each delivery, the last one is alone."""
    stage = active(delivery_count_limit=6)
    sizes = []
    for _ in range(6):
        (one,) = stage.acquire("a", (0, 15))
        sizes.append((one[1] - one[0] + 1, one[2]))
        stage.advance(LOCK_MS)

    assert sizes == [(16, 1), (16, 2), (16, 3), (8, 4), (4, 5), (1, 6)]


def test_limit_of_two_deliveries_isolates_no_record() -> None:
    """The second delivery is the last one, and has every record."""
    stage = active(delivery_count_limit=2)
    stage.acquire("a", (0, 4))
    stage.advance(LOCK_MS)

    assert stage.acquire("a", (0, 4)) == [(0, 4, 2)]


def test_gaps_between_stored_records_are_fetched_before_what_is_new() -> None:
    """An earlier leader handed them out, and never wrote what became of them."""
    stage = active(StateBatch(5, 9, 2, 1), StateBatch(15, 19, 0, 1))

    assert stage.partition.next_fetch_offset() == 0
    assert stage.acquire("a", (0, 24)) == [(0, 4, 1), (10, 14, 1), (15, 19, 2), (20, 24, 1)]
    assert stage.partition.end_offset == 24


def test_records_that_compaction_took_are_archived_when_a_fetch_passes_them() -> None:
    """Otherwise the start offset would wait for them for ever."""
    stage = active()
    stage.acquire("a", (0, 4), batch_size=1)
    stage.acquire("a", (5, 9))
    stage.release("a")

    assert stage.acquire("b", (5, 9)) == [(5, 9, 2)]
    assert stage.partition.delivery_complete_count == 5
    stage.acknowledge("b", (5, 9, ACCEPT))
    assert stage.partition.start_offset == 10


def test_records_of_aborted_transactions_are_archived_and_left_out() -> None:
    """The member gets what is around them, the marker included, which clients pass over."""
    stage = active()
    batches = (
        FetchedBatch(0, 2),
        FetchedBatch(3, 5, producer_id=9, is_transactional=True),
        FetchedBatch(6, 6, producer_id=9, is_transactional=True, is_abort_marker=True),
        FetchedBatch(7, 9, producer_id=9, is_transactional=True),
    )

    acquired = stage.acquire("a", *batches, aborted=(AbortedTransaction(9, 3, 6, 7),))

    assert acquired == [(0, 2, 1), (6, 9, 1)]
    assert stage.partition.delivery_complete_count == 3


def test_lock_duration_is_the_groups_setting_at_the_time_of_the_fetch() -> None:
    """A change counts for what is acquired from then on."""
    stage = active()
    stage.acquire("a", (0, 4))
    stage.settings = replace(stage.settings, record_lock_duration_ms=1000)
    stage.acquire("a", (5, 9))
    stage.advance(1000)

    assert stage.partition.next_fetch_offset() == 5


def test_nothing_is_acquired_before_the_start_offset() -> None:
    """A batch that reaches over the start offset is acquired from there on."""
    stage = active(start_offset=5)

    assert stage.acquire("a", (0, 3)) == []
    assert stage.acquire("a", (0, 9)) == [(5, 9, 1)]
