"""Scenario files: a world with its happenings, or with tasks in their place."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from coordinator_sim.broker.faults.faults import Drop, Fault, Lose
from coordinator_sim.errors import UNREADABLE_JSON, ScenarioError
from coordinator_sim.sim.scenario.happenings import (
    CrashBroker,
    CreateTopic,
    DelayResponse,
    DeleteTopic,
    DropResponse,
    DuplicateResponse,
    FaultRule,
    Happening,
    MoveCoordinator,
    PauseBroker,
    ReorderResponses,
    end_of,
    rule_of,
)
from coordinator_sim.sim.scenario.load import (
    Keys,
    Load,
    PoisonRecords,
    RecordedLoad,
    check_load,
)
from coordinator_sim.sim.scenario.member_tasks import (
    PACKAGE,
    GroupMemberSpec,
    OffsetCommitterSpec,
    as_workload,
)
from coordinator_sim.sim.scenario.ranges import expanded, folded
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.tasks import (
    BROKER,
    HappeningSpec,
    TaskFile,
    happening_of,
    read_task_file,
    scenario_of_file,
    scenario_of_tasks,
)
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import CommitPolicy, ConnectorWork, ProcessingLaw
from coordinator_sim.sim.scenario.world import (
    GroupSpec,
    LatencyLaw,
    MemberSpec,
    NetworkSpec,
    TopicSpec,
)
from coordinator_sim.trogdor.plan import ControlCall, Operation, Plan, PlannedMember, PlannedTask
from coordinator_sim.trogdor.specs import class_of
from coordinator_sim.trogdor.targets import target_nodes
from coordinator_sim.trogdor.topology import Topology

_OPERATED: Final = (
    *(CrashBroker, PauseBroker, MoveCoordinator, CreateTopic, DeleteTopic, FaultRule),
    *(DropResponse, DelayResponse, DuplicateResponse, ReorderResponses),
)


def plan_of(data: Mapping[str, Any], origin: str) -> Plan:
    """The plan of a task file.

    Args:
        data: The JSON object of the file.
        origin: Its name, for errors.

    Raises:
        ScenarioError: it is no task file, or asks for what only virtual time has.
        ConfigError: a setting is unknown or outside its bounds.
    """
    file = read_task_file(data, origin)
    scenario = scenario_of_file(file, origin)
    for member in scenario.members():
        if not isinstance(file.specs.get(member.name), GroupMemberSpec):
            raise ScenarioError(
                f"{origin}: {member.name!r} is a member of the simulator's: for real, there are "
                f"tasks of the class {PACKAGE}.GroupMember, and ConsumeBenchSpec"
            )
    for topic in scenario.topics:
        if topic.records_per_s:
            raise ScenarioError(
                f"{origin}: topic {topic.name!r} fills by itself: for real, set its records_per_s "
                "to 0, and let a ProduceBenchSpec fill it"
            )
    node_of = {each: node for node, processes in file.nodes.items() for each in processes}
    own: list[Operation] = []
    members: list[PlannedMember] = []
    others: list[PlannedTask] = []
    for name, spec in file.specs.items():
        match spec:
            case HappeningSpec():
                own.append(_operation(name, spec, f"{origin}: task {name!r}"))
            case GroupMemberSpec():
                node = node_of.get(name, name)
                members.append(_member(name, spec, node, scenario.duration_ms))
            case OffsetCommitterSpec():
                others.append(PlannedTask(name, as_workload(spec)))
            case _:
                others.append(PlannedTask(name, spec))
    places = [node for task in others for node in sorted(target_nodes(task.spec, Topology({})))]
    places += [member.node for member in members]
    return Plan(
        name=scenario.name,
        brokers=scenario.brokers,
        profile=scenario.profile,
        broker_settings=dict(scenario.broker_settings),
        topics={topic.name: topic.partitions for topic in scenario.topics},
        nodes=_nodes(file, scenario.brokers, places),
        tasks=tuple(others),
        members=tuple(members),
        operations=tuple(own),
        duration_ms=scenario.duration_ms,
    )


def _member(task_id: str, spec: GroupMemberSpec, node: str, ends_ms: int) -> PlannedMember:
    """A member as the options of the command that joins its group.

    That command is Java's consumer, and reads without processing: `client` and `processingMs` are
    for virtual time.
    """
    words = ["--client-id", task_id, "--group", spec.group_id]
    words += ["--topics", ",".join(spec.topics), "--assignor", ",".join(spec.assignors)]
    if spec.instance_id is not None:
        words += ["--instance-id", spec.instance_id]
    for name, value in spec.settings.items():
        words += ["--set", f"{name}={value}"]
    return PlannedMember(
        id=task_id,
        kind=class_of(spec),
        node=node,
        start_ms=spec.start_ms,
        duration_ms=spec.duration_ms or ends_ms - spec.start_ms,
        words=tuple(words),
    )


def _nodes(file: TaskFile, brokers: int, places: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Every node that has a broker, or runs a task."""
    found = {
        node: tuple(
            int(process.removeprefix(BROKER)) for process in processes if process.startswith(BROKER)
        )
        for node, processes in file.nodes.items()
    }
    placed = {broker for own in found.values() for broker in own}
    for broker in range(1, brokers + 1):
        if broker not in placed:
            found[f"{BROKER}{broker}"] = (broker,)
    return {**dict.fromkeys(places, ()), **found}


def _operation(task_id: str, spec: HappeningSpec, origin: str) -> Operation:
    happening = happening_of(spec, origin)
    if not isinstance(happening, _OPERATED):
        known = ", ".join(sorted(each.__name__ for each in _OPERATED))
        raise ScenarioError(
            f"{origin}: {class_of(spec)} is for virtual time; for real there are {known}, and "
            "Kafka's own tasks"
        )
    return Operation(
        id=task_id,
        kind=class_of(spec),
        start_ms=happening.at_ms,
        end_ms=end_of(happening),
        calls=tuple(_calls(happening)),
    )


def _calls(happening: Happening) -> Iterable[ControlCall]:
    at_ms = happening.at_ms
    match happening:
        case CrashBroker(broker=broker, for_ms=for_ms):
            yield ControlCall(at_ms, "POST", f"/v1/brokers/{broker}/stop")
            yield ControlCall(at_ms + for_ms, "POST", f"/v1/brokers/{broker}/resume")
        case PauseBroker(broker=broker, for_ms=for_ms):
            yield ControlCall(at_ms, "POST", f"/v1/brokers/{broker}/pause")
            yield ControlCall(at_ms + for_ms, "POST", f"/v1/brokers/{broker}/resume")
        case MoveCoordinator(group_id=None, partition=partition, to_broker=to):
            path = f"/v1/topics/__consumer_offsets/partitions/{partition}/elect"
            yield ControlCall(at_ms, "POST", path, {"to": to})
        case MoveCoordinator(group_id=group_id, to_broker=to):
            yield ControlCall(at_ms, "POST", f"/v1/groups/{group_id}/move-coordinator", {"to": to})
        case CreateTopic(topic=topic, partitions=partitions):
            body = {"name": topic, "partitions": partitions}
            yield ControlCall(at_ms, "POST", "/v1/topics", body)
        case (
            DropResponse() | DelayResponse() | DuplicateResponse() | ReorderResponses() as disorder
        ):
            yield ControlCall(at_ms, "POST", "/v1/faults", _rule(rule_of(disorder)))
        case FaultRule(rule=rule):
            yield ControlCall(at_ms, "POST", "/v1/faults", _rule(rule))
        case DeleteTopic(topic=topic):
            yield ControlCall(at_ms, "DELETE", f"/v1/topics/{topic}")


def _rule(rule: Fault) -> dict[str, Any]:
    """A rule as a real cluster takes it: no answer is lost alone on a TCP connection."""
    if isinstance(rule.action, Lose):
        rule = msgspec.structs.replace(rule, action=Drop())
    data: dict[str, Any] = msgspec.to_builtins(rule)
    return data


_PARTS: Final = (
    *(Scenario, Variety, TopicSpec, NetworkSpec, *get_args(GroupSpec), *get_args(MemberSpec)),
    *(
        *get_args(LatencyLaw),
        *get_args(ProcessingLaw),
        *get_args(ConnectorWork),
        *(*get_args(Load), *get_args(Keys), PoisonRecords),
        CommitPolicy,
        *get_args(Happening),
    ),
)
_WORDS: Final = tuple(
    dict.fromkeys(
        word
        for part in _PARTS
        for word in (*part.__struct_fields__, part.__struct_config__.tag)
        if isinstance(word, str)
    )
)
"""Every field and kind that a scenario's file may name."""


def scenario_from_json(
    text: bytes | str, origin: str = "scenario", *, folder: Path | None = None
) -> Scenario:
    """Read a scenario from its JSON form.

    Args:
        text: UTF-8 JSON as `scenario_to_json` or `tasks_to_json` writes it; fields with a default
            may be left out, and ranges may stand for many members and happenings (`ranges`).
        origin: Name of the text in errors, such as its file name.
        folder: Where the files of recorded loads are; None refuses them.

    Raises:
        ScenarioError: the text is not JSON, lacks a field, or describes an impossible world.
        ConfigError: a setting is unknown or outside its bounds.
    """
    try:
        data = msgspec.json.decode(text)
        if isinstance(data, dict):
            data = expanded(data)
            if folder is not None:
                _read_recordings(data, folder)
            if _has_tasks(data):
                return scenario_of_tasks(data, origin)
        return msgspec.convert(data, Scenario)
    except UNREADABLE_JSON as error:
        raise ScenarioError(f"{origin}: {error}{_nearest_names(str(error))}") from error


def read_recorded_load(path: Path) -> RecordedLoad:
    """Read a recording from a CSV file with the columns `second,records`, a header or none.

    Raises:
        ScenarioError: a row has another form; names the file and the line.
        OSError: the file cannot be read.
    """
    points: list[tuple[int, int]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and (number > 1 or line.strip() != "second,records"):
            second, _, records = (cell.strip() for cell in line.partition(","))
            if not (second + records).isdecimal() or not second or not records:
                raise ScenarioError(f"{path}:{number}: {line!r}: give whole numbers, as 60,2000")
            points.append((int(second), int(records)))
    load = RecordedLoad(points=tuple(points))
    check_load(str(path), load)
    return load


def _read_recordings(data: dict[str, Any], folder: Path) -> None:
    """Put the points of recorded loads in place of the CSV files that they name as `file`."""
    topics = data.get("topics")
    for topic in topics if isinstance(topics, list) else ():
        load = topic.get("load") if isinstance(topic, dict) else None
        if isinstance(load, dict) and isinstance(load.get("file"), str):
            read = read_recorded_load(folder / load.pop("file"))
            topic["load"] = {**load, "points": read.points}


def _has_tasks(data: dict[str, Any]) -> bool:
    """Whether a file says what happens as tasks with specs."""
    tasks = data.get("tasks")
    has_specs = isinstance(tasks, list) and any(isinstance(t, dict) and "spec" in t for t in tasks)
    return has_specs or ("tasks" in data and "happenings" not in data)


def _nearest_names(problem: str) -> str:
    """Suggest names close to the unknown field or kind that a message quotes."""
    quoted = re.search(r"unknown field `(\w+)`|Invalid value '(\w+)'", problem)
    if quoted is None:
        return ""
    word = quoted[1] or quoted[2]
    near = get_close_matches(word, [known for known in _WORDS if known != word], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def scenario_to_json(scenario: Scenario) -> bytes:
    """Return the JSON form of a scenario, with ranges, indented, ending in a newline."""
    data = folded(msgspec.to_builtins(scenario))
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: the file does not hold a scenario.
        OSError: the file cannot be read.
    """
    text = path.read_bytes()
    folder = path.parent if b'"file"' in text else None
    return scenario_from_json(text, str(path), folder=folder)


def load_plan(path: Path) -> Plan:
    """Read a task file that is to be run for real.

    Raises:
        ScenarioError: the file holds none, or asks for what only virtual time has.
        ConfigError: a setting is unknown or outside its bounds.
        OSError: the file cannot be read.
    """
    try:
        data = msgspec.json.decode(path.read_bytes())
    except UNREADABLE_JSON as error:
        raise ScenarioError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not _has_tasks(data):
        raise ScenarioError(f"{path}: no task file: what happens has to be written as tasks")
    return plan_of(data, str(path))
