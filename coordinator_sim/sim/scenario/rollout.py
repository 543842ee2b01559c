"""Deploys to choose from: one group restarted, in batches or by Kubernetes, in a quiet world."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.checks import MAX_TIME_MS, within
from coordinator_sim.sim.scenario.happenings import RestartMember, RollOut
from coordinator_sim.sim.scenario.kubernetes import (
    WorkloadSpec,
    check_rolling,
    fenceposts,
    pods_of,
)
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.settings import int_setting
from coordinator_sim.sim.scenario.topology import SETTLE_MS, DeployedGroup
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerSpec,
    GroupSpec,
    MemberSpec,
    members_of,
    with_members,
)

_SESSION_MS: Final = 45_000
"""Kafka's default `session.timeout.ms` of consumers."""
_DELAY_MS: Final = 300_000
"""Kafka's default `scheduled.rebalance.max.delay.ms`."""


class RolloutPlan(Struct, frozen=True, kw_only=True):
    """How a deploy restarts the members of a group.

    Args:
        batch: Members that are stopped at once, from 1.
        pause_ms: Time from the start of a batch's new processes to the stop of the next batch.
        is_reversed: Whether the member named last is restarted first.
    """

    batch: int
    pause_ms: int = 0
    is_reversed: bool = False

    @property
    def name(self) -> str:
        """Name of the plan, as files are called."""
        whole_s, rest_ms = divmod(self.pause_ms, 1_000)
        pause = f"{self.pause_ms}ms" if rest_ms else f"{whole_s}s"
        return f"batch-{self.batch}-pause-{pause}" + ("-reversed" if self.is_reversed else "")

    def lasts_ms(self, members: int, down_ms: int) -> int:
        """Return the time from the first stop to the last start."""
        batches = -(-members // self.batch)
        return batches * down_ms + (batches - 1) * self.pause_ms

    def restarts(
        self, members: Sequence[str], *, first_at_ms: int, down_ms: int
    ) -> tuple[RestartMember, ...]:
        """Return the restarts of all members, each once."""
        order = tuple(reversed(members)) if self.is_reversed else members
        return tuple(
            RestartMember(
                at_ms=first_at_ms + index // self.batch * (down_ms + self.pause_ms),
                member=member,
                down_ms=down_ms,
            )
            for index, member in enumerate(order)
        )


FIELDS: Final = {
    "kind": "kind",
    "strategy": "strategy",
    "maxSurge": "max_surge",
    "maxUnavailable": "max_unavailable",
    "podManagementPolicy": "pod_management",
    "minReadySeconds": "min_ready_s",
    "terminationGracePeriodSeconds": "termination_grace_period_s",
}
"""What a plan may change of a workload: Kubernetes' names and ours."""
_ROLLING: Final = ("maxSurge", "maxUnavailable")
_OF_KIND: Final = {
    **dict.fromkeys(("strategy", *_ROLLING), "Deployment"),
    "podManagementPolicy": "StatefulSet",
}
"""Fields that only one kind of workload has."""


class WorkloadPlan(Struct, frozen=True, kw_only=True):
    """How Kubernetes rolls a workload out.

    Args:
        changes: What differs from the scenario's workload, by the names of `FIELDS`.
    """

    changes: dict[str, str]

    @property
    def name(self) -> str:
        """Name of the plan, as files are called."""
        parts = [f"{name}-{text.replace('%', 'pct')}" for name, text in self.changes.items()]
        return "-".join(parts) or "as-written"

    def lasts_ms(self, members: int, down_ms: int) -> int:  # noqa: ARG002 - as RolloutPlan
        """Return 0: only a run tells how long Kubernetes takes."""
        return 0

    def changed(self, spec: WorkloadSpec) -> WorkloadSpec:
        """Return the workload as planned, with its autoscaler's least replicas in its place.

        Raises:
            ConfigError: a value is none of the field's, a field changes nothing, or no pod runs.
        """
        own = {FIELDS[name]: text for name, text in self.changes.items()}
        limits = spec.limits()
        replicas = max(spec.replicas, limits.min_replicas if limits else 0)
        fields = {**msgspec.to_builtins(spec), **own, "autoscaler": None, "replicas": replicas}
        try:
            planned = msgspec.convert(fields, WorkloadSpec, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"plan {self.name}: {error}") from None
        for name in self.changes:
            if _OF_KIND.get(name, planned.kind) != planned.kind:
                raise ConfigError(f"plan {self.name}: a {planned.kind} has no {name}; leave it out")
            if name in _ROLLING and planned.strategy == "Recreate":
                raise ConfigError(f"plan {self.name}: Recreate has no {name}; leave one out")
        if not replicas:
            raise ConfigError(f"replicas of workload {spec.name!r}=0: must be 1 at least to deploy")
        return planned


Plan = RolloutPlan | WorkloadPlan


def workload_to_deploy(scenario: Scenario, group: GroupSpec) -> WorkloadSpec | None:
    """Return the workload whose pods are a group's members, if there is one.

    Raises:
        ConfigError: there are several.
    """
    found = [spec for spec in scenario.kubernetes if spec.group_id == group.group_id]
    if len(found) > 1:
        names = ", ".join(spec.name for spec in found)
        raise ConfigError(
            f"group {group.group_id!r} has the workloads {names}: a rollout is of one; "
            "leave the others out"
        )
    return found[0] if found else None


def group_to_deploy(scenario: Scenario, group_id: str = "") -> GroupSpec:
    """Return the group that is to be deployed.

    Args:
        scenario: The world of the group.
        group_id: Its id; empty takes the only group.

    Raises:
        ConfigError: there is no such group, or several to choose from.
    """
    found = [group for group in scenario.groups if group_id in {"", group.group_id}]
    if len(found) != 1:
        names = ", ".join(group.group_id for group in scenario.groups) or "none"
        which = f"--group {group_id}: no such group" if group_id else "--group is missing"
        raise ConfigError(f"{which}; scenario {scenario.name!r} has {names}")
    return found[0]


def rolled_out(scenario: Scenario, group_id: str, plan: Plan, down_ms: int) -> Scenario:
    """Return the world of one group in which nothing happens but this deploy.

    The group has settled when the deploy begins; the run ends when the longest wait that a restart
    may leave behind is over: a session timeout, or Connect's scheduled delay.

    Args:
        scenario: World of the group; its other groups and its happenings are left out.
        group_id: Group to deploy.
        plan: How.
        down_ms: Time without a process at each restart.

    Raises:
        ConfigError: there is no such group, or a number is outside its bounds.
    """
    group = group_to_deploy(scenario, group_id)
    if isinstance(plan, WorkloadPlan):
        return _rolled_out_by_kubernetes(scenario, group, plan)
    members = [member.name for member in members_of(group)]
    within("batch of a rollout", plan.batch, 1, len(members))
    within("pause_ms of a rollout", plan.pause_ms, 0, MAX_TIME_MS)
    within("down_ms of a rollout", down_ms, 0, MAX_TIME_MS)
    lasts_ms = plan.lasts_ms(len(members), down_ms)
    return msgspec.structs.replace(
        scenario,
        name=plan.name,
        title=f"{group.group_id}: {plan.name}",
        story=f"All {len(members)} members are restarted, {plan.batch} at once.",
        groups=(with_members(group, _started(members_of(group))),),
        happenings=plan.restarts(members, first_at_ms=SETTLE_MS, down_ms=down_ms),
        tasks=(),
        workloads=(),
        kubernetes=(),
        duration_ms=SETTLE_MS + lasts_ms + _longest_wait_ms(group) + SETTLE_MS,
    )


def _rolled_out_by_kubernetes(scenario: Scenario, group: GroupSpec, plan: WorkloadPlan) -> Scenario:
    """Return the world of one workload; the group has as many pods as the plan needs.

    Members that are no pods stay, and run from the start.
    """
    own = workload_to_deploy(scenario, group)
    if own is None:
        raise ConfigError(f"group {group.group_id!r} has no workload of Kubernetes to roll out")
    spec = plan.changed(own)
    check_rolling(spec)
    known = {member.name: member for member in members_of(group)}
    first = known.get(f"{spec.name}-0", members_of(group)[0])
    names = DeployedGroup(spec=spec).member_names()
    pods = [known.get(name) or _named(first, name) for name in names]
    others = [known[name] for name in known if name not in {*pods_of(own, group), *names}]
    up_ms = spec.startup_ms[-1] + spec.readiness_ms + spec.min_ready_s * 1_000
    steps, is_rolling = spec.replicas, spec.kind == "Deployment"
    if is_rolling:
        at_once = sum(fenceposts(spec, steps)) if spec.strategy == "RollingUpdate" else steps
        steps = -(-steps // at_once) if at_once else 0
    lasts_ms = steps * (up_ms + spec.termination_grace_period_s * 1_000)
    starts_ms = up_ms if is_rolling else spec.replicas * up_ms
    return msgspec.structs.replace(
        scenario,
        name=plan.name,
        title=f"{group.group_id}: {plan.name}",
        story=f"Kubernetes replaces the {spec.replicas} pods of {spec.name}.",
        groups=(with_members(group, [*pods, *_started(others)]),),
        happenings=(RollOut(at_ms=SETTLE_MS + starts_ms, workload=spec.name),),
        tasks=(),
        workloads=(),
        kubernetes=(spec,),
        duration_ms=2 * SETTLE_MS + starts_ms + lasts_ms + _longest_wait_ms(group),
    )


def _named(member: MemberSpec, name: str) -> MemberSpec:
    static = isinstance(member, ConsumerSpec) and member.instance_id is not None
    fields = {"name": name, "instance_id": name} if static else {"name": name}
    return msgspec.structs.replace(member, **fields)


def _started(members: Iterable[MemberSpec]) -> list[MemberSpec]:
    """The members, started when the run begins, if their own start was later."""
    return [msgspec.structs.replace(each, start_ms=0) for each in members]


def _longest_wait_ms(group: GroupSpec) -> int:
    if isinstance(group, ConnectGroupSpec):
        return int_setting(group.settings, "scheduled.rebalance.max.delay.ms", _DELAY_MS)
    return int_setting(group.settings, "session.timeout.ms", _SESSION_MS)
