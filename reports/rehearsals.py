"""The upgrade of recorded groups, rehearsed: what it costs, what it saves, and when it pays.

History is replayed (`coordinator_sim.replay`), deploys are the trials of a sweep (`trials`) in
worlds that are drawn, counted by `coordinator_sim.runs.deploy_costs`. No Spark: a group's deploys
are small.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.runs.deploy_costs import DeployCosts, deploy_costs
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.scenario.files import scenario_to_json
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.topology import SETTLE_MS
from coordinator_sim.sim.scenario.upgrade import Deploy, upgrade_worlds
from coordinator_sim_reports.rehearsal_facts import Told, Wishes
from coordinator_sim_reports.rehearsal_figures import (
    DeployRow,
    GroupRehearsal,
    Rehearsal,
    balance_of,
    spreads_of,
)
from coordinator_sim_reports.rehearsal_history import histories_of
from coordinator_sim_reports.rehearsal_page import render_rehearsal
from coordinator_sim_reports.rehearsal_plans import GroupPlan, plans_of
from coordinator_sim_reports.rehearsal_runs import Pace, simulate_worlds
from coordinator_sim_reports.trials import Asked, Finished, Trial

PAGE_NAME: Final = "rehearsal.html"
PLANS_DIR: Final = "plans"
TRACES_DIR: Final = "traces"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_US_PER_MS: Final = 1_000
_OF_HISTORY: Final = 3
"""Replays of the history begin in the first third of the time given: worlds take the rest."""


class Job(Struct, frozen=True, kw_only=True):
    """What to rehearse.

    Args:
        told: The trace.
        wishes: What the command line says beside it.
        group_id: The only group; empty for those with most rebalances.
        seeds: Seeds, each a drawn world.
        pace: How long the simulation may take, and by how many processes.
        out: Directory for the page, the scenarios and their traces.
    """

    told: Told
    wishes: Wishes
    group_id: str = ""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    pace: Pace = Pace()
    out: Path


def rehearse(job: Job, tell: Callable[[int, int], None]) -> Rehearsal:
    """Rehearse the groups of a trace, and write the page.

    Args:
        job: What to rehearse.
        tell: Called with the runs that are done, and how many there are.

    Raises:
        DataError: there is nothing to rehearse, or a run failed; the message has the fix.
        ConfigError: an option does not suit the trace.
    """
    began_s = time.monotonic()
    plans, left_out = plans_of(job.told, job.wishes, job.group_id)

    def has_time() -> bool:
        return time.monotonic() - began_s < job.pace.within_s / _OF_HISTORY

    histories = histories_of(job.told, plans, job.wishes, has_time)
    written = _worlds(plans)
    files = _write(written, job.out / PLANS_DIR)
    asked = _asked(job, plans, written)
    left_s = job.pace.within_s - (time.monotonic() - began_s)
    pace = replace(job.pace, within_s=left_s)
    done, finished = simulate_worlds(asked, job.out / TRACES_DIR, pace, tell)
    costs = _measured(written, done, finished)
    groups = tuple(
        GroupRehearsal(
            group=plan,
            history=histories[plan.group_id],
            deploys=(rows := _rows(written.get(plan.group_id, {}), costs, files)),
            balance=balance_of(rows),
        )
        for plan in plans
    )
    seeds = len({trial.seed for trial in done})
    page = job.out / PAGE_NAME
    told = Rehearsal(
        trace=job.told.where,
        groups=groups,
        left_out=tuple(left_out),
        seeds=seeds,
        seeds_left=len(job.seeds) - seeds,
        kept=sum(each.is_kept for each in finished),
        page=str(page),
    )
    page.write_text(render_rehearsal(told), encoding="utf-8")
    return told


# Worlds.


def _worlds(plans: Sequence[GroupPlan]) -> dict[str, dict[Deploy, Scenario]]:
    """Return the worlds of every group's deploys under names that folders may have."""
    named: dict[str, dict[Deploy, Scenario]] = {}
    for number, plan in enumerate(plans, 1):
        if plan.plan is None:
            continue
        slug = _NO_NAME.sub("-", plan.group_id).strip("-.")[:60] or "group"
        prefix = slug if len(plans) == 1 else f"{number}-{slug}"
        named[plan.group_id] = {
            deploy: replace(world, name=f"{prefix}-{deploy.value}")
            for deploy, world in upgrade_worlds(plan.plan).items()
        }
    return named


def _write(worlds: Mapping[str, Mapping[Deploy, Scenario]], folder: Path) -> dict[str, str]:
    """Write each scenario; return the files by the scenario's name."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for own in worlds.values():
        for world in own.values():
            path = folder / f"{world.name}.json"
            path.write_bytes(scenario_to_json(world))
            files[world.name] = str(path)
    return files


def _asked(
    job: Job, plans: Sequence[GroupPlan], worlds: Mapping[str, Mapping[Deploy, Scenario]]
) -> list[Asked]:
    """Return the scenarios of each group as a sweep asks for them."""
    return [
        Asked(
            names=tuple(world.name for world in own.values()),
            written={world.name: world for world in own.values()},
            seeds=job.seeds,
            assignors=plan.plan.group.assignors,
            memberships=("",),
        )
        for plan in plans
        if plan.plan is not None and (own := worlds[plan.group_id])
    ]


# Figures.


def _measured(
    worlds: Mapping[str, Mapping[Deploy, Scenario]],
    done: Sequence[Trial],
    finished: Sequence[Finished],
) -> dict[str, list[DeployCosts]]:
    """Return the costs of each scenario by seed, from its first restart on."""
    groups = {world.name: group_id for group_id, own in worlds.items() for world in own.values()}
    costs: dict[str, list[DeployCosts]] = {}
    for trial, result in zip(done, finished, strict=True):
        events = list(read_run(Path(result.path)).events())
        found = deploy_costs(events, groups[trial.scenario], SETTLE_MS * _US_PER_MS)
        costs.setdefault(trial.scenario, []).append(found)
    return costs


def _rows(
    worlds: Mapping[Deploy, Scenario],
    costs: Mapping[str, Sequence[DeployCosts]],
    files: Mapping[str, str],
) -> tuple[DeployRow, ...]:
    return tuple(
        DeployRow(deploy=deploy, costs=spreads_of(costs[world.name]), file=files[world.name])
        for deploy, world in worlds.items()
    )
