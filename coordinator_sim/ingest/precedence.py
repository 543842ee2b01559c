"""Merges several sources of one cluster: a fact that two of them have counts once.

A fact is, for example, that a group's generation 7 was joined. Of the sources that have it within
two seconds the most exact one gives the time, and the others fill the columns that it leaves open.
Times are never averaged. Where a broker's log has the fact, the event keeps its line, for replay
and for look-ups.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.ingest.skew import Skews
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, OffsetEntry, Source, TraceEvent
from coordinator_sim.trace.history import CLIENT_SOURCES

WITHIN_US: Final = 2_000_000
"""Two sources tell one fact at most this far apart."""
_BEGAN_WITHIN_US: Final = 3_600_000_000
"""Requests show a rebalance later than it began: by heartbeat intervals, or a long join phase."""
_ORDER: Final = (
    Source.SIM,
    Source.WIRE,
    Source.REQUEST_LOG,
    Source.BROKER_LOG,
    Source.OFFSETS_TOPIC,
    Source.OFFSETS_SEGMENT,
    Source.DUMP_LOG,
    Source.FORMATTER_JSON,
    Source.FORMATTER_TEXT,
)
_RANKS: Final = {source: rank for rank, source in enumerate(_ORDER)}
_GENERATION_FACTS: Final = frozenset(
    {Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_EMPTY}
)
_TIMED: Final = _GENERATION_FACTS - {Event.PREPARE_REBALANCE}
"""Facts whose times compare the clocks of two sources."""
_MEMBER_FACTS: Final = frozenset(
    {
        Event.ASSIGNED,
        Event.MEMBER_ID_ASSIGNED,
        Event.MEMBER_ADDED,
        Event.MEMBER_LEFT,
        Event.MEMBER_FAILED,
        Event.MEMBER_KICKED,
        Event.MEMBER_FENCED,
        Event.STATIC_REPLACED,
        Event.PENDING_EXPIRED,
    }
)
_ENDS: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
"""How a member ends: each id does so once."""
_REQUEST_FACTS: Final = frozenset(
    {
        *(Event.JOIN_REQ, Event.JOIN_RESP, Event.SYNC_REQ, Event.SYNC_RESP),
        *(Event.HEARTBEAT, Event.LEAVE_REQ, Event.OFFSET_FETCH),
    }
)
_OFFSET_FACTS: Final = frozenset({Event.OFFSET_COMMIT, Event.OFFSET_TOMBSTONE})
_FILLED: Final = (
    *("protocol_type", "protocol_name", "leader_id", "members", "static_members"),
    *("group_instance_id", "client_id", "client_host", "broker_id", "offsets_partition"),
    *("session_timeout_ms", "rebalance_timeout_ms", "subscription", "assignment"),
    *("reason", "reason_text", "client_reason", "member_id"),
)
"""Columns that a source may leave open and another may know."""
_NUMBERED: Final = frozenset({Source.DUMP_LOG})
"""Sources whose `seq` is an offset of the partition, the same in every copy of it."""

_Key = tuple[Any, ...]


def best_source(sources: Iterable[Source]) -> Source:
    """The source that a trace of several is named after: the most exact one."""
    return min(sources, key=lambda source: _RANKS.get(source, len(_RANKS)))


@dataclass(slots=True)
class _Part:
    """One fact of an event that waits: the whole event, or an entry of its offsets."""

    key: _Key
    waits: "_Waiting"
    entry: OffsetEntry | None = None
    also: tuple[Source, ...] = ()
    """Other sources that have the same fact, once each."""
    is_gone: bool = False


@dataclass(slots=True)
class _Waiting:
    """A position in the queue, with an event that a better source may still report."""

    event: TraceEvent
    source: Source | None
    """Whose place it is; the words may be those of another."""
    parts: list[_Part] = field(default_factory=list)

    def left(self) -> TraceEvent | None:
        """The event to emit; None if better sources already cover it."""
        if not any(part.is_gone for part in self.parts):
            return self.event
        entries = tuple(
            part.entry for part in self.parts if part.entry is not None and not part.is_gone
        )
        return replace(self.event, offsets=entries) if entries else None


class Precedence:
    """Leaves out what a better source tells too.

    Args:
        skews: Learns by how much the clocks of the sources differ.
        drop: Told each event that is left out as a whole, and whether another file of its own kind
            has it; else another source has.

    Attributes:
        drop: As above; it is not saved with this.
        left_out: Source -> events and entries of it that another source told too.
    """

    left_out: dict[Source, int]
    _skews: Skews
    drop: Callable[[TraceEvent, bool], None]
    _line: deque[_Waiting]
    _facts: dict[_Key, list[_Part]]
    _told: dict[_Key, int]
    _begun: dict[str, tuple[int | None, int]]
    _ended: dict[tuple[str | None, str | None], None]
    _reached_us: int

    def __init__(self, skews: Skews, drop: Callable[[TraceEvent, bool], None]) -> None:
        self.left_out = {}
        self._skews = skews
        self.drop = drop
        self._line = deque()
        self._facts = {}
        self._told = {}
        self._begun = {}
        self._ended = {}
        self._reached_us = 0

    def chosen(self, events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
        """Yield the events that count, in their order, at most two seconds of them later."""
        for event in events:
            self._reached_us = max(self._reached_us, event.ts_us)
            while self._line and self._line[0].event.ts_us < self._reached_us - WITHIN_US:
                yield from self._release()
            self._take(event)

    def finish(self) -> Iterator[TraceEvent]:
        """Yield the events that waited, when there are no more."""
        while self._line:
            yield from self._release()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "drop"}

    def _release(self) -> Iterator[TraceEvent]:
        waiting = self._line.popleft()
        self._forget(waiting)
        event = waiting.left()
        if event is None:
            self._drop_entries(waiting)
            return
        if self._is_late_inference(event):
            # A better source told it within the two seconds that this one waited.
            self._drop_inferred(event)
            return
        if event.event in (Event.JOIN_COMPLETE, Event.GROUP_EMPTY) and event.confidence == 1:
            self._told[event.group_id, event.generation] = event.ts_us
        yield event

    def _drop_inferred(self, event: TraceEvent) -> None:
        if event.source is not None:
            self._leave_out(event.source)
        self.drop(event, False)  # noqa: FBT003 - of a Callable

    def _drop_entries(self, waiting: _Waiting) -> None:
        """Count an offset event as repeated, because better sources have all its entries."""
        if waiting.event.event in _OFFSET_FACTS:
            self.drop(waiting.event, False)  # noqa: FBT003 - of a Callable

    def _forget(self, waiting: _Waiting) -> None:
        for part in waiting.parts:
            known = [other for other in self._facts.get(part.key, ()) if other is not part]
            if known:
                self._facts[part.key] = known
            else:
                self._facts.pop(part.key, None)

    def _take(self, event: TraceEvent) -> None:
        source = event.source
        if source is None or source in CLIENT_SOURCES:
            self._line.append(_Waiting(event, source))
            return
        if event.event in _TIMED:
            self._skews.note(source, event)
        if self._is_late_inference(event):
            self._drop_inferred(event)
            return
        if event.event in _ENDS and event.confidence == 1:
            self._ended[event.group_id, event.member_id] = None
        if event.event is Event.PREPARE_REBALANCE and event.confidence == 1:
            self._begun[event.group_id or ""] = (event.generation, event.ts_us)
        waiting = _Waiting(event, source)
        same = _identity(event)
        if same is not None and not self._is_new(same, waiting):
            self.drop(event, True)  # noqa: FBT003 - of a Callable
            return
        for key, entry in _facts_of(event):
            self._weigh(_Part(key, waiting, entry))
        if waiting.left() is None:
            self._forget(waiting)
            self._drop_entries(waiting)
        else:
            self._line.append(waiting)

    def _is_new(self, key: _Key, waiting: _Waiting) -> bool:
        """Whether no other file of this kind has told this."""
        told = self._facts.get(key, [])
        if any(other.waits.event.source_ref != waiting.event.source_ref for other in told):
            return False
        part = _Part(key, waiting)
        self._facts.setdefault(key, []).append(part)
        waiting.parts.append(part)
        return True

    def _weigh(self, part: _Part) -> None:
        """Compare a fact with the same fact of another source: the better one's words stay.

        What a broker's log tells stays its line, with the time of the better source: its lines
        alone tell the order of what happened within a millisecond.
        """
        waiting = part.waits
        other = self._told_by_another(part)
        if other is None:
            self._facts.setdefault(part.key, []).append(part)
            waiting.parts.append(part)
            return
        mine, theirs = waiting.event, other.waits.event
        is_worse = _rank(theirs) <= _rank(mine)
        told_by = (each.source for each in (mine, theirs) if each.source)
        sources = tuple(dict.fromkeys((*other.also, *told_by)))
        stays = not is_worse
        if part.entry is None and Source.BROKER_LOG in (waiting.source, other.waits.source):
            stays = waiting.source is Source.BROKER_LOG
        gone = theirs if stays else mine
        if gone.source is not None:
            self._leave_out(gone.source)
        if part.entry is None:
            self.drop(gone, False)  # noqa: FBT003 - of a Callable
        keeps, goes = (part, other) if stays else (other, part)
        goes.is_gone = True
        keeps.also = sources
        if part.entry is None:
            kept = mine if stays else theirs
            keeps.waits.event = _with_time(_filled(kept, gone), theirs if is_worse else mine)
        waiting.parts.append(part)
        if stays:
            self._facts.setdefault(part.key, []).append(part)

    def _told_by_another(self, part: _Part) -> _Part | None:
        """Return a waiting fact that equals this one and comes from another source."""
        event = part.waits.event
        for other in self._facts.get(part.key, ()):
            apart_us = abs(other.waits.event.ts_us - event.ts_us)
            sources = (other.waits.source, *other.also)
            if not other.is_gone and event.source not in sources and apart_us <= WITHIN_US:
                return other
        return None

    def _is_late_inference(self, event: TraceEvent) -> bool:
        """Whether a better source has told already what is only inferred here."""
        if event.confidence == 1 or event.group_id is None:
            return False
        if event.event is Event.PREPARE_REBALANCE:
            generation, began_us = self._begun.get(event.group_id, (None, 0))
            return generation == event.generation and (
                0 <= event.ts_us - began_us <= _BEGAN_WITHIN_US
            )
        if event.event not in _MEMBER_FACTS:
            return False
        if event.event in _ENDS and (event.group_id, event.member_id) in self._ended:
            return True
        at_us = self._told.get((event.group_id, event.generation))
        if at_us is None:
            own = event.source
            told = [
                part.waits.event
                for kind in (Event.JOIN_COMPLETE, Event.GROUP_EMPTY)
                for part in self._facts.get((kind, event.group_id, event.generation), ())
                if part.waits.event.source is not own
            ]
            return bool(told)
        return abs(event.ts_us - at_us) <= WITHIN_US

    def _leave_out(self, source: Source) -> None:
        self.left_out[source] = self.left_out.get(source, 0) + 1


def _rank(event: TraceEvent) -> tuple[bool, int]:
    """Return a smaller value for an event that goes first: what is seen, then the better source."""
    rank = len(_RANKS) if event.source is None else _RANKS.get(event.source, len(_RANKS))
    return event.confidence < 1, rank


def _identity(event: TraceEvent) -> _Key | None:
    """Return what an event shares with itself in another file of its kind; None for none."""
    if event.source in _NUMBERED and event.offsets_partition is not None:
        where_us = (event.offsets_partition, event.seq, event.ts_us)
        return ("same", event.source, event.event, event.member_id, *where_us)
    return None


def _facts_of(event: TraceEvent) -> Iterator[tuple[_Key, OffsetEntry | None]]:
    """Yield the facts that other sources may tell as well."""
    kind, group_id = event.event, event.group_id
    if kind in _GENERATION_FACTS:
        yield (kind, group_id, event.generation), None
    elif kind in _MEMBER_FACTS:
        # A broker's log names whom a static member replaced, and not its new id.
        yield (kind, group_id, event.attrs.get("old_member_id", event.member_id)), None
    elif kind is Event.GROUP_DEAD:
        yield (kind, group_id), None
    elif kind in _REQUEST_FACTS:
        asked = (event.client_id, event.correlation_id, event.api_key)
        yield (kind, group_id, event.member_id, *asked), None
    elif kind in _OFFSET_FACTS and event.error_code in (None, ErrorCode.NONE):
        for entry in event.offsets:
            yield (kind, group_id, entry.topic, entry.partition, entry.offset), entry


def _with_time(event: TraceEvent, better: TraceEvent) -> TraceEvent:
    """Return an event with the time of the same fact in the better source."""
    if event.source is better.source:
        return event
    return replace(event, ts_us=better.ts_us, ts_kind=better.ts_kind, ts_err_us=better.ts_err_us)


def _filled(event: TraceEvent, other: TraceEvent) -> TraceEvent:
    """Return an event with what it leaves open and another source of the same fact knows."""
    known = {
        name: getattr(other, name)
        for name in _FILLED
        if getattr(event, name) is None and getattr(other, name) is not None
    }
    return replace(event, **known) if known else event
