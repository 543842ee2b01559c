"""Scenarios of one's own topology: a consumer group by its size, and a rhythm of restarts.

The result is a scenario like any other, with a variety: a world is drawn for each seed.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.checks import MAX_PARTITIONS
from coordinator_sim.sim.scenario.happenings import RestartMember, RollOut, rolling_bounce
from coordinator_sim.sim.scenario.kubernetes import WorkloadSpec, check_rolling, pods_needed
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import ProcessingLaw
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    GroupSpec,
    TopicSpec,
    WorkerSpec,
    with_member_settings,
)
from coordinator_sim.trace.group_shape import SeenGroup

MAX_TOPICS: Final = 100_000
MAX_CONSUMERS: Final = 10_000
SETTLE_MS: Final = 60_000
"""Time for a group to start, or to be whole again after a deploy."""
RECORDS_PER_S: Final = 10
"""Records produced to each partition a second: members that poll now and then keep up with that."""


class Topology(Struct, frozen=True, kw_only=True):
    """A consumer group: what it reads, who its members are, what is restarted when.

    Args:
        name: Name of the scenario.
        title: One line about it.
        story: What happens, a few sentences.
        group_id: The group.
        topics: Partitions of each topic, all read by every member.
        members: Each member's `group.instance.id`, by its name; None makes it dynamic.
        assignors: Assignors in the members' order of preference.
        restarts: Restarts of members in the order of their instants.
        duration_ms: Virtual time of the run.
        records_per_s: Records produced to each partition every second.
    """

    name: str
    title: str
    story: str
    group_id: str
    topics: Mapping[str, int]
    members: Mapping[str, str | None]
    assignors: tuple[str, ...]
    restarts: tuple[RestartMember, ...]
    duration_ms: int
    records_per_s: int = RECORDS_PER_S


class Deploys(Struct, frozen=True, kw_only=True):
    """Rolling deploys in a rhythm: each restarts every member once, one after another.

    Args:
        every_ms: From one deploy to the next.
        pace_ms: From one member's stop to the next member's; 0 restarts all at once.
        down_ms: Time without a process.
    """

    every_ms: int
    pace_ms: int = 30_000
    down_ms: int = 8_000

    def lasts_ms(self, members: int) -> int:
        """Return how long a deploy of so many members takes, until the group is whole again."""
        return (members - 1) * self.pace_ms + self.down_ms + SETTLE_MS

    def starts_ms(self, members: int, duration_ms: int) -> range:
        """Return when deploys begin: half a rhythm after the start, and only if there is time.

        Raises:
            ConfigError: a deploy takes longer than its rhythm, or than the run.
        """
        lasts_ms = self.lasts_ms(members)
        first_ms = max(self.every_ms // 2, SETTLE_MS)
        if lasts_ms > self.every_ms:
            raise ConfigError(
                f"a deploy every {self.every_ms // 1000:,} s: restarting {members} members one "
                f"every {self.pace_ms / 1000:g} s takes {lasts_ms // 1000:,} s; deploy less often, "
                "or with a shorter pace"
            )
        if first_ms + lasts_ms > duration_ms:
            raise ConfigError(
                f"{duration_ms // 1000:,} s hold no deploy: the first begins after "
                f"{first_ms // 1000:,} s and takes {lasts_ms // 1000:,} s; run for longer, or "
                "deploy more often"
            )
        return range(first_ms, duration_ms - lasts_ms + 1, self.every_ms)


def shaped(topology: Topology) -> Scenario:
    """Return the scenario of a topology.

    Raises:
        ScenarioError: the topology is impossible; names the value, the bound and the fix.
        ConfigError: an assignor is unknown.
    """
    return Scenario(
        name=topology.name,
        title=topology.title,
        story=topology.story,
        duration_ms=topology.duration_ms,
        topics=tuple(
            TopicSpec(name=name, partitions=count, records_per_s=topology.records_per_s)
            for name, count in topology.topics.items()
        ),
        groups=(
            ConsumerGroupSpec(
                group_id=topology.group_id,
                topics=tuple(topology.topics),
                members=tuple(
                    ConsumerSpec(name=name, instance_id=instance_id)
                    for name, instance_id in topology.members.items()
                ),
                assignors=topology.assignors,
            ),
        ),
        happenings=topology.restarts,
        variety=Variety(),
    )


class DeployedGroup(Struct, frozen=True, kw_only=True):
    """A workload of Kubernetes, with what is known about its group.

    Args:
        spec: The workload; its `group_id` is empty where nothing names one.
        topics: Topics that its autoscaler's triggers name.
        settings: Settings of its clients by Kafka's names; others are left out.
        connectors: Tasks of each connector; None for a consumer group.
    """

    spec: WorkloadSpec
    topics: tuple[str, ...] = ()
    settings: dict[str, str] = {}
    connectors: dict[str, int] | None = None

    @property
    def most(self) -> int:
        """The most replicas that the workload or its autoscaler may have, at least 1."""
        return max(self.spec.most, 1)

    def member_names(self) -> list[str]:
        """Return a name for each pod, those that end in a rolling update included."""
        some = replace(self.spec, replicas=max(self.spec.replicas, 1))
        return [f"{some.name}-{each}" for each in range(pods_needed(some, static=True))]


def deployed(
    world: Topology,
    groups: Sequence[DeployedGroup],
    law: ProcessingLaw | None,
    deploy_every_ms: int = 0,
) -> tuple[Scenario, list[str]]:
    """Return a scenario of workloads, and what it assumes about them.

    Args:
        world: Name, story, topics, load and length; groups without triggers read all its topics.
        groups: The workloads.
        law: How long the consumers' work takes; None for the variety's.
        deploy_every_ms: Time between two roll-outs of all workloads; 0 for none.

    Raises:
        ConfigError: two workloads are of one group, or an assignor is unknown.
        ScenarioError: a value is outside its bounds.
    """
    assumed: list[str] = []
    sizes = dict(world.topics)
    found: dict[str, GroupSpec] = {}
    specs: list[WorkloadSpec] = []
    for each in groups:
        spec = each.spec
        check_rolling(spec)
        if not spec.group_id:
            spec = replace(spec, group_id=spec.name)
            assumed.append(f"group {spec.name}")
        if spec.group_id in found:
            raise ConfigError(f"group {spec.group_id!r} has two workloads: give one of them")
        specs.append(spec)
        if each.connectors is None:
            topics = each.topics or tuple(world.topics) or (spec.group_id,)
            for topic in topics:
                if topic not in sizes:
                    sizes[topic] = each.most
                    assumed.append(f"topic {topic} of {each.most} partitions")
            group = _consumers(each, spec.group_id, topics, law)
            group = replace(group, assignors=world.assignors)
            found[spec.group_id] = with_member_settings(group, each.settings)
        else:
            if not each.connectors:
                assumed.append(f"connector {spec.name} of {spec.replicas} tasks")
            cluster = ConnectGroupSpec(
                group_id=spec.group_id,
                workers=tuple(WorkerSpec(name=name, start_ms=None) for name in each.member_names()),
                connectors=each.connectors or {spec.name: spec.replicas},
            )
            found[spec.group_id] = with_member_settings(cluster, each.settings)
    first_ms = max(deploy_every_ms // 2, SETTLE_MS)
    instants = range(first_ms, world.duration_ms, deploy_every_ms) if deploy_every_ms else ()
    rolled = [RollOut(at_ms=at_ms, workload=spec.name) for at_ms in instants for spec in specs]
    scenario = Scenario(
        name=world.name,
        title=", ".join(f"{spec.kind} {spec.name} of {spec.replicas}" for spec in specs),
        story=world.story,
        duration_ms=world.duration_ms,
        topics=tuple(
            TopicSpec(name=name, partitions=count, records_per_s=world.records_per_s)
            for name, count in sizes.items()
        ),
        groups=tuple(found.values()),
        kubernetes=tuple(specs),
        happenings=tuple(rolled),
        variety=Variety(),
    )
    return scenario, assumed


def _consumers(
    deployed: DeployedGroup, group_id: str, topics: tuple[str, ...], law: ProcessingLaw | None
) -> ConsumerGroupSpec:
    """The group of a workload's pods, which are static members if a setting says so."""
    is_static = "group.instance.id" in deployed.settings
    members = (
        ConsumerSpec(
            name=name, start_ms=None, instance_id=name if is_static else None, processing=law
        )
        for name in deployed.member_names()
    )
    return ConsumerGroupSpec(group_id=group_id, topics=topics, members=tuple(members))


def spread_partitions(topics: int, partitions: int) -> dict[str, int]:
    """Return topics with the partitions spread over them, at most one more in one than another.

    Raises:
        ConfigError: a count is outside its bounds.
    """
    _within("--topics", topics, 1, MAX_TOPICS)
    _within("--partitions", partitions, topics, topics * MAX_PARTITIONS)
    least, more = divmod(partitions, topics)
    return {f"topic-{n}": least + (n <= more) for n in range(1, topics + 1)}


def named_members(count: int, *, static: bool) -> dict[str, str | None]:
    """Return so many members by name, each with its instance id or without.

    Raises:
        ConfigError: the count is outside its bounds.
    """
    _within("--consumers", count, 1, MAX_CONSUMERS)
    names = [f"consumer-{number}" for number in range(1, count + 1)]
    return {name: name if static else None for name in names}


def deploy_restarts(
    members: Sequence[str], deploys: Deploys, duration_ms: int
) -> tuple[RestartMember, ...]:
    """Return the restarts of all deploys that end within the run.

    Raises:
        ConfigError: a deploy takes longer than its rhythm, or than the run.
    """
    return tuple(
        restart
        for start_ms in deploys.starts_ms(len(members), duration_ms)
        for restart in rolling_bounce(
            tuple(members),
            first_at_ms=start_ms,
            every_ms=deploys.pace_ms,
            down_ms=deploys.down_ms,
        )
    )


def crash_restarts(
    members: Sequence[str],
    count: int,
    duration_ms: int,
    *,
    down_ms: int,
    planned: Sequence[RestartMember] = (),
) -> tuple[RestartMember, ...]:
    """Return so many crashes, each of the next member, evenly over the time without deploys.

    Args:
        members: Names, in the order of their crashes.
        count: Number of crashes.
        duration_ms: Virtual time of the run.
        down_ms: Time without a process.
        planned: Restarts of deploys, in order of their instants.

    Raises:
        ConfigError: there is no time for so many.
    """
    gaps = _gaps(planned, duration_ms - down_ms - SETTLE_MS)
    room = sum(max(0, to_ms - from_ms) for from_ms, to_ms in gaps)
    _within("--crashes", count, 0, room // (down_ms + SETTLE_MS))
    passed = list(accumulate((to_ms - from_ms for from_ms, to_ms in gaps), initial=0))
    found = []
    for index in range(count):
        into_ms = room * (2 * index + 1) // (2 * count)
        gap = bisect_right(passed, into_ms) - 1
        at_ms = gaps[gap][0] + into_ms - passed[gap]
        member = members[index % len(members)]
        found.append(RestartMember(at_ms=at_ms, member=member, down_ms=down_ms, graceful=False))
    return tuple(found)


def _gaps(planned: Sequence[RestartMember], end_ms: int) -> list[tuple[int, int]]:
    """Return the stretches without a planned restart, each from its first ms to its last."""
    gaps: list[tuple[int, int]] = []
    from_ms = SETTLE_MS
    for restart in planned:
        if restart.at_ms - SETTLE_MS > from_ms:
            gaps.append((from_ms, restart.at_ms - SETTLE_MS))
        from_ms = max(from_ms, restart.at_ms + restart.down_ms + SETTLE_MS)
    return [*gaps, (from_ms, end_ms)] if end_ms > from_ms else gaps


def recorded_restarts(
    seen: SeenGroup, unknown_down_ms: int
) -> tuple[tuple[RestartMember, ...], int]:
    """Return the restarts of a recorded group as happenings, and how long the recording lasts.

    The recording begins when the group of the scenario has settled.

    Args:
        seen: The group.
        unknown_down_ms: Down time of a static member, which no broker tells.
    """
    found = []
    for each in seen.restarts:
        down_ms = unknown_down_ms if each.down_us is None else each.down_us // 1000
        before_ms = unknown_down_ms if each.down_us is None else 0
        at_ms = SETTLE_MS + max(0, (each.at_us - seen.first_us) // 1000 - before_ms)
        found.append(
            RestartMember(at_ms=at_ms, member=each.member, down_ms=down_ms, graceful=each.graceful)
        )
    return in_order(found), 2 * SETTLE_MS + (seen.last_us - seen.first_us) // 1000


def in_order(*restarts: Sequence[RestartMember]) -> tuple[RestartMember, ...]:
    """Return restarts of several kinds in the order of their instants."""
    return tuple(sorted((each for kind in restarts for each in kind), key=lambda one: one.at_ms))


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} {value}: must be from {low} to {high}")
