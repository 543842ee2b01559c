"""Events of requests put in the order of their times: a request comes long before its answer."""

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.ingest.ahead import Ahead
from coordinator_sim.ingest.kinds import REQUEST_MARK
from coordinator_sim.ingest.saved_state import decoded, encoded
from coordinator_sim.logtext.reading.merging import NO_TIME_US
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Source, TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.exchanges import Exchanges

SLACK_US: Final = 10_000_000
"""A rebalance shows in requests up to some heartbeats before the first JoinGroup."""
_RECENT_US: Final = 1_000_000
"""Copies of a line have one time; lines of one log are out of order by less than this."""
_TOTAL: Final = re.compile(r"totalTime(?:Ms\")?:(\d{1,12})")
_PARKED: Final = ("JOIN_GROUP", "SYNC_GROUP", "api_key=11,", "api_key=14,")
"""Requests that wait; the others are answered at once."""


def longest_wait_us(lines: Iterable[str]) -> int:
    """The longest total time in a request log of a request that parks, in microseconds."""
    longest_ms = 0
    for line in lines:
        if REQUEST_MARK in line and any(name in line for name in _PARKED):
            found = _TOTAL.search(line)
            if found is not None:
                longest_ms = max(longest_ms, int(found[1]))
    return (longest_ms + 1) * 1_000


class ExchangeFile(Struct, frozen=True):
    """The exchanges of one file that has not been opened.

    Args:
        first_us: When its first answer was sent; it is not opened before.
        number: Its place among the files that begin at one time.
        exchanges: In the order of their answers.
    """

    first_us: int
    number: int
    exchanges: Ahead[Exchange]


@dataclass(slots=True)
class _Open:
    """A file that was opened, and the exchange that it tells next."""

    reached_us: int
    place: tuple[int, int]
    exchange: Exchange
    following: Ahead[Exchange]

    def __lt__(self, other: "_Open") -> bool:
        return (self.reached_us, self.place) < (other.reached_us, other.place)


class ExchangeStream:
    """Yields the events of all exchanges of a kind, in the order of their times.

    The exchanges of all files come in the order of their answers, each once. Inside a file the
    order of its lines decides. Rotated logs overlap nowhere, excerpts do: an exchange is known by
    its connection, its correlation id and its time. At equal times the events are in the order of
    the answers.

    Args:
        source: REQUEST_LOG or WIRE.

    Attributes:
        counts: By file, the events that were yielded, and exchanges that an earlier file has.
        emitted: Number of events that were yielded.
        wait_us: How long the longest request took; that much is held in memory.
        file_count: Number of files that were added.
        reached_us: Latest time of an answer that was taken.
    """

    counts: dict[str, IngestSummary]
    emitted: int
    wait_us: int
    file_count: int
    reached_us: int
    _before_end: bytes | None
    _told: Exchanges
    _recent: "_Recent"
    _waiting: list[ExchangeFile]
    _open: list[_Open]
    _held: list[tuple[int, int, TraceEvent]]
    _count: int

    def __init__(self, source: Source) -> None:
        self.counts = {}
        self.emitted = 0
        self.wait_us = 0
        self.file_count = 0
        self.reached_us = NO_TIME_US
        self._before_end = None
        self._told = Exchanges(source)
        self._recent = _Recent()
        self._waiting = []
        self._open = []
        self._held = []
        self._count = 0

    def add(self, files: Iterable[ExchangeFile], wait_us: int) -> None:
        """Take further files.

        Args:
            files: Of one cluster, in any order.
            wait_us: How long the longest of their requests took.
        """
        self.wait_us = max(self.wait_us, wait_us)
        self._before_end = None
        known = len(self._waiting)
        self._waiting.extend(files)
        self.file_count += len(self._waiting) - known
        self._waiting.sort(key=lambda file: (file.first_us, file.number), reverse=True)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_before_end": None}

    @property
    def settled_us(self) -> int:
        """No event that is yet to come has an earlier time."""
        return self.reached_us - self.wait_us - SLACK_US

    def before_end(self) -> "ExchangeStream | None":
        """Return this stream as it was before it took the last exchanges of its files.

        They are still to be taken, together with those of files that are added; None where the
        files were not read to their ends.
        """
        kept: ExchangeStream | None = None
        if self._before_end is not None:
            kept = decoded(self._before_end, "a stream")
        return kept

    def events(self) -> Iterator[TraceEvent]:
        """Yield the events of the files that were added."""
        while (exchange := self._next()) is not None:
            self.reached_us = max(self.reached_us, exchange.sent_us)
            for event in self._told.read(exchange):
                heapq.heappush(self._held, (event.ts_us, self._count, event))
                self._count += 1
            while self._held and self._held[0][0] < self.settled_us:
                yield self._emit()
        while self._held:
            yield self._emit()

    def _emit(self) -> TraceEvent:
        event = heapq.heappop(self._held)[2]
        self.emitted += 1
        self._counts_of(event.source_ref).count_event(event)
        return event

    def _counts_of(self, source_ref: str | None) -> IngestSummary:
        return self.counts.setdefault(source_ref or "", IngestSummary())

    def _next(self) -> Exchange | None:
        """Return the next exchange that no earlier file has."""
        while True:
            if self._before_end is None and self._is_read():
                self._before_end = encoded(self)
            exchange = self._next_of_files()
            if exchange is None or self._recent.is_new(exchange):
                return exchange
            self._counts_of(exchange.source_ref).repeated += 1

    def _is_read(self) -> bool:
        return not self._waiting and all(one.following.is_read for one in self._open)

    def _next_of_files(self) -> Exchange | None:
        waiting, opened = self._waiting, self._open
        while waiting and (not opened or waiting[-1].first_us <= opened[0].reached_us):
            file = waiting.pop()
            first = next(file.exchanges, None)
            if first is not None:
                place = (file.first_us, file.number)
                heapq.heappush(opened, _Open(first.sent_us, place, first, file.exchanges))
        if not opened:
            return None
        one = opened[0]
        exchange = one.exchange
        after = next(one.following, None)
        if after is None:
            heapq.heappop(opened)
        else:
            reached_us = max(one.reached_us, after.sent_us)
            heapq.heapreplace(opened, _Open(reached_us, one.place, after, one.following))
        return exchange


class _Recent:
    """Remembers the exchanges of the last second or two, by what names them in any file."""

    _since_us: int
    _seen: dict[object, str]
    _before: dict[object, str]

    def __init__(self) -> None:
        self._since_us = 0
        self._seen = {}
        self._before = {}

    def is_new(self, exchange: Exchange) -> bool:
        """Whether no other file has told of an exchange."""
        if not exchange.connection:
            return True
        if abs(exchange.sent_us - self._since_us) > _RECENT_US:
            self._before, self._seen = self._seen, {}
            self._since_us = exchange.sent_us
        key = (
            *(exchange.connection, exchange.correlation_id, exchange.sent_us),
            *(exchange.asked_us, type(exchange.request).__name__),
        )
        first = self._before.get(key) or self._seen.setdefault(key, exchange.source_ref)
        return first == exchange.source_ref
