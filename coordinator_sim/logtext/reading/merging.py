"""Merges several logs of one cluster: brokers in parallel, rotated files in sequence.

Inside a log, the order of its lines decides, whatever its clock says. Between logs, the latest time
that each has reached decides.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.trace.events import TraceEvent


class TimedLog(Struct, frozen=True):
    """A log that has not been started.

    Args:
        first_us: Time of its first event; it is not started before.
        events: Its events in line order, incarnations not yet numbered.
    """

    first_us: int
    events: Iterator[TraceEvent]


def merge_logs(
    logs: Iterable[TimedLog], *, is_repeated: Callable[[TraceEvent], bool] | None = None
) -> Iterator[TraceEvent]:
    """Yield the events of all logs, with incarnations numbered over the whole cluster.

    A log is started when the others have reached its first event, so that a month of hourly files
    needs few open at a time. At equal times the log started first goes first, because rotated parts
    often meet within one second. An event that `is_repeated` is left out.
    """
    counter = IncarnationCounter()
    waiting = sorted(enumerate(logs), key=lambda entry: (entry[1].first_us, entry[0]), reverse=True)
    running: list[tuple[int, int, TraceEvent, Iterator[TraceEvent]]] = []
    started = 0
    while waiting or running:
        while waiting and (not running or waiting[-1][1].first_us <= running[0][0]):
            _index, log = waiting.pop()
            first = next(log.events, None)
            if first is not None:
                heapq.heappush(running, (first.ts_us, started, first, log.events))
                started += 1
        if not running:
            continue
        reached_us, place, event, events = running[0]
        following = next(events, None)
        if following is None:
            heapq.heappop(running)
        else:
            # A clock that runs back keeps its log's place: the order of lines decides inside it.
            reached_us = max(reached_us, following.ts_us)
            heapq.heapreplace(running, (reached_us, place, following, events))
        if is_repeated is None or not is_repeated(event):
            yield counter.number(event)
