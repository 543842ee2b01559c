"""The deploys of a rollout as a table and a sentence, for both its page and the terminal."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim import __version__
from coordinator_sim.sim.scenario.lengths import length_text
from coordinator_sim.sim.scenario.rollout import Plan, WorkloadPlan
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.formats import with_range
from coordinator_sim_reports.winners import choices_of, figures_of, verdict

_WEIGHED: Final = ("unowned_s", "stopped_s", "duplicates")
_WHOLE_FROM: Final = 10
"""Figures from here on are shown without decimals."""


class RolloutCosts(Struct, frozen=True, kw_only=True):
    """Costs of one plan: medians over the seeds, with the least and the most.

    Args:
        plan: How the group is deployed.
        membership: `dynamic` or `static`; empty for Connect workers.
        lasts_ms: Time from the first stop to the last start; 0 where Kubernetes decides.
        unowned_s: Partition-seconds (of Connect: task-seconds) without an owner.
        stopped_s: Seconds in which nobody owned anything.
        rebalances: Rebalances of the group.
        duplicates: Records processed more than once.
        file: Scenario file of the plan.
        worlds: The costs of each drawn world by its `seed`.
    """

    plan: Plan
    membership: str
    lasts_ms: int
    unowned_s: tuple[float, float, float]
    stopped_s: tuple[float, float, float]
    rebalances: tuple[float, float, float]
    duplicates: tuple[float, float, float]
    file: str
    worlds: list[dict[str, float]]


class RolloutSummary(Struct, frozen=True, kw_only=True):
    """Plans with their costs.

    Args:
        costs: Best first: least without an owner, then least stopped, then the shortest.
        members: Members of the group.
        runs: Number of runs simulated.
        page: HTML page of the plans.
        sweep_page: HTML page of the sweep behind it.
    """

    costs: list[RolloutCosts]
    members: int
    runs: int
    page: str
    sweep_page: str


def render_rollouts(summary: RolloutSummary, sweep_page: str) -> str:
    """Return a page with a row for each plan, the best first, that needs no network.

    Args:
        summary: The plans with their costs.
        sweep_page: Name of the sweep's page, in the same folder.
    """
    titles = plan_titles(summary)
    return (
        page_environment()
        .get_template("rollout.html.j2")
        .render(
            title="Which deploy costs least",
            version=__version__,
            answer=answer_of(summary),
            summary=summary,
            titles=titles,
            figures=figure_titles(summary),
            rows=[
                {
                    "names": [plan_cells(each, summary.members)[title] for title in titles],
                    "figures": figure_cells(each),
                    "file": each.file,
                }
                for each in summary.costs
            ],
            sweep_page=sweep_page,
        )
    )


def answer_of(summary: RolloutSummary) -> str:
    """Say which plan wins: the first of equal ones is the first of the table."""
    named = [(plan_words(each, summary.members), _as_row(each)) for each in summary.costs]
    figures = [replace(each, form=_number) for each in figures_of(f"{_unit(summary)}s", _WEIGHED)]
    return verdict(choices_of(named, _WEIGHED), figures)


def _as_row(each: RolloutCosts) -> dict[str, object]:
    return {"worlds": each.worlds}


def _unit(summary: RolloutSummary) -> str:
    return "partition" if summary.costs[0].membership else "task"


def plan_titles(summary: RolloutSummary) -> tuple[str, ...]:
    """Return the columns that distinguish the plans."""
    has_orders = len({getattr(each.plan, "is_reversed", False) for each in summary.costs}) > 1
    has_kinds = len({each.membership for each in summary.costs}) > 1
    plan = ("workload",) if _is_workload(summary) else ("batch", "pause")
    return (*plan, *(("order",) * has_orders), *(("members",) * has_kinds))


def figure_titles(summary: RolloutSummary) -> tuple[str, ...]:
    """Return the columns of figures, each with its unit on a line of its own."""
    takes = () if _is_workload(summary) else ("takes",)
    return (*takes, f"unowned\n{_unit(summary)}-s", "stopped\ns", "rebal.", "processed\nagain")


def _is_workload(summary: RolloutSummary) -> bool:
    return isinstance(summary.costs[0].plan, WorkloadPlan)


def plan_cells(each: RolloutCosts, members: int) -> dict[str, str]:
    """Return the cells that distinguish a plan, by column title."""
    plan = each.plan
    if isinstance(plan, WorkloadPlan):
        return {"workload": _changes(plan), "members": each.membership or "workers"}
    return {
        "batch": "all" if plan.batch == members else str(plan.batch),
        "pause": "-" if plan.batch == members else length_text(plan.pause_ms),
        "order": "reversed" if plan.is_reversed else "listed",
        "members": each.membership or "workers",
    }


def figure_cells(each: RolloutCosts) -> tuple[str, ...]:
    """Return the figures of a plan, ranges below medians."""
    spans = (each.unowned_s, each.stopped_s, each.rebalances, each.duplicates)
    lasts = (length_text(each.lasts_ms),) if each.lasts_ms else ()
    return (*lasts, *map(_span, spans))


def _changes(plan: WorkloadPlan) -> str:
    return "\n".join(f"{name}={text}" for name, text in plan.changes.items()) or "as written"


def _span(values: Sequence[float]) -> str:
    return with_range(*map(_number, values), stacked=True)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value % 1 and value < _WHOLE_FROM else f"{value:,.0f}"


def plan_words(each: RolloutCosts, members: int) -> str:
    """Return a plan in words."""
    plan = each.plan
    kind = f"{each.membership} members" if each.membership else "workers"
    if isinstance(plan, WorkloadPlan):
        return f"{_changes(plan)} ({kind})".replace("\n", " ")
    if plan.batch == members:
        return f"all {members} {kind} at once"
    order = ", the last one first" if plan.is_reversed else ""
    at_once = "one by one" if plan.batch == 1 else f"{plan.batch} at once"
    return f"{kind} {at_once} with a pause of {length_text(plan.pause_ms)}{order}"
