"""Rows of tables about rebalances and generations of one group."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.cost_sums import storms_in
from coordinator_sim.replay.costs import RebalanceCost, place_of
from coordinator_sim.replay.findings import findings_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.trace.client_reasons import CAUSE
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import NumberedRebalance, Rebalance, RebalanceOutcome
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group import Group

Row = dict[str, Any]
END_KINDS: Final = {
    Event.LEAVE_REQ: "LEFT",
    Event.MEMBER_LEFT: "LEFT",
    Event.MEMBER_FAILED: "FAILED",
    Event.MEMBER_KICKED: "KICKED",
    Event.MEMBER_FENCED: "FENCED",
    Event.PENDING_EXPIRED: "FAILED",
}
"""How a member ends, by the event that tells."""
REJOINED: Final = "JOINED"
LOCKSTEP_MEMBERS: Final = 3
"""Smallest group judged for lockstep: two members may well meet by chance."""
LOCKSTEP_US: Final = 1_000
"""One millisecond: simultaneous in an exact world; processes of a real cluster never are."""
_TARGET: Final = Event.TARGET_COMPUTED
"""A generation of a consumer group is a target: it counts from then on."""
_TELL_GENERATIONS: Final = frozenset(
    {Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_STABLE, Event.GROUP_EMPTY, _TARGET}
)


def rebalance_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `rebalances`."""
    storms = storm_numbers(group.causes)
    for told, cost in zip(group.rebalances, group.causes, strict=True):
        yield {**_rebalance(told), **_cause(cost), "storm_no": storms.get(cost.number, 0)}


def _cause(cost: RebalanceCost) -> Row:
    return {
        "trigger": cost.trigger,
        "trigger_client": cost.client,
        "root_no": cost.root,
        "cause_confidence": cost.confidence,
        "initial_ms": float(cost.initial_ms),
        "dead_ms": float(cost.dead_ms),
        "slow_ms": float(cost.slow_ms),
        "restart": cost.restart,
        "deploy_no": cost.deploy,
        "client_kind": cost.client_kind.value,
        "client_cause": cost.client_cause,
    }


def _rebalance(numbered: NumberedRebalance) -> Row:
    rebalance = numbered.rebalance
    start = rebalance.start
    from_empty = start is not None and start.state_from is GroupState.EMPTY
    return {
        C.REBALANCE_NO: numbered.number,
        C.INCARNATION: rebalance.first_line.incarnation,
        "seen_us": rebalance.first_line.ts_us,
        C.START_US: _us(start),
        "old_generation": rebalance.old_generation,
        C.GENERATION: rebalance.generation,
        C.REASON: rebalance.reason.value,
        "reason_text": None if start is None else start.reason_text,
        "client_reason": None if start is None else start.client_reason,
        "first_cause": None if start is None else start.attrs.get(CAUSE),
        C.JOIN_DONE_US: _us(rebalance.join),
        C.SYNC_US: _us(rebalance.sync),
        "empty_us": _us(rebalance.empty),
        C.END_US: _us(rebalance.ended),
        C.MEMBERS: rebalance.members,
        C.PROTOCOL_NAME: rebalance.protocol_name,
        C.OUTCOME: rebalance.outcome.value,
        "join_ms": _as_ms(rebalance.join_us),
        "sync_ms": _as_ms(rebalance.sync_us),
        "total_ms": _as_ms(rebalance.length_us),
        "is_exact": rebalance.is_exact,
        "initial_delay": not rebalance.is_epoch
        and (from_empty or (start is not None and rebalance.old_generation == 0)),
        C.FOLLOWUP: numbered.follows is not None,
        "chain_no": numbered.chain,
        "source_refs": _source_refs(rebalance),
    }


def _source_refs(rebalance: Rebalance) -> list[str]:
    lines = (rebalance.first_line, rebalance.start, rebalance.join, rebalance.ended)
    return list(dict.fromkeys(place_of(line) for line in lines if line is not None))


def _us(line: TraceEvent | None) -> int | None:
    return None if line is None else line.ts_us


def _as_ms(duration_us: int | None) -> float | None:
    return None if duration_us is None else duration_us / 1000


def generation_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `generations`: with or without assignments, in order.

    An epoch of a consumer group that the next one overtakes has no target, and nothing is lost.
    """
    lives: defaultdict[int, defaultdict[int, list[TraceEvent]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for line in group.lines:
        if line.event in _TELL_GENERATIONS and line.generation is not None:
            lives[line.incarnation][line.generation].append(line)
    ended: dict[tuple[int, int | None], int] = {}
    for each in group.rebalances:
        start = each.rebalance.start
        if start is not None:
            key = (each.rebalance.first_line.incarnation, each.rebalance.old_generation)
            ended[key] = min(start.ts_us, ended.get(key, start.ts_us))
    for incarnation, generations in sorted(lives.items()):
        has_targets = any(line.event is _TARGET for lines in generations.values() for line in lines)
        before = None
        for number, lines in sorted(generations.items()):
            skipped = 0 if before is None or has_targets else number - before - 1
            yield _generation(incarnation, number, lines, ended, skipped)
            before = number


def _generation(
    incarnation: int,
    number: int,
    lines: list[TraceEvent],
    ended: dict[tuple[int, int | None], int],
    skipped: int,
) -> Row:
    def first_us(*events: Event) -> int | None:
        return min((line.ts_us for line in lines if line.event in events), default=None)

    def most(name: str) -> Any:  # noqa: ANN401 - a text or a number
        told = (getattr(line, name) for line in lines)
        return max((each for each in told if each is not None), default=None)

    sync_us = first_us(Event.SYNC_LEADER, _TARGET)
    until_us = ended.get((incarnation, number))
    return {
        C.INCARNATION: incarnation,
        C.GENERATION: number,
        C.JOIN_DONE_US: first_us(Event.JOIN_COMPLETE, _TARGET),
        C.SYNC_US: sync_us,
        "leader_id": most("leader_id"),
        C.PROTOCOL_NAME: most("protocol_name"),
        C.MEMBERS: most("members"),
        "static_members": most("static_members"),
        "until_us": first_us(Event.GROUP_EMPTY) if until_us is None else until_us,
        "stored": sync_us is not None,
        "ghosts_before": skipped,
    }


def convergence_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `convergence`: rebalances less than 30 s apart are one disturbance."""
    chains: defaultdict[int, list[Rebalance]] = defaultdict(list)
    for each in group.rebalances:
        chains[each.chain].append(each.rebalance)
    for number, own in chains.items():
        start_us, last = _us(own[0].start), own[-1]
        settled_us = _us(last.empty if last.sync is None else last.sync)
        took_ms = None
        if start_us is not None and settled_us is not None:
            took_ms = (settled_us - start_us) / 1000
        yield {
            "chain_no": number,
            "rebalance_count": len(own),
            C.START_US: start_us,
            "settled_us": settled_us,
            "convergence_ms": took_ms,
        }


class _Rounds:
    """The join phases of a group's rebalances that have a start."""

    def __init__(self, rebalances: Iterable[NumberedRebalance]) -> None:
        rounds: dict[int, tuple[int, TraceEvent | None]] = {}
        for each in rebalances:
            start, until = each.rebalance.start, each.rebalance.join or each.rebalance.ended
            if start is not None:
                rounds[start.ts_us] = (each.number, until)
        self._starts = sorted(rounds)
        self._rounds = rounds

    def at(self, at_us: int) -> tuple[int, int] | None:
        """Return number and start of the rebalance whose join phase an instant is in."""
        place = bisect_right(self._starts, at_us) - 1
        if place < 0:
            return None
        start_us = self._starts[place]
        number, until = self._rounds[start_us]
        return (number, start_us) if until is not None and at_us <= until.ts_us else None


def wait_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `waits`: old members that the join phase of a rebalance waited for.

    A member that was in the group when the rebalance began is waited for until its JoinGroup
    request, or until it is removed or leaves. A member that came in later is not waited for, nor
    one whose own request began the rebalance. Of a group without any request nothing is known.
    """
    if not any(line.event is Event.JOIN_REQ for line in group.lines):
        return
    rounds = _Rounds(group.rebalances)
    came: dict[tuple[int, int, str], tuple[int, Event]] = {}
    for line in group.lines:
        if line.member_id and (line.event is Event.JOIN_REQ or line.event in END_KINDS):
            found = rounds.at(line.ts_us)
            if found is not None:
                key = (*found, line.member_id)
                at_us, event = came.get(key, (line.ts_us, line.event))
                came[key] = (min(at_us, line.ts_us), event)
    for (number, start_us, member_id), (at_us, event) in came.items():
        seen = group.seen.get(member_id)
        if at_us > start_us and seen is not None and seen[1] < start_us:
            yield {
                C.REBALANCE_NO: number,
                C.MEMBER_ID: member_id,
                C.MEMBER_KEY: seen[0],
                C.FROM_US: start_us,
                C.TO_US: at_us,
                "kind": END_KINDS.get(event, REJOINED),
            }


def is_lockstep(group: Group) -> bool:
    """Whether the members of a group act in the same millisecond.

    Members of a cluster start one after another, and rejoin when they have processed what they
    hold. Where all of a group's members first join within one millisecond, or all rejoin so in most
    of its rebalances, they work in step; an eager rebalance then seems to stop no member, and its
    times without an owner and stop times mean nothing. Follow-ups, and rebalances to which fewer
    than `LOCKSTEP_MEMBERS` came, do not count.
    """
    rounds = _Rounds(each for each in group.rebalances if each.follows is None)
    joins: defaultdict[int, dict[str, tuple[int, str]]] = defaultdict(dict)
    for line in group.lines:
        # A first join makes the rebalance that it belongs to, so both have the same instant.
        found = rounds.at(line.ts_us) if line.event is Event.JOIN_REQ else None
        if found is not None:
            who, told = line.client_id or line.member_id or "", (line.ts_us, line.member_id or "")
            at_us, first_id = joins[found[0]].get(who, told)
            joins[found[0]][who] = (min(at_us, told[0]), min(first_id, told[1]))
    starts_aligned, compared, aligned = False, 0, 0
    for number, own in joins.items():
        times = [at_us for at_us, first_id in own.values() if number == 1 or first_id]
        if len(times) < LOCKSTEP_MEMBERS:
            continue
        is_close = max(times) - min(times) <= LOCKSTEP_US
        if number == 1:
            starts_aligned = is_close
        else:
            compared += 1
            aligned += is_close
    return starts_aligned or aligned * 2 > compared


def cost_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `rebalance_costs`."""
    for each in group.charges:
        yield {
            C.REBALANCE_NO: each.cost.number,
            "day": each.day,
            "seen_us": each.seen_us,
            C.END_US: each.end_us,
            "deploy_no": each.cost.deploy,
            "storm_no": each.storm,
            "trigger": each.cost.trigger,
            "trigger_client": each.cost.client,
            C.MEMBERS: each.cost.members,
            "rebalancing_us": each.rebalancing_us,
            "paused_us": each.paused_us,
            "stopped_us": each.stopped_us,
            "unowned_us": each.unowned_us,
            "moved": each.moved,
            "voluntary": each.voluntary,
            "needless": each.needless,
            "reprocessed": each.reprocessed,
        }


def storm_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `storms`, of the rebalances in the window."""
    window = group.facts.window
    for storm in storms_in(each for each in group.charges if window.holds(each.seen_us)):
        row = msgspec.structs.asdict(storm)
        yield {**row, **msgspec.structs.asdict(row["sums"])}


def finding_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `findings`, without their rank in the trace."""
    costs = [each.cost for each in group.charges]
    for found in findings_of(group.group_id, costs, group.facts.window):
        yield msgspec.structs.asdict(found)


def quality_rows(group: Group) -> Iterator[Row]:
    """Yield what a group adds to `data_quality`, of the whole trace."""
    rebalances = [each.rebalance for each in group.rebalances]
    yield {
        "rebalances": len(rebalances),
        "unknown_reasons": sum(each.reason.value == "UNKNOWN" for each in rebalances),
        "open_rebalances": sum(each.outcome is RebalanceOutcome.OPEN for each in rebalances),
        "ghost_generations": sum(row["ghosts_before"] for row in generation_rows(group)),
        "is_lockstep": is_lockstep(group),
    }
