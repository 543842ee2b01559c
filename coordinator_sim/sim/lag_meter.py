"""Lag in time and delays of the records of open stretches, in closed form between two polls.

The lag of a partition in time is the age of its oldest record that its owner has not processed. A
record's delay goes from its arrival to the end of the processing of its poll, when its offset can
be committed. Records are counted by the rungs of `trace.lag.RUNGS_US` that their delays reach, by
the log's end at as many instants, and never one by one.
"""

from bisect import bisect_right
from collections.abc import Iterable

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.trace.lag import RUNGS_US


class StretchLag:
    """Lag of one stretch so far.

    Args:
        since_us: When it began.
        oldest_us: When its first record arrives; None where that is not known yet.
    """

    def __init__(self, since_us: int, oldest_us: int | None) -> None:
        self.marked_us = since_us
        self.oldest_us = oldest_us
        self.waited_us = 0 if oldest_us is None else max(0, since_us - oldest_us)
        self.longest_us = self.waited_us
        self.above_us = 0
        self.counts: dict[int, int] = {}
        """Number of rungs that a delay reaches -> records."""
        self.is_over = False
        """Whether a later owner has taken the partition: its lag is the partition's from then."""


class LagMeter:
    """The lag of all open stretches of a run.

    Args:
        logs: Where records arrive.
        objective_us: Lag beyond which time is counted; None counts none.
    """

    def __init__(self, logs: TopicLogs, objective_us: int | None) -> None:
        self._logs = logs
        self._objective_us = objective_us
        self._newest: dict[tuple[str, TopicPartition], StretchLag] = {}

    def begin(
        self, group_id: str, partition: TopicPartition, offset: int, now_us: int
    ) -> StretchLag:
        """Return the lag of a stretch that begins now at an offset."""
        key = group_id, partition
        before = self._newest.get(key)
        if before is not None:
            self._pass_time(before, now_us)
            before.is_over = True
        lag = self._newest[key] = StretchLag(now_us, self._logs.arrival_us(partition, offset))
        return lag

    def done(
        self, lag: StretchLag, partition: TopicPartition, records: tuple[int, int], now_us: int
    ) -> None:
        """Count records, from the first offset to the one after the last, that are done now."""
        first, end = records
        logs, oldest_us = self._logs, lag.oldest_us
        if oldest_us is None:
            oldest_us = lag.oldest_us = logs.arrival_us(partition, first)
        self._pass_time(lag, now_us)
        if end <= first or oldest_us is None:
            return
        self._count(lag.counts, partition, records, (oldest_us, now_us))
        lag.oldest_us = logs.arrival_us(partition, end)

    def done_apart(
        self,
        lag: StretchLag,
        partition: TopicPartition,
        runs: Iterable[tuple[int, int]],
        oldest: tuple[int, int],
        now_us: int,
    ) -> None:
        """Count runs of records that are done now, in any order, as in a share group.

        Args:
            lag: Of the stretch.
            partition: The partition.
            runs: From a first offset to the one after the last.
            oldest: The first offset that was not done before, and the one that is not done now.
            now_us: The present.
        """
        arrival_us = self._logs.arrival_us
        if lag.oldest_us is None:
            lag.oldest_us = arrival_us(partition, oldest[0])
        self._pass_time(lag, now_us)
        for records in runs:
            arrived_us = arrival_us(partition, records[0])
            if arrived_us is not None:
                self._count(lag.counts, partition, records, (arrived_us, now_us))
        lag.oldest_us = arrival_us(partition, oldest[1])

    def _count(
        self,
        counts: dict[int, int],
        partition: TopicPartition,
        records: tuple[int, int],
        times: tuple[int, int],
    ) -> None:
        """Count the delays of consecutive records: from the first one's arrival to now."""
        logs, (reached, end), (oldest_us, now_us) = self._logs, records, times
        rung = bisect_right(RUNGS_US, now_us - oldest_us)
        while rung and reached < end:
            until = logs.end_offset_at(partition, now_us - RUNGS_US[rung - 1])
            if until > reached:
                until = min(until, end)
                counts[rung] = counts.get(rung, 0) + until - reached
                reached = until
            rung -= 1
        if reached < end:
            counts[0] = counts.get(0, 0) + end - reached

    def attrs(
        self, lag: StretchLag, partition: TopicPartition, next_offset: int, now_us: int
    ) -> dict[str, str]:
        """Return what the trace says of a stretch that ends now at an offset."""
        if partition.topic in self._logs.deleted:
            lag.oldest_us = None
        elif lag.oldest_us is None:
            lag.oldest_us = self._logs.arrival_us(partition, next_offset)
        self._pass_time(lag, now_us)
        lag_us = 0 if lag.oldest_us is None else max(0, now_us - lag.oldest_us)
        found = {"lag_us": lag_us, "max_lag_us": lag.longest_us, "waited_us": lag.waited_us}
        if self._objective_us is not None:
            found |= {"objective_us": self._objective_us, "above_us": lag.above_us}
        delays = " ".join(f"{rung}:{count}" for rung, count in sorted(lag.counts.items()))
        return {**{name: str(value) for name, value in found.items()}, "delays": delays}

    def _pass_time(self, lag: StretchLag, now_us: int) -> None:
        """Count the time since the last mark, in which the oldest record has stayed the same."""
        oldest_us, objective_us = lag.oldest_us, self._objective_us
        if oldest_us is not None and not lag.is_over:
            lag.longest_us = max(lag.longest_us, now_us - oldest_us)
            if objective_us is not None:
                lag.above_us += max(0, now_us - max(lag.marked_us, oldest_us + objective_us))
        lag.marked_us = now_us
