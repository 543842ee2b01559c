"""The last committed offset of each key, with the transactions decided.

A commit inside a transaction counts once the transaction's marker says so, and then at its own
place in the log: of two commits of one key, the later record wins, whichever marker came first.
Records are in the order in which they stand in the log. Their offsets rise in a sound log; a base
offset is under no checksum.

Source: kafka 4.4, OffsetMetadataManager.replay and completeTransaction; kafka 3.9,
GroupMetadataManager.doLoadGroupsAndOffsets.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

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
from coordinator_sim.messages.group_records import OffsetCommitKey

_FIRST_ROOM: Final = 1_024
_NEVER: Final = -1
"""Place of a key without any record so far."""
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


class PlacedCommits(Struct, frozen=True, kw_only=True):
    """Commits with their places in what was read of a log.

    Args:
        commits: In the order of the log.
        places: How many commits were read before each.
    """

    commits: CommitColumns
    places: Ints

    def __len__(self) -> int:
        """Number of records."""
        return len(self.places)

    def picked(self, which: Flags | Ints) -> "PlacedCommits":
        """Some of the records, in that order."""
        return PlacedCommits(commits=picked(self.commits, which), places=self.places[which])

    def moved(self, by: int) -> "PlacedCommits":
        """The same records behind as many others."""
        return PlacedCommits(commits=self.commits, places=self.places + by)


class LastCommits:
    """Last commits of one log; takes the chunks of its segments in the order of the log.

    Attributes:
        taken: Number of commits read.
        open_parts: Commits of transactions without a marker so far, by producer.
        first_ends: Whether the first marker of each producer commits: it ends the transaction that
            was open before the first chunk.
    """

    __slots__ = (
        "_columns",
        "_counts",
        "_metadata",
        "_places",
        "first_ends",
        "open_parts",
        "taken",
    )

    def __init__(self) -> None:
        self._columns = {name: np.full(_FIRST_ROOM, -1) for name in _KEPT}
        self._places = np.full(_FIRST_ROOM, _NEVER)
        self._counts = np.zeros(_FIRST_ROOM, np.int64)
        self._metadata: dict[int, str] = {}
        self.taken = 0
        self.open_parts: dict[int, list[PlacedCommits]] = {}
        self.first_ends: dict[int, bool] = {}

    @property
    def open_count(self) -> int:
        """Number of records in transactions without a marker."""
        return sum(len(part) for parts in self.open_parts.values() for part in parts)

    def add(self, chunk: ChunkColumns) -> None:
        """Take the next chunk of the log."""
        places = np.arange(self.taken, self.taken + len(chunk.commits))
        found = PlacedCommits(commits=chunk.commits, places=places)
        is_open = chunk.commits.producer_id != NO_PRODUCER
        if is_open.any() or len(chunk.markers.producer_id):
            self._settle(found.picked(~is_open))
            self._end_transactions(found.picked(is_open), chunk.markers)
        else:
            self._settle(found)
        self.taken += len(places)

    def _settle(self, found: PlacedCommits) -> None:
        """Count these records, which belong to no transaction or to a committed one."""
        commits, places = found.commits, found.places
        if not len(places):
            return
        self._make_room(int(commits.key.max()) + 1)
        is_commit = ~commits.is_tombstone
        np.add.at(self._counts, commits.key[is_commit], 1)
        # Of several records of a key the last one is kept: assignments are made in order.
        order = np.arange(len(commits))
        last = np.empty(len(self._counts), np.int64)
        last[commits.key] = order
        kept = last[commits.key] == order
        kept &= places > self._places[commits.key]
        rows = picked(commits, kept)
        self._places[rows.key] = places[kept]
        for name in _KEPT:
            self._columns[name][rows.key] = getattr(rows, name)
        self._keep_metadata(rows)

    def settled(self) -> tuple[PlacedCommits, Ints]:
        """The last record of each key, and its number of commits."""
        seen = np.flatnonzero(self._places != _NEVER)
        texts = Texts()
        metadata = [texts.index_of(self._metadata.get(number, "")) for number in seen.tolist()]
        columns = {name: column[seen] for name, column in self._columns.items()}
        is_tombstone = columns.pop("is_tombstone").astype(bool)
        commits = CommitColumns(
            **columns,
            key=seen,
            is_tombstone=is_tombstone,
            metadata=np.array(metadata, np.int64),
            producer_id=np.full(len(seen), NO_PRODUCER),
            texts=texts.values,
        )
        return PlacedCommits(commits=commits, places=self._places[seen]), self._counts[seen]

    def follow(
        self,
        taken: int,
        settled: PlacedCommits,
        counts: Ints,
        first_ends: dict[int, bool],
        unfinished: PlacedCommits,
    ) -> None:
        """Take what another reader found in the next part of the log.

        Args:
            taken: Its `taken`.
            settled: Its last record of each key.
            counts: Its number of commits of each.
            first_ends: Its `first_ends`, which end what is open here.
            unfinished: Its commits of transactions that did not end there.
        """
        self._end_first(first_ends)
        self._settle(settled.moved(self.taken))
        more = counts - ~settled.commits.is_tombstone
        np.add.at(self._counts, settled.commits.key, more)
        self._keep_open(unfinished.moved(self.taken))
        self.taken += taken

    def rows(self, keys: Sequence[OffsetCommitKey]) -> list[LastCommit]:
        """The last commits, by group, topic and partition.

        Args:
            keys: The keys of a `KeyTable` by their numbers.
        """
        placed, counts = self.settled()
        found = placed.commits
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

    def _end_transactions(self, found: PlacedCommits, markers: Markers) -> None:
        """Settle the commits of transactions that end, forget those of aborted ones."""
        self._end_first(_first_ends(markers))
        has_ended, is_committed = _ends_of(found, markers, self.taken)
        self._settle(found.picked(is_committed))
        self._keep_open(found.picked(~has_ended))

    def _end_first(self, first_ends: dict[int, bool]) -> None:
        """End the transactions that were open before."""
        for producer_id, is_commit in first_ends.items():
            self.first_ends.setdefault(producer_id, is_commit)
            for part in self.open_parts.pop(producer_id, ()):
                if is_commit:
                    self._settle(part)

    def _keep_open(self, found: PlacedCommits) -> None:
        for part in _by_producer(found):
            self.open_parts.setdefault(int(part.commits.producer_id[0]), []).append(part)

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
            self._places = np.concatenate((self._places, np.full(more, _NEVER)))
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate((column, np.full(more, -1)))


def _ends_of(found: PlacedCommits, markers: Markers, start: int) -> tuple[Flags, Flags]:
    """Which transactional commits are followed by a marker, and which by one that commits.

    Args:
        found: Transactional commits of a chunk.
        markers: The chunk's markers.
        start: Place of the chunk's first commit.
    """
    count = len(found)
    producers = np.concatenate((found.commits.producer_id, markers.producer_id))
    # A marker stands between the commit before it and the one after it.
    places = np.concatenate((2 * found.places + 1, 2 * (start + markers.commits_before)))
    order = np.lexsort((places, producers))
    rows = np.arange(len(order))
    nobody = len(order)
    marker_at = np.where(order >= count, rows, nobody)
    following = np.minimum.accumulate(marker_at[::-1])[::-1]
    has_ended, is_committed = np.zeros(count, bool), np.zeros(count, bool)
    rows = rows[(order < count) & (following < nobody)]
    ends = order[following[rows]]
    rows = order[rows]
    is_own = producers[rows] == producers[ends]
    has_ended[rows] = is_own
    is_committed[rows] = is_own & markers.is_commit[ends - count]
    return has_ended, is_committed


def _by_producer(found: PlacedCommits) -> list[PlacedCommits]:
    """The commits of each producer, in the order of the log."""
    if not len(found):
        return []
    producers = found.commits.producer_id
    order = np.argsort(producers, kind="stable")
    borders = np.flatnonzero(np.diff(producers[order])) + 1
    return [found.picked(rows) for rows in np.split(order, borders)]


def by_name(row: LastCommit) -> tuple[str, str, int]:
    """The order in which rows are shown: group, topic, partition."""
    return row.key.group, row.key.topic, row.key.partition


def _first_ends(markers: Markers) -> dict[int, bool]:
    """Whether the first marker of each producer commits."""
    found: dict[int, bool] = {}
    ends = zip(markers.producer_id.tolist(), markers.is_commit.tolist(), strict=True)
    for producer_id, is_commit in ends:
        found.setdefault(producer_id, is_commit)
    return found
