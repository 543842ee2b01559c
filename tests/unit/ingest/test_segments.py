"""Raw segments of the offsets topic: what real ones tell, and what becomes of damaged ones."""

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from coordinator_sim.cli.ingest import ingest
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm, encode_batch
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.salvage import SalvagingReader
from coordinator_sim.messages import group_records
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.records import (
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OpaqueKey,
    OpaqueValue,
)
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event, TimeKind, TraceEvent

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "samples" / "offsets-segments"
NOW_MS = 1_700_000_000_000
SEGMENT = "00000000000000000000.log"

app = typer.Typer()
app.command()(ingest)


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; user errors are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def summary(*arguments: object) -> dict[str, Any]:
    """What `--json` prints."""
    document: dict[str, Any] = json.loads(run(*arguments, "--json")[1])
    return document


def member(
    name: str, *partitions: int, instance: str | None = None
) -> group_records.MemberMetadata:
    """A member that owns partitions of topic t."""
    owned = tuple(TopicPartition("t", partition) for partition in partitions)
    return group_records.MemberMetadata(
        member_id=name,
        group_instance_id=instance,
        client_id=name[:1],
        client_host="/10.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=b"",
        assignment=encode_assignment(ConsumerAssignment(partitions=owned), 0),
    )


def group(generation: int, at_ms: int, *members: group_records.MemberMetadata) -> LogRecord:
    """A generation whose join phase ended at an instant."""
    value = group_records.GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range" if members else None,
        leader=members[0].member_id if members else None,
        current_state_timestamp=at_ms,
        members=members,
    )
    return LogRecord(group_records.GroupMetadataKey("g"), value, 3)


def commit(partition: int, offset: int) -> LogRecord:
    """A commit of group g."""
    value = group_records.OffsetCommitValue(offset, commit_timestamp=NOW_MS)
    return LogRecord(group_records.OffsetCommitKey("g", "t", partition), value, 3)


def batch(base: int, at_ms: int, *records: LogRecord, producer_id: int = -1) -> LogBatch:
    """A batch of partition 7."""
    return LogBatch(
        partition=7,
        base_offset=base,
        timestamp_ms=at_ms,
        records=records,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        transactional=producer_id >= 0,
    )


LIFE = (
    batch(0, NOW_MS + 5, group(1, NOW_MS, member("a", 0, 1))),
    batch(1, NOW_MS + 1_000, commit(0, 10), commit(1, 20)),
    batch(3, NOW_MS + 2_000, commit(0, 11), commit(1, 21)),
    batch(5, NOW_MS + 30_010, group(2, NOW_MS + 30_000, member("b", 0, 1))),
    batch(6, NOW_MS + 31_000, commit(0, 12)),
)


def write(folder: Path, batches: tuple[LogBatch, ...], form: BatchForm | None = None) -> Path:
    """A segment of partition 7 in a log directory."""
    path = folder / "__consumer_offsets-7" / f"{batches[0].base_offset:020d}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode_batch(each, form or BatchForm()) for each in batches))
    return path


def events_in(out: Path) -> list[TraceEvent]:
    """The events of a trace."""
    return list(read_run(out).events())


def told(out: Path) -> list[tuple[object, ...]]:
    """What the events of a trace say, without where they were read."""
    return [
        (event.event, event.ts_us, event.seq, event.generation, event.member_id, event.offsets)
        for event in events_in(out)
    ]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the real segments are kept beside the project")
def test_real_segments_tell_their_generations(tmp_path: Path) -> None:
    """A group of Kafka 3.2: joined, synced 28 ms later, emptied, and its tombstone."""
    (sample,) = SAMPLES.glob("nidhal_kafka-logs-1___consumer_offsets-32_*.log")
    document = summary(sample, "--out", tmp_path / "t")
    (file,) = document["files"]
    assert (file["kind"], file["lines"], file["unparsed"]) == ("segment", 3, 0)
    assert (file["segment"]["partition"], file["segment"]["coverage"]) == (32, 1.0)
    events = events_in(tmp_path / "t")
    assert [(event.event.value, event.ts_us // 1000, event.generation) for event in events] == [
        ("MEMBER_ADDED", 1_656_598_354_390, 1),
        ("JOIN_COMPLETE", 1_656_598_354_390, 1),
        ("SYNC_LEADER", 1_656_598_354_418, 1),
        ("ASSIGNED", 1_656_598_354_418, 1),
        ("GROUP_EMPTY", 1_656_598_376_226, 2),
        ("GROUP_DEAD", 1_656_598_924_274, 2),
    ]
    joined, dead = events[1], events[-1]
    assert (joined.group_id, joined.protocol_name, joined.members) == (
        "console-consumer-67044",
        "range",
        1,
    )
    assert (dead.ts_kind, dead.ts_err_us) == (TimeKind.INFERRED, 600_000_000)
    assert (events[3].session_timeout_ms, events[3].client_host) == (45_000, "/127.0.0.1")
    rows = list(read_run(tmp_path / "t").generations())
    assert [(row.generation, row.loads) for row in rows] == [(1, (1,)), (2, ())]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the real segments are kept beside the project")
def test_every_real_segment_is_read_whole(tmp_path: Path) -> None:
    """All eight of two clusters: 19 records, none unread, nothing skipped."""
    document = summary(*sorted(SAMPLES.glob("*.log")), "--out", tmp_path / "t")
    assert (document["total"]["lines"], document["total"]["unparsed"]) == (19, 0)
    assert {file["segment"]["skipped_bytes"] for file in document["files"]} == {0}


def test_departure_is_told_by_the_silence_before_it(tmp_path: Path) -> None:
    """A member silent for its session timeout failed; its successor was added."""
    write(tmp_path / "logs", LIFE)
    run(tmp_path / "logs", "--out", tmp_path / "t")
    told_of = {
        event.event: (event.member_id, event.confidence)
        for event in events_in(tmp_path / "t")
        if event.confidence < 1 and event.generation == 2
    }
    assert told_of == {Event.MEMBER_FAILED: ("a", 0.6), Event.MEMBER_ADDED: ("b", 0.9)}


def test_departure_after_a_poll_timeout_without_commits_is_not_told(tmp_path: Path) -> None:
    """A consumer commits when it polls: one that did not for so long may have left for that."""
    after = NOW_MS + 2_000 + 60_001
    write(tmp_path / "logs", (*LIFE[:3], batch(5, after, group(2, after, member("b", 0, 1)))))
    run(tmp_path / "logs", "--out", tmp_path / "t")
    kinds = {event.event for event in events_in(tmp_path / "t")}
    assert kinds.isdisjoint({Event.MEMBER_LEFT, Event.MEMBER_FAILED})


@pytest.mark.parametrize("codec", list(Compression))
def test_compression_changes_nothing(tmp_path: Path, codec: Compression) -> None:
    """Every codec of magic 2 tells what the plain segment tells."""
    write(tmp_path / "plain", LIFE)
    write(tmp_path / "packed", LIFE, BatchForm(compression=codec))
    run(tmp_path / "plain", "--out", tmp_path / "a")
    run(tmp_path / "packed", "--out", tmp_path / "b")
    assert told(tmp_path / "a") == told(tmp_path / "b")


def test_old_magics_are_read(tmp_path: Path) -> None:
    """Magic 1 has the records' times; magic 0 has none, and keeps order, values and state times."""
    write(tmp_path / "new", LIFE)
    write(tmp_path / "one", LIFE, BatchForm(magic=1, compression=Compression.GZIP))
    write(tmp_path / "zero", LIFE, BatchForm(magic=0))
    for name in ("new", "one", "zero"):
        assert run(tmp_path / name, "--out", tmp_path / f"t-{name}")[0] == 0
    assert told(tmp_path / "t-new") == told(tmp_path / "t-one")
    joined = [event for event in events_in(tmp_path / "t-zero") if event.event is Event.SYNC_LEADER]
    assert [event.generation for event in joined] == [1, 2]


def test_compressed_file_is_read_as_it_is(tmp_path: Path) -> None:
    """A collected segment may have been gzipped as a file."""
    path = write(tmp_path / "logs", LIFE)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "t")
    assert code == 0
    assert "100.0 %" in stdout


def test_wrong_crc_costs_its_batch_alone(tmp_path: Path) -> None:
    """The batch is named with its place and size; the batches behind it are read."""
    path = write(tmp_path / "logs", LIFE)
    data = bytearray(path.read_bytes())
    first = len(encode_batch(LIFE[0]))
    data[first + 70] ^= 0xFF
    path.write_bytes(data)
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "t")
    size = len(encode_batch(LIFE[1]))
    assert code == 0
    assert f"a batch of {size} bytes at {first} left out: wrong CRC." in stdout
    commits = [e for e in events_in(tmp_path / "t") if e.event is Event.OFFSET_COMMIT]
    assert [event.seq for event in commits] == [3, 6]
    (file,) = summary(tmp_path / "logs", "--out", tmp_path / "t")["files"]
    assert file["segment"]["coverage"] == pytest.approx(5 / 7)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [(bytes(5_000), "zeros, as in a file of preallocated size"), (b"", "cut short")],
)
def test_tail_is_told_and_costs_nothing_else(tmp_path: Path, tail: bytes, reason: str) -> None:
    """Zeros of a preallocated file, and the torn last batch of a process that died."""
    path = write(tmp_path / "logs", LIFE)
    whole = path.read_bytes()
    path.write_bytes(whole + tail if tail else whole[:-10])
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "t")
    assert (code, reason in stdout) == (0, True)
    assert events_in(tmp_path / "t")[-1].seq == (6 if tail else 5)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_hides_a_good_batch_or_loses_count_of_a_byte(data: st.DataObject) -> None:
    """What is read and what is skipped are the whole file, and untouched batches are all read.

    The damage leaves the first length field of a batch alone or hits it: either way the next good
    batch is found.
    """
    parts = [encode_batch(each) for each in LIFE]
    raw = bytearray(b"".join(parts))
    starts = [sum(map(len, parts[:index])) for index in range(len(parts) + 1)]
    at = data.draw(st.integers(0, len(raw) - 1))
    length = data.draw(st.integers(1, 40))
    for position in range(at, min(at + length, len(raw))):
        raw[position] = data.draw(st.integers(0, 255))
    reader = SalvagingReader(bytes(raw))
    read = [(found.position, found.size) for found in reader]
    used = read + [(part.position, part.size) for part in reader.skipped]
    place = 0
    for position, size in sorted(used):
        assert position == place
        place += size
    assert place == len(raw)
    for start, end in pairwise(starts):
        if bytes(raw[start:end]) == b"".join(parts)[start:end]:
            assert (start, end - start) in read


def test_replicas_and_overlaps_count_once(tmp_path: Path) -> None:
    """The copies of two brokers, one of them compacted, are one partition."""
    write(tmp_path / "broker-1", LIFE)
    write(tmp_path / "broker-2", (LIFE[0], LIFE[3], LIFE[4]))
    write(tmp_path / "alone", LIFE)
    document = summary(tmp_path / "broker-2", tmp_path / "broker-1", "--out", tmp_path / "two")
    run(tmp_path / "alone", "--out", tmp_path / "one")
    assert told(tmp_path / "one") == told(tmp_path / "two")
    assert sum(file["repeated"] for file in document["files"]) == 3


def test_equal_segment_named_twice_counts_once(tmp_path: Path) -> None:
    """A folder, and a file in it."""
    path = write(tmp_path / "logs", LIFE)
    run(tmp_path / "logs", path, "--out", tmp_path / "two")
    run(path, "--out", tmp_path / "one")
    assert told(tmp_path / "one") == told(tmp_path / "two")


def test_partitions_of_two_clusters_are_refused(tmp_path: Path) -> None:
    """Different records at the same offsets are no replicas."""
    write(tmp_path / "blue", LIFE)
    other = tuple(batch(each.base_offset, each.timestamp_ms + 1, *each.records) for each in LIFE)
    write(tmp_path / "green", other)
    with pytest.raises(DataError, match="segments of two clusters"):
        run(tmp_path / "blue", tmp_path / "green", "--out", tmp_path / "t")


def test_transaction_counts_at_its_end(tmp_path: Path) -> None:
    """Committed offsets count when the marker says so, aborted ones never, open ones are told."""
    end = EndTransactionMarker(committed=True)
    abort = EndTransactionMarker(committed=False)

    def marker(base: int, producer_id: int, what: EndTransactionMarker) -> LogBatch:
        return LogBatch(
            partition=7,
            base_offset=base,
            timestamp_ms=NOW_MS + 500,
            records=(),
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            marker=what,
            control=True,
        )

    write(
        tmp_path / "logs",
        (
            batch(0, NOW_MS, commit(0, 1), producer_id=1),
            batch(1, NOW_MS, commit(0, 2), producer_id=2),
            batch(2, NOW_MS, commit(0, 3), producer_id=3),
            marker(3, 2, abort),
            marker(4, 1, end),
        ),
    )
    (file,) = summary(tmp_path / "logs", "--out", tmp_path / "t")["files"]
    (event,) = events_in(tmp_path / "t")
    assert (event.seq, event.ts_us, event.offsets[0].offset) == (0, (NOW_MS + 500) * 1000, 1)
    assert (file["segment"]["aborted"], file["segment"]["unfinished"]) == (1, 1)
    assert file["segment"]["coverage"] == 1.0


def test_static_member_that_returned_is_told_without_a_rebalance(tmp_path: Path) -> None:
    """The generation is stored again with another member id for the same instance."""
    before, after = member("a1", 0, instance="i"), member("a2", 0, instance="i")
    write(
        tmp_path / "logs",
        (
            batch(0, NOW_MS + 5, group(1, NOW_MS, before)),
            batch(1, NOW_MS + 900, group(1, NOW_MS + 10, after)),
        ),
    )
    run(tmp_path / "logs", "--out", tmp_path / "t")
    (replaced,) = [e for e in events_in(tmp_path / "t") if e.event is Event.STATIC_REPLACED]
    assert (replaced.member_id, replaced.attrs["old_member_id"]) == ("a2", "a1")
    joined = [e for e in events_in(tmp_path / "t") if e.event is Event.JOIN_COMPLETE]
    assert len(joined) == 1


def test_what_is_no_record_of_a_group_is_counted_by_its_reason(tmp_path: Path) -> None:
    """Types that no release had yet are known; a value of an unknown version is told, unread."""
    foreign = LogRecord(OpaqueKey(99, b"\x00\x01g"), OpaqueValue(b"\x00\x00\x01"), 0)
    path = write(tmp_path / "logs", (batch(0, NOW_MS, foreign), *LIFE[1:3]))
    broken = Record(offset=5, timestamp_ms=NOW_MS, key=b"\x00\x02\x00\x01g", value=b"\x00\x63")
    data = encode_record_batch(batch_of((broken,)))
    path.write_bytes(path.read_bytes() + data)
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "t")
    (file,) = summary(tmp_path / "logs", "--out", tmp_path / "t")["files"]
    assert code == 0
    assert (file["lines"], file["unparsed"], file["known"]) == (6, 1, 1)
    assert file["segment"]["other_types"] == {"99": 1}
    assert "record: GroupMetadataValue: value version 99 is unknown, the newest is 4" in stdout


def test_only_the_offsets_topic_of_a_log_directory_is_read(tmp_path: Path) -> None:
    """Segments of other topics, indexes and left-over files are passed over, and told."""
    path = write(tmp_path / "logs", LIFE)
    other = tmp_path / "logs" / "orders-0" / SEGMENT
    other.parent.mkdir()
    record = Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"an order")
    other.write_bytes(encode_record_batch(batch_of((record,))))
    path.with_suffix(".index").write_bytes(bytes(100))
    (path.parent / f"{SEGMENT}.deleted").write_bytes(path.read_bytes())
    empty = path.with_name("00000000000000000007.log")
    empty.touch()
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "t")
    assert code == 0
    assert "1 segment of other topics left out." in stdout
    assert "2 files" in stdout
    code, _, stderr = run(other, "--out", tmp_path / "t2")
    assert code == 1
    assert "none of its 1 records is of a group (a record without a key)" in stderr
    with pytest.raises(ConfigError, match="1 segments in this folder, and none of"):
        run(other.parent, "--out", tmp_path / "t2")


def test_segment_of_junk_is_named(tmp_path: Path) -> None:
    """A file of a segment's name without one good batch is an error, and the others are read."""
    path = write(tmp_path / "logs", LIFE)
    junk = path.with_name("00000000000000000100.log")
    junk.write_bytes(bytes(range(256)) * 20)
    code, _, stderr = run(tmp_path / "logs", "--out", tmp_path / "t")
    assert code == 1
    assert f"{junk}: holds no good batch" in stderr
    assert len(events_in(tmp_path / "t")) > 5
