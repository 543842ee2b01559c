"""Tasks that are members of groups: consumers, Connect workers, and who commits without joining.

A member is there from its task's start to its end, or to the end of the run without a duration. Its
name is the task's id.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.happenings import Happening, StopMember
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.world import (
    Client,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    GroupSpec,
    WorkerSpec,
)
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec

PACKAGE: Final = "coordinatorsim"
"""Package of the classes of tasks that Kafka does not have."""


class GroupMemberSpec(TaskSpec, frozen=True, kw_only=True, tag=f"{PACKAGE}.GroupMember"):
    """A consumer of a group.

    The members of one group agree on assignors; a group of the scenario's own takes them as well.

    Args:
        node: Where it runs; empty for a node of its own.
        topics: What it subscribes to.
        assignors: In its order of preference.
        settings: Client settings by Kafka's names.
        instance_id: `group.instance.id`; None makes the member dynamic.
        processing_ms: Application work between two polls.
        client: Kind of client.
    """

    node: str = ""
    group_id: str
    topics: tuple[str, ...]
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    settings: Mapping[str, str] = {}
    instance_id: str | None = None
    processing_ms: int = 200
    client: Client = "java"


class ConnectWorkerSpec(TaskSpec, frozen=True, kw_only=True, tag=f"{PACKAGE}.ConnectWorker"):
    """A worker of a Connect cluster.

    The first worker of a cluster names its connectors and its protocol; the others leave both out.

    Args:
        node: Where it runs; empty for a node of its own.
        connect_protocol: `eager`, `compatible` or `sessioned`.
        connectors: Task count of each connector.
        settings: Worker settings by Kafka's names.
    """

    node: str = ""
    group_id: str
    connect_protocol: str = "sessioned"
    connectors: Mapping[str, int] = {}
    settings: Mapping[str, str] = {}


class OffsetCommitterSpec(TaskSpec, frozen=True, kw_only=True, tag=f"{PACKAGE}.OffsetCommitter"):
    """A consumer of partitions by name: it commits offsets for a group that it does not join.

    Args:
        node: Where it runs.
        partitions: Such as `orders:[0-5]`.
        every_ms: From one commit to the next.
    """

    node: str
    group_id: str
    partitions: tuple[str, ...]
    every_ms: int = 5_000


MemberTaskSpec = GroupMemberSpec | ConnectWorkerSpec
"""Tasks that become members of the scenario's groups."""
_UNBOUNDED: Final = 1_000_000_000


def as_workload(spec: OffsetCommitterSpec) -> ConsumeBenchSpec:
    """The workload that commits offsets: a consumer without a group's assignment."""
    return ConsumeBenchSpec(
        start_ms=spec.start_ms,
        duration_ms=spec.duration_ms,
        consumer_node=spec.node,
        consumer_group=spec.group_id,
        max_messages=_UNBOUNDED,
        consumer_conf={"auto.commit.interval.ms": str(spec.every_ms)},
        active_topics=spec.partitions,
    )


def stops_of(task_id: str, spec: MemberTaskSpec, world: UncheckedScenario) -> tuple[Happening, ...]:
    """The end of a member's task as a happening; none where the run ends before."""
    if not spec.duration_ms or spec.end_ms > world.duration_ms:
        return ()
    return (StopMember(at_ms=spec.end_ms, member=task_id),)


def with_members(
    world: UncheckedScenario, specs: Mapping[str, TaskSpec], origin: str
) -> UncheckedScenario:
    """The world with the members that tasks bring, each in its group.

    Raises:
        ScenarioError: a group has members of both kinds, or of other assignors.
    """
    groups = {group.group_id: group for group in world.groups}
    for task_id, spec in specs.items():
        if isinstance(spec, GroupMemberSpec):
            known = groups.get(spec.group_id)
            groups[spec.group_id] = _with_consumer(known, task_id, spec, origin)
        elif isinstance(spec, ConnectWorkerSpec):
            known = groups.get(spec.group_id)
            groups[spec.group_id] = _with_worker(known, task_id, spec, origin)
    return replace(world, groups=tuple(groups.values()))


def _with_consumer(
    group: GroupSpec | None, task_id: str, spec: GroupMemberSpec, origin: str
) -> ConsumerGroupSpec:
    member = ConsumerSpec(
        name=task_id,
        start_ms=spec.start_ms,
        instance_id=spec.instance_id,
        topics=spec.topics,
        settings=dict(spec.settings),
        processing_ms=spec.processing_ms,
        client=spec.client,
    )
    if group is None:
        return ConsumerGroupSpec(
            group_id=spec.group_id, topics=(), members=(member,), assignors=spec.assignors
        )
    if not isinstance(group, ConsumerGroupSpec):
        raise ScenarioError(f"{origin}: task {task_id!r}: {spec.group_id!r} is a Connect cluster")
    if group.assignors != spec.assignors:
        raise ScenarioError(
            f"{origin}: task {task_id!r}: assignors {', '.join(spec.assignors)}; the group "
            f"{spec.group_id!r} has {', '.join(group.assignors)}: give all members the same"
        )
    return replace(group, members=(*group.members, member))


def _with_worker(
    group: GroupSpec | None, task_id: str, spec: ConnectWorkerSpec, origin: str
) -> ConnectGroupSpec:
    worker = WorkerSpec(name=task_id, start_ms=spec.start_ms, settings=dict(spec.settings))
    if group is None:
        return ConnectGroupSpec(
            group_id=spec.group_id,
            workers=(worker,),
            connect_protocol=spec.connect_protocol,
            connectors=dict(spec.connectors),
        )
    if not isinstance(group, ConnectGroupSpec):
        raise ScenarioError(f"{origin}: task {task_id!r}: {spec.group_id!r} is a consumer group")
    usual = ConnectWorkerSpec(group_id=spec.group_id)
    if (spec.connect_protocol, spec.connectors) != (usual.connect_protocol, usual.connectors):
        raise ScenarioError(
            f"{origin}: task {task_id!r}: connectors and connectProtocol stand in the cluster's "
            "first worker: leave them out"
        )
    return replace(group, workers=(*group.workers, worker))
