"""Counts the work in a trace: records processed once, again, never, or by several at once.

The one definition of these counts, for commands and reports. RECORDS_PROCESSED events are read,
each of them one stretch: consecutive
records of one partition, processed by one owner in the time up to the event. A stretch of a share
group counts records that are done, in any order; its repetitions are RECORDS_DELIVERED events.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import Event, TraceEvent

_BEGIN: Final = 0
_END: Final = 1
"""Sorts an end after a beginning at one instant: a stretch never repeats itself."""

Interval = tuple[int, int]
"""From (included) and to (excluded)."""


class WorkCount(Struct, frozen=True, kw_only=True):
    """Work of a group's members, or a connector's tasks, on the records of their partitions.

    `processed - duplicates + gaps == span`, always.

    Args:
        group_id: The consumer group, or the Connect cluster of a source connector.
        connector: Connector of the tasks; empty for consumers.
        processed: Number of records processed, repetitions included.
        duplicates: Number of repetitions: each time after a record's first; of a share group each
            delivery after a record's first.
        reprocessed: Records processed again because an owner began below the offset that an earlier
            owner had reached when it let go. Other duplicates come from two owners at once.
        gaps: Skipped records: never processed, although later ones were.
        span: From the first offset at which an owner began to the last one reached, summed.
        partitions: Number of partitions that had an owner.
        max_lag: Most records of one partition that waited at any recorded instant.
        final_lag: Records waiting when each partition was last held, over all partitions.
        double_run_us: Time in which several processes ran a task or a consumer's partition; each
            process after the first counts.
    """

    group_id: str
    connector: str
    processed: int
    duplicates: int
    reprocessed: int
    gaps: int
    span: int
    partitions: int
    max_lag: int
    final_lag: int
    double_run_us: int


class Stretch(Struct, frozen=True):
    """Consecutive records of one partition that one owner processed.

    Args:
        partition: Topic and number.
        offsets: From the first record to the one after the last.
        times: When, in microseconds.
        resource: Task, or a consumer's partition.
        run: What tells two runs of one resource apart.
        client: Client id of the consumer or worker.
        lag: Records waiting at its end.
        max_lag: Most records waiting at any instant of it.
    """

    partition: tuple[str, int]
    offsets: Interval
    times: Interval
    resource: str
    run: str
    client: str
    lag: int
    max_lag: int


def count_work(events: Iterable[TraceEvent]) -> tuple[WorkCount, ...]:
    """Return the counts of every group and connector with work, by their names.

    Args:
        events: Events of one run, in trace order.
    """
    groups: defaultdict[tuple[str, str], list[Stretch]] = defaultdict(list)
    again: defaultdict[str, set[tuple[str, int, int, int]]] = defaultdict(set)
    for event in events:
        if event.event is Event.RECORDS_PROCESSED and event.group_id is not None:
            groups[event.group_id, connector_of(event)].extend(stretches_in(event))
        elif event.event is Event.RECORDS_DELIVERED and event.attrs["deliveries"] != "1":
            count = int(event.attrs["deliveries"])
            again[event.group_id or ""].update((*place, count) for place in records_in(event))
    return tuple(_count(*key, groups[key], len(again[key[0]])) for key in sorted(groups))


def records_in(event: TraceEvent) -> Iterator[tuple[str, int, int]]:
    """Yield the records that an event of a share group names: topic, partition and offset."""
    (place,) = event.offsets
    for offset in range(place.offset, event.position or 0):
        yield place.topic, place.partition, offset


def total_of(counts: Iterable[WorkCount]) -> WorkCount:
    """Add the counts of several groups up; the names of the sum are empty."""
    rows = list(counts)
    return WorkCount(
        group_id="",
        connector="",
        processed=sum(row.processed for row in rows),
        duplicates=sum(row.duplicates for row in rows),
        reprocessed=sum(row.reprocessed for row in rows),
        gaps=sum(row.gaps for row in rows),
        span=sum(row.span for row in rows),
        partitions=sum(row.partitions for row in rows),
        max_lag=max((row.max_lag for row in rows), default=0),
        final_lag=sum(row.final_lag for row in rows),
        double_run_us=sum(row.double_run_us for row in rows),
    )


def repetitions(events: Iterable[TraceEvent]) -> dict[str, list[tuple[int, int]]]:
    """Return by group with work when a stretch began that repeats records, and how many.

    Args:
        events: Events of one run, in trace order.

    Returns:
        Pairs of microseconds and a count above 0; the counts of a group add up to `reprocessed` of
        all its connectors. Empty for a group that repeats nothing.
    """
    partitions: defaultdict[tuple[str, str, tuple[str, int]], list[Stretch]] = defaultdict(list)
    for event in events:
        if event.event is Event.RECORDS_PROCESSED and event.group_id is not None:
            for stretch in stretches_in(event):
                key = (event.group_id, connector_of(event), stretch.partition)
                partitions[key].append(stretch)
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for (group_id, _, _), stretches in partitions.items():
        found[group_id].extend((at_us, count) for at_us, count, _ in repeated(stretches))
    return dict(found)


def stretches_in(event: TraceEvent) -> Iterator[Stretch]:
    """Yield the stretches of a RECORDS_PROCESSED event."""
    client = event.client_id or ""
    for entry in event.offsets:
        lag = int(event.attrs.get("lag", "0"))
        yield Stretch(
            (entry.topic, entry.partition),
            (entry.offset, entry.offset if event.position is None else event.position),
            (event.ts_us - (event.latency_us or 0), event.ts_us),
            event.attrs.get("task", f"p:{entry.topic}-{entry.partition}"),
            event.attrs.get("run", client),
            client,
            lag,
            int(event.attrs.get("max_lag", lag)),
        )


def connector_of(event: TraceEvent) -> str:
    """Return the connector whose task processed the records of an event; empty for a consumer."""
    return event.attrs.get("task", "").removeprefix("t:").rpartition("-")[0]


def _count(group_id: str, connector: str, stretches: list[Stretch], again: int) -> WorkCount:
    partitions: defaultdict[tuple[str, int], list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        partitions[stretch.partition].append(stretch)
    ranges = {name: [each.offsets for each in held] for name, held in partitions.items()}
    processed = sum(_length(each) for each in ranges.values())
    distinct = sum(_covered(each) for each in ranges.values())
    span = sum(
        max(end for _, end in each) - min(first for first, _ in each) for each in ranges.values()
    )
    return WorkCount(
        group_id=group_id,
        connector=connector,
        processed=processed + again,
        duplicates=processed - distinct + again,
        reprocessed=sum(count for held in partitions.values() for _, count, _ in repeated(held)),
        gaps=span - distinct,
        span=span,
        partitions=len(partitions),
        max_lag=max(stretch.max_lag for stretch in stretches),
        final_lag=sum(held[-1].lag for held in partitions.values()),
        double_run_us=_double_run_us(stretches),
    )


def repeated(stretches: list[Stretch]) -> Iterator[tuple[int, int, tuple[Stretch, Stretch]]]:
    """Yield when a stretch of a partition began below what ended ones had reached.

    Yields:
        The instant in microseconds, the number of records repeated, above 0, and the two
        stretches: the one that had reached furthest, and the one that repeats it.
    """
    marks: list[tuple[int, int, int]] = []
    for index, stretch in enumerate(stretches):
        begun_us, ended_us = stretch.times
        marks += [(begun_us, _BEGIN, index), (ended_us, _END, index)]
    reached = 0
    furthest: Stretch | None = None
    for at_us, kind, index in sorted(marks):
        stretch = stretches[index]
        first, end = stretch.offsets
        if kind == _BEGIN:
            count = min(end, reached) - first
            if count > 0 and furthest is not None:
                yield at_us, count, (furthest, stretch)
        elif end > reached:
            reached, furthest = end, stretch


def _double_run_us(stretches: list[Stretch]) -> int:
    """Return the time of all runs of each resource, less the time in which any of them ran."""
    runs: defaultdict[tuple[str, str], list[Interval]] = defaultdict(list)
    resources: defaultdict[str, list[Interval]] = defaultdict(list)
    for stretch in stretches:
        runs[stretch.resource, stretch.run].append(stretch.times)
        resources[stretch.resource].append(stretch.times)
    return sum(map(_covered, runs.values())) - sum(map(_covered, resources.values()))


def _length(intervals: Iterable[Interval]) -> int:
    return sum(end - first for first, end in intervals)


def _covered(intervals: Iterable[Interval]) -> int:
    """Return the length of the union of intervals."""
    covered = 0
    reached: int | None = None
    for first, end in sorted(intervals):
        begin = first if reached is None else max(first, reached)
        covered += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return covered
