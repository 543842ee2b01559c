"""Joins, refusals and reasons of clients whose group's coordinator has no log in the trace.

A client's log has nothing about other members: no rebalance, and no cost of the group, follows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import median_low
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind, kind_of_lines
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.costs import is_poll_timeout, place_of
from coordinator_sim.replay.findings import (
    DEPARTURES,
    JOINS,
    POLL_TIMEOUTS,
    REFUSALS,
    Finding,
    change_of,
    often,
    seconds,
)
from coordinator_sim.trace.client_reasons import (
    INSTANCE,
    OUT_OF_GROUP,
    is_settled,
    is_shared,
    kind_of,
    words_of,
)
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.group_snapshots import DESCRIBED
from coordinator_sim.trace.history import CLIENT_SOURCES
from coordinator_sim.trace.printed_settings import SETTINGS
from coordinator_sim.trace.window import ALWAYS, Window

_LOOP: Final = 5
"""Fewest joins that are a loop."""
_LOOP_MS: Final = 120_000
"""Longest usual time from one join of a loop to the next."""
_GOES_ON_US: Final = 5_000_000
"""A request to join that follows another one sooner belongs to the same join."""
_OVER: Final = frozenset({Event.LEAVE_REQ, Event.LOST})
_BUSY: Final = 3
"""Fewest refused heartbeats in a row, without a join, of a member that is busy."""
_MOST_REFS: Final = 5
NO_GROUP: Final = "(not named)"
"""Stands for the group of clients that tell of leaving one and name none, such as librdkafka's."""
_GOING: Final = frozenset({Event.LEAVE_REQ, Event.LOST, Event.HEARTBEAT})
_Speaker = tuple[str, str, str]
"""Client, file, and instance where its lines tell one."""
_NO_CLIENT: Final = "a client"
_UNTOLD: Final = "left; its log has no reason"
_ASKS: Final = {
    Event.JOIN_RESP: "JoinGroup",
    Event.SYNC_RESP: "SyncGroup",
    Event.HEARTBEAT: "Heartbeat",
}


class ClientView(Struct, frozen=True, kw_only=True):
    """Joins, refusals and reasons of one client in one file. Times are milliseconds of its clock.

    Args:
        is_shared: Whether several processes have its client id in that file; no finding rests on
            their lines, which cannot be told apart.
        joins_ms: When it asked to join.
        generations: The first and the last generation that it was in; None where no line tells.
        refused: Request and error -> how often it was refused.
        reasons: Reason in words -> how often.
        thrown_out: Lines that say that it was no member any more.
        late: Lines that say that it left because it did not poll in time.
        busy: The longest run of heartbeats that told of a rebalance, without a join meanwhile.
        lines: Where its first lines are.
        client_kind: What it is, by its lines.
        is_static: Whether it stayed a member without polls: a static one sends no LeaveGroup.
        spans_ms: Kind of finding -> the first and the last of the lines that it counts.
    """

    group_id: str
    client: str
    is_shared: bool
    first_ms: int
    last_ms: int
    joins_ms: tuple[int, ...]
    generations: tuple[int, int] | None
    refused: dict[str, int]
    reasons: dict[str, int]
    thrown_out: tuple[str, ...]
    late: tuple[str, ...]
    busy: tuple[str, ...]
    lines: tuple[str, ...]
    client_kind: ClientKind
    is_static: bool
    spans_ms: dict[str, tuple[int, int]]

    @property
    def every_ms(self) -> int | None:
        """The usual time from one join to the next; None for a single one."""
        apart = [after - before for before, after in pairwise(self.joins_ms)]
        return median_low(apart) if apart else None


def client_views(
    events: Iterable[TraceEvent], source: Source, window: Window = ALWAYS
) -> list[ClientView]:
    """Return the clients of groups that only clients' logs name, by group and client.

    Args:
        events: All events of a trace, in its order.
        source: Of the events that name none.
        window: The time whose lines of clients count.
    """
    others: set[str] = set()
    clients: defaultdict[_Speaker, dict[str, list[TraceEvent]]] = defaultdict(dict)
    for line in events:
        if line.attrs.get("sign") in {SETTINGS, DESCRIBED}:
            continue
        if (line.source or source) not in CLIENT_SOURCES:
            others.add(line.group_id or "")
        elif window.holds(line.ts_us) and (line.group_id or line.event in _GOING):
            client = line.client_id or line.member_id or _NO_CLIENT
            own = clients[client, line.source_ref or "", line.attrs.get(INSTANCE, "")]
            own.setdefault(line.group_id or NO_GROUP, []).append(line)
    return [
        _view(group_id, client, lines)
        for group_id, client, lines in sorted(_by_group(clients), key=itemgetter(0, 1))
        if group_id not in others and not all(map(_is_plan, lines))
    ]


def _by_group(
    clients: dict[_Speaker, dict[str, list[TraceEvent]]],
) -> Iterator[tuple[str, str, list[TraceEvent]]]:
    """Yield each group's lines of a client; lines without one are of the only one that it names."""
    for (client, *_), own in clients.items():
        unnamed = own.pop(NO_GROUP, [])
        only = next(iter(own)) if len(own) == 1 and client != _NO_CLIENT else None
        below = {line.seq or 0: line for lines in own.values() for line in lines}
        for line in unnamed:
            own.setdefault(only or _next_group(line, below), []).append(line)
        for group_id, lines in own.items():
            yield group_id, client, sorted(lines, key=lambda line: line.seq or 0)


def _next_group(line: TraceEvent, named: dict[int, TraceEvent]) -> str:
    """Return the group of a departure that the line right below tells again."""
    after = named.get((line.seq or 0) + 1, line)
    is_same = line.event is after.event is Event.LEAVE_REQ
    is_soon = after.ts_us - line.ts_us <= _GOES_ON_US
    return (is_same and is_soon and after.group_id) or NO_GROUP


def _is_plan(line: TraceEvent) -> bool:
    """Whether it is a part of the leader's plan, in which the member itself says nothing."""
    is_other = line.client_id is None and line.leader_id is not None
    return is_other and line.event is Event.ASSIGNED


def _view(group_id: str, client: str, lines: Sequence[TraceEvent]) -> ClientView:
    reached = [line.generation for line in lines if is_settled(line) and line.generation]
    refused = Counter(
        f"{_ASKS[line.event]} {line.error_code.name}"
        for line in lines
        if line.event in _ASKS and line.error_code is not None and line.error_code
    )
    kinds = [(line, kind_of(line)) for line in lines]
    reasons = Counter(filter(None, map(words_of, lines)))
    left = [line for line in lines if line.event is Event.LEAVE_REQ]
    if left and not any(map(words_of, left)):
        told_again = sum(one.ts_us - last.ts_us <= _GOES_ON_US for last, one in pairwise(left))
        reasons[_UNTOLD] = len(left) - told_again
    joins = list(_joins(lines))
    out, late, busy = list(_thrown_out(kinds)), _late(kinds), _longest_busy(lines)
    own = {"client-thrown-out": out, "client-poll-timeout": late, "client-busy-in-rebalance": busy}
    times = {kind: [line.ts_us // 1000 for line in told] for kind, told in own.items()}
    times["client-joins-again"] = joins
    return ClientView(
        group_id=group_id,
        client=client,
        is_shared=is_shared(line for line in lines if is_settled(line)),
        first_ms=lines[0].ts_us // 1000,
        last_ms=lines[-1].ts_us // 1000,
        joins_ms=tuple(joins),
        generations=(reached[0], reached[-1]) if reached else None,
        refused=dict(refused.most_common()),
        reasons=dict(reasons.most_common()),
        thrown_out=tuple(map(place_of, out)),
        late=tuple(map(place_of, late)),
        busy=tuple(map(place_of, busy)),
        lines=tuple(place_of(line) for line in lines[:_MOST_REFS]),
        client_kind=kind_of_lines(lines),
        is_static=not left and any(line.group_instance_id for line in late),
        spans_ms={kind: (told[0], told[-1]) for kind, told in times.items() if told},
    )


def _joins(lines: Iterable[TraceEvent]) -> Iterator[int]:
    """Yield when a client began to join, in milliseconds.

    A new member sends two requests, the second with the member id that it was given.
    """
    asked_us: int | None = None
    for line in lines:
        if line.event is not Event.JOIN_REQ:
            asked_us = None if is_settled(line) or line.event in _OVER else asked_us
        elif asked_us is None or line.ts_us - asked_us > _GOES_ON_US:
            asked_us = line.ts_us
            yield line.ts_us // 1000


def _thrown_out(kinds: Iterable[tuple[TraceEvent, str | None]]) -> Iterator[TraceEvent]:
    """Yield the first line of each time in which a client that had not left was no member."""
    is_out = has_left = False
    lost_us: int | None = None
    for line, kind in kinds:
        if is_settled(line):
            lost_us, has_left = None, False
        has_left = has_left or line.event is Event.LEAVE_REQ or kind == "poll-timeout"
        is_lost = line.event is Event.LOST
        if is_lost and (is_poll_timeout(line.client_reason) or (has_left and not kind)):
            continue
        is_told = kind in OUT_OF_GROUP or is_lost
        # What a member loses again it had got again, in lines that its library does not log.
        is_again = lost_us is not None and line.ts_us - lost_us > _GOES_ON_US
        if is_told and (not is_out or (is_again and is_lost)):
            yield line
        lost_us = line.ts_us if is_lost else lost_us
        is_out = (is_out or is_told) and not is_settled(line)


def _late(kinds: Iterable[tuple[TraceEvent, str | None]]) -> list[TraceEvent]:
    """Return the lines of poll timeouts; a client that warns of one and then leaves had one."""
    warned: list[TraceEvent] = []
    left: list[TraceEvent] = []
    for line, kind in kinds:
        if kind == "poll-timeout":
            warned.append(line)
        elif line.event is Event.LEAVE_REQ and is_poll_timeout(line.client_reason):
            left.append(line)
    return left if len(left) > len(warned) else warned


def _longest_busy(lines: Iterable[TraceEvent]) -> list[TraceEvent]:
    longest: list[TraceEvent] = []
    run: list[TraceEvent] = []
    for line in lines:
        is_told = line.error_code is ErrorCode.REBALANCE_IN_PROGRESS
        if line.event is Event.HEARTBEAT and is_told:
            run.append(line)
            longest = max(longest, run, key=len)
        elif line.event is Event.JOIN_REQ or is_settled(line):
            run = []
    return longest


def client_findings(views: Iterable[ClientView]) -> list[Finding]:
    """Return what is wrong with these clients."""
    return [finding for view in views if not view.is_shared for finding in _findings(view)]


def _findings(view: ClientView) -> list[Finding]:
    found = []
    every_ms = view.every_ms
    if len(view.joins_ms) >= _LOOP and every_ms is not None and every_ms <= _LOOP_MS:
        reached = view.generations
        generations = f", generations {reached[0]} to {reached[1]}" if reached else ""
        most = next(iter(view.refused.items()), None)
        refused = f"; {most[0]} {often(most[1])}" if most else ""
        found.append(
            _finding(
                view,
                "client-joins-again",
                (len(view.joins_ms), JOINS),
                f"{view.client} joined {often(len(view.joins_ms))}, once every "
                f"{seconds(every_ms * 1000)}{generations}{refused}.",
                "Who begins the rebalances is in the log of the group's coordinator: ingest it, "
                "too. Check that no other application, or Connect cluster with topics of its own, "
                "has this group.id, and that all members have one version and one configuration.",
                view.lines,
            )
        )
    if view.late:
        late = often(len(view.late))
        found.append(
            _finding(
                view,
                "client-poll-timeout",
                (len(view.late), POLL_TIMEOUTS if view.is_static else DEPARTURES),
                f"{view.client} did not poll in time {late}: a static member stays, but sends no "
                "heartbeat until it polls again; if that outlasts session.timeout.ms, its group "
                "rebalances."
                if view.is_static
                else f"{view.client} left its group {late} because it did not poll in time: each "
                "time it goes, and when it comes back, its group rebalances.",
                change_of(
                    view.client_kind,
                    "poll-timeouts",
                    "Raise max.poll.interval.ms above the longest time between two polls, or "
                    "lower max.poll.records.",
                ),
                view.late,
            )
        )
    if view.thrown_out:
        found.append(
            _finding(
                view,
                "client-thrown-out",
                (len(view.thrown_out), REFUSALS),
                f"{view.client} was thrown out of its group {often(len(view.thrown_out))}: the "
                "coordinator no longer knew it, or it lost its coordinator.",
                "Where it was silent for session.timeout.ms, look for pauses of the process "
                "(garbage collection, CPU limits) and of the network.",
                view.thrown_out,
            )
        )
    if len(view.busy) >= _BUSY:
        found.append(
            _finding(
                view,
                "client-busy-in-rebalance",
                (len(view.busy), REFUSALS),
                f"{view.client} was told {often(len(view.busy))} in a row that the group "
                "rebalances before it joined: the others waited for it.",
                "It was busy with records: lower max.poll.records, or process in another thread.",
                view.busy,
            )
        )
    return found


def _finding(
    view: ClientView,
    kind: str,
    cost: tuple[int, str],
    what: str,
    change: str,
    refs: Sequence[str],
) -> Finding:
    first_ms, last_ms = view.spans_ms[kind]
    return Finding(
        group_id=view.group_id,
        kind=kind,
        rebalances=0,
        cost_s=float(cost[0]),
        cost_unit=cost[1],
        what=what,
        change=change,
        confidence=0.8,
        first_us=first_ms * 1000,
        last_us=last_ms * 1000,
        source_refs=tuple(refs[:_MOST_REFS]),
    )
