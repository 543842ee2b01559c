"""Processing time of one poll's records, and the number of records done at an instant."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple, assert_never

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.scenario import work
from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.load import PoisonRecords
from coordinator_sim.sim.scenario.quantiles import drawn

US_PER_MS = 1_000
_US_PER_PERCENT_MS = US_PER_MS // 100
LEAST_POLL_US = US_PER_MS
"""Least time from one poll to the next: even a loop over no records takes time."""


class Pace(NamedTuple):
    """Processing time of one poll's records.

    Args:
        lead_us: Time before the first record.
        record_us: Time of each record; 0 completes all of them at the end of the lead.
        stalls: Poison among them: its place from 0, ascending, and its further time.
    """

    lead_us: int
    record_us: int
    stalls: tuple[tuple[int, int], ...] = ()

    def busy_us(self, count: int) -> int:
        """Return the time for so many records."""
        stalled_us = sum(us for place, us in self.stalls if place < count)
        return max(LEAST_POLL_US, self.lead_us + self.record_us * count) + stalled_us

    def done_after(self, elapsed_us: int, count: int) -> int:
        """Return how many of so many records are done after that time."""
        working_us = elapsed_us - self.lead_us
        if self.record_us == 0:
            return count if working_us >= sum(us for _, us in self.stalls) else 0
        for place, us in self.stalls:
            if working_us < (place + 1) * self.record_us + us:
                return max(0, min(place, count, working_us // self.record_us))
            working_us -= us
        return max(0, min(count, working_us // self.record_us))

    def slowed(self, percent: int) -> "Pace":
        """Return the pace of a downstream that takes a percentage of its usual time."""
        return Pace(self.lead_us * percent // 100, self.record_us * percent // 100)


def pace_of(law: work.ProcessingLaw, choices: Choices, name: str) -> Pace:
    """Return the pace of the next poll's records; a table or shape draws by application name."""
    match law:
        case work.PerPoll(ms=ms):
            return Pace(max(ms, 1) * US_PER_MS, 0)
        case work.PerRecord(us=us, poll_us=poll_us):
            return Pace(poll_us, us)
        case work.TablePerRecord(quantiles_us=quantiles):
            return Pace(0, drawn(quantiles, choices, "processing", name))
        case work.ShapedPerRecord(shape=shape, typical_us=typical_us):
            percent = drawn(work.SHAPES[shape], choices, "processing", name)
            return Pace(0, typical_us * percent // 100)
        case work.ShapedPerPoll(shape=shape, typical_ms=typical_ms):
            percent = drawn(work.SHAPES[shape], choices, "processing", name)
            return Pace(max(LEAST_POLL_US, typical_ms * percent * _US_PER_PERCENT_MS), 0)
        case _:
            assert_never(law)


def longest_busy_us(law: work.ProcessingLaw, count: int) -> int:
    """Return the longest time that a poll of so many records may take."""
    match law:
        case work.PerPoll(ms=ms):
            return max(ms, 1) * US_PER_MS
        case work.PerRecord(us=us, poll_us=poll_us):
            return poll_us + us * count
        case work.TablePerRecord(quantiles_us=quantiles):
            return quantiles[-1] * count
        case work.ShapedPerRecord(shape=shape, typical_us=typical_us):
            return typical_us * work.SHAPES[shape][-1] // 100 * count
        case work.ShapedPerPoll(shape=shape, typical_ms=typical_ms):
            return typical_ms * work.SHAPES[shape][-1] * _US_PER_PERCENT_MS
        case _:
            assert_never(law)


class Records(NamedTuple):
    """Consecutive records of one partition.

    Args:
        first: Offset of the first.
        end: Offset after the last.
    """

    partition: TopicPartition
    first: int
    end: int


def split(records: list[Records], count: int) -> tuple[list[Records], list[Records]]:
    """Return the first so many records, in order, and the rest."""
    head: list[Records] = []
    for index, (partition, first, end) in enumerate(records):
        if end - first > count:
            middle = first + count
            if count:
                head.append(Records(partition, first, middle))
            return head, [Records(partition, middle, end), *records[index + 1 :]]
        head.append(Records(partition, first, end))
        count -= end - first
    return head, []


def stalls_in(
    records: list[Records], poison: Mapping[str, PoisonRecords]
) -> tuple[tuple[int, int], ...]:
    """Return the poison among stretches of records, by topic, as a `Pace` has it."""
    found: list[tuple[int, int]] = []
    before = 0
    for partition, first, end in records:
        kind = poison.get(partition.topic)
        if kind is not None:
            offsets = _poisoned(kind, partition, first, end)
            found += ((before + offset - first, kind.ms * US_PER_MS) for offset in offsets)
        before += end - first
    return tuple(found)


def _poisoned(poison: PoisonRecords, partition: TopicPartition, first: int, end: int) -> list[int]:
    """Return the offsets of poison among consecutive records of a partition, ascending."""
    number, every = partition.partition, poison.every
    found = {offset for where, offset in poison.at if where == number}
    for block in range(first // every, -(-end // every)) if every else ():
        digest = blake2b(f"{partition.topic}-{number}:{block}".encode(), digest_size=8).digest()
        found.add(block * every + int.from_bytes(digest) % every)
    return sorted(offset for offset in found if first <= offset < end)


def count_of(records: list[Records]) -> int:
    """Return the number of records."""
    return sum(end - first for _, first, end in records)
