"""I11 to I13: the records of share groups, as their members see them.

Judged from RECORDS_DELIVERED and RECORDS_ACKNOWLEDGED. Limits of a group are not in a trace: the
least limit of deliveries and the longest lock that Kafka allows are taken, so that nothing right
is blamed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History

LONGEST_LOCK_US: Final = 60_000_000
"""Source: kafka 4.4, `group.share.max.record.lock.duration.ms`."""
_SLACK_US: Final = 30_000_000
"""More than a poll, its work, and a fetch take."""
_DISTURBED_US: Final = LONGEST_LOCK_US + _SLACK_US
_FINAL: Final = ("accept", "reject")
_LIFE_ENDS: Final = ("crashed", "stopping")
Record = tuple[str, str, int, int]
"""Group, topic, partition, offset."""


@dataclass(slots=True)
class _Delivery:
    """The last delivery of a record, and what became of it."""

    event: TraceEvent
    count: int
    outcome: TraceEvent | None = None
    is_unsure: bool = False
    """Whether an acknowledgement may have arrived without an answer, or was refused."""
    was_disturbed: bool = False
    """Whether a fault may lie between its fetch and its poll, and have ended its lock."""
    has_lost_lock: bool = False
    """Whether its lock ran out; the member may have fetched the record again since."""


@dataclass(slots=True)
class _Records:
    """All records of a history, up to some event."""

    last: dict[Record, _Delivery] = field(default_factory=dict)
    delivered_us: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """When each partition's last record was delivered."""
    again: list[tuple[Record, _Delivery, _Delivery]] = field(default_factory=list)
    """Every further delivery, after the one before it."""
    disturbed_us: int | None = None
    """When the last fault came."""
    lost: dict[Record, tuple[str | None, int]] = field(default_factory=dict)
    """Whose lock on a record ran out last, and at which delivery."""

    def take(self, event: TraceEvent) -> None:
        """Take the next event."""
        match event.event:
            case Event.RECORDS_DELIVERED:
                _for_each(event, self._deliver)
            case Event.RECORDS_ACKNOWLEDGED:
                _for_each(event, self._acknowledge)
            case Event.LOCK_TIMED_OUT:
                _for_each(event, self._lose)
            case Event.LIFECYCLE if event.reason_text in _LIFE_ENDS:
                for each in self.last.values():
                    if each.event.client_id == event.client_id and each.outcome is None:
                        each.is_unsure = True
            case Event.FAULT:
                self.disturbed_us = event.ts_us
                for each in self.last.values():
                    each.is_unsure |= each.outcome is None
            case _:
                pass

    def _deliver(self, record: Record, event: TraceEvent) -> None:
        since, before = self.disturbed_us, self.last.get(record)
        delivery = _Delivery(
            event,
            int(event.attrs["deliveries"]),
            was_disturbed=since is not None and event.ts_us <= since + _DISTURBED_US,
        )
        delivery.has_lost_lock = self.lost.get(record) == (event.client_id, delivery.count)
        if before is not None:
            self.again.append((record, before, delivery))
        self.last[record] = delivery
        self.delivered_us[record[:3]] = event.ts_us

    def _lose(self, record: Record, event: TraceEvent) -> None:
        lost = self.lost[record] = event.client_id, int(event.attrs["deliveries"])
        held = self.last.get(record)
        if held is not None and lost == (held.event.client_id, held.count):
            held.has_lost_lock = True

    def _acknowledge(self, record: Record, event: TraceEvent) -> None:
        delivery = self.last.get(record)
        if delivery is None or delivery.event.client_id != event.client_id:
            return
        if "error" in event.attrs:
            delivery.is_unsure = True
        else:
            delivery.outcome = event


def _for_each(event: TraceEvent, note: Callable[[Record, TraceEvent], None]) -> None:
    for record in _records_of(event):
        note(record, event)


def _records_of(event: TraceEvent) -> Iterator[Record]:
    (entry,) = event.offsets
    for offset in range(entry.offset, event.position or entry.offset):
        yield event.group_id or "", entry.topic, entry.partition, offset


def _read(history: History) -> _Records:
    records = _Records()
    for event in history.events:
        records.take(event)
    return records


def _violation(invariant: str, record: Record, message: str, *events: TraceEvent) -> Violation:
    group_id, topic, partition, offset = record
    return Violation(
        invariant=invariant,
        at_us=events[-1].ts_us,
        group_id=group_id,
        message=f"{topic}-{partition}@{offset} {message}",
        evidence=tuple(event.seq for event in events),
    )


def _judge_deliveries(history: History) -> Findings:
    """Each delivery counts up, unless its lock was renewed; none follows a final outcome.

    A member whose lock ran out may have fetched the record again when it acknowledges the delivery
    before: brokers compare the member alone (SharePartition.validateAcknowledgementBatchMemberId),
    and what it has fetched is delivered all the same.
    """
    found = []
    again = _read(history).again
    for record, before, delivery in again:
        event, outcome = delivery.event, before.outcome
        if outcome is not None and outcome.attrs["type"] in _FINAL:
            if before.has_lost_lock and event.client_id == outcome.client_id:
                continue
            message = f"is delivered after {outcome.client_id} settled it: {outcome.attrs['type']}"
            found.append(_violation("I11", record, message, before.event, outcome, event))
        elif (
            delivery.count <= before.count
            and event.client_id != before.event.client_id
            and not before.is_unsure  # another leader does not know what was held
            and not delivery.was_disturbed
        ):
            message = (
                f"is delivery {delivery.count} to {event.client_id}, and {before.count} to another"
            )
            found.append(_violation("I11", record, message, before.event, event))
    return Findings(len(again), tuple(found))


def _returns(delivery: _Delivery, *, released: bool) -> bool:
    """Whether a record is to come again: it was released, or its lock ends."""
    outcome = delivery.outcome
    if outcome is None:
        return not released and not delivery.is_unsure
    return released and outcome.attrs["type"] == "release"


def _judge_returns(history: History, invariant: str, *, released: bool) -> Findings:
    """Each record released, or held without a word, at its first delivery comes again in time."""
    records, found = _read(history), []
    wait_us = _SLACK_US if released else LONGEST_LOCK_US + _SLACK_US
    for record, delivery in records.last.items():
        since = delivery.outcome or delivery.event
        goes_on = records.delivered_us[record[:3]] > since.ts_us + wait_us
        if goes_on and delivery.count == 1 and _returns(delivery, released=released):
            what = "was released" if released else "was never acknowledged"
            found.append(
                _violation(invariant, record, f"{what}, and is lost", delivery.event, since)
            )
    came = sum(_returns(before, released=released) for _, before, _ in records.again)
    return Findings(came + len(found), tuple(found))


SETTLED_FOR_GOOD: Final = Checker(
    invariant="I11",
    name="one-acquisition-at-a-time",
    title="one acquisition at a time",
    judge=_judge_deliveries,
)
RELEASED_COMES_AGAIN: Final = Checker(
    invariant="I12",
    name="released-comes-again",
    title="released records come again",
    judge=lambda history: _judge_returns(history, "I12", released=True),
)
LOCKS_END: Final = Checker(
    invariant="I13",
    name="locks-end",
    title="locks end",
    judge=lambda history: _judge_returns(history, "I13", released=False),
)
