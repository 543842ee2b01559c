"""What every driver of one run shares, and how it tells the trace what it did."""

from typing import Final

from coordinator_sim.broker import Cluster
from coordinator_sim.broker.data_service import DataService
from coordinator_sim.protocol.cluster_view import Node
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.scenario.choices import Choices
from coordinator_sim.scenario.variety import Variety
from coordinator_sim.sim.data_brokers import DataBrokers
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.http import HttpNetwork
from coordinator_sim.sim.network import Network
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.sim.work_ledger import WorkLedger
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
        topic_logs: How far the topics are written.
        traces_work: Whether the trace tells which records are processed.
        variety: What recurring times are drawn from; None in an exact world.
    """

    __slots__ = (
        "choices",
        "cluster",
        "data",
        "environment",
        "http",
        "ledgers",
        "network",
        "recorder",
        "topic_logs",
        "traces_work",
        "variety",
    )

    def __init__(  # noqa: PLR0913 - what a run shares, by keyword
        self,
        environment: Environment,
        network: Network,
        *,
        cluster: Cluster,
        choices: Choices,
        recorder: Recorder,
        topic_logs: TopicLogs,
        traces_work: bool = False,
        variety: Variety | None = None,
    ) -> None:
        self.environment = environment
        self.network = network
        self.cluster = cluster
        self.choices = choices
        self.recorder = recorder
        self.topic_logs = topic_logs
        self.traces_work = traces_work
        self.variety = variety
        self.data = DataBrokers(DataService(cluster), environment)
        """The brokers' data plane, for the internal topics of Connect clusters."""
        network.data_server = self.data
        self.http = HttpNetwork(environment, network)
        """HTTP between workers, and from operators."""
        self.ledgers: dict[WorkLedger, None] = {}
        """The ledgers of the processes that live, in the order of their start."""

    def bootstrap(self) -> tuple[Node, ...]:
        """The addresses every client is configured with: all brokers, dead or alive."""
        return tuple(self.cluster.view.nodes.values())

    def reaches_leader(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member can read and write the partition; it knows its leader at once."""
        leaders = self.cluster.view.topics.get(partition.topic, ())
        if partition.partition >= len(leaders):
            return False
        return self.network.reaches(member, leaders[partition.partition].leader_id)

    def reaches_any(self, member: str) -> bool:
        """Whether the member can talk to at least one broker."""
        return any(self.network.reaches(member, node) for node in self.cluster.view.nodes)

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
