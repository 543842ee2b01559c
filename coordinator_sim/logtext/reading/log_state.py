"""What a reader of a log keeps from line to line, as values.

A log is read in one go, or in ranges side by side. A range is read from a state that the text just
above it suggests; `settled` tells whether the state that the ranges before it really left would
have given the same, from what the range asked of it.

Kafka versions that can have written a log, judged by its wording.

Each line narrows the range of versions: by its logging class, its prefix and its row. A line that
contradicts the range so far starts a new one: the broker was upgraded, or the file holds the lines
of two brokers.
"""

import re
from collections.abc import Callable, Iterable
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from coordinator_sim.logtext.reading.line_clock import LineClock
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.reading.printed_settings import Block
from coordinator_sim.logtext.wordings import loggers, reasons
from coordinator_sim.logtext.wordings.releases import ALL, VERSIONS, version_range
from coordinator_sim.trace.events import Event, TraceEvent

_REASON_END: Final = re.compile(r"\)\.?$")
ENOUGH: Final = 1_024
"""Characters of a message that are searched; version evidence stands before."""


class Fingerprint:
    """The range of one log, narrowed line by line."""

    def __init__(self) -> None:
        self._low = 0
        self._high = len(VERSIONS) - 1
        self._informed = False
        self._earlier: list[str] = []

    def observe(self, message: str, logger: str, *, whole: bool) -> bool:
        """Take one message into account; return whether the range changed.

        Args:
            message: Text of the coordinator, with its bracketed prefix.
            logger: Name of the logger; empty when not known.
            whole: Whether the message was not cut off.
        """
        told = message[:ENOUGH]
        before = (self._low, self._high, self._informed)
        for releases in _evidence(told, logger, is_whole=whole and told == message):
            self._narrow(*version_range(releases))
        return (self._low, self._high, self._informed) != before

    def _narrow(self, first: int, last: int) -> None:
        low, high = max(self._low, first), min(self._high, last)
        if low > high:
            current = self.current
            if current is not None and current not in self._earlier:
                self._earlier.append(current)
            low, high = first, last
        self._low, self._high, self._informed = low, high, True

    @property
    def current(self) -> str | None:
        """Range of the latest evidence, such as `2.5-2.7`; None without any."""
        if not self._informed:
            return None
        low, high = VERSIONS[self._low], VERSIONS[self._high]
        return low if low == high else f"{low}-{high}"

    @property
    def ranges(self) -> tuple[str, ...]:
        """Every range seen, in order; more than one when the wording contradicts itself."""
        current = self.current
        if current is None:
            return ()
        return (*(earlier for earlier in self._earlier if earlier != current), current)


def _evidence(message: str, logger: str, *, is_whole: bool) -> list[int]:
    """Return the sets of releases that a line tells, those that tell nothing left out.

    One line is one coordinator's, so that what it says is judged together; a contradiction inside
    a line is judged like two lines.
    """
    told = []
    found = find(message)
    if found is not None:
        row, match = found
        told.append(row.releases_of(message, is_whole=is_whole))
        text = match.groupdict().get("reason")
        if text is not None:
            text = _REASON_END.sub("", text) if is_whole else text
            told.append(reasons.releases_of(text, is_whole=is_whole))
    told += loggers.releases_of(f"{logger} {message}")
    together = ALL
    for releases in told:
        together &= releases
    return [releases for releases in ([together] if together else told) if releases not in (0, ALL)]


NEARBY_US: Final = 50_000
"""Largest time between lines of one request."""
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Wording = tuple[str, ...]


class Unfinished(Struct, frozen=True):
    """A line that the next line may continue."""

    number: int
    parts: tuple[str, ...]


class Departure(Struct, frozen=True):
    """A member's failure or leaving, as far as a rebalance without a reason takes it over."""

    event: Event
    ts_us: int
    seq: int
    member_id: str | None


class Carried(Generic[_Key, _Value]):
    """Values by key: those left by the text above, and those of the range that is read.

    Args:
        above: What the text above left; not changed.

    Attributes:
        asked: What was found above, by key; None where there was nothing.
    """

    def __init__(self, above: dict[_Key, _Value]) -> None:
        self._above = above
        self._own: dict[_Key, _Value] = {}
        self.asked: dict[_Key, _Value | None] = {}

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key, which may be changed in place; made where there is none."""
        own = self._own.get(key)
        if own is None:
            above = self._above.get(key)
            self.asked[key] = above
            own = self._own[key] = make() if above is None else copy(above)
        return own

    def left(self, above: dict[_Key, _Value]) -> dict[_Key, _Value]:
        """Return what is left behind the range, if that was left above it."""
        return above | self._own


class Departures:
    """The last departure of each group.

    Args:
        above: What the text above left; not changed.

    Attributes:
        asked: Group, time and answer of each question that the text above had to answer.
    """

    def __init__(self, above: dict[str, Departure]) -> None:
        self._above = above
        self._own: dict[str, Departure | None] = {}
        self.asked: list[tuple[str, int, Departure | None]] = []

    def note(self, group_id: str, departure: Departure) -> None:
        """Take note of a departure; the latest of a group counts."""
        known = self._own.get(group_id)
        if known is None or known.seq < departure.seq:
            self._own[group_id] = departure

    def take(self, group_id: str, ts_us: int) -> Departure | None:
        """Return the departure of a group just before a time, which counts once."""
        if group_id in self._own:
            known = self._own[group_id]
            self._own[group_id] = None
            return _nearby(known, ts_us)
        answer = _nearby(self._above.get(group_id), ts_us)
        self._own[group_id] = None
        self.asked.append((group_id, ts_us, answer))
        return answer

    def would_answer(self, above: dict[str, Departure]) -> bool:
        """Whether that text above would have answered the same."""
        return all(
            _nearby(above.get(group_id), ts_us) == answer for group_id, ts_us, answer in self.asked
        )

    def left(self, above: dict[str, Departure], line_count: int) -> dict[str, Departure]:
        """Return what is left behind the range, numbered from its end."""
        told = above | self._own
        return {
            group_id: msgspec.structs.replace(known, seq=known.seq - line_count)
            for group_id, known in told.items()
            if known is not None
        }


def _nearby(departure: Departure | None, ts_us: int) -> Departure | None:
    is_near = departure is not None and abs(ts_us - departure.ts_us) <= NEARBY_US
    return departure if is_near else None


class Observation(Struct, frozen=True):
    """A wording that was seen first in a range, and the releases that its event was told of.

    Args:
        wording: What tells it from others.
        message: The text that was judged.
        logger: Name of the logger.
        is_whole: Whether the message was not cut off.
        has_event: Whether an event can tell of the releases.
        told: The range of releases that the event got; None for none.
    """

    wording: Wording
    message: str
    logger: str
    is_whole: bool
    has_event: bool
    told: str | None


class Evidence:
    """Releases that a log tells of: each wording counts once."""

    def __init__(self) -> None:
        self.fingerprint = Fingerprint()
        self.observations: list[Observation] = []
        self._wordings: dict[Wording, None] = {}

    def knows(self, wording: Wording) -> bool:
        """Whether a wording was observed already."""
        return wording in self._wordings

    def observe(
        self, wording: Wording, message: str, logger: str, *, is_whole: bool, has_event: bool
    ) -> str | None:
        """Take a wording into account; return the releases where that narrows them."""
        text = message[:ENOUGH]
        is_whole = is_whole and text == message
        told = self._told(wording, text, logger, is_whole=is_whole, has_event=has_event)
        self.observations.append(Observation(wording, text, logger, is_whole, has_event, told))
        return told

    def follow(self, observations: Iterable[Observation]) -> bool:
        """Add a range's observations; return whether its events stay equal."""
        is_same = True
        for one in observations:
            told = None
            if not self.knows(one.wording):
                told = self._told(
                    *(one.wording, one.message, one.logger),
                    is_whole=one.is_whole,
                    has_event=one.has_event,
                )
            is_same = is_same and told == one.told
        return is_same

    def _told(
        self, wording: Wording, text: str, logger: str, *, is_whole: bool, has_event: bool
    ) -> str | None:
        self._wordings[wording] = None
        is_changed = self.fingerprint.observe(text, logger, whole=is_whole)
        return self.fingerprint.current if is_changed and has_event else None


class Pending(Struct, frozen=True):
    """What waits at a border between two lines; lines are numbered from it.

    Args:
        previous: The line above.
        unfinished: A line that the next may continue.
        last_ts_us: Time of the last event; None before the first.
        has_tail: Whether a line so far named its logger behind the message.
        timeless: Events of lines without a time, before the first that has one.
        failed: An event whose reason may be in the next line.
        held: Events that a later line may change.
        block: Settings that further lines may go on with.
    """

    previous: str = ""
    unfinished: Unfinished | None = None
    last_ts_us: int | None = None
    has_tail: bool = False
    timeless: tuple[TraceEvent, ...] = ()
    failed: TraceEvent | None = None
    held: tuple[TraceEvent, ...] = ()
    block: Block | None = None

    def moved(self, line_count: int) -> "Pending":
        """Return the same, numbered from a border so many lines further down."""
        unfinished = self.unfinished
        if unfinished is not None:
            unfinished = Unfinished(unfinished.number - line_count, unfinished.parts)
        block = self.block
        if block is not None and block.event is not None:
            block = msgspec.structs.replace(block, event=_moved(block.event, line_count))
        return msgspec.structs.replace(
            self,
            unfinished=unfinished,
            timeless=tuple(_moved(event, line_count) for event in self.timeless),
            failed=None if self.failed is None else _moved(self.failed, line_count),
            held=tuple(_moved(event, line_count) for event in self.held),
            block=block,
        )


def _moved(event: TraceEvent, line_count: int) -> TraceEvent:
    return msgspec.structs.replace(event, seq=event.seq - line_count)


@dataclass(slots=True)
class Client:
    """Last values that one client logged.

    Attributes:
        group_id: Group of its last line that names one.
        is_shared: Whether lines that cannot be told apart named two groups or two members.
        announced: Events that further lines will tell again.
        listed: Partitions of a list that goes on in further lines.
        unlisted: Number of its partitions that are still to come.
    """

    group_id: str | None = None
    member_id: str | None = None
    generation: int | None = None
    protocol_name: str | None = None
    rejoin_reason: str | None = None
    is_shared: bool = False
    announced: tuple[Event, ...] = ()
    listed: str = ""
    unlisted: int = 0


WriterKey = tuple[bool, str]
"""Whether a broker wrote a line, and its layout: each has a clock of its own."""
ClientKey = tuple[str, str]
"""Name of a client instance, and group; without a group for what holds of all its lines."""


@dataclass(slots=True)
class Border:
    """The whole state of a reader at a border between two lines."""

    pending: Pending = field(default_factory=Pending)
    clocks: dict[WriterKey, LineClock] = field(default_factory=dict)
    clients: dict[ClientKey, Client] = field(default_factory=dict)
    departures: dict[str, Departure] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)


@dataclass(slots=True)
class RangeState:
    """State of a range of lines: its start, the earlier state that it used, and its end."""

    began: Pending
    ended: Pending
    line_count: int
    clocks: Carried[WriterKey, LineClock]
    clients: Carried[ClientKey, Client]
    departures: Departures
    observations: list[Observation]

    def settle(self, border: Border) -> tuple[bool, Border]:
        """Return whether the range is read as from a border, and the border at its end.

        Where it is not, the border at its end is a better guess than that of the text above.
        """
        is_same = (
            self.began == border.pending
            and all(border.clocks.get(key) == one for key, one in self.clocks.asked.items())
            and all(border.clients.get(key) == one for key, one in self.clients.asked.items())
            and self.departures.would_answer(border.departures)
        )
        evidence = deepcopy(border.evidence)
        is_told = evidence.follow(self.observations)
        return is_same and is_told, Border(
            pending=self.ended.moved(self.line_count),
            clocks=self.clocks.left(border.clocks),
            clients=self.clients.left(border.clients),
            departures=self.departures.left(border.departures, self.line_count),
            evidence=evidence,
        )
