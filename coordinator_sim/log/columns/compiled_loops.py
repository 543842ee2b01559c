"""The loops over single records, compiled by numba: each gives what its columns in numpy give.

Numbers of a record are read one after another, so that each byte is looked at once; the numpy
twins (`chunks`, `key_table`) look at each byte once for every column. This
module needs numba, and is imported by `compiled` alone.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_F = TypeVar("_F", bound=Callable[..., Any])

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Number = int | np.int64
Table = tuple[Words, Words, Ints, Words, Words, Ints, Ints]
"""Factors, masks, places, hashes, words, sizes and numbers of a `WordTable`."""

_MORE: Final = 0x80
_REST: Final = 0x7F
_LONGEST_VARINT: Final = 5
_PLACES: Final = 16
_EMPTY: Final = -1
_SMALLEST_VALUE: Final = 20
_HIGHEST_VERSION: Final = 4
_EXPIRE_VERSION: Final = 1
_EPOCH_VERSION: Final = 3
_WORD: Final = 8


def _compiled(function: _F) -> _F:
    """Compile at the first call; the result is kept on disk where some folder can be written."""
    try:
        return cast("_F", njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast("_F", njit(nogil=True)(function))


@_compiled
def _varint(raw: Bytes, at: Number) -> tuple[Number, Number, bool]:
    """An unsigned number of one to five bytes, the position behind it, whether it ends."""
    byte = np.int64(raw[at])
    at += 1
    value = byte & _REST
    shift = 7
    while byte >= _MORE and shift < 7 * _LONGEST_VARINT:
        byte = np.int64(raw[at])
        at += 1
        value |= (byte & _REST) << shift
        shift += 7
    return value, at, bool(byte < _MORE)


@_compiled
def _nullable(raw: Bytes, at: Number) -> tuple[Number, Number, bool]:
    """Size of bytes, -1 for none; their start; whether the size ends."""
    value, start, is_whole = _varint(raw, at)
    return max((value >> 1) ^ -(value & 1), -1), start, is_whole


@_compiled
def _record(raw: Bytes, body: Number, stop: Number, row: Ints) -> bool:
    """Read the fields of one record into all elements of `row` but the first."""
    time_delta, at, is_whole = _varint(raw, body + 1)
    offset_delta, at, is_next_whole = _varint(raw, at)
    key_size, key_start, is_sized = _nullable(raw, at)
    at = key_start + max(key_size, 0)
    if not (is_whole and is_next_whole and is_sized) or at > stop:
        return False
    value_size, value_start, is_sized = _nullable(raw, at)
    at = value_start + max(value_size, 0)
    if not is_sized or at + 1 != stop or raw[at] != 0:
        return False
    row[1] = (time_delta >> 1) ^ -(time_delta & 1)
    row[2] = (offset_delta >> 1) ^ -(offset_delta & 1)
    row[3] = key_start
    row[4] = key_size
    row[5] = value_start
    row[6] = value_size
    return True


@_compiled
def read_records(raw: Bytes, starts: Ints, ends: Ints, counts: Ints, odd: Flags, rows: Ints) -> int:
    """Read the records of batches into rows, flag unusual batches, and count the rows.

    Args:
        raw: The records, with `PADDING` behind.
        starts: Position of each batch's first record.
        ends: Position after its last one.
        counts: Number of records of each.
        odd: Batches to pass over; those of an unusual form are added.
        rows: Gets a row a record: batch, deltas of time and offset, start and size of key and of
            value.
    """
    found = 0
    for batch in range(len(counts)):
        if odd[batch]:
            continue
        first = found
        position = starts[batch]
        for _ in range(counts[batch]):
            size, body, is_whole = _varint(raw, position)
            position = body + (size >> 1)
            is_usual = is_whole and not size & 1 and position <= ends[batch]
            if not (is_usual and _record(raw, body, position, rows[:, found])):
                position = -1
                break
            rows[0, found] = batch
            found += 1
        if position != ends[batch]:
            odd[batch] = True
            found = first
    return found


@_compiled
def find(every: Words, starts: Ints, sizes: Ints, table: Table, bits: int, numbers: Ints) -> None:
    """Look strings up in a `WordTable`; numbers of those that it lacks stay as they are.

    Args:
        every: The word that begins at each byte.
        starts: Position of each string.
        sizes: Its size in bytes, at most the table's width.
        table: The table.
        bits: Bits of a hash that say its first place.
        numbers: Gets the numbers.
    """
    factors, masks, places, hashes, words, known_sizes, known = table
    for row in range(len(starts)):
        start, size = starts[row], sizes[row]
        last = (size - 1) >> 3
        mixed = np.uint64(size)
        for word in range(last):
            mixed += every[start + (word << 3)] * factors[word]
        rest = every[start + (last << 3)] & masks[size, last]
        mixed = (mixed + rest * factors[last]) * factors[0]
        place = np.int64(mixed >> np.uint64(64 - bits))
        entry = places[place]
        for _ in range(_PLACES - 1):
            if entry == _EMPTY or hashes[entry] == mixed:
                break
            place = (place + 1) & (len(places) - 1)
            entry = places[place]
        if entry == _EMPTY or hashes[entry] != mixed or known_sizes[entry] != size:
            continue
        is_same = rest == words[entry, last]
        for word in range(last):
            is_same &= every[start + (word << 3)] == words[entry, word]
        if is_same:
            numbers[row] = known[entry]


@_compiled
def _number(raw: Bytes, at: Number, size: int) -> Number:
    """A signed big-endian number of so many bytes."""
    value = np.int64(np.int8(raw[at]))
    for index in range(1, size):
        value = value << 8 | np.int64(raw[at + index])
    return value


@_compiled
def read_values(raw: Bytes, starts: Ints, sizes: Ints, odd: Flags, rows: Ints) -> None:
    """Read values of offset commits into rows, and flag those of an unusual form.

    Args:
        raw: Bytes that hold the values, with `PADDING` behind.
        starts: Position of each value.
        sizes: Its size in bytes; -1 for a tombstone.
        odd: Gets which are of an unusual form.
        rows: A row a value, of -1 so far; gets offset, leader epoch, the two timestamps, and
            position and size of the metadata.
    """
    for index in range(len(starts)):
        start, size = starts[index], sizes[index]
        version = _number(raw, start, 2) if size >= _SMALLEST_VALUE else -1
        if version < 0 or version > _HIGHEST_VERSION:
            odd[index] = size >= 0
            continue
        odd[index] = not _value(raw, start, start + size, version, rows[:, index])


@_compiled
def _value(raw: Bytes, start: Number, stop: Number, version: Number, row: Ints) -> bool:
    """Read one value; False for one of an unusual form, whose fields mean nothing."""
    row[0] = _number(raw, start + 2, 8)
    at = start + 10
    if version >= _EPOCH_VERSION:
        row[1] = _number(raw, at, 4)
        at += 4
    is_flexible = version > _EPOCH_VERSION
    # A compact size of several bytes, and any tag, belong to the plain reader.
    size = np.int64(raw[at]) - 1 if is_flexible else _number(raw, at, 2)
    at += 1 if is_flexible else 2
    after = at + size
    rest = 16 if version == _EXPIRE_VERSION else 8
    if size < 0 or (is_flexible and size >= _REST) or after + rest + is_flexible != stop:
        return False
    row[2] = _number(raw, after, 8)
    if version == _EXPIRE_VERSION:
        row[3] = _number(raw, after + 8, 8)
    row[4] = at
    row[5] = size
    return not is_flexible or raw[after + 8] == 0
