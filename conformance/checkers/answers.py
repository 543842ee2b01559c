"""I3 and I5: that requests are answered in time, and with member ids that exist."""

from dataclasses import dataclass, field
from itertools import takewhile

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.bounds import parked_join_bound_ms, parked_sync_bound_ms
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import REMOVALS, Exchange, History, Tenancy

ANSWERED_ON_REMOVAL = frozenset({Event.JOIN_REQ})
"""Requests that are answered even when their member leaves; a parked SyncGroup is not."""
ANSWERING = {
    Event.JOIN_REQ: frozenset({Event.JOIN_COMPLETE}),
    Event.SYNC_REQ: frozenset({Event.GROUP_STABLE, Event.PREPARE_REBALANCE}),
}
"""Steps of a group that answer every parked request of a kind."""


def _judge_answers(history: History) -> Findings:
    judged = 0
    violations: list[Violation] = []
    for exchange in history.exchanges:
        due_us = _due_us(history, exchange)
        answered_us = None if exchange.response is None else exchange.response.ts_us
        if answered_us is None and (due_us >= history.ends_at_us or _is_excused(exchange, due_us)):
            continue
        judged += 1
        if answered_us is None or answered_us > due_us:
            violations.append(_unanswered(exchange, due_us))
    return Findings(judged, tuple(violations))


def _due_us(history: History, exchange: Exchange) -> int:
    """Return when the request has to be answered: within its bound, or by an answering step.

    An append of such a step may delay the answer until its commit times out.
    """
    timing = history.timing_of(exchange.tenancy.group_id)
    is_join = exchange.request.event is Event.JOIN_REQ
    bound_ms = parked_join_bound_ms(timing) if is_join else parked_sync_bound_ms(timing)
    due_us = exchange.request.ts_us + bound_ms * 1_000
    if exchange.response is not None:
        return due_us
    answering = ANSWERING[exchange.request.event]
    steps = (event.ts_us for event in exchange.after() if event.event in answering)
    step_us = next(steps, due_us)
    return min(due_us, step_us + timing.offsets_commit_timeout_ms * 1_000)


def _is_excused(exchange: Exchange, due_us: int) -> bool:
    """Whether the coordinator went away, the request was superseded, or its member left.

    Events after the answering step are no excuse.
    """
    ended_at_us = exchange.tenancy.ended_at_us
    if ended_at_us is not None and ended_at_us <= due_us:
        return True
    answering = ANSWERING[exchange.request.event]
    in_time = takewhile(
        lambda event: event.ts_us <= due_us and event.event not in answering, exchange.after()
    )
    return any(_excuses(event, exchange.request) for event in in_time)


def _excuses(event: TraceEvent, request: TraceEvent) -> bool:
    if not _is_same_member(event, request):
        return False
    if event.event in REMOVALS or event.event is Event.MEMBER_FENCED:
        return request.event not in ANSWERED_ON_REMOVAL
    return event.event is request.event


def _is_same_member(event: TraceEvent, request: TraceEvent) -> bool:
    """Whether both belong to one member: by its id, or by its instance id or its client."""
    if request.member_id:
        return event.member_id == request.member_id
    if request.group_instance_id is not None:
        return event.group_instance_id == request.group_instance_id
    return event.client_id is not None and event.client_id == request.client_id


def _unanswered(exchange: Exchange, due_us: int) -> Violation:
    request, response = exchange.request, exchange.response
    late = "was never answered" if response is None else "was answered too late"
    who = request.member_id or request.group_instance_id or request.client_id or "a new member"
    return Violation(
        invariant="I3",
        at_us=due_us,
        group_id=exchange.tenancy.group_id,
        message=f"{request.event.value} of {who} at {request.ts_us // 1_000} ms {late}: "
        f"it was due at {due_us // 1_000} ms",
        evidence=(request.seq,) if response is None else (request.seq, response.seq),
    )


@dataclass(slots=True)
class _StoredMembers:
    """The members of a group's last stored generation, which a load restores."""

    generation: int | None = None
    ids: dict[str, None] = field(default_factory=dict)

    def learn(self, event: TraceEvent) -> None:
        """Take an event of the group, from any coordinator."""
        if event.event in (Event.ASSIGNED, Event.EMPTY_ASSIGNMENT) and event.member_id:
            if event.generation != self.generation:
                self.generation = event.generation
                self.ids = {}
            self.ids[event.member_id] = None
        elif event.event is Event.STATIC_REPLACED and event.member_id:
            self.ids[event.member_id] = None
        elif event.event is Event.GROUP_EMPTY:
            self.ids = {}


class _IssuedIds:
    """The member ids that a group's coordinators issued or loaded, over all its tenancies."""

    def __init__(self) -> None:
        self._stored: dict[str, _StoredMembers] = {}

    def judge(self, tenancy: Tenancy) -> tuple[int, list[Violation]]:
        """Judge every id in the answers of one tenancy; tenancies come in trace order."""
        stored = self._stored.setdefault(tenancy.group_id, _StoredMembers())
        known = dict(stored.ids) if tenancy.is_loaded else {}
        # The loaded members were never named: the trace began after they joined.
        is_open = tenancy.is_loaded and not stored.ids
        judged = 0
        violations: list[Violation] = []
        for event in tenancy.events:
            self._learn(event, known)
            stored.learn(event)
            if not _carries_id(event) or (is_open and event.member_id not in known):
                continue
            judged += 1
            if event.member_id not in known:
                violations.append(_unknown_id(tenancy, event))
        return judged, violations

    @staticmethod
    def _learn(event: TraceEvent, known: dict[str, None]) -> None:
        if event.member_id is None:
            return
        if event.event in (Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED, Event.STATIC_REPLACED):
            known[event.member_id] = None
        elif event.event in REMOVALS or event.event is Event.PENDING_EXPIRED:
            known.pop(event.member_id, None)


def _carries_id(event: TraceEvent) -> bool:
    """Whether the event is a coordinator's answer with an id; a line of a log has none."""
    if event.correlation_id is None:
        return False
    if event.event is Event.JOIN_RESP:
        return event.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
    return event.event is Event.SYNC_RESP and event.error_code is ErrorCode.NONE


def _unknown_id(tenancy: Tenancy, event: TraceEvent) -> Violation:
    return Violation(
        invariant="I5",
        at_us=event.ts_us,
        group_id=tenancy.group_id,
        message=f"{event.event.value} carries member id {event.member_id!r}, "
        "which the coordinator did not issue",
        evidence=(event.seq,),
    )


def _judge_ids(history: History) -> Findings:
    ids = _IssuedIds()
    judged = 0
    violations: list[Violation] = []
    for tenancy in history.tenancies:
        counted, found = ids.judge(tenancy)
        judged += counted
        violations += found
    return Findings(judged, tuple(violations))


ANSWERED_IN_TIME = Checker(
    invariant="I3",
    name="parked-request-answered",
    title="answers to parked requests",
    judge=_judge_answers,
)
IDS_ARE_ISSUED = Checker(
    invariant="I5",
    name="member-id-issued",
    title="issued member ids",
    judge=_judge_ids,
)
