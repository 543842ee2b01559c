"""Counts and times of requests, for `/metrics`."""

import time
from bisect import bisect_left
from typing import Final

from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants

BUCKETS_S: Final = (0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds of a request's time from its last byte to its answer."""


class ApiMeter:
    """The requests of one API.

    Attributes:
        count: Number of answered requests.
        seconds: Total time of all of them.
        buckets: Number of requests per bucket of `BUCKETS_S`, each without those of the buckets
            before; the last one counts requests above all bounds.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS_S) + 1)

    def took(self, seconds: float) -> None:
        """Count an answered request."""
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1


class Meter:
    """All requests of a server.

    Attributes:
        apis: Meters by API number.
        connection_count: Connections accepted so far.
        received_bytes: Bytes of requests, without length prefixes.
        sent_bytes: Bytes of answers, without length prefixes.
    """

    def __init__(self) -> None:
        self.apis: dict[int, ApiMeter] = {}
        self.connection_count = 0
        self.received_bytes = 0
        self.sent_bytes = 0

    def connected(self) -> None:
        """Count a new connection."""
        self.connection_count += 1

    def api(self, number: int) -> ApiMeter:
        """The meter of an API."""
        found = self.apis.get(number)
        if found is None:
            found = self.apis[number] = ApiMeter()
        return found


class MeteredConnection(Connection):
    """A connection whose requests are timed; it works on one at a time.

    Attributes:
        meter: Meter of the server.
    """

    meter: Meter

    def _work_on(self, frame: bytes, now: Instants) -> None:
        self._since = time.perf_counter()
        self._api = int.from_bytes(frame[:2], "big")
        self.meter.received_bytes += len(frame)
        super()._work_on(frame, now)

    def answered(self, frame: bytes | None) -> None:
        """Time the answered request, and pass its answer on."""
        meter = self.meter
        meter.api(self._api).took(time.perf_counter() - self._since)
        if frame is not None:
            meter.sent_bytes += len(frame)
        super().answered(frame)
