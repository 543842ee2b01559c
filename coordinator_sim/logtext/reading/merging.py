"""Merges several logs of one cluster: brokers in parallel, rotated files in sequence.

Inside a log, the order of its lines decides, whatever its clock says. Between logs, the latest time
that each has reached decides.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.trace.batches import NO_EVENTS, EventBatch, Int64s, joined

_NO_TIME_US: Final = -(2**62)


class TimedLog(Struct, frozen=True):
    """A log that has not been started.

    Args:
        first_us: Time of its first event; it is not started before.
        batches: Its events in line order, incarnations not yet numbered.
    """

    first_us: int
    batches: Iterator[EventBatch]


@dataclass(slots=True)
class _Running:
    """A log that was started: its place among them, and the events that were not given yet."""

    place: int
    batches: Iterator[EventBatch]
    batch: EventBatch
    reached_us: Int64s

    @property
    def border(self) -> tuple[int, int]:
        """How far the order of all logs is known from the events read so far."""
        return int(self.reached_us[-1]), self.place

    def count_up_to(self, border: tuple[int, int], until_us: int | None) -> int:
        """Return the number of its events up to a border, and before a time."""
        side: Literal["left", "right"] = "right" if self.place <= border[1] else "left"
        count = int(np.searchsorted(self.reached_us, border[0], side=side))
        if until_us is not None:
            count = min(count, int(np.searchsorted(self.reached_us, until_us, side="left")))
        return count

    def give(self, count: int) -> EventBatch:
        """Return the next events."""
        given = self.batch if count == len(self.batch) else self.batch.take(slice(count))
        self.batch = self.batch.take(slice(count, None))
        self.reached_us = self.reached_us[count:]
        return given

    def go_on(self, reached_us: int) -> bool:
        """Read on; return whether there was more.

        A clock that runs back keeps its log's place: the order of lines decides inside it.
        """
        while len(self.batch) == 0:
            following = next(self.batches, None)
            if following is None:
                return False
            self.batch = following
            self.reached_us = np.maximum.accumulate(np.maximum(following.ts_us, reached_us))
        return True


def merge_logs(
    logs: Iterable[TimedLog],
    *,
    are_repeated: Callable[[EventBatch], NDArray[np.bool_]] | None = None,
) -> Iterator[EventBatch]:
    """Yield the events of all logs, with incarnations numbered over the whole cluster.

    A log is started when the others have reached its first event, so that a month of hourly files
    needs few open at a time. At equal times the log started first goes first, because rotated parts
    often meet within one second. Events that `are_repeated` are left out.
    """
    counter = IncarnationCounter()
    for batch in _merged(logs):
        is_left_out = None if are_repeated is None else are_repeated(batch)
        left = batch
        if is_left_out is not None and is_left_out.any():
            left = batch.take(np.flatnonzero(~is_left_out))
        if len(left):
            yield counter.number(left)


def _merged(logs: Iterable[TimedLog]) -> Iterator[EventBatch]:
    waiting = sorted(enumerate(logs), key=lambda entry: (entry[1].first_us, entry[0]), reverse=True)
    running: list[_Running] = []
    started = 0
    while waiting or running:
        until_us = waiting[-1][1].first_us if waiting else None
        border = min((log.border for log in running), default=(_NO_TIME_US, 0))
        counts = [log.count_up_to(border, until_us) for log in running]
        if not any(counts):
            _index, log = waiting.pop()
            fresh = _Running(started, log.batches, NO_EVENTS, np.zeros(0, np.int64))
            if fresh.go_on(_NO_TIME_US):
                running.append(fresh)
                started += 1
            continue
        told = [(log, count) for log, count in zip(running, counts, strict=True) if count]
        reached_us = [log.reached_us[:count] for log, count in told]
        given = [log.give(count) for log, count in told]
        yield _in_order(given, reached_us)
        ends = {log.place: int(times[-1]) for (log, _), times in zip(told, reached_us, strict=True)}
        running = [log for log in running if log.go_on(ends.get(log.place, _NO_TIME_US))]


def _in_order(given: list[EventBatch], reached_us: list[Int64s]) -> EventBatch:
    """Join the events of several logs, those of the log started first first at equal times."""
    if len(given) == 1:
        return given[0]
    return joined(given).take(np.argsort(np.concatenate(reached_us), kind="stable"))
