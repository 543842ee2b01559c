"""The control surface's hold on a server: what its verbs act upon."""

import os
from typing import Any

from coordinator_sim import __version__
from coordinator_sim.mini_broker.contract import Call, Instants
from coordinator_sim.mini_broker.faults import Action
from coordinator_sim.mini_broker.served_cluster import ServedCluster
from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.control.models import Json
from coordinator_sim.server.kafka_server import KafkaServer
from coordinator_sim.server.metering import Meter
from coordinator_sim.server.timekeeper import Timekeeper
from coordinator_sim.server.tracing import Tracing


class Control:
    """A server, and what happens on it.

    Attributes:
        server: The sockets.
        feed: What happens.
        tracing: What is recorded of it.
        meter: What is counted of its requests.
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
    def cluster(self) -> ServedCluster:
        """What is served; another one after a reset."""
        return self.server.cluster

    @property
    def timekeeper(self) -> Timekeeper:
        """Who fires its deadlines."""
        return self.server.timekeeper

    def now(self) -> Instants:
        """The present, for the cluster too."""
        now = self.server.now()
        self.cluster.latest = now
        return now

    def trouble(self) -> str | None:
        """Why the cluster that clients see is not well; None where it is.

        The answer comes from the event loop that serves the brokers, so it comes only while that
        loop has turns.
        """
        return self.timekeeper.trouble()

    def settle(self) -> None:
        """A verb was called: what waited goes on, deadlines may be others."""
        self.cluster.go_on(self.server.now())
        self.server.settled()

    def end(self) -> None:
        """The server stops: whoever follows the feed is let go."""
        self.is_ready = False
        self.is_over = True
        self.feed.wake()

    def tell(self, kind: str, event: str, broker_id: int | None = None, **details: Json) -> None:
        """Let the feed have something that came from outside."""
        now = self.server.now()
        self.feed.add(
            kind,
            event,
            group_ms=now.group_ms,
            wall_ms=now.wall_ms,
            broker_id=broker_id,
            **details,
        )

    def _made(self, cluster: ServedCluster) -> None:
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
