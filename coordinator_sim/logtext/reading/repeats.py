"""Logs that hold the same lines: copies, excerpts that overlap, and two clusters taken for one.

Lines are compared by content, never by the names of their files. A broker's message about a group
at one instant occurs once in a cluster, so one line shows a repeat, in whatever layout. A client's
message may come from another client of the same name: several lines in a row are needed. The time
is linear in the lines, and the memory is bounded.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.logtext.reading.broker_log import has_token
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
_MOST_BLOCKS: Final = 400_000
"""Limit of remembered blocks; above it, every second one is dropped, the same ones of every log."""
_WINDOW_US: Final = 1_000_000
"""Copies of a line have one time; lines of one log are out of order by less than this."""
_CONTRADICTIONS: Final = 2
_GENERATION_LINES: Final = frozenset(
    {Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY}
)
_NOT_SAID: Final = frozenset(
    {"broker_version_range", "collector_ts", "reason_inferred", "rebalance", "truncated"}
)
"""Attributes that depend on the layout or on lines nearby, not on what the broker said."""


class LogContents:
    """Content of several logs, as far as coordinators' and clients' lines go."""

    def __init__(self) -> None:
        self.copy_of: dict[str, str] = {}
        """Name of a copy -> name of the first log of that content."""
        self.overlaps: dict[str, str] = {}
        """Name of a log that shares lines with others -> the first log of those."""
        self._whole: dict[bytes, str] = {}
        self._blocks: dict[int, str] = {}
        self._sparsity = 1

    def add(self, name: str, lines: Iterable[str]) -> None:
        """Read one log; of logs with the same lines the first one added counts."""
        whole = hashlib.blake2b(digest_size=16)
        recent: deque[bytes] = deque(maxlen=BLOCK_LINES)
        blocks: set[int] = set()
        telling_line = 0
        for line_count, text in enumerate(timed_lines(lines), 1):
            if _TELLING.search(text) is not None:
                telling_line = line_count
            digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
            whole.update(digest)
            recent.append(digest)
            is_sure = line_count >= BLOCK_LINES > line_count - telling_line and telling_line > 0
            block = int.from_bytes(hashlib.blake2b(b"".join(recent), digest_size=8).digest())
            if is_sure and block % self._sparsity == 0:
                blocks.add(block)
                self._thin_out(blocks)
        if telling_line == 0:
            return
        first = self._whole.setdefault(whole.digest(), name)
        if first != name:
            self.copy_of[name] = first
            return
        self._remember(name, blocks)

    def _thin_out(self, blocks: set[int]) -> None:
        while len(blocks) + len(self._blocks) > _MOST_BLOCKS:
            self._sparsity *= 2
            blocks -= {block for block in blocks if block % self._sparsity}
            self._blocks = {
                block: name for block, name in self._blocks.items() if block % self._sparsity == 0
            }

    def _remember(self, name: str, blocks: set[int]) -> None:
        others = {self._blocks[block] for block in blocks if block in self._blocks}
        roots = {self.overlaps.get(other, other) for other in others}
        if roots:
            root = min(roots, key=list(self._whole.values()).index)
            for member in (*roots, name, *(n for n, r in self.overlaps.items() if r in roots)):
                self.overlaps[member] = root
        for block in blocks:
            self._blocks.setdefault(block, name)


def timed_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of coordinators and clients, each with its time or the line above's."""
    above = ""
    for line in lines:
        if has_token(line):
            is_timed = _CLOCK.search(line[:_TIME_WITHIN]) is not None
            yield line.strip() if is_timed else f"{above.strip()}\n{line.strip()}"
        above = line


class RepeatedLines:
    """Finds lines that another log has already given.

    Args:
        overlaps: `LogContents.overlaps`. Lines of clients, and those without a time of their own,
            are compared only in the logs that are in it.
    """

    def __init__(self, overlaps: dict[str, str]) -> None:
        self._overlaps = overlaps
        self._given: dict[object, int] = {}
        self._had: dict[object, int] = {}
        self._since_us = 0
        self._previous: tuple[dict[object, int], ...] = ({}, {})

    def is_repeated(self, event: TraceEvent) -> bool:
        """Whether this event's line was already given; events come in the order of their times.

        A line that one log has twice is two lines: the second counts unless another log also had a
        second one.
        """
        given = self._said(event)
        if given is None:
            return False
        self._forget(event.ts_us)
        had = (event.source_ref, given)
        before = self._had.get(had, self._previous[1].get(had, 0))
        known = self._given.get(given, self._previous[0].get(given, 0))
        self._had[had] = before + 1
        self._given[given] = max(known, before + 1)
        return before < known

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

    def _forget(self, ts_us: int) -> None:
        if abs(ts_us - self._since_us) > _WINDOW_US:
            self._previous = (self._given, self._had)
            self._given, self._had = {}, {}
            self._since_us = ts_us


class _Told(Struct):
    """How far each log has followed one group."""

    file: str | None = None
    generation: int | None = None
    by_file: dict[str | None, int] = {}
    contradictions: int = 0


class OneCluster:
    """Detects logs taken for one cluster's that hold two groups of one name."""

    def __init__(self) -> None:
        self._groups: dict[str, _Told] = {}

    def check(self, event: TraceEvent) -> None:
        """Check the next event of all logs together.

        A coordinator that takes a group over continues from its last generation. Two logs that in
        turn each continue from their own generation belong to different groups.

        Raises:
            DataError: the logs do so; the message says how to read them apart.
        """
        group_id, generation = event.group_id, event.generation
        if group_id is None or generation is None or event.event not in _GENERATION_LINES:
            return
        told = self._groups.get(group_id)
        if told is None:
            told = self._groups[group_id] = _Told(by_file={})
        file = event.source_ref
        own = told.by_file.get(file)
        if event.event is Event.PREPARE_REBALANCE and file != told.file and own == generation:
            if told.generation not in (None, generation):
                told.contradictions += 1
            if told.contradictions >= _CONTRADICTIONS:
                raise DataError(
                    f"group {group_id!r}: {told.file} and {file} tell of it in turn, one at "
                    f"generation {told.generation}, the other at {generation}: they are logs of "
                    "two clusters, or of brokers whose clocks differ; ingest those of each cluster "
                    "(or broker) by themselves, with --cluster NAME and an --out of its own, and "
                    "give both traces to report; parts of one log between which its clock was set "
                    "back, as when summer time ends, must be joined to one file first"
                )
        told.file, told.generation = file, generation
        told.by_file[file] = generation
