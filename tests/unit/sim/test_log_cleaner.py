"""What a pass of the log cleaner leaves."""

from msgspec.structs import replace

from coordinator_sim.kafka.records import (
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.sim.log_cleaner import CleanedBatch, clean

PUT, GONE = OffsetCommitValue(offset=5), None


def batch(base_offset: int, **values: OffsetCommitValue | None) -> CleanedBatch:
    """A batch of offsets, one a topic."""
    records = tuple(
        LogRecord(OffsetCommitKey("g", topic, 0), value, 3) for topic, value in values.items()
    )
    return CleanedBatch(
        LogBatch(partition=0, base_offset=base_offset, timestamp_ms=0, records=records)
    )


def shown(log: list[CleanedBatch]) -> list[tuple[int, str]]:
    """Offset and topic of every record that is left."""
    return [
        (entry.batch.base_offset + index, record.key.topic)
        for entry in log
        for index, record in enumerate(entry.batch.records)
        if isinstance(record.key, OffsetCommitKey)
    ]


def test_last_record_of_each_key_keeps_its_offset() -> None:
    """A batch that loses its middle is left in two pieces."""
    log = clean([batch(0, a=PUT, b=PUT, c=PUT), batch(3, b=PUT)], now_ms=0)

    assert shown(log) == [(0, "a"), (2, "c"), (3, "b")]


def test_tombstone_stands_until_the_horizon_that_its_first_pass_set() -> None:
    """At the horizon itself it goes, as Kafka compares with `>`."""
    log = clean([batch(0, a=PUT), batch(1, a=GONE, b=PUT)], now_ms=1_000, delete_retention_ms=500)
    assert shown(log) == [(1, "a"), (2, "b")]
    assert log[0].delete_horizon_ms == 1_500

    assert shown(clean(log, now_ms=1_499)) == [(1, "a"), (2, "b")]
    assert shown(clean(log, now_ms=1_500)) == [(2, "b")]


def test_transactions_and_their_markers_stay() -> None:
    """They decide what a load makes of the offsets between them."""
    marker = CleanedBatch(
        LogBatch(
            partition=0,
            base_offset=1,
            timestamp_ms=0,
            records=(),
            producer_id=7,
            control=True,
            marker=EndTransactionMarker(committed=True, coordinator_epoch=0),
        )
    )
    assert clean([batch(0, a=PUT), marker], now_ms=0) == [batch(0, a=PUT), marker]


def test_an_aborted_record_hides_no_older_one() -> None:
    """Its transaction never was, so the last record before it is the last of its key."""
    producer = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    written = CleanedBatch(replace(batch(1, a=PUT).batch, **producer))
    plain = batch(2, b=PUT)
    marker = LogBatch(
        partition=0,
        base_offset=3,
        timestamp_ms=0,
        records=(),
        control=True,
        marker=EndTransactionMarker(committed=False),
        **producer,
    )

    log = clean([batch(0, a=PUT), written, plain, CleanedBatch(marker)], now_ms=0)

    assert shown(log) == [(0, "a"), (1, "a"), (2, "b")]
