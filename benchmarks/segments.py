"""Segments of the offsets log: read as columns, by the plain reader and by Kafka's own tool.

600,000 offset commits of 2,000 groups with 47,900 keys, in batches of 1 to 47 records (17 in the
mean), 1 % of them tombstones. The limit is a reader that checks the CRC of each batch and does
nothing else. kafka-dump-log (Java and Maven needed, else left out) prints the uncompressed segment,
with the start of its JVM.
Bars: columns at 1.2 million records a CPU-second uncompressed, 0.9 with lz4 and zstd; 2.5 with the
compiled loops of the extra `fast`, whose loading is measured apart. `known` is the rate of the same
columns where all keys were met before, as in the later segments of a log.

With `--spark`, 10 million records in segments of 60 MB are read to the last offset of each key on
local[2], the JVM's start left out. Bar: 10 s on two idle cores, which are 20 CPU-seconds.
"""

import random
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

import numpy as np

from benchmarks.churn import Usage
from coordinator_sim.disk.last_offsets import read_last_offsets
from coordinator_sim.disk.segment_sources import find_logs
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.log.columns.batch_scan import PADDING, SegmentInMemory, scan_batches
from coordinator_sim.log.columns.compiled import LOAD_AFTER, LOOPS
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommits
from coordinator_sim.log.columns.pieces import PIECE_BYTES
from coordinator_sim.log.columns.segment_columns import SegmentColumns
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm, decode_batches, encode_batch
from coordinator_sim.log.format.segments import SegmentReader, segment_name
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import LogBatch, LogRecord

RECORDS: Final = 600_000
GROUPS: Final = 2_000
LARGEST: Final = 47
"""Records of a batch, at most: the partitions of the largest topic."""
NOW_MS: Final = 1_700_000_000_000
ROUNDS: Final = 3
SPARK_SEGMENTS: Final = 17
BARS: Final = {"none": 1.2, "lz4": 0.9, "zstd": 0.9}
COMPILED_BAR: Final = 2.5
_TOMBSTONES: Final = 0.01
"""Share of tombstones."""


def main() -> None:
    """Print million records a CPU-second for each way of reading, the best of three."""
    batches = commit_batches()
    count = sum(len(batch.records) for batch in batches)
    print(f"{count:,} offset commits in {len(batches):,} batches; M records/CPU-s")
    print(
        f"{'':<8}{'MB':>7}{'CRC only':>10}{'columns':>9}{'known':>7}{'last':>7}{'records':>9}"
        f"{'decoded':>9}  bar of columns"
    )
    segments: dict[str, bytes] = {}
    for codec in Compression:
        form = BatchForm(compression=codec)
        data = b"".join([encode_batch(batch, form) for batch in batches])
        segments[codec.name.lower()] = data
        _measure(codec.name.lower(), data, count)
        if codec is Compression.NONE:
            _measure_kafka(data, count)
            if "--spark" in sys.argv:
                _measure_spark(data, count)
    _measure_compiled(segments, count)


def _measure_compiled(segments: dict[str, bytes], count: int) -> None:
    """Print what the compiled loops read, and what it costs to load them."""
    start_s = process_time()
    if not LOOPS.load():
        print("compiled loops: left out, the extra `fast` is not installed")
        return
    LOOPS.load_after(0)
    for _ in SegmentColumns(SegmentInMemory(segments["none"][:PIECE_BYTES]), KeyTable()):
        pass
    load_s = process_time() - start_s
    print(f"compiled loops, loaded in {load_s:.1f} CPU-s:")
    print(f"{'':<8}{'columns':>9}{'known':>7}{'last':>7}  bar of columns")
    for name, data in segments.items():
        rates = [_rate(way, name, count) for way in _column_ways(data)]
        bar = COMPILED_BAR if name == "none" else ""
        print(f"{name:<8}{rates[0]:>9.2f}{rates[1]:>7.2f}{rates[2]:>7.2f}  {bar}")
    LOOPS.load_after(LOAD_AFTER)


def _measure(name: str, data: bytes, count: int) -> None:
    LOOPS.load_after(sys.maxsize)
    ways = (
        lambda: sum(batch.count or 0 for batch in SegmentReader(data)),
        *_column_ways(data),
        lambda: sum(len(batch.records()) for batch in SegmentReader(data)),
        lambda: sum(len(batch.records) for batch in decode_batches(data, 0)),
    )
    rates = [_rate(way, name, count) for way in ways]
    bar = BARS.get(name)
    cells = "".join(
        f"{rate:>{width}.2f}" for rate, width in zip(rates, (10, 9, 7, 7, 9, 9), strict=True)
    )
    print(f"{name:<8}{len(data) / 1e6:>7.1f}{cells}  {'' if bar is None else bar}")


def _column_ways(data: bytes) -> tuple[Callable[[], int], ...]:
    """Columns with a new table of keys, with one that has all, and to the last offsets."""
    source = SegmentInMemory(data)
    known = KeyTable()

    def columns(keys: KeyTable) -> int:
        return sum(len(chunk.commits) for chunk in SegmentColumns(source, keys))

    def last() -> int:
        keys, commits = KeyTable(), LastCommits()
        found = 0
        for chunk in SegmentColumns(source, keys):
            commits.add(chunk)
            found += len(chunk.commits)
        commits.rows(keys.keys)
        return found

    return lambda: columns(KeyTable()), lambda: columns(known), last


def _rate(way: Callable[[], int], name: str, count: int) -> float:
    """Million records a CPU-second, the best of some rounds."""
    best_s = float("inf")
    for _ in range(ROUNDS):
        start_s = process_time()
        found = way()
        best_s = min(best_s, process_time() - start_s)
        if found != count:
            raise SystemExit(f"{name}: {found} records were read, {count} were written")
    return count / best_s / 1e6


def _measure_kafka(data: bytes, count: int) -> None:
    """Print what Kafka's tool takes for the same segment, its JVM's start included."""
    from coordinator_sim_conformance.real_kafka.offsets_log import dump_by_kafka

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / segment_name(0)
        path.write_bytes(data)
        try:
            dump_by_kafka([_empty(Path(folder))])
            before_s = _children_s()
            text, _ = dump_by_kafka([path])
        except (CoordinatorSimError, OSError) as error:
            print(f"kafka-dump-log: left out, {error}")
            return
        spent_s = _children_s() - before_s
    printed = text.count("\n| offset: ")
    print(f"kafka-dump-log: {printed / spent_s / 1e6:.3f} ({printed:,} of {count:,} printed)")


def _empty(folder: Path) -> Path:
    """An empty segment: the first call of the tool may have to fetch its jars."""
    path = folder / "empty" / segment_name(0)
    path.parent.mkdir()
    path.write_bytes(b"")
    return path


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measure_spark(data: bytes, count: int) -> None:
    from coordinator_sim_reports.offsets import last_offsets
    from coordinator_sim_reports.session import spark_session

    with tempfile.TemporaryDirectory() as scratch:
        write_segments(Path(scratch) / "__consumer_offsets-7", data, count)
        logs = find_logs([Path(scratch)]).logs
        start_s = process_time()
        alone = read_last_offsets(logs)
        alone_s = process_time() - start_s
        total = sum(segment.facts.commit_count for segment in alone.segments)
        with spark_session("local[2]", small=True) as spark:
            spark.range(1).count()
            for job in ("first", "second"):
                started_s = perf_counter()
                with Usage() as usage:
                    found = last_offsets(spark, logs)
                wall_s = perf_counter() - started_s
                if found != alone:
                    raise SystemExit("Spark found other offsets than one process")
                print(
                    f"Spark, {job} job: {total / 1e6:.1f} M records, {len(found.commits):,} keys: "
                    f"{usage.cpu_s:.1f} CPU-s, {wall_s:.1f} s wall, peak "
                    f"{usage.peak_bytes / 1e9:.1f} GB; one process {alone_s:.1f} CPU-s"
                )


def write_segments(folder: Path, data: bytes, count: int, segments: int = SPARK_SEGMENTS) -> None:
    """Write segments with the same batches at other offsets, which no CRC covers.

    Args:
        folder: The partition's folder, which is made.
        data: A segment.
        count: Number of its records.
        segments: Number of segments to write.
    """
    folder.mkdir(parents=True)
    table = scan_batches(data + PADDING, 0, len(data))
    moved = np.frombuffer(data, np.uint8).copy()
    places = table.positions[:, None] + np.arange(8)
    for number in range(segments):
        base = table.column("base_offset") + number * count
        moved[places] = base.astype(">i8").view(np.uint8).reshape(-1, 8)
        (folder / segment_name(number * count)).write_bytes(moved.tobytes())


def commit_batches() -> list[LogBatch]:
    """Return the batches of the commits, the same ones each time."""
    chance = random.Random(1)  # noqa: S311 - the same data each time
    groups = [
        (
            f"consumer-group-{number:05d}-service",
            f"topic-of-events-{chance.randrange(300)}.orders",
            chance.randint(1, LARGEST),
        )
        for number in range(GROUPS)
    ]
    batches: list[LogBatch] = []
    offset, now_ms = 0, NOW_MS
    while offset < RECORDS:
        group, topic, partitions = groups[chance.randrange(GROUPS)]
        now_ms += chance.randrange(20)
        committed = chance.sample(range(partitions), min(partitions, chance.randint(1, LARGEST)))
        records = tuple(
            LogRecord(
                OffsetCommitKey(group, topic, partition),
                None
                if chance.random() < _TOMBSTONES
                else OffsetCommitValue(offset=chance.randrange(10**9), commit_timestamp=now_ms),
                3,
            )
            for partition in committed
        )
        batches.append(
            LogBatch(partition=7, base_offset=offset, timestamp_ms=now_ms, records=records)
        )
        offset += len(records)
    return batches


if __name__ == "__main__":
    main()
