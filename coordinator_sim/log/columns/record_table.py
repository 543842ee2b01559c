"""Where the records of many batches begin, and where their keys and values are.

A record begins where the one before it ends, so the k-th records of all batches are found together,
then the next ones. Batches with the most records come first, so those still unfinished are a
prefix; the few longest are walked one by one. Everything else of a record is read for all at once.

Source: kafka trunk, clients/.../common/record/DefaultRecord.java.
"""

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.log.columns.batch_scan import Flags, Ints
from coordinator_sim.log.columns.compiled import LOOPS

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
