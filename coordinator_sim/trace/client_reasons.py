"""Why clients joined and left, from their own logs, beside the rebalances that they began.

A coordinator knows that a member joined again or failed; why is in the log of that member. The line
that begins a rebalance gets the client's first reason as attributes, and its own words where the
coordinator's have none (`client_reason`).
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.printed_settings import printed_settings, with_printed_settings
from coordinator_sim.trace.rebalances import (
    CAUSE_KIND,
    GAVE_UP,
    REASONS_OF_CHANGES,
    with_epoch_causes,
)

CAUSE: Final = "first_cause"
"""Attribute: the first reason in words, beginning with the client id where a line tells one."""
INSTANCE: Final = "instance"
"""Attribute: what tells instances of librdkafka in one log apart, with their container."""
DELAY_MS: Final = "delay_ms"
"""Attribute of a worker's assignment: how long the workers wait for one that went."""
GIVEN_UP: Final = "given_up"
"""Attribute of a worker's assignment: connectors and tasks that it takes from the worker."""
CAUSE_AT: Final = "first_cause_at"
"""Attribute: file and line of the first reason."""
CAUSE_MS: Final = "first_cause_ms"
"""Attribute: milliseconds from the first reason to the rebalance, by the coordinator's clock."""

_WITHIN_US: Final = 60_000_000
"""A client's line is no cause of a rebalance that begins later than this."""
_SOON_US: Final = 5_000_000
"""The same, where the coordinator's line names no member; and how soon after a member has found its
coordinator again it hears that it was removed meanwhile: a heartbeat interval of a new consumer."""
_LOOKED_AT: Final = 256
"""Lines of a process that are looked at around a rebalance, so that no log costs more than once."""
_CLOCKS_US: Final = 120_000_000
_ZONES_US: Final = 30 * 60 * 1_000_000
_ZONE_ERROR_US: Final = 10_000_000
_LARGEST_US: Final = 14 * 3_600 * 1_000_000
"""Clocks are two minutes apart, or zones by half hours up to 14 hours; more is no clock."""
_Fact = tuple[Event, str | None, int | None, str | None]
"""Answer of a coordinator: to whom in which group and generation; without a member to any."""
_WAITED_US: Final = 1_000_000
"""A worker joins again so soon after the delay that its assignment told it."""
_SKEW_US: Final = 50_000
"""A client may log what it does this much later than the coordinator that has got it."""
_STARTS: Final = frozenset({Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED})
_DEPARTURES: Final = frozenset(
    {
        *(RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_FAILED),
        RebalanceReason.REBALANCE_TIMEOUT,
    }
)
_NO_REASONS: Final = frozenset({None, "", "not provided"})
_CONSEQUENCES: Final = (
    *("need to re-join with the given member-id", "needs a valid member ID"),
    "rebalance failed due to",
    *("already rebalancing", "is rebalancing", "rebalance in progress"),
    *("encountered ", "connect worker requested rejoin"),
)
"""In reasons that repeat what came before, or that another member began a rebalance."""
_ENCOUNTERED: Final = re.compile(r"encountered (?P<error>[A-Z_]+) from ")
_SIGNS: Final = {
    "subscribed": "subscribed to {named}, as at its start",
    "coordinator-found": "",
    "coordinator-lost": "lost its coordinator: {named}",
    "unreachable": "had no coordinator for {unreachable_ms} ms, and gave up its work",
    "poll-timeout": "did not poll in time: its poll timeout has expired",
    "unsubscribed": "gave its subscription up",
    "fenced": "was fenced by the coordinator",
    "connector-updated": "read another configuration of connector {named}",
    "connector-removed": "read that connector {named} was removed",
    "connector-state": "read another target state of connector {named}",
    "tasks-updated": "read other configurations of the tasks {named}",
    "config-behind": "read a configuration topic that does not end where its assignment's does, "
    "and forced a rebalance",
    "waited": "has waited {delay_ms} ms (scheduled.rebalance.max.delay.ms) for a worker that went",
    GAVE_UP: "has given up {given_up}, which its assignment took from it",
    "worker-started": "started",
    "worker-stopped": "was stopped",
    "task-failed": "had a task that failed with an exception",
    "thread-died": "had a stream thread that died of an exception",
    "thread-replaced": "replaced a stream thread that died of an exception",
    "thread-stopped": "had a stream thread that was told to shut down",
    "thread-fenced": "had a stream thread that missed a rebalance, and was fenced",
    "tasks-corrupted": "had tasks with corrupted state, and asked for a rebalance",
    "streams-error": "went into the state ERROR: no stream thread runs any more",
    "thrown-out": "was no member any more ({error})",
    "left": 'left: "{reason}"',
    "said": 'said: "{reason}"',
}
"""The reasons of clients in words, by kind."""
_THROWN_OUT: Final = frozenset(
    {
        *(ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
        *(ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH),
    }
)
CLIENT_EVENTS: Final = frozenset(
    {
        *(Event.JOIN_REQ, Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT, Event.LEAVE_REQ),
        *(Event.ASSIGNED, Event.LOST, Event.LIFECYCLE),
    }
)
"""Events of clients' logs with a reason, or with the end of what was before."""
_ASSIGNED: Final = frozenset({"waited", GAVE_UP})
"""Kinds that follow from a worker's last assignment."""
_LOGGED: Final = frozenset(_SIGNS) - _ASSIGNED - {"unreachable", "thrown-out", "left", "said"}
"""Kinds that a line's own `sign` tells."""
_STARTED: Final = frozenset({"subscribed", "worker-started"})
_OF_STREAMS: Final = frozenset({"thread-died", "thread-stopped", "thread-fenced"})
_OF_LEAVERS: Final = _OF_STREAMS | {
    *("left", "poll-timeout", "unsubscribed", "task-failed", "worker-stopped")
}
_OF_FAILED: Final = frozenset(_SIGNS) - _STARTED - _ASSIGNED - {"said"}
OUT_OF_GROUP: Final = frozenset({"thrown-out", "fenced", "unreachable"})
"""Kinds that tell that a client is no member any more."""
_NAMES_MEMBER: Final = frozenset({"left", "fenced"})
"""Kinds of lines that name their member themselves."""


def kind_of(line: TraceEvent) -> str | None:
    """Return the kind of a client's line, a key of `_SIGNS`; None for a line without a reason."""
    if "unreachable_ms" in line.attrs:
        return "unreachable"
    sign = line.attrs.get("sign")
    if sign is not None:
        return sign if sign in _LOGGED else None
    if _error_of(line) in _THROWN_OUT:
        return "thrown-out"
    said = line.client_reason
    if not said or line.event is Event.REVOKED or any(each in said for each in _CONSEQUENCES):
        return None
    return "left" if line.event is Event.LEAVE_REQ else "said"


def _error_of(line: TraceEvent) -> ErrorCode | None:
    """Return the error that a line tells, or names as the reason for which its client joins."""
    match = _ENCOUNTERED.match(line.client_reason or "")
    named = None if match is None else ErrorCode.__members__.get(match["error"])
    return named or line.error_code


def words_of(line: TraceEvent) -> str:
    """Return the reason of a client's line in words; empty for a line without one."""
    kind = kind_of(line)
    return "" if kind is None else _worded(kind, line)


def _worded(kind: str, line: TraceEvent) -> str:
    found = _error_of(line)
    error = "" if found is None else found.name
    values = {"named": "", **line.attrs, "error": error, "reason": line.client_reason}
    return _SIGNS[kind].format(**values).removesuffix(": ")


def is_settled(line: TraceEvent) -> bool:
    """Whether a client is in its group again with this line: what was before is over."""
    is_answer = line.event in {Event.JOIN_RESP, Event.SYNC_RESP}
    return line.event is Event.ASSIGNED or (is_answer and line.error_code is ErrorCode.NONE)


def with_client_reasons(
    lines: Sequence[TraceEvent], clients: Sequence[TraceEvent]
) -> list[TraceEvent]:
    """Return a coordinator's events, those that begin a rebalance with the clients' reasons.

    Epochs get the causes in a broker's log, failures the session timeout that their clients
    printed.

    A reason is that of the member that the coordinator names. Without a named member, or where
    several processes may be it, it is that of the only one that tells a reason; where several do,
    there is none. Clocks of clients are compared by the generations that both tell.

    Args:
        lines: Events of coordinators, in order.
        clients: Events of clients' logs, in the order of their logs.
    """
    lines = with_epoch_causes(lines)
    if not clients:
        return lines
    lines = with_printed_settings(lines, printed_settings(clients))
    reasons = _reasons_by_group(clients, clocks_apart(lines, clients))
    above: dict[str | None, TraceEvent] = {}
    given: list[TraceEvent] = []
    for line in lines:
        own = reasons.get(line.group_id)
        if own is None:
            given.append(line)
            continue
        own.note(line)
        is_start = line.event in _STARTS
        given.append(own.annotated(line, above.get(line.group_id)) if is_start else line)
        if line.event in REASONS_OF_CHANGES:
            above[line.group_id] = line
    return given


def clocks_apart(
    lines: Iterable[TraceEvent], clients: Iterable[TraceEvent]
) -> dict[str | None, int]:
    """Return by file how much later its clients tell of generations, in microseconds.

    Of groups with epochs only a member that begins an epoch by joining is answered at once.
    """
    facts: dict[_Fact, int | None] = {}
    answers = {
        Event.JOIN_COMPLETE: Event.JOIN_RESP,
        Event.SYNC_LEADER: Event.SYNC_RESP,
        Event.EPOCH_BUMPED: Event.JOIN_RESP,
    }
    for line in lines:
        answer = answers.get(line.event)
        joiner = line.member_id if line.event is Event.EPOCH_BUMPED else None
        if answer is not None and (joiner or line.event is not Event.EPOCH_BUMPED):
            fact = answer, line.group_id, line.generation, joiner
            facts[fact] = None if fact in facts else line.ts_us
    found: defaultdict[tuple[str | None, _Fact], list[int]] = defaultdict(list)
    for line in clients:
        answer = Event.SYNC_RESP if line.event is Event.ASSIGNED else line.event
        for member_id in dict.fromkeys((None, line.member_id)):
            fact = answer, line.group_id, line.generation, member_id
            if facts.get(fact) is not None and is_settled(line):
                found[line.source_ref, fact].append(line.ts_us)
    apart: defaultdict[str | None, list[int]] = defaultdict(list)
    for (file, fact), times in found.items():
        at_us = facts[fact]
        # A group that was deleted numbers its generations again.
        if at_us is not None and max(times) - min(times) <= _WITHIN_US:
            apart[file].append(min(times) - at_us)
    middles = {file: median_low(own) for file, own in apart.items()}
    return {file: us for file, us in middles.items() if _is_clocks(us)}


def _is_clocks(apart_us: int) -> bool:
    """Whether clocks or zones may be that far apart; other differences are of other rebalances."""
    off_us = apart_us % _ZONES_US
    is_zone = min(off_us, _ZONES_US - off_us) <= _ZONE_ERROR_US and abs(apart_us) <= _LARGEST_US
    return is_zone or abs(apart_us) <= _CLOCKS_US


class _Sign(Struct, frozen=True):
    """A client's line in its place on the coordinator's clock; `kind` is None if it is settled."""

    at_us: int
    kind: str | None
    line: TraceEvent


def _reasons_by_group(
    clients: Iterable[TraceEvent], apart_us: dict[str | None, int]
) -> dict[str | None, "_Reasons"]:
    groups: defaultdict[str | None, list[_Sign]] = defaultdict(list)
    for line in clients:
        kind = None if is_settled(line) else kind_of(line)
        if kind is not None or is_settled(line):
            at_us = line.ts_us - apart_us.get(line.source_ref, 0)
            groups[line.group_id].append(_Sign(at_us, kind, line))
    return {group_id: _Reasons(own) for group_id, own in groups.items()}


class _Process:
    """The signs of one client in one file, in order."""

    def __init__(self, signs: list[_Sign]) -> None:
        self._signs = sorted(signs, key=lambda each: each.at_us)
        self._times = [each.at_us for each in self._signs]
        self.members = {each.line.member_id for each in signs} - {None, ""}
        self._is_shared = is_shared(each.line for each in signs if each.kind is None)

    def chain(self, start: TraceEvent, kinds: frozenset[str], member_id: str | None) -> list[_Sign]:
        """Return its reasons since it was last settled, up to the line that begins a rebalance.

        What it tells after its start is of the new process: no reason for a member of the old one
        to go, unless the line names that member.
        """
        place = bisect_right(self._times, start.ts_us + _SKEW_US)
        least = max(0, place - _LOOKED_AT)
        found: list[_Sign] = []
        while place > least and self._times[place - 1] >= start.ts_us - _WITHIN_US:
            place -= 1
            each = self._signs[place]
            if each.kind is None and not _is_answer_to(each, start):
                break
            if each.kind in kinds and (not self._is_shared or _names(each, member_id)):
                found.append(each)
            if self._is_start(place):
                if each.kind in kinds:
                    break
                found = [sign for sign in found if _names(sign, member_id)]
        chain = _without_outages(found[::-1])
        return chain or (self._assigned(start) if kinds >= _ASSIGNED else [])

    def _is_start(self, index: int) -> bool:
        """Whether a sign is the start of a process.

        A fenced stream thread gives its subscription up, and subscribes again.
        """
        before = {each.kind for each in self._signs[max(0, index - 2) : index]}
        return self._signs[index].kind in _STARTED and "thread-fenced" not in before

    def _assigned(self, start: TraceEvent) -> list[_Sign]:
        """Return why its last assignment has it join again: for what it gave up, or in a while.

        The generation of that assignment is the one that ends; after others, lines are missing.
        """
        place = bisect_right(self._times, start.ts_us)
        own = reversed(self._signs[max(0, place - _LOOKED_AT) : place])
        settled = (each for each in own if each.kind is None and not _is_answer_to(each, start))
        last = next(settled, None)
        if last is None or start.generation not in {None, last.line.generation}:
            return []
        if GIVEN_UP in last.line.attrs:
            return [replace(last, kind=GAVE_UP)]
        if DELAY_MS not in last.line.attrs:
            return []
        at_us = last.at_us + int(last.line.attrs[DELAY_MS]) * 1_000
        is_then = abs(start.ts_us - at_us) <= _WAITED_US
        return [replace(last, at_us=at_us, kind="waited")] if is_then else []

    def is_member(self, member_id: str, start: TraceEvent, *, has_left: bool) -> bool | None:
        """Whether it is this member when a rebalance begins; None where no line near names one.

        Its lines from when it was last settled name it; those of a member that is not gone up to
        when it is settled again, by the id that it gets.
        """
        place = bisect_right(self._times, start.ts_us + _SKEW_US)
        least, most = max(0, place - _LOOKED_AT), min(len(self._signs), place + _LOOKED_AT)
        after = next((at for at in range(place, most) if self._is_settled(at)), place)
        before = next((at for at in range(place - 1, least - 1, -1) if self._is_settled(at)), least)
        lines = [each.line for each in self._signs[before : place if has_left else after + 1]]
        named = {line.member_id for line in lines} - {None, ""}
        return member_id in named if named else None

    def _is_settled(self, index: int) -> bool:
        return self._signs[index].kind is None


def is_shared(settled: Iterable[TraceEvent]) -> bool:
    """Whether several processes wrote lines of one client: a generation has two of its members."""
    members: dict[int | None, str | None] = {}
    return any(
        members.setdefault(line.generation, line.member_id) != line.member_id
        for line in settled
        if line.member_id and line.generation is not None
    )


def _names(sign: _Sign, member_id: str | None) -> bool:
    return sign.kind in _NAMES_MEMBER and sign.line.member_id == member_id


def _is_answer_to(settled: _Sign, start: TraceEvent) -> bool:
    """Whether a client is settled by this rebalance, not by the one before."""
    told, own = start.generation, settled.line.generation
    begun = told if told is None or start.event is Event.EPOCH_BUMPED else told + 1
    return settled.at_us > start.ts_us or (own is not None and own == begun)


def _without_outages(chain: list[_Sign]) -> list[_Sign]:
    """Drop losses of a coordinator that was found again, unless the member was out by then."""
    found = max(
        (at for at, each in enumerate(chain) if each.kind == "coordinator-found"), default=-1
    )
    found_us = chain[found].at_us if chain else 0
    is_out = any(each.kind in OUT_OF_GROUP and each.at_us - found_us <= _SOON_US for each in chain)
    return [
        each
        for place, each in enumerate(chain)
        if each.kind != "coordinator-found"
        and (is_out or place > found or each.kind != "coordinator-lost")
    ]


class _Reasons:
    """The signs of one group's clients, by client id and file."""

    def __init__(self, signs: Iterable[_Sign]) -> None:
        own: defaultdict[tuple[str, str | None], list[_Sign]] = defaultdict(list)
        for each in signs:
            own[each.line.client_id or "", each.line.source_ref].append(each)
        self._births_us: dict[str, int] = {}
        self._processes: defaultdict[str, list[_Process]] = defaultdict(list)
        for (client, _), lines in own.items():
            self._processes[client].append(_Process(lines))

    def note(self, line: TraceEvent) -> None:
        """Record when the id of a new member begins; earlier reasons are of other members."""
        reason = REASONS_OF_CHANGES.get(line.event, line.reason)
        is_new = line.event is Event.MEMBER_ID_ASSIGNED or reason is RebalanceReason.MEMBER_JOINED
        if is_new and line.member_id:
            self._births_us.setdefault(line.member_id, line.ts_us)

    def annotated(self, start: TraceEvent, above: TraceEvent | None) -> TraceEvent:
        """Return the line that begins a rebalance with the first reason of who began it.

        Args:
            start: The line.
            above: The group's last line before it that names who came or went; None for none.
        """
        reason, named = start.reason, start.member_id
        is_near = above is not None and 0 <= start.ts_us - above.ts_us <= _SKEW_US
        if named is None and above is not None and is_near:
            named = above.member_id
            reason = reason or REASONS_OF_CHANGES[above.event]
        kinds = frozenset(_SIGNS)
        if reason is RebalanceReason.MEMBER_LEFT:
            kinds = _OF_LEAVERS
        elif reason is RebalanceReason.MEMBER_FAILED:
            kinds = _OF_FAILED
        first = self._first(start, named, kinds, has_left=reason in _DEPARTURES)
        if first is None or first.kind is None:
            return start
        born_us = self._births_us.get(named or "", first.at_us)
        if reason is not RebalanceReason.MEMBER_JOINED and first.at_us < born_us - _SKEW_US:
            return start
        line = first.line
        who = f"{line.client_id} " if line.client_id else ""
        found = {
            CAUSE: who + _worded(first.kind, line),
            CAUSE_KIND: first.kind,
            CAUSE_AT: f"{line.source_ref}:{line.seq}",
            CAUSE_MS: str(max(0, start.ts_us - first.at_us) // 1000),
        }
        said = start.client_reason
        is_own = (line.event is Event.LEAVE_REQ) is (reason is RebalanceReason.MEMBER_LEFT)
        said = line.client_reason or said if said in _NO_REASONS and is_own else said
        return replace(start, client_reason=said, attrs=start.attrs | found)

    def _first(
        self, start: TraceEvent, member_id: str | None, kinds: frozenset[str], *, has_left: bool
    ) -> _Sign | None:
        """Return the first reason since the client was settled; None where none is certain."""
        sure: list[list[_Sign]] = []
        possible: list[list[_Sign]] = []
        for process in self._processes_of(member_id):
            is_member = None
            if member_id is not None:
                is_member = process.is_member(member_id, start, has_left=has_left)
            if is_member is not False:
                chains = sure if is_member else possible
                chains.append(process.chain(start, kinds, member_id))
        within_us = _SOON_US if member_id is None else _WITHIN_US
        found = [
            chain[0]
            for chain in sure or possible
            if chain and start.ts_us - chain[-1].at_us <= within_us
        ]
        return found[0] if len(found) == 1 else None

    def _processes_of(self, member_id: str | None) -> list[_Process]:
        """Return the processes that may be a member, whose id begins with its client id."""
        if member_id is None:
            return [each for own in self._processes.values() for each in own]
        prefixes = (member_id[:place] for place, letter in enumerate(member_id) if letter == "-")
        client = max((each for each in prefixes if each in self._processes), key=len, default="")
        found = self._processes.get(client)
        if found is None:  # Ids of new consumers are random.
            everyone = (each for own in self._processes.values() for each in own)
            found = [each for each in everyone if member_id in each.members]
        return found
