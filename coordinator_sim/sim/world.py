"""Shared parts of one run's drivers, and the recording of what drivers do."""

from typing import Final

from coordinator_sim.broker import Cluster
from coordinator_sim.broker.data_service import DataService
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
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
"""Microseconds per millisecond: the simulator counts microseconds, the cores milliseconds."""


class World:
    """The shared parts of one run.

    Args:
        environment: The clock.
        network: Network between members and brokers.
        cluster: Cluster, for its topics and addresses; drivers of members do not change it.
        choices: Source of all random choices.
        recorder: Takes events in emission order.
        topic_logs: End offsets of the topics.
        traces_work: Whether the trace records which records are processed.
        variety: Distributions of recurring durations; None in an exact world.
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
        """Ledgers of the living processes, in the order of their start."""

    def bootstrap(self) -> tuple[Node, ...]:
        """Return the addresses every client is configured with: all brokers, dead or alive."""
        return tuple(self.cluster.view.nodes.values())

    def reaches_leader(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member can read and write the partition; it knows the leader at once."""
        leaders = self.cluster.view.topics.get(partition.topic, ())
        if partition.partition >= len(leaders):
            return False
        return self.network.reaches(member, leaders[partition.partition].leader_id)

    def reaches_any(self, member: str) -> bool:
        """Whether the member can reach at least one broker."""
        return any(self.network.reaches(member, node) for node in self.cluster.view.nodes)

    def record(self, event: TraceEvent) -> None:
        """Record an event."""
        self.recorder.record(event)

    def record_fault(self, what: str, **attrs: str) -> None:
        """Record a fault of the scenario."""
        self.recorder.record(
            TraceEvent(
                event=Event.FAULT,
                ts_us=self.environment.now_us,
                reason_text=what,
                attrs=attrs,
            )
        )
