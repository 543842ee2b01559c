"""A correct history of a share group's records, and histories that each break one invariant."""

from collections.abc import Callable
from typing import Final

from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent

_Line = tuple[int, str, str, int, str]
"""Second, member, `delivered` or `acknowledged`, offset, count or type."""

_CORRECT: Final[tuple[_Line, ...]] = (
    (1, "a", "delivered", 0, "1"),
    (1, "a", "delivered", 1, "1"),
    (1, "a", "delivered", 2, "1"),
    (2, "a", "acknowledged", 0, "accept"),
    (2, "a", "acknowledged", 1, "release"),
    (3, "b", "delivered", 1, "2"),
    (4, "b", "acknowledged", 1, "accept"),
    (32, "b", "delivered", 2, "2"),
    (33, "b", "acknowledged", 2, "accept"),
    (200, "b", "delivered", 3, "1"),
    (201, "b", "acknowledged", 3, "accept"),
)


def _without(line: _Line) -> Callable[[list[_Line]], list[_Line]]:
    return lambda lines: [each for each in lines if each != line]


def _with(line: _Line) -> Callable[[list[_Line]], list[_Line]]:
    return lambda lines: sorted([*lines, line], key=lambda each: each[0])


BROKEN_SHARES: Final = {
    "an accepted record is delivered again": ("I11", _with((5, "b", "delivered", 0, "2"))),
    "two members have one acquisition": ("I11", _with((5, "b", "delivered", 2, "1"))),
    "a released record never comes again": ("I12", _without((3, "b", "delivered", 1, "2"))),
    "a lock never ends": ("I13", _without((32, "b", "delivered", 2, "2"))),
}
"""Description -> the invariant that it breaks, and the edit of the correct history."""


def share_history(name: str | None = None) -> list[TraceEvent]:
    """Return the correct history, or that with one fault of `BROKEN_SHARES`."""
    lines = list(_CORRECT)
    if name is not None:
        lines = BROKEN_SHARES[name][1](lines)
    return [
        TraceEvent(
            event=Event.RECORDS_DELIVERED if what == "delivered" else Event.RECORDS_ACKNOWLEDGED,
            ts_us=second * 1_000_000,
            seq=seq,
            group_id="g",
            client_id=member,
            offsets=(OffsetEntry("t", 0, offset),),
            position=offset + 1,
            attrs={"deliveries" if what == "delivered" else "type": value},
        )
        for seq, (second, member, what, offset, value) in enumerate(lines)
    ]
