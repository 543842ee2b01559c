"""Carries out the happenings of a scenario at their instants, and records each as a FAULT."""

from collections.abc import Mapping
from functools import partial
from typing import assert_never

import msgspec
from simpy import Resource
from simpy.events import ProcessGenerator, Timeout

from coordinator_sim.broker.faults.faults import as_json
from coordinator_sim.broker.security.authorizer import WILDCARD
from coordinator_sim.clock import Action
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.cluster_admin import ClusterAdmin, roll_brokers
from coordinator_sim.sim.connect_cluster import ConnectCluster
from coordinator_sim.sim.degradation import End
from coordinator_sim.sim.kubernetes import Nodes
from coordinator_sim.sim.members import Member
from coordinator_sim.sim.rest_operator import send_rest_request
from coordinator_sim.sim.scenario import happenings
from coordinator_sim.sim.scenario import happenings as scripted
from coordinator_sim.sim.scenario.unchecked import TaskWindow
from coordinator_sim.sim.workload_agents import WorkloadAgents
from coordinator_sim.sim.world import US_PER_MS, World


class Stage:
    """Everything that happenings act upon.

    Args:
        world: Shared parts of the run.
        cluster: The brokers.
        members: Members by name.
        connect: The Connect clusters by group id.
        workloads: The agents with their workloads.
        kubernetes: The nodes, with Deployments and StatefulSets by name.
    """

    __slots__ = (
        "_admin",
        "_cluster",
        "_connect",
        "_kubernetes",
        "_members",
        "_roll_lock",
        "_workloads",
        "_world",
    )

    def __init__(
        self,
        world: World,
        cluster: ClusterDriver,
        *,
        members: Mapping[str, Member],
        connect: Mapping[str, ConnectCluster],
        workloads: WorkloadAgents,
        kubernetes: Nodes,
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._admin = ClusterAdmin(cluster.cluster, self._refused)
        self._members = members
        self._roll_lock = Resource(world.environment)
        self._connect = connect
        self._workloads = workloads
        self._kubernetes = kubernetes

    def schedule(self, happening: happenings.Happening) -> None:
        """Schedule a happening at its instant."""
        self._in(happening.at_ms, partial(self.happen, happening))

    def schedule_task(self, task: TaskWindow) -> None:
        """Schedule what the trace says of a task: when it runs, and when it is done."""
        for at_ms, what in ((task.start_ms, "TaskRunning"), (task.end_ms, "TaskDone")):
            self._in(at_ms, partial(self._world.record_fault, what, task=task.id, kind=task.kind))

    def _in(self, delay_ms: int, action: Action) -> None:
        """Call the action in a process, so many milliseconds from now."""
        environment = self._world.environment
        environment.process(_after(environment.timeout(delay_ms * US_PER_MS), action))

    def happen(self, happening: happenings.Happening) -> None:
        """Carry out a happening now, whatever its instant; a window of time ends by itself."""
        fields = msgspec.structs.asdict(happening)
        attrs = {
            name: _text(value)
            for name, value in fields.items()
            if name != "at_ms" and value not in (None, {}, "")
        }
        self._world.record_fault(type(happening).__name__, **attrs)
        if isinstance(happening, happenings.ConnectorHappening):
            self._change_connector(happening)
        elif isinstance(happening, happenings.WorkloadHappening):
            self._change_workload(happening)
        elif isinstance(happening, happenings.ProcessHappening):
            self._change_process(happening)
        elif isinstance(happening, happenings.ResponseHappening):
            self._cluster.add_fault(happenings.rule_of(happening), is_traced=False)
        elif isinstance(happening, scripted.FaultRule):
            self._cluster.add_fault(happening.rule, is_traced=True)
        elif isinstance(happening, happenings.MemberHappening):
            self._change_member(happening)
        elif isinstance(happening, scripted.SetClock):
            self._set_clock(happening)
        elif isinstance(happening, scripted.SlowDownstream):
            self._slow_down(happening)
        elif isinstance(happening, happenings.AdminHappening):
            self._administer(happening)
        else:
            self._change_cluster(happening)

    def _change_workload(self, happening: happenings.WorkloadHappening) -> None:
        match happening:
            case scripted.RollOut(workload=name, settings=settings):
                self._kubernetes.workloads[name].roll_out(settings)
            case scripted.ScaleWorkload(workload=name, replicas=replicas):
                self._kubernetes.workloads[name].scale(replicas)
            case scripted.EvictPod(member=member):
                for workload in self._kubernetes.workloads.values():
                    workload.evict(member)
            case scripted.DrainNode(node=node, for_ms=for_ms, notice_ms=notice_ms):
                self._kubernetes.drain(node, for_ms, notice_ms)
            case _:
                assert_never(happening)

    def _change_process(self, happening: happenings.ProcessHappening) -> None:
        member = self._members[happening.member]
        match happening:
            case scripted.StartMember(settings=settings):
                member.start(settings)
            case scripted.StopMember():
                member.stop()
            case scripted.CrashMember():
                member.crash()
            case scripted.RestartMember(down_ms=down_ms, graceful=graceful, settings=settings):
                member.restart(down_ms, graceful=graceful, settings=settings)
            case _:
                assert_never(happening)

    def _change_member(self, happening: happenings.MemberHappening) -> None:
        match happening:
            case scripted.SetClock(member=name, skew_ms=skew_ms, drift_ppm=drift_ppm):
                self._world.clock_of(name).set(skew_ms=skew_ms, drift_ppm=drift_ppm)
                return
            case scripted.PauseMember(member=name, for_ms=for_ms) if name not in self._members:
                self._workloads.pause(name, for_ms)
                return
        member = self._members[happening.member]
        match happening:
            case scripted.PauseMember(for_ms=for_ms):
                member.pause(for_ms)
            case scripted.SlowPoll(for_ms=for_ms):
                member.be_slow(for_ms)
            case scripted.LagConfigTopic(member=name, for_ms=for_ms):
                self._connect[member.group_id].hold_back(name, for_ms * US_PER_MS)
            case scripted.ChangeSubscription(topics=topics):
                member.subscribe(topics)
            case scripted.RestRequest():
                send_rest_request(self._world, happening, member.group_id)
            case _:
                assert_never(happening)

    def _set_clock(self, happening: scripted.SetClock) -> None:
        skew_ms, drift_ppm = happening.skew_ms, happening.drift_ppm
        if happening.member is not None:
            self._world.clock_of(happening.member).set(skew_ms=skew_ms, drift_ppm=drift_ppm)
        elif happening.broker is not None:
            self._cluster.set_clock(happening.broker, skew_ms=skew_ms, drift_ppm=drift_ppm)

    def _change_cluster(self, happening: happenings.ClusterHappening) -> None:
        match happening:
            case scripted.PartitionNetwork(member=member, broker=broker, for_ms=for_ms):
                self._world.network.cut(member, broker)
                self._in(for_ms, partial(self._heal, member, broker))
            case scripted.DegradeNetwork():
                self._degrade(happening)
            case scripted.MoveCoordinator(to_broker=to_broker):
                self._cluster.move(self._offsets_partition(happening), to_broker)
            case scripted.HoldReplication(for_ms=for_ms):
                self._cluster.hold(self._offsets_partition(happening), for_ms)
            case scripted.PauseBroker(broker=broker, for_ms=for_ms):
                self._cluster.pause(broker, for_ms)
            case scripted.CrashBroker(broker=broker, for_ms=for_ms):
                self._cluster.crash(broker, for_ms)
            case scripted.FailOffsetsReads(broker=broker, prefix=prefix, for_ms=for_ms):
                self._cluster.fail_reads(broker, prefix, for_ms)
            case scripted.RollBrokers():
                environment = self._world.environment
                roll = roll_brokers(environment, self._cluster, happening, self._roll_lock)
                environment.process(roll)
            case _:
                assert_never(happening)

    def _administer(self, happening: happenings.AdminHappening) -> None:
        match happening:
            case scripted.AddPartitions(topic=topic, to=to):
                if self._world.partition_count(topic):
                    self._cluster.create_topic(topic, to)
                    self._world.topic_logs.grow(topic, to, self._world.environment.now_us)
            case scripted.CreateTopic(topic=topic, partitions=partitions):
                self._cluster.create_topic(topic, partitions)
                self._world.topic_logs.create(topic)
            case scripted.DeleteTopic(topic=topic):
                deleted = partial(self._world.topic_logs.delete, topic)
                self._cluster.administer(partial(self._admin.delete_topic, topic, deleted))
            case scripted.ChangeConfig():
                self._cluster.administer(partial(self._admin.change_config, happening))
            case scripted.DenyAccess(member=member, for_ms=for_ms):
                network = self._world.network
                host = WILDCARD if member is None else network.host_of(member).removeprefix("/")
                self._cluster.administer(partial(self._admin.deny, happening, host))
                self._in(for_ms, partial(self._allow_again, happening, host))
            case _:
                assert_never(happening)

    def _allow_again(self, denied: scripted.DenyAccess, host: str) -> None:
        self._world.record_fault("AccessAllowed", operation=denied.operation)
        self._cluster.administer(partial(self._admin.allow_again, denied, host))

    def _refused(self, error: ErrorCode, message: str) -> None:
        self._world.record_fault("AdminRefused", error=error.name, message=message)

    def _degrade(self, happening: scripted.DegradeNetwork) -> None:
        end: End = happening.member or happening.broker or 0
        self._world.network.degrade(end, happening.latency_ms)
        self._in(happening.for_ms, partial(self._restore, end, happening.latency_ms))

    def _slow_down(self, happening: scripted.SlowDownstream) -> None:
        group_id, percent = happening.group_id, happening.percent
        self._world.slow_percents.setdefault(group_id, []).append(percent)
        self._in(happening.for_ms, partial(self._recover, group_id, percent))

    def _recover(self, group_id: str, percent: int) -> None:
        self._world.record_fault("DownstreamRecovered", group_id=group_id, percent=str(percent))
        self._world.slow_percents[group_id].remove(percent)

    def _restore(self, end: End, latency_ms: int) -> None:
        self._world.record_fault("NetworkRestored", end=str(end))
        self._world.network.restore(end, latency_ms)

    def _heal(self, member: str | None, broker: int | None) -> None:
        ends = {"member": member, "broker": None if broker is None else str(broker)}
        attrs = {name: end for name, end in ends.items() if end is not None}
        self._world.record_fault("NetworkHealed", **attrs)
        self._world.network.heal(member, broker)

    def _offsets_partition(
        self, happening: scripted.MoveCoordinator | scripted.HoldReplication
    ) -> int:
        if happening.partition is not None:
            return happening.partition
        return self._world.offsets_partition_of(happening.group_id or "")

    def _change_connector(self, happening: happenings.ConnectorHappening) -> None:
        admin = self._connect[happening.group_id]
        match happening:
            case scripted.RemoveConnector(connector=connector):
                admin.remove_connector(connector)
            case scripted.FailWork(connector=connector, task=task, trace=trace):
                admin.fail(connector, task, trace)
            case scripted.AddConnector() | scripted.ChangeTaskCount():
                admin.set_connector(happening.connector, happening.tasks)
            case _:
                assert_never(happening)


def _after(due: Timeout, action: Action) -> ProcessGenerator:
    yield due
    action()


def _text(value: object) -> str:
    """Format a happening's field as the trace shows it."""
    if isinstance(value, msgspec.Struct):
        return as_json(value)
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, dict):
        return ",".join(f"{name}={setting}" for name, setting in value.items())
    return str(value)
