"""Why each rebalance of a group happened and what followed, from the events alone.

Nothing is replayed here: this reads what a trace says, be it a log's or a simulation's.
"""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.embedded import COOPERATIVE_PROTOCOLS
from coordinator_sim.replay.history import LINE_SKEW_MS, Episode, Outcome, Rebalance, episodes_of
from coordinator_sim.replay.names import members_of
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

FOLLOW_UP_REASON: Final = "need to revoke partitions and re-join"
"""A cooperative consumer gave partitions up and comes back for its new assignment."""
_REJOINS: Final = frozenset({RebalanceReason.LEADER_REJOIN, RebalanceReason.METADATA_CHANGED})
_FOLLOW_UP_MS: Final = 1_000
_CHAIN_GAP_MS: Final = 30_000
"""Rebalances closer than this belong to one disturbance (definition of convergence time)."""
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
    RebalanceReason.METADATA_CHANGED: ("a member", "{who} joined again with another subscription"),
    RebalanceReason.MEMBER_REJOIN: ("a member", "{who} joined again"),
    RebalanceReason.SYNC_TIMEOUT: ("a member", "{who} did not ask for its assignment in time"),
    RebalanceReason.STATIC_PROTOCOL_CHANGE: (
        "a static member",
        "{who} came back with other assignors",
    ),
    RebalanceReason.STORE_ERROR: ("", "the assignment could not be stored"),
    RebalanceReason.OVER_CAPACITY: ("", "the loaded group was larger than group.max.size"),
    RebalanceReason.DOWNGRADE: ("", "the group became a classic one"),
}
"""By reason: who it was when nobody is named, and what happened."""
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
    """One rebalance: when, why, what followed. Times are milliseconds of the trace's clock.

    Args:
        number: From 1, in time order.
        start_ms: When it began; None when the trace begins later.
        because: What caused it, in words; empty when no line tells.
        caused_by: The members that caused it.
        before: What happened to the cluster or its processes shortly before, oldest first.
        joined: Members that came while it ran.
        gone: Members that went, each with how.
        follows: Number of the rebalance that it is a follow-up of; None for one of its own cause.
        chain: Number of the first rebalance of the disturbance it belongs to.
        new_coordinator: Why the trace does not continue the one before; empty when it does.
    """

    number: int
    source_ref: str | None
    start_ms: int | None
    reason: RebalanceReason
    because: str
    caused_by: tuple[str, ...]
    client_reason: str | None
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
    end_ms: int | None
    outcome: Outcome
    follows: int | None
    chain: int
    new_coordinator: str


class GroupStory(Struct, frozen=True, kw_only=True):
    """All rebalances of a group and what they add up to.

    Args:
        reasons: Rebalances by reason, most frequent first; follow-ups not counted.
        outcomes: Rebalances by outcome.
        rebalancing_ms: Time from the start of a rebalance to its end, all together.
        longest: Number of the longest rebalance; None when none has both ends.
        convergence_ms: The longest disturbance, from its first start to its last end.
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
    longest: int | None
    convergence_ms: int


def group_named(group_id: str, known: Iterable[str]) -> str:
    """The group id, when the trace has it.

    Raises:
        ConfigError: It has not; the message lists close names.
    """
    names = list(known)
    if group_id in names:
        return group_id
    close = get_close_matches(group_id, names, n=5, cutoff=0.4) or names[:5]
    hint = f"did you mean {', '.join(close)}" if close else "the trace has no group at all"
    raise ConfigError(f"no group {group_id!r} in the trace: {hint}")


def explain_group(
    group_id: str, lines: list[TraceEvent], others: Iterable[TraceEvent]
) -> GroupStory:
    """The story of a group.

    Args:
        group_id: The group.
        lines: Its events, in time order.
        others: Events of no group: faults, elections.
    """
    partitions = {line.offsets_partition for line in lines}
    near = [
        event
        for event in others
        if event.event in _CLUSTER
        or (event.event in _CONTEXT and event.offsets_partition in partitions)
    ]
    teller = _Teller(lines, near)
    for episode in episodes_of(group_id, lines):
        teller.tell(episode)
    return _summed(group_id, lines, tuple(teller.stories))


class _Teller:
    """Tells the episodes of one group, in order."""

    def __init__(self, lines: list[TraceEvent], others: list[TraceEvent]) -> None:
        self.stories: list[RebalanceStory] = []
        self._context = sorted(
            [*others, *(line for line in lines if line.event in _CONTEXT and line.group_id)],
            key=lambda event: event.ts_us,
        )
        self._told_us = -1

    def tell(self, episode: Episode) -> None:
        """Add the stories of an episode's rebalances."""
        resumed = episode.resumed
        for rebalance in episode.rebalances:
            self.stories.append(self._story(episode, rebalance, resumed))
            resumed = ""

    def _story(self, episode: Episode, rebalance: Rebalance, resumed: str) -> RebalanceStory:
        number = len(self.stories) + 1
        start_ms = rebalance.start_ms
        previous = self.stories[-1] if self.stories and not resumed else None
        follows = previous.number if previous and _follows_up(rebalance, previous) else None
        causes = _causing_lines(episode, rebalance)
        who = _who(rebalance, causes)
        start = rebalance.start
        return RebalanceStory(
            number=number,
            source_ref=episode.source_ref,
            start_ms=start_ms,
            reason=rebalance.reason,
            because=_because(rebalance, who),
            caused_by=who,
            client_reason=_client_reason(start, causes),
            before=self._before(rebalance),
            joined=_joined(rebalance, causes),
            gone=_gone(rebalance, causes),
            old_generation=rebalance.old_generation,
            generation=rebalance.generation,
            members=rebalance.members,
            static_members=rebalance.sync.static_members if rebalance.sync else None,
            leader_id=rebalance.leader_id,
            protocol_name=rebalance.join.protocol_name if rebalance.join else None,
            join_ms=_span(start_ms, rebalance.join_done_ms or _ms(rebalance.empty)),
            sync_ms=_span(rebalance.join_done_ms, rebalance.sync_ms),
            end_ms=rebalance.end_ms,
            outcome=rebalance.outcome,
            follows=follows,
            chain=self._chain(number, start_ms),
            new_coordinator=resumed,
        )

    def _chain(self, number: int, start_ms: int | None) -> int:
        """The first rebalance of the disturbance that this one belongs to."""
        if not self.stories or start_ms is None:
            return number
        last = self.stories[-1]
        end_ms = last.end_ms if last.end_ms is not None else last.start_ms
        return last.chain if end_ms is not None and start_ms - end_ms < _CHAIN_GAP_MS else number

    def _before(self, rebalance: Rebalance) -> tuple[str, ...]:
        """Faults, elections and starts since the rebalance before, within a minute."""
        at_us = rebalance.first_line.ts_us
        near = [
            event
            for event in self._context
            if max(self._told_us, at_us - _CONTEXT_MS * 1000) < event.ts_us <= at_us
        ]
        self._told_us = at_us
        return tuple(_context_words(event, at_us) for event in near)


def _follows_up(rebalance: Rebalance, previous: RebalanceStory) -> bool:
    """Whether it only carries on what the one before began.

    Source: KIP-429; a cooperative member that gave partitions up rejoins at once.
    """
    texts = [rebalance.start.reason_text, rebalance.start.client_reason] if rebalance.start else []
    if any(FOLLOW_UP_REASON in (text or "") for text in texts):
        return True
    start_ms = rebalance.start_ms
    if start_ms is None or previous.end_ms is None or previous.outcome is not Outcome.STABLE:
        return False
    same_members = rebalance.members is not None and rebalance.members == previous.members
    protocol = rebalance.join.protocol_name if rebalance.join else None
    if protocol is None:
        # A broker log names no protocol; a member that rejoins by itself tells as much.
        cooperative = rebalance.reason in _REJOINS
    else:
        cooperative = protocol in COOPERATIVE_PROTOCOLS
    return same_members and cooperative and start_ms - previous.end_ms <= _FOLLOW_UP_MS


def _causing_lines(episode: Episode, rebalance: Rebalance) -> list[TraceEvent]:
    """Lines about members just before it began: their going or coming is the cause.

    Those before the end of the last join phase belong to the rebalance before.
    """
    at_us = rebalance.first_line.ts_us
    causes: list[TraceEvent] = []
    for index in range(rebalance.position - 1, -1, -1):
        line = episode.lines[index]
        is_old = at_us - line.ts_us > LINE_SKEW_MS * 1000
        if is_old or line.event in {Event.JOIN_COMPLETE, Event.GROUP_EMPTY}:
            break
        if line.event in _GONE or line.event in _JOINS:
            causes.append(line)
    return causes[::-1]


def _because(rebalance: Rebalance, who: tuple[str, ...]) -> str:
    """Who did what, in words; empty when no line tells."""
    words = _WORDS.get(rebalance.reason)
    if words is None:
        return ""
    nobody, text = words
    return text.format(who=", ".join(who) or nobody)


def _who(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """The members that a rebalance is said to be because of."""
    lines = [rebalance.start] if rebalance.start is not None else []
    named = [name for line in lines for name in members_of(line) if name]
    named = named or [name for line in causes for name in members_of(line) if name]
    return tuple(dict.fromkeys(named))


def _client_reason(start: TraceEvent | None, causes: list[TraceEvent]) -> str | None:
    for line in (start, *causes):
        if line is not None and line.client_reason and line.client_reason != "not provided":
            return line.client_reason
    text = start.reason_text if start is not None else None
    _, found, rest = (text or "").partition("client reason: ")
    return rest if found and rest != "not provided" else None


def _joined(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """Members that came with it or while its join phase ran."""
    end = rebalance.join or rebalance.empty
    names = [
        name
        for line in (*causes, *rebalance.lines)
        if line.event in _JOINS and (end is None or line.ts_us <= end.ts_us)
        for name in members_of(line)
    ]
    if rebalance.reason is RebalanceReason.MEMBER_JOINED and rebalance.start is not None:
        names.extend(members_of(rebalance.start))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _gone(rebalance: Rebalance, causes: list[TraceEvent]) -> tuple[str, ...]:
    """Members that went with it or while its join phase ran, and how."""
    end = rebalance.join or rebalance.empty
    limit_us = None if end is None else end.ts_us + LINE_SKEW_MS * 1000
    words = [
        f"{name} {_GONE[line.event]}"
        for line in (*causes, *rebalance.lines)
        if line.event in _GONE and (limit_us is None or line.ts_us <= limit_us)
        for name in members_of(line)
        if name is not None
    ]
    return tuple(dict.fromkeys(words))


def _context_words(event: TraceEvent, at_us: int) -> str:
    """A fault, start or election, and how long before it was."""
    parts = [event.event.value, event.reason_text or "", event.client_id or ""]
    attrs = [pair for pair in sorted(event.attrs.items()) if pair[0] not in _DULL_ATTRS]
    if event.event in _CLUSTER:
        parts.extend(value for _, value in attrs)
    else:
        parts.extend(f"{name}={value}" for name, value in attrs)
        parts.append("" if event.broker_id is None else f"broker {event.broker_id}")
    ago_ms = (at_us - event.ts_us) // 1000
    return f"{' '.join(part for part in parts if part)} ({ago_ms / 1000:.3f} s before)"


def _ms(line: TraceEvent | None) -> int | None:
    return None if line is None else line.ts_us // 1000


def _span(start_ms: int | None, end_ms: int | None) -> int | None:
    return None if start_ms is None or end_ms is None else end_ms - start_ms


def _summed(
    group_id: str, lines: list[TraceEvent], stories: tuple[RebalanceStory, ...]
) -> GroupStory:
    own = [story for story in stories if story.follows is None]
    lengths = {story.number: _span(story.start_ms, story.end_ms) for story in stories}
    whole = {number: length for number, length in lengths.items() if length is not None}
    chains: dict[int, list[RebalanceStory]] = {}
    for story in stories:
        chains.setdefault(story.chain, []).append(story)
    return GroupStory(
        group_id=group_id,
        first_ms=lines[0].ts_us // 1000,
        last_ms=lines[-1].ts_us // 1000,
        rebalances=stories,
        reasons=dict(Counter(story.reason.value for story in own).most_common()),
        outcomes=dict(Counter(story.outcome.value for story in stories).most_common()),
        follow_ups=len(stories) - len(own),
        disturbances=len(chains),
        rebalancing_ms=sum(whole.values()),
        longest=max(whole, key=lambda number: whole[number], default=None),
        convergence_ms=max((_convergence_ms(chain) for chain in chains.values()), default=0),
    )


def _convergence_ms(chain: list[RebalanceStory]) -> int:
    """From the first start to the last end of a disturbance; 0 when either is not known."""
    ends = [story.end_ms for story in chain if story.end_ms is not None]
    start_ms = chain[0].start_ms
    return max(ends) - start_ms if ends and start_ms is not None else 0
