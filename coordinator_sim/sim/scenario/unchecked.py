"""`UncheckedScenario`: what is written in a scenario, and the questions that it answers at once."""

from functools import cached_property

from msgspec import UNSET, Struct, UnsetType

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.sim.scenario import world
from coordinator_sim.sim.scenario.happenings import Happening, end_of
from coordinator_sim.sim.scenario.kubernetes import WorkloadSpec, pods_of
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.workloads import WorkloadTask, process_names


class TaskWindow(Struct, frozen=True):
    """A task that a scenario was written as, for the trace.

    Args:
        id: Its id.
        kind: Its class.
        start_ms: When it begins.
        end_ms: When the last of its effects is over.
    """

    id: str
    kind: str
    start_ms: int
    end_ms: int


class UncheckedScenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A world and its happenings as they are written down, possible or not.

    Args:
        name: Short name, as typed on the command line.
        title: One line for tables.
        story: What happens and what to look at, a few sentences.
        duration_ms: Virtual time at which the run ends.
        brokers: Number of brokers; their ids are 1 to `brokers`.
        profile: Kafka version whose behaviour the brokers show.
        broker_settings: Settings by Kafka's names.
        load_ms: Time a broker takes to load an offsets partition it has become leader of.
        failover_ms: Time from a broker's death to the election of new leaders.
        traces_work: Whether the trace records which records each application processed.
        objective_lag_ms: Age of a partition's oldest unprocessed record that the operator bears;
            the trace then records for how long it was exceeded. Without one it is not recorded.
        happenings: Happenings in any order of time; those of one instant happen in this order.
        tasks: The tasks that the happenings come from, if it was written as tasks.
        workloads: The tasks that bring clients of their own.
        kubernetes: Deployments and StatefulSets whose pods are members of groups.
        kubernetes_nodes: Number of nodes that their pods run on; these are numbered from 1.
        variety: Distributions to draw from for each run, by its seed. None makes the exact world:
            all events at their written instants, small, reproducible and in lockstep; its times
            show the order of events, not the costs of a cluster.
    """

    name: str
    title: str
    story: str
    duration_ms: int
    topics: tuple[world.TopicSpec, ...] = ()
    groups: tuple[world.GroupSpec, ...] = ()
    happenings: tuple[Happening, ...] = ()
    brokers: int = 3
    profile: str = RELEASES[-1]
    broker_settings: dict[str, str] = {}
    network: world.NetworkSpec = world.NetworkSpec()
    load_ms: int = 50
    failover_ms: int = 1_000
    traces_work: bool = False
    variety: Variety | None = None
    tasks: tuple[TaskWindow, ...] = ()
    workloads: tuple[WorkloadTask, ...] = ()
    objective_lag_ms: int | UnsetType = UNSET
    kubernetes: tuple[WorkloadSpec, ...] = ()
    kubernetes_nodes: int = 1

    def members(self) -> tuple[world.MemberSpec, ...]:
        """Return every consumer and worker, group by group."""
        return tuple(member for group in self.groups for member in world.members_of(group))

    def processes(self) -> list[str]:
        """Return the names of all members, and of the processes of workloads."""
        return [*(spec.name for spec in self.members()), *process_names(self.workloads)]

    # Each happening asks for these by name: they are made once, so that a scenario of many members
    # and many happenings is checked in linear time.

    @cached_property
    def groups_by_member(self) -> dict[str, world.GroupSpec]:
        """Every member's name, with its group."""
        return {spec.name: group for group in self.groups for spec in world.members_of(group)}

    @cached_property
    def members_by_name(self) -> dict[str, world.MemberSpec]:
        """Every consumer and worker, by its name."""
        return {spec.name: spec for spec in self.members()}

    @cached_property
    def known_processes(self) -> frozenset[str]:
        """The names of `processes`."""
        return frozenset(self.processes())

    @cached_property
    def known_groups(self) -> frozenset[str]:
        """The names of `group_ids`."""
        return frozenset(self.group_ids())

    @cached_property
    def partitions_by_topic(self) -> dict[str, int]:
        """Every topic's name, with its number of partitions at the start."""
        return {topic.name: topic.partitions for topic in self.topics}

    @cached_property
    def pods(self) -> dict[str, str]:
        """Every member that may be a pod, with the name of its workload."""
        groups = {group.group_id: group for group in self.groups}
        return {
            name: spec.name
            for spec in self.kubernetes
            for name in pods_of(spec, groups.get(spec.group_id))
        }

    def group_ids(self) -> list[str]:
        """Return every group that is described, or that a workload names."""
        own = [group.group_id for group in self.groups]
        brought = [task.group_id() for task in self.workloads]
        return [*own, *(group_id for group_id in brought if group_id is not None)]

    def counts_work(self) -> bool:
        """Whether the trace records processed records: on request, or where work is described."""
        return self.traces_work or any(world.describes_work(group) for group in self.groups)

    def counts_lag(self) -> bool:
        """Whether the trace records lag in time: with an objective, or where a topic has a load."""
        found = bool(self.objective_lag_ms)
        for topic in self.topics:
            found = found or bool(topic.load)
        return found

    def group_of(self, member: str) -> world.GroupSpec:
        """Return the group of the member of that name.

        Raises:
            ScenarioError: no group has such a member.
        """
        group = self.groups_by_member.get(member)
        if group is None:
            raise ScenarioError(f"unknown member {member!r} in scenario {self.name!r}")
        return group

    def calm_from_ms(self) -> int:
        """Return the instant of the last change to the world."""
        starts = [spec.start_ms for spec in self.members() if spec.start_ms is not None]
        ends = [end_of(happening) for happening in self.happenings]
        return max([0, *starts, *ends, *(task.end_ms() for task in self.workloads)])
