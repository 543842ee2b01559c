"""What the log cleaner leaves."""

from msgspec.structs import replace

from coordinator_sim.log.compaction import CleaningPass, compacted
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import (
    Record,
    RecordBatch,
    batch_of,
    encode_record_batch,
)
from coordinator_sim.log.format.segments import SegmentReader

T_MS = 1_700_000_000_000
DAY_MS = 86_400_000
PRODUCER = 4000
LATER_MS = 10 * DAY_MS
"""After which every producer is forgotten."""


def at(ms: int, clean_to: int | None = None) -> CleaningPass:
    """A pass so long after the log was written."""
    return CleaningPass(now_ms=T_MS + ms, clean_to=clean_to)


def data(
    offset: int, *pairs: tuple[str, str | None], producer_id: int = -1, **settings: object
) -> RecordBatch:
    """A batch of key and value pairs, transactional when it has a producer."""
    records = tuple(
        Record(
            offset=offset + index,
            timestamp_ms=T_MS + index,
            key=key.encode(),
            value=None if value is None else value.encode(),
        )
        for index, (key, value) in enumerate(pairs)
    )
    epoch = -1 if producer_id < 0 else 2
    common = {"producer_id": producer_id, "producer_epoch": epoch, "transactional": producer_id > 0}
    return batch_of(records, **common, **settings)


def marker(offset: int, *, committed: bool, kind: int | None = None) -> RecordBatch:
    """The end of the producer's transaction."""
    number = int(committed) if kind is None else kind
    key = bytes((0, 0, 0, number))
    record = Record(offset=offset, timestamp_ms=T_MS, key=key, value=bytes(6))
    return batch_of(
        (record,), producer_id=PRODUCER, producer_epoch=2, transactional=True, control=True
    )


def shown(batches: list[RecordBatch]) -> list[tuple[int, list[str]]]:
    """Base offset of each batch, and its records as `offset key=value`."""
    return [
        (
            batch.base_offset,
            [
                "marker"
                if batch.control
                else f"{one.offset} {(one.key or b'').decode()}={(one.value or b'').decode()}"
                for one in batch.records
            ],
        )
        for batch in batches
    ]


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    """Gaps appear inside batches, emptied ones go, all readable as bytes."""
    log = [
        data(0, ("a", "1"), ("b", "1")),
        data(2, ("a", "2"), ("c", "1"), ("b", "2"), compression=Compression.LZ4),
        data(5, ("c", "2")),
    ]

    cleaned = compacted(log, at(0))

    assert shown(cleaned) == [(2, ["2 a=2", "4 b=2"]), (5, ["5 c=2"])]
    assert cleaned[0].last_offset == 4
    written = b"".join(encode_record_batch(batch) for batch in cleaned)
    assert [one.decoded() for one in SegmentReader(written)] == cleaned


def test_nothing_is_cleaned_from_the_bound_on() -> None:
    """The active segment stays as it is; its newer records of a key do not count."""
    log = [data(0, ("a", "1")), data(1, ("a", "2")), data(2, ("a", "3"))]

    assert shown(compacted(log, at(0, clean_to=2))) == [(1, ["1 a=2"]), (2, ["2 a=3"])]
    assert compacted([], at(0)) == []


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    """OLOAD-021: the first pass sets the horizon, a pass at that instant drops the tombstone."""
    log = [data(0, ("foo", "23")), data(1, ("foo", None))]

    first = compacted(log, at(0))
    second = compacted(first, at(DAY_MS - 1))
    third = compacted(second, at(DAY_MS))

    assert shown(first) == shown(second) == [(1, ["1 foo="])]
    assert first[0].delete_horizon_ms == T_MS + DAY_MS
    assert second == first
    # The last batch of a pass stays as a header, so that the log's end is not forgotten.
    assert shown(third) == [(1, [])]
    assert third[0].delete_horizon_ms is None


def test_other_records_keep_their_time_beside_a_delete_horizon() -> None:
    """The horizon takes the place of the base timestamp; the records' own times stay."""
    log = [data(0, ("a", "1"), ("b", None), ("c", "1"))]

    (batch,) = compacted(log, at(5))
    (reread,) = SegmentReader(encode_record_batch(batch))

    assert [one.timestamp_ms - T_MS for one in reread.records()] == [0, 1, 2]
    assert reread.delete_horizon_ms == T_MS + 5 + DAY_MS


def test_aborted_data_goes_at_once_and_its_marker_later() -> None:
    """An aborted record never hides an older one; the marker waits for its horizon."""
    log = [
        data(0, ("a", "1")),
        data(1, ("a", "9"), ("b", "9"), producer_id=PRODUCER),
        marker(3, committed=False),
        data(4, ("z", "1")),
    ]

    first = compacted(log, at(LATER_MS))
    second = compacted(first, at(LATER_MS))
    third = compacted(second, at(LATER_MS + DAY_MS))

    assert shown(first) == [(0, ["0 a=1"]), (3, ["marker"]), (4, ["4 z=1"])]
    assert first[1].delete_horizon_ms is None
    assert second[1].delete_horizon_ms == T_MS + LATER_MS + DAY_MS
    assert shown(third) == [(0, ["0 a=1"]), (4, ["4 z=1"])]


def test_a_commit_marker_stays_while_data_of_its_transaction_does() -> None:
    """Only when a later record has replaced all of it the marker may go."""
    log = [
        data(0, ("a", "1"), producer_id=PRODUCER),
        marker(1, committed=True),
        data(2, ("z", "1")),
    ]
    replaced = [*log, data(3, ("a", "2"))]

    kept = compacted(compacted(log, at(LATER_MS)), at(2 * LATER_MS))
    first = compacted(replaced, at(LATER_MS))
    last = compacted(compacted(first, at(LATER_MS)), at(2 * LATER_MS))

    assert kept == log
    assert shown(first) == [(1, ["marker"]), (2, ["2 z=1"]), (3, ["3 a=2"])]
    assert shown(last) == [(2, ["2 z=1"]), (3, ["3 a=2"])]


def test_an_open_transaction_is_a_bound() -> None:
    """Cleaning ends before the first record of an open transaction."""
    log = [
        data(0, ("a", "1")),
        data(1, ("a", "2")),
        data(2, ("b", "1"), producer_id=PRODUCER),
        data(3, ("a", "3")),
    ]

    assert shown(compacted(log, at(LATER_MS))) == [(1, ["1 a=2"]), (2, ["2 b=1"]), (3, ["3 a=3"])]


def test_a_known_producer_keeps_the_header_of_its_last_batch() -> None:
    """The sequence, and after a new epoch the marker that brought it, must not be forgotten."""
    log = [
        data(0, ("a", "1"), producer_id=PRODUCER),
        marker(1, committed=True),
        data(2, ("a", "2")),
    ]
    bumped = replace(log[1], producer_epoch=3)

    assert shown(compacted(log, at(0))) == [(0, []), (1, ["marker"]), (2, ["2 a=2"])]
    assert shown(compacted([log[0], bumped, log[2]], at(LATER_MS))) == [
        (1, ["marker"]),
        (2, ["2 a=2"]),
    ]
    alone = compacted([log[0], bumped, log[2]], at(0))
    due = compacted(alone, CleaningPass(now_ms=T_MS, delete_retention_ms=0))
    emptied = compacted(due, at(0))
    assert shown(emptied) == [(1, []), (2, ["2 a=2"])]
    assert shown(compacted(emptied, at(LATER_MS))) == [(2, ["2 a=2"])]


def test_a_control_batch_of_another_type_stays() -> None:
    """The batch ends no transaction, so it is never known to be superfluous."""
    log = [marker(0, committed=True, kind=9), data(1, ("a", "1"))]

    assert compacted(log, at(LATER_MS)) == log


def test_records_without_a_key_go() -> None:
    """Records without a key have no place in a compacted topic."""
    record = Record(offset=0, timestamp_ms=T_MS, key=None, value=b"x")

    assert compacted([batch_of((record,)), data(1, ("a", "1"))], at(0)) == [data(1, ("a", "1"))]


def test_old_tombstones_go_with_the_age_of_their_segment() -> None:
    """Before magic 2 there is no horizon, no empty batch, and a batch starts at what is left."""
    log = [
        data(0, ("a", "1"), ("b", "1"), magic=1, compression=Compression.GZIP),
        data(2, ("a", None), magic=1),
    ]

    kept = compacted(log, at(0))
    gone = compacted(log, CleaningPass(now_ms=T_MS, keep_legacy_tombstones=False))

    assert shown(kept) == [(1, ["1 b=1"]), (2, ["2 a="])]
    assert shown(gone) == [(1, ["1 b=1"])]
