"""The live page of a watch: that of `serve`, fed by what is read of a running cluster."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from coordinator_sim.server.control.app import PAGE, event_bytes
from coordinator_sim.server.control.feed import Feed
from coordinator_sim.trace.events import Event, TraceEvent

if TYPE_CHECKING:
    from coordinator_sim.live.watching import SeenGroup, Watching

_AT_ONCE: Final = 500
_POLL_S: Final = 0.25
_KEEP_ALIVE_S: Final = 15.0
_NOBODY: Final = -1
_GROUP: Final = "/v1/groups/"
Answer = tuple[str, bytes]
"""A content type, and the body."""


class WatchPage:
    """Answers what the page asks for; reads nothing of the cluster.

    Args:
        watching: The groups.
        lock: Held while they change.
        bootstrap: Names the cluster.
    """

    def __init__(self, watching: "Watching", lock: threading.Lock, bootstrap: str) -> None:
        self._watching = watching
        self._lock = lock
        self._bootstrap = bootstrap
        self._feed = Feed()
        self._feed_lock = threading.Lock()

    def take(self, event: TraceEvent) -> None:
        """Show an event; commits would crowd the others out."""
        if event.event is not Event.OFFSET_COMMIT:
            with self._feed_lock:
                self._feed.traced(_NOBODY, (event,), event.ts_us // 1000)

    def answer(self, path: str) -> Answer | None:
        """Return a file of the page, or what is known; None of another path."""
        if path in PAGE:
            name, kind = PAGE[path]
            folder = files("coordinator_sim.server.control")
            return kind, folder.joinpath("page", name).read_bytes()
        views: dict[str, Callable[[], Any]] = {
            "/v1/server": self._server,
            "/v1/groups": self._groups,
            "/v1/topics": list,
        }
        view = views.get(path)
        if path.startswith(_GROUP):
            view = partial(self._group, path.removeprefix(_GROUP))
        if view is None:
            return None
        with self._lock:
            found = view()
        return None if found is None else ("application/json", msgspec.json.encode(found))

    def stream(self, after: int) -> Iterator[bytes]:
        """Yield the events after a number for ever, as server-sent events; waits in between."""
        said_s = time.monotonic()
        while True:
            with self._feed_lock:
                if after > self._feed.last_seq or self._feed.is_gone(after):
                    first = self._feed.first_seq
                    gap = event_bytes("gap", after, {"after": after, "from": first})
                    after = first - 1
                else:
                    gap = b""
                items = self._feed.after(after, _AT_ONCE)
            if items or gap:
                yield gap + b"".join(event_bytes(each.kind, each.seq, each) for each in items)
                after = items[-1].seq if items else after
                said_s = time.monotonic()
            elif time.monotonic() - said_s > _KEEP_ALIVE_S:
                yield b": still here\n\n"
                said_s = time.monotonic()
            else:
                time.sleep(_POLL_S)

    def _server(self) -> dict[str, object]:
        clock = {"clock": "wall", "group_ms": time.time_ns() // 1_000_000}
        return {"bootstrap": self._bootstrap, "clock": clock}

    def _groups(self) -> list[dict[str, object]]:
        groups = self._watching.groups
        return [_summary(name, groups[name]) for name in sorted(groups)]

    def _group(self, group_id: str) -> dict[str, object] | None:
        group = self._watching.groups.get(group_id)
        if group is None:
            return None
        members = [
            {
                "member_id": member_id,
                "client_id": client_id,
                "client_host": host,
                "assignment": sorted(each.removeprefix("p:") for each in held),
                "subscription": [],
            }
            for member_id, held in sorted(group.held.items())
            for client_id, host in (group.clients.get(member_id, ("", "")),)
        ]
        offsets = [
            {"topic": topic, "partition": number, "offset": offset, "lag": group.lags.get(place)}
            for place, offset in sorted(group.committed.items())
            for topic, number in (place,)
        ]
        return {**_summary(group_id, group), "members": members, "offsets": offsets}


def _summary(group_id: str, group: "SeenGroup") -> dict[str, object]:
    state = "Stable" if group.held else "Empty"
    return {
        "group_id": group_id,
        "state": state if group.rebalancing_us is None else "PreparingRebalance",
        "generation": group.generation,
        "protocol_name": group.protocol or None,
        "member_count": len(group.held),
    }
