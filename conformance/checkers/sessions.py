"""I6: the session timer removes no living member."""

from dataclasses import dataclass, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History, Tenancy

ALIVE = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
"""Answers to a heartbeat that restart the session timer."""


@dataclass(slots=True)
class _Session:
    """One member's session timer as the trace shows it."""

    timeout_ms: int | None = None
    armed_by: TraceEvent | None = None
    armed_timeout_ms: int | None = None

    def arm(self, event: TraceEvent) -> None:
        """Restart the timer with the timeout in force."""
        self.armed_by = event
        self.armed_timeout_ms = self.timeout_ms


@dataclass(slots=True)
class _Sessions:
    """The session timers of one tenancy."""

    tenancy: Tenancy
    timeouts_ms: dict[str, int]
    """Member id -> its session timeout, over all tenancies of the group."""
    by_member: dict[str, _Session] = field(default_factory=dict)
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        if event.event is Event.JOIN_COMPLETE:
            for session in self.by_member.values():
                session.arm(event)
        if not event.member_id:
            return
        if event.session_timeout_ms is not None:
            self.timeouts_ms[event.member_id] = event.session_timeout_ms
        session = self.by_member.setdefault(event.member_id, _Session())
        session.timeout_ms = self.timeouts_ms.get(event.member_id)
        match event.event:
            case Event.HEARTBEAT if event.error_code in ALIVE:
                self.judged += 1
                session.arm(event)
            case Event.MEMBER_FAILED:
                self._failed(event, session)
            case Event.MEMBER_LEFT | Event.MEMBER_KICKED:
                del self.by_member[event.member_id]
            case _:
                pass

    def _failed(self, event: TraceEvent, session: _Session) -> None:
        del self.by_member[event.member_id or ""]
        armed, timeout_ms = session.armed_by, session.armed_timeout_ms
        if armed is None or timeout_ms is None:
            return
        self.judged += 1
        # Coordinators count whole milliseconds.
        silent_ms = event.ts_us // 1_000 - armed.ts_us // 1_000
        if silent_ms >= timeout_ms:
            return
        self.violations.append(
            Violation(
                invariant="I6",
                at_us=event.ts_us,
                group_id=self.tenancy.group_id,
                message=f"{event.member_id} was removed by its session timer "
                f"{silent_ms} ms after its last sign of life; "
                f"its session is {timeout_ms} ms",
                evidence=(armed.seq, event.seq),
            )
        )


def judge(history: History) -> Findings:
    """Check that no member is removed by its session timer within its session of a heartbeat."""
    judged = 0
    violations: list[Violation] = []
    timeouts_ms: dict[str, dict[str, int]] = {}
    for tenancy in history.tenancies:
        sessions = _Sessions(tenancy, timeouts_ms.setdefault(tenancy.group_id, {}))
        for event in tenancy.events:
            sessions.take(event)
        judged += sessions.judged
        violations += sessions.violations
    return Findings(judged, tuple(violations))


NO_HEALTHY_EVICTION = Checker(
    invariant="I6",
    name="no-healthy-eviction",
    title="no eviction of healthy members",
    judge=judge,
)
