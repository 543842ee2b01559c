"""A scan over the records of a batch of magic 2 that builds no record objects.

The content comes in chunks. Records that lie wholly in a chunk are scanned in one loop; a record
that crosses a chunk's end is read field by field, and its key and value are skipped. So only one
chunk is held in memory.

A scan is work in steps, see `log.format.steps`.

Source: kafka trunk, clients/.../common/record/DefaultRecord.java (readPartiallyFrom, readFrom),
DefaultRecordBatch.RecordIterator (skipKeyValueIterator).
"""

from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.steps import Steps, chunk_cost

RECORDS_A_STEP: Final = 2_000
"""Records per step: about a millisecond."""
_MORE: Final = 0x80
_MAX_BYTES: Final = 10
_FEW_HEADERS: Final = 32
"""More headers than this are skipped field by field, in steps."""


class Scanned(Struct, frozen=True, gc=False):
    """Facts of a batch's records that a log needs.

    Args:
        max_time_delta: The largest delta to the batch's base timestamp; 0 for no records.
        min_time_delta: The smallest delta; 0 for no records.
        keyless_count: Number of records without a key.
        is_consecutive: Whether the offset deltas are 0, 1, 2, ...
    """

    max_time_delta: int
    min_time_delta: int
    keyless_count: int
    is_consecutive: bool


class Watcher(Protocol):
    """Called for each record in turn."""

    def __call__(self, offset_delta: int, time_delta: int, /, *, has_key: bool) -> bool:
        """Take the next record; return whether to end the scan."""
        ...


class RecordScan:
    """One scan over the records of one batch.

    Args:
        count: Number of records in the batch's header.
        data: The first bytes of the records.
        position: Position in `data` of the first record.
        chunks: The other bytes, chunk by chunk.
        watcher: Called for each record; None for no call.
    """

    __slots__ = (
        "_before",
        "_chunks",
        "_count",
        "_data",
        "_header_cost",
        "_index",
        "_is_consecutive",
        "_keyless_count",
        "_max_delta",
        "_min_delta",
        "_position",
        "_stopped",
        "_watcher",
    )

    def __init__(
        self,
        count: int,
        *,
        data: bytes = b"",
        position: int = 0,
        chunks: Iterator[bytes] | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._count = count
        self._data = data
        self._position = position
        self._chunks: Iterator[bytes] = iter(()) if chunks is None else chunks
        self._watcher = watcher
        self._index = self._header_cost = 0
        self._before = 0
        """Bytes of all chunks before the current one."""
        self._max_delta = -(2**63)
        self._min_delta = 2**63
        self._keyless_count = 0
        self._is_consecutive = True
        self._stopped = False

    def steps(self) -> Steps[Scanned]:
        """Scan all records; lengths and counts must match exactly.

        Raises:
            WireFormatError: The records do not parse, or their number is wrong.
        """
        while self._index < self._count and not self._stopped:
            first = self._index
            until = min(self._count, first + RECORDS_A_STEP)
            self._look_at_whole(until)
            if self._index > first:
                cost = self._index - first + self._header_cost
                self._header_cost = 0
                yield cost
            if self._index < until and not self._stopped:
                yield from self._look_at_torn()
        if not self._stopped:
            yield from self._require_end()
        if not self._index:
            return Scanned(0, 0, 0, is_consecutive=True)
        return Scanned(self._max_delta, self._min_delta, self._keyless_count, self._is_consecutive)

    def _look_at_whole(self, until: int) -> None:  # noqa: C901, PLR0912, PLR0915 - for speed: a record costs under a microsecond
        """Scan the records that lie wholly in this chunk, up to an index.

        A record that is not wholly in the chunk is left to `_look_at_torn`, which also reports
        errors.
        """
        data, position, limit = self._data, self._position, len(self._data)
        max_delta, min_delta = self._max_delta, self._min_delta
        watcher = self._watcher
        index = self._index
        try:
            while index < until:
                raw = data[position]
                start = position + 1
                if raw >= _MORE:
                    raw, start = _varint(data, start, raw)
                end = start + (raw >> 1 ^ -(raw & 1))
                if end > limit or end < start:
                    break
                raw = data[start + 1]
                start += 2
                if raw >= _MORE:
                    raw, start = _varint(data, start, raw)
                time_delta = raw >> 1 ^ -(raw & 1)
                offset_raw = data[start]
                start += 1
                if offset_raw >= _MORE:
                    offset_raw, start = _varint(data, start, offset_raw)
                key_raw = data[start]
                start += 1
                if key_raw >= _MORE:
                    key_raw, start = _varint(data, start, key_raw)
                if not key_raw & 1:
                    start += key_raw >> 1
                raw = data[start]
                start += 1
                if raw >= _MORE:
                    raw, start = _varint(data, start, raw)
                if not raw & 1:
                    start += raw >> 1
                if data[start]:
                    self._header_cost += data[start]
                    start = _skip_headers(data, start, end)
                else:
                    start += 1
                if start != end:
                    break
                if time_delta > max_delta:  # noqa: PLR1730 - a call costs more
                    max_delta = time_delta
                if time_delta < min_delta:  # noqa: PLR1730 - likewise
                    min_delta = time_delta
                if key_raw & 1:
                    self._keyless_count += 1
                if offset_raw != index << 1:
                    self._is_consecutive = False
                index += 1
                position = end
                if watcher is not None and watcher(
                    offset_raw >> 1 ^ -(offset_raw & 1), time_delta, has_key=not key_raw & 1
                ):
                    self._stopped = True
                    break
        except IndexError:
            pass  # The record continues in the next chunk.
        self._index, self._position = index, position
        self._max_delta, self._min_delta = max_delta, min_delta

    def _look_at_torn(self) -> Steps[None]:
        """Scan one record that is not wholly in this chunk, or is malformed."""
        size = yield from self._number()
        end = self._before + self._position + size
        if size < 0:
            raise self._error(f"record {self._index} has {size} bytes")
        yield from self._skip(1, end)
        time_delta = yield from self._number()
        offset_delta = yield from self._number()
        key_size = yield from self._number()
        yield from self._skip(key_size, end)
        yield from self._skip((yield from self._number()), end)
        header_count = yield from self._number()
        if not 0 <= header_count <= end - self._before - self._position:
            raise self._error(f"record {self._index} counts {header_count} headers")
        for _ in range(header_count):
            name_size = yield from self._number()
            if name_size < 0:
                raise self._error(f"a header of record {self._index} has no key")
            yield from self._skip(name_size, end)
            yield from self._skip((yield from self._number()), end)
            yield 1
        if self._before + self._position != end:
            raise self._error(f"record {self._index} has another size than it says")
        self._max_delta = max(self._max_delta, time_delta)
        self._min_delta = min(self._min_delta, time_delta)
        self._keyless_count += key_size < 0
        self._is_consecutive = self._is_consecutive and offset_delta == self._index
        self._index += 1
        if self._watcher is not None:
            self._stopped = self._watcher(offset_delta, time_delta, has_key=key_size >= 0)
        yield 1

    def _number(self) -> Steps[int]:
        """Read the next signed varint, across chunks."""
        value = 0
        for shift in range(0, 7 * _MAX_BYTES, 7):
            while self._position >= len(self._data):
                yield from self._next_chunk()
            raw = self._data[self._position]
            self._position += 1
            value |= (raw & 0x7F) << shift
            if raw < _MORE:
                return value >> 1 ^ -(value & 1)
        raise self._error(f"a varint has more than {_MAX_BYTES} bytes")

    def _skip(self, size: int, end: int) -> Steps[None]:
        """Skip bytes of a record that ends at `end`; a negative size skips none."""
        left = max(size, 0)
        if self._before + self._position + left > end:
            raise self._error(f"{left} bytes do not fit into record {self._index}")
        while left > len(self._data) - self._position:
            left -= len(self._data) - self._position
            yield from self._next_chunk()
        self._position += left

    def _next_chunk(self) -> Steps[None]:
        chunk = next(self._chunks, None)
        if chunk is None:
            raise self._error(f"the content ends within record {self._index} of {self._count}")
        self._before += len(self._data)
        self._data, self._position = chunk, 0
        yield chunk_cost(chunk)

    def _require_end(self) -> Steps[None]:
        """Check that the content ends here; further bytes are an error and are not read."""
        while self._position == len(self._data):
            chunk = next(self._chunks, None)
            if chunk is None:
                return
            self._before += len(self._data)
            self._data, self._position = chunk, 0
            yield chunk_cost(chunk)
        raise self._error(f"more than {self._count} records")

    def _error(self, message: str) -> WireFormatError:
        return WireFormatError(f"record batch: {message}", self._before + self._position)


def _varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Read an unsigned varint after its first byte; also return the position after it."""
    value = first & 0x7F
    for count in range(1, _MAX_BYTES):
        raw = data[position]
        position += 1
        value |= (raw & 0x7F) << 7 * count
        if raw < _MORE:
            return value, position
    raise WireFormatError("record batch: a varint has more than 10 bytes", position)


def _skip_headers(data: bytes, position: int, end: int) -> int:
    """The position after a few headers; -1 if there are more, or malformed ones.

    Source: DefaultRecord.readHeaders.
    """
    count, position = _signed(data, position)
    if not 0 <= count <= _FEW_HEADERS:
        return -1
    for _ in range(count):
        size, position = _signed(data, position)
        size_of_value, position = _signed(data, position + max(size, 0))
        position += max(size_of_value, 0)
        if size < 0 or position > end:
            return -1
    return position


def _signed(data: bytes, position: int) -> tuple[int, int]:
    raw = data[position]
    position += 1
    if raw >= _MORE:
        raw, position = _varint(data, position, raw)
    return raw >> 1 ^ -(raw & 1), position
