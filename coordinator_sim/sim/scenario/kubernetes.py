"""Workloads of Kubernetes whose pods are the members of a consumer group, as plain data.

`coordinator_sim.sim.kubernetes` runs them.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.autoscaling.hpa import Behavior, Limits, check_limits
from coordinator_sim.sim.autoscaling.keda import KafkaMetadata, ScaledObject, check_scaled_object
from coordinator_sim.sim.scenario.quantiles import check_table
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    GroupSpec,
    members_of,
)

_DAY_MS: Final = 86_400_000
_MAX_PODS: Final = 10_000
"""Pods of one workload, and as many of maxSurge: what `shape --consumers` takes."""
_COUNT: Final = re.compile(r"(?:[0-9]{1,6}|[0-9]{1,3}%)")
_SHARE: Final = re.compile(r"(?:[0-9]{1,6}|[0-9]{1,2}%|100%)")
STARTUP_MS: Final = (3_000, 5_000, 6_000, 8_000, 10_000, 15_000, 40_000)
"""From a pod's creation to its consumer's start. Assumption: scheduling takes a second, a JVM with
a framework several, and a node that lacks the image half a minute."""
KEDA: Final = "keda."
"""Beginning of settings for every workload with KEDA, in `--set` and grids."""
_WINDOW: Final = "scaleDown.stabilizationWindowSeconds"
_METADATA: Final = KafkaMetadata.__struct_encode_fields__
_OF_SCALED_OBJECT: Final = {
    "pollingInterval": "polling_interval_s",
    "cooldownPeriod": "cooldown_period_s",
    "minReplicaCount": "min_replica_count",
    "maxReplicaCount": "max_replica_count",
    _WINDOW: "behavior",
}
SHUTDOWN_MS: Final = (0, 50, 100, 200, 500, 1_000, 3_000)
"""From SIGTERM to the consumer's close. Assumption: a framework stops its web server first."""


class CpuTarget(Struct, frozen=True, kw_only=True, tag="hpa", forbid_unknown_fields=True):
    """A HorizontalPodAutoscaler on the CPU of the pods.

    A pod uses `busy_milli` while its application processes records, and nothing while it polls.

    Args:
        utilization: `averageUtilization`, in percent of the request, at least 1.
        request_milli: Requested CPU of a pod in thousandths, at least 1.
        busy_milli: CPU of a pod that processes without a break, in thousandths.
    """

    limits: Limits
    utilization: int = 80
    request_milli: int = 1_000
    busy_milli: int = 1_000


Autoscaler = ScaledObject | CpuTarget


class PodDisruptionBudget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many pods evictions must leave Ready, or how many replicas may be missing.

    Either one is a number, or a percentage of the replicas, rounded up.
    """

    min_available: str | None = None
    max_unavailable: str | None = None

    def desired_healthy(self, replicas: int) -> int:
        """Return how many pods must be Ready. Source: DisruptionController.getExpectedPodCount."""
        if self.max_unavailable is not None:
            return max(replicas - _counted(self.max_unavailable, replicas, rounds_up=True), 0)
        return _counted(self.min_available or "0", replicas, rounds_up=True)


class WorkloadSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Deployment, a StatefulSet, or a StrimziPodSet as Strimzi makes one of a KafkaConnect.

    A pod runs one member of the group, `<name>-0` and so on, which must have no `start_ms`. There
    are as many pods at most as members, those that end included; a further pod stays pending.
    A Deployment of static members needs as many members more as it may have replicas.

    Args:
        name: Name of the workload, unique in the scenario.
        group_id: The consumer group, or the Connect cluster.
        replicas: Pods at the start.
        strategy: Of a Deployment: `Recreate` ends all old pods before it makes new ones.
        max_surge, max_unavailable: Of a Deployment's rolling update, as a number or in percent.
        pod_management: `podManagementPolicy` of a StatefulSet.
        startup_ms: Quantiles of the time from a pod's creation to its consumer's start.
        readiness_ms: From the consumer's start until the pod is Ready.
        min_ready_s: `minReadySeconds`: from there until the pod counts as available.
        shutdown_ms: Quantiles of the time from SIGTERM to the consumer's close.
        termination_grace_period_s: From SIGTERM to SIGKILL.
        autoscaler: What changes `replicas`; None for nothing.
        pod_disruption_budget: What `kubectl drain` must leave; None lets all pods go at once.
    """

    name: str
    group_id: str
    kind: Literal["Deployment", "StatefulSet", "StrimziPodSet"] = "Deployment"
    replicas: int = 1
    strategy: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    max_surge: str = "25%"
    max_unavailable: str = "25%"
    pod_management: Literal["OrderedReady", "Parallel"] = "OrderedReady"
    startup_ms: tuple[int, ...] = STARTUP_MS
    readiness_ms: int = 1_000
    min_ready_s: int = 0
    shutdown_ms: tuple[int, ...] = SHUTDOWN_MS
    termination_grace_period_s: int = 30
    autoscaler: Autoscaler | None = None
    pod_disruption_budget: PodDisruptionBudget | None = None

    def limits(self) -> Limits | None:
        """Return the limits of the autoscaler, if there is one."""
        scaler = self.autoscaler
        if isinstance(scaler, ScaledObject):
            return scaler.limits()
        return None if scaler is None else scaler.limits

    @property
    def most(self) -> int:
        """The most replicas that the workload or its autoscaler may have."""
        limits = self.limits()
        return max(self.replicas, limits.max_replicas if limits else 0)


def fenceposts(spec: WorkloadSpec, replicas: int) -> tuple[int, int]:
    """Return how many pods may be more, and how many unavailable, in a rolling update.

    Source: kubernetes 1.35, ResolveFenceposts.
    """
    surge = _counted(spec.max_surge, replicas, rounds_up=True)
    unavailable = _counted(spec.max_unavailable, replicas, rounds_up=False)
    return surge, unavailable if surge or unavailable else 1


def _counted(text: str, replicas: int, *, rounds_up: bool) -> int:
    if not text.endswith("%"):
        return int(text)
    return (replicas * int(text[:-1]) + (99 if rounds_up else 0)) // 100


def check_rolling(spec: WorkloadSpec) -> None:
    """Refuse counts of pods that are none, or more than a run can have.

    Raises:
        ScenarioError: a count is outside its bounds, or `max_surge` or `max_unavailable` is no
            number, and no percentage.
    """
    where = f"workload {spec.name!r}"
    for name, count in (("replicas", spec.replicas), ("the autoscaler's maximum", spec.most)):
        if not 0 <= count <= _MAX_PODS:
            raise ScenarioError(f"{name} of {where}={count}: must be from 0 to {_MAX_PODS}")
    for name in ("max_surge", "max_unavailable"):
        text = getattr(spec, name)
        if not _COUNT.fullmatch(text):
            raise ScenarioError(
                f"{name} of {where}={text!r}: must be a number, or percent as '25%'"
            )
    surge = fenceposts(spec, spec.most)[0]
    if surge > _MAX_PODS:
        raise ScenarioError(
            f"max_surge of {where}={spec.max_surge!r}: is {surge} pods; must be at most {_MAX_PODS}"
        )


def pods_of(spec: WorkloadSpec, group: GroupSpec | None) -> list[str]:
    """Return the members that a workload's pods may be, by ordinal."""
    members = {} if group is None else dict.fromkeys(each.name for each in members_of(group))
    names: list[str] = []
    while f"{spec.name}-{len(names)}" in members:
        names.append(f"{spec.name}-{len(names)}")
    return names


def pods_needed(spec: WorkloadSpec, *, static: bool) -> int:
    """Return how many members a workload needs at least.

    A pod of a Deployment never comes back under its name, which is the id of a static member: as
    many may still end as there are replicas.
    """
    if spec.kind != "Deployment":
        return spec.most
    return (1 + static) * spec.most + fenceposts(spec, spec.most)[0]


def is_static(group: GroupSpec) -> bool:
    """Return whether some member has a `group.instance.id`."""
    return any(
        isinstance(each, ConsumerSpec) and each.instance_id is not None
        for each in members_of(group)
    )


def with_autoscaler_settings(
    workloads: tuple[WorkloadSpec, ...], settings: Mapping[str, str]
) -> tuple[WorkloadSpec, ...]:
    """Return workloads with settings of their KEDA autoscalers changed: `keda.` and KEDA's name.

    Raises:
        ConfigError: a name is unknown, a value is no whole number, or no workload has KEDA.
    """
    for name, text in settings.items():
        own = name.removeprefix(KEDA)
        if own not in (*_OF_SCALED_OBJECT, *_METADATA):
            known = ", ".join((*_OF_SCALED_OBJECT, *_METADATA))
            raise ConfigError(f"setting {name!r}: after {KEDA} must come one of {known}")
        if own in _OF_SCALED_OBJECT and not text.isdecimal():
            raise ConfigError(f"{name}={text}: must be a whole number")
        if not any(isinstance(each.autoscaler, ScaledObject) for each in workloads):
            raise ConfigError(f"{name}: no workload of the scenario has KEDA; leave it out")
        workloads = tuple(_with_keda(each, own, text) for each in workloads)
    return workloads


def _with_keda(spec: WorkloadSpec, name: str, text: str) -> WorkloadSpec:
    scaled = spec.autoscaler
    if not isinstance(scaled, ScaledObject):
        return spec
    if name == _WINDOW:
        behavior = scaled.behavior or Behavior()
        rules = structs.replace(behavior.scale_down, stabilization_window_s=int(text))
        changed: dict[str, object] = {"behavior": structs.replace(behavior, scale_down=rules)}
    elif name in _OF_SCALED_OBJECT:
        changed = {_OF_SCALED_OBJECT[name]: int(text)}
    else:
        changed = {
            "triggers": tuple(
                structs.replace(each, metadata={**each.metadata, name: text})
                for each in scaled.triggers
            )
        }
    return structs.replace(spec, autoscaler=structs.replace(scaled, **changed))


def check_workloads(workloads: tuple[WorkloadSpec, ...], groups: tuple[GroupSpec, ...]) -> None:
    """Refuse workloads that cannot run.

    Raises:
        ScenarioError: names the value, the bound and the fix.
    """
    by_id = {group.group_id: group for group in groups}
    for index, spec in enumerate(workloads):
        where = f"workload {spec.name!r}"
        if not spec.name or any(each.name == spec.name for each in workloads[:index]):
            raise ScenarioError(f"{where}: the name is empty or not unique; give another")
        group = by_id.get(spec.group_id)
        if not isinstance(group, ConsumerGroupSpec | ConnectGroupSpec):
            raise ScenarioError(
                f"{where}: group_id={spec.group_id!r} is no consumer group and no Connect cluster"
            )
        _check_counts(where, spec, group)
        _check_times(where, spec)
        if spec.pod_disruption_budget is not None:
            _check_budget(where, spec.kind, spec.pod_disruption_budget)
        scaler = spec.autoscaler
        if scaler is not None and isinstance(group, ConnectGroupSpec):
            raise ScenarioError(f"autoscaler of {where}: Connect workers are not scaled; use null")
        if isinstance(scaler, ScaledObject):
            check_scaled_object(scaler)
        elif scaler is not None:
            check_limits(scaler.limits)
            for name in ("utilization", "request_milli", "busy_milli"):
                if getattr(scaler, name) < 1:
                    raise ScenarioError(f"{name} of {where}: must be at least 1")


def _check_budget(where: str, kind: str, budget: PodDisruptionBudget) -> None:
    texts = [each for each in (budget.min_available, budget.max_unavailable) if each is not None]
    if len(texts) != 1 or not _SHARE.fullmatch(texts[0]):
        raise ScenarioError(
            f"pod_disruption_budget of {where}={', '.join(texts)!r}: give min_available or "
            "max_unavailable, as a number or as percent up to '100%'"
        )
    if kind == "StrimziPodSet" and not (budget.min_available or "").isdecimal():
        raise ScenarioError(
            f"pod_disruption_budget of {where}: Kubernetes knows no scale of a StrimziPodSet; give "
            "min_available as a number"
        )


def _check_times(where: str, spec: WorkloadSpec) -> None:
    check_table(f"startup_ms of {where}", spec.startup_ms, 0, _DAY_MS)
    check_table(f"shutdown_ms of {where}", spec.shutdown_ms, 0, _DAY_MS)
    for name, high in (
        ("readiness_ms", _DAY_MS),
        ("min_ready_s", 86_400),
        ("termination_grace_period_s", 86_400),
    ):
        if not 0 <= getattr(spec, name) <= high:
            raise ScenarioError(
                f"{name} of {where}={getattr(spec, name)}: must be from 0 to {high}"
            )


def _check_counts(where: str, spec: WorkloadSpec, group: GroupSpec) -> None:
    check_rolling(spec)
    pods, needed = pods_of(spec, group), pods_needed(spec, static=is_static(group))
    if needed > len(pods):
        surge = fenceposts(spec, spec.most)[0] if spec.kind == "Deployment" else 0
        ending = needed - spec.most - surge
        ends = f", and {ending} static members that end," if ending else ""
        raise ScenarioError(
            f"{where}: {spec.most} replicas and {surge} of maxSurge{ends} need the members "
            f"{spec.name}-0 to {spec.name}-{needed - 1}; group {spec.group_id!r} has {len(pods)} "
            "of them"
        )
    for member in members_of(group):
        if member.name in pods and member.start_ms is not None:
            raise ScenarioError(
                f"start_ms of {member.name!r}: Kubernetes starts the pods of {where}; use null"
            )
