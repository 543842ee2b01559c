"""Events of requests put in the order of their times: a request comes long before its answer."""

import heapq
import re
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_sim.ingest.kinds import REQUEST_MARK
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.exchanges import Exchanges

_SLACK_US: Final = 10_000_000
"""A rebalance shows in requests up to some heartbeats before the first JoinGroup."""
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
