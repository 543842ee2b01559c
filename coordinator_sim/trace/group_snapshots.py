"""Groups as `kafka-consumer-groups --describe` saw them: members, lag, owners, at single times.

What happened between two snapshots is not known: a change of owners is no rebalance with a time.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import TraceEvent

DESCRIBED: Final = "described"
"""Sign of an event that is a row of the tool's tables."""
_ASSIGNED: Final = re.compile(r"(?<![\w.-])([\w.-]{1,249})[:(]([\d,]+)")
"""Partitions of a topic, as 2.8 and as 4.x print them."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """A group at one time; None is not printed.

    Args:
        members: Number of members.
        lag: Sum over the partitions that have one.
        strategy: Assignor.
        epoch: Epoch of a group that has some.
        owners: Partition, such as `orders-0` -> its member; empty for none.
    """

    at_ms: int
    members: int | None
    lag: int | None
    strategy: str | None
    epoch: int | None
    owners: dict[str, str]

    @property
    def free(self) -> int:
        """Number of partitions without an owner, as in the middle of a rebalance."""
        return list(self.owners.values()).count("")


def snapshots_in(events: Iterable[TraceEvent]) -> dict[str, list[Snapshot]]:
    """Return the snapshots of each group, in order of time; the rows of one time are one."""
    rows: dict[tuple[str, int], list[TraceEvent]] = {}
    for event in events:
        if event.attrs.get("sign") == DESCRIBED and event.group_id is not None:
            rows.setdefault((event.group_id, event.ts_us), []).append(event)
    found: dict[str, list[Snapshot]] = {}
    for (group_id, at_us), own in sorted(rows.items()):
        found.setdefault(group_id, []).append(_snapshot(at_us, own))
    return found


def _snapshot(at_us: int, rows: list[TraceEvent]) -> Snapshot:
    owners: dict[str, str] = {}
    for row in rows:
        for entry in row.offsets:
            owners[f"{entry.topic}-{entry.partition}"] = row.member_id or ""
        for topic, numbers in _ASSIGNED.findall(row.attrs.get("partitions", "")):
            for number in filter(None, numbers.split(",")):
                owners[f"{topic}-{number}"] = row.member_id or ""
    lags = [int(row.attrs["lag"]) for row in rows if row.attrs.get("lag", "").isdecimal()]
    told = [row.members for row in rows if row.members is not None]
    return Snapshot(
        at_ms=at_us // 1000,
        members=told[0] if told else len({row.member_id for row in rows} - {None}),
        lag=sum(lags) if lags else None,
        strategy=next((row.protocol_name for row in rows if row.protocol_name), None),
        epoch=next((row.generation for row in rows if row.generation is not None), None),
        owners=owners,
    )


def moved(before: Snapshot, after: Snapshot) -> int:
    """Return how many partitions with an owner in both snapshots have another in the later one."""
    pairs = ((owner, after.owners.get(name, "")) for name, owner in before.owners.items())
    return sum("" not in pair and pair[0] != pair[1] for pair in pairs)
