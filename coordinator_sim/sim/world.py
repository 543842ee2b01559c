"""Shared parts of one run's drivers, and the recording of what drivers do."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.http import HttpNetwork
from coordinator_sim.sim.lag_meter import LagMeter
from coordinator_sim.sim.machine_clock import MachineClock
from coordinator_sim.sim.network import Network
from coordinator_sim.sim.scenario.choices import Choices, ChosenIds
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.sim.work_ledger import WorkLedger
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import Recorder

BROKER_PORT: Final = 9092
US_PER_MS: Final = 1_000
"""Microseconds per millisecond: the simulator counts microseconds, the cores milliseconds."""


REPLICAS: Final = 3
"""Replicas of every topic, as far as there are brokers."""
_ADDING_VERSION: Final = 2
_BEFORE_ADDING: Final = {ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4}


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    now: Instants,
    configs: dict[str, str] | None = None,
) -> None:
    """Create a topic with these settings, or grow one to a number of partitions.

    Raises:
        ScenarioError: the topic has more partitions already.
    """
    state = cluster.image.topics.get(name)
    known = 0 if state is None else len(state.partitions)
    if partitions < known:
        raise ScenarioError(
            f"topic {name!r} has {known} partitions: it cannot shrink to {partitions}"
        )
    factor = min(REPLICAS, len(cluster.groups.living))
    replicas = cluster.topics.spread(partitions - known, factor, known)
    if state is None:
        cluster.topics.create(name, replicas, now, configs)
    elif replicas:
        cluster.topics.add_partitions(name, replicas, now)


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
        lag_meter: Measures lag in time for the trace; None where it is not recorded.
        variety: Distributions of recurring durations; None in an exact world.
    """

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
        lag_meter: LagMeter | None = None,
        variety: Variety | None = None,
    ) -> None:
        self.environment = environment
        self.network = network
        self.cluster = cluster
        self.choices = choices
        self.recorder = recorder
        self.topic_logs = topic_logs
        self.traces_work = traces_work
        self.lag_meter = lag_meter
        self.variety = variety
        self._clocks: dict[str, MachineClock] = {}
        self._member_ids = ChosenIds(choices, "consumers")
        self.http = HttpNetwork(environment, network)
        """HTTP between workers, and from operators."""
        self.slow_percents: dict[str, list[int]] = {}
        """Group -> processing times in percent of usual that slow downstreams make at present."""
        self.client_ids: dict[str, str] = {}
        """Client ids of share consumers by member id, which their brokers know alone."""
        self.ledgers: dict[WorkLedger, None] = {}
        """Ledgers of the living processes, in the order of their start."""

    def clock_of(self, member: str) -> MachineClock:
        """Return the clock of the machine that a member runs on, over all its processes."""
        clock = self._clocks.get(member)
        if clock is None:
            clock = self._clocks[member] = MachineClock(self.environment)
        return clock

    def new_member_id(self) -> str:
        """Draw the id of a member that brings its own: a Kafka Uuid.

        Terminates: one in three draws has a dash and is refused.

        Source: kafka 4.4, Uuid.randomUuid.
        """
        while True:
            drawn = bytes.fromhex(self._member_ids.new_uuid().replace("-", ""))
            text = urlsafe_b64encode(drawn).decode().rstrip("=")
            if "-" not in text:
                return text

    def bootstrap(self) -> tuple[Node, ...]:
        """Return the addresses every client is configured with: all brokers, dead or alive."""
        return tuple(
            Node(broker_id, f"broker-{broker_id}", BROKER_PORT)
            for broker_id in self.cluster.settings.broker_ids
        )

    def leader_of(self, topic: str, partition: int) -> int | None:
        """Return the broker that leads a partition now; None without either."""
        state = self.cluster.image.partition(topic, partition)
        return None if state is None or state.leader_id == NO_LEADER else state.leader_id

    def partition_count(self, topic: str) -> int:
        """Return the number of a topic's partitions; 0 for an unknown topic."""
        state = self.cluster.image.topics.get(topic)
        return 0 if state is None else len(state.partitions)

    @property
    def now(self) -> Instants:
        """The present of both of the cluster's clocks."""
        now_ms = self.environment.now_us // US_PER_MS
        return Instants(now_ms, now_ms)

    @property
    def adds_partitions(self) -> bool:
        """Whether Produce adds its partition to the transaction. Source: KIP-890, TV2."""
        return self.cluster.image.features.get("transaction.version", 0) >= _ADDING_VERSION

    @property
    def producer_versions(self) -> Mapping[ApiKey, int]:
        """Versions of a transactional producer's requests where the newest are not spoken."""
        return {} if self.adds_partitions else _BEFORE_ADDING

    def offsets_partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group_id, self.partition_count(OFFSETS_TOPIC))

    def reaches_leader(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member can read and write the partition; it knows the leader at once."""
        leader_id = self.leader_of(partition.topic, partition.partition)
        return leader_id is not None and self.network.reaches(member, leader_id)

    def reaches_any(self, member: str) -> bool:
        """Whether the member can reach at least one broker."""
        return any(self.network.reaches(member, each) for each in self.cluster.settings.broker_ids)

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
