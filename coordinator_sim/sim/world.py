"""What every driver of one run shares, and how it tells the trace what it did."""

from typing import Final

from coordinator_sim.broker import Cluster
from coordinator_sim.protocol.messages import Node
from coordinator_sim.scenario.choices import Choices
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Network
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import Recorder

US_PER_MS: Final = 1_000
"""Microseconds of a millisecond: the simulator counts the former, the cores the latter."""


class World:
    """The shared parts of one run.

    Args:
        environment: The clock.
        network: Between members and brokers.
        cluster: For its topics and addresses; drivers of members change nothing in it.
        choices: The one door of chance.
        recorder: Takes events in emission order.
    """

    __slots__ = ("choices", "cluster", "environment", "network", "recorder")

    def __init__(
        self,
        environment: Environment,
        network: Network,
        *,
        cluster: Cluster,
        choices: Choices,
        recorder: Recorder,
    ) -> None:
        self.environment = environment
        self.network = network
        self.cluster = cluster
        self.choices = choices
        self.recorder = recorder

    def bootstrap(self) -> tuple[Node, ...]:
        """The addresses every client is configured with: all brokers, dead or alive."""
        return tuple(self.cluster.view.nodes.values())

    def record(self, event: TraceEvent) -> None:
        """Take an event."""
        self.recorder.record(event)

    def record_fault(self, what: str, **attrs: str) -> None:
        """Record that the scenario did something to the world."""
        self.recorder.record(
            TraceEvent(
                event=Event.FAULT,
                ts_us=self.environment.now_us,
                reason_text=what,
                attrs=attrs,
            )
        )
