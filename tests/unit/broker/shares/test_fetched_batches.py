"""What was read of a log, as a share partition looks at it."""

from coordinator_sim.broker.shares.share_values import FetchedBatch, fetched_batches
from coordinator_sim.log.format.log_batches import encode_batch
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch


def marker(offset: int, *, committed: bool) -> bytes:
    """The end of a transaction of producer 9."""
    return encode_batch(
        LogBatch(
            partition=0,
            base_offset=offset,
            timestamp_ms=1,
            records=(),
            producer_id=9,
            producer_epoch=0,
            transactional=True,
            marker=EndTransactionMarker(committed=committed),
            control=True,
        )
    )


def test_batches_keep_the_offsets_that_compaction_took() -> None:
    """The first and the last offset are those that the batch ever had."""
    batch = RecordBatch(
        base_offset=10,
        last_offset=19,
        records=(Record(offset=12, timestamp_ms=1, key=None, value=b"v"),),
        base_timestamp_ms=1,
        max_timestamp_ms=1,
    )

    assert fetched_batches(encode_record_batch(batch)) == (FetchedBatch(10, 19),)


def test_end_of_an_aborted_transaction_is_told_from_that_of_a_committed_one() -> None:
    """Only the former matters; a batch that is cut short is left out."""
    data = marker(3, committed=False) + marker(4, committed=True)

    assert fetched_batches(data + marker(5, committed=True)[:-1]) == (
        FetchedBatch(3, 3, 9, is_transactional=True, is_abort_marker=True),
        FetchedBatch(4, 4, 9, is_transactional=True),
    )
