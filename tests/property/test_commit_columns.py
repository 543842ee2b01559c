"""Columns of a segment are what the plain reader finds, whatever the segment holds."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.disk.last_offsets import read_last_offsets
from coordinator_sim.disk.segment_sources import find_logs
from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import SegmentInMemory
from coordinator_sim.log.columns.chunks import Wanted
from coordinator_sim.log.columns.commit_columns import NUMBERS, ChunkColumns
from coordinator_sim.log.columns.compiled import LOAD_AFTER, LOOPS
from coordinator_sim.log.columns.exact import as_long
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommits
from coordinator_sim.log.columns.pieces import batch_borders
from coordinator_sim.log.columns.segment_columns import SegmentColumns, SegmentFacts
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import read_marker
from coordinator_sim.log.format.offsets_records import (
    decode_key,
    decode_record,
    encode_key,
    encode_value,
)
from coordinator_sim.log.format.record_batches import (
    Record,
    RecordBatch,
    TimestampType,
    checksum_of,
    encode_record_batch,
)
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_reports.offsets import ReadingTask, Span, merged, read_task

pytestmark = pytest.mark.property

Row = tuple[Any, ...]

GROUPS = ("g", "orders-service", "é" * 40, "x" * 150, "")
commit_keys = st.builds(
    OffsetCommitKey, st.sampled_from(GROUPS), st.sampled_from(("t", "u")), st.integers(0, 3)
)
int64 = st.integers(-(2**63), 2**63 - 1)
commits = st.builds(
    OffsetCommitValue,
    offset=int64,
    leader_epoch=st.integers(-(2**31), 2**31 - 1),
    metadata=st.sampled_from(("", "", "m", "é" * 70, "n" * 126)),
    commit_timestamp=int64,
    expire_timestamp=int64,
    topic_id=st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16),
)
keys = st.one_of(
    st.builds(encode_key, commit_keys, legacy=st.booleans()),
    st.builds(encode_key, commit_keys),
    st.builds(lambda key, tail: encode_key(key) + tail, commit_keys, st.binary(max_size=2)),
    st.builds(lambda key, cut: encode_key(key)[:cut], commit_keys, st.integers(0, 12)),
    st.just(b"\x00\x02\x00\x01g"),
    st.binary(max_size=8),
    st.none(),
)
values = st.one_of(
    st.builds(encode_value, commits, st.integers(0, 4)),
    st.builds(encode_value, commits, st.just(3)),
    st.builds(lambda value, cut: encode_value(value, 3)[:cut], commits, st.integers(0, 40)),
    st.builds(lambda value, tail: encode_value(value, 2) + tail, commits, st.binary(max_size=2)),
    st.binary(max_size=30),
    st.none(),
)
deltas_ms = st.sampled_from((0, 0, 1, 200, -5, 86_400_000, -(2**36)))
headers = st.sampled_from(((), (), (), (("h", b"v"),)))


@st.composite
def batches(draw: st.DrawFn) -> RecordBatch:
    """One batch of any format, at offset 0."""
    magic = draw(st.sampled_from((2, 2, 2, 2, 1, 0)))
    control = magic == 2 and draw(st.integers(0, 6)) == 0
    offset, records = 0, []
    for _ in range(1 if control else draw(st.integers(0 if magic == 2 else 1, 5))):
        offset += draw(st.sampled_from((0, 0, 0, 3, 200)))
        records.append(
            Record(
                offset=offset,
                timestamp_ms=1_700_000_000_000 + draw(deltas_ms) if magic else -1,
                key=draw(st.sampled_from((b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\5", b"\0")))
                if control
                else draw(keys),
                value=b"\0\0\0\0\0\7" if control else draw(values),
                headers=draw(headers) if magic == 2 else (),
            )
        )
        offset += 1
    codec = draw(st.sampled_from(list(Compression)))
    return RecordBatch(
        base_offset=0,
        last_offset=max(offset - 1, 0) + draw(st.sampled_from((0, 0, 4))) * (magic == 2),
        records=tuple(records),
        base_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_000_500,
        magic=magic,
        compression=Compression.NONE if control or (magic < 2 and codec == 4) else codec,
        timestamp_type=draw(st.sampled_from((TimestampType.CREATE_TIME, TimestampType(1)))),
        producer_id=draw(st.integers(0, 2)) if magic == 2 else -1,
        producer_epoch=0,
        transactional=control or (magic == 2 and draw(st.booleans())),
        control=control,
    )


def at_offset(batch: RecordBatch, offset: int) -> RecordBatch:
    """The batch, moved behind others."""
    moved = tuple(replace(record, offset=record.offset + offset) for record in batch.records)
    return replace(batch, base_offset=offset, last_offset=batch.last_offset + offset, records=moved)


class Segment(bytes):
    """Bytes that an example shows by their beginning: a segment may have a hundred kilobytes."""

    def __repr__(self) -> str:
        """Return the length and the first bytes."""
        return f"<{len(self)} bytes: {self[:200].hex()}>"


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    """A segment, often of so many batches that they are read side by side, often damaged."""
    drawn = draw(st.lists(batches(), max_size=6)) * draw(st.sampled_from((1, 1, 30)))
    parts, offset = [], 0
    for batch in drawn:
        encoded = encode_record_batch(at_offset(batch, offset))
        offset += batch.last_offset + 1
        if batch.magic == 2 and draw(st.integers(0, 9)) == 0:
            encoded = with_changed_byte(encoded, draw(st.integers(61, len(encoded))), draw(bytes_))
        if draw(st.integers(0, 19)) == 0:  # the base offset is under no checksum
            encoded = draw(int64).to_bytes(8, "big", signed=True) + encoded[8:]
        parts.append(encoded)
    data = b"".join(parts)
    if data and draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + draw(bytes_) + data[at + 1 :]
    if draw(st.integers(0, 3)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return Segment(data + draw(st.sampled_from((b"", b"", bytes(300), b"\xff" * 70, bytes(5)))))


bytes_ = st.binary(min_size=1, max_size=1)


def with_changed_byte(encoded: bytes, at: int, byte: bytes) -> bytes:
    """A batch whose records are damaged, and whose CRC is of the damaged bytes."""
    changed = (encoded[:at] + byte + encoded[at + 1 :])[: len(encoded)]
    return changed[:17] + checksum_of(changed, 2).to_bytes(4, "big") + changed[21:]


class Plain:
    """What the plain reader finds in a segment."""

    def __init__(self, data: bytes, wanted: Wanted) -> None:
        self.commits: list[Row] = []
        self.markers: list[Row] = []
        self.others: list[Row] = []
        self.damage: list[Row] = []
        self.settled: list[tuple[int, Row]] = []
        self.pending: dict[int, list[tuple[int, Row]]] = {}
        self.batch_count = self.record_count = self.other_count = 0
        self.wanted = wanted
        reader = SegmentReader(data, check_crc=False)
        for batch in reader:
            if batch.is_valid:
                self.batch_count += 1
                self.take(batch)
            else:
                self.damage.append((batch.position, batch.size))
        if reader.damage is not None:
            self.damage.append((reader.damage.position, reader.damage.invalid_bytes))

    def take(self, batch: StoredBatch) -> None:
        """Add the records of a batch, unless they do not parse."""
        try:
            records = batch.records()
            if batch.control:
                marker = read_marker(records[0]) if records else None
                is_commit = marker is not None and marker.committed
                self.markers.append((batch.producer_id, len(self.commits), is_commit))
                ended = self.pending.pop(batch.producer_id, [])
                self.settled += ended if is_commit else []
        except WireFormatError:
            self.damage.append((batch.position, batch.size))
            return
        self.record_count += len(records)
        for record in () if batch.control else records:
            self.take_record(batch, record)

    def take_record(self, batch: StoredBatch, record: Record) -> None:
        """Add one record, unless it does not parse."""
        is_other = record.key is not None and len(record.key) >= 2 and record.key[:2] > b"\0\1"
        try:
            if is_other and not self.wanted.others:
                self.other_count += 1
                return
            if self.is_unwanted(record.key or b""):
                return
            decoded = decode_record(record.key or b"", record.value)
        except WireFormatError:
            self.other_count += is_other
            self.damage.append((batch.position, 0))
            return
        if not isinstance(decoded.key, OffsetCommitKey):
            self.other_count += 1
            self.others.append((*place_of(record), decoded))
        else:
            value = decoded.value or OffsetCommitValue(offset=-1, commit_timestamp=-1)
            assert isinstance(value, OffsetCommitValue)
            self.commits.append(
                (
                    decoded.key,
                    *place_of(record),
                    value.offset,
                    value.leader_epoch,
                    value.metadata,
                    value.commit_timestamp,
                    value.expire_timestamp,
                    decoded.value is None,
                    batch.producer_id if batch.transactional else -1,
                )
            )
            row = (len(self.commits), self.commits[-1])
            if batch.transactional:
                self.pending.setdefault(batch.producer_id, []).append(row)
            else:
                self.settled.append(row)

    def is_unwanted(self, raw: bytes) -> bool:
        """Whether a key is of another group, which is seen by the length of its group first."""
        group_id = self.wanted.group_id
        if group_id is None or raw[:2] > b"\0\1" or len(raw) < 4:
            return False
        if int.from_bytes(raw[2:4], "big") != len(group_id.encode()):
            return True
        key = decode_key(raw)
        return isinstance(key, OffsetCommitKey) and key.group != group_id


def place_of(record: Record) -> tuple[int, int]:
    """Offset and timestamp of a record, as columns of 64 bits hold them."""
    return as_long(record.offset), as_long(record.timestamp_ms)


def rows_of(chunks: list[ChunkColumns], table: KeyTable) -> list[Row]:
    """Commits of chunks as rows, keys and metadata by name."""
    rows = []
    for chunk in chunks:
        columns = {name: getattr(chunk.commits, name).tolist() for name in NUMBERS}
        columns["key"] = [table.keys[number] for number in columns["key"]]
        columns["metadata"] = [chunk.commits.texts[index] for index in columns["metadata"]]
        rows += list(zip(*columns.values(), strict=True))
    return rows


def markers_of(chunks: list[ChunkColumns]) -> list[Row]:
    """Ends of transactions as rows, with the number of commits before each."""
    rows: list[Row] = []
    before = 0
    for chunk in chunks:
        columns = (
            chunk.markers.producer_id.tolist(),
            (before + chunk.markers.commits_before).tolist(),
            chunk.markers.is_commit.tolist(),
        )
        rows += zip(*columns, strict=True)
        before += len(chunk.commits)
    return rows


def read(
    data: bytes, wanted: Wanted, spans: list[tuple[int, int | None]], piece_bytes: int
) -> tuple[KeyTable, list[ChunkColumns], list[SegmentFacts]]:
    """Read ranges of a segment one after another."""
    table, chunks, facts = KeyTable(wanted.group_id), [], []
    for start, stop in spans:
        reader = SegmentColumns(
            SegmentInMemory(data), table, wanted, start=start, stop=stop, piece_bytes=piece_bytes
        )
        chunks += list(reader)
        facts.append(reader.facts())
    return table, chunks, facts


@given(
    data=segments(),
    group_id=st.sampled_from((None, None, *GROUPS)),
    others=st.booleans(),
    piece_bytes=st.sampled_from((1, 200, 1_000, 10**6)),
)
def test_columns_are_what_the_plain_reader_finds(
    data: bytes, group_id: str | None, others: bool, piece_bytes: int
) -> None:
    """Commits, ends of transactions, other records, and every damaged place."""
    wanted = Wanted(group_id=group_id, others=others)
    plain = Plain(data, wanted)

    table, chunks, (facts,) = read(data, wanted, [(0, None)], piece_bytes)

    assert rows_of(chunks, table) == plain.commits
    assert markers_of(chunks) == plain.markers
    assert facts.record_count == plain.record_count
    assert facts.other_count == plain.other_count
    assert facts.damage_count == len(plain.damage)
    places = sorted((damage.position, damage.invalid_bytes) for damage in facts.damage)
    assert places == sorted(plain.damage)[: len(places)]
    found = [(o.log_offset, o.timestamp_ms, o.record) for c in chunks for o in c.others]
    assert found == [
        row
        for row in plain.others
        if group_id is None or getattr(row[2].key, "group", group_id) == group_id
    ]


@contextmanager
def compiled() -> Iterator[None]:
    """Read with the compiled loops."""
    LOOPS.load_after(0)
    try:
        yield
    finally:
        LOOPS.load_after(LOAD_AFTER)


@given(
    data=segments(),
    group_id=st.sampled_from((None, None, *GROUPS)),
    piece_bytes=st.sampled_from((200, 10**6)),
)
def test_compiled_loops_find_the_same(data: bytes, group_id: str | None, piece_bytes: int) -> None:
    """Sound and damaged bytes: commits, keys in their order, ends, other records, damage."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    wanted = Wanted(group_id=group_id, others=True)

    table, chunks, facts = read(data, wanted, [(0, None)], piece_bytes)
    with compiled():
        fast_table, fast_chunks, fast_facts = read(data, wanted, [(0, None)], piece_bytes)

    assert fast_table.keys == table.keys
    assert rows_of(fast_chunks, fast_table) == rows_of(chunks, table)
    assert markers_of(fast_chunks) == markers_of(chunks)
    assert [chunk.others for chunk in fast_chunks] == [chunk.others for chunk in chunks]
    assert fast_facts == facts


@given(data=segments(), step_bytes=st.integers(1, 2_000))
def test_ranges_together_are_the_segment(data: bytes, step_bytes: int) -> None:
    """A segment that is split at the borders of batches has the same records, each once."""
    borders = batch_borders(SegmentInMemory(data), step_bytes)
    spans = list(zip(borders, [*borders[1:], None], strict=True))

    whole_table, whole, _ = read(data, Wanted(), [(0, None)], 10**6)
    table, parts, facts = read(data, Wanted(), spans, 10**6)

    assert rows_of(parts, table) == rows_of(whole, whole_table)
    assert markers_of(parts) == markers_of(whole)
    assert sum(part.size for part in facts) == len(data)


@given(data=segments(), piece_bytes=st.sampled_from((200, 10**6)))
def test_the_last_commit_of_a_key_is_its_last_record_that_counts(
    data: bytes, piece_bytes: int
) -> None:
    """Aborted and open transactions do not count; committed ones count at their own offsets."""
    plain = Plain(data, Wanted())
    expected: dict[OffsetCommitKey, Row] = {}
    counts: Counter[OffsetCommitKey] = Counter()
    for _, row in sorted(plain.settled, key=lambda one: one[0]):
        expected[row[0]] = row
        counts[row[0]] += not row[8]

    table, chunks, _ = read(data, Wanted(), [(0, None)], piece_bytes)
    last = LastCommits()
    for chunk in chunks:
        last.add(chunk)

    found = {
        row.key: (
            *(row.key, row.log_offset, row.timestamp_ms, row.offset, row.leader_epoch),
            *(row.metadata, row.commit_timestamp_ms, row.expire_timestamp_ms, row.is_deleted),
        )
        for row in last.rows(table.keys)
    }
    assert found == {key: row[:9] for key, row in expected.items()}
    assert {row.key: row.commit_count for row in last.rows(table.keys)} == counts
    assert last.open_count == sum(map(len, plain.pending.values()))


@given(data=segments(), step_bytes=st.integers(1, 1_000))
def test_tasks_of_a_split_segment_together_find_the_same(data: bytes, step_bytes: int) -> None:
    """Transactions that begin in one task and end in another are decided where they end."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "00000000000000000000.log"
        file.write_bytes(data)
        borders = batch_borders(SegmentInMemory(data), step_bytes)
        spans = [
            Span(path=str(file), name=str(file), start=start, stop=stop)
            for start, stop in zip(borders, [*borders[1:], None], strict=True)
        ]
        tasks = [ReadingTask(number=n, log="one", spans=(span,)) for n, span in enumerate(spans)]

        parts = merged([read_task(task, None) for task in reversed(tasks)])
        whole = read_last_offsets(find_logs([file]).logs)

    assert parts.commits == whole.commits
    assert parts.open_count == whole.open_count
