"""Numbered events of a server, kept for a while: the source of `/events`."""

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.server.control.models import FeedItem, Json
from coordinator_sim.trace.events import TraceEvent

KEPT: Final = 10_000
"""Number of items that are kept."""


_Traced = tuple[int, int, int, TraceEvent]
"""Number, broker, wall time and event; converted to an item on request."""


class Feed:
    """The newest items, and the waiters for the next one.

    Args:
        kept: How many items are kept.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._items: deque[FeedItem | _Traced] = deque(maxlen=kept)
        self._waiting: list[asyncio.Future[None]] = []
        self.last_seq = 0
        """Number of the newest item; 0 before the first."""

    def add(
        self,
        kind: str,
        event: str,
        *,
        group_ms: int,
        wall_ms: int,
        broker_id: int | None = None,
        **details: Json,
    ) -> None:
        """Add an event from outside."""
        self._put(
            FeedItem(
                seq=self.last_seq + 1,
                kind=kind,
                event=event,
                group_ms=group_ms,
                wall_ms=wall_ms,
                broker_id=broker_id,
                details=details,
            )
        )

    def traced(self, broker_id: int, events: tuple[TraceEvent, ...], wall_ms: int) -> None:
        """Add events of a group coordinator."""
        for event in events:
            self._put((self.last_seq + 1, broker_id, wall_ms, event))

    def after(self, seq: int, most: int | None = None) -> list[FeedItem]:
        """The kept items after a number, the first `most` of them; None for all."""
        return [_item(each) for each in islice(self._behind(seq), most)]

    @property
    def first_seq(self) -> int:
        """Number of the oldest kept item, or of the next one if none is kept."""
        return self.last_seq - len(self._items) + 1

    def traced_after(self, seq: int) -> list[TraceEvent]:
        """The kept events of group coordinators after a number."""
        return [each[3] for each in self._behind(seq) if not isinstance(each, FeedItem)]

    def _behind(self, seq: int) -> Iterator["FeedItem | _Traced"]:
        behind = max(0, self.last_seq - seq)
        return islice(self._items, max(0, len(self._items) - behind), None)

    def is_gone(self, seq: int) -> bool:
        """Whether the item after a number is not kept any more."""
        return seq + 1 < self.first_seq

    async def changed(self) -> None:
        """Return when there is a new item."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        finally:
            if waiting in self._waiting:  # Cancelled, for example by a timeout.
                self._waiting.remove(waiting)

    def wake(self) -> None:
        """Wake all waiters."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def _put(self, item: "FeedItem | _Traced") -> None:
        self._items.append(item)
        self.last_seq += 1
        if self._waiting:
            self.wake()


def _item(entry: "FeedItem | _Traced") -> FeedItem:
    if isinstance(entry, FeedItem):
        return entry
    seq, broker_id, wall_ms, event = entry
    return FeedItem(
        seq=seq,
        kind="group",
        event=event.event.value,
        group_ms=event.ts_us // 1_000,
        wall_ms=wall_ms,
        broker_id=broker_id,
        group_id=event.group_id,
        member_id=event.member_id,
        generation=event.generation,
        details=_details(event),
    )


def _details(event: TraceEvent) -> dict[str, Json]:
    """The columns of an event for readers, without unknown ones."""
    found: dict[str, Json] = dict(event.attrs)
    for name in (
        "group_instance_id",
        "client_id",
        "client_host",
        "leader_id",
        "members",
        "protocol_name",
        "reason_text",
        "client_reason",
    ):
        value = getattr(event, name)
        if value is not None:
            found[name] = value
    for name in ("reason", "state_from", "state_to"):
        value = getattr(event, name)
        if value is not None:
            found[name] = value.value
    if event.error_code is not None and event.error_code is not ErrorCode.NONE:
        found["error"] = event.error_code.name
    if event.offsets:
        found["offsets"] = {f"{each.topic}-{each.partition}": each.offset for each in event.offsets}
    return found
