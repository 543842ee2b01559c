"""From metrics to replicas, on figures of Kubernetes' replica_calculator_test.go.

Each row names the test that it comes from; `e2e` rows are the metrics of horizontal_test.go.
"""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.sim.autoscaling.replica_calculator import (
    MAX_INT32,
    MetricUnavailable,
    PodSample,
    Tolerances,
    group_pods,
    highest_proposal,
    replicas_by_average_value,
    replicas_by_utilization,
    replicas_by_value,
)
from tests.unit.sim.autoscaling.pods import NOW_MS, STARTUP, pods_of

MAX_INT64: Final = 2**63 - 1
SCALE: Final = "TestReplicaCalcResourceScale"
MISSING: Final = "TestReplicaCalcMissingMetrics"
TOLERANCE: Final = "TestReplicaCalcConfigurableTolerance"
UNEQUAL: Final = (900, 1_000, 1_100)
SPREAD: Final = (400, 200, 310, 290, 302, 298, 301, 299, 300, 300)
FIVE: Final = (100, 300, 500, 250, 250)

UTILIZATION: Final[
    tuple[tuple[str, int, str, tuple[int, ...], tuple[int | None, ...], int, int], ...]
] = (
    (f"{SCALE}: up", 3, "rrr", (300, 500, 700), (), 30, 5),
    (f"{SCALE}: unready pod scales less", 3, "urr", (300, 500, 700), (), 30, 4),
    (f"{SCALE}: hot pod scales less", 3, "hrr", (300, 500, 700), (), 30, 4),
    (f"{SCALE}: unready pods ignored", 3, "ruu", (400, 500, 700), (), 30, 3),
    (f"{SCALE}: hot unready pods ignored", 3, "rHH", (400, 500, 700), (), 30, 3),
    (f"{SCALE}: failed pods ignored", 2, "rrxx", (500, 700), (), 30, 4),
    (f"{SCALE}: deleted pods ignored", 2, "rrdd", (500, 700), (), 30, 4),
    (f"{SCALE}: down", 5, "rrrrr", FIVE, (), 50, 3),
    (f"{SCALE}: down, unready excluded", 5, "rrruu", FIVE, (), 50, 2),
    (f"{SCALE}: down, unscheduled excluded", 5, "rpppp", (100,), (), 50, 1),
    (f"{SCALE}: down, container of unscheduled", 5, "rpppp", FIVE, (), 50, 1),
    (f"{SCALE}: down, hot ignored", 5, "rrrhh", FIVE, (), 50, 2),
    (f"{SCALE}: down, container of hot", 5, "rrrhh", (100, 300, 500, 1000, 1000), (), 50, 2),
    (f"{SCALE}: down, failed ignored", 5, "rrrrrxx", FIVE, (), 50, 3),
    (f"{SCALE}: down, deleted ignored", 5, "rrrrrdd", FIVE, (), 50, 3),
    ("TestReplicaCalcTolerance", 3, "rrr", (1010, 1030, 1020), UNEQUAL, 100, 3),
    (
        "TestReplicaCalcSuperfluousMetrics",
        *(4, "rrrr", (4000, 9500, 3000, 7000, 3200, 2000), (), 100, 24),
    ),
    (MISSING, 4, "rrrr", (400, 95), (), 100, 3),
    (f"{MISSING}NoChangeEq", 2, "rr", (1000,), (), 100, 2),
    (f"{MISSING}NoChangeGt", 2, "rr", (1900,), (), 100, 2),
    (f"{MISSING}NoChangeLt", 2, "rr", (600,), (), 100, 2),
    (f"{MISSING}UnreadyChange", 3, "urr", (100, 450), (), 50, 3),
    (f"{MISSING}HotCpuNoChange", 3, "hrr", (100, 450), (), 50, 3),
    (f"{MISSING}UnreadyScaleUp", 3, "urr", (100, 2000), (), 50, 4),
    (f"{MISSING}HotCpuScaleUp", 3, "Hrr", (100, 2000), (), 50, 4),
    (f"{MISSING}UnreadyScaleDown", 4, "urrr", (100, 100, 100), (), 50, 3),
    (
        f"{MISSING}ScaleDownTargetOver100",
        *(4, "urrr", (200, 100, 100), (1000, 1000, 2000, 2000), 300, 2),
    ),
    ("TestReplicaCalcDuringRollingUpdateWithMaxSurge", 2, "rrr", (100, 100), (), 50, 2),
    ("TestReplicaCalcComputedToleranceAlgImplementation", 10, "r" * 10, (150,) * 10, SPREAD, 56, 9),
    ("TestReplicaCalcComputedToleranceAlg..., within", 10, "r" * 10, (150,) * 10, SPREAD, 55, 10),
)


@pytest.mark.parametrize(
    ("current", "kinds", "levels", "requests", "target", "expected"),
    [pytest.param(*row[1:], id=row[0]) for row in UTILIZATION],
)
def test_replicas_by_utilization(
    current: int,
    kinds: str,
    levels: tuple[int, ...],
    requests: tuple[int | None, ...],
    target: int,
    expected: int,
) -> None:
    """A target utilization of pods, some of them without a metric that counts."""
    pods = pods_of(kinds, levels, requests)
    asked = replicas_by_utilization(
        current, pods, target, Tolerances(), now_ms=NOW_MS, startup=STARTUP
    )
    assert asked == expected


@pytest.mark.parametrize(
    ("tolerances", "levels", "expected"),
    [
        (Tolerances(0.0, 0.0), (909, 1010, 1111), 4),
        (Tolerances(0.1, 2.0), (1890, 1910, 1900), 3),
        (Tolerances(2.0, 0.08), (1100, 1080, 1090), 4),
        (Tolerances(0.36, 0.1), (660, 640, 650), 3),
        (Tolerances(0.34, 0.1), (660, 640, 650), 2),
    ],
)
def test_tolerance_of_each_direction(
    tolerances: Tolerances, levels: tuple[int, ...], expected: int
) -> None:
    """Source: TestReplicaCalcConfigurableTolerance."""
    pods = pods_of("rrr", levels, UNEQUAL)
    asked = replicas_by_utilization(3, pods, 100, tolerances, now_ms=NOW_MS, startup=STARTUP)
    assert asked == expected


@pytest.mark.parametrize(
    ("kinds", "levels", "requests", "refusal"),
    [
        ("r", (), (), "did not receive metrics"),  # TestReplicaCalcDisjointResourcesMetrics
        ("rrrr", (), (), "did not receive metrics"),  # TestReplicaCalcEmptyMetrics
        ("r", (200,), (None,), "missing request for cpu in pod pod-0"),  # ...EmptyCPURequest
        ("", (), (), "no pods returned"),  # own
    ],
)
def test_metric_without_pods_is_unavailable(
    kinds: str, levels: tuple[int, ...], requests: tuple[int | None, ...], refusal: str
) -> None:
    """Each refusal names what is missing."""
    with pytest.raises(MetricUnavailable, match=refusal):
        replicas_by_utilization(
            1, pods_of(kinds, levels, requests), 100, Tolerances(), now_ms=NOW_MS
        )


@pytest.mark.parametrize(
    ("source", "current", "usage", "target", "ready_count", "expected"),
    [
        ("TestReplicaCalcScaleUpOverflow", 3, MAX_INT64, 1, 3, MAX_INT32),
        ("TestReplicaCalcScaleUpCMObject", 3, 20_000, 15_000, 3, 4),
        ("TestReplicaCalcScaleUpCMObjectIgnoresUnreadyPods", 3, 50_000, 10_000, 1, 5),
        ("TestReplicaCalcScaleUpCMExternalIgnoresUnreadyPods", 3, 8_600, 4_400, 1, 2),
        ("TestReplicaCalcScaleDownCMObject", 5, 12_000, 20_000, 5, 3),
        ("TestReplicaCalcScaleDownCMExternal", 5, 8_600, 14_334, 5, 3),
        ("TestReplicaCalcToleranceCMObject", 3, 20_666, 20_000, 3, 3),
        ("TestReplicaCalcToleranceCMExternal", 3, 8_600, 8_888, 3, 3),
        ("e2e TestScaleUpFromZeroCMObject", 0, 20_000, 15_000, 0, 2),
        ("e2e TestScaleUpFromZeroIgnoresToleranceCMObject", 0, 1_000, 1_000, 0, 1),
        ("e2e TestScaleUpCMExternal", 3, 8_600, 6_666, 3, 4),
        ("e2e TestScaleDownCMExternal", 5, 8_600, 14_400, 5, 3),
        ("e2e TestScaleDownToZeroCMExternal", 5, 0, 14_400, 5, 0),
        ("e2e TestScaleDownToZeroCMObject", 5, 0, 20_000, 5, 0),
        ("e2e TestToleranceCMObject", 3, 20_050, 20_000, 3, 3),
        ("e2e TestToleranceCMExternal", 4, 8_600, 8_666, 4, 4),
    ],
)
def test_replicas_by_value(
    source: str, current: int, usage: int, target: int, ready_count: int, expected: int
) -> None:
    """One target for all pods: only ready ones count."""
    asked = replicas_by_value(current, usage, target, ready_count, Tolerances())
    assert asked == expected, source


@pytest.mark.parametrize(
    ("source", "current", "usage", "target", "expected"),
    [
        ("TestExternalPerPodMetricReplicaOverflow", 1, MAX_INT64, 1, MAX_INT32),
        ("TestExternalPerPodMetricUsageOverflow", 1, MAX_INT64, MAX_INT64, 1),
        ("TestReplicaCalcScaleUpCMPerPodObject", 3, 20_000, 5_000, 4),
        ("TestReplicaCalcScaleUpPerPodCMExternal", 3, 8_600, 2_150, 4),
        ("TestReplicaCalcScaleDownPerPodCMObject", 5, 6_000, 2_000, 3),
        ("TestReplicaCalcScaleDownPerPodCMExternal", 5, 8_600, 2_867, 3),
        ("TestReplicaCalcTolerancePerPodCMObject", 4, 20_166, 5_000, 4),
        ("TestReplicaCalcTolerancePerPodCMExternal", 3, 8_600, 2_900, 3),
        ("e2e TestScaleUpPerPodCMObject", 3, 40_000, 10_000, 4),
        ("e2e TestScaleUpPerPodCMExternal", 3, 8_600, 2_222, 4),
        ("e2e TestScaleDownPerPodCMObject", 5, 60_000, 20_000, 3),
        ("e2e TestScaleDownPerPodCMExternal", 5, 8_600, 3_000, 3),
        ("e2e TestTolerancePerPodCMObject", 4, 8_600, 2_200, 4),
        ("e2e TestTolerancePerPodCMExternal", 4, 8_600, 2_200, 4),
        ("own: no pod exists yet, as Go divides by 0", 0, 0, 5_000, 0),
        ("own: no pod exists yet", 0, 12_000, 5_000, 3),
    ],
)
def test_replicas_by_average_value(
    source: str, current: int, usage: int, target: int, expected: int
) -> None:
    """A target for each pod."""
    assert replicas_by_average_value(current, usage, target, Tolerances()) == expected, source


@pytest.mark.parametrize(
    ("source", "by_value", "current", "usage", "target", "expected"),
    [
        (f"{TOLERANCE}CMObject", True, 3, 20_666, 20_000, 4),
        (f"{TOLERANCE}CMExternal", True, 3, 8_900, 8_800, 4),
        (f"{TOLERANCE}PerPodCMObject", False, 4, 20_208, 5_000, 5),
        (f"{TOLERANCE}PerPodCMExternal", False, 3, 8_600, 2_800, 4),
    ],
)
def test_scale_up_tolerance_of_one_percent(
    source: str, by_value: bool, current: int, usage: int, target: int, expected: int
) -> None:
    """A tolerance of 1 % lets a change of less than 10 % through."""
    tolerances = Tolerances(scale_up=0.01)
    if by_value:
        asked = replicas_by_value(current, usage, target, current, tolerances)
    else:
        asked = replicas_by_average_value(current, usage, target, tolerances)
    assert asked == expected, source


MINUTE: Final = 60_000


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("without ready condition", {"started_ms": NOW_MS, "is_ready": None}, "unready"),
        (
            "ready with fresh metrics in its initialization period",
            {"started_ms": NOW_MS - MINUTE, "ready_changed_ms": NOW_MS - 30_000}
            | {"usage_at_ms": NOW_MS, "window_ms": 30_000},
            "ready",
        ),
        (
            "ready without fresh metrics in its initialization period",
            {"started_ms": NOW_MS - MINUTE, "ready_changed_ms": NOW_MS - 30_000}
            | {"usage_at_ms": NOW_MS, "window_ms": MINUTE},
            "unready",
        ),
        (
            "unready, has never been ready",
            {"started_ms": NOW_MS - 10 * MINUTE, "ready_changed_ms": NOW_MS - 594_000}
            | {"is_ready": False},
            "unready",
        ),
        (
            "ready without fresh metrics after its initialization period",
            {"started_ms": NOW_MS - 3 * MINUTE, "ready_changed_ms": NOW_MS - 3 * MINUTE}
            | {"usage_at_ms": NOW_MS - 2 * MINUTE, "window_ms": MINUTE},
            "ready",
        ),
        (
            "unready, was ready",
            {"started_ms": NOW_MS - 10 * MINUTE, "ready_changed_ms": NOW_MS - 9 * MINUTE}
            | {"is_ready": False},
            "ready",
        ),
        (
            "unready at the end of its initial readiness delay",
            {"started_ms": NOW_MS - 10 * MINUTE, "ready_changed_ms": NOW_MS - 590_000}
            | {"is_ready": False},
            "ready",
        ),
        ("missing", {"usage": None, "is_ready": None}, "missing"),
        ("pending", {"usage": None, "phase": "Pending"}, "unready"),
        ("deleted", {"phase": "Pending", "is_deleted": True}, "ignored"),
        ("failed", {"phase": "Failed"}, "ignored"),
    ],
)
def test_pod_belongs_to_one_group(name: str, fields: dict[str, object], expected: str) -> None:
    """Source: TestGroupPods."""
    pod = PodSample(name=name, **{"usage": 1, **fields})  # type: ignore[arg-type] # by name
    groups = group_pods([pod], now_ms=NOW_MS, startup=STARTUP)
    assert getattr(groups, expected) == (name,)
    assert sum(len(each) for each in groups) == 1


@pytest.mark.parametrize(
    ("source", "proposals", "current", "expected"),
    [
        ("e2e TestScaleUpOneMetricInvalid", [4, None], 3, 4),
        ("e2e TestScaleUpFromZeroOneMetricInvalid", [4, None], 0, 4),
        ("e2e TestScaleUpOneMetricEmpty", [None, 4], 3, 4),
        ("e2e TestScaleUpBothMetricsEmpty", [None], 3, None),
        ("e2e TestNoScaleDownOneMetricInvalid", [3, None], 5, None),
        ("e2e TestNoScaleDownOneMetricEmpty", [None, 3], 5, None),
        ("own: the highest of all", [3, 7, 5], 5, 7),
    ],
)
def test_metric_that_fails_forbids_a_scale_down(
    source: str, proposals: list[int | None], current: int, expected: int | None
) -> None:
    """The highest proposal counts, unless a metric is unavailable and it would scale down."""
    assert highest_proposal(proposals, current) == expected, source


@given(
    current=st.integers(1, 50),
    usage=st.integers(0, 10**7),
    more=st.integers(0, 10**7),
    target=st.integers(1, 10**5),
)
def test_more_usage_never_asks_for_fewer_replicas(
    current: int, usage: int, more: int, target: int
) -> None:
    """Both kinds of target are monotone in the metric."""
    for replicas in (
        lambda each: replicas_by_average_value(current, each, target, Tolerances()),
        lambda each: replicas_by_value(current, each, target, current, Tolerances()),
    ):
        assert replicas(usage) <= replicas(usage + more)
