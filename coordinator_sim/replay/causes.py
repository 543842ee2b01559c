"""The cause and the consequences of each rebalance of a group, from the events alone.

No replay is needed: the events come from a log or from a simulation.
"""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances
from coordinator_sim.replay.names import names_of
from coordinator_sim.replay.share_records import ShareRecords, share_records
from coordinator_sim.trace.client_reasons import CAUSE, CAUSE_AT, CAUSE_MS
from coordinator_sim.trace.epoch_groups import LEFT_OR_FAILED, is_evident
from coordinator_sim.trace.epoch_records import STREAMS
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import LINE_SKEW_MS, rebalances_of
from coordinator_sim.trace.printed_settings import ASSUMED, PRINTED, SETTINGS
from coordinator_sim.trace.rebalances import (
    Episode,
    NumberedRebalance,
    Rebalance,
    RebalanceOutcome,
    settling_us,
)
from coordinator_sim.trace.window import ALWAYS, Window

_CONTEXT_MS: Final = 60_000
_JOINS: Final = frozenset({Event.MEMBER_ADDED, Event.STATIC_REPLACED})
_GONE: Final = {
    Event.MEMBER_LEFT: "left",
    Event.MEMBER_FAILED: "failed",
    Event.MEMBER_KICKED: "removed",
    Event.PENDING_EXPIRED: "never came back",
}
_WORDS: Final = {
    RebalanceReason.MEMBER_JOINED: ("a new member", "{who} joined"),
    RebalanceReason.MEMBER_LEFT: ("a member", "{who} left"),
    RebalanceReason.MEMBER_FAILED: (
        "a member",
        "{who} sent no heartbeat for a whole session timeout",
    ),
    RebalanceReason.LEADER_REJOIN: ("", "the leader {who} joined again"),
    RebalanceReason.METADATA_CHANGED: ("a member", "{who} joined again with changed metadata"),
    RebalanceReason.MEMBER_REJOIN: ("a member", "{who} joined again"),
    RebalanceReason.SYNC_TIMEOUT: ("a member", "{who} did not ask for its assignment in time"),
    RebalanceReason.STATIC_PROTOCOL_CHANGE: (
        "a static member",
        "{who} came back with other assignors",
    ),
    RebalanceReason.STORE_ERROR: ("", "the assignment could not be stored"),
    RebalanceReason.OVER_CAPACITY: ("", "the loaded group was larger than group.max.size"),
    RebalanceReason.DOWNGRADE: ("", "the group became a classic one"),
    RebalanceReason.REBALANCE_TIMEOUT: ("a member", "{who} did not give partitions up in time"),
    RebalanceReason.TOPICS_CHANGED: ("", "the topics that the group subscribes to changed"),
    RebalanceReason.ASSIGNOR_CHANGED: ("a member", "{who} asks for another assignor"),
    RebalanceReason.TOPOLOGY_CHANGED: ("", "the topology, or its validity, changed"),
    RebalanceReason.SETTINGS_CHANGED: ("", "the settings of the assignment changed"),
    RebalanceReason.TARGET_REFINED: ("", "a member has other tasks than the target gives it"),
    RebalanceReason.PARTITIONS_INITIALIZED: (
        "",
        "the share coordinator has begun with partitions, which may be assigned now",
    ),
}
"""By reason: a subject for when no member is named, and what happened."""
_WORDS_OF_STREAMS: Final = {
    RebalanceReason.METADATA_CHANGED: (
        "a member",
        "{who} told of another process, host, rack or tags",
    ),
    RebalanceReason.REBALANCE_TIMEOUT: ("a member", "{who} did not give tasks up in time"),
    RebalanceReason.TOPICS_CHANGED: ("", "the topics that the topology needs changed"),
}
"""The same, where it is otherwise in a streams group."""
_CLUSTER: Final = frozenset({Event.FAULT, Event.LIFECYCLE})
_DULL_ATTRS: Final = frozenset({"broker_version_range", "scheduler_ms", "process"})
_CONTEXT: Final = frozenset(
    {
        Event.FAULT,
        Event.LIFECYCLE,
        Event.COORD_ELECTED,
        Event.COORD_RESIGNED,
        Event.LOAD_DONE,
        Event.UNLOAD_DONE,
        Event.GROUP_LOADED,
        Event.GROUP_UNLOADED,
        Event.GROUP_DEAD,
    }
)


class RebalanceStory(Struct, frozen=True, kw_only=True):
    """One rebalance: when, why, and what followed. Times are milliseconds of the trace's clock.

    Args:
        number: Number of the rebalance, from 1 in line order.
        start_ms: Start; None when the trace begins later.
        length_ms: Duration; None when the start or the end is missing.
        is_exact: Whether all its times are measured; False where a clock ran backwards during it,
            so that its durations are approximate.
        because: Cause in words; empty when no line tells.
        caused_by: Members that caused it.
        first_cause: What the log of the client that began it tells as its first reason, and how
            long before; None where no client's log tells.
        first_cause_at: File and line of it; None as above.
        before: Events of the cluster or its processes shortly before, oldest first.
        joined: Members that joined while it ran.
        gone: Members that left while it ran, each with the way it left.
        root: Number of the rebalance that it comes from in the end; its own for most.
        confidence: How sure cause and root are, 0 to 1.
        initial_ms: Part of the join phase that was the initial delay of an empty group; of an
            epoch the delay of a first target.
        dead_ms: Part of it that waited for members that were then removed.
        slow_ms: Rest of it: waiting for living members to rejoin.
        deploy: Number of the rolling restart it belongs to, from 1; 0 for none.
        follows: Number of the rebalance it follows up; None for one with a cause of its own.
        chain: Number of the first rebalance of the disturbance it belongs to.
        new_coordinator: Why the trace does not continue the one before; empty when it does.
        is_epoch: Whether it is an epoch of a consumer, share or streams group: nobody stops for it.
    """

    number: int
    source_ref: str | None
    start_ms: int | None
    reason: RebalanceReason
    because: str
    caused_by: tuple[str, ...]
    client_reason: str | None
    first_cause: str | None
    first_cause_at: str | None
    before: tuple[str, ...]
    joined: tuple[str, ...]
    gone: tuple[str, ...]
    old_generation: int | None
    generation: int | None
    members: int | None
    static_members: int | None
    leader_id: str | None
    protocol_name: str | None
    join_ms: int | None
    sync_ms: int | None
    length_ms: int | None
    root: int
    confidence: float
    initial_ms: int
    dead_ms: int
    slow_ms: int
    deploy: int
    is_exact: bool
    outcome: RebalanceOutcome
    follows: int | None
    chain: int
    new_coordinator: str
    is_epoch: bool = False


class GroupStory(Struct, frozen=True, kw_only=True):
    """All rebalances of a group and their totals.

    Args:
        reasons: Rebalances by reason, most frequent first; follow-ups not counted.
        outcomes: Rebalances by outcome.
        rebalancing_ms: Sum of all known rebalance lengths.
        open_count: Rebalances without a length, because the trace lacks their start or end.
        is_exact: Whether all its rebalances are exact.
        longest: Number of the longest rebalance; None when none has a length.
        convergence_ms: Longest disturbance that settled, from its first start until its last
            rebalance settled; None when none did.
        unsettled: Disturbances that never settled in this trace.
        records: What became of a share group's records; None where the trace does not tell.
    """

    group_id: str
    first_ms: int
    last_ms: int
    rebalances: tuple[RebalanceStory, ...]
    reasons: dict[str, int]
    outcomes: dict[str, int]
    follow_ups: int
    disturbances: int
    rebalancing_ms: int
    open_count: int
    is_exact: bool
    longest: int | None
    convergence_ms: int | None
    unsettled: int
    records: ShareRecords | None = None


def group_named(group_id: str, known: Iterable[str]) -> str:
    """Check that the trace has a group of this id, and return the id.

    Raises:
        ConfigError: the trace has no such group; the message lists close names.
    """
    names = list(known)
    if group_id in names:
        return group_id
    close = get_close_matches(group_id, names, n=5, cutoff=0.4) or names[:5]
    hint = f"did you mean {', '.join(close)}" if close else "the trace has no group at all"
    raise ConfigError(f"no group {group_id!r} in the trace: {hint}")


def explain_group(
    group_id: str,
    lines: list[TraceEvent],
    others: Iterable[TraceEvent],
    window: Window = ALWAYS,
) -> GroupStory:
    """Return the story of a group.

    Args:
        group_id: The group.
        lines: Events of the group in line order, with steadied times (`history.group_lines`).
        others: Events without a group: faults, elections.
        window: The time that is told; what lies before it only explains.
    """
    partitions = {line.offsets_partition for line in lines}
    near = [
        event
        for event in others
        if event.event in _CLUSTER
        or (event.event in _CONTEXT and event.offsets_partition in partitions)
    ]
    teller = _Teller(lines, near)
    told = rebalances_of(group_id, lines)
    costs = costs_of_rebalances(told, lines)
    stories = tuple(teller.tell(*each) for each in zip(told, costs, strict=True))
    return _summed(group_id, lines, stories, [each.rebalance for each in told], window)


class _Teller:
    """Tells the rebalances of one group, in order."""

    def __init__(self, lines: list[TraceEvent], others: list[TraceEvent]) -> None:
        self._context = sorted(
            [*others, *(line for line in lines if line.event in _CONTEXT and line.group_id)],
            key=lambda event: event.ts_us,
        )
        self._told_us = -1

    def tell(self, told: NumberedRebalance, cost: RebalanceCost) -> RebalanceStory:
        """Return the story of the next rebalance."""
        episode, rebalance = told.episode, told.rebalance
        causes = _causing_lines(episode, rebalance)
        who = _who(rebalance, causes)
        start = rebalance.start
        return RebalanceStory(
            number=told.number,
            source_ref=episode.source_ref,
            start_ms=rebalance.start_ms,
            reason=rebalance.reason,
            because=_because(rebalance, who, causes),
            caused_by=who,
            client_reason=_client_reason(start, causes),
            first_cause=_first_cause(start),
            first_cause_at=None if start is None else start.attrs.get(CAUSE_AT),
            before=self._before(rebalance),
            joined=_joined(rebalance, causes),
            gone=_gone(rebalance, causes),
            old_generation=rebalance.old_generation,
            generation=rebalance.generation,
            members=rebalance.members,
            static_members=_static_members(rebalance),
            leader_id=rebalance.leader_id,
            protocol_name=rebalance.join.protocol_name if rebalance.join else None,
            join_ms=_whole_ms(rebalance.join_us),
            sync_ms=_whole_ms(rebalance.sync_us),
            length_ms=_whole_ms(rebalance.length_us),
            root=cost.root,
            confidence=cost.confidence,
            initial_ms=cost.initial_ms,
            dead_ms=cost.dead_ms,
            slow_ms=cost.slow_ms,
            deploy=cost.deploy,
            is_exact=rebalance.is_exact,
            outcome=rebalance.outcome,
            follows=told.follows,
            chain=told.chain,
            new_coordinator=told.resumed,
            is_epoch=rebalance.is_epoch,
        )

    def _before(self, rebalance: Rebalance) -> tuple[str, ...]:
        """Return faults, elections and starts since the previous rebalance, within a minute."""
        at_us = rebalance.first_line.ts_us
        near = [
            event
            for event in self._context
            if max(self._told_us, at_us - _CONTEXT_MS * 1000) < event.ts_us <= at_us
        ]
        self._told_us = at_us
        return tuple(_context_words(event, at_us) for event in near)


_PHASE_ENDS: Final = frozenset(
    {Event.JOIN_COMPLETE, Event.GROUP_EMPTY, Event.EPOCH_BUMPED, Event.TARGET_COMPUTED}
)


def _causing_lines(episode: Episode, rebalance: Rebalance) -> list[TraceEvent]:
    """Return lines about members joining or leaving just before the rebalance: its causes.

    Lines before the end of the last join phase belong to the previous rebalance.
    """
    at_us = rebalance.first_line.ts_us
    causes: list[TraceEvent] = []
    for index in range(rebalance.position - 1, -1, -1):
        line = episode.lines[index]
        is_old = at_us - line.ts_us > LINE_SKEW_MS * 1000
        if is_old or line.event in _PHASE_ENDS:
            break
        if line.event in _GONE or line.event in _JOINS:
            causes.append(line)
    return causes[::-1]


def _static_members(rebalance: Rebalance) -> int | None:
    told = rebalance.sync or (rebalance.join if rebalance.is_epoch else None)
    return None if told is None else told.static_members


def _because(rebalance: Rebalance, who: tuple[str, ...], causes: list[TraceEvent]) -> str:
    """Return who did what, and which setting is behind it; empty when no line tells."""
    start = rebalance.start
    is_streams = start is not None and start.protocol_type == STREAMS
    words = (_WORDS | _WORDS_OF_STREAMS if is_streams else _WORDS).get(rebalance.reason)
    if words is None:
        return ""
    nobody, text = words
    attrs = (line.attrs for line in causes)
    told = dict.fromkeys(own[name] for own in attrs for name in (PRINTED, ASSUMED) if name in own)
    return "; ".join([text.format(who=", ".join(who) or nobody), *told])


def _who(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """Return the members named as the cause of a rebalance."""
    lines = [rebalance.start] if rebalance.start is not None else []
    named = [name for line in lines for name in names_of(line) if name]
    named = named or [name for line in causes for name in names_of(line) if name]
    return tuple(dict.fromkeys(named))


def _client_reason(start: TraceEvent | None, causes: list[TraceEvent]) -> str | None:
    for line in (start, *causes):
        if line is not None and line.client_reason and line.client_reason != "not provided":
            return line.client_reason
    text = start.reason_text if start is not None else None
    _, found, rest = (text or "").partition("client reason: ")
    return rest if found and rest != "not provided" else None


def _first_cause(start: TraceEvent | None) -> str | None:
    if start is None or CAUSE not in start.attrs:
        return None
    ago = f"{int(start.attrs[CAUSE_MS]) / 1000:.3f} s before"
    return f"{start.attrs[CAUSE]} ({ago})"


def _joined(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """Return members that joined as its cause or while its join phase ran."""
    end = rebalance.join or rebalance.empty
    names = [
        name
        for line in (*causes, *rebalance.lines)
        if line.event in _JOINS and (end is None or line.ts_us <= end.ts_us)
        for name in names_of(line)
    ]
    if rebalance.reason is RebalanceReason.MEMBER_JOINED and rebalance.start is not None:
        names.extend(names_of(rebalance.start))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _departed(line: TraceEvent) -> str:
    """Return how a member went: `left`, `failed`, or both where nothing shows which."""
    return _GONE[line.event] if is_evident(line.confidence) else LEFT_OR_FAILED


def _gone(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """Return members that left as its cause or while its join phase ran, and how."""
    end = rebalance.join or rebalance.empty
    limit_us = None if end is None else end.ts_us + LINE_SKEW_MS * 1000
    words = [
        f"{name} {_departed(line)}"
        for line in (*causes, *rebalance.lines)
        if line.event in _GONE and (limit_us is None or line.ts_us <= limit_us)
        for name in names_of(line)
        if name is not None
    ]
    return tuple(dict.fromkeys(words))


def _context_words(event: TraceEvent, at_us: int) -> str:
    """Describe a fault, start or election, and how long before the rebalance it was."""
    parts = [event.event.value, event.reason_text or "", event.client_id or ""]
    is_dull = event.attrs.get("sign") == SETTINGS
    attrs = [
        pair for pair in sorted(event.attrs.items()) if pair[0] not in _DULL_ATTRS and not is_dull
    ]
    if event.event in _CLUSTER:
        parts.extend(value for _, value in attrs)
    else:
        parts.extend(f"{name}={value}" for name, value in attrs)
        parts.append("" if event.broker_id is None else f"broker {event.broker_id}")
    ago_ms = (at_us - event.ts_us) // 1000
    return f"{' '.join(part for part in parts if part)} ({ago_ms / 1000:.3f} s before)"


def _whole_ms(duration_us: int | None) -> int | None:
    return None if duration_us is None else duration_us // 1000


def _summed(
    group_id: str,
    lines: list[TraceEvent],
    every: tuple[RebalanceStory, ...],
    rebalances: list[Rebalance],
    window: Window,
) -> GroupStory:
    is_shown = {
        number: window.holds(each.first_line.ts_us) for number, each in enumerate(rebalances, 1)
    }
    stories = tuple(story for story in every if is_shown[story.number])
    own = [story for story in stories if story.follows is None]
    lengths = {each.number: rebalances[each.number - 1].length_us for each in stories}
    whole = {number: length for number, length in lengths.items() if length is not None}
    chains: dict[int, list[Rebalance]] = {}
    for story, rebalance in zip(every, rebalances, strict=True):
        if is_shown[story.chain]:
            chains.setdefault(story.chain, []).append(rebalance)
    settled = [settling_us(chain) for chain in chains.values()]
    known = [length for length in settled if length is not None]
    return GroupStory(
        group_id=group_id,
        first_ms=window.nearest_us(lines[0].ts_us) // 1000,
        last_ms=window.nearest_us(lines[-1].ts_us) // 1000,
        rebalances=stories,
        reasons=dict(Counter(story.reason.value for story in own).most_common()),
        outcomes=dict(Counter(story.outcome.value for story in stories).most_common()),
        follow_ups=len(stories) - len(own),
        disturbances=len(chains),
        rebalancing_ms=sum(whole.values()) // 1000,
        open_count=len(stories) - len(whole),
        is_exact=all(story.is_exact for story in stories),
        longest=max(whole, key=lambda number: whole[number], default=None),
        convergence_ms=_whole_ms(max(known, default=None)),
        unsettled=sum(chain[-1].settled is None for chain in chains.values()),
        records=share_records(lines, window),
    )
