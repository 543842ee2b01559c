"""Lag and delays of a trace's groups: what an operator promises, and what keeping it costs.

Read are the RECORDS_PROCESSED events of a run that records lag in time, and for the cost the
LIFECYCLE events of processes. `sim.lag_meter` makes what is read here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import connector_of

RUNGS_US: Final[tuple[int, ...]] = (
    *(step * 1_000 for step in (1, 2, 5, 10, 20, 50)),
    *(
        step * (10_000 * 10**decade)
        for decade in range(7)
        for step in (10, 12, 16, 20, 25, 30, 40, 50, 60, 80)
    ),
)
"""Delays between which records are counted: 1 ms to 9 days, from 100 ms on ten a decade."""
_PERCENTS: Final = (50, 95, 99)


class GroupLag(Struct, frozen=True, kw_only=True):
    """Lag and delays of a group's members, or of a connector's tasks.

    Args:
        group_id: The consumer group, or the Connect cluster of a source connector.
        connector: Connector of the tasks; empty for consumers.
        objective_us: Lag that was not to be exceeded; None where the run had no objective.
        above_us: Time in which the oldest unprocessed record of a partition was older than that,
            over all partitions, each counted once, also while none owned it.
        partition_us: Time of the run, over all partitions.
        max_lag_us: Greatest age of an unprocessed record.
        records: Records processed, repetitions included.
        delay_p50_us: Half of them were processed within this time after they had arrived. All three
            are interpolated between two rungs (`RUNGS_US`), which are at most a quarter apart.
        delay_p95_us: 95 % of them were.
        delay_p99_us: 99 % of them were.
        member_us: Time in which processes of the group ran, over all of them; 0 where the trace
            has none, as for the tasks of a sink connector.
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


class _Held(Struct, frozen=True):
    """One stretch of a partition, with its lag in time."""

    since_us: int
    until_us: int
    attrs: Mapping[str, str]

    def number(self, name: str) -> int:
        return int(self.attrs.get(name, "0"))


def group_lags(events: Sequence[TraceEvent]) -> tuple[GroupLag, ...]:
    """Return the lag of every group and connector, by their names; none if it is not recorded.

    Args:
        events: Events of one run, in trace order.
    """
    groups: defaultdict[tuple[str, str], defaultdict[tuple[str, int], list[_Held]]]
    groups = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event.event is Event.RECORDS_PROCESSED and "lag_us" in event.attrs:
            held = _Held(event.ts_us - (event.latency_us or 0), event.ts_us, event.attrs)
            for entry in event.offsets:
                key = event.group_id or "", connector_of(event)
                groups[key][entry.topic, entry.partition].append(held)
    if not groups:
        return ()
    ends_us = max(event.ts_us for event in events)
    members_us = _member_times(events, ends_us)
    return tuple(
        _lag_of(key, list(groups[key].values()), ends_us, members_us.get(key[0], 0))
        for key in sorted(groups)
    )


def _lag_of(
    key: tuple[str, str], partitions: list[list[_Held]], ends_us: int, member_us: int
) -> GroupLag:
    counts: defaultdict[int, int] = defaultdict(int)
    every = [held for stretches in partitions for held in stretches]
    for held in every:
        for pair in held.attrs.get("delays", "").split():
            rung, _, count = pair.partition(":")
            counts[int(rung)] += int(count)
    told = every[0].attrs.get("objective_us")
    objective_us = None if told is None else int(told)
    p50, p95, p99 = (_percentile(counts, percent) for percent in _PERCENTS)
    unowned = [gap for stretches in partitions for gap in _unowned(stretches, ends_us)]
    above_us = sum(held.number("above_us") for held in every)
    if objective_us is not None:
        above_us += sum(max(0, min(for_us, age_us - objective_us)) for for_us, age_us in unowned)
    return GroupLag(
        group_id=key[0],
        connector=key[1],
        objective_us=objective_us,
        above_us=above_us,
        partition_us=len(partitions) * ends_us,
        max_lag_us=max(
            *(held.number("max_lag_us") for held in every), 0, *(age_us for _, age_us in unowned)
        ),
        records=sum(counts.values()),
        delay_p50_us=p50,
        delay_p95_us=p95,
        delay_p99_us=p99,
        member_us=member_us,
    )


def _unowned(stretches: list[_Held], ends_us: int) -> Iterable[tuple[int, int]]:
    """Yield the times in which nobody owned a partition, with the age of its oldest record then.

    The record is that which the next owner begins with. At the end of the run it is the first that
    the last owner left, if it had arrived by then.

    Yields:
        The length and, at its end, the age, in microseconds.
    """
    reached_us = 0
    last: _Held | None = None
    for held in sorted(stretches, key=lambda each: (each.since_us, each.until_us)):
        if held.since_us > reached_us:
            yield held.since_us - reached_us, held.number("waited_us")
        if held.until_us >= reached_us:
            reached_us, last = held.until_us, held
    if last is not None and ends_us > reached_us and last.number("lag_us"):
        yield ends_us - reached_us, last.number("lag_us") + ends_us - reached_us


def _percentile(counts: Mapping[int, int], percent: int) -> int:
    """Return the delay that so many percent of the counted records do not exceed."""
    wanted = -(-sum(counts.values()) * percent // 100)
    before = 0
    for rung, count in sorted(counts.items()):
        if before + count >= wanted:
            low = RUNGS_US[rung - 1] if rung else 0
            high = RUNGS_US[min(rung, len(RUNGS_US) - 1)]
            return low + (high - low) * (wanted - before) // count
        before += count
    return 0


def _member_times(events: Iterable[TraceEvent], ends_us: int) -> dict[str, int]:
    """Return by group how long its processes ran, together."""
    began_us: dict[tuple[str, str], int] = {}
    found: defaultdict[str, int] = defaultdict(int)
    for event in events:
        if event.event is not Event.LIFECYCLE or event.group_id is None:
            continue
        key = event.group_id, event.client_id or ""
        if event.reason_text == "started":
            began_us[key] = event.ts_us
        elif event.reason_text == "gone" and key in began_us:
            found[event.group_id] += event.ts_us - began_us.pop(key)
    for (group_id, _), at_us in began_us.items():
        found[group_id] += ends_us - at_us
    return found
