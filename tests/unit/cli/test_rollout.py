"""`rollout`: what the command line asks for."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from coordinator_sim.cli.rollout import plans_of, workload_plans
from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    CpuTarget,
    Limits,
    RollOut,
    Scenario,
    TopicSpec,
    WorkloadSpec,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.rollout import rolled_out
from coordinator_sim.sim.scenario.world import members_of, with_members
from coordinator_sim.trace.events import Event
from tests.command_line import run_here
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


@pytest.mark.parametrize(
    ("text", "fields", "problem"),
    [
        ("strategy=Canary", {}, "plan strategy-Canary: Invalid enum value 'Canary'"),
        ("maxSurge=abc", {}, "max_surge of workload 'app'='abc': must be a number"),
        ("maxSurge=999999", {}, "max_surge .*'999999': is 999999 pods; must be at most 10000"),
        ("strategy=Recreate,kind=StatefulSet", {}, "a StatefulSet has no strategy; leave it out"),
        ("kind=StatefulSet,maxSurge=2", {}, "a StatefulSet has no maxSurge; leave it out"),
        ("podManagementPolicy=Parallel", {}, "a Deployment has no podManagementPolicy"),
        ("strategy=Recreate,maxSurge=2", {}, "Recreate has no maxSurge; leave one out"),
        ("", {"replicas": 0}, "replicas of workload 'app'=0: must be 1 at least"),
    ],
)
def test_plan_that_no_workload_can_have_is_refused(
    text: str, fields: dict[str, Any], problem: str
) -> None:
    """The line names the field, the value and what would do."""
    (plan,) = workload_plans([text])
    world = deployed()
    own = replace(world.kubernetes[0], **fields)
    with pytest.raises((ConfigError, ScenarioError), match=problem):
        rolled_out(replace(world, kubernetes=(own,)), "app", plan, 0)


def test_autoscaled_pods_are_as_many_as_it_keeps_at_least() -> None:
    """The autoscaler is left out of the deploy, but not what it had done before."""
    world = deployed()
    scaler = CpuTarget(limits=Limits(min_replicas=2, max_replicas=3))
    own = replace(world.kubernetes[0], replicas=0, autoscaler=scaler)
    made = rolled_out(replace(world, kubernetes=(own,)), "app", workload_plans([""])[0], 0)
    assert [(spec.replicas, spec.autoscaler) for spec in made.kubernetes] == [(2, None)]


def test_members_that_are_no_pods_stay_in_the_group() -> None:
    """They run from the start; which of two workloads is meant would be a guess."""
    world = deployed()
    members = (*members_of(world.groups[0]), ConsumerSpec(name="batch", start_ms=9_000))
    world = replace(world, groups=(with_members(world.groups[0], members),))
    (plan,) = workload_plans([""])
    made = members_of(rolled_out(world, "app", plan, 0).groups[0])
    assert [each.name for each in made] == [*(f"app-{each}" for each in range(7)), "batch"]
    assert [each.start_ms for each in made] == [None] * 7 + [0]

    beside = (*members, ConsumerSpec(name="b-0", start_ms=None))
    both = (*world.kubernetes, WorkloadSpec(name="b", group_id="app", max_surge="0"))
    groups = (with_members(world.groups[0], beside),)
    with pytest.raises(ConfigError, match="group 'app' has the workloads app, b: a rollout is of"):
        rolled_out(replace(world, kubernetes=both, groups=groups), "app", plan, 0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--order listed", "--batch, --pause, --order and --down are for one"),
        ("--down 8s", "--batch, --pause, --order and --down are for one"),
        ("--workload maxSurge=1 --workload maxSurge=1", "or each --workload, once"),
    ],
)
def test_options_that_pods_do_not_have_are_refused(
    tmp_path: Path, options: str, problem: str
) -> None:
    """As one line, before anything runs."""
    file = tmp_path / "deployed.json"
    file.write_bytes(scenario_to_json(deployed()))
    done = run_here("rollout", file, *options.split(), "--out", tmp_path / "out")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
