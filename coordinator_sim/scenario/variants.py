"""Variants of a scenario: the same story under another circumstance, to be compared with it."""

import msgspec

from coordinator_sim.scenario.happenings import AddConnector
from coordinator_sim.scenario.scenario import Scenario
from coordinator_sim.scenario.work import ConnectorWork, SinkWork, SourceWork
from coordinator_sim.scenario.world import ConnectGroupSpec, ConsumerGroupSpec, GroupSpec, TopicSpec


def with_counted_work(scenario: Scenario) -> Scenario:
    """The scenario whose trace tells what was processed.

    A Connect cluster without described work becomes a pipeline: its first connector copies an
    outside system, 100 records a second and partition, into the topic `<group id>-records`, and
    the others are sinks of that topic. It has as many partitions as any connector has tasks.
    """
    groups: list[GroupSpec] = []
    topics = list(scenario.topics)
    for group in scenario.groups:
        tasks = _task_counts(scenario, group) if isinstance(group, ConnectGroupSpec) else {}
        if not isinstance(group, ConnectGroupSpec) or group.work or not tasks:
            groups.append(group)
            continue
        topic = f"{group.group_id}-records"
        partitions = max(1, *tasks.values())
        source, *sinks = tasks
        work: dict[str, ConnectorWork] = {source: SourceWork(topic=topic, partitions=partitions)}
        work |= {sink: SinkWork(topics=(topic,)) for sink in sinks}
        topics.append(TopicSpec(name=topic, partitions=partitions))
        groups.append(msgspec.structs.replace(group, work=work))
    return msgspec.structs.replace(
        scenario, groups=tuple(groups), topics=tuple(topics), traces_work=True
    )


def _task_counts(scenario: Scenario, group: ConnectGroupSpec) -> dict[str, int]:
    """The tasks of every connector that the cluster has at any time, as first configured."""
    counts = dict(group.connectors)
    for happening in scenario.happenings:
        if isinstance(happening, AddConnector) and happening.group_id == group.group_id:
            counts.setdefault(happening.connector, happening.tasks)
    return counts


def with_membership(scenario: Scenario, *, static: bool) -> Scenario:
    """The scenario with all its consumers static, each under its name, or all dynamic."""
    groups = tuple(
        msgspec.structs.replace(
            group,
            members=tuple(
                msgspec.structs.replace(
                    member, instance_id=(member.instance_id or member.name) if static else None
                )
                for member in group.members
            ),
        )
        if isinstance(group, ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return msgspec.structs.replace(scenario, groups=groups)
