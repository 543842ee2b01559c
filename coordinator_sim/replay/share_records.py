"""Fates of the records of share groups: delivered again, archived at the limit, locked in vain.

Read are the RECORDS_DELIVERED, RECORDS_ACKNOWLEDGED, RECORDS_ARCHIVED and LOCK_TIMED_OUT events of
a simulation; no other trace has them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.replay.findings import DELIVERIES_AGAIN, RECORD_SECONDS, Finding
from coordinator_sim.replay.names import share_member_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim.trace.work import records_in

_OF_USED_UP: Final = (
    "Reject what can never succeed (AcknowledgeType.REJECT) instead of releasing it, or lower the "
    "group's share.delivery.count.limit; a dead-letter queue (KIP-1191, Kafka 4.4) keeps what is "
    "archived."
)
_OF_LATE: Final = (
    "Set the group's share.record.lock.duration.ms above the longest time from a delivery to its "
    "acknowledgement, lower max.poll.records, or have the application renew its locks "
    "(AcknowledgeType.RENEW)."
)
_OF_SILENT: Final = (
    "Lower the group's share.record.lock.duration.ms: it is the longest wait for a member that is "
    "frozen or cut off. A member that is killed closes its connection, and its records are "
    "released at once."
)
_Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


class LostLocks(Struct, frozen=True, kw_only=True):
    """Locks of one member that ran out before it acknowledged.

    Args:
        client: The member's client id, or its member id where the trace tells no other.
        records: Locks that ran out, each of one record.
        late: Those whose records the member acknowledged nevertheless, too late: it was slow. The
            others are of a member that was frozen, cut off, or busy to the end of the trace.
        silent_us: For how long those were on their records that are not late.
        late_us: Longest time from a delivery to a late acknowledgement; 0 without any.
        first_us: When the first of them ran out.
        last_us: When the last of them did.
    """

    client: str
    records: int
    late: int
    silent_us: int
    late_us: int
    first_us: int = 0
    last_us: int = 0


class ShareRecords(Struct, frozen=True, kw_only=True):
    """Deliveries, archived records and lost locks of a share group.

    Args:
        deliveries: Deliveries to applications.
        again: Those of them after a record's first.
        rejected: Records that members rejected. A rejection that the member was told had failed
            counts where its record had been archived before, and the lock had not run out: the
            broker took it, and its answer was lost.
        used_up: Records that were archived because they had been delivered as often as the limit
            allows, as topic-partition@offset, in the order of the trace.
        limit: How often these had been delivered, at most; 0 without any.
        used_up_again: Deliveries of these after their first.
        held_us: Longest time from the first delivery of one of these to its end; its partition's
            start offset cannot pass it meanwhile.
        lost_locks: By client, most records first.
        used_up_us: When the first and the last of the used up were archived; empty without any.
    """

    deliveries: int
    again: int
    rejected: int
    used_up: tuple[str, ...]
    limit: int
    used_up_again: int
    held_us: int
    lost_locks: tuple[LostLocks, ...]
    used_up_us: tuple[int, ...] = ()


def share_records(lines: Sequence[TraceEvent], window: Window = ALWAYS) -> ShareRecords | None:
    """Return the fates of a group's records; None where the trace has none.

    Args:
        lines: All events of the group, in the order of the trace.
        window: What happened within it counts.
    """
    reading = _Reading(window)
    for line in lines:
        if line.event in reading.takes:
            reading.takes[line.event](line, share_member_of(line) or "")
    return reading.result() if reading.delivered or reading.records else None


class _Reading:
    """Reads a group's events one after the other."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.takes = {
            Event.RECORDS_DELIVERED: self._delivered,
            Event.RECORDS_ACKNOWLEDGED: self._acknowledged,
            Event.RECORDS_ARCHIVED: self._archived,
            Event.LOCK_TIMED_OUT: self._timed_out,
        }
        self.delivered: dict[_Place, dict[int, int]] = {}
        """Record -> number of the delivery -> when, in microseconds."""
        self._held: dict[tuple[_Place, str], int] = {}
        """Record and client -> when the client last got it."""
        self._ends: dict[_Place, tuple[int, int]] = {}
        """Archived record -> deliveries, and when."""
        self._rejected: dict[_Place, int] = {}
        self._lost: dict[tuple[_Place, str], tuple[int, bool]] = {}
        """Record and client whose last lock ran out -> how long it was locked; in the window?"""
        self._lost_us: dict[str, list[int]] = {}
        """By client, when locks ran out."""
        self.records: Counter[str] = Counter()
        """Locks that ran out, by client."""
        self._silent_us: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._late_us: dict[str, int] = {}

    def _delivered(self, line: TraceEvent, client: str) -> None:
        count = int(line.attrs["deliveries"])
        for place in records_in(line):
            self.delivered.setdefault(place, {}).setdefault(count, line.ts_us)
            self._held[place, client] = line.ts_us
            self._lost.pop((place, client), None)

    def _acknowledged(self, line: TraceEvent, client: str) -> None:
        for place in records_in(line):
            locked_us, is_shown = self._lost.pop((place, client), (None, False))
            is_taken = "error" not in line.attrs or (place in self._ends and locked_us is None)
            if line.attrs["type"] == "reject" and is_taken:
                self._rejected[place] = line.ts_us
            if locked_us is not None and is_shown:
                self._late[client] += 1
                self._silent_us[client] -= locked_us
                late_us = line.ts_us - self._held.get((place, client), line.ts_us)
                self._late_us[client] = max(late_us, self._late_us.get(client, 0))

    def _archived(self, line: TraceEvent, _client: str) -> None:
        for place in records_in(line):
            self._ends.setdefault(place, (int(line.attrs["deliveries"]), line.ts_us))

    def _timed_out(self, line: TraceEvent, client: str) -> None:
        locked_us = line.latency_us or 0
        is_shown = self._window.holds(line.ts_us)
        if is_shown:
            self._lost_us.setdefault(client, []).append(line.ts_us)
        for place in records_in(line):
            self._lost[place, client] = locked_us, is_shown
            self.records[client] += is_shown
            self._silent_us[client] += locked_us * is_shown

    def result(self) -> ShareRecords:
        """Return the fates of all records so far."""
        holds = self._window.holds
        used_up = {
            place: end
            for place, end in self._ends.items()
            if place not in self._rejected and holds(end[1])
        }
        held_us = [
            us - min(self.delivered.get(place, {0: us}).values())
            for place, (_, us) in used_up.items()
        ]
        return ShareRecords(
            deliveries=sum(holds(us) for own in self.delivered.values() for us in own.values()),
            again=sum(
                holds(us) for own in self.delivered.values() for us in list(own.values())[1:]
            ),
            rejected=sum(map(holds, self._rejected.values())),
            used_up=tuple(f"{topic}-{number}@{offset}" for topic, number, offset in used_up),
            limit=max((count for count, _ in used_up.values()), default=0),
            used_up_again=sum(len(self.delivered.get(place, {0: 0})) - 1 for place in used_up),
            held_us=max(held_us, default=0),
            lost_locks=tuple(
                LostLocks(
                    client=client,
                    records=records,
                    late=self._late[client],
                    silent_us=self._silent_us[client],
                    late_us=self._late_us.get(client, 0),
                    first_us=self._lost_us[client][0],
                    last_us=self._lost_us[client][-1],
                )
                for client, records in self.records.most_common()
                if records
            ),
            used_up_us=_ends_of([us for _, us in used_up.values()]),
        )


def _ends_of(instants: Sequence[int]) -> tuple[int, ...]:
    return (min(instants), max(instants)) if instants else ()


def _late_of(locks: LostLocks) -> int:
    return locks.late


def _silent_of(locks: LostLocks) -> int:
    return locks.records - locks.late


def share_findings(group_id: str, records: ShareRecords) -> list[Finding]:
    """Return what is wrong with the work of a share group."""
    late = [each for each in records.lost_locks if each.late]
    silent = [each for each in records.lost_locks if _silent_of(each)]
    found: list[tuple[str, float, str, str, str]] = []
    times: list[tuple[int, ...]] = []
    if records.used_up:
        what = (
            f"{len(records.used_up):,} records were archived after {records.limit} deliveries, the "
            f"limit, the first of them {records.used_up[0]}: no application has accepted them. "
            "Each held the start offset of its partition, and with it share.partition.max.record"
            f".locks, for {records.held_us / 1e6:.1f} s at most."
        )
        cost = records.used_up_again
        times.append(records.used_up_us)
        found.append(("records-used-up", cost, DELIVERIES_AGAIN, what, _OF_USED_UP))
    if late:
        count, longest_us = sum(map(_late_of, late)), max(each.late_us for each in late)
        what = (
            f"The locks on {count:,} records ran out while their members still processed them, "
            f"{max(late, key=_late_of).client} most: they were free for others, and the late "
            f"acknowledgements, up to {longest_us / 1e6:.1f} s after the delivery, counted for "
            "nothing."
        )
        times.append(_times_of(late))
        found.append(("locks-shorter-than-processing", count, DELIVERIES_AGAIN, what, _OF_LATE))
    if silent:
        count = sum(map(_silent_of, silent))
        what = (
            f"{count:,} records waited for locks of members that never acknowledged them, "
            f"{max(silent, key=_silent_of).client} most: frozen, cut off, or busy to the end. "
            "Nobody else could have them meanwhile."
        )
        cost_s = sum(each.silent_us for each in silent) / 1e6
        times.append(_times_of(silent))
        found.append(("locked-by-silent-members", cost_s, RECORD_SECONDS, what, _OF_SILENT))
    return [
        Finding(
            group_id=group_id,
            kind=kind,
            rebalances=0,
            cost_s=cost,
            cost_unit=unit,
            what=what,
            change=change,
            confidence=1.0,
            first_us=first_us,
            last_us=last_us,
        )
        for (kind, cost, unit, what, change), (first_us, last_us) in zip(found, times, strict=True)
    ]


def _times_of(locks: Sequence[LostLocks]) -> tuple[int, ...]:
    return _ends_of([at_us for each in locks for at_us in (each.first_us, each.last_us)])
