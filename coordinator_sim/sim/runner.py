"""Runs a scenario from its first to its last microsecond."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct, field, structs

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.cluster_parts import TraceSink
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.clock import Action
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.metrics import CoordinatorMetrics
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.counting_store import CountingStore
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.calm import Calm, CalmRecorder
from coordinator_sim.sim.cluster_admin import AUTHORIZER, ClusterAdmin
from coordinator_sim.sim.connect_cluster import ConnectCluster
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.elision import Elided, Elision
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.happenings import Stage
from coordinator_sim.sim.kubernetes import Nodes, Workload
from coordinator_sim.sim.lag_meter import LagMeter
from coordinator_sim.sim.members import Member
from coordinator_sim.sim.network import Network
from coordinator_sim.sim.scaling_loops import start_autoscaler
from coordinator_sim.sim.scenario.choices import Choice, Choices, ChosenIds
from coordinator_sim.sim.scenario.happenings import DenyAccess
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.variants import realised
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    ShareConsumerSpec,
    ShareGroupSpec,
    StreamsGroupSpec,
    WorkerSpec,
    with_member_settings,
    with_new_configuration,
)
from coordinator_sim.sim.share_groups import ShareConsumerProcess, ShareLogs
from coordinator_sim.sim.stories import GroupWatch, Story, StoryWorld
from coordinator_sim.sim.streams import Application, StreamsProcess
from coordinator_sim.sim.task_runs import ClusterWork
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.sim.workers import WorkerProcess
from coordinator_sim.sim.workload_agents import WorkloadAgents
from coordinator_sim.sim.world import BROKER_PORT, US_PER_MS, World
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.recorder import NullRecorder, Recorder


def schedule_collections(world: World, variety: Variety, members: Mapping[str, Member]) -> None:
    """Freeze every member at instants and for durations drawn by its name.

    The instants do not depend on what the member does, so they are the same under every assignor;
    a member that does not run misses its collection.
    """
    if variety.pause_ms:
        for name, member in members.items():
            _schedule_next(world, variety, name, member)


def _schedule_next(world: World, variety: Variety, name: str, member: Member) -> None:
    gap_ms = drawn(variety.pause_gap_ms, world.choices, "collection-gap", name)
    at_us = world.environment.now_us + gap_ms * US_PER_MS
    world.environment.call_at(at_us, partial(_collect, world, variety, name, member))


def _collect(world: World, variety: Variety, name: str, member: Member) -> None:
    for_ms = drawn(variety.pause_ms, world.choices, "collection", name)
    member.pause(for_ms)
    at_us = world.environment.now_us + for_ms * US_PER_MS
    world.environment.call_at(at_us, partial(_schedule_next, world, variety, name, member))


_PROGRESS_STEPS: Final = 200
"""Number of progress reports: a bar that moves every half percent looks alive."""


def _core_trace(environment: Environment, recorder: Recorder) -> TraceSink:
    """Return a sink that records the core's events at the simulation's instant."""
    record = recorder.record

    def take(_broker_id: int, events: tuple[TraceEvent, ...]) -> None:
        now_us = environment.now_us
        for event in events:
            record(event if event.ts_us == now_us else structs.replace(event, ts_us=now_us))

    return take


class RunResult(Struct, frozen=True, kw_only=True):
    """Result of a run, beside its events.

    Args:
        end_us: Virtual time at its end, in microseconds.
        scheduled_count: Events of the clock until the last step of the run began.
        tape: The choices made, in order, if they were kept; replay them with `tape=`.
        offsets_log: The batches of `__consumer_offsets`, by partition, each in log order.
        metrics: Metrics of every living broker's coordinator, by broker id.
        elided: What was skipped; None where every heartbeat was lived through.
    """

    end_us: int
    scheduled_count: int
    tape: tuple[Choice, ...]
    offsets_log: tuple[LogBatch, ...] = ()
    metrics: dict[int, CoordinatorMetrics] = field(default_factory=dict)
    elided: Elided | None = None


class Simulation:
    """A scenario being run: built at virtual time 0, advanced as far as wanted.

    Args:
        scenario: Scenario to run.
        seed: Seed of all choices that the tape does not hold.
        recorder: Takes every event in emission order; a NullRecorder makes the cores silent.
        tape: Choices to repeat, of an earlier run or edited; with one, even an empty one, the
            choices of this run are kept.
        shuffle_ties: Draw the order of simultaneous callbacks instead of first in, first out.
        on_exchange: Told each request of groups when it is answered; None tells nobody.
        elide: Skip idle time, see `elision`.
        story: Further happenings, as a simpy process; see `stories`.

    Attributes:
        world: What all drivers share, for whoever adds one.
        kubernetes: Workloads of Kubernetes, by name.

    Raises:
        ConfigError: the profile is unknown, or a client refuses its settings.
    """

    def __init__(  # noqa: PLR0913 - a scenario, and how it is run, by keyword
        self,
        scenario: Scenario,
        *,
        seed: int = 0,
        recorder: Recorder,
        tape: Iterable[Choice] | None = None,
        shuffle_ties: bool = False,
        on_exchange: Callable[[Exchange], None] | None = None,
        elide: bool = False,
        story: Story | None = None,
    ) -> None:
        self._choices = Choices(seed, tape or (), record=tape is not None)
        self._scenario = scenario = realised(scenario, self._choices)
        self._environment = Environment(self._choices if shuffle_ties else None)
        network = Network(self._environment, scenario.network.latency, self._choices)
        tracing = story is not None or not isinstance(recorder, NullRecorder)
        leaves_calm_out = scenario.variety is not None and scenario.variety.calm_ms > 0
        if leaves_calm_out:
            recorder = retimed = CalmRecorder(recorder)
        if story is not None:
            recorder = watch = GroupWatch(recorder)
        trace = _core_trace(self._environment, recorder) if tracing else None
        cluster = _cluster(scenario, self._choices, trace)
        self._cluster = cluster
        counts_lag = tracing and scenario.counts_lag()
        logs = TopicLogs(scenario.topics, with_instants=counts_lag)
        objective_us = scenario.objective_lag_ms * US_PER_MS if scenario.objective_lag_ms else None
        world = World(
            self._environment,
            network,
            cluster=cluster,
            choices=self._choices,
            recorder=recorder,
            topic_logs=logs,
            traces_work=tracing and (counts_lag or scenario.counts_work()),
            lag_meter=LagMeter(logs, objective_us) if counts_lag else None,
            variety=scenario.variety,
        )
        self.world = world
        self._nodes = Nodes(world, scenario.kubernetes_nodes)
        self.kubernetes = self._nodes.workloads
        brokers = ClusterDriver(
            cluster,
            environment=self._environment,
            network=network,
            recorder=recorder,
            failover_ms=scenario.failover_ms,
            choices=self._choices,
        )
        brokers.on_exchange = on_exchange
        for topic in scenario.topics:
            brokers.create_topic(topic.name, topic.partitions)
        stage = self._populate(world, brokers)
        if story is not None:
            self._environment.process(story(StoryWorld(world, scenario, stage.happen, watch)))
        self._elision: Elision | Calm | None = None
        if leaves_calm_out:
            self._elision = Calm(world, brokers, scenario, retimed, has_story=story is not None)
        elif elide:
            self._elision = Elision(world, brokers, scenario.duration_ms * US_PER_MS)

    def _populate(self, world: World, brokers: ClusterDriver) -> Stage:
        connect = {
            group.group_id: ConnectCluster(world, group)
            for group in self._scenario.groups
            if isinstance(group, ConnectGroupSpec)
        }
        ShareLogs(
            world, brokers, [g for g in self._scenario.groups if isinstance(g, ShareGroupSpec)]
        )
        members = _members(self._scenario, world, connect)
        for spec in self._scenario.members():
            if spec.start_ms is not None:
                self._environment.call_at(spec.start_ms * US_PER_MS, members[spec.name].start)
        workloads = WorkloadAgents(world)
        for workload in self._scenario.workloads:
            workloads.schedule(workload)
        if self._scenario.kubernetes:
            _run_workloads(self._scenario, world, members, self._nodes)
        stage = Stage(
            world,
            brokers,
            members=members,
            connect=connect,
            workloads=workloads,
            kubernetes=self._nodes,
        )
        for task in self._scenario.tasks:
            stage.schedule_task(task)
        for happening in self._scenario.happenings:
            stage.schedule(happening)
        if self._scenario.variety is not None:
            schedule_collections(world, self._scenario.variety, members)
        return stage

    @property
    def now_us(self) -> int:
        """Virtual time reached, in microseconds."""
        elision = self._elision
        return elision.now_us if isinstance(elision, Calm) else self._environment.now_us

    def run_until(self, end_us: int) -> None:
        """Run everything due up to and including that instant."""
        if self._elision is None:
            self._environment.run_until(end_us)
        else:
            self._elision.run_until(end_us)

    def finish(self) -> None:
        """Record the final progress of all processes; the simulation must not run afterwards."""
        for ledger in list(self.world.ledgers):
            ledger.close()

    def result(self) -> RunResult:
        """Return the result of the run so far."""
        return RunResult(
            end_us=self.now_us,
            scheduled_count=self._environment.scheduled_count,
            tape=tuple(self._choices.tape),
            offsets_log=tuple(
                batch
                for partition in range(len(self._cluster.image.topics[OFFSETS_TOPIC].partitions))
                for batch in self._cluster.groups.offsets_topic.batches(partition)
            ),
            metrics={
                broker_id: broker.coordinator.metrics()
                for broker_id, broker in sorted(self._cluster.groups.living.items())
            },
            elided=None if self._elision is None else self._elision.elided(),
        )


def run_scenario(  # noqa: PLR0913 - a scenario, and how it is run, by keyword
    scenario: Scenario,
    *,
    seed: int = 0,
    recorder: Recorder,
    progress: Callable[[int], None] | None = None,
    tape: Iterable[Choice] | None = None,
    shuffle_ties: bool = False,
    on_exchange: Callable[[Exchange], None] | None = None,
    elide: bool = False,
    story: Story | None = None,
) -> RunResult:
    """Run a scenario in virtual time, from its first microsecond to its last.

    The same scenario, seed and tape give the same events in any process.

    Args:
        scenario: Scenario to run.
        seed: Seed of all choices that the tape does not hold.
        recorder: Takes every event in emission order; a NullRecorder makes the cores silent.
        progress: Called with the virtual time reached, in microseconds, two hundred times a run.
        tape: Choices to repeat, of an earlier run or edited; with one, even an empty one, the
            result holds the choices made.
        shuffle_ties: Draw the order of simultaneous callbacks instead of first in, first out.
        on_exchange: Told each request of groups when it is answered; None tells nobody.
        elide: Skip idle time, see `elision`; the trace lacks heartbeats, and nothing else.
        story: Further happenings, as a simpy process; see `stories`.

    Raises:
        ConfigError: the profile is unknown, or a client refuses its settings.
    """
    simulation = Simulation(
        scenario,
        seed=seed,
        recorder=recorder,
        tape=tape,
        shuffle_ties=shuffle_ties,
        on_exchange=on_exchange,
        elide=elide,
        story=story,
    )
    end_us = scenario.duration_ms * US_PER_MS
    if progress is None:
        simulation.run_until(end_us)
        simulation.finish()
        return simulation.result()
    for step in range(1, _PROGRESS_STEPS + 1):
        simulation.run_until(end_us * step // _PROGRESS_STEPS)
        progress(simulation.now_us)
    simulation.finish()
    return simulation.result()


def _cluster(scenario: Scenario, choices: Choices, trace: TraceSink | None) -> Cluster:
    """Return the cluster of a scenario: its offsets topic is there, and loaded."""
    brokers = scenario.brokers
    profile = profile_named(scenario.profile)
    is_guarded = any(isinstance(each, DenyAccess) for each in scenario.happenings)
    cluster = Cluster(
        ClusterSettings(
            profile=profile,
            broker_ids=tuple(range(1, brokers + 1)),
            coordinator=configured(CoordinatorConfig(), scenario.broker_settings),
            auto_create_topics=False,
            load_ms=scenario.load_ms,
            given={"authorizer.class.name": AUTHORIZER} if is_guarded else {},
        ),
        endpoint=lambda broker_id, _listener: Endpoint(f"broker-{broker_id}", BROKER_PORT),
        new_store=lambda _topic, _partition, _topic_id: CountingStore(),
        trace=trace,
        ids_of=lambda broker_id: ChosenIds(choices, f"broker-{broker_id}"),
    )
    # The cluster is older than the run: what made its offsets topic is no part of the trace.
    cluster.trace = None
    cluster.topics.create_asked_for(OFFSETS_TOPIC, Instants(0, 0))
    if is_guarded:
        ClusterAdmin(cluster, lambda _error, _message: None).allow_all()
    cluster.trace = trace
    return cluster


def _members(
    scenario: Scenario, world: World, connect: dict[str, ConnectCluster]
) -> dict[str, Member]:
    members: dict[str, Member] = {}
    for group in scenario.groups:
        if isinstance(group, StreamsGroupSpec):
            application = Application(group)
            for spec in group.members:
                members[spec.name] = _instance(world, spec, application)
        elif isinstance(group, ConsumerGroupSpec):
            for spec in group.members:
                members[spec.name] = _consumer(world, spec, group)
        elif isinstance(group, ShareGroupSpec):
            for share in group.members:
                members[share.name] = _share_consumer(world, share, group)
        else:
            work = ClusterWork(world, group)
            for worker in group.workers:
                members[worker.name] = _worker(
                    world, worker, group, cluster=connect[group.group_id], work=work
                )
    return members


def _run_workloads(
    scenario: Scenario, world: World, members: Mapping[str, Member], nodes: Nodes
) -> None:
    groups = {each.group_id: each for each in scenario.groups}
    for spec in scenario.kubernetes:
        workload = Workload(world, spec, groups[spec.group_id], members, nodes)
        nodes.workloads[spec.name] = workload
    for workload in nodes.workloads.values():
        workload.reconcile()
        start_autoscaler(world, workload)


def _consumer(world: World, spec: ConsumerSpec, group: ConsumerGroupSpec) -> Member:
    def make_process(on_exit: Action, settings: Mapping[str, str]) -> ConsumerProcess:
        if not settings:
            return ConsumerProcess(world, spec, group, on_exit=on_exit)
        changed = with_new_configuration(group, settings)
        now = next(member for member in changed.members if member.name == spec.name)
        return ConsumerProcess(world, now, changed, on_exit=on_exit)

    return Member(world, spec.name, group_id=group.group_id, make_process=make_process)


def _share_consumer(world: World, spec: ShareConsumerSpec, group: ShareGroupSpec) -> Member:
    def make_process(on_exit: Action, settings: Mapping[str, str]) -> ShareConsumerProcess:
        changed = with_member_settings(group, settings)
        now = next(member for member in changed.members if member.name == spec.name)
        return ShareConsumerProcess(world, now, changed, on_exit=on_exit)

    return Member(world, spec.name, group_id=group.group_id, make_process=make_process)


def _instance(world: World, spec: ConsumerSpec, application: Application) -> Member:
    def make_process(on_exit: Action, settings: Mapping[str, str]) -> StreamsProcess:
        now = structs.replace(spec, settings={**spec.settings, **settings})
        return StreamsProcess(world, now, application, on_exit=on_exit)

    group_id = application.group.group_id
    return Member(world, spec.name, group_id=group_id, make_process=make_process)


def _worker(
    world: World,
    spec: WorkerSpec,
    group: ConnectGroupSpec,
    *,
    cluster: ConnectCluster,
    work: ClusterWork,
) -> Member:
    def make_process(on_exit: Action, settings: Mapping[str, str]) -> WorkerProcess:
        changed = with_member_settings(group, settings)
        now = next(member for member in changed.workers if member.name == spec.name)
        return WorkerProcess(world, now, changed, cluster=cluster, work=work, on_exit=on_exit)

    return Member(world, spec.name, group_id=group.group_id, make_process=make_process)
