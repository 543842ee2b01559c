"""Events of requests put in the order of their times: a request comes long before its answer."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.ingest.kinds import REQUEST_MARK
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.exchanges import Exchanges

_SLACK_US: Final = 10_000_000
"""A rebalance shows in requests up to some heartbeats before the first JoinGroup."""
_RECENT_US: Final = 1_000_000
"""Copies of a line have one time; lines of one log are out of order by less than this."""
_TOTAL: Final = re.compile(r"totalTime(?:Ms\")?:(\d{1,12})")
_PARKED: Final = ("JOIN_GROUP", "SYNC_GROUP", "api_key=11,", "api_key=14,")
"""Requests that wait; the others are answered at once."""


def longest_wait_us(lines: Iterable[str]) -> int:
    """How long the longest request of a log took, as far as requests of groups go."""
    longest_ms = 0
    for line in lines:
        if REQUEST_MARK in line and any(name in line for name in _PARKED):
            found = _TOTAL.search(line)
            if found is not None:
                longest_ms = max(longest_ms, int(found[1]))
    return (longest_ms + 1) * 1_000


class TimedExchanges(Struct, frozen=True):
    """The exchanges of one file that has not been opened.

    Args:
        first_us: When its first answer was sent; it is not opened before.
        exchanges: In the order of their answers.
    """

    first_us: int
    exchanges: Iterator[Exchange]


def merged(
    files: Iterable[TimedExchanges], repeated: Callable[[Exchange], None]
) -> Iterator[Exchange]:
    """Yield the exchanges of all files in the order of their answers, each once.

    Inside a file the order of its lines decides. Rotated logs overlap nowhere, excerpts do: an
    exchange is known by its connection, its correlation id and its time.

    Args:
        files: Of one cluster, in any order.
        repeated: Told each exchange that an earlier file has, too.
    """
    waiting = sorted(enumerate(files), key=lambda entry: (entry[1].first_us, entry[0]))
    waiting.reverse()
    running: list[tuple[int, int, Exchange, Iterator[Exchange]]] = []
    recent = _Recent()
    started = 0
    while waiting or running:
        while waiting and (not running or waiting[-1][1].first_us <= running[0][0]):
            following = waiting.pop()[1].exchanges
            first = next(following, None)
            if first is not None:
                heapq.heappush(running, (first.sent_us, started, first, following))
                started += 1
        if not running:
            continue
        reached_us, place, exchange, following = running[0]
        after = next(following, None)
        if after is None:
            heapq.heappop(running)
        else:
            reached_us = max(reached_us, after.sent_us)
            heapq.heapreplace(running, (reached_us, place, after, following))
        if recent.is_new(exchange):
            yield exchange
        else:
            repeated(exchange)


class _Recent:
    """Remembers the exchanges of the last second or two, by what names them in any file."""

    def __init__(self) -> None:
        self._since_us = 0
        self._seen: dict[object, str] = {}
        self._before: dict[object, str] = {}

    def is_new(self, exchange: Exchange) -> bool:
        """Whether no other file has told of an exchange."""
        if not exchange.connection:
            return True
        if abs(exchange.sent_us - self._since_us) > _RECENT_US:
            self._before, self._seen = self._seen, {}
            self._since_us = exchange.sent_us
        key = (
            *(exchange.connection, exchange.correlation_id, exchange.sent_us),
            *(exchange.asked_us, type(exchange.request)),
        )
        first = self._before.get(key) or self._seen.setdefault(key, exchange.source_ref)
        return first == exchange.source_ref


def in_time_order(
    exchanges: Iterable[Exchange], told: Exchanges, wait_us: int
) -> Iterator[TraceEvent]:
    """Yield the events of exchanges in the order of their times; at equal times, of the answers.

    Args:
        exchanges: In the order of their answers.
        told: Makes them events.
        wait_us: How long the longest of them took; that much of the log is held in memory.
    """
    held: list[tuple[int, int, TraceEvent]] = []
    count = 0
    reached_us = 0
    for exchange in exchanges:
        reached_us = max(reached_us, exchange.sent_us)
        for event in told.read(exchange):
            heapq.heappush(held, (event.ts_us, count, event))
            count += 1
        while held and held[0][0] < reached_us - wait_us - _SLACK_US:
            yield heapq.heappop(held)[2]
    while held:
        yield heapq.heappop(held)[2]
