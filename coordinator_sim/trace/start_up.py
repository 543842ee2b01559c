"""The start of each Connect worker of a trace, from its process to its first assignment, in phases.

Phases are those in which a worker waits: for its process and plugins, for each internal topic that
it reads to the end, for its coordinator, and for the join.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent

PROCESS: Final = "process"
DISCOVERY: Final = "discovery"
JOIN: Final = "join"
LONG_READING_US: Final = 1_000_000
"""Time from which reading a topic counts as long."""
_READING: Final = "reading"
_NO_READING: Final = 1 << 62
_US_PER_MS: Final = 1_000
_US_PER_S: Final = 1_000_000


class Phase(Struct, frozen=True):
    """One phase of a start.

    Args:
        name: `process`, `discovery`, `join`, or the topic that was read.
        took_us: Duration of the phase.
        records: Number of records, where a topic was read.
    """

    name: str
    took_us: int
    records: int | None = None


class StartUp(Struct, frozen=True):
    """The start of one incarnation of a worker.

    Args:
        client_id: The worker.
        began_us: When its process began.
        phases: Phases in order of time; without `join` where it did not get that far.
    """

    client_id: str
    began_us: int
    phases: tuple[Phase, ...]

    @property
    def took_us(self) -> int:
        """Total duration of all phases."""
        return sum(phase.took_us for phase in self.phases)

    @property
    def has_long_reading(self) -> bool:
        """Whether reading some topic took long."""
        return any(
            phase.took_us >= LONG_READING_US for phase in self.phases if phase.records is not None
        )


def reading_us(event: TraceEvent) -> int:
    """Return the duration of an event's first reading; infinite for any other event."""
    if event.event is not Event.LIFECYCLE or event.attrs.get("phase") != _READING:
        return _NO_READING
    return int(event.attrs["took_ms"]) * _US_PER_MS


class _Starting:
    """A start in progress."""

    def __init__(self, client_id: str, began_us: int) -> None:
        self.client_id = client_id
        self.began_us = self.last_us = began_us
        self.member_ids: dict[str, None] = {}
        self.phases: list[Phase] = []

    def end_phase(self, name: str, at_us: int) -> None:
        """Add a phase that lasted since the last one ended."""
        self.phases.append(Phase(name, at_us - self.last_us))
        self.last_us = at_us

    def read(self, event: TraceEvent) -> None:
        """Add the reading of a topic; the time before the first one was the process."""
        attrs = event.attrs
        took_us = int(attrs["took_ms"]) * _US_PER_MS
        if not self.phases:
            self.end_phase(PROCESS, max(self.last_us, event.ts_us - took_us))
        self.phases.append(Phase(attrs["topic"], event.ts_us - self.last_us, int(attrs["records"])))
        self.last_us = event.ts_us

    def finished(self) -> StartUp:
        """Return the start as far as it got."""
        return StartUp(self.client_id, self.began_us, tuple(self.phases))


def start_ups(events: Iterable[TraceEvent]) -> list[StartUp]:
    """Return the starts of workers that read internal topics, in the order in which they began.

    Args:
        events: Events of one run, in trace order.
    """
    starting: dict[str, _Starting] = {}
    begun: list[_Starting] = []
    for event in events:
        client_id = event.client_id
        if event.event is Event.LIFECYCLE and client_id is not None:
            if event.reason_text == "started":
                starting[client_id] = _Starting(client_id, event.ts_us)
                begun.append(starting[client_id])
            elif event.attrs.get("phase") == _READING and client_id in starting:
                starting[client_id].read(event)
        else:
            _follow(starting, event)
    return [each.finished() for each in begun if each.phases]


def _follow(starting: dict[str, _Starting], event: TraceEvent) -> None:
    """Follow a start by the events of the group's coordinator."""
    match event.event:
        case Event.JOIN_REQ:
            start = starting.get(event.client_id or "")
            if start is None or not start.phases:
                return
            start.member_ids[event.member_id or ""] = None
            if start.phases[-1].name != DISCOVERY:
                start.end_phase(DISCOVERY, event.ts_us)
        case Event.SYNC_RESP if event.error_code in (None, ErrorCode.NONE):
            for client_id, start in starting.items():
                if event.member_id in start.member_ids:
                    start.end_phase(JOIN, event.ts_us)
                    del starting[client_id]
                    return


def start_up_line(start_up: StartUp) -> str:
    """Return a start on one line, in seconds.

    Example: `start of worker-1 at 0.000 s: process 1.002, offsets 166.6 (30,000,000 records), ...`
    """
    phases = ", ".join(_phase_text(phase) for phase in start_up.phases)
    return (
        f"start of {start_up.client_id} at {_seconds(start_up.began_us)} s: {phases}; "
        f"{_seconds(start_up.took_us)} s in all"
    )


def _phase_text(phase: Phase) -> str:
    records = "" if phase.records is None else f" ({phase.records:,} records)"
    return f"{phase.name} {_seconds(phase.took_us)}{records}"


def _seconds(us: int) -> str:
    return f"{us // _US_PER_S}.{us % _US_PER_S // _US_PER_MS:03}"
