"""Requests counted and timed, for `/metrics`."""

import time
from bisect import bisect_left
from typing import Final

from coordinator_sim.mini_broker.connection import Connection
from coordinator_sim.mini_broker.contract import Instants

BUCKETS_S: Final = (0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds of a request's time from its last byte to its answer."""


class ApiMeter:
    """The requests of one API.

    Attributes:
        count: Answered.
        seconds: Of all of them.
        buckets: How many took at most each of `BUCKETS_S` and longer than the one before; the
            last of these is of the longest.
    """

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS_S) + 1)

    def took(self, seconds: float) -> None:
        """One more was answered."""
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1


class Meter:
    """All requests of a server.

    Attributes:
        apis: By API number.
        connection_count: Connections taken so far.
        received_bytes: Of requests, without their lengths.
        sent_bytes: Of answers, likewise.
    """

    __slots__ = ("apis", "connection_count", "received_bytes", "sent_bytes")

    def __init__(self) -> None:
        self.apis: dict[int, ApiMeter] = {}
        self.connection_count = 0
        self.received_bytes = 0
        self.sent_bytes = 0

    def connected(self) -> None:
        """A client has connected."""
        self.connection_count += 1

    def api(self, number: int) -> ApiMeter:
        """The requests of that API."""
        found = self.apis.get(number)
        if found is None:
            found = self.apis[number] = ApiMeter()
        return found


class MeteredConnection(Connection):
    """A connection whose requests are timed; one at a time is at work.

    Attributes:
        meter: Who counts.
    """

    __slots__ = ("_api", "_since", "meter")

    meter: Meter

    def _work_on(self, frame: bytes, now: Instants) -> None:
        self._since = time.perf_counter()
        self._api = int.from_bytes(frame[:2], "big")
        self.meter.received_bytes += len(frame)
        super()._work_on(frame, now)

    def answered(self, frame: bytes | None) -> None:
        """The answer to the request at work has come."""
        meter = self.meter
        meter.api(self._api).took(time.perf_counter() - self._since)
        if frame is not None:
            meter.sent_bytes += len(frame)
        super().answered(frame)
