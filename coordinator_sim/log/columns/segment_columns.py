"""A whole segment, or a range of it, as chunks of columns, with what was found on the way."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.log.columns.batch_scan import SegmentSource
from coordinator_sim.log.columns.chunks import EVERY_COMMIT, Wanted, chunks_of
from coordinator_sim.log.columns.commit_columns import ChunkColumns
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.pieces import PIECE_BYTES, Pieces
from coordinator_sim.log.format.segments import Damage

LISTED_DAMAGE: Final = 100
"""Damaged places of a segment that are listed; the others are counted."""


class SegmentFacts(Struct, frozen=True, kw_only=True):
    """Facts about a segment, or about a range of it: sizes, counts, offsets and damage.

    Args:
        size: Bytes of the segment, or of the range.
        batch_count: Number of batches read.
        record_count: Number of records read, of all types, with ends of transactions.
        commit_count: Number of wanted commits and tombstones among them.
        other_count: Number of records of other types.
        first_offset: Base offset of the first batch; None where there is none.
        last_offset: Last offset of the last batch.
        damage: The first damaged places, in the order of the bytes.
        damage_count: Number of all damaged places.
        skipped_bytes: Bytes of all of them.
    """

    size: int
    batch_count: int
    record_count: int
    commit_count: int
    other_count: int
    first_offset: int | None
    last_offset: int | None
    damage: tuple[Damage, ...]
    damage_count: int
    skipped_bytes: int

    @property
    def coverage(self) -> float | None:
        """Share of the offsets that still have their record; None without any record.

        Compaction, ends of transactions that were removed, and damage leave offsets without one.
        """
        if self.first_offset is None or self.last_offset is None:
            return None
        return self.record_count / max(1, self.last_offset - self.first_offset + 1)


class SegmentColumns:
    """Reads one segment, or a range of it, chunk by chunk.

    Args:
        source: The segment.
        keys: Gives keys their numbers; made for the same group as `wanted`.
        wanted: Which records to read.
        start: Position of the first batch to read.
        stop: Position before which batches begin; None for the end.
        piece_bytes: Bytes to read at a time.
    """

    __slots__ = (
        "_batch_count",
        "_commit_count",
        "_damage",
        "_damage_count",
        "_first_offset",
        "_keys",
        "_last_offset",
        "_other_count",
        "_pieces",
        "_record_count",
        "_size",
        "_skipped_bytes",
        "_wanted",
    )

    def __init__(
        self,
        source: SegmentSource,
        keys: KeyTable,
        wanted: Wanted = EVERY_COMMIT,
        *,
        start: int = 0,
        stop: int | None = None,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._pieces = Pieces(source, start, stop, piece_bytes=piece_bytes)
        self._size = max(0, min(source.size if stop is None else stop, source.size) - start)
        self._keys = keys
        self._wanted = wanted
        self._batch_count = self._record_count = self._commit_count = self._other_count = 0
        self._damage_count = self._skipped_bytes = 0
        self._first_offset: int | None = None
        self._last_offset: int | None = None
        self._damage: list[Damage] = []

    def __iter__(self) -> Iterator[ChunkColumns]:
        """The chunks in the order of the log; may be read once."""
        for table in self._pieces:
            places = list(table.damage)
            for chunk in chunks_of(table, self._keys, self._wanted):
                places += chunk.damage
                self._count(chunk)
                yield chunk
            self._note(sorted(places, key=_position))
        if self._pieces.damage is not None:
            self._note([self._pieces.damage])

    def facts(self) -> SegmentFacts:
        """The facts about the chunks read so far."""
        return SegmentFacts(
            size=self._size,
            batch_count=self._batch_count,
            record_count=self._record_count,
            commit_count=self._commit_count,
            other_count=self._other_count,
            first_offset=self._first_offset,
            last_offset=self._last_offset,
            damage=tuple(self._damage),
            damage_count=self._damage_count,
            skipped_bytes=self._skipped_bytes,
        )

    def _count(self, chunk: ChunkColumns) -> None:
        self._batch_count += chunk.batch_count
        self._record_count += chunk.record_count
        self._commit_count += len(chunk.commits)
        self._other_count += chunk.other_count
        if self._first_offset is None:
            self._first_offset = chunk.first_offset
        self._last_offset = chunk.last_offset

    def _note(self, places: list[Damage]) -> None:
        self._damage_count += len(places)
        self._skipped_bytes += sum(damage.invalid_bytes for damage in places)
        self._damage += places[: LISTED_DAMAGE - len(self._damage)]


def _position(damage: Damage) -> int:
    return damage.position
