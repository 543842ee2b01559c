"""Compares the source with the core; only rows that the source determines count."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.course import Course
from coordinator_sim.replay.report import KINDS, RunFigures, Tally
from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import LINE_SKEW_MS, episodes_of
from coordinator_sim.trace.rebalances import Episode, Rebalance, RebalanceOutcome
from coordinator_sim.trace.window import ALWAYS, Window, clock

_ANSWER_COLUMNS: Final = (
    "error_code",
    "generation",
    "leader_id",
    "member_id",
    "protocol_name",
    "members",
    "assignment",
)
_REMOVALS: Final = frozenset({Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_DEPARTURES: Final = frozenset({Event.MEMBER_FAILED, Event.MEMBER_LEFT, Event.MEMBER_KICKED})
_ALIKE: Final = frozenset(
    {
        # Up to 2.5 a broker logs both in the same words, and seldom names the leader.
        (RebalanceReason.METADATA_CHANGED, RebalanceReason.LEADER_REJOIN),
        (RebalanceReason.LEADER_REJOIN, RebalanceReason.METADATA_CHANGED),
        # Old records and forks of Kafka log a new member's join as a rejoin.
        (RebalanceReason.MEMBER_REJOIN, RebalanceReason.LEADER_REJOIN),
        (RebalanceReason.MEMBER_REJOIN, RebalanceReason.METADATA_CHANGED),
    }
)


def compare(
    episode: Episode, replayed: list[TraceEvent], window: Window = ALWAYS
) -> dict[str, Tally]:
    """Return the tallies of what lies within a window of one episode, by kind."""
    mine = {rebalance.old_generation: rebalance for rebalance in rebalances_of(replayed)}
    tallies = compare_pairs(
        [(theirs, mine.get(theirs.old_generation)) for theirs in episode.rebalances],
        episode.lines,
        window,
    )
    _count_death(episode, replayed, tallies["transitions"], window)
    return tallies


def compare_pairs(
    pairs: list[tuple[Rebalance, Rebalance | None]],
    lines: Sequence[TraceEvent] = (),
    window: Window = ALWAYS,
) -> dict[str, Tally]:
    """Return the tallies of rebalances within a window.

    Args:
        pairs: Each with the core's, or None without one.
        lines: Lines of the source that their positions count; empty without any.
        window: The time that counts.
    """
    tallies = {kind: Tally() for kind in KINDS}
    for theirs, mine in pairs:
        if window.holds(theirs.first_line.ts_us):
            above = lines[theirs.position - 1] if lines and theirs.position else None
            _Row(theirs, mine, tallies, above).count()
    return tallies


def compare_answers(
    recorded: dict[int, TraceEvent], replayed: dict[int, TraceEvent], window: Window = ALWAYS
) -> dict[str, Tally]:
    """Return the tallies of answers within a window by group.

    Args:
        recorded: The trace's answers by the position of the request.
        replayed: The core's.
        window: The time that counts.
    """
    tallies: dict[str, Tally] = {}
    for position, theirs in recorded.items():
        tally = tallies.setdefault(theirs.group_id or "", Tally())
        if window.holds(theirs.ts_us):
            tally.row(_answer_difference(theirs, replayed.get(position)))
    return tallies


def _answer_difference(theirs: TraceEvent, mine: TraceEvent | None) -> str | None:
    """Return how an answer differs from the recorded one; None for an equal one."""
    place = f"{clock(theirs.ts_us // 1000)}, {theirs.event.value} to {theirs.member_id}"
    if mine is None:
        return f"{place}: the core does not answer"
    for name in _ANSWER_COLUMNS:
        told, done = getattr(theirs, name), getattr(mine, name)
        if (told or None) != (done or None):
            return f"{place}: {name} is {_shown(told)}, the core's {_shown(done)}"
    if theirs.ts_us // 1000 != mine.ts_us // 1000:
        return f"{place}: the core answers at {clock(mine.ts_us // 1000)}"
    return None


def _shown(value: object) -> str:
    return value.name if isinstance(value, ErrorCode) else str(value)


def rebalances_of(events: list[TraceEvent]) -> list[Rebalance]:
    """Return the rebalances in a coordinator's own events, in order."""
    lines = [event for event in events if event.group_id is not None]
    if not lines:
        return []
    return [
        rebalance
        for episode in episodes_of(lines[0].group_id or "", lines)
        for rebalance in episode.rebalances
    ]


def figures(
    events: list[TraceEvent],
    course: Course,
    sharing: SharingCosts | None = None,
    windows: Sequence[tuple[int, int]] = (),
    shown: Window = ALWAYS,
) -> RunFigures:
    """Return the figures of a run.

    Args:
        events: Events of the coordinator.
        course: Who was a member, and who was away.
        sharing: Costs of sharing the work out, where the work is known.
        windows: Windows of time, milliseconds, to tell what began within each of them.
        shown: The time that counts: of rebalances their start, of absences their end.
    """
    rebalances = [each for each in rebalances_of(events) if shown.holds(each.first_line.ts_us)]
    absences = [each for each in course.absences if shown.holds_ms(each.until_ms)]
    outcomes: dict[str, int] = {}
    for rebalance in rebalances:
        name = rebalance.outcome.value
        outcomes[name] = outcomes.get(name, 0) + 1
    return RunFigures(
        rebalances=len(rebalances),
        last_generation=max((each.generation or 0 for each in rebalances), default=0),
        join_ms=sum(each.join_us or 0 for each in rebalances) // 1000,
        rebalancing_ms=sum(each.length_us or 0 for each in rebalances) // 1000,
        removed=sum(event.event in _REMOVALS and shown.holds(event.ts_us) for event in events),
        unnoticed_ms=sum(each.length_ms for each in absences if each.is_dead),
        outcomes=dict(sorted(outcomes.items())),
        returns=sum(map(shown.holds_ms, course.returns_ms)),
        away_ms=sum(each.length_ms for each in absences if not each.is_dead),
        sharing=sharing,
        within_ms=tuple(
            sum(
                each.length_us or 0
                for each in rebalances
                if from_ms <= each.first_line.ts_us // 1000 < to_ms
            )
            // 1000
            for from_ms, to_ms in windows
        ),
    )


class _Row:
    """One rebalance of the source paired with the core's; None when the core has none.

    A departure and what follows it in the same call are logged by two lines, and a busy broker
    writes the second one late: the core may be at the time of either.

    Args:
        above: Line above its first one.

    Source:
        kafka 4.4, GroupMetadataManager.expireClassicGroupMemberHeartbeat,
        removeMemberAndUpdateClassicGroup.
    """

    def __init__(
        self,
        theirs: Rebalance,
        mine: Rebalance | None,
        tallies: dict[str, Tally],
        above: TraceEvent | None,
    ) -> None:
        self._theirs = theirs
        self._lines = [*([] if above is None else [above]), *theirs.lines]
        self._mine = mine
        self._tallies = tallies
        at_ms = theirs.first_line.ts_us // 1000
        self._place = f"{clock(at_ms)}, generation {theirs.old_generation}"

    def count(self) -> None:
        """Add the row to the tallies."""
        theirs = self._theirs
        done = theirs.join or theirs.sync or theirs.empty
        is_done = _is_told(done)
        self._judge("rebalances", self._start(), is_told=_is_told(theirs.start))
        self._judge("generations", self._generation(), is_told=is_done)
        is_counted = theirs.members is not None and (done is None or is_done)
        self._judge("members", self._members(), is_told=is_counted)
        is_over = theirs.outcome not in {RebalanceOutcome.OPEN, RebalanceOutcome.SUPERSEDED}
        is_seen = theirs.settled is None or _is_told(theirs.settled)
        self._judge("outcomes", self._outcome(), is_told=is_over and is_seen)
        self._judge("leaders", self._leader(), is_told=theirs.leader_id is not None)
        for name in ("start", "join", "sync", "empty", "unload"):
            line: TraceEvent | None = getattr(theirs, name)
            if line is not None:
                self._judge("transitions", self._transition(name, line), is_told=_is_told(line))

    def _judge(self, kind: str, difference: str | None, *, is_told: bool) -> None:
        tally = self._tallies[kind]
        if is_told:
            tally.row(None if difference is None else f"{self._place}: {difference}")
        elif self._mine is not None:
            tally.assumed += 1

    def _start(self) -> str | None:
        theirs, mine = self._theirs, self._mine
        if mine is None or mine.start is None:
            return "the core does not rebalance"
        if theirs.start is not None and self._is_apart(theirs.start, mine.start):
            return f"the core rebalances at {clock(mine.start_ms or 0)}"
        told, done = theirs.reason, mine.reason
        if told in {done, RebalanceReason.UNKNOWN} or (told, done) in _ALIKE:
            return None
        return f"the reason is {told.value}, the core's {done.value}"

    def _generation(self) -> str | None:
        theirs, mine = self._theirs, self._mine
        if mine is None or mine.generation is None:
            return f"the core does not reach generation {theirs.generation}"
        if mine.generation != theirs.generation:
            return f"generation {theirs.generation} is {mine.generation} in the core"
        if (theirs.empty is None) != (mine.empty is None):
            return "the core's group is empty" if mine.empty else "the core's group has members"
        if _apart(theirs.join_done_ms, mine.join_done_ms):
            return f"the core's join phase ends at {clock(mine.join_done_ms or 0)}"
        return None

    def _members(self) -> str | None:
        counted = self._mine.members if self._mine is not None else None
        if counted == self._theirs.members:
            return None
        return f"{self._theirs.members} members, in the core {counted}"

    def _outcome(self) -> str | None:
        outcome = self._mine.outcome if self._mine is not None else None
        if outcome is self._theirs.outcome:
            return None
        name = "none" if outcome is None else outcome.value
        return f"the outcome is {self._theirs.outcome.value}, the core's {name}"

    def _leader(self) -> str | None:
        leader = self._mine.leader_id if self._mine is not None else None
        if leader == self._theirs.leader_id:
            return None
        return f"{self._theirs.leader_id} leads, in the core {leader}"

    def _transition(self, name: str, line: TraceEvent) -> str | None:
        other: TraceEvent | None = getattr(self._mine, name) if self._mine is not None else None
        if other is None:
            return f"no {line.event.value} in the core"
        if self._is_apart(line, other):
            return f"{line.event.value} is at {clock(other.ts_us // 1000)} in the core"
        return None

    def _is_apart(self, line: TraceEvent, other: TraceEvent) -> bool:
        """Whether a line and the core's are further apart than two lines of one call may be."""
        at_ms, other_ms = line.ts_us // 1000, other.ts_us // 1000
        called = self._departure_before(line)
        is_late = called is not None and called.ts_us // 1000 - LINE_SKEW_MS <= other_ms < at_ms
        return not is_late and _apart(at_ms, other_ms)

    def _departure_before(self, line: TraceEvent) -> TraceEvent | None:
        """Return the line of the departure whose call wrote this line, too; None without one."""
        place = next(n for n, each in enumerate(self._lines) if each is line)
        above = self._lines[place - 1] if place else line
        if line.event is Event.PREPARE_REBALANCE:
            is_same = above.event in _DEPARTURES and above.member_id == line.member_id
            return above if is_same else None
        if line.event is not Event.GROUP_EMPTY:
            return None
        if above.event is Event.PREPARE_REBALANCE and not _apart(
            line.ts_us // 1000, above.ts_us // 1000
        ):
            return self._departure_before(above)
        return above if above.event in _DEPARTURES else None


def _is_told(line: TraceEvent | None) -> bool:
    """Whether the source tells this, rather than that it follows from what it tells."""
    return line is not None and line.confidence == 1


def _apart(theirs_ms: int | None, mine_ms: int | None) -> bool:
    """Whether two times differ by more than lines of one event may."""
    if theirs_ms is None:
        return False
    return mine_ms is None or abs(theirs_ms - mine_ms) > LINE_SKEW_MS


def _count_death(
    episode: Episode, replayed: list[TraceEvent], tally: Tally, window: Window
) -> None:
    for line in episode.lines:
        if line.event is Event.GROUP_DEAD and window.holds(line.ts_us):
            died = any(event.event is Event.GROUP_DEAD for event in replayed)
            place = f"{clock(line.ts_us // 1000)}: "
            tally.row(None if died else place + "the core's group is not Empty, so does not die")
