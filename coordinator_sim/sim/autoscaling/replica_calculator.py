"""From metrics to a number of replicas, as the HorizontalPodAutoscaler's controller counts.

Metrics are milli-quantities (whole numbers, 1000 for 1) as in Kubernetes. Usage ratios are IEEE 754
doubles here as there, computed by the same operations in the same order, so that they round alike.
Limits of what may change at once are in `hpa`; reading metrics does not belong here.

Source: kubernetes 1.35, pkg/controller/podautoscaler: replica_calculator.go, horizontal.go,
metrics/utilization.go. Each direction has a tolerance of its own since 1.33, and by default since
1.35 (feature gate HPAConfigurableTolerance, pkg/features/kube_features.go).
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError

TOLERANCE: Final = 0.1
"""`--horizontal-pod-autoscaler-tolerance`."""
MAX_INT32: Final = 2**31 - 1


class MetricUnavailable(CoordinatorSimError):
    """A metric gives no number of replicas; the message says why."""


class Tolerances(NamedTuple):
    """Deviations of the usage ratio from 1 that change nothing."""

    scale_down: float = TOLERANCE
    scale_up: float = TOLERANCE

    def include(self, usage_ratio: float) -> bool:
        """Whether the ratio is close enough to 1. Source: Tolerances.isWithin."""
        return (1.0 - self.scale_down) <= usage_ratio <= (1.0 + self.scale_up)


def replicas_by_average_value(
    status_replicas: int, usage: int, target: int, tolerances: Tolerances
) -> int:
    """Return the replicas for an external or object metric with a target for each pod.

    Args:
        status_replicas: Pods that exist, ready or not.
        usage: The metric, in thousandths.
        target: `averageValue`, in thousandths, at least 1.
        tolerances: Deviations that change nothing.

    Source: GetExternalPerPodMetricReplicas, GetObjectPerPodMetricReplicas.
    """
    # Without pods Go divides by 0: the ratio is infinite or no number, and within no tolerance.
    if status_replicas and tolerances.include(
        float(usage) / (float(target) * float(status_replicas))
    ):
        return status_replicas
    return min(ceil(float(usage) / float(target)), MAX_INT32)


def replicas_by_value(
    current: int, usage: int, target: int, ready_count: int, tolerances: Tolerances
) -> int:
    """Return the replicas for an external or object metric with one target for all pods.

    Args:
        current: `spec.replicas`; with 0 neither tolerance nor pods count.
        usage: The metric, in thousandths.
        target: `value`, in thousandths, at least 1.
        ready_count: Pods that run and are ready.
        tolerances: Deviations that change nothing.

    Source: GetExternalMetricReplicas, getUsageRatioReplicaCount.
    """
    ratio = float(usage) / float(target)
    if current == 0:
        return ceil(ratio)
    if tolerances.include(ratio):
        return current
    return min(ceil(ratio * float(ready_count)), MAX_INT32)


class PodSample(Struct, frozen=True, kw_only=True):
    """A pod, and its metric if there is one.

    Args:
        request: Requested CPU in thousandths; None where a container requests none.
        is_ready: The condition Ready; None before there is one.
        ready_changed_ms: When that condition changed.
        started_ms: `startTime`; None before the kubelet has seen the pod.
        usage: The metric in thousandths; None where it is missing.
        usage_at_ms, window_ms: End and length of the window that the metric is an average of.
    """

    name: str
    usage: int | None = None
    request: int | None = None
    phase: Literal["Pending", "Running", "Succeeded", "Failed"] = "Running"
    is_deleted: bool = False
    is_ready: bool | None = True
    ready_changed_ms: int = 0
    started_ms: int | None = 0
    usage_at_ms: int = 0
    window_ms: int = 60_000


class Startup(NamedTuple):
    """Flags of the controller for pods that start.

    Args:
        cpu_initialization_ms: `--horizontal-pod-autoscaler-cpu-initialization-period`.
        initial_readiness_ms: `--horizontal-pod-autoscaler-initial-readiness-delay`.
    """

    cpu_initialization_ms: int = 300_000
    initial_readiness_ms: int = 30_000


STARTUP: Final = Startup()


class PodGroups(NamedTuple):
    """Names of pods by what their metric counts for. `ready` keeps the order of the pods."""

    ready: tuple[str, ...]
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]


def group_pods(pods: Sequence[PodSample], *, now_ms: int, startup: Startup = STARTUP) -> PodGroups:
    """Divide pods by what their CPU metric counts for. Source: groupPods."""
    groups: dict[str, list[str]] = {name: [] for name in PodGroups._fields}
    for pod in pods:
        if pod.is_deleted or pod.phase == "Failed":
            kind = "ignored"
        elif pod.phase == "Pending":
            kind = "unready"
        elif pod.usage is None:
            kind = "missing"
        elif _is_unready(pod, now_ms, startup):
            kind = "unready"
        else:
            kind = "ready"
        groups[kind].append(pod.name)
    return PodGroups(**{name: tuple(names) for name, names in groups.items()})


def _is_unready(pod: PodSample, now_ms: int, startup: Startup) -> bool:
    if pod.is_ready is None or pod.started_ms is None:
        return True
    if pod.started_ms + startup.cpu_initialization_ms > now_ms:
        is_stale = pod.usage_at_ms < pod.ready_changed_ms + pod.window_ms
        return not pod.is_ready or is_stale
    has_never_been_ready = pod.started_ms + startup.initial_readiness_ms > pod.ready_changed_ms
    return not pod.is_ready and has_never_been_ready


def replicas_by_utilization(
    current: int,
    pods: Sequence[PodSample],
    target_percent: int,
    tolerances: Tolerances,
    *,
    now_ms: int,
    startup: Startup = STARTUP,
) -> int:
    """Return the replicas for a CPU utilization of the pods' requests.

    A pod without a metric is taken to use its whole request (or the target, if that is more) on a
    scale-down, and nothing on a scale-up; an unready one nothing on a scale-up.

    Raises:
        MetricUnavailable: no pod, no metric, or a pod without a request.

    Source: GetResourceReplicas.
    """
    if not pods:
        raise MetricUnavailable("no pods returned by selector while calculating replica count")
    groups = group_pods(pods, now_ms=now_ms, startup=startup)
    usages = {
        pod.name: pod.usage
        for pod in pods
        if pod.usage is not None and pod.name not in (*groups.ignored, *groups.unready)
    }
    if not usages:
        raise MetricUnavailable("did not receive metrics for targeted pods")
    bare = next((pod.name for pod in pods if pod.request is None), None)
    if bare is not None:
        raise MetricUnavailable(f"missing request for cpu in pod {bare}")
    requests = {pod.name: pod.request or 0 for pod in pods}
    ratio = _usage_ratio(usages, requests, target_percent)
    scales_up_with_unready = bool(groups.unready) and ratio > 1.0
    if not scales_up_with_unready and not groups.missing:
        return current if tolerances.include(ratio) else ceil(ratio * float(len(groups.ready)))
    if ratio < 1.0:
        percent = max(100, target_percent)
        usages.update((name, requests[name] * percent // 100) for name in groups.missing)
    elif ratio > 1.0:
        usages.update(dict.fromkeys(groups.missing, 0))
    if scales_up_with_unready:
        usages.update(dict.fromkeys(groups.unready, 0))
    new_ratio = _usage_ratio(usages, requests, target_percent)
    changes_direction = (ratio < 1.0 < new_ratio) or (new_ratio < 1.0 < ratio)
    if tolerances.include(new_ratio) or changes_direction:
        return current
    replicas = ceil(new_ratio * float(len(usages)))
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas


def _usage_ratio(
    usages: Mapping[str, int], requests: Mapping[str, int], target_percent: int
) -> float:
    """Return the utilization, in whole percent, over its target.

    Source: GetResourceUtilizationRatio.
    """
    known = [name for name in usages if name in requests]
    requested = sum(requests[name] for name in known)
    if not requested:
        raise MetricUnavailable("no metrics returned matched known pods")
    percent = sum(usages[name] for name in known) * 100 // requested
    return float(percent) / float(target_percent)


def highest_proposal(proposals: Sequence[int | None], spec_replicas: int) -> int | None:
    """Return the replicas that the metrics together ask for; None changes nothing.

    Args:
        proposals: Replicas by each metric; None for a metric that is unavailable, which forbids a
            scale-down but no scale-up.
        spec_replicas: `spec.replicas` of the workload.

    Source: computeReplicasForMetrics.
    """
    valid = [each for each in proposals if each is not None]
    highest = max(valid, default=None)
    if highest is None or (len(valid) < len(proposals) and highest < spec_replicas):
        return None
    return highest
