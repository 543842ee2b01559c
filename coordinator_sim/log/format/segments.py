"""Segment files of a partition's log: the bytes of `.log` files, without the files.

A segment is a sequence of batches, named by the offset of the first one. Indexes are not written:
a broker rebuilds them when it opens a log without them.

Source: kafka trunk, storage/.../internals/log: LogSegment, LogFileUtils;
clients/.../common/record/FileLogInputStream.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC, HEADER_SIZE, LOG_OVERHEAD
from coordinator_sim.log.format.stored_batches import MAGIC_AT, StoredBatch, next_batch

SEGMENT_BYTES: Final = 104_857_600
"""`offsets.topic.segment.bytes` by default."""

_NAME_DIGITS: Final = 20
_MAX_OFFSET_SPAN: Final = 2**31 - 1
"""An index holds 32 bits of an offset. Source: LogSegment.canConvertToRelativeOffset."""


_CUT_SHORT: Final = "the last batch is cut short"
_MAX_CHECKS: Final = 1_000
"""Most CRCs to check in a search for a batch, so that the search stays short."""


class CorruptSegmentError(WireFormatError):
    """A segment with bytes that are no batches; offset and message tell where and why."""


class Damage(Struct, frozen=True, kw_only=True):
    """Why a segment could not be read to its end.

    Args:
        position: Position of the first bad byte.
        invalid_bytes: Number of bytes from there to the end.
        reason: What is wrong at the position.
        is_torn: Whether it looks like the torn write of a process that died: the beginning of a
            batch, or zeros.
    """

    position: int
    invalid_bytes: int
    reason: str
    is_torn: bool = False


class SegmentReader:
    """The batches of one segment, up to its end or the first damaged one.

    A broker that recovers a log cuts it off at the same place. Source: LogSegment.recover.

    Args:
        data: The bytes of the file.
        check_crc: Whether a batch with a wrong CRC also ends the reading; if not, the batch is
            yielded and `StoredBatch.is_valid` is False.
    """

    __slots__ = ("_check_crc", "_data", "damage")

    def __init__(self, data: bytes | memoryview, *, check_crc: bool = True) -> None:
        self._data = data
        self._check_crc = check_crc
        self.damage: Damage | None = None
        """Damage that ended the reading; None at a clean end."""

    def __iter__(self) -> Iterator[StoredBatch]:
        """The good batches in order; each iteration begins at the start."""
        self.damage = None
        position = 0
        while True:
            try:
                batch = next_batch(self._data, position)
            except WireFormatError as error:
                self._stop(position, str(error.args[0]))
                return
            if batch is None:
                if position < len(self._data):
                    self._stop(position, _CUT_SHORT)
                return
            if self._check_crc and not batch.is_valid:
                self._stop(position, f"batch at offset {batch.last_offset}: wrong CRC")
                return
            yield batch
            position += batch.size

    def require_whole(self) -> None:
        """Refuse the segment if the reading ended before its end.

        Raises:
            CorruptSegmentError: The reading ended early.
        """
        if self.damage is not None:
            raise CorruptSegmentError(
                f"segment: {self.damage.reason}; {self.damage.invalid_bytes} bytes are left",
                self.damage.position,
            )

    def _stop(self, position: int, reason: str) -> None:
        rest = self._data[position:]
        is_torn = reason == _CUT_SHORT and not has_batch(rest)
        if not any(rest):
            reason, is_torn = "the tail is filled with zeros", True
        self.damage = Damage(
            position=position, invalid_bytes=len(rest), reason=reason, is_torn=is_torn
        )


def has_batch(data: bytes | memoryview) -> bool:
    """Whether a good batch of magic 2 lies anywhere in these bytes.

    After a truncated batch there is none, unless the damage is in its length.
    """
    raw = bytes(data)
    at, checks = raw.find(CURRENT_MAGIC, MAGIC_AT), 0
    while at >= 0 and checks < _MAX_CHECKS:
        start = at - MAGIC_AT
        length = int.from_bytes(raw[start + 8 : start + LOG_OVERHEAD], "big", signed=True)
        if HEADER_SIZE - LOG_OVERHEAD <= length <= len(raw) - start - LOG_OVERHEAD:
            checks += 1
            batch = next_batch(raw, start)
            if batch is not None and batch.is_valid:
                return True
        at = raw.find(CURRENT_MAGIC, at + 1)
    return False


class EncodedBatch(Struct, frozen=True, gc=False):
    """A batch as bytes, with the offsets that its segment needs to know."""

    base_offset: int
    next_offset: int
    data: bytes


def segment_name(base_offset: int) -> str:
    """The file name of the segment that starts at an offset."""
    return f"{base_offset:0{_NAME_DIGITS}d}.log"


def base_offset_of(name: str) -> int:
    """The base offset in a segment's file name.

    Raises:
        ValueError: The name is not that of a segment.
    """
    digits, dot, suffix = name.partition(".")
    if len(digits) != _NAME_DIGITS or not digits.isdecimal() or (dot, suffix) != (".", "log"):
        raise ValueError(f"{name!r} is no segment: 20 digits and .log make one")
    return int(digits)


def roll_segments(
    batches: Iterable[EncodedBatch], segment_bytes: int = SEGMENT_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the segments that hold these batches, in order.

    A segment ends before the batch that would make it larger than `segment_bytes`; a single batch
    may be larger. Source: LogSegment.shouldRoll.

    Args:
        batches: Batches in order of offsets; gaps are allowed.
        segment_bytes: `segment.bytes` of the topic, in bytes.
    """
    parts: list[bytes] = []
    size = start = 0
    for batch in batches:
        too_far = batch.next_offset - 1 - start > _MAX_OFFSET_SPAN
        if parts and (size + len(batch.data) > segment_bytes or too_far):
            yield segment_name(start), b"".join(parts)
            parts, size = [], 0
        if not parts:
            start = batch.base_offset
        parts.append(batch.data)
        size += len(batch.data)
    if parts:
        yield segment_name(start), b"".join(parts)
