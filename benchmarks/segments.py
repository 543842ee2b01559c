"""Segments of the offsets log: read and written, beside their checksums alone."""

from time import process_time

from coordinator_sim.kafka.records import LogBatch, LogRecord, OffsetCommitKey, OffsetCommitValue
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm, decode_batches, encode_batch
from coordinator_sim.log.format.segments import SegmentReader

BATCHES = 8_000
RECORDS = 12
"""A batch: the mean of a large estate's commits."""
KEYS = 3_360
NOW_MS = 1_700_000_000_000


def main() -> None:
    """Print million records a CPU-second for each way of reading, and for writing."""
    batches = [_batch(index) for index in range(BATCHES)]
    count = BATCHES * RECORDS
    print(f"{count:,} offset commits in batches of {RECORDS}, {KEYS:,} keys; M records/CPU-s")
    print(f"{'':<8}{'MB':>7}{'write':>9}{'CRC only':>10}{'records':>9}{'decoded':>9}")
    for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
        _measure(codec, batches, count)


def _measure(codec: Compression, batches: list[LogBatch], count: int) -> None:
    form = BatchForm(compression=codec)
    start_s = process_time()
    data = b"".join([encode_batch(batch, form) for batch in batches])
    written_s = process_time()
    found = sum(1 for _ in SegmentReader(data))
    checked_s = process_time()
    read = sum(len(batch.records()) for batch in SegmentReader(data))
    read_s = process_time()
    loaded = sum(len(batch.records) for batch in decode_batches(data, 0))
    decoded_s = process_time()
    if (found, read, loaded) != (BATCHES, count, count):
        raise SystemExit(f"{codec.name}: {found} batches, {read} and {loaded} records were read")
    spans = (
        written_s - start_s,
        checked_s - written_s,
        read_s - checked_s,
        decoded_s - read_s,
    )
    write, crc, records, decoded = (count / span_s / 1e6 for span_s in spans)
    size = len(data) / 1e6
    print(
        f"{codec.name.lower():<8}{size:>7.1f}{write:>9.2f}{crc:>10.2f}{records:>9.2f}{decoded:>9.2f}"
    )


def _batch(index: int) -> LogBatch:
    group, topic = f"group-{index % 40}-of-service", f"topic-of-events-{index % 7}"
    return LogBatch(
        partition=0,
        base_offset=index * RECORDS,
        timestamp_ms=NOW_MS + index,
        records=tuple(
            LogRecord(
                OffsetCommitKey(group, topic, partition),
                OffsetCommitValue(offset=index * 100, commit_timestamp_ms=NOW_MS + index),
                3,
            )
            for partition in range(RECORDS)
        ),
    )


if __name__ == "__main__":
    main()
