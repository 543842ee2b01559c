"""Logs that hold the same lines: copies, excerpts that overlap, and two clusters taken for one.

Lines are compared by content, never by the names of their files. A broker's message about a group
at one instant occurs once in a cluster, so one line shows a repeat, in whatever layout. A client's
message may come from another client of the same name: several lines in a row are needed. The time
is linear in the lines, and the memory is bounded.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.errors import DataError
from coordinator_sim.logtext.reading.text import has_token
from coordinator_sim.trace import batches
from coordinator_sim.trace.events import Event, Source, TimeKind, TraceEvent

BLOCK_LINES: Final = 3
"""Number of coordinators' lines in a row, with their times, that two logs share only by copying if
one of them is `_TELLING`.
"""
_TELLING: Final = re.compile(
    r":\d\d[.,]\d{3}|\d{10}\.?\d{3}|[0-9a-f]{8}-[0-9a-f]{4}-|\[Group ?(?:Coord|Meta)"
)
"""A time finer than a second, a member's id or a broker. Clients that share a client id write equal
lines of other kinds within one second.
"""
_CLOCK: Final = re.compile(r"\d\d?:\d\d:\d\d|\d{10}")
_TIME_WITHIN: Final = 80
"""Number of leading characters in which a line's own time begins; a line without one is compared
with the time of the line above.
"""
_DIGEST_BYTES: Final = 8
_PART_LINES: Final = 20_000
_MOST_BLOCKS: Final = 400_000
"""Limit of remembered blocks; above it, every second one is dropped, the same ones of every log."""
_WINDOW_US: Final = 1_000_000
"""Copies of a line have one time; lines of one log are out of order by less than this."""
_CONTRADICTIONS: Final = 2
_PREPARE: Final = batches.KIND_NUMBERS[Event.PREPARE_REBALANCE]
_UNPARSED: Final = batches.KIND_NUMBERS[Event.UNPARSED]
_GENERATION_KINDS: Final = (
    _PREPARE,
    batches.KIND_NUMBERS[Event.JOIN_COMPLETE],
    batches.KIND_NUMBERS[Event.SYNC_LEADER],
    batches.KIND_NUMBERS[Event.GROUP_EMPTY],
)
_NOT_SAID: Final = frozenset(
    {"broker_version_range", "collector_ts", "reason_inferred", "rebalance", "truncated"}
)
"""Attributes that depend on the layout or on lines nearby, not on what the broker said."""


class ContentPart(Struct, frozen=True):
    """Some lines of coordinators and clients in a row.

    Args:
        digests: Eight bytes a line.
        telling: Whether each line shows by itself that it is a copy.
        blocks: Numbers of the blocks of `BLOCK_LINES` of the lines, those without a telling line
            left out.
    """

    digests: bytes = b""
    telling: tuple[bool, ...] = ()
    blocks: tuple[int, ...] = ()

    def lines(self, first: int, last: int) -> "ContentPart":
        """Return some of the lines, without their blocks."""
        return ContentPart(
            self.digests[first * _DIGEST_BYTES : last * _DIGEST_BYTES], self.telling[first:last]
        )


def content_part(lines: Iterable[str]) -> ContentPart:
    """Return what lines in a row have in common with copies of them.

    Args:
        lines: As `timed_lines` gives them.
    """
    digests = bytearray()
    telling: list[bool] = []
    for text in lines:
        digests += hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
        telling.append(_TELLING.search(text) is not None)
    part = ContentPart(bytes(digests), tuple(telling))
    return ContentPart(part.digests, part.telling, tuple(_blocks_of(part, BLOCK_LINES)))


def _parts_of(lines: Iterable[str]) -> Iterator[ContentPart]:
    taken = iter(lines)
    while some := list(islice(taken, _PART_LINES)):
        yield content_part(some)


def _blocks_of(part: ContentPart, first_end: int) -> Iterator[int]:
    """Yield digests of the blocks that end at or after a line and contain a telling line."""
    digests, telling = part.digests, part.telling
    for end in range(max(first_end, BLOCK_LINES), len(telling) + 1):
        start = end - BLOCK_LINES
        if True in telling[start:end]:
            lines = digests[start * _DIGEST_BYTES : end * _DIGEST_BYTES]
            yield int.from_bytes(hashlib.blake2b(lines, digest_size=_DIGEST_BYTES).digest())


def _blocks_between(last: ContentPart, part: ContentPart) -> Iterator[int]:
    """Yield the blocks that begin in the lines before a part and end in it."""
    begins = part.lines(0, BLOCK_LINES - 1)
    joined_lines = ContentPart(last.digests + begins.digests, last.telling + begins.telling)
    yield from _blocks_of(joined_lines, len(last.telling) + 1)


def _end_of(last: ContentPart, part: ContentPart) -> ContentPart:
    """Return the lines with which a block may begin that ends in the next part."""
    told = ContentPart(last.digests + part.digests, last.telling + part.telling)
    return told.lines(max(0, len(told.telling) - BLOCK_LINES + 1), len(told.telling))


class LogContents:
    """Content of several logs, as far as coordinators' and clients' lines go."""

    copy_of: dict[str, str]
    overlaps: dict[str, str]
    _whole: dict[bytes, str]
    _blocks: dict[int, str]
    _sparsity: int

    def __init__(self) -> None:
        self.copy_of = {}
        """Name of a copy -> name of the first log of that content."""
        self.overlaps = {}
        """Name of a log that shares lines with others -> the first log of those."""
        self._whole = {}
        self._blocks = {}
        self._sparsity = 1

    def add(self, name: str, lines: Iterable[str]) -> None:
        """Read one log; of logs with the same lines the first one added counts."""
        self.add_parts(name, _parts_of(timed_lines(lines)))

    def add_parts(self, name: str, parts: Iterable[ContentPart]) -> None:
        """Take one log in parts, in their order; see `add`."""
        whole = hashlib.blake2b(digest_size=16)
        blocks: set[int] = set()
        is_telling = False
        last = ContentPart()
        for part in parts:
            whole.update(part.digests)
            is_telling = is_telling or True in part.telling
            for block in (*_blocks_between(last, part), *part.blocks):
                if block % self._sparsity == 0:
                    blocks.add(block)
                    self._thin_out(blocks)
            last = _end_of(last, part)
        if not is_telling:
            return
        first = self._whole.setdefault(whole.digest(), name)
        if first != name:
            self.copy_of[name] = first
            return
        self._remember(name, blocks)

    def forget_lines_but_of(self, names: set[str]) -> None:
        """Forget the lines of logs, other than these, that no further log can share by its times.

        Copies of whole logs are still found.
        """
        self._blocks = {block: name for block, name in self._blocks.items() if name in names}

    def _thin_out(self, blocks: set[int]) -> None:
        while len(blocks) + len(self._blocks) > _MOST_BLOCKS:
            self._sparsity *= 2
            blocks -= {block for block in blocks if block % self._sparsity}
            self._blocks = {
                block: name for block, name in self._blocks.items() if block % self._sparsity == 0
            }

    def _remember(self, name: str, blocks: set[int]) -> None:
        others = {self._blocks[block] for block in blocks if block in self._blocks}
        roots = sorted({self.overlaps.get(other, other) for other in others})
        if roots:
            root = min(roots, key=list(self._whole.values()).index)
            for member in (*roots, name, *(n for n, r in self.overlaps.items() if r in roots)):
                self.overlaps[member] = root
        for block in blocks:
            self._blocks.setdefault(block, name)


def timed_lines(lines: Iterable[str], above: str = "") -> Iterator[str]:
    """Yield the lines of coordinators and clients, each with its time or the line above's.

    Args:
        lines: All lines in a row.
        above: The line above the first.
    """
    for line in lines:
        if has_token(line):
            is_timed = _CLOCK.search(line[:_TIME_WITHIN]) is not None
            yield line.strip() if is_timed else f"{above.strip()}\n{line.strip()}"
        above = line


class _Remembered(Struct):
    """A line that logs gave, as often as one log had it, and when that was last looked at."""

    count: int
    window: int


class RepeatedLines:
    """Finds lines that another log has already given.

    Args:
        overlaps: `LogContents.overlaps`. Lines of clients, and those without a time of their own,
            are compared only in the logs that are in it.
    """

    _overlaps: dict[str, str]
    _given: dict[object, _Remembered]
    _had: dict[object, _Remembered]
    _since_us: int
    _window: int
    _before: batches.EventBatch | None
    _windows: batches.Int64s
    _compared: NDArray[np.bool_]

    def __init__(self, overlaps: dict[str, str]) -> None:
        self._overlaps = overlaps
        self._given = {}
        self._had = {}
        self._since_us = 0
        self._window = 0
        self._before = None
        """Events of the last two windows, with the windows and whether each was compared."""
        self._windows = np.zeros(0, np.int64)
        self._compared = np.zeros(0, np.bool_)

    def are_repeated(self, batch: batches.EventBatch) -> NDArray[np.bool_]:
        """Return which lines were already given; events come in the order of their times.

        A line that one log has twice is two lines: the second counts unless another log also had a
        second one.
        """
        said = self._may_repeat(batch)
        before = 0 if self._before is None else len(self._before)
        repeated = np.zeros(len(batch), np.bool_)
        own = np.flatnonzero(said)
        if not len(own):
            return repeated
        fresh = batch.take(own)
        windows = np.append(self._windows, self._windows_of(fresh.ts_us))
        compared = np.append(self._compared, np.zeros(len(own), np.bool_))
        every = fresh if self._before is None else batches.joined([self._before, fresh])
        rows = np.flatnonzero(self._are_suspect(every) & ~compared)
        for row, event in zip(rows.tolist(), every.take(rows).events(), strict=True):
            is_repeated = self._said(event) is not None and self._compare(event, int(windows[row]))
            if row >= before:
                repeated[own[row - before]] = is_repeated
        compared[rows] = True
        kept = np.flatnonzero(windows >= self._window - 1)
        self._before = every.take(kept)
        self._windows, self._compared = windows[kept], compared[kept]
        self._forget()
        return repeated

    def _may_repeat(self, batch: batches.EventBatch) -> NDArray[np.bool_]:
        """Return which events are compared at all."""
        is_told: NDArray[np.bool_] = ~batch.is_client & (batch.kinds != _UNPARSED)
        is_told &= batch.time_kinds == batches.LOGGED
        if batch.objects is None:
            return is_told
        for row in np.flatnonzero(batch.detail_rows == batches.NOBODY).tolist():
            is_told[row] = self._said(batch.objects[row]) is not None
        return is_told

    def _are_suspect(self, batch: batches.EventBatch) -> NDArray[np.bool_]:
        """Return which events two logs have alike, as far as time, kind and group go."""
        files = batch.files
        if (files == files[0]).all():
            return np.zeros(len(batch), np.bool_)
        keys = np.stack([batch.ts_us, batch.kinds.astype(np.int64), batch.groups.astype(np.int64)])
        order = np.lexsort((files, *keys))
        keys, files = keys[:, order], files[order]
        is_like_next = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        starts = np.append(True, ~is_like_next)
        runs = np.cumsum(starts) - 1
        has_other = np.zeros(runs[-1] + 1, np.bool_)
        has_other[runs[1:][is_like_next & (files[1:] != files[:-1])]] = True
        suspect = np.zeros(len(batch), np.bool_)
        suspect[order] = has_other[runs]
        if self._overlaps and batch.objects is not None:
            suspect |= (
                batch.is_client | (batch.kinds == _UNPARSED) | (batch.time_kinds != batches.LOGGED)
            )
        return suspect

    def _windows_of(self, ts_us: batches.Int64s) -> batches.Int64s:
        """Return the windows of the next events; a time far from a window's first begins one."""
        windows = []
        for each_us in ts_us.tolist():
            if abs(each_us - self._since_us) > _WINDOW_US:
                self._since_us = each_us
                self._window += 1
            windows.append(self._window)
        return np.array(windows, np.int64)

    def _compare(self, event: TraceEvent, window: int) -> bool:
        given = self._said(event)
        had = (event.source_ref, given)
        before, known = self._count(self._had, had, window), self._count(self._given, given, window)
        self._had[had] = _Remembered(before + 1, window)
        self._given[given] = _Remembered(max(known, before + 1), window)
        return before < known

    def _count(self, told: dict[object, _Remembered], key: object, window: int) -> int:
        remembered = told.get(key)
        is_near = remembered is not None and window - remembered.window <= 1
        return remembered.count if remembered is not None and is_near else 0

    def _said(self, event: TraceEvent) -> object:
        """Return the event's identity across logs; None for lines that any two logs may share."""
        if (
            event.source is Source.BROKER_LOG
            and event.event is not Event.UNPARSED
            and event.ts_kind is TimeKind.LOGGED
            and (event.group_id is not None or event.broker_id is not None)
        ):
            where = (event.broker_id, event.offsets_partition, event.group_id)
            told = frozenset(entry for entry in event.attrs.items() if entry[0] not in _NOT_SAID)
            return (event.ts_us, event.event, where, event.generation, event.member_id, told)
        root = self._overlaps.get(event.source_ref or "")
        return None if root is None or event.raw is None else (root, event.event, event.raw)

    def _forget(self) -> None:
        for told in (self._given, self._had):
            stale = [key for key, one in told.items() if self._window - one.window > 1]
            for key in stale:
                del told[key]


class OneCluster:
    """Detects logs taken for one cluster's that hold two groups of one name."""

    _files: NDArray[np.int32]
    _generations: batches.Int64s
    _by_file: dict[tuple[int, int], int]
    _contradictions: Counter[int]

    def __init__(self) -> None:
        self._files = np.zeros(0, np.int32)
        """The log that told last of each group, by the group's number; `NOBODY` for none."""
        self._generations = np.zeros(0, np.int64)
        """The generation that it told."""
        self._by_file = {}
        """The last generation that a log told of a group, for logs that are not the last."""
        self._contradictions = Counter()

    def check(self, batch: batches.EventBatch) -> None:
        """Check the next events of all logs together.

        A coordinator that takes a group over continues from its last generation. Two logs that in
        turn each continue from their own generation belong to different groups.

        Raises:
            DataError: the logs do so; the message says how to read them apart.
        """
        is_told = (batch.groups != batches.NOBODY) & (batch.generations != batches.UNKNOWN)
        rows = np.flatnonzero(is_told & np.isin(batch.kinds, _GENERATION_KINDS))
        if not len(rows):
            return
        groups, files = batch.groups[rows], batch.files[rows]
        missing = int(groups.max()) + 1 - len(self._files)
        if missing > 0:
            self._files = np.append(self._files, np.full(missing, batches.NOBODY, np.int32))
            self._generations = np.append(self._generations, np.zeros(missing, np.int64))
        before = self._files[groups]
        is_new = before == batches.NOBODY
        is_alone = bool((files == files[0]).all())
        changes = groups[(before != files) & ~is_new] if is_alone else groups
        if len(changes):
            for row in rows[np.isin(groups, changes)].tolist():
                self._follow(batch, row)
        # Of a group's rows, the last one counts.
        self._files[groups] = files
        self._generations[groups] = batch.generations[rows]

    def _follow(self, batch: batches.EventBatch, row: int) -> None:
        file, generation = int(batch.files[row]), int(batch.generations[row])
        group = int(batch.groups[row])
        last_file, last_generation = int(self._files[group]), int(self._generations[group])
        if last_file not in (file, batches.NOBODY):
            self._by_file[group, last_file] = last_generation
            is_start = batch.kinds[row] == _PREPARE
            if is_start and self._by_file.get((group, file)) == generation:
                self._contradictions[group] += last_generation != generation
                if self._contradictions[group] >= _CONTRADICTIONS:
                    told = [batch.names.text(number) for number in (last_file, file)]
                    raise DataError(
                        f"group {batch.names.text(group)!r}: {told[0]} and {told[1]} tell of it in "
                        f"turn, one at generation {last_generation}, the other at {generation}: "
                        "they are logs of two clusters, or of brokers whose clocks differ; ingest "
                        "those of each cluster (or broker) by themselves, with --cluster NAME and "
                        "an --out of its own, and give both traces to report; parts of one log "
                        "between which its clock was set back, as when summer time ends, must be "
                        "joined to one file first"
                    )
        self._files[group], self._generations[group] = file, generation
