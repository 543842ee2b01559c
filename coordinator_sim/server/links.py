"""The network between the clients of a listener and a broker: cut, slow, narrow.

A link is one broker on one listener, so that clients which connect by a listener of their own can
be cut off, or slowed down, apart from the others. Nothing is lost on a link, as TCP sees to that:
what a cut holds back arrives when it heals.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Annotated, Final

from msgspec import Meta, Struct

_BYTES_PER_KBIT: Final = 125
_MS_PER_S: Final = 1_000
FULL_BYTES: Final = 4 << 20
"""Bytes on their way to a broker beyond which no more are read from the client."""


class Way(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One direction of a link.

    Args:
        latency_ms: How much later everything arrives, on the wall clock; up to a day.
        kbit_per_s: How much passes, of each connection; 0 for no bound.
    """

    latency_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    kbit_per_s: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


PLAIN: Final = Way()


class Link(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a network does between clients and a broker.

    Args:
        cut: Whether nothing passes in either direction.
        to_broker: Requests.
        to_clients: Responses.
    """

    cut: bool = False
    to_broker: Way = PLAIN
    to_clients: Way = PLAIN


class SlowWay:
    """Bytes on their way, in order.

    Args:
        deliver: Takes what has arrived.
    """

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._way = PLAIN
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._free_at = 0.0
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing is under way, and nothing is slow any more."""
        return self._way == PLAIN and not self._under_way

    @property
    def is_full(self) -> bool:
        """Whether so much is under way that no more should come."""
        return self._bytes > FULL_BYTES

    def be(self, way: Way) -> None:
        """Treat what comes from now on like this; what is under way arrives before it."""
        self._way = way

    def take(self, data: bytes) -> None:
        """Send bytes on their way."""
        start = max(self._loop.time(), self._free_at)
        rate = self._way.kbit_per_s * _BYTES_PER_KBIT
        self._free_at = start + (len(data) / rate if rate else 0)
        at = self._free_at + self._way.latency_ms / _MS_PER_S
        if self._under_way:
            at = max(at, self._under_way[-1][0])
        self._under_way.append((at, data))
        self._bytes += len(data)
        self._wait()

    def lose(self) -> None:
        """Forget what is under way: the connection is gone."""
        self._under_way.clear()
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        if self._timer is None and self._under_way:
            self._timer = self._loop.call_at(self._under_way[0][0], self._arrive)

    def _arrive(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._under_way and self._under_way[0][0] <= now:
            _, data = self._under_way.popleft()
            self._bytes -= len(data)
            self._deliver(data)
        self._wait()
