"""Variants of a scenario: the same story under another circumstance, to be compared with it."""

import msgspec

from coordinator_sim.scenario.happenings import AddConnector
from coordinator_sim.scenario.scenario import Scenario
from coordinator_sim.scenario.work import SourceWork
from coordinator_sim.scenario.world import ConnectGroupSpec, ConsumerGroupSpec, GroupSpec, TopicSpec


def with_counted_work(scenario: Scenario) -> Scenario:
    """The scenario whose trace tells what was processed.

    Connectors without described work become sources: each copies as many source partitions as it
    has tasks, at 100 records a second, into a topic of its own, `<connector>-records`.
    """
    groups: list[GroupSpec] = []
    topics = list(scenario.topics)
    for group in scenario.groups:
        if not isinstance(group, ConnectGroupSpec):
            groups.append(group)
            continue
        task_counts = {name: max(1, tasks) for name, tasks in group.connectors.items()}
        for happening in scenario.happenings:
            if isinstance(happening, AddConnector) and happening.group_id == group.group_id:
                task_counts.setdefault(happening.connector, max(1, happening.tasks))
        added = {
            connector: SourceWork(topic=f"{connector}-records", partitions=tasks)
            for connector, tasks in task_counts.items()
            if connector not in group.work
        }
        known = {topic.name for topic in topics}
        topics += [
            TopicSpec(name=work.topic, partitions=work.partitions)
            for work in added.values()
            if work.topic not in known
        ]
        groups.append(msgspec.structs.replace(group, work={**group.work, **added}))
    return msgspec.structs.replace(
        scenario, groups=tuple(groups), topics=tuple(topics), traces_work=True
    )


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
