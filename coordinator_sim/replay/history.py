"""A group's history as a trace tells it: lines in time order, rebalances, episodes.

An episode is a stretch that one incarnation of a group under one coordinator can have lived
through: it ends where the group dies, its coordinator moves, or lines are missing. Nothing is
assumed here about what the trace does not say; that is `plan`.
"""

from collections.abc import Iterable, Iterator
from enum import Enum, unique
from heapq import merge
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.protocol.partitioning import partition_for
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

LINE_SKEW_MS: Final = 50
"""Lines of one happening are written within this of each other (measured on real logs)."""
_DEFAULT_PARTITION_COUNT: Final = 50

_ENDS_COORDINATOR: Final = frozenset({Event.COORD_RESIGNED, Event.UNLOAD_DONE})
_UNLOADS: Final = frozenset({Event.COORD_RESIGNED, Event.UNLOAD_DONE, Event.GROUP_UNLOADED})
_REBALANCE_LINES: Final = frozenset(
    {Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY}
)


@unique
class Outcome(Enum):
    """How a rebalance ended, by its name in the derived table `rebalances`."""

    STABLE = "STABLE"
    EMPTY = "EMPTY"
    NO_SYNC = "NO_SYNC"
    SUPERSEDED = "SUPERSEDED"
    COORDINATOR_MOVED = "COORDINATOR_MOVED"
    OPEN = "OPEN"


class Rebalance(Struct, kw_only=True):
    """One rebalance as its lines tell it; a line that the trace lacks is None.

    Args:
        position: Index of its first line in the episode's lines.
        lines: Everything of the group from its first line to the next rebalance's first line.
    """

    position: int
    start: TraceEvent | None = None
    join: TraceEvent | None = None
    sync: TraceEvent | None = None
    empty: TraceEvent | None = None
    unload: TraceEvent | None = None
    superseded: bool = False
    followed: bool = False
    lines: list[TraceEvent]

    @property
    def first_line(self) -> TraceEvent:
        """The line that the rebalance is first seen in."""
        return self.lines[0]

    @property
    def old_generation(self) -> int | None:
        """The generation that the rebalance ended; None when no line numbers it."""
        if self.start is not None:
            return self.start.generation
        done = self.join or self.sync or self.empty
        return None if done is None or done.generation is None else done.generation - 1

    @property
    def generation(self) -> int | None:
        """The generation that the join phase led to; None when it has not ended."""
        done = self.join or self.sync or self.empty
        return None if done is None else done.generation

    @property
    def reason(self) -> RebalanceReason:
        """Why the group left its generation."""
        reason = self.start.reason if self.start is not None else None
        return reason or RebalanceReason.UNKNOWN

    @property
    def start_ms(self) -> int | None:
        """When the group began to prepare."""
        return _ms(self.start)

    @property
    def join_done_ms(self) -> int | None:
        """When the join phase ended with members."""
        return _ms(self.join)

    @property
    def sync_ms(self) -> int | None:
        """When the leader's assignment arrived."""
        return _ms(self.sync)

    @property
    def end_ms(self) -> int | None:
        """When the rebalance was over; None while it is open or was never synced."""
        return _ms(self.sync or self.empty or self.unload)

    @property
    def members(self) -> int | None:
        """Members of the new generation, where a line counts them; 0 when the group emptied."""
        for line in (self.join, self.sync):
            if line is not None and line.members is not None:
                return line.members
        return 0 if self.empty is not None else None

    @property
    def leader_id(self) -> str | None:
        """The new generation's leader, where a line names it."""
        for line in (self.sync, self.join):
            if line is not None and line.leader_id:
                return line.leader_id
        return None

    @property
    def outcome(self) -> Outcome:
        """How it ended.

        Source: the definition of `outcome` in the derived table `rebalances`.
        """
        if self.sync is not None:
            return Outcome.STABLE
        if self.empty is not None:
            return Outcome.EMPTY
        if self.unload is not None:
            return Outcome.COORDINATOR_MOVED
        if self.join is not None:
            return Outcome.NO_SYNC if self.followed else Outcome.OPEN
        return Outcome.SUPERSEDED if self.superseded else Outcome.OPEN


class Episode(Struct, kw_only=True):
    """What one coordinator saw of one incarnation of a group, in line order.

    Args:
        generation: The generation it begins in; None when no line numbers it.
        resumed: Why it is not the beginning of the group's history: the lines before are missing
            or were another coordinator's. Empty for the first episode of a group.
    """

    group_id: str
    source_ref: str | None
    incarnation: int
    generation: int | None
    resumed: str
    lines: list[TraceEvent]
    rebalances: list[Rebalance]

    @property
    def first_ms(self) -> int:
        """The time of its first line."""
        return self.lines[0].ts_us // 1000

    @property
    def last_ms(self) -> int:
        """The time of its last line."""
        return self.lines[-1].ts_us // 1000


def group_lines(events: Iterable[TraceEvent]) -> dict[str, list[TraceEvent]]:
    """Every group's events in time order, clocks that run backwards held still.

    Within a file the order is that of its lines and the time of a line is at least that of the
    group's line before; files are then merged by time. A broker's resignation of a partition
    counts as a line of each group in it. Groups are in the order they are first seen.
    """
    files: dict[str | None, list[TraceEvent]] = {}
    for event in events:
        files.setdefault(event.source_ref, []).append(event)
    streams: dict[str, list[list[TraceEvent]]] = {}
    for lines in files.values():
        for group_id, own in _by_group(lines).items():
            streams.setdefault(group_id, []).append(own)
    return {
        group_id: list(merge(*parts, key=lambda line: line.ts_us))
        for group_id, parts in streams.items()
    }


def episodes_of(group_id: str, lines: Iterable[TraceEvent]) -> list[Episode]:
    """A group's history cut into episodes; `lines` are in time order."""
    cutter = _Cutter(group_id)
    for line in lines:
        cutter.add(line)
    return cutter.episodes


def _ms(line: TraceEvent | None) -> int | None:
    return None if line is None else line.ts_us // 1000


def _by_group(lines: list[TraceEvent]) -> dict[str, list[TraceEvent]]:
    """One file's lines by group, with times that never decrease within a group."""
    groups: dict[str, list[TraceEvent]] = {}
    partitions: dict[int, list[str]] = {}
    for line in sorted(lines, key=lambda line: line.seq):
        for group_id in _groups_of(line, partitions):
            own = groups.get(group_id)
            if own is None:
                own = groups[group_id] = []
                partition = line.offsets_partition
                if partition is None:
                    partition = partition_for(group_id, _DEFAULT_PARTITION_COUNT)
                partitions.setdefault(partition, []).append(group_id)
            own.append(_not_before(own, line))
    return groups


def _groups_of(line: TraceEvent, partitions: dict[int, list[str]]) -> Iterator[str]:
    if line.group_id is not None:
        yield line.group_id
    elif line.event in _ENDS_COORDINATOR and line.offsets_partition is not None:
        yield from partitions.get(line.offsets_partition, ())


def _not_before(own: list[TraceEvent], line: TraceEvent) -> TraceEvent:
    if own and line.ts_us < own[-1].ts_us:
        return replace(line, ts_us=own[-1].ts_us)
    return line


class _Cutter:
    """Builds the episodes of one group, line by line."""

    def __init__(self, group_id: str) -> None:
        self.episodes: list[Episode] = []
        self._group_id = group_id
        self._current: Episode | None = None
        self._generation: int | None = None
        self._resumed = ""

    def add(self, line: TraceEvent) -> None:
        """Take the group's next line."""
        self._break_before(line)
        if line.event in _UNLOADS and self._current is None:
            return
        episode = self._current or self._begin(line)
        episode.lines.append(line)
        if line.event is Event.GROUP_LOADED and episode.generation is None:
            episode.generation = self._generation = line.generation
        if line.event in _REBALANCE_LINES:
            self._rebalance_line(episode, line)
        elif episode.rebalances:
            episode.rebalances[-1].lines.append(line)
        if line.event in _UNLOADS and episode.rebalances:
            last = episode.rebalances[-1]
            last.unload = line if last.end_ms is None else None
        self._break_after(line)

    def _begin(self, line: TraceEvent) -> Episode:
        episode = Episode(
            group_id=self._group_id,
            source_ref=line.source_ref,
            incarnation=line.incarnation,
            generation=None,
            resumed=self._resumed,
            lines=[],
            rebalances=[],
        )
        self.episodes.append(episode)
        self._current = episode
        return episode

    def _end(self, why: str) -> None:
        self._current = None
        self._generation = None
        self._resumed = why

    def _break_before(self, line: TraceEvent) -> None:
        """End the running episode when this line cannot follow its last."""
        episode = self._current
        if episode is None:
            return
        if line.incarnation != episode.incarnation:
            self._end("a new incarnation of the group")
        elif line.event is Event.GROUP_LOADED:
            if any(own.event is not Event.GROUP_LOADED for own in episode.lines):
                self._end("the group was loaded again")
        elif self._break_off(episode, line):
            self._end("another rebalance began before the last had ended")
        elif line.event in _REBALANCE_LINES and not self._follows(line):
            self._end(
                f"generation {self._generation} is followed by {line.event.value} of "
                f"{line.generation}: lines are missing"
            )

    def _break_off(self, episode: Episode, line: TraceEvent) -> bool:
        """Whether a rebalance begins while one runs: no coordinator does that, but a next one."""
        last = episode.rebalances[-1] if episode.rebalances else None
        runs = last is not None and last.join is None and last.sync is None and last.empty is None
        if last is None or not runs or line.event is not Event.PREPARE_REBALANCE:
            return False
        last.superseded = True
        return True

    def _follows(self, line: TraceEvent) -> bool:
        if self._generation is None or line.generation is None:
            return True
        if line.event is Event.PREPARE_REBALANCE:
            return line.generation == self._generation
        if line.event is Event.SYNC_LEADER:
            return line.generation in (self._generation, self._generation + 1)
        return line.generation == self._generation + 1

    def _break_after(self, line: TraceEvent) -> None:
        if line.event is Event.GROUP_DEAD:
            self._end("the group had died")
        elif line.event in _UNLOADS:
            self._end("its coordinator had moved")

    def _rebalance_line(self, episode: Episode, line: TraceEvent) -> None:
        rebalance = self._rebalance_for(episode, line)
        match line.event:
            case Event.PREPARE_REBALANCE:
                rebalance.start = line
                if self._generation is None:
                    self._generation = line.generation
            case Event.JOIN_COMPLETE:
                rebalance.join = line
                self._generation = line.generation
            case Event.SYNC_LEADER:
                rebalance.sync = line
                self._generation = line.generation
            case _:
                rebalance.empty = line
                self._generation = line.generation
        if rebalance.lines[-1] is not line:
            rebalance.lines.append(line)
        if episode.generation is None:
            episode.generation = rebalance.old_generation

    def _rebalance_for(self, episode: Episode, line: TraceEvent) -> Rebalance:
        """The rebalance that a line belongs to, begun when it is its first."""
        last = episode.rebalances[-1] if episode.rebalances else None
        if last is not None and _belongs(last, line):
            return last
        if last is not None:
            last.followed = True
        rebalance = Rebalance(position=len(episode.lines) - 1, lines=[line])
        episode.rebalances.append(rebalance)
        return rebalance


def _belongs(rebalance: Rebalance, line: TraceEvent) -> bool:
    """Whether a line is the next of a running rebalance rather than the first of another."""
    ended = rebalance.empty is not None or rebalance.sync is not None
    match line.event:
        case Event.PREPARE_REBALANCE:
            return False
        case Event.SYNC_LEADER:
            return not ended and rebalance.generation in (None, line.generation)
        case _:
            return not ended and rebalance.join is None
