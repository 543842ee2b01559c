"""The HorizontalPodAutoscaler: its specification, and limits and stabilization over time.

The metrics' proposal comes in (`replica_calculator`), a number of replicas and its reason go out.
Changing replicas does not belong here.

Source: kubernetes 1.35, pkg/controller/podautoscaler/horizontal.go; pkg/apis/autoscaling/v2
defaults.go for the defaults of `behavior`.
"""

from collections.abc import Callable
from math import ceil
from typing import Final, Literal, NamedTuple

from msgspec import Struct, structs

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.autoscaling.replica_calculator import TOLERANCE, Tolerances

_SCALE_UP_LIMIT_FACTOR: Final = 2
_SCALE_UP_LIMIT_MINIMUM: Final = 4
_MAX_WINDOW_S: Final = 3_600
_MAX_PERIOD_S: Final = 1_800
_MS_PER_S: Final = 1_000


class ScalingPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit of change within a period.

    Args:
        value: Pods, or percent of the replicas at the start of the period; at least 1.
        period_s: `periodSeconds`, from 1 to 1800.
    """

    type: Literal["Pods", "Percent"]
    value: int
    period_s: int


class ScalingRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`scaleUp` or `scaleDown` of a behavior; None takes Kubernetes' default.

    Args:
        stabilization_window_s: `stabilizationWindowSeconds`, from 0 to 3600.
        select_policy: `selectPolicy`: the policy that allows most, least, or no change at all.
        tolerance: Deviation of the metric from its target that changes nothing, at least 0;
            without the feature gate HPAConfigurableTolerance, on since 1.35, Kubernetes ignores it.
    """

    stabilization_window_s: int | None = None
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    policies: tuple[ScalingPolicy, ...] | None = None
    tolerance: float | None = None


class Behavior(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`behavior` of a HorizontalPodAutoscaler."""

    scale_up: ScalingRules = ScalingRules()
    scale_down: ScalingRules = ScalingRules()


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a HorizontalPodAutoscaler that does not depend on its metrics.

    Args:
        min_replicas: At least 1; 0 only with the feature gate HPAScaleToZero.
        behavior: None limits a step up to twice the replicas or 4, and steps down by
            `downscale_stabilization_s` alone.
        tolerance: Tolerance of the controller; `behavior` may replace it for each direction.
        downscale_stabilization_s: `--horizontal-pod-autoscaler-downscale-stabilization`.
    """

    max_replicas: int
    min_replicas: int = 1
    behavior: Behavior | None = None
    tolerance: float = TOLERANCE
    downscale_stabilization_s: int = 300


_UP: Final = ScalingRules(
    stabilization_window_s=0,
    select_policy="Max",
    policies=(
        ScalingPolicy(type="Pods", value=4, period_s=15),
        ScalingPolicy(type="Percent", value=100, period_s=15),
    ),
)
_DOWN: Final = ScalingRules(
    select_policy="Max", policies=(ScalingPolicy(type="Percent", value=100, period_s=15),)
)


def with_defaults(behavior: Behavior) -> Behavior:
    """Fill in what a behavior leaves open. Source: SetDefaults_HorizontalPodAutoscalerBehavior."""
    return Behavior(
        scale_up=_filled(behavior.scale_up, _UP), scale_down=_filled(behavior.scale_down, _DOWN)
    )


def _filled(rules: ScalingRules, defaults: ScalingRules) -> ScalingRules:
    given = {name: value for name, value in structs.asdict(rules).items() if value is not None}
    return structs.replace(defaults, **given)


def check_limits(limits: Limits) -> None:
    """Refuse limits that the API server refuses.

    Raises:
        ScenarioError: names the value, the bound and the fix.

    Source: pkg/apis/autoscaling/validation, validateHorizontalPodAutoscalerSpec.
    """
    if not 0 <= limits.min_replicas <= limits.max_replicas or limits.max_replicas < 1:
        raise ScenarioError(
            f"min_replicas={limits.min_replicas}, max_replicas={limits.max_replicas}: "
            "min_replicas must be from 0 to max_replicas, and max_replicas at least 1"
        )
    for rules in (limits.behavior.scale_up, limits.behavior.scale_down) if limits.behavior else ():
        window_s = rules.stabilization_window_s
        if window_s is not None and not 0 <= window_s <= _MAX_WINDOW_S:
            raise ScenarioError(f"stabilization_window_s={window_s}: must be from 0 to 3600")
        if rules.policies == ():
            raise ScenarioError("policies=[]: give at least one policy, or leave policies out")
        for policy in rules.policies or ():
            if policy.value < 1 or not 1 <= policy.period_s <= _MAX_PERIOD_S:
                raise ScenarioError(
                    f"policy {policy.value} {policy.type} in {policy.period_s} s: "
                    "value must be at least 1, and period_s from 1 to 1800"
                )
    if any(tolerance < 0 for tolerance in tolerances_of(limits)):
        raise ScenarioError(f"tolerance={min(tolerances_of(limits))}: must be at least 0")


def tolerances_of(limits: Limits) -> Tolerances:
    """Return the tolerances for both directions. Source: tolerancesForHpa."""
    behavior = limits.behavior or Behavior()
    down, up = behavior.scale_down.tolerance, behavior.scale_up.tolerance
    return Tolerances(
        limits.tolerance if down is None else down, limits.tolerance if up is None else up
    )


class Recommendation(NamedTuple):
    """A proposal of the metrics, before any limit."""

    replicas: int
    at_ms: int


class ScaleEvent(Struct, kw_only=True):
    """A change that was made: how many replicas were added, or removed.

    Args:
        is_outdated: Older than every policy's period; the next event replaces the last such one.
    """

    change: int
    at_ms: int
    is_outdated: bool = False


class Scaled(NamedTuple):
    """A number of replicas, and the reason Kubernetes gives for it."""

    replicas: int
    reason: str


class HorizontalPodAutoscaler:
    """The controller's memory of one HorizontalPodAutoscaler, and its decisions.

    Args:
        limits: Limits and behavior.
    """

    def __init__(self, limits: Limits) -> None:
        behavior = limits.behavior and with_defaults(limits.behavior)
        self._limits = structs.replace(limits, behavior=behavior)
        self.recommendations: list[Recommendation] | None = None
        self.scale_up_events: list[ScaleEvent] = []
        self.scale_down_events: list[ScaleEvent] = []

    def reconcile(self, current: int, propose: Callable[[], int | None], now_ms: int) -> Scaled:
        """Return the replicas from now on; the same number changes nothing.

        Args:
            current: `spec.replicas` of the workload.
            propose: Reads the metrics, called only where they matter; None where they are
                unavailable.
            now_ms: Instant of the decision; never decreases between calls.

        Source: reconcileAutoscaler.
        """
        limits = self._limits
        if self.recommendations is None:
            self.recommendations = [Recommendation(current, now_ms)]
        if current == 0 and limits.min_replicas != 0:
            return Scaled(0, "ScalingDisabled")
        if current > limits.max_replicas:
            scaled = Scaled(limits.max_replicas, "TooManyReplicas")
        elif current < limits.min_replicas:
            scaled = Scaled(limits.min_replicas, "TooFewReplicas")
        else:
            proposed = propose()
            if proposed is None:
                return Scaled(current, "FailedGetMetrics")
            scaled = self._normalized(current, proposed, now_ms)
        if scaled.replicas != current:
            self.store_scale_event(current, scaled.replicas, now_ms)
        return scaled

    def _normalized(self, current: int, proposed: int, now_ms: int) -> Scaled:
        """Source: normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors."""
        if self._limits.behavior is None:
            stabilized = self.stabilized(proposed, now_ms)
            scaled = limited_by_rules(current, stabilized, self._limits)
        else:
            stabilized = self.stabilized_by_behavior(current, proposed, now_ms)
            scaled = self.limited_by_behavior(current, stabilized, now_ms)
        if scaled.replicas == stabilized != proposed:
            reason = "ScaleUpStabilized" if proposed >= current else "ScaleDownStabilized"
            return Scaled(stabilized, reason)
        return scaled

    def stabilized(self, proposed: int, now_ms: int) -> int:
        """Return the highest recommendation of the stabilization window, and store this one.

        Source: stabilizeRecommendation.
        """
        cutoff_ms = now_ms - self._limits.downscale_stabilization_s * _MS_PER_S
        recent = [each.replicas for each in self.recommendations or () if each.at_ms >= cutoff_ms]
        self._remember(proposed, now_ms, cutoff_ms)
        return max([proposed, *recent])

    def stabilized_by_behavior(self, current: int, proposed: int, now_ms: int) -> int:
        """Return the current replicas, moved as little as both windows demand.

        Source: stabilizeRecommendationWithBehaviors.
        """
        up_ms, down_ms = (
            now_ms - (rules.stabilization_window_s or 0) * _MS_PER_S
            for rules in (self._rules("up"), self._rules("down"))
        )
        known = self.recommendations or ()
        lowest = min([proposed, *(each.replicas for each in known if each.at_ms > up_ms)])
        highest = max([proposed, *(each.replicas for each in known if each.at_ms > down_ms)])
        self._remember(proposed, now_ms, min(up_ms, down_ms))
        return min(max(current, lowest), highest)

    def _remember(self, proposed: int, now_ms: int, cutoff_ms: int) -> None:
        """Store a recommendation in place of the last one that is older than the cutoff."""
        known = self.recommendations = self.recommendations or []
        old = [index for index, each in enumerate(known) if each.at_ms < cutoff_ms]
        if old:
            known[old[-1]] = Recommendation(proposed, now_ms)
        else:
            known.append(Recommendation(proposed, now_ms))

    def limited_by_behavior(self, current: int, desired: int, now_ms: int) -> Scaled:
        """Return the replicas that policies and limits allow.

        Source: convertDesiredReplicasWithBehaviorRate.
        """
        limits = self._limits
        if desired > current:
            allowed = max(self._policy_limit(current, "up", now_ms), current)
            highest = min(limits.max_replicas, allowed)
            if desired > highest:
                is_limit = limits.max_replicas > allowed
                return Scaled(highest, "ScaleUpLimit" if is_limit else "TooManyReplicas")
        elif desired < current:
            allowed = min(self._policy_limit(current, "down", now_ms), current)
            lowest = max(limits.min_replicas, allowed)
            if desired < lowest:
                is_limit = limits.min_replicas < allowed
                return Scaled(lowest, "ScaleDownLimit" if is_limit else "TooFewReplicas")
        return Scaled(desired, "DesiredWithinRange")

    def _rules(self, direction: Literal["up", "down"]) -> ScalingRules:
        behavior = self._limits.behavior or Behavior()
        if direction == "up":
            return behavior.scale_up
        window_s = behavior.scale_down.stabilization_window_s
        if window_s is None:
            window_s = self._limits.downscale_stabilization_s
        return structs.replace(behavior.scale_down, stabilization_window_s=window_s)

    def _period_start(self, current: int, policy: ScalingPolicy, now_ms: int) -> int:
        cutoff_ms = now_ms - policy.period_s * _MS_PER_S
        added = sum(each.change for each in self.scale_up_events if each.at_ms > cutoff_ms)
        removed = sum(each.change for each in self.scale_down_events if each.at_ms > cutoff_ms)
        return current - added + removed

    def _policy_limit(self, current: int, direction: Literal["up", "down"], now_ms: int) -> int:
        """Source: calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors."""
        rules, is_up = self._rules(direction), direction == "up"
        if rules.select_policy == "Disabled":
            return current
        proposed: list[int] = []
        for policy in rules.policies or ():
            start, value = self._period_start(current, policy, now_ms), policy.value
            if policy.type == "Pods":
                proposed.append(start + value if is_up else start - value)
            elif is_up:
                proposed.append(ceil(float(start) * (1 + float(value) / 100)))
            else:
                proposed.append(int(float(start) * (1 - float(value) / 100)))
        return min(proposed) if is_up == (rules.select_policy == "Min") else max(proposed)

    def store_scale_event(self, previous: int, replicas: int, now_ms: int) -> None:
        """Remember a change for the policies. Source: storeScaleEvent."""
        if self._limits.behavior is None:
            return
        is_up = replicas > previous
        events = self.scale_up_events if is_up else self.scale_down_events
        rules = self._rules("up" if is_up else "down")
        longest_s = max((policy.period_s for policy in rules.policies or ()), default=0)
        for each in events:
            if each.at_ms < now_ms - longest_s * _MS_PER_S:
                each.is_outdated = True
        event = ScaleEvent(change=abs(replicas - previous), at_ms=now_ms)
        outdated = [index for index, each in enumerate(events) if each.is_outdated]
        if outdated:
            events[outdated[-1]] = event
        else:
            events.append(event)


def limited_by_rules(current: int, desired: int, limits: Limits) -> Scaled:
    """Return the replicas that an autoscaler without behavior may set.

    Source: convertDesiredReplicasWithRules.
    """
    scale_up_limit = max(_SCALE_UP_LIMIT_FACTOR * current, _SCALE_UP_LIMIT_MINIMUM)
    if desired < limits.min_replicas:
        return Scaled(limits.min_replicas, "TooFewReplicas")
    if desired > min(limits.max_replicas, scale_up_limit):
        if limits.max_replicas > scale_up_limit:
            return Scaled(scale_up_limit, "ScaleUpLimit")
        return Scaled(limits.max_replicas, "TooManyReplicas")
    return Scaled(desired, "DesiredWithinRange")
