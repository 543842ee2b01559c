"""Lag and delays of a trace's groups: what an operator promises, and what keeping it costs.

Read are the RECORDS_PROCESSED events of a run that records lag in time, and for the cost the
LIFECYCLE events of processes. `sim.lag_meter` makes what is read here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import connector_of

RUNGS_US: Final[tuple[int, ...]] = (
    *(step * 1_000 for step in (1, 2, 5, 10, 20, 50)),
    *(step * (10_000 * 10**decade) for decade in range(7) for step in (10, 15, 20, 30, 40, 60)),
)
"""Delays between which records are counted: 1 ms to 7 days, from 100 ms on six a decade."""
_LIVES: Final = {"started": 1, "gone": -1}
"""What the beginning and the end of a process add to the processes that run."""


class GroupLag(Struct, frozen=True, kw_only=True):
    """Lag and delays of a group's members, or of a connector's tasks, in microseconds.

    Args:
        connector: Connector of the tasks; empty for consumers.
        objective_us: Lag that was not to be exceeded; None where the run had no objective.
        above_us: Time in which the oldest unprocessed record of a partition was older than that,
            over all partitions, each counted once, also while none owned it.
        partition_us: Time of the run, over all partitions.
        max_lag_us: Greatest age of an unprocessed record.
        records: Records processed, repetitions included.
        delay_p50_us: Half of them were processed within this time after they had arrived. This and
            the next two are interpolated between two rungs of `RUNGS_US`; no delay exceeds the lag.
        member_us: Time in which processes of the group ran, over all of them; 0 where the trace
            has none, as for the tasks of a sink connector.
        max_members: Most processes of the group that ran at one time; 0 as above.
    """

    group_id: str
    connector: str
    objective_us: int | None
    above_us: int
    partition_us: int
    max_lag_us: int
    records: int
    delay_p50_us: int
    delay_p95_us: int
    delay_p99_us: int
    member_us: int
    max_members: int


_Partitions = defaultdict[tuple[str, int], list[TraceEvent]]


def group_lags(events: Sequence[TraceEvent], ends_us: int = 0) -> tuple[GroupLag, ...]:
    """Return the lag of every group and connector, by their names; none if it is not recorded.

    Args:
        events: Events of one run, in trace order.
        ends_us: When the run ends, if that is after its last event.
    """
    groups: defaultdict[tuple[str, str], _Partitions] = defaultdict(lambda: defaultdict(list))
    members_us: Counter[str] = Counter()
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    ends_us = max([ends_us, *(event.ts_us for event in events)])
    for event in events:
        group_id = event.group_id or ""
        if event.event is Event.RECORDS_PROCESSED and "lag_us" in event.attrs:
            for entry in event.offsets:
                key = group_id, connector_of(event)
                groups[key][entry.topic, entry.partition].append(event)
        elif event.event is Event.LIFECYCLE and event.reason_text in _LIVES:
            running[group_id] += _LIVES[event.reason_text]
            most[group_id] = max(most[group_id], running[group_id])
            members_us[group_id] += _LIVES[event.reason_text] * (ends_us - event.ts_us)
    return tuple(
        _lag_of(key, list(groups[key].values()), ends_us, (members_us[key[0]], most[key[0]]))
        for key in sorted(groups)
    )


def _lag_of(
    key: tuple[str, str],
    partitions: list[list[TraceEvent]],
    ends_us: int,
    members: tuple[int, int],
) -> GroupLag:
    counts: Counter[int] = Counter()
    every = [stretch for stretches in partitions for stretch in stretches]
    for pair in " ".join(stretch.attrs.get("delays", "") for stretch in every).split():
        rung, _, count = pair.partition(":")
        counts[int(rung)] += int(count)
    told = every[0].attrs.get("objective_us")
    objective_us = None if told is None else int(told)
    unowned = [gap for stretches in partitions for gap in _unowned(stretches, ends_us)]
    above_us = sum(_number(stretch, "above_us") for stretch in every)
    if objective_us is not None:
        above_us += sum(max(0, min(for_us, age_us - objective_us)) for for_us, age_us in unowned)
    ages_us = [age_us for _, age_us in unowned]
    max_lag_us = max(*ages_us, *(_number(stretch, "max_lag_us") for stretch in every), 0)
    most_us = max_lag_us or RUNGS_US[-1]
    return GroupLag(
        group_id=key[0],
        connector=key[1],
        objective_us=objective_us,
        above_us=above_us,
        partition_us=len(partitions) * ends_us,
        max_lag_us=max_lag_us,
        records=counts.total(),
        delay_p50_us=min(_percentile(counts, 50), most_us),
        delay_p95_us=min(_percentile(counts, 95), most_us),
        delay_p99_us=min(_percentile(counts, 99), most_us),
        member_us=members[0],
        max_members=members[1],
    )


def _unowned(stretches: list[TraceEvent], ends_us: int) -> Iterator[tuple[int, int]]:
    """Yield the times in which nobody owned a partition, with the age of its oldest record then.

    The record is that which the next owner begins with. At the end of the run it is the first that
    the last owner left, if it had arrived by then.

    Yields:
        The length and, at its end, the age, in microseconds.
    """
    reached_us = lag_us = 0
    for since_us, _, stretch in sorted(
        (each.ts_us - (each.latency_us or 0), place, each) for place, each in enumerate(stretches)
    ):
        if since_us > reached_us:
            yield since_us - reached_us, _number(stretch, "waited_us")
        if stretch.ts_us >= reached_us:
            reached_us, lag_us = stretch.ts_us, _number(stretch, "lag_us")
    if ends_us > reached_us and lag_us:
        yield ends_us - reached_us, lag_us + ends_us - reached_us


def _number(stretch: TraceEvent, name: str) -> int:
    return int(stretch.attrs.get(name, "0"))


def _percentile(counts: Counter[int], percent: int) -> int:
    """Return the delay that so many percent of the counted records do not exceed."""
    wanted = -(-counts.total() * percent // 100)
    for rung, count in sorted(counts.items()):
        if count >= wanted > 0:
            low = RUNGS_US[rung - 1] if rung else 0
            high = RUNGS_US[min(rung, len(RUNGS_US) - 1)]
            return low + (high - low) * wanted // count
        wanted -= count
    return 0
