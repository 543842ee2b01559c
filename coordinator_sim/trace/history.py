"""Groups the lines of a trace: each group's lines in order, episodes, rebalances.

An episode is a stretch of one incarnation of a group under one coordinator: it ends where the group
dies, its coordinator moves, or lines are missing. No assumptions are made here about what the trace
omits; `replay` makes them in its `plan`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.trace import batches
from coordinator_sim.trace.client_reasons import with_client_reasons
from coordinator_sim.trace.events import Event, Source, TimeKind, TraceEvent
from coordinator_sim.trace.rebalances import (
    Episode,
    NumberedRebalance,
    Rebalance,
    follows_up,
    is_close,
)

LINE_SKEW_MS: Final = 50
"""Largest distance in time between lines of one event (measured on real logs)."""
_DEFAULT_PARTITION_COUNT: Final = 50
_NO_TIME_US: Final = -(2**62)
"""Earlier than any event."""

ENDS_COORDINATOR: Final = frozenset({Event.COORD_RESIGNED, Event.UNLOAD_DONE})
"""Events with which a broker gives up an offsets partition, and every group in it."""
_UNLOADS: Final = frozenset({Event.COORD_RESIGNED, Event.UNLOAD_DONE, Event.GROUP_UNLOADED})
_STARTS: Final = frozenset({Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED})
_REBALANCE_LINES: Final = _STARTS | {
    Event.JOIN_COMPLETE,
    Event.SYNC_LEADER,
    Event.GROUP_EMPTY,
    Event.TARGET_COMPUTED,
    Event.TARGET_REACHED,
}
_OF_PRESENT_EPOCH: Final = frozenset({Event.TARGET_COMPUTED, Event.TARGET_REACHED})
"""Lines of the epoch that began last."""
COORDINATOR_EVENTS: Final = _REBALANCE_LINES | {
    Event.MEMBER_ID_ASSIGNED,
    Event.MEMBER_STEP,
    Event.MEMBER_ADDED,
    Event.MEMBER_LEFT,
    Event.MEMBER_FAILED,
    Event.MEMBER_KICKED,
    Event.MEMBER_FENCED,
    Event.STATIC_REPLACED,
    Event.PENDING_EXPIRED,
    Event.LEADER_REPLACED,
    Event.GROUP_DEAD,
    Event.STORE_FAILED,
    Event.GROUP_LOADED,
    Event.GROUP_UNLOADED,
    *ENDS_COORDINATOR,
}
"""A coordinator's events about a group's life: the events of a history."""
_TELLS_OF_LIFE: Final = np.array([kind in COORDINATOR_EVENTS for kind in batches.KINDS])
_CAUSES: Final = frozenset(
    {
        Event.MEMBER_ADDED,
        Event.MEMBER_LEFT,
        Event.MEMBER_FAILED,
        Event.MEMBER_KICKED,
        Event.STATIC_REPLACED,
    }
)
CLIENT_SOURCES: Final = frozenset(
    {Source.CONSUMER_LOG, Source.CONNECT_LOG, Source.GROUP_DESCRIPTION}
)
"""Logs of clients repeat a coordinator's events, later and by other clocks; snapshots of groups, as
tools print them, have none.
"""


def rebalances_of(group_id: str, lines: Iterable[TraceEvent]) -> list[NumberedRebalance]:
    """Return all rebalances of a group, in line order; `lines` are in line order, steadied."""
    told: list[NumberedRebalance] = []
    for episode in episodes_of(group_id, lines):
        resumed = episode.resumed
        for rebalance in episode.rebalances:
            number = len(told) + 1
            last = told[-1] if told else None
            is_next_round = (
                last is not None and not resumed and follows_up(rebalance, last.rebalance)
            )
            goes_on = last is not None and is_close(rebalance, last.rebalance)
            told.append(
                NumberedRebalance(
                    number=number,
                    episode=episode,
                    rebalance=rebalance,
                    resumed=resumed,
                    follows=number - 1 if is_next_round else None,
                    chain=last.chain if last is not None and goes_on else number,
                )
            )
            resumed = ""
    return told


def coordinator_events(events: Iterable[TraceEvent], source: Source) -> list[TraceEvent]:
    """Return the events of coordinators or a simulation, with the reasons that clients logged.

    Args:
        events: All events of a trace, in its order.
        source: Of the events that name none.
    """
    own: list[TraceEvent] = []
    clients: list[TraceEvent] = []
    for event in events:
        is_clients = (event.source or source) in CLIENT_SOURCES
        (clients if is_clients else own).append(event)
    return with_client_reasons(own, clients)


def group_lines(events: Sequence[TraceEvent]) -> dict[str, list[TraceEvent]]:
    """Return every group's events in the order of the trace, with steadied times.

    A broker's resignation of a partition counts as a line of each group of that partition that its
    file has named before. Groups are in the order they are first seen.
    """
    told = _told_partitions(events)
    groups: dict[str, list[TraceEvent]] = {}
    homes: dict[tuple[str | None, int], dict[str, None]] = {}
    for line in events:
        group_id, file = line.group_id, line.source_ref
        if group_id is not None:
            groups.setdefault(group_id, []).append(line)
            home = home_partition(group_id, told.get((file, group_id)))
            homes.setdefault((file, home), {})[group_id] = None
        elif line.event in ENDS_COORDINATOR and line.offsets_partition is not None:
            for resident in homes.get((file, line.offsets_partition), ()):
                groups[resident].append(line)
    return {group_id: list(steadied(lines)) for group_id, lines in groups.items()}


def _told_partitions(events: Sequence[TraceEvent]) -> dict[tuple[str | None, str], int]:
    """Return by file and group the offsets partition of the first line that names one."""
    told: dict[tuple[str | None, str], int] = {}
    for line in events:
        if line.group_id is not None and line.offsets_partition is not None:
            told.setdefault((line.source_ref, line.group_id), line.offsets_partition)
    return told


def home_partition(group_id: str, told: int | None) -> int:
    """Return the offsets partition of a group: as told, or of Kafka's default of 50."""
    return partition_for(group_id, _DEFAULT_PARTITION_COUNT) if told is None else told


def steadied(lines: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Yield lines in their order, with times that never decrease among a coordinator's.

    The order of lines is the order of events; times are measurements. A line with a time before the
    line above takes the time above, marked as inferred and as uncertain as its clock was behind;
    one that tells why a rebalance begins takes the time of its beginning.
    """
    return _with_causes_in_time(_never_earlier(lines))


def _never_earlier(lines: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    last_us: int | None = None
    for line in lines:
        fits = line.event not in COORDINATOR_EVENTS or last_us is None or line.ts_us >= last_us
        told = line if fits or last_us is None else _held_still(line, last_us)
        if told.event in COORDINATOR_EVENTS:
            last_us = told.ts_us
        yield told


def _with_causes_in_time(lines: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Move a member's event with an inferred time to the beginning of the next rebalance."""
    held: list[TraceEvent] = []
    for line in lines:
        if line.event in _CAUSES and (held or (line.ts_kind is TimeKind.INFERRED)):
            held.append(line)
            continue
        begins = line.event in _STARTS
        for cause in held:
            is_early = begins and cause.ts_kind is TimeKind.INFERRED
            yield replace(cause, ts_us=line.ts_us) if is_early else cause
        held.clear()
        yield line
    yield from held


class SteadyTimes:
    """Steadies the times of each group of a trace, as `steadied` does for one group."""

    _times: batches.FallingGroups

    def __init__(self) -> None:
        self._times = batches.FallingGroups(_NO_TIME_US)

    def steady(self, batch: batches.EventBatch) -> batches.EventBatch:
        """Return the next events of the trace with steadied times."""
        times = self._times
        rows = np.flatnonzero((batch.groups != batches.NOBODY) & _TELLS_OF_LIFE[batch.kinds])
        falling = times.find(batch.groups, batch.ts_us, rows)
        if not falling:
            return batch
        ts_us, err_us = batch.ts_us.copy(), batch.ts_err_us.copy()
        rows = rows[np.isin(batch.groups[rows], list(falling))]
        for group, own in batches.group_runs(batch.groups, rows):
            before_us = max(int(times.last[group]), int(ts_us[own[0]]))
            told_us = np.maximum.accumulate(np.append(before_us, ts_us[own]))[1:]
            err_us[own] = np.maximum(err_us[own], told_us - ts_us[own])
            ts_us[own] = told_us
            times.last[group] = told_us[-1]
        time_kinds = np.where(ts_us == batch.ts_us, batch.time_kinds, batches.INFERRED)
        return batch.having(ts_us=ts_us, ts_err_us=err_us, time_kinds=time_kinds.astype(np.int8))


def _held_still(line: TraceEvent, last_us: int) -> TraceEvent:
    err_us = max(line.ts_err_us, last_us - line.ts_us)
    return replace(line, ts_us=last_us, ts_kind=TimeKind.INFERRED, ts_err_us=err_us)


def episodes_of(group_id: str, lines: Iterable[TraceEvent]) -> list[Episode]:
    """Cut a group's history into episodes; `lines` are in line order, steadied."""
    cutter = _Cutter(group_id)
    for line in lines:
        cutter.add(line)
    return cutter.episodes


class _Cutter:
    """Builds the episodes of one group, line by line."""

    def __init__(self, group_id: str) -> None:
        self.episodes: list[Episode] = []
        self._group_id = group_id
        self._current: Episode | None = None
        self._generation: int | None = None
        self._resumed = ""

    def add(self, line: TraceEvent) -> None:
        """Add the group's next line."""
        self._break_before(line)
        if line.event in _UNLOADS and self._current is None:
            return
        episode = self._current or self._begin(line)
        episode.lines.append(line)
        if line.event is Event.GROUP_LOADED and episode.generation is None:
            episode.generation = self._generation = line.generation
        if line.event in _REBALANCE_LINES and not _is_of_no_epoch(episode, line):
            self._rebalance_line(episode, line)
        elif episode.rebalances:
            episode.rebalances[-1].lines.append(line)
        if line.event in _UNLOADS and episode.rebalances:
            last = episode.rebalances[-1]
            last.unload = line if last.ended is None else None
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
        # Late actions of clients, and events of a whole partition, belong to no incarnation.
        is_own = line.event in COORDINATOR_EVENTS and line.event not in ENDS_COORDINATOR
        if is_own and line.incarnation != episode.incarnation:
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
        """Whether a rebalance begins during another: only a new coordinator does that."""
        last = episode.rebalances[-1] if episode.rebalances else None
        runs = last is not None and last.joined is None and last.sync is None
        if last is None or not runs or line.event is not Event.PREPARE_REBALANCE:
            return False
        last.successor = line
        return True

    def _follows(self, line: TraceEvent) -> bool:
        if self._generation is None or line.generation is None:
            return True
        if line.event is Event.PREPARE_REBALANCE:
            return line.generation == self._generation
        if line.event in _OF_PRESENT_EPOCH or self._is_epoch_empty(line):
            return line.generation == self._generation
        if line.event is Event.SYNC_LEADER:
            return line.generation in (self._generation, self._generation + 1)
        return line.generation == self._generation + 1

    def _is_epoch_empty(self, line: TraceEvent) -> bool:
        """Whether a consumer group has emptied: with the epoch that the last departure began."""
        episode = self._current
        last = episode.rebalances[-1] if episode is not None and episode.rebalances else None
        return line.event is Event.GROUP_EMPTY and last is not None and last.is_epoch

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
            case Event.EPOCH_BUMPED:
                rebalance.start = line
                self._generation = line.generation
            case Event.JOIN_COMPLETE | Event.TARGET_COMPUTED:
                rebalance.join = line
                self._generation = line.generation
            case Event.SYNC_LEADER | Event.TARGET_REACHED:
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
        """Return the rebalance of a line, begun when the line is its first."""
        last = episode.rebalances[-1] if episode.rebalances else None
        if last is not None and _belongs(last, line):
            return last
        if last is not None:
            last.followed = True
            if line.event in _STARTS and last.ended is None:
                last.successor = line
        rebalance = Rebalance(position=len(episode.lines) - 1, lines=[line])
        episode.rebalances.append(rebalance)
        return rebalance


def _is_of_no_epoch(episode: Episode, line: TraceEvent) -> bool:
    """Whether members have reached a target again that is no new one, as a static one that is back.

    Its target was reached before, or it is the target of a group that was loaded.
    """
    if line.event is not Event.TARGET_REACHED:
        return False
    last = episode.rebalances[-1] if episode.rebalances else None
    return last is None or last.ended is not None


def _belongs(rebalance: Rebalance, line: TraceEvent) -> bool:
    """Whether a line continues a running rebalance rather than beginning another."""
    ended = rebalance.empty is not None or rebalance.sync is not None
    match line.event:
        case Event.PREPARE_REBALANCE | Event.EPOCH_BUMPED:
            return False
        case Event.SYNC_LEADER | Event.TARGET_REACHED:
            return not ended and rebalance.generation in (None, line.generation)
        case _:
            return not ended and rebalance.join is None
