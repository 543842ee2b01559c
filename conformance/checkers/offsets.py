"""I8: a fetched offset is the last accepted one."""

from dataclasses import dataclass, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History

NO_OFFSET = -1
"""Offset in a fetch answer for a partition without a stored offset."""
OF_ONE_PARTITION = frozenset(
    {
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Errors of a commit that concern one partition and not the others."""
MAY_BE_STORED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Errors of a commit whose record may still be in the log, not committed in time."""
Place = tuple[str, str, int]
"""Group, topic, partition."""


@dataclass(slots=True)
class _Stored:
    """The offsets that the log holds, in log order, whichever broker appended them."""

    by_place: dict[Place, TraceEvent] = field(default_factory=dict)
    offsets: dict[Place, int] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    """Groups with a recorded commit."""
    loaded: dict[str, None] = field(default_factory=dict)
    """Groups whose log is older than the trace."""
    uncertain: dict[Place, None] = field(default_factory=dict)
    """Places that a refused commit may have changed."""
    expired: dict[Place, None] = field(default_factory=dict)
    """Places among which are those that a coordinator found old; it tells how many, not which.
    Also those of deleted topics, of whose offsets nothing is traced."""
    judged: int = 0
    violations: list[Violation] = field(default_factory=list)

    def take(self, event: TraceEvent) -> None:
        group_id = event.group_id or ""
        if event.event is Event.GROUP_LOADED and group_id not in self.groups:
            self.loaded[group_id] = None
        if event.event is Event.OFFSET_EXPIRED and not event.offsets:
            self._expired(event)
        if event.event is Event.FAULT and event.reason_text == "DeleteTopic":
            topic = event.attrs["topic"]
            self.expired |= {place: None for place in self.by_place if place[1] == topic}
        for entry in event.offsets:
            place = (group_id, entry.topic, entry.partition)
            if event.error_code not in (None, ErrorCode.NONE):
                self._refused(event, place)
                continue
            match event.event:
                case Event.OFFSET_COMMIT:
                    self.groups[group_id] = None
                    self.uncertain.pop(place, None)
                    self.expired.pop(place, None)
                    self.by_place[place] = event
                    self.offsets[place] = entry.offset
                case Event.OFFSET_TOMBSTONE | Event.OFFSET_EXPIRED:
                    self.by_place[place] = event
                    self.offsets[place] = NO_OFFSET
                case Event.OFFSET_FETCH:
                    self._fetched(event, place, entry)
                case _:
                    pass

    def _refused(self, event: TraceEvent, place: Place) -> None:
        """Handle a refused commit: it changes nothing, except for errors that leave this open.

        A commit refused for one partition may have stored others, and one that was not replicated
        in time is replicated later.
        """
        errors = (OF_ONE_PARTITION, MAY_BE_STORED)
        if event.event is Event.OFFSET_COMMIT and any(event.error_code in each for each in errors):
            self.uncertain[place] = None

    def _expired(self, event: TraceEvent) -> None:
        """Handle a removal of some offsets of a partition, or of any where none is named."""
        partition = event.offsets_partition
        for place, stored in self.by_place.items():
            if partition is None or stored.offsets_partition == partition:
                self.expired[place] = None

    def _fetched(self, event: TraceEvent, place: Place, entry: OffsetEntry) -> None:
        stored = self.by_place.get(place)
        if place in self.uncertain or (stored is None and place[0] in self.loaded):
            return
        self.judged += 1
        expected = self.offsets.get(place, NO_OFFSET)
        if entry.offset == expected or (entry.offset == NO_OFFSET and place in self.expired):
            return
        self.violations.append(
            Violation(
                invariant="I8",
                at_us=event.ts_us,
                group_id=event.group_id,
                message=f"{entry.topic}-{entry.partition} was fetched as {entry.offset}; "
                f"the last accepted offset is {expected}",
                evidence=(event.seq,) if stored is None else (stored.seq, event.seq),
            )
        )


def judge(history: History) -> Findings:
    """Check that a fetched offset is the last accepted one in log order, also after a failover."""
    stored = _Stored()
    for event in history.events:
        stored.take(event)
    return Findings(stored.judged, tuple(stored.violations))


LAST_COMMIT_WINS = Checker(
    invariant="I8",
    name="last-commit-wins",
    title="last commit",
    judge=judge,
)
