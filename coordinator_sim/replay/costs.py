"""Cause and cost of each rebalance of a group: its trigger and root, and what it waited for.

Works from the events alone, without a replay: `explain`, `findings` and the reports share it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median_low
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind, kind_of_lines
from coordinator_sim.replay.names import members_of
from coordinator_sim.replay.restarts import Passage, Restart, client_of, restarts_in
from coordinator_sim.trace.client_reasons import CAUSE
from coordinator_sim.trace.epoch_groups import DELAY
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.group_shape import DEPLOY_GAP_MS
from coordinator_sim.trace.history import LINE_SKEW_MS, rebalances_of
from coordinator_sim.trace.rebalances import (
    CAUSE_KIND,
    NumberedRebalance,
    Rebalance,
    RebalanceOutcome,
)

POLL_TIMEOUT: Final = "poll timeout"
COORDINATOR_MOVED: Final = "coordinator moved"
REJOINED: Final = "rejoined"
CAME: Final = "came back"
WENT: Final = "went"
"""Parts of a restart that a rebalance may be: client ids show who it was."""
REPLACING: Final = "came for another"
REPLACED: Final = "went for another"
"""The same where time alone pairs who came with who went."""

_POLL_WORDS: Final = (
    "poll timeout has expired",
    "maximum poll interval",
    "max.poll.interval.ms exceeded",
    "poll expired",
)
"""In the reason of a client that leaves because it did not poll in time, in any library."""
_RESTART_MS: Final = 600_000
"""Longest time away that counts as a restart."""
_MOST_RESTARTS: Final = 2
"""More restarts a member are no deploy: a loop that starts one consumer after the other."""
_UNTOLD_SESSION_MS: Final = 45_000
"""How long before its failure a member may have stopped, where no line tells."""
_GOES: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_TELLS_OF_POLLS: Final = frozenset({Event.MEMBER_LEFT, Event.PREPARE_REBALANCE})
_BY_NAME: Final = 0.9
_BY_TIME: Final = 0.6
_UNTOLD: Final = 0.3
_WORDS: Final = {
    RebalanceReason.MEMBER_JOINED: "joined",
    RebalanceReason.MEMBER_LEFT: "left",
    RebalanceReason.MEMBER_FAILED: "failed",
    RebalanceReason.LEADER_REJOIN: REJOINED,
    RebalanceReason.METADATA_CHANGED: REJOINED,
    RebalanceReason.MEMBER_REJOIN: REJOINED,
    RebalanceReason.SYNC_TIMEOUT: "no sync",
    RebalanceReason.STATIC_PROTOCOL_CHANGE: "other assignors",
    RebalanceReason.STORE_ERROR: "not stored",
    RebalanceReason.OVER_CAPACITY: "over capacity",
    RebalanceReason.DOWNGRADE: "downgrade",
    RebalanceReason.REBALANCE_TIMEOUT: "too slow",
    RebalanceReason.TOPICS_CHANGED: "other topics",
    RebalanceReason.ASSIGNOR_CHANGED: "other assignors",
    RebalanceReason.TOPOLOGY_CHANGED: "other topology",
    RebalanceReason.SETTINGS_CHANGED: "other settings",
    RebalanceReason.TARGET_REFINED: "refined",
    RebalanceReason.PARTITIONS_INITIALIZED: "initialized",
    RebalanceReason.UNKNOWN: "unknown",
}


class RebalanceCost(Struct, frozen=True, kw_only=True):
    """Cause and cost of one rebalance; durations are in the unit that their names end with.

    Args:
        start_ms: Time of its first line.
        length_us: Duration; None when the start or the end is missing.
        trigger: What began it, in a word or two.
        client: Client id of the member that began it; empty where none is named.
        root: Number of the rebalance that it comes from in the end; its own for most.
        confidence: How sure trigger and root are, 0 to 1.
        initial_ms: Part of the join phase that was the initial delay of an empty group.
        dead_ms: Part of the join phase that waited for members that were then removed.
        slow_ms: Rest of the join phase: waiting for living members to rejoin.
        restart: Which part of a restart it is: `CAME`, `WENT`, `REPLACING`, `REPLACED`, or empty.
        deploy: Number of the rolling restart that it belongs to, from 1; 0 for none.
        line: Where its first line is, as file and line, or as the number of the event.
        client_cause: Kind of the first reason in the client's own log, as in `client_reasons`;
            empty where no client's log has one.
        client_kind: What the members of its group are.
        paused_us: Pauses of its members together; `charges` has them, None before it.
        stopped_us: Standstill of the group; None as above.
        is_bound: Whether these two are upper bounds, because no assignments are known.
    """

    number: int
    start_ms: int
    length_us: int | None
    trigger: str
    client: str
    root: int
    confidence: float
    initial_ms: int
    dead_ms: int
    slow_ms: int
    restart: str
    deploy: int
    members: int | None
    outcome: RebalanceOutcome
    is_follow_up: bool
    protocol_name: str | None
    line: str
    client_cause: str = ""
    client_kind: ClientKind = ClientKind.CONSUMER
    paused_us: int | None = None
    stopped_us: int | None = None
    is_bound: bool = False


def costs_of(group_id: str, lines: Sequence[TraceEvent]) -> list[RebalanceCost]:
    """Return the costs of a group's rebalances; `lines` are in line order, steadied."""
    return costs_of_rebalances(rebalances_of(group_id, lines), lines)


def costs_of_rebalances(
    told: Sequence[NumberedRebalance], lines: Iterable[TraceEvent]
) -> list[RebalanceCost]:
    """Return the costs of rebalances that were read already, and their group's lines."""
    if not told:
        return []
    return list(_Costs(told, lines).rows())


class _Costs:
    """Cause and cost of the rebalances of one group."""

    def __init__(self, told: Sequence[NumberedRebalance], lines: Iterable[TraceEvent]) -> None:
        self._told = told
        self._starts_ms = [each.rebalance.first_line.ts_us // 1000 for each in told]
        lines = list(lines)
        self._client_kind = kind_of_lines(lines)
        self._late_pollers = {
            self._number_at(line.ts_us // 1000) for line in lines if _left_for_polls(line)
        }
        passages = list(_passages(lines))
        self._restarts = restarts_in(passages, lambda _: _RESTART_MS)
        stops = [each for each in self._restarts if not self._is_late_poller(each)]
        self._deploys = _deploys(stops, _usual_members(told))
        self._usual_ms = _usual_join_ms(told)
        self._parts = self._parts_of_restarts()

    def rows(self) -> Iterator[RebalanceCost]:
        """Yield the cost of each rebalance, in order."""
        roots: dict[int, tuple[int, float]] = {}
        deploys: dict[int, int] = {}
        for place, told in enumerate(self._told):
            rebalance, number = told.rebalance, told.number
            part, restart = self._parts.get(number, ("", None))
            client = _client(rebalance) or ("" if restart is None else restart.gone.client)
            root, confidence = self._root(told, part, restart, roots)
            roots[number] = root, confidence
            deploy = 0 if restart is None else self._deploys.get(restart.came.index, 0)
            if told.follows is not None:
                deploy = deploys.get(told.follows, 0)
            deploys[number] = deploy
            initial_ms, dead_ms, slow_ms = self._split(place)
            yield RebalanceCost(
                number=number,
                start_ms=self._starts_ms[place],
                length_us=rebalance.length_us,
                trigger=POLL_TIMEOUT if number in self._late_pollers else _trigger(told),
                client=client,
                root=root,
                confidence=confidence,
                initial_ms=initial_ms,
                dead_ms=dead_ms,
                slow_ms=slow_ms,
                restart=part,
                deploy=deploy,
                members=rebalance.members,
                outcome=rebalance.outcome,
                is_follow_up=told.follows is not None,
                protocol_name=rebalance.protocol_name,
                line=place_of(rebalance.first_line),
                client_cause=_client_cause(rebalance),
                client_kind=self._client_kind,
            )

    def _root(
        self,
        told: NumberedRebalance,
        part: str,
        restart: Restart | None,
        roots: dict[int, tuple[int, float]],
    ) -> tuple[int, float]:
        """Return the number of the root, and how sure it is."""
        known = told.rebalance.reason is not RebalanceReason.UNKNOWN
        confidence = told.rebalance.first_line.confidence if known else _UNTOLD
        if told.follows is not None:
            return roots[told.follows]
        if part not in {CAME, REPLACING} or restart is None:
            return told.number, confidence
        gone = self._number_at(restart.gone.line_ms)
        sure = _BY_NAME if restart.is_by_name else _BY_TIME
        return (gone if 0 < gone < told.number else told.number), confidence * sure

    def _parts_of_restarts(self) -> dict[int, tuple[str, Restart]]:
        """Return by number of a rebalance the restart that it is a part of."""
        parts: dict[int, tuple[str, Restart]] = {}
        for restart in self._restarts:
            went, came = (WENT, CAME) if restart.is_by_name else (REPLACED, REPLACING)
            parts.setdefault(self._number_at(restart.gone.line_ms), (went, restart))
            parts.setdefault(self._number_at(restart.came.line_ms), (came, restart))
        return parts

    def _is_late_poller(self, restart: Restart) -> bool:
        """Whether it is no restart, but a member that left because it had not polled in time."""
        return self._number_at(restart.gone.line_ms) in self._late_pollers

    def _number_at(self, at_ms: int) -> int:
        """Return the number of the rebalance that a line belongs to; 0 for one before the first."""
        return bisect_right(self._starts_ms, at_ms + LINE_SKEW_MS)

    def _split(self, place: int) -> tuple[int, int, int]:
        """Return the parts of a join phase: initial delay, waiting for the dead, and the rest."""
        rebalance = self._told[place].rebalance
        if rebalance.is_epoch:
            # Nobody waits for anybody until there is a target, save a streams group for its first.
            delay_ms = int(rebalance.join.attrs.get(DELAY, 0)) if rebalance.join else 0
            return min(delay_ms, _ms(rebalance.join_us) or 0), 0, 0
        join_ms = _ms(rebalance.join_us) or 0
        if _is_initial(self._told, place):
            return join_ms, 0, 0
        if not _is_held(rebalance):
            return 0, 0, join_ms
        rest_ms = min(join_ms, self._usual_ms)
        return 0, join_ms - rest_ms, rest_ms


def place_of(line: TraceEvent) -> str:
    """Return where a line is: file and line, or the number of the event in its trace."""
    return f"event {line.seq}" if line.source_ref is None else f"{line.source_ref}:{line.seq}"


def _passages(lines: Iterable[TraceEvent]) -> Iterator[Passage]:
    """Yield who comes and goes, each member once; static members keep to themselves."""
    seen: set[tuple[str, bool]] = set()
    index = 0
    for line in lines:
        comes = line.event is Event.MEMBER_ADDED or (
            line.event is Event.PREPARE_REBALANCE and line.reason is RebalanceReason.MEMBER_JOINED
        )
        goes = line.event in _GOES
        if line.group_instance_id is not None or not (comes or goes):
            continue
        at_ms = line.ts_us // 1000
        silent_ms = 0
        if line.event is Event.MEMBER_FAILED:
            silent_ms = line.session_timeout_ms or _UNTOLD_SESSION_MS
        for name in members_of(line):
            if name is not None and (name, comes) not in seen:
                seen.add((name, comes))
                index += 1
                client = line.client_id or client_of(name)
                yield Passage(at_ms - silent_ms, index, client, comes=comes, line_ms=at_ms)


def _deploys(restarts: list[Restart], members: int) -> dict[int, int]:
    """Return by passage the number of the rolling restart that it belongs to, from 1.

    A rolling restart restarts at least two members and half of the group, with no more than
    `DEPLOY_GAP_MS` between one and the next, and none of them many times.
    """
    found: dict[int, int] = {}
    run: list[Restart] = []
    number = 0
    ordered = sorted(restarts, key=lambda each: (each.came.line_ms, each.came.index))
    for restart, following in pairwise([*ordered, None]):
        if restart is None:
            continue
        run.append(restart)
        if following is not None and _follows_soon(restart, following):
            continue
        if max(2, (members + 1) // 2) <= len(run) <= _MOST_RESTARTS * max(2, members):
            number += 1
            found.update({each.came.index: number for each in run})
        run = []
    return found


def _follows_soon(restart: Restart, following: Restart) -> bool:
    return following.came.line_ms - restart.came.line_ms <= DEPLOY_GAP_MS


def _usual_members(told: Sequence[NumberedRebalance]) -> int:
    counts = [each.rebalance.members for each in told if each.rebalance.members]
    return median_low(counts) if counts else 0


def _usual_join_ms(told: Sequence[NumberedRebalance]) -> int:
    """Return the usual length of join phases that waited for nobody dead; 0 without any."""
    lengths = [
        _ms(each.rebalance.join_us) or 0
        for place, each in enumerate(told)
        if each.rebalance.join_us is not None
        and not _is_initial(told, place)
        and not _is_held(each.rebalance)
    ]
    return median_low(lengths) if lengths else 0


def _is_initial(told: Sequence[NumberedRebalance], place: int) -> bool:
    """Whether the group was empty before."""
    rebalance = told[place].rebalance
    if rebalance.is_epoch:
        return False
    if rebalance.old_generation == 0:
        return True
    previous = told[place - 1].rebalance if place else None
    return previous is not None and previous.outcome is RebalanceOutcome.EMPTY


def _is_held(rebalance: Rebalance) -> bool:
    """Whether the join phase ended with the removal of a member that it had waited for."""
    start_ms, removed_ms, joined = rebalance.start_ms, rebalance.removed_ms, rebalance.joined
    if start_ms is None or removed_ms is None or joined is None:
        return False
    at_end = abs(joined.ts_us // 1000 - removed_ms) <= LINE_SKEW_MS
    return at_end and removed_ms > start_ms + LINE_SKEW_MS


def _left_for_polls(line: TraceEvent) -> bool:
    """Whether a line tells that a member left because it had not polled in time."""
    if line.event not in _TELLS_OF_POLLS:
        return False
    cause = line.attrs.get(CAUSE) if line.reason is RebalanceReason.MEMBER_LEFT else None
    texts = line.client_reason, line.reason_text, cause
    return any(map(is_poll_timeout, texts))


def is_poll_timeout(reason: str | None) -> bool:
    """Whether a reason is that a client did not poll in time, in the words of any library."""
    return reason is not None and any(words in reason for words in _POLL_WORDS)


def _trigger(told: NumberedRebalance) -> str:
    rebalance = told.rebalance
    if "coordinator had moved" in told.resumed or "loaded again" in told.resumed:
        return COORDINATOR_MOVED
    return _WORDS[rebalance.reason]


def _client_cause(rebalance: Rebalance) -> str:
    return "" if rebalance.start is None else rebalance.start.attrs.get(CAUSE_KIND, "")


def _client(rebalance: Rebalance) -> str:
    """Return the client id of the first member that its first line names; empty without any."""
    if rebalance.start is None:
        return ""
    if rebalance.is_epoch and rebalance.start.client_id:
        return rebalance.start.client_id
    return next((client_of(name) for name in members_of(rebalance.start) if name), "")


def _ms(duration_us: int | None) -> int | None:
    return None if duration_us is None else duration_us // 1000
