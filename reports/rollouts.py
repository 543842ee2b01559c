"""Deploys of one group compared: which batch, pause and order leave least without an owner.

Each plan is a scenario of its own in a sweep, so that its costs are those of every sweep.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    Scenario,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.rollout import Plan, RolloutPlan, group_to_deploy, rolled_out
from coordinator_sim.sim.scenario.world import GroupSpec, members_of
from coordinator_sim_reports.rollout_page import RolloutCosts, RolloutSummary, render_rollouts
from coordinator_sim_reports.session import DEFAULT_MASTER
from coordinator_sim_reports.sweep import run_sweep
from coordinator_sim_reports.trials import Asked, trials

PAGE_NAME: Final = "rollout.html"
PLANS_DIR: Final = "plans"
DEFAULT_PAUSES_MS: Final = (10_000, 60_000)


class Rollouts(Struct, frozen=True, kw_only=True):
    """Deploys to compare.

    Args:
        scenario: World of the group.
        group_id: Group to deploy.
        plans: How it may be deployed.
        down_ms: Time without a process at each restart.
        memberships: Kinds of membership of consumers to compare; empty takes the group's own.
        seeds: Seeds, each a drawn world.
    """

    scenario: Scenario
    group_id: str
    plans: tuple[Plan, ...]
    down_ms: int
    memberships: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)


def usual_plans(members: int) -> tuple[RolloutPlan, ...]:
    """Return plans worth trying: one by one, a tenth, a half with pauses, and all at once."""
    batches = sorted({1, max(1, members // 10), -(-members // 2)} - {members})
    paused = tuple(
        RolloutPlan(batch=batch, pause_ms=pause_ms)
        for batch in batches
        for pause_ms in DEFAULT_PAUSES_MS
    )
    return (*paused, RolloutPlan(batch=members))


def compare_rollouts(
    asked: Rollouts,
    out: Path,
    *,
    master: str = DEFAULT_MASTER,
    progress: Callable[[str], None] | None = None,
) -> RolloutSummary:
    """Simulate every plan in every world, and rank the plans.

    Args:
        asked: What to compare.
        out: Directory for the sweep's page, tables and traces, and `plans/` with the scenarios.
        master: Spark master URL; its workers must see `out`.
        progress: Called with the present step.

    Raises:
        ConfigError: a plan does not suit the group, or two plans are the same.
        ScenarioError: a number is outside its bounds.
        DataError: a run failed.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    group = group_to_deploy(asked.scenario, asked.group_id)
    written = {
        plan.name: rolled_out(asked.scenario, group.group_id, plan, asked.down_ms)
        for plan in asked.plans
    }
    if len(written) < len(asked.plans):
        raise ConfigError(
            "a plan is there twice: name each batch and pause, or each --workload, once"
        )
    sweep = Asked(names=tuple(written), written=written, seeds=asked.seeds)
    sweep = _with_own_choices(sweep, group, asked.memberships)
    files = _write_plans(sweep, out / PLANS_DIR)
    summary = run_sweep(sweep, out, unasked={}, master=master, within_s=math.inf, progress=progress)
    count = len(members_of(group))
    question = "membership" if isinstance(group, ConsumerGroupSpec) else "protocol"
    plans = {plan.name: plan for plan in asked.plans}
    costs = [
        _costs(plans[row["scenario"]], row, count, asked.down_ms, files)
        for row in summary.by_scenario
        if row["question"] == question
    ]
    costs.sort(key=lambda each: (each.unowned_s[0], each.stopped_s[0], each.lasts_ms))
    told = RolloutSummary(
        costs=costs,
        members=count,
        runs=summary.runs,
        page=str(out / PAGE_NAME),
        sweep_page=summary.page,
    )
    page = render_rollouts(told, Path(summary.page).name)
    (out / PAGE_NAME).write_text(page, encoding="utf-8")
    return told


def _with_own_choices(sweep: Asked, group: GroupSpec, memberships: tuple[str, ...]) -> Asked:
    """Ask for the group's own assignor or protocol, and own membership where none is named."""
    if isinstance(group, ConsumerGroupSpec):
        kinds = memberships or (_own_membership(group),)
        return replace(sweep, assignors=group.assignors[:1], memberships=kinds)
    if isinstance(group, ConnectGroupSpec):
        return replace(sweep, protocols=(group.connect_protocol,))
    return sweep


def _own_membership(group: ConsumerGroupSpec) -> str:
    """The kind of membership that a group has.

    Raises:
        ConfigError: some consumers are static and some are not.
    """
    kinds = {member.instance_id is not None for member in group.members}
    if len(kinds) > 1:
        raise ConfigError(
            f"group {group.group_id!r} has dynamic and static members: say which to compare, "
            "as --membership dynamic,static"
        )
    return "static" if kinds == {True} else "dynamic"


def _write_plans(sweep: Asked, folder: Path) -> dict[tuple[str, str], str]:
    """Write the world of each plan and membership; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[tuple[str, str], str] = {}
    for trial in trials(sweep):
        key = trial.scenario, trial.membership
        if key not in files:
            path = folder / f"{'-'.join(part for part in key if part)}.json"
            path.write_bytes(scenario_to_json(trial.world(sweep.written)))
            files[key] = str(path)
    return files


def _costs(
    plan: Plan,
    row: dict[str, Any],
    members: int,
    down_ms: int,
    files: dict[tuple[str, str], str],
) -> RolloutCosts:
    membership = row["choice"] if row["question"] == "membership" else ""
    spans = {
        name: (float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]))
        for name in ("unowned_s", "stopped_s", "rebalances", "duplicates")
    }
    return RolloutCosts(
        plan=plan,
        membership=membership,
        lasts_ms=plan.lasts_ms(members, down_ms),
        file=files[plan.name, membership],
        worlds=row["worlds"],
        **spans,
    )
