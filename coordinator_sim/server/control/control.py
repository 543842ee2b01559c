"""The server as the control surface sees it: the object that its verbs act upon."""

import os
from typing import Any

from coordinator_sim import __version__
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.faults.faults import Action
from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.control.models import Json
from coordinator_sim.server.kafka_server import KafkaServer
from coordinator_sim.server.metering import Meter
from coordinator_sim.server.timekeeper import Timekeeper
from coordinator_sim.server.tracing import Tracing


class Control:
    """A server with its events, traces and metrics.

    Attributes:
        server: The sockets.
        feed: Events of the server.
        tracing: Traces of the server.
        meter: Counts and times of requests.
        is_ready: Whether every listener is open, and nothing is being stopped.
        is_over: Whether the server is being stopped.
    """

    def __init__(self, server: KafkaServer, feed: Feed, tracing: Tracing, meter: Meter) -> None:
        self.server = server
        self.meter = meter
        self.is_over = False
        self.feed = feed
        self.tracing = tracing
        self.is_ready = False
        self.version = __version__
        self.pid = os.getpid()
        server.watch(self._made)

    @property
    def cluster(self) -> Cluster:
        """The served cluster; a new one after a reset."""
        return self.server.cluster

    @property
    def timekeeper(self) -> Timekeeper:
        """The timekeeper, which fires the cluster's deadlines."""
        return self.server.timekeeper

    def now(self) -> Instants:
        """The present; also set as the cluster's latest instant."""
        now = self.server.now()
        self.cluster.latest = now
        return now

    def trouble(self) -> str | None:
        """Why the served cluster is not healthy; None if it is.

        The check runs on the event loop that serves the brokers, so there is no answer while that
        loop is blocked.
        """
        return self.timekeeper.trouble()

    def settle(self) -> None:
        """Continue waiting requests and rearm deadlines after a verb was called."""
        self.cluster.go_on(self.server.now())
        self.server.settled()

    def end(self) -> None:
        """End all streams of the feed, as the server stops."""
        self.is_ready = False
        self.is_over = True
        self.feed.wake()

    def tell(self, kind: str, event: str, broker_id: int | None = None, **details: Json) -> None:
        """Add an event that came from outside to the feed."""
        now = self.server.now()
        self.feed.add(
            kind,
            event,
            group_ms=now.group_ms,
            wall_ms=now.wall_ms,
            broker_id=broker_id,
            **details,
        )

    def _made(self, cluster: Cluster) -> None:
        cluster.faults.heard = self._hit

    def _hit(self, fault_id: int, call: Call[Any], action: Action) -> None:
        self.tell(
            "fault",
            "HIT",
            call.broker_id,
            fault_id=fault_id,
            api=call.api.name,
            client_id=call.context.client_id,
            connection=call.connection,
            action=type(action).__name__,
        )
