"""The last committed offset of each key, with the transactions decided.

A commit inside a transaction counts once the transaction's marker says so, and then at its own
place in the log: of two commits of one key, the later record wins, whichever marker came first.

Source: kafka 4.4, OffsetMetadataManager.replay and completeTransaction; kafka 3.9,
GroupMetadataManager.doLoadGroupsAndOffsets.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from coordinator_sim.kafka.records import OffsetCommitKey
from coordinator_sim.log.columns.batch_scan import Flags, Ints
from coordinator_sim.log.columns.commit_columns import (
    NO_PRODUCER,
    NUMBERS,
    ChunkColumns,
    CommitColumns,
    Markers,
    Texts,
    picked,
)

_FIRST_ROOM: Final = 1_024
_NEVER: Final = -(2**63)
"""Log offset of a key without any record so far."""
_KEPT: Final = tuple(name for name in NUMBERS if name not in ("key", "metadata", "producer_id"))


class LastCommit(Struct, frozen=True, kw_only=True):
    """The last record of one key, and how many commits there were.

    Args:
        key: Group, topic and partition.
        log_offset: Offset of the record in `__consumer_offsets`.
        timestamp_ms: Timestamp of the record; -1 if its format has none.
        offset: The committed offset; -1 where it was deleted.
        leader_epoch: Leader epoch of the commit; -1 unknown.
        metadata: Metadata of the commit.
        commit_timestamp_ms: When it was committed; -1 where it was deleted.
        expire_timestamp_ms: When it expires, if a retention was asked for; else -1.
        is_deleted: Whether the last record is a tombstone.
        commit_count: Number of commits of the key that were read, tombstones not among them.
    """

    key: OffsetCommitKey
    log_offset: int
    timestamp_ms: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    is_deleted: bool
    commit_count: int


class LastCommits:
    """Last commits of one log; takes the chunks of its segments in the order of offsets.

    Attributes:
        open_parts: Commits of transactions without a marker so far, by producer.
        first_ends: Offset of the first marker of each producer, and whether it commits: it ends the
            transaction that was open before the first chunk.
    """

    __slots__ = ("_columns", "_counts", "_metadata", "first_ends", "open_parts")

    def __init__(self) -> None:
        self._columns = {name: np.full(_FIRST_ROOM, -1) for name in _KEPT}
        self._columns["log_offset"][:] = _NEVER
        self._counts = np.zeros(_FIRST_ROOM, np.int64)
        self._metadata: dict[int, str] = {}
        self.open_parts: dict[int, list[CommitColumns]] = {}
        self.first_ends: dict[int, tuple[int, bool]] = {}

    @property
    def open_count(self) -> int:
        """Number of records in transactions without a marker."""
        return sum(len(part) for parts in self.open_parts.values() for part in parts)

    def add(self, chunk: ChunkColumns) -> None:
        """Take the next chunk of the log."""
        commits, markers = chunk.commits, chunk.markers
        for producer_id, end in _firsts(markers).items():
            self.first_ends.setdefault(producer_id, end)
        is_open = commits.producer_id != NO_PRODUCER
        if not is_open.any() and not self.open_parts:
            self.settle(commits)
            return
        self.settle(picked(commits, ~is_open))
        self._end_transactions(picked(commits, is_open), markers)

    def settle(self, commits: CommitColumns) -> None:
        """Count these records, which belong to no transaction or to a committed one."""
        if not len(commits):
            return
        self._make_room(int(commits.key.max()) + 1)
        is_commit = ~commits.is_tombstone
        np.add.at(self._counts, commits.key[is_commit], 1)
        # Of several records of a key the last one is kept: assignments are made in order.
        order = np.arange(len(commits))
        last = np.empty(len(self._counts), np.int64)
        last[commits.key] = order
        kept = last[commits.key] == order
        kept &= commits.log_offset >= self._columns["log_offset"][commits.key]
        rows = picked(commits, kept)
        for name in _KEPT:
            self._columns[name][rows.key] = getattr(rows, name)
        self._keep_metadata(rows)

    def settled(self) -> tuple[CommitColumns, Ints]:
        """The last record of each key as columns, and its number of commits."""
        seen = np.flatnonzero(self._columns["log_offset"] != _NEVER)
        texts = Texts()
        metadata = [texts.index_of(self._metadata.get(number, "")) for number in seen.tolist()]
        columns = {name: column[seen] for name, column in self._columns.items()}
        is_tombstone = columns.pop("is_tombstone").astype(bool)
        found = CommitColumns(
            **columns,
            key=seen,
            is_tombstone=is_tombstone,
            metadata=np.array(metadata, np.int64),
            producer_id=np.full(len(seen), NO_PRODUCER),
            texts=texts.values,
        )
        return found, self._counts[seen]

    def follow(
        self,
        settled: CommitColumns,
        counts: Ints,
        first_ends: dict[int, tuple[int, bool]],
        unfinished: CommitColumns,
    ) -> None:
        """Take what another reader found in the next part of the log.

        Args:
            settled: Its last record of each key.
            counts: Its number of commits of each.
            first_ends: Its `first_ends`, which end what is open here.
            unfinished: Its commits of transactions that did not end there.
        """
        for producer_id, end in first_ends.items():
            self.first_ends.setdefault(producer_id, end)
            for part in self.open_parts.pop(producer_id, ()):
                if end[1]:
                    self.settle(part)
        self.settle(settled)
        more = counts - ~settled.is_tombstone
        np.add.at(self._counts, settled.key, more)
        for part in _by_producer(unfinished):
            self.open_parts.setdefault(int(part.producer_id[0]), []).append(part)

    def rows(self, keys: Sequence[OffsetCommitKey]) -> list[LastCommit]:
        """The last commits, by group, topic and partition.

        Args:
            keys: The keys of a `KeyTable` by their numbers.
        """
        found, counts = self.settled()
        columns: dict[str, Iterable[object]] = {
            name: getattr(found, name).tolist() for name in _KEPT if name != "is_tombstone"
        }
        columns["is_deleted"] = found.is_tombstone.tolist()
        columns["commit_count"] = counts.tolist()
        columns["metadata"] = [found.texts[index] for index in found.metadata.tolist()]
        columns["key"] = [keys[number] for number in found.key.tolist()]
        names, values = list(columns), zip(*columns.values(), strict=True)
        rows = [LastCommit(**dict(zip(names, row, strict=True))) for row in values]
        return sorted(rows, key=by_name)

    def _end_transactions(self, commits: CommitColumns, markers: Markers) -> None:
        """Settle the commits of transactions that end, forget those of aborted ones."""
        for producer_id, (_, is_commit) in _firsts(markers).items():
            for part in self.open_parts.pop(producer_id, ()):
                if is_commit:
                    self.settle(part)
        has_ended, is_committed = _ends_of(commits, markers)
        self.settle(picked(commits, is_committed))
        for part in _by_producer(picked(commits, ~has_ended)):
            self.open_parts.setdefault(int(part.producer_id[0]), []).append(part)

    def _keep_metadata(self, rows: CommitColumns) -> None:
        for number in rows.key[rows.metadata == 0].tolist() if self._metadata else ():
            self._metadata.pop(number, None)
        some = rows.metadata != 0
        for number, text in zip(rows.key[some].tolist(), rows.metadata[some].tolist(), strict=True):
            self._metadata[number] = rows.texts[text]

    def _make_room(self, count: int) -> None:
        room = len(self._counts)
        while room < count:
            room *= 2
        more = room - len(self._counts)
        if more:
            self._counts = np.concatenate((self._counts, np.zeros(more, np.int64)))
            for name, column in self._columns.items():
                fill = _NEVER if name == "log_offset" else -1
                self._columns[name] = np.concatenate((column, np.full(more, fill)))


def _ends_of(commits: CommitColumns, markers: Markers) -> tuple[Flags, Flags]:
    """Which transactional commits are followed by a marker, and which by one that commits."""
    count = len(commits)
    producers = np.concatenate((commits.producer_id, markers.producer_id))
    offsets = np.concatenate((commits.log_offset, markers.log_offset))
    order = np.lexsort((offsets, producers))
    places = np.arange(len(order))
    nobody = len(order)
    marker_at = np.where(order >= count, places, nobody)
    following = np.minimum.accumulate(marker_at[::-1])[::-1]
    has_ended, is_committed = np.zeros(count, bool), np.zeros(count, bool)
    rows = places[(order < count) & (following < nobody)]
    ends = order[following[rows]]
    rows = order[rows]
    is_own = producers[rows] == producers[ends]
    has_ended[rows] = is_own
    is_committed[rows] = is_own & markers.is_commit[ends - count]
    return has_ended, is_committed


def _by_producer(commits: CommitColumns) -> list[CommitColumns]:
    """The commits of each producer, in the order of the log."""
    if not len(commits):
        return []
    order = np.argsort(commits.producer_id, kind="stable")
    borders = np.flatnonzero(np.diff(commits.producer_id[order])) + 1
    return [picked(commits, rows) for rows in np.split(order, borders)]


def by_name(row: LastCommit) -> tuple[str, str, int]:
    """The order in which rows are shown: group, topic, partition."""
    return row.key.group_id, row.key.topic, row.key.partition


def _firsts(markers: Markers) -> dict[int, tuple[int, bool]]:
    """The first marker of each producer: its offset, and whether it commits."""
    found: dict[int, tuple[int, bool]] = {}
    for row, producer_id in enumerate(markers.producer_id.tolist()):
        found.setdefault(producer_id, (int(markers.log_offset[row]), bool(markers.is_commit[row])))
    return found
