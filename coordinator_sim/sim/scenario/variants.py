"""Variants of a scenario: the same story under other circumstances, for comparison.

Also the worlds of a scenario with a variety: one `realised` world for each seed.
"""

from collections.abc import Callable, Iterator

import msgspec

from coordinator_sim.sim.scenario import world
from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.happenings import AddConnector, Happening, RestartMember
from coordinator_sim.sim.scenario.kubernetes import pods_needed
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import ConnectorWork, ShapedPerPoll, SinkWork, SourceWork


def with_counted_work(scenario: Scenario) -> Scenario:
    """Return the scenario with processed records in its trace.

    A Connect cluster without described work becomes a pipeline: its first connector copies an
    outside system, 100 records per second and partition, into the topic `<group id>-records`, and
    the others are sinks of that topic, which has as many partitions as any connector has tasks.
    """
    groups: list[world.GroupSpec] = []
    topics = list(scenario.topics)
    for group in scenario.groups:
        tasks = _task_counts(scenario, group) if isinstance(group, world.ConnectGroupSpec) else {}
        if not isinstance(group, world.ConnectGroupSpec) or group.work or not tasks:
            groups.append(group)
            continue
        topic = f"{group.group_id}-records"
        partitions = max(1, *tasks.values())
        source, *sinks = tasks
        work: dict[str, ConnectorWork] = {source: SourceWork(topic=topic, partitions=partitions)}
        work |= {sink: SinkWork(topics=(topic,)) for sink in sinks}
        topics.append(world.TopicSpec(name=topic, partitions=partitions))
        groups.append(msgspec.structs.replace(group, work=work))
    return msgspec.structs.replace(
        scenario, groups=tuple(groups), topics=tuple(topics), traces_work=True
    )


def _task_counts(scenario: Scenario, group: world.ConnectGroupSpec) -> dict[str, int]:
    """Return the task counts of all connectors the cluster ever has, as first configured."""
    counts = dict(group.connectors)
    for happening in scenario.happenings:
        if isinstance(happening, AddConnector) and happening.group_id == group.group_id:
            counts.setdefault(happening.connector, happening.tasks)
    return counts


def with_membership(scenario: Scenario, *, static: bool) -> Scenario:
    """Return the scenario with all consumers static, each under its name, or all dynamic.

    A Deployment of static members gets the further members that it needs.
    """
    groups = tuple(
        msgspec.structs.replace(
            group,
            members=tuple(
                msgspec.structs.replace(
                    member, instance_id=(member.instance_id or member.name) if static else None
                )
                for member in (*group.members, *(_missing_pods(scenario, group) if static else ()))
            ),
        )
        if isinstance(group, world.ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return msgspec.structs.replace(scenario, groups=groups)


def _missing_pods(
    scenario: Scenario, group: world.ConsumerGroupSpec
) -> Iterator[world.ConsumerSpec]:
    members = {member.name: member for member in group.members}
    for spec in scenario.kubernetes:
        count = pods_needed(spec, static=True) if spec.group_id == group.group_id else 0
        for name in (f"{spec.name}-{each}" for each in range(count)):
            if name not in members:
                first = members[f"{spec.name}-0"]
                yield msgspec.structs.replace(first, name=name, instance_id=None)


def with_variety(scenario: Scenario, variety: Variety) -> Scenario:
    """Return the scenario as many worlds, one for each seed, drawn from a variety.

    Happenings after the first starts are delayed by the spread of the starts, and so is the end of
    the run, so that every group is complete before its story begins.
    """
    put_off_ms = variety.start_spread_ms
    return msgspec.structs.replace(
        scenario,
        variety=variety,
        duration_ms=scenario.duration_ms + put_off_ms,
        groups=tuple(_with_later_starts(group, put_off_ms) for group in scenario.groups),
        happenings=tuple(
            msgspec.structs.replace(happening, at_ms=happening.at_ms + put_off_ms)
            for happening in scenario.happenings
        ),
        tasks=tuple(
            msgspec.structs.replace(
                task, start_ms=task.start_ms + put_off_ms, end_ms=task.end_ms + put_off_ms
            )
            for task in scenario.tasks
        ),
        workloads=tuple(task.put_off(put_off_ms) for task in scenario.workloads),
    )


def _with_later_starts(group: world.GroupSpec, put_off_ms: int) -> world.GroupSpec:
    return _with_starts(
        group, lambda _name, start_ms: start_ms + put_off_ms if start_ms else start_ms
    )


def _with_starts(group: world.GroupSpec, start_of: Callable[[str, int], int]) -> world.GroupSpec:
    """Return the group with other starts for the members that start by themselves."""
    return world.with_members(
        group,
        [
            member
            if member.start_ms is None
            else msgspec.structs.replace(member, start_ms=start_of(member.name, member.start_ms))
            for member in world.members_of(group)
        ],
    )


def realised(scenario: Scenario, choices: Choices) -> Scenario:
    """Return one world of a scenario: starts, times and instants drawn from its variety.

    Collections, and the times of each poll, start and stop, are drawn while the world runs, from
    the variety, which the result keeps. An exact scenario is its own only world and draws nothing.
    The draws depend on the seed and on names alone, so they are the same under every assignor.
    """
    variety = scenario.variety
    if variety is None:
        return scenario

    def start_of(name: str, start_ms: int) -> int:
        spread_ms = variety.happening_spread_ms if start_ms else variety.start_spread_ms
        return start_ms + choices.choose("start", name, spread_ms + 1)

    groups = tuple(
        _with_shapes(_with_starts(group, start_of), variety, choices) for group in scenario.groups
    )
    has_own_latency = scenario.network != world.NetworkSpec()
    return msgspec.structs.replace(
        scenario,
        groups=groups,
        happenings=_happenings(scenario, groups, variety, choices),
        network=scenario.network if has_own_latency else world.NetworkSpec(latency=variety.latency),
    )


def _with_shapes(group: world.GroupSpec, variety: Variety, choices: Choices) -> world.GroupSpec:
    """Return the group with drawn processing for consumers without a described one."""
    if not isinstance(group, world.ConsumerGroupSpec | world.ShareGroupSpec):
        return group
    low_ms, high_ms = variety.processing_ms

    def shaped(member: world.MemberSpec) -> world.MemberSpec:
        if isinstance(member, world.WorkerSpec):
            return member
        if member.processing is not None or member.processing_ms != world.DEFAULT_PROCESSING_MS:
            return member
        typical_ms = low_ms + choices.choose("typical-time", member.name, high_ms - low_ms + 1)
        law = ShapedPerPoll(shape=variety.processing, typical_ms=typical_ms)
        return msgspec.structs.replace(member, processing=law)

    return world.with_members(group, map(shaped, group.members))


def _happenings(
    scenario: Scenario, groups: tuple[world.GroupSpec, ...], variety: Variety, choices: Choices
) -> tuple[Happening, ...]:
    """Return the happenings at drawn instants; those of one subject keep their order.

    A member's first happening comes after its start, and none comes after the end of the run.
    """
    reached_ms: dict[str, int] = {
        member.name: member.start_ms or 0 for group in groups for member in world.members_of(group)
    }
    moved: list[Happening] = []
    for happening in sorted(scenario.happenings, key=lambda each: each.at_ms):
        subject = _subject(happening)
        delay_ms = choices.choose("happening", subject, variety.happening_spread_ms + 1)
        at_ms = max(happening.at_ms + delay_ms, reached_ms.get(subject, 0))
        at_ms = reached_ms[subject] = min(at_ms, scenario.duration_ms)
        if isinstance(happening, RestartMember):
            percent = drawn(variety.down_percent, choices, "down-time", subject)
            down_ms = happening.down_ms * percent // 100
            moved.append(msgspec.structs.replace(happening, at_ms=at_ms, down_ms=down_ms))
        else:
            moved.append(msgspec.structs.replace(happening, at_ms=at_ms))
    return tuple(moved)


def _subject(happening: Happening) -> str:
    """Return the subject of a happening: a member, a connector's cluster, or `cluster`."""
    named = getattr(happening, "member", None) or getattr(happening, "group_id", None)
    return named or "cluster"
