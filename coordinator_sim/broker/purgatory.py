"""Requests that wait for partitions to change, by partition, deadline and connection.

The purgatory only decides when a request is checked; the request itself knows its condition.

Source: kafka trunk, server-common/.../purgatory/DelayedOperationPurgatory.java.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.broker.scheduler import WakeBy

Place = tuple[str, int]
"""A partition: its topic's name and its number."""

K = TypeVar("K")
P = TypeVar("P")
"""What requests wait on: a `Place`, or what share partitions are named by."""
P_contra = TypeVar("P_contra", contravariant=True)
_STALE_DEADLINES: Final = 64
"""Deadlines of answered requests that may pile up before the heap is rebuilt."""


class Delayed(Protocol[P_contra]):
    """A request that is answered later."""

    def try_complete(self, place: P_contra) -> bool:
        """Answer the request if it is complete; return whether it was answered.

        Args:
            place: The partition that changed.
        """
        ...

    def expire(self) -> None:
        """Answer the request with what is available: its deadline has passed."""
        ...

    def abandon(self) -> None:
        """End the request without an answer: its client is gone."""
        ...


class _Watched(Struct, Generic[P]):
    delayed: Delayed[P]
    places: tuple[P, ...]
    deadline_ms: int
    connection: int


class Purgatory(Generic[P]):
    """The waiting requests of one API.

    Args:
        wake_by: Arms the alarm for a deadline, by the clock of all deadlines.
    """

    __slots__ = ("_by_connection", "_by_place", "_deadlines", "_next_id", "_wake_by", "_watched")

    def __init__(self, wake_by: WakeBy) -> None:
        self._wake_by = wake_by
        self._watched: dict[int, _Watched[P]] = {}
        self._by_place: dict[P, dict[int, None]] = {}
        self._by_connection: dict[int, dict[int, None]] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._next_id = 0

    def __len__(self) -> int:
        """Number of waiting requests."""
        return len(self._watched)

    def watch(
        self, delayed: Delayed[P], places: Iterable[P], deadline_ms: int, connection: int
    ) -> None:
        """Let a request wait.

        Args:
            delayed: The request.
            places: Partitions whose changes may complete the request.
            deadline_ms: Instant at which the request expires.
            connection: The connection; the request is abandoned when it closes.
        """
        number = self._next_id
        self._next_id += 1
        watched = _Watched(delayed, tuple(dict.fromkeys(places)), deadline_ms, connection)
        self._watched[number] = watched
        for place in watched.places:
            self._by_place.setdefault(place, {})[number] = None
        self._by_connection.setdefault(connection, {})[number] = None
        heappush(self._deadlines, (deadline_ms, number))
        self._wake_by(deadline_ms)

    def touched(self, place: P) -> None:
        """Complete the requests that a change of a partition completes, in order of arrival."""
        numbers = self._by_place.get(place)
        if numbers is None:
            return
        for number in tuple(numbers):
            watched = self._watched.get(number)
            if watched is not None:
                self._try(number, watched.delayed, place)

    def _try(self, number: int, delayed: Delayed[P], place: P) -> None:
        """Complete a request if possible; one that raises is dropped, so as not to raise again."""
        is_over = True
        try:
            is_over = delayed.try_complete(place)
        finally:
            if is_over:
                self._forget(number)

    def closed(self, connection: int) -> None:
        """Abandon the waiting requests of a closed connection."""
        for number in tuple(self._by_connection.get(connection, ())):
            self._watched[number].delayed.abandon()
            self._forget(number)

    def expire(self, now_ms: int) -> None:
        """Answer the requests whose deadline has passed, in order of deadlines."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, number = heappop(self._deadlines)
            watched = self._watched.get(number)
            if watched is not None:
                self._forget(number)
                watched.delayed.expire()

    def arm(self) -> None:
        """Arm the alarm for the earliest deadline."""
        self._wake_by(self.next_deadline_ms())

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None when no request waits."""
        while self._deadlines and self._deadlines[0][1] not in self._watched:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _forget(self, number: int) -> None:
        watched = self._watched.pop(number, None)
        if watched is None:
            return
        for place in watched.places:
            _drop(self._by_place, place, number)
        _drop(self._by_connection, watched.connection, number)
        if len(self._deadlines) > 2 * len(self._watched) + _STALE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._watched]
            heapify(self._deadlines)


def _drop(index: dict[K, dict[int, None]], key: K, number: int) -> None:
    numbers = index[key]
    del numbers[number]
    if not numbers:
        del index[key]
