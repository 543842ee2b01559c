"""Scenarios as lists of Trogdor tasks: what happens to a world, in the words that Trogdor reads.

Every happening is a task of a class of its own, `coordinatorsim.<Happening>`: `startMs` is its
instant, `durationMs` how long it lasts, and its other fields keep their names in Java's spelling.
So are the members of groups (`member_tasks`). Kafka's own faults are read too, and become the
happenings that have their effect; its workloads run as they are (`workloads`).

A task runs on nodes. Each broker is on a node of its own, `broker-<id>`, and each member on one of
its own name, unless `nodes` puts several processes on one node.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, get_args

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, asdict, fields

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.happenings import (
    DegradeNetwork,
    FailOffsetsReads,
    Happening,
    PartitionNetwork,
    PauseBroker,
    PauseMember,
    end_of,
)
from coordinator_sim.sim.scenario.member_tasks import (
    PACKAGE,
    ConnectWorkerSpec,
    GroupMemberSpec,
    OffsetCommitterSpec,
    as_workload,
    stops_of,
    with_members,
)
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.unchecked import TaskWindow, UncheckedScenario
from coordinator_sim.sim.scenario.workloads import (
    WORKLOADS,
    WorkloadTask,
    process_names,
    workload_task,
)
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import NoOpTaskSpec, TaskSpec, class_of

BROKER: Final = "broker-"
"""What the names of brokers' nodes and processes begin with."""
_LENGTHS: Final = ("for_ms", "down_ms")
"""Fields of happenings that say how long they last."""


class Task(Struct, frozen=True):
    """A task: its id, and its spec as JSON."""

    id: str
    spec: dict[str, Any]


class HappeningSpec(TaskSpec, frozen=True, kw_only=True):
    """The spec of a happening."""


def _spec_class(kind: type[Happening]) -> type[HappeningSpec]:
    own = [_field(each) for each in fields(kind) if each.name not in {"at_ms", *_LENGTHS}]
    made: Any = msgspec.defstruct(
        f"{kind.__name__}Spec",
        own,
        bases=(HappeningSpec,),
        tag=f"{PACKAGE}.{kind.__name__}",
        frozen=True,
        kw_only=True,
    )
    made.__doc__ = kind.__doc__
    spec: type[HappeningSpec] = made
    return spec


def _field(info: FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    if info.default is not NODEFAULT:
        return info.name, info.type, info.default
    if info.default_factory is not NODEFAULT:
        return info.name, info.type, msgspec.field(default_factory=info.default_factory)
    return info.name, info.type


_SPECS: Final = {kind: _spec_class(kind) for kind in get_args(Happening)}
_HAPPENINGS: Final[dict[type[TaskSpec], type[Happening]]] = {
    spec: kind for kind, spec in _SPECS.items()
}
"""Class of specs -> the happenings that they describe."""


# -- reading -----------------------------------------------------------------------------------


class TaskFile(Struct, frozen=True):
    """A task file that was read.

    Args:
        world: All but what happens.
        nodes: Node -> the processes that the file puts there.
        specs: Task id -> its spec.
    """

    world: UncheckedScenario
    nodes: dict[str, tuple[str, ...]]
    specs: dict[str, TaskSpec]


def read_task_file(data: Mapping[str, Any], origin: str) -> TaskFile:
    """Read the JSON object of a task file.

    Args:
        data: The fields of a scenario, with `tasks` in place of `happenings`; `nodes` may say which
            processes are on a node.
        origin: Name of the file, for errors.

    Raises:
        ScenarioError: a field is wrong, or a task is none.
    """
    world_data = {name: value for name, value in data.items() if name not in {"tasks", "nodes"}}
    if "happenings" in world_data:
        raise ScenarioError(f"{origin}: tasks and happenings exclude each other: leave one out")
    try:
        tasks = msgspec.convert(data.get("tasks", ()), tuple[Task, ...])
        nodes = msgspec.convert(data.get("nodes", {}), dict[str, tuple[str, ...]])
        world = msgspec.convert(world_data, UncheckedScenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{origin}: {error}") from error
    specs: dict[str, TaskSpec] = {}
    for task in tasks:
        if not task.id or task.id in specs:
            raise ScenarioError(f"{origin}: task id {task.id!r}: give each task one of its own")
        specs[task.id] = _spec_of(task, origin)
    for task_id, spec in specs.items():
        if isinstance(spec, GroupMemberSpec | ConnectWorkerSpec) and spec.node:
            nodes[spec.node] = (*nodes.get(spec.node, ()), task_id)
    return TaskFile(with_members(world, specs, origin), nodes, specs)


def scenario_of_tasks(data: Mapping[str, Any], origin: str) -> Scenario:
    """Build a scenario from the JSON object of a task file; see `read_task_file`.

    Raises:
        ScenarioError: a task is none, or the world is impossible.
        ConfigError: a setting is unknown or outside its bounds.
    """
    return scenario_of_file(read_task_file(data, origin), origin)


def scenario_of_file(file: TaskFile, origin: str) -> Scenario:
    """Build a scenario from a task file; see `scenario_of_tasks`."""
    specs = file.specs
    found = [
        workload_task(name, _as_kafkas(spec), f"{origin}: task {name!r}")
        for name, spec in specs.items()
    ]
    workloads = tuple(each for each in found if each is not None)
    places = _Places(file.world, file.nodes, workloads, origin)
    happenings: list[Happening] = []
    windows: list[TaskWindow] = []
    for (task_id, spec), workload in zip(specs.items(), found, strict=True):
        if workload is not None:
            continue
        if isinstance(spec, GroupMemberSpec | ConnectWorkerSpec):
            own = stops_of(task_id, spec, file.world)
            end_ms = own[0].at_ms if own else file.world.duration_ms
        else:
            own = tuple(_happenings_of(spec, places, f"{origin}: task {task_id!r}"))
            end_ms = max((end_of(each) for each in own), default=spec.end_ms)
        happenings += own
        windows.append(TaskWindow(task_id, class_of(spec), spec.start_ms, end_ms))
    happenings.sort(key=lambda each: each.at_ms)
    return Scenario(
        **{
            **asdict(file.world),
            "happenings": tuple(happenings),
            "tasks": tuple(windows),
            "workloads": workloads,
        }
    )


def _as_kafkas(spec: TaskSpec) -> TaskSpec:
    """The workload of Kafka's that a task of ours is; others as they are."""
    return as_workload(spec) if isinstance(spec, OffsetCommitterSpec) else spec


def _nothing(_spec: TaskSpec, _places: "_Places", _origin: str) -> Iterator[Happening]:
    """A task that does nothing but last."""
    yield from ()


def _spec_of(task: Task, origin: str) -> TaskSpec:
    try:
        return jackson.from_tree(task.spec, TaskSpec)
    except TrogdorRefusal as refusal:
        raise ScenarioError(f"{origin}: task {task.id!r}: {refusal.message}") from None


def _happenings_of(spec: TaskSpec, places: "_Places", origin: str) -> Iterable[Happening]:
    if isinstance(spec, HappeningSpec):
        return (happening_of(spec, origin),)
    translated = _STOCK.get(type(spec))
    if translated is None:
        kinds: tuple[type[TaskSpec], ...] = (*_STOCK, *WORKLOADS)
        known = ", ".join(sorted(each.__name__ for each in kinds))
        raise ScenarioError(
            f"{origin}: {class_of(spec)} has no effect in virtual time; of Kafka's own, {known} "
            f"have, beside every {PACKAGE}.<Happening>"
        )
    return translated(spec, places, origin)


def happening_of(spec: HappeningSpec, origin: str) -> Happening:
    """The happening that a task of a class of our own is.

    Raises:
        ScenarioError: it has a duration, and the happening takes no time.
    """
    kind: Any = _HAPPENINGS[type(spec)]
    values = asdict(spec)
    lengths = {name: spec.duration_ms for name in _LENGTHS if name in kind.__struct_fields__}
    if not lengths and spec.duration_ms:
        raise ScenarioError(
            f"{origin}: durationMs is {spec.duration_ms}, but {kind.__name__} takes no time: "
            "leave it out"
        )
    own = {name: values[name] for name in kind.__struct_fields__ if name in values}
    happening: Happening = kind(at_ms=spec.start_ms, **lengths, **own)
    return happening


class _Places:
    """Which processes are on which node."""

    def __init__(
        self,
        world: UncheckedScenario,
        nodes: Mapping[str, tuple[str, ...]],
        workloads: tuple[WorkloadTask, ...],
        origin: str,
    ) -> None:
        brokers = [f"{BROKER}{number}" for number in range(1, world.brokers + 1)]
        self.members = [member.name for member in world.members()]
        known = {*brokers, *self.members}
        self._nodes: dict[str, tuple[str, ...]] = {name: (name,) for name in known}
        for node, processes in nodes.items():
            for process in processes:
                if process not in known:
                    raise ScenarioError(
                        f"{origin}: node {node!r} has {process!r}, which is neither a member nor "
                        f"one of {BROKER}1 to {BROKER}{world.brokers}"
                    )
                self._nodes.pop(process, None)
        self._nodes.update(nodes)
        self._kinds = dict.fromkeys(brokers, "kafka.Kafka")
        for task in workloads:
            for node, process in task.processes().items():
                self._nodes[node] = (*self._nodes.get(node, ()), process)
                self._kinds[process] = class_of(task.parsed)
        self.members += process_names(workloads)

    def command_of(self, process: str) -> str:
        """The command line of a process in a process list: its name, and its class if any."""
        return f"{process} {self._kinds.get(process, '')}"

    def of(self, node: str, origin: str) -> tuple[str, ...]:
        """The processes on a node.

        Raises:
            ScenarioError: there is no such node.
        """
        found = self._nodes.get(node)
        if found is None:
            known = ", ".join(sorted(self._nodes))
            raise ScenarioError(f"{origin}: there is no node {node!r}; nodes are {known}")
        return found


def _partition(
    spec: NetworkPartitionFaultSpec, places: _Places, origin: str
) -> Iterator[Happening]:
    """Cut every member off from the brokers on other sides; nodes on no side keep their links."""
    sides = [
        [each for node in side for each in places.of(node, origin)] for side in spec.partitions
    ]
    for number, side in enumerate(sides):
        others = [each for at, other in enumerate(sides) if at != number for each in other]
        for member in (each for each in side if not each.startswith(BROKER)):
            for broker in (each for each in others if each.startswith(BROKER)):
                yield PartitionNetwork(
                    at_ms=spec.start_ms,
                    for_ms=spec.duration_ms,
                    member=member,
                    broker=int(broker.removeprefix(BROKER)),
                )


def _process_stop(spec: ProcessStopFaultSpec, places: _Places, origin: str) -> Iterator[Happening]:
    """Freeze the members and brokers of a name."""
    for node in spec.node_names:
        for process in places.of(node, origin):
            if spec.java_process_name not in places.command_of(process):
                continue
            if process in places.members:
                yield PauseMember(at_ms=spec.start_ms, member=process, for_ms=spec.duration_ms)
            else:
                number = int(process.removeprefix(BROKER))
                yield PauseBroker(at_ms=spec.start_ms, broker=number, for_ms=spec.duration_ms)


def _degraded_network(
    spec: DegradedNetworkFaultSpec, places: _Places, origin: str
) -> Iterator[Happening]:
    """Delay what every process of a node sends; a node has one network, whatever its device."""
    for node, degraded in spec.node_specs.items():
        processes = places.of(node, origin)
        if degraded.rate_limit_kbit:
            raise ScenarioError(
                f"{origin}: rateLimitKbit of {node!r} is {degraded.rate_limit_kbit}: rates are not "
                "simulated, as fetched records are counted and not sent; leave it out"
            )
        if degraded.latency_ms < 0:
            raise ScenarioError(
                f"{origin}: latencyMs of {node!r} is {degraded.latency_ms}: must be at least 0"
            )
        brokers = [each for each in processes if each not in places.members]
        if brokers and len(brokers) < len(processes):
            raise ScenarioError(
                f"{origin}: node {node!r} has brokers and members, which would talk over its "
                "loopback device: give them nodes of their own"
            )
        for process in processes if degraded.latency_ms else ():
            is_broker = process in brokers
            yield DegradeNetwork(
                at_ms=spec.start_ms,
                for_ms=spec.duration_ms,
                latency_ms=degraded.latency_ms,
                member=None if is_broker else process,
                broker=int(process.removeprefix(BROKER)) if is_broker else None,
            )


def _unreadable_files(
    spec: FilesUnreadableFaultSpec, places: _Places, origin: str
) -> Iterator[Happening]:
    """Let brokers' reads fail of the folders that the last part of the prefix names."""
    if spec.error_code < 1:
        raise ScenarioError(
            f"{origin}: errorCode is {spec.error_code}: give an errno, such as 5 for EIO"
        )
    for node in spec.node_names:
        for process in places.of(node, origin):
            if process not in places.members:
                yield FailOffsetsReads(
                    at_ms=spec.start_ms,
                    for_ms=spec.duration_ms,
                    broker=int(process.removeprefix(BROKER)),
                    prefix=spec.prefix.rpartition("/")[2],
                )


_STOCK: Final[dict[type[TaskSpec], Callable[[Any, _Places, str], Iterator[Happening]]]] = {
    NetworkPartitionFaultSpec: _partition,
    ProcessStopFaultSpec: _process_stop,
    DegradedNetworkFaultSpec: _degraded_network,
    FilesUnreadableFaultSpec: _unreadable_files,
    NoOpTaskSpec: _nothing,
}
"""Kafka's own tasks that happen in virtual time, beside its workloads."""


# -- writing -----------------------------------------------------------------------------------


def tasks_of(scenario: Scenario) -> tuple[Task, ...]:
    """What happens in a scenario as tasks, numbered by kind: `RestartMember-1`; then workloads."""
    counts: dict[str, int] = {}
    tasks: list[Task] = []
    for happening in scenario.happenings:
        kind: Any = type(happening)
        number = counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        values = asdict(happening)
        start_ms = values.pop("at_ms")
        duration_ms = sum(values.pop(name, 0) for name in _LENGTHS)
        spec = _SPECS[kind](start_ms=start_ms, duration_ms=duration_ms, **values)
        tasks.append(Task(f"{kind.__name__}-{number}", jackson.tree(spec)))
    return (*tasks, *(Task(task.id, task.spec) for task in scenario.workloads))


def tasks_to_json(scenario: Scenario) -> bytes:
    """Return a scenario as a task file, indented, ending in a newline."""
    data = msgspec.to_builtins(scenario)
    data.pop("happenings")
    data.pop("workloads")
    data["tasks"] = msgspec.to_builtins(tasks_of(scenario))
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"
