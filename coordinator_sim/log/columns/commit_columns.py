"""Offset commits as columns, and what else a chunk of a segment holds."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.log.columns.batch_scan import Flags, Ints
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.messages.records import LogRecord

NO_PRODUCER: Final = -1


class CommitColumns(Struct, frozen=True, kw_only=True):
    """Offset commits and their tombstones, one element a record, in the order of the log.

    Fields of a commit are -1 in a tombstone, and where the version of its value lacks them.

    Args:
        key: Id of group, topic and partition in the `KeyTable`.
        log_offset: Offset of the record in `__consumer_offsets`.
        timestamp_ms: Timestamp of the record; -1 if its format has none.
        offset: The committed offset.
        leader_epoch: Leader epoch of the commit.
        metadata: Index of the metadata in `texts`; 0 is the empty text.
        commit_timestamp_ms: When it was committed.
        expire_timestamp_ms: When it expires, of commits with an explicit retention.
        is_tombstone: Whether the record deletes the offset.
        producer_id: Producer of the transaction that the record belongs to; -1 for none.
        texts: Metadata of this chunk, each text once.
    """

    key: Ints
    log_offset: Ints
    timestamp_ms: Ints
    offset: Ints
    leader_epoch: Ints
    metadata: Ints
    commit_timestamp_ms: Ints
    expire_timestamp_ms: Ints
    is_tombstone: Flags
    producer_id: Ints
    texts: Sequence[str]

    def __len__(self) -> int:
        """Number of records."""
        return len(self.key)


class Markers(Struct, frozen=True, kw_only=True):
    """Ends of transactions, in the order of the log.

    Args:
        producer_id: Whose transaction.
        commits_before: How many commits of the chunk precede the marker.
        is_commit: Whether it was committed.
    """

    producer_id: Ints
    commits_before: Ints
    is_commit: Flags


class OtherRecord(Struct, frozen=True, kw_only=True):
    """A record of another type than an offset, as the plain reader reads it."""

    log_offset: int
    timestamp_ms: int
    record: LogRecord


class ChunkColumns(Struct, frozen=True, kw_only=True):
    """What a chunk of a segment holds.

    Args:
        commits: Wanted offset commits and tombstones.
        markers: Ends of transactions.
        others: Records of other types, where they are wanted.
        other_count: Number of records of other types, wanted or not.
        batch_count: Number of batches.
        record_count: Number of records, of all types, with markers.
        first_offset: Base offset of the first batch; None for no batch.
        last_offset: Last offset of the last batch.
        damage: What was skipped.
    """

    commits: CommitColumns
    markers: Markers
    others: tuple[OtherRecord, ...]
    other_count: int
    batch_count: int
    record_count: int
    first_offset: int | None
    last_offset: int | None
    damage: tuple[Damage, ...]


class Texts:
    """Texts of one chunk, each once; 0 is the empty text."""

    __slots__ = ("_index", "values")

    def __init__(self) -> None:
        self._index = {"": 0}
        self.values = [""]

    def index_of(self, text: str) -> int:
        """The text's index, made anew for a new text."""
        index = self._index.setdefault(text, len(self.values))
        if index == len(self.values):
            self.values.append(text)
        return index


NUMBERS: Final = (
    "key",
    "log_offset",
    "timestamp_ms",
    "offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp_ms",
    "expire_timestamp_ms",
    "is_tombstone",
    "producer_id",
)
"""Columns of `CommitColumns`, all but the texts."""


def picked(columns: CommitColumns, which: Flags | Ints) -> CommitColumns:
    """Some of the records, in that order."""
    return CommitColumns(
        **{name: getattr(columns, name)[which] for name in NUMBERS}, texts=columns.texts
    )


def joined(parts: Sequence[CommitColumns], texts: Sequence[str]) -> CommitColumns:
    """Parts that share their texts, one after another."""
    return CommitColumns(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in NUMBERS},
        texts=texts,
    )


def columns_of(rows: Sequence[tuple[int, ...]], texts: Sequence[str]) -> CommitColumns:
    """Columns of rows in the order of `NUMBERS`."""
    table: NDArray[np.int64] = np.array(rows, np.int64).reshape(len(rows), len(NUMBERS))
    columns = dict(zip(NUMBERS, table.T, strict=True))
    columns["is_tombstone"] = columns["is_tombstone"].astype(bool)
    return CommitColumns(**columns, texts=texts)
