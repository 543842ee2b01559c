"""Limits, behavior and stabilization of the HorizontalPodAutoscaler, on Kubernetes' own figures.

Each row names the test of horizontal_test.go that it comes from; other rows say `own`.
"""

from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.autoscaling.hpa import (
    Behavior,
    HorizontalPodAutoscaler,
    Limits,
    Recommendation,
    ScaleEvent,
    ScalingPolicy,
    ScalingRules,
    check_limits,
    limited_by_rules,
    tolerances_of,
)
from coordinator_sim.sim.autoscaling.replica_calculator import (
    MetricUnavailable,
    Tolerances,
    replicas_by_utilization,
)
from tests.unit.sim.autoscaling.pods import NOW_MS, STARTUP, pods_of

RANGE: Final = "DesiredWithinRange"
FEW: Final = "TooFewReplicas"
MANY: Final = "TooManyReplicas"
UP: Final = "ScaleUpLimit"
DOWN: Final = "ScaleDownLimit"


def rules(pods: int, pods_s: int, percent: int, percent_s: int, window_s: int) -> ScalingRules:
    """Return rules with these policies; 0 leaves one out."""
    policies: list[ScalingPolicy] = []
    if pods:
        policies.append(ScalingPolicy(type="Pods", value=pods, period_s=pods_s))
    if percent:
        policies.append(ScalingPolicy(type="Percent", value=percent, period_s=percent_s))
    return ScalingRules(
        stabilization_window_s=window_s, select_policy="Max", policies=tuple(policies) or None
    )


def spread(changes: tuple[int, ...], period_s: int = 120) -> list[ScaleEvent]:
    """Return events in the middle of equal parts of the period before `NOW_MS`."""
    part_ms = period_s * 1_000 // max(len(changes), 1)
    return [
        ScaleEvent(change=change, at_ms=NOW_MS - period_s * 1_000 + part_ms * index + part_ms // 2)
        for index, change in enumerate(changes)
    ]


@pytest.mark.parametrize(
    ("current", "desired", "lowest", "highest", "expected"),
    [
        (5, 7, 3, 8, (7, RANGE)),
        (3, 1, 2, 8, (2, FEW)),
        (1, 0, 0, 10, (0, RANGE)),
        (20, 1_000, 1, 10, (10, MANY)),
        (3, 1_000, 1, 2_000, (6, UP)),
        (1, 1_000, 1, 2_000, (4, UP)),
        (3, 1_000, 1, 6, (6, MANY)),
    ],
)
def test_limits_without_behavior(
    current: int, desired: int, lowest: int, highest: int, expected: tuple[int, str]
) -> None:
    """Source: TestConvertDesiredReplicasWithRules; the last two rows are own."""
    limits = Limits(min_replicas=lowest, max_replicas=highest)
    assert limited_by_rules(current, desired, limits) == expected


DEFAULT: Final = ScalingRules()
Case = tuple[
    int,
    int,
    int,
    int,
    ScalingRules,
    ScalingRules,
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, str],
]
NINES: Final = (1, 5, 9)
TENS: Final = (10, 10, 10)
FOUR: Final = (8, 12, 9, 11)
NONE: Final = ()
WITH_RULES: Final[tuple[Case, ...]] = (
    # current, desired, min, max, scaleUp, scaleDown, events up, events down, expected
    (5, 7, 3, 8, DEFAULT, DEFAULT, NONE, NONE, (7, RANGE)),
    (3, 1, 2, 8, DEFAULT, DEFAULT, NONE, NONE, (2, FEW)),
    (1, 0, 0, 10, DEFAULT, DEFAULT, NONE, NONE, (0, RANGE)),
    (20, 1_000, 1, 10, DEFAULT, DEFAULT, NONE, NONE, (10, MANY)),
    (100, 1_000, 100, 150, DEFAULT, DEFAULT, NONE, NONE, (150, MANY)),
    (3, 1_000, 1, 2_000, rules(0, 0, 1, 60, 0), DEFAULT, NONE, NONE, (4, UP)),
    (1_000, 3, 3, 2_000, DEFAULT, rules(20, 60, 0, 0, 0), NONE, NONE, (980, DOWN)),
    (10, 50, 1, 1_000, DEFAULT, DEFAULT, NONE, NONE, (20, UP)),
    (10, 500, 1, 1_000, rules(100, 60, 100, 60, 0), DEFAULT, NONE, NONE, (110, UP)),
    (10, 500, 1, 1_000, rules(2, 60, 100, 60, 0), DEFAULT, NONE, NONE, (20, UP)),
    (10, 50, 1, 1_000, rules(100, 60, 0, 0, 0), DEFAULT, NONE, NONE, (50, RANGE)),
    (10, 50, 1, 1_000, rules(10_000, 60, 0, 0, 0), DEFAULT, NONE, NONE, (50, RANGE)),
    (10, 50, 1, 1_000, rules(30, 60, 0, 0, 0), DEFAULT, NONE, NONE, (40, UP)),
    (10, 50, 1, 1_000, rules(0, 0, 200, 60, 0), DEFAULT, NONE, NONE, (30, UP)),
    (100, 2, 1, 1_000, DEFAULT, rules(20, 60, 1, 60, 300), NONE, NONE, (80, DOWN)),
    (100, 2, 1, 1_000, DEFAULT, rules(2, 60, 1, 60, 300), NONE, NONE, (98, DOWN)),
    (10, 0, 1, 1_000, DEFAULT, rules(100, 60, 0, 0, 300), NONE, NONE, (1, FEW)),
    (10, 2, 5, 1_000, DEFAULT, rules(0, 0, 100, 60, 300), NONE, NONE, (5, FEW)),
    (10, 2, 1, 1_000, DEFAULT, rules(5, 60, 0, 0, 300), NONE, NONE, (5, DOWN)),
    (10, 5, 1, 1_000, DEFAULT, rules(0, 0, 50, 60, 300), NONE, NONE, (5, RANGE)),
    (100, 500, 1, 200, rules(300, 60, 0, 0, 0), DEFAULT, NINES, NONE, (200, MANY)),
    (100, 500, 1, 200, rules(0, 0, 10_000, 60, 0), DEFAULT, NINES, NONE, (200, MANY)),
    (100, 500, 1, 1_000, rules(5, 120, 0, 0, 0), DEFAULT, NINES, NONE, (100, UP)),
    (100, 500, 1, 1_000, rules(150, 120, 0, 0, 0), DEFAULT, NINES, NONE, (235, UP)),
    (100, 500, 1, 1_000, rules(0, 0, 200, 120, 0), DEFAULT, NINES, NONE, (255, UP)),
    (6, 24, 1, 1_000, rules(0, 0, 300, 300, 0), DEFAULT, (4,), (2,), (16, UP)),
    (10, 5, 1, 1_000, DEFAULT, DEFAULT, NONE, NINES, (5, RANGE)),
    (100, 0, 1, 1_000, DEFAULT, rules(115, 120, 0, 0, 300), NONE, NINES, (1, FEW)),
    (100, 0, 5, 1_000, DEFAULT, rules(130, 120, 0, 0, 300), NONE, NINES, (5, FEW)),
    (100, 2, 5, 1_000, DEFAULT, rules(0, 0, 100, 120, 300), NONE, NINES, (5, FEW)),
    (100, 2, 1, 1_000, DEFAULT, rules(5, 120, 0, 0, 300), NONE, NINES, (100, DOWN)),
    (100, 0, 1, 1_000, DEFAULT, rules(0, 0, 50, 120, 300), NONE, (2, 4, 6), (56, DOWN)),
    (10, 1, 1, 1_000, DEFAULT, rules(0, 0, 50, 180, 0), (2,), (4,), (6, DOWN)),
    (100, 0, 1, 1_000, DEFAULT, rules(0, 0, 10, 120, 300), NONE, TENS, (100, DOWN)),
    (10, 5, 1, 1_000, DEFAULT, rules(0, 0, 1_000, 120, 300), NONE, TENS, (5, RANGE)),
    (100, 200, 1, 1_000, rules(1_000, 60, 0, 0, 0), DEFAULT, FOUR, NONE, (200, RANGE)),
    (100, 200, 1, 1_000, rules(1_000, 120, 100, 60, 0), DEFAULT, FOUR, NONE, (200, RANGE)),
    (100, 200, 1, 1_000, rules(1_000, 30, 100, 60, 0), DEFAULT, FOUR, NONE, (200, RANGE)),
    (100, 5, 1, 1_000, DEFAULT, rules(1_000, 60, 0, 0, 300), NONE, FOUR, (5, RANGE)),
    (100, 5, 1, 1_000, DEFAULT, rules(1_000, 120, 100, 60, 300), NONE, FOUR, (5, RANGE)),
    (100, 5, 1, 1_000, DEFAULT, rules(1_000, 30, 100, 60, 300), NONE, FOUR, (5, RANGE)),
)
"""Source: TestScalingWithRules, in its order."""


@pytest.mark.parametrize("case", WITH_RULES)
def test_policies_limit_a_change(case: Case) -> None:
    """Replicas that policies allow, given earlier changes, and the reason."""
    current, desired, lowest, highest, up, down, added, removed, expected = case
    hpa = HorizontalPodAutoscaler(
        Limits(
            min_replicas=lowest,
            max_replicas=highest,
            behavior=Behavior(scale_up=up, scale_down=down),
        )
    )
    hpa.scale_up_events, hpa.scale_down_events = spread(added), spread(removed)
    assert hpa.limited_by_behavior(current, desired, NOW_MS) == expected


@pytest.mark.parametrize(
    ("current", "desired", "select", "expected"),
    [
        (1, 10, "Min", (2, UP)),  # TestCalculateScaleUpLimitWithScalingRules
        (5, 1, "Min", (3, DOWN)),  # TestCalculateScaleDownLimitWithBehaviors
        (5, 50, "Disabled", (5, UP)),  # own
        (5, 1, "Disabled", (5, DOWN)),  # own
    ],
)
def test_select_policy(
    current: int, desired: int, select: Literal["Min", "Disabled"], expected: tuple[int, str]
) -> None:
    """`Min` takes the smallest change of 2 pods and 50 %, `Disabled` none."""
    policies = (
        ScalingPolicy(type="Pods", value=2, period_s=60),
        ScalingPolicy(type="Percent", value=50, period_s=60),
    )
    chosen = ScalingRules(stabilization_window_s=300, select_policy=select, policies=policies)
    hpa = HorizontalPodAutoscaler(
        Limits(max_replicas=100, behavior=Behavior(scale_up=chosen, scale_down=chosen))
    )
    assert hpa.limited_by_behavior(current, desired, NOW_MS) == expected


def ago(*pairs: tuple[int, float]) -> list[Recommendation]:
    """Return recommendations of so many minutes before `NOW_MS`."""
    return [Recommendation(replicas, NOW_MS - int(minutes * 60_000)) for replicas, minutes in pairs]


@pytest.mark.parametrize(
    ("earlier", "desired", "expected", "count"),
    [
        (ago(), 5, 5, 1),
        (ago((4, 2), (5, 1)), 3, 5, 3),
        (ago((1, 2), (2, 1)), 3, 3, 3),
        (ago((10, 10), (9, 9)), 3, 3, 2),
        (ago((10, 10), (4, 1), (5, 2), (9, 9)), 3, 5, 4),
    ],
)
def test_stabilization_without_behavior(
    earlier: list[Recommendation], desired: int, expected: int, count: int
) -> None:
    """Source: TestNormalizeDesiredReplicas."""
    hpa = HorizontalPodAutoscaler(Limits(max_replicas=100))
    hpa.recommendations = list(earlier)
    assert hpa.stabilized(desired, NOW_MS) == expected
    assert len(hpa.recommendations) == count


@pytest.mark.parametrize(
    ("earlier", "current", "desired", "windows_s", "expected", "stored"),
    [
        (ago(), 100, 5, (0, 0), 5, [5]),
        (ago((4, 2), (5, 1)), 100, 3, (0, 180), 5, [4, 5, 3]),
        (ago((4, 2), (5, 1)), 1, 7, (300, 0), 4, [4, 5, 7]),
        (ago((1, 2), (2, 1)), 100, 3, (300, 0), 3, [1, 2, 3]),
        (ago((4, 2), (5, 1)), 1, 3, (0, 300), 3, [4, 5, 3]),
        (ago((10, 10), (9, 9)), 100, 3, (0, 0), 3, [10, 3]),
        (ago((10, 10), (9, 9)), 1, 100, (0, 0), 100, [10, 100]),
        (ago((10, 10), (4, 1), (5, 2), (9, 9)), 100, 3, (0, 180), 5, [10, 4, 5, 3]),
        (ago((10, 100), (6, 1), (5, 2), (9, 3)), 1, 100, (300, 0), 5, [100, 6, 5, 9]),
        (ago((2, 100), (3, 3)), 2, 1, (300, 300), 2, [1, 3]),
        (ago((2, 100), (1, 3)), 2, 3, (300, 300), 2, [3, 1]),
    ],
)
def test_stabilization_windows_of_behavior(
    earlier: list[Recommendation],
    current: int,
    desired: int,
    windows_s: tuple[int, int],
    expected: int,
    stored: list[int],
) -> None:
    """Source: TestNormalizeDesiredReplicasWithBehavior."""
    up, down = (ScalingRules(stabilization_window_s=each) for each in windows_s)
    hpa = HorizontalPodAutoscaler(
        Limits(max_replicas=1_000, behavior=Behavior(scale_up=up, scale_down=down))
    )
    hpa.recommendations = list(earlier)
    assert hpa.stabilized_by_behavior(current, desired, NOW_MS) == expected
    assert [each.replicas for each in hpa.recommendations] == stored


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("earlier", "chosen", "stored"),
    [
        ((), None, []),
        ((), rules(10, 60, 100, 60, 0), [(5, False)]),
        (((7, 61),), None, [(7, False)]),
        (((7, 61),), rules(10, 60, 100, 60, 0), [(5, False)]),
        (((7, 58),), rules(10, 60, 100, 60, 0), [(7, False), (5, False)]),
        (((7, 61), (6, 59)), rules(10, 60, 0, 0, 0), [(5, False), (6, False)]),
        (
            ((8, 29), (6, 59), (7, 61), (9, 61)),
            rules(10, 60, 100, 30, 0),
            [(8, False), (6, False), (7, True), (5, False)],
        ),
        (((7, 58), (6, 59)), rules(10, 120, 100, 30, 0), [(7, False), (6, False), (5, False)]),
    ],
)
def test_scale_event_replaces_the_last_outdated_one(
    earlier: tuple[tuple[int, int], ...],
    chosen: ScalingRules | None,
    stored: list[tuple[int, bool]],
    sign: int,
) -> None:
    """Source: TestStoreScaleEvents, up and down: a change of 5, earlier ones seconds ago."""
    behavior = chosen and Behavior(scale_up=chosen, scale_down=chosen)
    hpa = HorizontalPodAutoscaler(Limits(max_replicas=100, behavior=behavior))
    events = hpa.scale_up_events if sign > 0 else hpa.scale_down_events
    events.extend(
        ScaleEvent(change=change, at_ms=NOW_MS - seconds * 1_000) for change, seconds in earlier
    )
    hpa.store_scale_event(10, 10 + 5 * sign, NOW_MS)
    assert [(each.change, each.is_outdated) for each in events] == stored


FIVE: Final = (100, 300, 500, 250, 250)
UNEQUAL: Final = (900, 1_000, 1_100)
RECONCILED: Final[
    tuple[
        tuple[
            str,
            tuple[int, int, int],
            str,
            tuple[int, ...],
            tuple[int | None, ...],
            int,
            tuple[int, str],
        ],
        ...,
    ]
] = (
    ("TestScaleUp", (2, 6, 3), "rrr", (300, 500, 700), (), 30, (5, RANGE)),
    ("TestScaleUpUnreadyLessScale", (2, 6, 3), "urr", (300, 500, 700), (), 30, (4, RANGE)),
    ("TestScaleUpHotCpuLessScale", (2, 6, 3), "hrr", (300, 500, 700), (), 30, (4, RANGE)),
    ("TestScaleUpUnreadyNoScale", (2, 6, 3), "ruu", (400, 500, 700), (), 30, (3, RANGE)),
    ("TestScaleUpHotCpuNoScale", (2, 6, 3), "rHH", (400, 500, 700), (), 30, (3, RANGE)),
    ("TestScaleUpIgnoresFailedPods", (2, 6, 2), "rrxx", (500, 700), (), 30, (4, RANGE)),
    ("TestScaleUpIgnoresDeletionPods", (2, 6, 2), "rrdd", (500, 700), (), 30, (4, RANGE)),
    ("TestScaleDown", (2, 6, 5), "rrrrr", FIVE, (), 50, (3, RANGE)),
    ("TestScaleDownIncludeUnreadyPods", (2, 6, 5), "rrruu", FIVE, (), 50, (2, RANGE)),
    ("TestScaleDownIgnoreHotCpuPods", (2, 6, 5), "rrrhh", FIVE, (), 50, (2, RANGE)),
    ("TestScaleDownIgnoresFailedPods", (2, 6, 5), "rrrrrxx", FIVE, (), 50, (3, RANGE)),
    ("TestScaleDownIgnoresDeletionPods", (2, 6, 5), "rrrrrdd", FIVE, (), 50, (3, RANGE)),
    ("TestTolerance", (1, 5, 3), "rrr", (1010, 1030, 1020), UNEQUAL, 100, (3, RANGE)),
    ("TestMinReplicas", (2, 5, 3), "rrr", (10, 95, 10), UNEQUAL, 90, (2, FEW)),
    ("TestZeroMinReplicasDesiredZero", (0, 5, 3), "rrr", (0, 0, 0), UNEQUAL, 90, (0, RANGE)),
    ("TestMinReplicasDesiredZero", (2, 5, 3), "rrr", (0, 0, 0), UNEQUAL, 90, (2, FEW)),
    ("TestZeroReplicas", (3, 5, 0), "", (), (), 90, (0, "ScalingDisabled")),
    ("TestTooFewReplicas", (3, 5, 2), "", (), (), 90, (3, FEW)),
    ("TestTooManyReplicas", (3, 5, 10), "", (), (), 90, (5, MANY)),
    ("TestMaxReplicas", (2, 5, 3), "rrr", (8000, 9500, 1000), UNEQUAL, 90, (5, MANY)),
    (
        "TestSuperfluousMetrics",
        *((2, 6, 4), "rrrr", (4000, 9500, 3000, 7000, 3200, 2000), (), 100, (6, MANY)),
    ),
    ("TestMissingMetrics", (2, 6, 4), "rrrr", (400, 95), (), 100, (3, RANGE)),
    ("TestEmptyMetrics", (2, 6, 4), "rrrr", (), (), 100, (4, "FailedGetMetrics")),
    ("TestEmptyCPURequest", (1, 5, 1), "r", (200,), (None,), 100, (1, "FailedGetMetrics")),
    ("TestEventCreated", (1, 5, 1), "r", (200,), (200,), 50, (2, RANGE)),
    ("TestEventNotCreated", (1, 5, 2), "rr", (200, 200), (400, 400), 50, (2, RANGE)),
    ("TestMissingReports", (1, 5, 4), "r", (200,), (200,), 50, (2, RANGE)),
    ("TestMoreReplicasThanSpecNoScale", (1, 8, 4), "rrrrr", (500,) * 5, (), 50, (4, RANGE)),
)


def propose(
    current: int, kinds: str, levels: tuple[int, ...], requests: tuple[int | None, ...], target: int
) -> int | None:
    """Return the replicas by CPU; None where the metric is unavailable."""
    try:
        return replicas_by_utilization(
            current,
            pods_of(kinds, levels, requests),
            target,
            Tolerances(),
            now_ms=NOW_MS,
            startup=STARTUP,
        )
    except MetricUnavailable:
        return None


@pytest.mark.parametrize(
    ("bounds", "kinds", "levels", "requests", "target", "expected"),
    [pytest.param(*row[1:], id=row[0]) for row in RECONCILED],
)
def test_autoscaler_on_cpu(
    bounds: tuple[int, int, int],
    kinds: str,
    levels: tuple[int, ...],
    requests: tuple[int | None, ...],
    target: int,
    expected: tuple[int, str],
) -> None:
    """One whole decision without behavior and without earlier recommendations."""
    lowest, highest, current = bounds
    hpa = HorizontalPodAutoscaler(Limits(min_replicas=lowest, max_replicas=highest))
    hpa.recommendations = []
    asked = hpa.reconcile(
        current, lambda: propose(current, kinds, levels, requests, target), NOW_MS
    )
    assert asked == expected


@pytest.mark.parametrize(
    ("source", "limits", "current", "proposed", "expected"),
    [
        (
            "TestUpscaleCap",
            Limits(max_replicas=100, behavior=Behavior(scale_up=rules(0, 0, 700, 60, 0))),
            *(3, 60, (24, UP)),
        ),
        (
            "TestUpscaleCapGreaterThanMaxReplicas",
            Limits(max_replicas=20, behavior=Behavior(scale_up=rules(0, 0, 700, 60, 0))),
            *(3, 60, (20, MANY)),
        ),
        (
            "TestScaleDownStabilizeInitialSize",
            Limits(min_replicas=2, max_replicas=6),
            *(5, 3, (5, "ScaleDownStabilized")),
        ),
        ("own", Limits(max_replicas=100), 3, 60, (6, UP)),
    ],
)
def test_first_decision_remembers_the_initial_replicas(
    source: str, limits: Limits, current: int, proposed: int, expected: tuple[int, str]
) -> None:
    """The replicas that an autoscaler finds are its first recommendation."""
    hpa = HorizontalPodAutoscaler(limits)
    assert hpa.reconcile(current, lambda: proposed, NOW_MS) == expected, source


def test_scale_down_with_rules_of_scale_up_alone() -> None:
    """Source: TestScaleDownWithScalingRules; scaleDown keeps its defaults."""
    behavior = Behavior(scale_up=rules(0, 0, 100, 15, 30))
    hpa = HorizontalPodAutoscaler(Limits(min_replicas=2, max_replicas=6, behavior=behavior))
    hpa.recommendations = []
    assert hpa.reconcile(5, lambda: 3, NOW_MS) == (3, RANGE)


@given(
    proposals=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    bounds=st.tuples(st.integers(1, 5), st.integers(5, 35)),
    start=st.integers(1, 40),
    window_s=st.sampled_from([None, 0, 30, 300]),
    select=st.sampled_from(["Max", "Min", "Disabled"]),
    pods=st.integers(1, 6),
)
def test_replicas_stay_between_minimum_and_maximum(
    proposals: list[int],
    bounds: tuple[int, int],
    start: int,
    window_s: int | None,
    select: Literal["Max", "Min", "Disabled"],
    pods: int,
) -> None:
    """After its first decision no autoscaler leaves its bounds, nor moves against its metric."""
    policies = (ScalingPolicy(type="Pods", value=pods, period_s=60),)
    chosen = ScalingRules(stabilization_window_s=window_s, select_policy=select, policies=policies)
    for behavior in (None, Behavior(scale_up=chosen, scale_down=chosen)):
        limits = Limits(min_replicas=bounds[0], max_replicas=bounds[1], behavior=behavior)
        hpa, replicas = HorizontalPodAutoscaler(limits), start
        least = most = start
        for index, proposed in enumerate(proposals):
            least, most = min(least, proposed), max(most, proposed)
            replicas = hpa.reconcile(replicas, lambda each=proposed: each, 15_000 * index).replicas
            assert bounds[0] <= replicas <= bounds[1]
            assert min(least, bounds[1]) <= replicas <= max(most, bounds[0])


def test_tolerances_of_both_directions() -> None:
    """A behavior replaces the controller's tolerance, each direction by itself."""
    behavior = Behavior(scale_down=ScalingRules(tolerance=0.05))
    limits = Limits(max_replicas=5, behavior=behavior, tolerance=0.2)
    assert tolerances_of(limits) == Tolerances(scale_down=0.05, scale_up=0.2)


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        (Limits(min_replicas=3, max_replicas=2), "min_replicas=3, max_replicas=2"),
        (Limits(max_replicas=0, min_replicas=0), "max_replicas at least 1"),
        (
            Limits(max_replicas=2, behavior=Behavior(scale_up=rules(1, 60, 0, 0, 3_601))),
            "stabilization_window_s=3601",
        ),
        (
            Limits(max_replicas=2, behavior=Behavior(scale_up=rules(1, 1_801, 0, 0, 0))),
            "period_s from 1 to 1800",
        ),
        (
            Limits(max_replicas=2, behavior=Behavior(scale_down=ScalingRules(policies=()))),
            "at least one policy",
        ),
        (
            Limits(max_replicas=2, behavior=Behavior(scale_down=ScalingRules(tolerance=-0.1))),
            "tolerance=-0.1",
        ),
    ],
)
def test_impossible_limits_are_refused(limits: Limits, refusal: str) -> None:
    """Each refusal names the value and its bound."""
    with pytest.raises(ScenarioError, match=refusal):
        check_limits(limits)
