"""Reads the batches of a segment into columns, some ten thousand records at a time."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import BatchTable, Flags, Ints, gathered
from coordinator_sim.log.columns.commit_columns import (
    NO_PRODUCER,
    ChunkColumns,
    CommitColumns,
    Markers,
    OtherRecord,
    Texts,
    columns_of,
    joined,
    picked,
)
from coordinator_sim.log.columns.commit_values import CommitValues, read_values
from coordinator_sim.log.columns.contents import Contents, contents_of
from coordinator_sim.log.columns.exact import (
    ExactRows,
    as_long,
    damaged_record,
    read_exactly,
    required_key,
)
from coordinator_sim.log.columns.key_table import UNREADABLE, KeyTable
from coordinator_sim.log.columns.record_table import RecordTable, read_records, selected
from coordinator_sim.log.format.offsets_records import OFFSET_KEY, decode_record, decode_value
from coordinator_sim.log.format.record_batches import CONTROL, LOG_APPEND, TRANSACTIONAL
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

CHUNK_RECORDS: Final = 65_536
"""Records that are read together: their columns fit the processor's cache."""
_MARKER_KEY: Final = 4
_MARKER_VALUE: Final = 6
_VERSION_SIZE: Final = 2


class Wanted(Struct, frozen=True, kw_only=True):
    """Which records to read; the others are counted, not decoded.

    Args:
        group_id: The only group whose commits are wanted; None for all.
        others: Whether records of other types than offsets are wanted too.
    """

    group_id: str | None = None
    others: bool = False


EVERY_COMMIT: Final = Wanted()


class _Chunk(Struct, frozen=True, kw_only=True):
    """What the steps of reading a chunk share; rows are collected with their batch's index."""

    table: BatchTable
    span: slice
    contents: Contents
    keys: KeyTable
    texts: Texts
    wanted: Wanted
    damage: list[tuple[int, Damage]]
    others: list[tuple[int, OtherRecord]]

    def column(self, name: str) -> Ints:
        """A field of the headers of the chunk's batches."""
        return self.table.headers[name][self.span].astype(np.int64)


class _Commits(Struct, frozen=True, kw_only=True):
    """Commits of usual batches, the batch of each, and the number of other records there."""

    columns: CommitColumns
    batch: Ints
    other_count: int


def chunks_of(
    table: BatchTable, keys: KeyTable, wanted: Wanted = EVERY_COMMIT
) -> Iterator[ChunkColumns]:
    """The records of a table's batches, in the order of the log.

    Args:
        table: Batches with a correct CRC.
        keys: Gives keys their numbers; made for the same group.
        wanted: Which records to read.
    """
    counts = np.clip(table.column("count"), 1, CHUNK_RECORDS)
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + CHUNK_RECORDS, side="right"))
        yield _read(table, slice(start, max(stop, start + 1)), keys, wanted)
        start = max(stop, start + 1)


def _read(table: BatchTable, span: slice, keys: KeyTable, wanted: Wanted) -> ChunkColumns:
    contents = contents_of(table, span)
    chunk = _Chunk(
        table=table,
        span=span,
        contents=contents,
        keys=keys,
        texts=Texts(),
        wanted=wanted,
        damage=[],
        others=[],
    )
    counts = np.where(contents.odd, 0, chunk.column("count"))
    records, odd = read_records(contents.data, contents.starts, contents.ends, counts)
    odd |= contents.odd
    is_control = (chunk.column("attributes") & CONTROL != 0) & ~odd
    of_control = is_control[records.batch]
    marked, is_commit = _markers(chunk, selected(records, of_control), is_control)
    odd |= is_control & ~marked
    if is_control.any():
        records = selected(records, ~of_control)
    commits = _commits(chunk, records)
    exact = {
        index: read_exactly(
            table.stored(span.start + index),
            table.origin,
            keys,
            chunk.texts,
            others=wanted.others,
        )
        for index in np.flatnonzero(odd).tolist()
    }
    columns, batch = _merged(commits, exact, chunk.texts)
    return ChunkColumns(
        commits=columns,
        markers=_merged_markers(chunk, (marked, is_commit), exact, batch),
        others=_merged_others(chunk, exact),
        other_count=commits.other_count + sum(found.other_count for found in exact.values()),
        batch_count=len(odd),
        record_count=int(counts[~odd].sum()) + sum(found.count for found in exact.values()),
        first_offset=_first_offset(table, span, exact),
        last_offset=table.stored(span.stop - 1).last_offset,
        damage=_merged_damage(chunk, exact),
    )


def _markers(chunk: _Chunk, records: RecordTable, is_control: Flags) -> tuple[Flags, Flags]:
    """Which batches are usual ends of transactions, and which of these are commits."""
    marked = np.zeros(len(is_control), bool)
    is_commit = np.zeros(len(is_control), bool)
    if not len(records.batch):
        return marked, is_commit
    kind = gathered(chunk.contents.data, records.key_start + _VERSION_SIZE, ">i2")
    usual = (records.key_size == _MARKER_KEY) & (records.value_size >= _MARKER_VALUE)
    usual &= (kind == 0) | (kind == 1)
    usual &= (chunk.column("count") == 1)[records.batch]
    marked[records.batch[usual]] = True
    is_commit[records.batch[usual]] = kind[usual] == 1
    return marked, is_commit


def _commits(chunk: _Chunk, records: RecordTable) -> _Commits:
    """The wanted commits of records outside control batches."""
    data = chunk.contents.data
    is_other = _is_other(chunk, records)
    is_commit = ~is_other & (records.key_size >= _VERSION_SIZE)
    if not is_commit.all():
        _take_others(chunk, selected(records, ~is_commit))
        records = selected(records, is_commit)
    numbers = chunk.keys.numbers_of(data, records.key_start, records.key_size)
    known = numbers >= 0
    if not known.all():
        _take_others(chunk, selected(records, numbers == UNREADABLE))
        records, numbers = selected(records, known), numbers[known]
    values, odd = read_values(data, records.value_start, records.value_size, chunk.texts)
    good = ~odd
    for row in np.flatnonzero(odd).tolist():
        good[row] = _read_value(chunk, records, values, row)
    offsets, times_ms = _places(chunk, records)
    is_transactional = (chunk.column("attributes") & TRANSACTIONAL) != 0
    producers = np.where(is_transactional, chunk.column("producer_id"), NO_PRODUCER)
    columns = CommitColumns(
        key=numbers,
        log_offset=offsets,
        timestamp_ms=times_ms,
        offset=values.offset,
        leader_epoch=values.leader_epoch,
        metadata=values.metadata,
        commit_timestamp_ms=values.commit_timestamp_ms,
        expire_timestamp_ms=values.expire_timestamp_ms,
        is_tombstone=records.value_size < 0,
        producer_id=producers[records.batch],
        texts=chunk.texts.values,
    )
    batch = records.batch
    if not good.all():
        columns, batch = picked(columns, good), batch[good]
    return _Commits(columns=columns, batch=batch, other_count=int(is_other.sum()))


def _places(chunk: _Chunk, records: RecordTable) -> tuple[Ints, Ints]:
    """Offset and timestamp of each record."""
    offsets = chunk.column("base_offset")[records.batch] + records.offset_delta
    appended = (chunk.column("attributes") & LOG_APPEND) != 0
    base_ms = np.where(
        appended, chunk.column("max_timestamp_ms"), chunk.column("base_timestamp_ms")
    )
    deltas = np.where(appended[records.batch], 0, records.time_delta)
    return offsets, base_ms[records.batch] + deltas


def _read_value(chunk: _Chunk, records: RecordTable, values: CommitValues, row: int) -> bool:
    """Read one value of an unusual form; False where it does not parse."""
    data = chunk.contents.data
    start = int(records.value_start[row])
    raw = data[start : start + int(records.value_size[row])]
    try:
        value, _ = decode_value(OffsetCommitKey("", "", 0), raw)
    except WireFormatError as error:
        _report(chunk, records, row, error)
        return False
    if isinstance(value, OffsetCommitValue):
        values.offset[row] = value.offset
        values.leader_epoch[row] = value.leader_epoch
        values.metadata[row] = chunk.texts.index_of(value.metadata)
        values.commit_timestamp_ms[row] = value.commit_timestamp
        values.expire_timestamp_ms[row] = value.expire_timestamp
    return True


def _take_others(chunk: _Chunk, records: RecordTable) -> None:
    """Read records that are no commits by the plain reader, as far as they are wanted."""
    data = chunk.contents.data
    if not chunk.wanted.others:
        records = selected(records, ~_is_other(chunk, records))
    offsets, times_ms = _places(chunk, records)
    for row in range(len(records.batch)):
        size, start = int(records.key_size[row]), int(records.key_start[row])
        value_start, value_size = int(records.value_start[row]), int(records.value_size[row])
        value = data[value_start : value_start + value_size] if value_size >= 0 else None
        try:
            key = required_key(data[start : start + size] if size >= 0 else None)
            decoded = decode_record(key, value)
        except WireFormatError as error:
            _report(chunk, records, row, error)
            continue
        found = OtherRecord(
            log_offset=int(offsets[row]), timestamp_ms=int(times_ms[row]), record=decoded
        )
        chunk.others.append((int(records.batch[row]), found))


def _is_other(chunk: _Chunk, records: RecordTable) -> Flags:
    """Which records have a key of another type than an offset's."""
    kinds = gathered(chunk.contents.data, records.key_start, ">i2")
    return (records.key_size >= _VERSION_SIZE) & ((kinds < 0) | (kinds > OFFSET_KEY))


def _report(chunk: _Chunk, records: RecordTable, row: int, error: WireFormatError) -> None:
    batch = int(records.batch[row])
    position = chunk.table.origin + int(chunk.table.positions[chunk.span.start + batch])
    base = int(chunk.table.headers["base_offset"][chunk.span.start + batch])
    offset = as_long(base + int(records.offset_delta[row]))
    chunk.damage.append((batch, damaged_record(position, offset, error)))


# -- usual and unusual batches together, in the order of the log -----------------------------


def _merged(
    usual: _Commits, exact: dict[int, ExactRows], texts: Texts
) -> tuple[CommitColumns, Ints]:
    """All commits, and the batch of each."""
    rows = [row for found in exact.values() for row in found.rows]
    if not rows:
        return usual.columns, usual.batch
    sizes = [len(found.rows) for found in exact.values()]
    batch = np.concatenate((usual.batch, np.repeat(np.array(list(exact)), sizes)))
    both = joined((usual.columns, columns_of(rows, texts.values)), texts.values)
    order = np.argsort(batch, kind="stable")
    return picked(both, order), batch[order]


def _merged_markers(
    chunk: _Chunk,
    usual: tuple[Flags, Flags],
    exact: dict[int, ExactRows],
    batch_of_commits: Ints,
) -> Markers:
    marked, is_commit = usual
    at = np.flatnonzero(marked)
    rows = np.stack((at, chunk.column("producer_id")[at], is_commit[at]))
    more = [
        (index, found.marker[0], int(found.marker[1]))
        for index, found in exact.items()
        if found.marker is not None
    ]
    if more:
        rows = np.concatenate((rows, np.array(more, np.int64).T), axis=1)
        rows = rows[:, np.argsort(rows[0], kind="stable")]
    return Markers(
        producer_id=rows[1],
        commits_before=np.searchsorted(batch_of_commits, rows[0]),
        is_commit=rows[2].astype(bool),
    )


def _merged_others(chunk: _Chunk, exact: dict[int, ExactRows]) -> tuple[OtherRecord, ...]:
    if not chunk.wanted.others:
        return ()
    more = [(index, other) for index, found in exact.items() for other in found.others]
    group_id = chunk.wanted.group_id
    return tuple(
        other
        for _, other in sorted(chunk.others + more, key=_batch_index)
        if group_id is None
        or not isinstance(other.record.key, GroupMetadataKey)
        or other.record.key.group == group_id
    )


def _merged_damage(chunk: _Chunk, exact: dict[int, ExactRows]) -> tuple[Damage, ...]:
    more = [(index, damage) for index, found in exact.items() for damage in found.damage]
    return tuple(damage for _, damage in sorted(chunk.damage + more, key=_batch_index))


def _batch_index(item: tuple[int, object]) -> int:
    return item[0]


def _first_offset(table: BatchTable, span: slice, exact: dict[int, ExactRows]) -> int:
    found = exact.get(0)
    return int(table.headers["base_offset"][span.start]) if found is None else found.first_offset
