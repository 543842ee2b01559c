"""`rollout`: what the command line asks for."""

import pytest

from coordinator_sim.cli.rollout import plans_of, workload_plans
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    RollOut,
    Scenario,
    TopicSpec,
    WorkloadSpec,
)
from coordinator_sim.sim.scenario.rollout import rolled_out
from coordinator_sim.trace.events import Event
from tests.simulated import events_of, scenario_of
from tests.unit.sim.test_kubernetes import told


def test_usual_plans_go_from_one_by_one_to_all_at_once() -> None:
    """A pause between batches; none where there is one batch."""
    plans = plans_of("", "", "listed", 37)
    assert [(plan.batch, plan.pause_ms) for plan in plans] == [
        (1, 10_000),
        (1, 60_000),
        (3, 10_000),
        (3, 60_000),
        (19, 10_000),
        (19, 60_000),
        (37, 0),
    ]
    assert [plan.batch for plan in plans_of("", "", "listed", 1)] == [1]


def test_plans_are_every_combination_of_what_is_asked_for() -> None:
    """Batches, pauses and orders."""
    plans = plans_of("2,all", "1m,90s", "listed,reversed", 4)
    assert [plan.name for plan in plans] == [
        "batch-2-pause-60s",
        "batch-2-pause-90s",
        "batch-4-pause-0s",
        "batch-2-pause-60s-reversed",
        "batch-2-pause-90s-reversed",
        "batch-4-pause-0s-reversed",
    ]


@pytest.mark.parametrize(
    ("batch", "pause", "order", "problem"),
    [
        ("5", "", "listed", "--batch '5': wants a number from 1 to 4"),
        ("0", "", "listed", "--batch '0': wants a number"),
        ("half", "", "listed", "--batch 'half': wants a number"),
        ("", "soon", "listed", "--pause 'soon': wants a number with ms"),
        ("", "", "random", "--order 'random': must be of listed, reversed"),
    ],
)
def test_what_is_no_plan_is_one_line(batch: str, pause: str, order: str, problem: str) -> None:
    """It names the option, the value and what would do."""
    with pytest.raises(ConfigError, match=problem):
        plans_of(batch, pause, order, 4)


def deployed() -> Scenario:
    """Return three pods whose workload has an autoscaler's world around it."""
    members = (ConsumerSpec(name=f"app-{each}", start_ms=None) for each in range(4))
    return scenario_of(
        name="deployed",
        duration_ms=60_000,
        topics=(TopicSpec(name="orders", partitions=6, records_per_s=0),),
        groups=(ConsumerGroupSpec(group_id="app", topics=("orders",), members=tuple(members)),),
        kubernetes=(WorkloadSpec(name="app", group_id="app", replicas=3),),
        happenings=(RollOut(at_ms=1_000, workload="app"),),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "maxSurge=100%,maxUnavailable=0",
        "strategy=Recreate,terminationGracePeriodSeconds=5",
        "kind=StatefulSet,podManagementPolicy=Parallel,minReadySeconds=10",
    ],
)
def test_workload_is_rolled_out_as_planned_and_the_run_sees_its_end(text: str) -> None:
    """Every old pod stops after the roll-out, and as many new ones are in the group at the end."""
    (plan,) = workload_plans([text])
    scenario = rolled_out(deployed(), "app", plan, 0)
    (happening,) = scenario.happenings
    events = events_of(scenario)
    first_s = happening.at_ms // 1_000
    started = [at for at, _ in told(events, "started")]
    stopping = [at for at, _ in told(events, "stopping")]
    assert [sum(at < first_s for at in started), sum(at >= first_s for at in started)] == [3, 3]
    assert len(stopping) == 3
    assert min(stopping) >= first_s
    last = [event for event in events if event.event is Event.GROUP_STABLE][-1]
    assert last.members == 3


def test_plans_of_workloads_have_kubernetes_names() -> None:
    """As files they are told apart; a field or value that Kubernetes lacks is refused."""
    names = [plan.name for plan in workload_plans(["", "maxSurge=25%,strategy=RollingUpdate"])]
    assert names == ["as-written", "maxSurge-25pct-strategy-RollingUpdate"]
    with pytest.raises(ConfigError, match="--workload 'surge=1': wants FIELD=VALUE of kind, "):
        workload_plans(["surge=1"])
    (plan,) = workload_plans(["strategy=Canary"])
    with pytest.raises(ConfigError, match="plan strategy-Canary: Invalid enum value 'Canary'"):
        rolled_out(deployed(), "app", plan, 0)
