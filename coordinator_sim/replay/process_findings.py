"""Findings from the logs of clients: restarts in a loop, stream threads that died, restored state.

A start is known by the settings that a client prints. A rolling deploy starts each process once.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from coordinator_sim.clients.client_kind import ClientKind, kind_of_id
from coordinator_sim.replay.costs import CAME, WENT, RebalanceCost, place_of
from coordinator_sim.replay.findings import (
    FLAPPING,
    JOINS,
    MEMBER_SECONDS,
    SECONDS_REBALANCING,
    Finding,
    often,
    seconds,
)
from coordinator_sim.trace.client_reasons import is_settled, is_shared
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.printed_settings import SETTINGS
from coordinator_sim.trace.window import ALWAYS, Window

RESTART_LOOP: Final = "restart-loop"
_LEAST: Final = 3
"""Fewest restarts, and fewest times in its group, of a process in a loop."""
_APART_US: Final = 900_000_000
"""Longest time between two starts of a loop: Kubernetes waits at most 5 minutes."""
_GROWS: Final = 1.3
"""Least growth of a back-off, which Kubernetes doubles."""
_THREADS: Final = frozenset({ClientKind.STREAMS, ClientKind.SINK})
"""Clients that a process may make anew without a restart of its own."""
_LONG_MS: Final = 1_000
_MOST_REFS: Final = 5
_AFTER_MS: Final = 60_000
"""A rebalance that begins later than this after a stream thread died is none of its."""
_Lines = Mapping[tuple[str, str, str], Sequence[TraceEvent]]
_Costs = Mapping[str, Sequence[RebalanceCost]]


def with_process_findings(
    found: Iterable[Finding], events: Iterable[TraceEvent], costs: _Costs, window: Window = ALWAYS
) -> list[Finding]:
    """Return findings with those of processes; a loop takes the place of its flapping member.

    Args:
        found: Findings of the rebalances.
        events: All events of the trace, in its order.
        costs: Costs of all rebalances, by group.
        window: The time that counts.
    """
    lines: defaultdict[tuple[str, str, str], list[TraceEvent]] = defaultdict(list)
    for line in events:
        if line.group_id is not None and line.client_id is not None and window.holds(line.ts_us):
            lines[line.group_id, line.client_id, line.source_ref or ""].append(line)
    told = [*_loops(lines, costs, window), *_deaths(lines, costs), *_restorations(lines)]
    loops = {(each.group_id, each.client) for each in told}
    kept = [
        each for each in found if each.kind != FLAPPING or (each.group_id, each.client) not in loops
    ]
    return [*kept, *told]


def _loops(lines: _Lines, costs: _Costs, window: Window) -> Iterator[Finding]:
    counted: set[tuple[str, int]] = set()
    for (group_id, client, _), own in sorted(lines.items()):
        if kind_of_id(client) in _THREADS:
            continue
        settled = [line for line in own if is_settled(line)]
        starts = _longest_loop(own)
        if len(starts) <= _LEAST or len(settled) < _LEAST or is_shared(settled):
            continue
        behind = [
            each
            for each in costs.get(group_id, ())
            if each.client == client
            and each.restart in {CAME, WENT}
            and window.holds_ms(each.start_ms)
            and starts[0].ts_us <= each.start_ms * 1000 <= starts[-1].ts_us + _AFTER_MS * 1000
            and (group_id, each.number) not in counted
        ]
        counted |= {(group_id, each.number) for each in behind}
        apart = _apart(starts)
        cost_s = sum(each.length_us or 0 for each in behind) / 1_000_000
        yield Finding(
            group_id=group_id,
            kind=RESTART_LOOP,
            client=client,
            rebalances=len(behind),
            cost_s=cost_s or float(len(apart)),
            cost_unit=SECONDS_REBALANCING if cost_s else JOINS,
            what=f"{client} was restarted {often(len(apart))}, {seconds(min(apart))} to "
            f"{seconds(max(apart))} after the start before"
            f"{', later each time, as in CrashLoopBackOff' if _is_back_off(apart) else ''}.",
            change="Look at why the process ends: the exception before each start, the exit code, "
            "OOMKilled in the pod's last state, a failing liveness probe. Until then a "
            "group.instance.id of its own, with a session.timeout.ms longer than a restart takes, "
            "keeps its restarts from the other members.",
            confidence=0.8,
            first_us=starts[0].ts_us,
            last_us=starts[-1].ts_us,
            source_refs=tuple(place_of(line) for line in starts[:_MOST_REFS]),
        )


def _longest_loop(lines: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return the starts of the longest loop: each soon after the one before, which it did not end.

    A consumer that left its group before was closed; that counts only where the waits grow.
    """
    runs: list[list[TraceEvent]] = []
    closed: list[bool] = []
    has_left = False
    for line in lines:
        if line.event is Event.LEAVE_REQ:
            has_left = True
        elif line.attrs.get("sign") == SETTINGS:
            if runs and line.ts_us - runs[-1][-1].ts_us <= _APART_US:
                runs[-1].append(line)
                closed[-1] = closed[-1] or has_left
            else:
                runs.append([line])
                closed.append(False)
            has_left = False
    loops = [
        run
        for run, was_closed in zip(runs, closed, strict=True)
        if not was_closed or _is_back_off(_apart(run))
    ]
    return max(loops, key=len, default=[])


def _apart(starts: Sequence[TraceEvent]) -> list[int]:
    return [after.ts_us - before.ts_us for before, after in pairwise(starts)]


def _is_back_off(apart: Sequence[int]) -> bool:
    """Whether the waits grow, as an orchestrator's do until they are as long as they get."""
    return len(apart) >= _LEAST and all(
        after >= _GROWS * before for before, after in pairwise(apart[:_LEAST])
    )


def _deaths(lines: _Lines, costs: _Costs) -> Iterator[Finding]:
    """Yield what the deaths of stream threads cost a group: the rebalances soon after them."""
    deaths: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    replaced: Counter[str] = Counter()
    for (group_id, client, _), own in sorted(lines.items()):
        is_dead = not client.endswith("-consumer")  # Its client repeats what a thread told.
        for line in own:
            sign = line.attrs.get("sign")
            replaced[group_id] += sign == "thread-replaced"
            if sign == "thread-died" and not is_dead:
                deaths[group_id].append(line)
            is_dead = not is_settled(line) and (is_dead or sign == "thread-died")
    for group_id, own in deaths.items():
        own.sort(key=lambda line: line.ts_us)
        times = [line.ts_us // 1000 for line in own]
        behind = [
            each
            for each in costs.get(group_id, ())
            if (place := bisect_right(times, each.start_ms))
            and each.start_ms - times[place - 1] <= _AFTER_MS
        ]
        cost_us = sum(each.length_us or 0 for each in behind)
        many = "1 rebalance" if len(behind) == 1 else f"{len(behind)} rebalances"
        again = f", and were replaced {often(replaced[group_id])}" if replaced[group_id] else ""
        yield Finding(
            group_id=group_id,
            kind="stream-threads-die",
            rebalances=len(behind),
            cost_s=cost_us / 1_000_000,
            what=f"Stream threads died of an exception {often(len(own))}{again}: {many} began "
            f"within a minute, {seconds(cost_us)} of rebalancing.",
            change="Mend what the exception behind that line says. Under REPLACE_THREAD a record "
            "that cannot be processed kills each new thread: have a handler of exceptions skip it.",
            confidence=0.7,
            first_us=own[0].ts_us,
            last_us=own[-1].ts_us,
            source_refs=tuple(place_of(line) for line in own[:_MOST_REFS]),
        )


def _restorations(lines: _Lines) -> Iterator[Finding]:
    """Yield the time in which stream threads restored state instead of processing, by group."""
    restored: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for (group_id, _, _), own in sorted(lines.items()):
        restored[group_id] += [
            line for line in own if int(line.attrs.get("restored_ms", "0")) >= _LONG_MS
        ]
    for group_id, own in restored.items():
        if not own:
            continue
        longest = max(own, key=lambda line: int(line.attrs["restored_ms"]))
        total_ms = sum(int(line.attrs["restored_ms"]) for line in own)
        yield Finding(
            group_id=group_id,
            kind="state-restoration",
            rebalances=0,
            cost_s=total_ms / 1000,
            cost_unit=MEMBER_SECONDS,
            what=f"Stream threads restored state {often(len(own))} before they processed their "
            f"tasks, for {seconds(total_ms * 1000)} together; the longest was "
            f"{seconds(int(longest.attrs['restored_ms']) * 1000)}, of {longest.client_id}.",
            change="Keep state.dir on a volume that outlives the process, and set "
            "num.standby.replicas=1: a task moves to a copy that is nearly complete (KIP-441).",
            confidence=1.0,
            first_us=min(line.ts_us for line in own),
            last_us=max(line.ts_us for line in own),
            source_refs=tuple(place_of(line) for line in own[:_MOST_REFS]),
        )
