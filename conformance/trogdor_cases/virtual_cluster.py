"""A simulated cluster for the workloads of cases in virtual time."""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.world import TopicSpec
from coordinator_sim.sim.workload_agents import WorkloadProcess
from coordinator_sim.trace.recorder import NullRecorder
from coordinator_sim.trogdor.agent import Progress
from coordinator_sim.trogdor.contract import StartWork
from coordinator_sim_conformance.trogdor_cases.trogdor import Member, Topic

_LONG_MS: Final = 7 * 24 * 3_600_000


class VirtualCluster:
    """A cluster of one broker.

    Args:
        topics: Its topics, with their records.
    """

    bootstrap: Final = "broker-1:9092"

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        scenario = Scenario(
            name="cluster",
            title="",
            story="",
            duration_ms=_LONG_MS,
            brokers=1,
            broker_settings={"group.initial.rebalance.delay.ms": "0"},
            topics=tuple(
                TopicSpec(name=name, partitions=topic.partitions, records_per_s=0)
                for name, topic in topics.items()
            ),
        )
        self._world = Simulation(scenario, recorder=NullRecorder()).world
        for name, topic in topics.items():
            self._world.topic_logs.append(TopicPartition(name, 0), topic.records)

    @property
    def environment(self) -> Environment:
        """The clock of everything."""
        return self._world.environment

    def members(self, group_id: str) -> list[Member]:
        """The members of a group, by client id."""
        living = self._world.cluster.groups.living.values()
        groups = [each.coordinator.group(group_id) for each in living]
        return sorted(
            (
                Member(
                    client_id=member.client_id,
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                )
                for group in groups
                if group is not None
                for member in group.ordered()
            ),
            key=lambda member: member.client_id,
        )

    def work(self, start: StartWork, progress: Progress) -> WorkloadProcess:
        """The work of a workload."""
        return WorkloadProcess(self._world, f"{start.task_id}-{start.worker_id}", start, progress)
