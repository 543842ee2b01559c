"""Merges several logs of one cluster: brokers in parallel, rotated files in sequence.

Inside a log, the order of its lines decides, whatever its clock says. Between logs, the latest time
that each has reached decides.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from coordinator_sim.trace.batches import NO_EVENTS, EventBatch, Int64s, joined

NO_TIME_US: Final = -(2**62)
"""Earlier than any event."""

Rank = tuple[int, int]
"""Place of a log among those that begin at one time."""
Place = tuple[int, Rank]
"""When a log begins, and its rank: at equal times its events come before those of later places."""


class TimedLog(Struct, frozen=True):
    """A log that has not been started.

    Args:
        first_us: Time of its first event; it is not started before.
        batches: Its events in line order, incarnations not yet numbered.
        rank: Place among the logs that begin at one time.
        reached_us: Latest time of its events so far, where some were merged before.
    """

    first_us: int
    batches: Iterator[EventBatch]
    rank: Rank = (0, 0)
    reached_us: int = NO_TIME_US

    @property
    def place(self) -> Place:
        """Place among all logs."""
        return self.first_us, self.rank


@dataclass(slots=True)
class _Running:
    """A log that was started, and the events of it that were not given yet."""

    log: TimedLog
    batch: EventBatch
    reached_us: Int64s

    @property
    def border(self) -> tuple[int, Place]:
        """How far the order of all logs is known from the events read so far."""
        return int(self.reached_us[-1]), self.log.place

    def count_up_to(self, border: tuple[int, Place], until_us: int | None) -> int:
        """Return the number of its events up to a border, and before a time."""
        side: Literal["left", "right"] = "right" if self.log.place <= border[1] else "left"
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
            following = next(self.log.batches, None)
            if following is None:
                return False
            self.batch = following
            self.reached_us = np.maximum.accumulate(np.maximum(following.ts_us, reached_us))
        return True


def _no_limit() -> int | None:
    return None


class LogMerge:
    """Merges the events of several logs.

    A log is started when the others have reached its first event, so that a month of hourly files
    needs few open at a time. At equal times the log of the lower place goes first, because rotated
    parts often meet within one second.

    Args:
        logs: In any order.
        ahead_us: How long before its first event a log is started.

    Attributes:
        reached_us: By the rank of a log, the latest time of its events that were given.
    """

    def __init__(self, logs: Iterable[TimedLog], ahead_us: int = 0) -> None:
        self._ahead_us = ahead_us
        self.reached_us: dict[Rank, int] = {}
        self._waiting = sorted(logs, key=lambda log: log.place, reverse=True)
        self._running: list[_Running] = []

    def batches(self) -> Iterator[EventBatch]:
        """Yield the events that were not given yet."""
        while (batch := self.next_batch()) is not None:
            yield batch

    def next_batch(self, before_us: Callable[[], int | None] = _no_limit) -> EventBatch | None:
        """Return the next events, in their order; None where there are no more.

        Args:
            before_us: Asked whenever logs were read on; only events before that time are given, or
                all for None.
        """
        while True:
            limits = [log.first_us - self._ahead_us for log in self._waiting[-1:]]
            limit_us = before_us()
            if limit_us is not None:
                limits.append(limit_us)
            if self._running:
                border = min(each.border for each in self._running)
                until_us = min(limits, default=None)
                counts = [each.count_up_to(border, until_us) for each in self._running]
                if any(counts):
                    return self._give(counts)
            if not self._waiting:
                return None
            log = self._waiting.pop()
            fresh = _Running(log, NO_EVENTS, np.zeros(0, np.int64))
            if fresh.go_on(log.reached_us):
                self._running.append(fresh)

    def left(self) -> dict[Rank, EventBatch]:
        """Return the events that were read and not given yet, by the rank of their log."""
        return {each.log.rank: each.batch for each in self._running}

    def _give(self, counts: list[int]) -> EventBatch:
        told = [(each, count) for each, count in zip(self._running, counts, strict=True) if count]
        reached_us = [each.reached_us[:count] for each, count in told]
        given = _in_order([each.give(count) for each, count in told], reached_us)
        for (each, _), times in zip(told, reached_us, strict=True):
            self.reached_us[each.log.rank] = int(times[-1])
        self._running = [
            each
            for each in self._running
            if each.go_on(self.reached_us.get(each.log.rank, NO_TIME_US))
        ]
        return given


def _in_order(given: list[EventBatch], reached_us: list[Int64s]) -> EventBatch:
    """Join the events of several logs, those of the lower place first at equal times."""
    if len(given) == 1:
        return given[0]
    return joined(given).take(np.argsort(np.concatenate(reached_us), kind="stable"))
