"""Reads the batches of a segment into columns, some ten thousand records at a time.

Values of offset commits as columns, versions 0 to 4.

Where the records of many batches begin, and where their keys and values are.

A record begins where the one before it ends, so the k-th records of all batches are found together,
then the next ones. Batches with the most records come first, so those still unfinished are a
prefix; the few longest are walked one by one. Everything else of a record is read for all at once.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message/OffsetCommitValue.json; kafka
trunk, clients/.../common/record/DefaultRecord.java.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

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
from coordinator_sim.log.columns.compiled import LOOPS
from coordinator_sim.log.columns.contents import Contents, contents_of
from coordinator_sim.log.columns.exact import (
    ExactRows,
    as_long,
    damaged_record,
    read_exactly,
    required_key,
)
from coordinator_sim.log.columns.key_table import UNREADABLE, KeyTable
from coordinator_sim.log.format.offsets_records import (
    HIGHEST_VALUE_VERSION,
    OFFSET_KEY,
    decode_record,
    decode_value,
)
from coordinator_sim.log.format.record_batches import CONTROL, LOG_APPEND, TRANSACTIONAL
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

Bytes = NDArray[np.uint8]

_MORE: Final = 0x80
_FEW_LANES: Final = 48
"""Below so many batches at a time, a step over all of them costs more than a walk through each."""
_LONGEST_VARINT: Final = 5
"""Bytes of a number, at most; longer ones belong to the plain reader."""
SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers."""


class RecordTable(Struct, frozen=True, kw_only=True):
    """Records of batches, all columns in the order of the log.

    Args:
        batch: Index of the record's batch among those asked for.
        time_delta: Milliseconds after the batch's base timestamp.
        offset_delta: Offsets after the batch's base offset.
        key_start: Position of the key.
        key_size: Bytes of the key; -1 for none.
        value_start: Position of the value.
        value_size: Bytes of the value; -1 for a tombstone.
    """

    batch: Ints
    time_delta: Ints
    offset_delta: Ints
    key_start: Ints
    key_size: Ints
    value_start: Ints
    value_size: Ints


def read_records(
    content: bytes, starts: Ints, ends: Ints, counts: Ints
) -> tuple[RecordTable, Flags]:
    """The records of batches, and which of the batches are of an unusual form.

    Unusual batches have no records in the table: they are damaged, or have headers, or numbers of
    more than five bytes.

    Args:
        content: Decompressed records of the batches, with `PADDING` behind.
        starts: Position of each batch's first record.
        ends: Position after its last one.
        counts: Number of records of each.
    """
    odd = (counts < 0) | (counts * SMALLEST_RECORD > ends - starts)
    usable = np.where(odd, 0, counts)
    LOOPS.count(total := int(usable.sum()))
    loops = LOOPS.current
    if loops is not None:
        rows = np.empty((len(RecordTable.__struct_fields__), total), np.int64)
        raw = np.frombuffer(content, np.uint8)
        found = loops.read_records(raw, starts, ends, usable, odd, rows)
        columns = zip(RecordTable.__struct_fields__, rows[:, :found], strict=True)
        return RecordTable(**dict(columns)), odd
    batch = np.repeat(np.arange(len(counts)), usable)
    bodies, record_ends = _bodies(content, starts, ends, usable, odd)
    table, is_bad = _fields(content, batch, bodies, record_ends)
    odd[batch[is_bad]] = True
    if odd.any():
        kept = ~odd[batch]
        table = selected(table, kept)
    return table, odd


def selected(table: RecordTable, which: Flags | Ints) -> RecordTable:
    """Some of the records, in order."""
    return RecordTable(**{name: getattr(table, name)[which] for name in table.__struct_fields__})


def _bodies(
    content: bytes, starts: Ints, ends: Ints, counts: Ints, odd: Flags
) -> tuple[Ints, Ints]:
    """Start of each record behind its length, and its end; flags batches that do not add up."""
    total = int(counts.sum())
    bodies, stops = np.empty(total, np.int64), np.empty(total, np.int64)
    order = np.argsort(-counts, kind="stable")
    falling = -counts[order]
    slots = (np.cumsum(counts) - counts)[order]
    position, limit = starts[order], ends[order]
    is_bad = odd[order]
    raw = np.frombuffer(content, np.uint8)
    step = 0
    while (lanes := int(np.searchsorted(falling, -step))) > _FEW_LANES:
        body, size, unread = _sizes(raw, position[:lanes])
        stop = body + size
        is_bad[:lanes] |= unread | (stop > limit[:lanes])
        stop = np.minimum(stop, limit[:lanes])
        at = slots[:lanes] + step
        bodies[at], stops[at] = np.minimum(body, limit[:lanes]), stop
        position[:lanes] = stop
        step += 1
    for lane in range(lanes):
        span = slice(int(slots[lane]) + step, int(slots[lane]) - int(falling[lane]))
        found = _walk(content, int(position[lane]), int(limit[lane]), span.stop - span.start)
        bodies[span], stops[span] = found
        position[lane] = found[1][-1]
        is_bad[lane] |= position[lane] != limit[lane]
    is_bad |= position != limit
    odd[order] = is_bad
    return bodies, stops


def _sizes(raw: Bytes, at: Ints) -> tuple[Ints, Ints, Flags]:
    """Position after each length, the length, and whether it is not of one to five bytes."""
    value, after, unread = _varints(raw, at)
    return after, value >> 1, unread | (value & 1).astype(bool)


def _varints(raw: Bytes, at: Ints) -> tuple[Ints, Ints, Flags]:
    """Unsigned numbers at these positions, the positions after them, and which are too long."""
    value = raw[at].astype(np.int64)
    after = at + 1
    unread = np.zeros(len(at), bool)
    more = np.flatnonzero(value >= _MORE)
    if not len(more):
        return value, after, unread
    value[more] &= _MORE - 1
    for index in range(1, _LONGEST_VARINT):
        byte = raw[after[more]].astype(np.int64)
        value[more] |= (byte & (_MORE - 1)) << 7 * index
        after[more] += 1
        more = more[byte >= _MORE]
        if not len(more):
            break
    unread[more] = True
    return value, after, unread


def _walk(content: bytes, position: int, limit: int, count: int) -> tuple[list[int], list[int]]:
    """Starts and ends of so many records of one batch; behind damage all are at the limit."""
    bodies: list[int] = []
    stops: list[int] = []
    for _ in range(count):
        size = content[position]
        position += 1
        if size >= _MORE:
            size, shift, byte = size & (_MORE - 1), 7, _MORE
            while byte >= _MORE and position < limit and shift < 7 * _LONGEST_VARINT:
                byte = content[position]
                size |= (byte & (_MORE - 1)) << shift
                position += 1
                shift += 7
            if byte >= _MORE:
                size = 1
        stop = position + (size >> 1)
        if size & 1 or stop > limit:
            bodies += [limit] * (count - len(bodies))
            stops += [limit + 1] * (count - len(stops))
            return bodies, stops
        bodies.append(position)
        stops.append(stop)
        position = stop
    return bodies, stops


def _fields(content: bytes, batch: Ints, bodies: Ints, stops: Ints) -> tuple[RecordTable, Flags]:
    """Fields of records that lie between these positions, and which are of an unusual form."""
    raw = np.frombuffer(content, np.uint8)
    time_delta, at, long_time = _varints(raw, bodies + 1)
    offset_delta, at, long_offset = _varints(raw, at)
    key_size, key_start, is_bad = _nullable(raw, at, stops)
    is_bad |= long_time | long_offset
    at = np.where(is_bad, stops, key_start + np.maximum(key_size, 0))
    value_size, value_start, bad_value = _nullable(raw, at, stops)
    is_bad |= bad_value
    at = np.where(is_bad, stops, value_start + np.maximum(value_size, 0))
    is_bad |= (raw[at] != 0) | (at + 1 != stops)
    table = RecordTable(
        batch=batch,
        time_delta=_signed(time_delta),
        offset_delta=_signed(offset_delta),
        key_start=key_start,
        key_size=key_size,
        value_start=value_start,
        value_size=value_size,
    )
    return table, is_bad


def _nullable(raw: Bytes, at: Ints, stops: Ints) -> tuple[Ints, Ints, Flags]:
    """Size of the bytes at these positions, -1 for none; their start; which do not fit."""
    value, start, unread = _varints(raw, at)
    size = np.maximum(_signed(value), -1)
    return size, start, unread | (start + np.maximum(size, 0) > stops)


def _signed(value: Ints) -> Ints:
    """Zigzag numbers as signed ones."""
    return (value >> 1) ^ -(value & 1)


_OFFSET_AT: Final = 2
_EPOCH_AT: Final = 10
_EPOCH_VERSION: Final = 3
_EXPIRE_VERSION: Final = 1
_FLEXIBLE_VERSION: Final = 4
_SHORT: Final = 0x7F
"""A compact size below this plus one has one byte."""
_SMALLEST: Final = 20
"""Bytes of a value without metadata: version, offset, size of the metadata, timestamp."""


class CommitValues(Struct, frozen=True, kw_only=True):
    """Fields of values; -1 where the version lacks one, and in all fields of a tombstone."""

    offset: Ints
    leader_epoch: Ints
    metadata: Ints
    commit_timestamp_ms: Ints
    expire_timestamp_ms: Ints


def read_values(
    content: bytes, starts: Ints, sizes: Ints, texts: Texts
) -> tuple[CommitValues, Flags]:
    """The values of offset commits, and which of them are of an unusual form.

    Args:
        content: Bytes that hold the values, with `PADDING` behind.
        starts: Position of each value.
        sizes: Its size in bytes; -1 for a tombstone.
        texts: Gets the metadata.
    """
    count = len(starts)
    loops = LOOPS.current
    if loops is not None:
        fields, unusual = np.full((6, count), -1), np.zeros(count, bool)
        loops.read_values(np.frombuffer(content, np.uint8), starts, sizes, unusual, fields)
        return _with_metadata(content, fields, unusual, texts), unusual
    values = CommitValues(
        offset=np.full(count, -1),
        leader_epoch=np.full(count, -1),
        metadata=np.zeros(count, np.int64),
        commit_timestamp_ms=np.full(count, -1),
        expire_timestamp_ms=np.full(count, -1),
    )
    versions = np.where(sizes < _SMALLEST, -1, gathered(content, starts, ">i2"))
    odd = (sizes >= 0) & ((versions < 0) | (versions > HIGHEST_VALUE_VERSION))
    for version in range(HIGHEST_VALUE_VERSION + 1):
        rows = np.flatnonzero(versions == version)
        if len(rows):
            odd[rows] = _read_version(version, content, starts, sizes, (rows, values, texts))
    return values, odd


def _with_metadata(content: bytes, fields: Ints, odd: Flags, texts: Texts) -> CommitValues:
    """Values that the compiled loop read, with the texts that it only found."""
    offset, leader_epoch, commit_ms, expire_ms, at, size = fields
    metadata = np.zeros(len(odd), np.int64)
    for row in np.flatnonzero(~odd & (size > 0)).tolist():
        text = content[at[row] : at[row] + size[row]].decode(errors="replace")
        metadata[row] = texts.index_of(text)
    return CommitValues(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_ms,
        expire_timestamp_ms=expire_ms,
    )


def _read_version(
    version: int,
    content: bytes,
    starts: Ints,
    sizes: Ints,
    target: tuple[Ints, CommitValues, Texts],
) -> Flags:
    """Read the values of one version; return which of its rows are of an unusual form."""
    rows, values, texts = target
    start, stop = starts[rows], starts[rows] + sizes[rows]
    values.offset[rows] = gathered(content, start + _OFFSET_AT, ">i8")
    at = start + _EPOCH_AT
    if version >= _EPOCH_VERSION:
        values.leader_epoch[rows] = gathered(content, at, ">i4")
        at += 4
    if version >= _FLEXIBLE_VERSION:
        text_size = gathered(content, at, ">u1") - 1
        odd = (text_size < 0) | (text_size >= _SHORT)
        at += 1
    else:
        text_size = gathered(content, at, ">i2")
        odd = text_size < 0
        at += 2
    after = at + text_size
    rest = 16 if version == _EXPIRE_VERSION else 8
    odd |= after + rest + (version >= _FLEXIBLE_VERSION) != stop
    after = np.where(odd, start, after)
    values.commit_timestamp_ms[rows] = gathered(content, after, ">i8")
    if version == _EXPIRE_VERSION:
        values.expire_timestamp_ms[rows] = gathered(content, after + 8, ">i8")
    if version >= _FLEXIBLE_VERSION:
        # A number of tags other than none belongs to the plain reader.
        odd |= gathered(content, after + 8, ">u1") != 0
    for index in np.flatnonzero(~odd & (text_size > 0)).tolist():
        text = content[at[index] : after[index]].decode(errors="replace")
        values.metadata[rows[index]] = texts.index_of(text)
    return odd


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
