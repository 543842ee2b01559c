"""Definition of a rebalance, its duration and its outcome, shared by all tools.

`explain`, `replay` and `report` all use it, so that one trace has one set of figures. `history`
reads a trace's lines into rebalances.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX, is_cooperative
from coordinator_sim.trace.epoch_groups import GROUP_TYPE, TEMPORARY
from coordinator_sim.trace.epoch_records import CONSUMER, GROUP_TYPES, SHARE, STREAMS
from coordinator_sim.trace.events import Event, RebalanceReason, TimeKind, TraceEvent

FOLLOW_UP_REASON: Final = "need to revoke partitions and re-join"
"""Reason of a cooperative consumer that gave partitions up and rejoins for its new assignment."""
CAUSE_KIND: Final = "first_cause_kind"
"""Attribute of the line that begins a rebalance: the kind of the client's first reason."""
GAVE_UP: Final = "gave-up"
"""Kind of a Connect worker that gave work up and joins again, as FOLLOW_UP_REASON of consumers."""
FOLLOW_UP_US: Final = 1_000_000
CHAIN_GAP_US: Final = 30_000_000
"""Rebalances closer than this belong to one disturbance (definition of convergence time)."""
_LIKE_US: Final = 1_000_000
"""Layouts tell times to the millisecond or the second: up to this, both are from one clock."""
_REMOVAL_SKEW_US: Final = 50_000
"""Some releases log the removal after the join phase that it ends, by as much."""
_GOES: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_REMOVALS: Final = frozenset({Event.MEMBER_FAILED, Event.MEMBER_KICKED, Event.PENDING_EXPIRED})
_NO_ASSIGNOR: Final = f"{SERVER_PREFIX}none"
EPOCH_LINES: Final = frozenset(
    {
        Event.EPOCH_BUMPED,
        Event.TARGET_COMPUTED,
        Event.TARGET_ASSIGNED,
        Event.MEMBER_STEP,
        Event.TARGET_REACHED,
    }
)
"""Lines that only groups with epochs have."""
REASONS_OF_CHANGES: Final = {
    Event.MEMBER_ADDED: RebalanceReason.MEMBER_JOINED,
    Event.STATIC_REPLACED: RebalanceReason.MEMBER_JOINED,
    Event.MEMBER_LEFT: RebalanceReason.MEMBER_LEFT,
    Event.MEMBER_FAILED: RebalanceReason.MEMBER_FAILED,
    Event.MEMBER_KICKED: RebalanceReason.REBALANCE_TIMEOUT,
}
"""Events that name who came or went, and the reason of the rebalance that follows."""
_EPOCH_SOON_US: Final = 50_000
"""An epoch begins within this of the line about its member (measured on real logs)."""
_EPOCH_OF_JOINER_US: Final = 1_000_000
"""The same of a member that joins, for which a broker may configure a topology first; measured was
0.16 s just after a broker's start."""
_REJOINS: Final = frozenset({RebalanceReason.LEADER_REJOIN, RebalanceReason.METADATA_CHANGED})


_HEARTBEATS: Final[dict[int | None, str]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: CONSUMER,
    ApiKey.SHARE_GROUP_HEARTBEAT: SHARE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: STREAMS,
}


def epoch_type(event: TraceEvent) -> str | None:
    """Return the type of the group with epochs that an event is of; None for any other event.

    A broker's log names the type where members come and go, and nowhere else: a line of an epoch
    alone is taken for one of a consumer group.
    """
    told = event.attrs.get(GROUP_TYPE)
    if told in GROUP_TYPES:
        return told
    if event.event in EPOCH_LINES:
        return event.protocol_type if event.protocol_type in GROUP_TYPES else CONSUMER
    return _HEARTBEATS.get(event.api_key)


def is_of_epoch_group(event: TraceEvent) -> bool:
    """Whether an event is of a group with epochs: a consumer, share or streams group."""
    return epoch_type(event) is not None


def epoch_groups_in(events: Iterable[TraceEvent]) -> dict[str, str]:
    """Return the type of each group that has epochs somewhere in a trace, in its order."""
    found: dict[str, str] = {}
    for event in events:
        group_type = epoch_type(event)
        if event.group_id is None or group_type is None:
            continue
        if event.event in EPOCH_LINES and event.protocol_type is None:
            found.setdefault(event.group_id, group_type)
        else:
            found[event.group_id] = group_type
    return found


@unique
class RebalanceOutcome(Enum):
    """How a rebalance ended, by its name in the derived table `rebalances`."""

    STABLE = "STABLE"
    EMPTY = "EMPTY"
    NO_SYNC = "NO_SYNC"
    SUPERSEDED = "SUPERSEDED"
    COORDINATOR_MOVED = "COORDINATOR_MOVED"
    OPEN = "OPEN"


class Rebalance(Struct, kw_only=True):
    """One rebalance from its lines; a line that the trace lacks is None.

    Of a group with epochs it is one of them: it starts with EPOCH_BUMPED, is joined when the target
    is computed, and synced when every member has reached it.

    A rebalance runs from PREPARE_REBALANCE until the group is Stable (SYNC_LEADER: no log tells a
    later line) or Empty (GROUP_EMPTY). Where the group never gets there, it runs until the next
    rebalance of the group begins or its coordinator gives the group up. An open rebalance has none
    of these ends, and so no length.

    Args:
        position: Index of its first line in the episode's lines.
        successor: The PREPARE_REBALANCE, or the next epoch, that came while it ran, so that it
            never settled.
        followed: Whether another rebalance of the same episode came after it.
        lines: All lines of the group from its first line to the next rebalance's first line.

    Source:
        kafka trunk, ClassicGroup.java: the states PREPARING_REBALANCE to STABLE or EMPTY.
    """

    position: int
    start: TraceEvent | None = None
    join: TraceEvent | None = None
    sync: TraceEvent | None = None
    empty: TraceEvent | None = None
    unload: TraceEvent | None = None
    successor: TraceEvent | None = None
    followed: bool = False
    lines: list[TraceEvent]

    @property
    def first_line(self) -> TraceEvent:
        """First line of the rebalance."""
        return self.lines[0]

    @property
    def is_epoch(self) -> bool:
        """Whether it is an epoch of a group whose members go on meanwhile."""
        told = self.start or self.join or self.sync
        return told is not None and told.event in EPOCH_LINES

    @property
    def protocol_name(self) -> str | None:
        """Protocol of the new generation, where a line names it.

        An epoch that has no target has no assignor, and is of a group with epochs all the same.
        """
        lines = (self.sync, self.join, self.empty)
        named = next((line.protocol_name for line in lines if line and line.protocol_name), None)
        return named or (_NO_ASSIGNOR if self.is_epoch else None)

    @property
    def old_generation(self) -> int | None:
        """Generation that the rebalance ended; None when no line numbers it."""
        if self.start is not None and not self.is_epoch:
            return self.start.generation
        reached = self.generation
        return None if reached is None else reached - 1

    @property
    def generation(self) -> int | None:
        """Generation that the join phase led to; None when it has not ended."""
        done = self.join or self.sync or self.empty or (self.start if self.is_epoch else None)
        return None if done is None else done.generation

    @property
    def reason(self) -> RebalanceReason:
        """Reason why the group left its generation."""
        reason = self.start.reason if self.start is not None else None
        return reason or RebalanceReason.UNKNOWN

    @property
    def settled(self) -> TraceEvent | None:
        """Line at which the group was Stable or Empty; None for one that never settles."""
        return self.sync or self.empty

    @property
    def joined(self) -> TraceEvent | None:
        """Line that ended the join phase, with members or without."""
        return self.join or self.empty

    @property
    def ended(self) -> TraceEvent | None:
        """Line at which it was over; None while it is open, or where that is not told."""
        return self.settled or self.unload or (self.successor if self._is_overtaken else None)

    @property
    def _is_overtaken(self) -> bool:
        """Whether the successor came before it had ended.

        A broker's log tells of targets, and not of the members' steps towards them: whether all had
        reached one before the next epoch is not known.
        """
        if not self.is_epoch or self.join is None:
            return True
        return any(line.event is Event.MEMBER_STEP for line in self.lines)

    @property
    def join_us(self) -> int | None:
        """Duration of the join phase in microseconds, never negative; None when unknown."""
        return _between_us(self.start, self.joined)

    @property
    def sync_us(self) -> int | None:
        """Time of the leader to assign in microseconds; None when unknown."""
        return _between_us(self.join, self.sync)

    @property
    def length_us(self) -> int | None:
        """Duration in microseconds, never negative; None when start or end is unknown."""
        return _between_us(self.start, self.ended)

    @property
    def is_exact(self) -> bool:
        """Whether every timing line has a time of its own that fits the line order.

        A clock that was set back in between shows in the uncertainty of the lines' times.
        """
        lines = [line for line in (self.start, self.joined, self.ended) if line is not None]
        errors = [line.ts_err_us for line in lines]
        if max(errors) - min(errors) > _LIKE_US:
            return False
        return all(line.ts_kind is not TimeKind.INFERRED for line in lines)

    @property
    def start_ms(self) -> int | None:
        """When the group began to prepare."""
        return _ms(self.start)

    @property
    def join_done_ms(self) -> int | None:
        """When the join phase ended with members."""
        return _ms(self.join)

    @property
    def sync_ms(self) -> int | None:
        """When the leader's assignment arrived."""
        return _ms(self.sync)

    @property
    def end_ms(self) -> int | None:
        """When it was over; None while it is open."""
        return _ms(self.ended)

    @property
    def members(self) -> int | None:
        """Size of the new generation, where a line has it; 0 when the group emptied."""
        for line in (self.join, self.sync):
            if line is not None and line.members is not None:
                return line.members
        return 0 if self.empty is not None else None

    @property
    def removed_ms(self) -> int | None:
        """When its join phase last gave up on a member, or on an id that was issued."""
        limit_us = None if self.joined is None else self.joined.ts_us + _REMOVAL_SKEW_US
        times = [
            line.ts_us
            for line in self.lines
            if line.event in _REMOVALS and (limit_us is None or line.ts_us <= limit_us)
        ]
        return max(times) // 1000 if times else None

    @property
    def leader_id(self) -> str | None:
        """Leader of the new generation, where a line names it."""
        for line in (self.sync, self.join):
            if line is not None and line.leader_id:
                return line.leader_id
        return None

    @property
    def outcome(self) -> RebalanceOutcome:
        """Outcome of the rebalance.

        NO_SYNC: the join phase ended and the leader never assigned before the next rebalance;
        SUPERSEDED: the join phase did not end before the next rebalance, or another epoch came
        before all members had reached this one; OPEN: without any end.
        """
        if self.sync is not None:
            return RebalanceOutcome.STABLE
        if self.empty is not None:
            return RebalanceOutcome.EMPTY
        if self.unload is not None:
            return RebalanceOutcome.COORDINATOR_MOVED
        if self.is_epoch:
            is_over = self.followed and self._is_overtaken
            return RebalanceOutcome.SUPERSEDED if is_over else RebalanceOutcome.OPEN
        if self.join is not None:
            return RebalanceOutcome.NO_SYNC if self.followed else RebalanceOutcome.OPEN
        return RebalanceOutcome.OPEN if self.successor is None else RebalanceOutcome.SUPERSEDED


class Episode(Struct, kw_only=True):
    """One coordinator's view of one incarnation of a group, in line order.

    Args:
        generation: Generation at its beginning; None when no line numbers it.
        resumed: Why it is not the beginning of the group's history: earlier lines are missing or
            come from another coordinator. Empty for the first episode of a group.
    """

    group_id: str
    source_ref: str | None
    incarnation: int
    generation: int | None
    resumed: str
    lines: list[TraceEvent]
    rebalances: list[Rebalance]

    @property
    def first_ms(self) -> int:
        """Time of its first line."""
        return self.lines[0].ts_us // 1000

    @property
    def last_ms(self) -> int:
        """Time of its last line."""
        return self.lines[-1].ts_us // 1000


class NumberedRebalance(Struct, frozen=True, kw_only=True):
    """A rebalance in its group's history.

    Args:
        number: Number from 1, in line order.
        resumed: Why the trace does not continue the earlier lines; empty when it does.
        follows: Number of the rebalance it follows up; None for one with a cause of its own.
        chain: Number of the first rebalance of its disturbance.
    """

    number: int
    episode: Episode
    rebalance: Rebalance
    resumed: str
    follows: int | None
    chain: int


class _Epochs:
    """What the lines of one group have shown so far."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.topics_hash: str | None = None
        self.above: TraceEvent | None = None
        self.unlogged: list[int] = []

    def begun(self, line: TraceEvent) -> TraceEvent:
        """Return the line with which an epoch begins, with its reason where one shows."""
        above, before = self.above, self.topics_hash
        is_next = self.epoch is not None and line.generation == self.epoch + 1
        self.epoch = line.generation
        self.topics_hash = line.attrs.get("metadata_hash", before)
        if line.reason is not None:
            return line
        if above is not None and above.event in REASONS_OF_CHANGES:
            is_joiner = above.event is Event.MEMBER_ADDED
            within_us = _EPOCH_OF_JOINER_US if is_joiner else _EPOCH_SOON_US
            if abs(line.ts_us - above.ts_us) <= within_us:
                return _epoch_of(above, line)
        is_other = None not in {before, self.topics_hash} and before != self.topics_hash
        if not (is_next and is_other):
            return line
        return replace(line, reason=RebalanceReason.TOPICS_CHANGED)

    def add_unlogged(self, found: list[tuple[TraceEvent, ...]], last: int | None) -> None:
        """Add the epochs of departures, where these make up all epochs up to the last."""
        if self.epoch is not None and last == self.epoch + len(self.unlogged):
            for epoch, index in enumerate(self.unlogged, self.epoch + 1):
                gone = found[index][0]
                begun = replace(gone, event=Event.EPOCH_BUMPED, generation=epoch)
                found[index] = gone, _epoch_of(gone, begun)
                self.above = None if self.above is gone else self.above
            self.epoch = last
        self.unlogged.clear()


def _epoch_of(member: TraceEvent, line: TraceEvent) -> TraceEvent:
    """The line of an epoch with the member that is its cause."""
    return replace(
        line,
        reason=REASONS_OF_CHANGES[member.event],
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
    )


def with_epoch_causes(lines: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return a coordinator's events, of which each epoch has its reason where a log shows one.

    A broker logs who came or went in the line above that of the epoch. Where no such line is there
    and the hash of the topics is another than in the epoch before, they changed, or the wish for
    them. When a member of a streams group goes, the epoch has no line of its own: it is added where
    the next line of a target or an epoch shows that it began.

    Source: kafka 4.4, GroupMetadataManager.consumerGroupHeartbeat, streamsGroupFenceMember.
    """
    groups: defaultdict[tuple[str | None, int], _Epochs] = defaultdict(_Epochs)
    found: list[tuple[TraceEvent, ...]] = []
    for line in lines:
        group = groups[line.group_id, line.incarnation]
        told = line
        if line.event is Event.EPOCH_BUMPED:
            group.add_unlogged(found, None if line.generation is None else line.generation - 1)
            told = group.begun(line)
        elif line.event is Event.TARGET_COMPUTED:
            group.add_unlogged(found, line.generation)
            group.epoch = line.generation
        elif line.event in _GOES and GROUP_TYPE in line.attrs and TEMPORARY not in line.attrs:
            group.unlogged.append(len(found))
        is_change = line.event in REASONS_OF_CHANGES and TEMPORARY not in line.attrs
        if is_change or line.event in EPOCH_LINES:
            group.above = told
        found.append((told,))
    return [each for event in found for each in event]


def settling_us(chain: list[Rebalance]) -> int | None:
    """Return how long a disturbance took to settle: from its first start to its last end.

    Returns:
        Microseconds; None when the start is unknown or the last rebalance never settled.
    """
    return _between_us(chain[0].start, chain[-1].settled)


def follows_up(rebalance: Rebalance, previous: Rebalance) -> bool:
    """Whether a rebalance only continues what the previous one began.

    Source: KIP-429; a cooperative member that gave partitions up rejoins at once.
    """
    start, ended = rebalance.start, previous.ended
    if rebalance.is_epoch:
        return False
    texts = [start.reason_text, start.client_reason] if start else []
    if any(FOLLOW_UP_REASON in (text or "") for text in texts):
        return True
    if start is not None and start.attrs.get(CAUSE_KIND) == GAVE_UP:
        return True
    if start is None or ended is None or previous.outcome is not RebalanceOutcome.STABLE:
        return False
    same_members = rebalance.members is not None and rebalance.members == previous.members
    protocol = rebalance.join.protocol_name if rebalance.join else None
    # A broker log names no protocol; a member that rejoins by itself shows the same.
    cooperative = rebalance.reason in _REJOINS if protocol is None else is_cooperative(protocol)
    return same_members and cooperative and start.ts_us - ended.ts_us <= FOLLOW_UP_US


def is_close(rebalance: Rebalance, previous: Rebalance) -> bool:
    """Whether a rebalance belongs to the same disturbance as the previous one."""
    if rebalance.start is None:
        return False
    before = previous.ended or previous.first_line
    return rebalance.start.ts_us - before.ts_us < CHAIN_GAP_US


def _ms(line: TraceEvent | None) -> int | None:
    return None if line is None else line.ts_us // 1000


def _between_us(first: TraceEvent | None, last: TraceEvent | None) -> int | None:
    return None if first is None or last is None else last.ts_us - first.ts_us
