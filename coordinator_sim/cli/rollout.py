"""`rollout`: which way to deploy a group leaves least without an owner, by simulation."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import DownOption, SeedsOption, find_scenario, local_only
from coordinator_sim.cli.printing import print_json
from coordinator_sim.cli.progress import spark_status
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.lengths import length_text, parse_length

if TYPE_CHECKING:
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.sim.scenario.rollout import Plan, RolloutPlan, WorkloadPlan
    from coordinator_sim_reports.rollouts import RolloutCosts, RolloutSummary

ORDERS = ("listed", "reversed")
ROLLING = ("", "maxSurge=1,maxUnavailable=0", "maxSurge=0,maxUnavailable=1", "strategy=Recreate")
USUAL = {"Deployment": (*ROLLING, "kind=StatefulSet"), "StatefulSet": ("",), "StrimziPodSet": ("",)}
"""Ways to roll out a workload of each kind that are worth trying."""
_WHOLE_FROM = 10
"""Figures from here on are shown without decimals."""


ScenarioArgument = Annotated[
    str,
    typer.Argument(help="A scenario with the group: a name of the catalogue or a .json file."),
]
BatchOption = Annotated[
    str, typer.Option(help="Members restarted at once, numbers or `all`.", metavar="N,...")
]
PauseOption = Annotated[
    str,
    typer.Option(
        help="From a batch's new processes to the next batch's stop.", metavar="LENGTH,..."
    ),
]
MembershipOption = Annotated[
    str,
    typer.Option(
        help="dynamic, static, or both; by default what the group has.", metavar="KIND,..."
    ),
]
WorkloadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        help="A way to roll pods out, such as maxSurge=1,maxUnavailable=0; may be repeated.",
        metavar="FIELD=VALUE,...",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        help="Directory for sweep.html, plans/, tables/ and traces/.", callback=local_only
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON summary instead of a table.")
]


def rollout(
    scenario: ScenarioArgument,
    group: Annotated[str, typer.Option(help="Group to deploy; needed where there are more.")] = "",
    batch: BatchOption = "",
    pause: PauseOption = "",
    order: Annotated[
        str, typer.Option(help="listed (the default), reversed, or both.", metavar="ORDER,...")
    ] = "",
    workload: WorkloadOption = None,
    membership: MembershipOption = "",
    down: DownOption = "",
    seeds: SeedsOption = 3,
    out: OutOption = Path("out/rollout"),
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[2]",
    json: JsonOption = False,
) -> None:
    """Compare deploys of one group: batch size, pause, order, dynamic against static members.

    The members of a group that are pods are rolled out as --workload says.

    Every plan is simulated in the same drawn worlds. The best is the one that leaves least without
    an owner; of equal ones that which stops the group least, then the shortest.

    Example: coordinator-sim rollout mine.json --batch 1,5,all --pause 10s,1m
    """
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.sim.scenario.rollout import group_to_deploy, workload_to_deploy
    from coordinator_sim.sim.scenario.world import members_of
    from coordinator_sim_reports.session import check_extra

    check_extra()
    from coordinator_sim_reports.rollouts import Rollouts, compare_rollouts
    from coordinator_sim_reports.trials import MEMBERSHIPS

    found = find_scenario(scenario)
    deployed = group_to_deploy(found, group)
    plans: tuple[Plan, ...]
    pods = workload_to_deploy(found, deployed)
    if pods is None and not workload:
        plans = plans_of(batch, pause, order or ORDERS[0], len(members_of(deployed)))
    elif pods is None or batch or pause or order or down:
        raise ConfigError(
            "--workload is for a group whose members are pods, --batch, --pause, --order and "
            "--down are for one whose members are not: leave it out"
        )
    else:
        plans = workload_plans(workload or USUAL[pods.kind])
    asked = Rollouts(
        scenario=found,
        group_id=deployed.group_id,
        plans=plans,
        down_ms=parse_length("--down", down or "8s"),
        memberships=_words("--membership", membership, MEMBERSHIPS),
        seeds=tuple(range(seeds)),
    )
    comparing = partial(compare_rollouts, asked, out, master=master)
    summary = spark_status(comparing, is_silent=json)
    if json:
        print_json(summary)
    else:
        print_plans(summary, PrintableConsole())


def plans_of(batch: str, pause: str, order: str, members: int) -> "tuple[RolloutPlan, ...]":
    """The plans that the command line asks for.

    Raises:
        ConfigError: A batch, pause or order is none, or out of its bounds.
    """
    import msgspec

    from coordinator_sim.sim.scenario.rollout import RolloutPlan
    from coordinator_sim_reports.rollouts import DEFAULT_PAUSES_MS, usual_plans

    if not batch and not pause:
        plans = usual_plans(members)
    else:
        batches = _batches(batch, members) if batch else (1, members)
        pauses = (
            [parse_length("--pause", text.strip()) for text in pause.split(",")]
            if pause
            else list(DEFAULT_PAUSES_MS)
        )
        plans = tuple(
            RolloutPlan(batch=size, pause_ms=pause_ms)
            for size in batches
            for pause_ms in (pauses if size < members else [0])
        )
    orders = _words("--order", order, ORDERS)
    return tuple(
        msgspec.structs.replace(plan, is_reversed=one == "reversed")
        for one in orders
        for plan in plans
    )


def workload_plans(texts: Sequence[str]) -> "tuple[WorkloadPlan, ...]":
    """The plans of --workload.

    Raises:
        ConfigError: A field is none that a plan changes.
    """
    from coordinator_sim.sim.scenario.rollout import FIELDS, WorkloadPlan

    plans = []
    for text in texts:
        pairs = [part.partition("=") for part in text.split(",") if part]
        for name, equals, value in pairs:
            if name not in FIELDS or not equals or not value:
                raise ConfigError(f"--workload {text!r}: wants FIELD=VALUE of {', '.join(FIELDS)}")
        plans.append(WorkloadPlan(changes={name: value for name, _, value in pairs}))
    return tuple(plans)


def _batches(text: str, members: int) -> tuple[int, ...]:
    sizes = []
    for part in (part.strip() for part in text.split(",")):
        size = members if part == "all" else int(part) if part.isdecimal() else 0
        if not 1 <= size <= members:
            raise ConfigError(
                f"--batch {part!r}: wants a number from 1 to {members}, the members of the group, "
                "or all"
            )
        sizes.append(size)
    return tuple(dict.fromkeys(sizes))


def _words(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        if word not in known:
            raise ConfigError(f"{option} {word!r}: must be of {', '.join(known)}")
    return words


def print_plans(summary: "RolloutSummary", console: "PrintableConsole") -> None:
    """Print the plans, best first, and how to run the best again."""
    from rich import box
    from rich.table import Table

    from coordinator_sim.sim.scenario.rollout import RolloutPlan

    unit = "partition" if summary.costs[0].membership else "task"
    has_orders = len({getattr(each.plan, "is_reversed", False) for each in summary.costs}) > 1
    has_kinds = len({each.membership for each in summary.costs}) > 1
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    by_hand = isinstance(summary.costs[0].plan, RolloutPlan)
    plan = ("batch", "pause") if by_hand else ("workload",)
    chosen = (*plan, *(("order",) * has_orders), *(("members",) * has_kinds))
    for title in chosen:
        table.add_column(title, no_wrap=True)
    measures = (f"unowned\n{unit}-s", "stopped\ns", "rebal.", "processed\nagain")
    for title in (*(("takes",) * by_hand), *measures):
        table.add_column(title, justify="right", no_wrap=True)
    for each in summary.costs:
        cells = _cells(each, summary.members)
        table.add_row(*(cells[title] for title in chosen), *_figures(each))
    console.print(table)
    best = summary.costs[0]
    console.print(
        f"median of the worlds drawn (least-most where they differ); {summary.runs} runs of "
        f"{summary.members} members\nleast without an owner: {_words_of(best, summary.members)}\n"
        f"run it again: coordinator-sim run {best.file}; page: {summary.page}",
        highlight=False,
        soft_wrap=True,
    )


def _cells(each: "RolloutCosts", members: int) -> dict[str, str]:
    """The cells that distinguish a plan, by column title."""
    from coordinator_sim.sim.scenario.rollout import WorkloadPlan

    plan = each.plan
    if isinstance(plan, WorkloadPlan):
        return {"workload": _changes(plan), "members": each.membership or "workers"}
    return {
        "batch": "all" if plan.batch == members else str(plan.batch),
        "pause": "-" if plan.batch == members else length_text(plan.pause_ms),
        "order": "reversed" if plan.is_reversed else "listed",
        "members": each.membership or "workers",
    }


def _figures(each: "RolloutCosts") -> tuple[str, ...]:
    spans = (each.unowned_s, each.stopped_s, each.rebalances, each.duplicates)
    lasts = (length_text(each.lasts_ms),) if each.lasts_ms else ()
    return (*lasts, *map(_span, spans))


def _changes(plan: "WorkloadPlan") -> str:
    return "\n".join(f"{name}={text}" for name, text in plan.changes.items()) or "as written"


def _span(values: tuple[float, float, float]) -> str:
    from coordinator_sim_reports.formats import with_range

    return with_range(*map(_number, values), stacked=True)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value % 1 and value < _WHOLE_FROM else f"{value:,.0f}"


def _words_of(best: "RolloutCosts", members: int) -> str:
    from coordinator_sim.sim.scenario.rollout import WorkloadPlan

    plan = best.plan
    if isinstance(plan, WorkloadPlan):
        return _changes(plan).replace("\n", ", ")
    kind = f"{best.membership} members" if best.membership else "workers"
    if plan.batch == members:
        return f"all {members} {kind} at once"
    order = ", the last one first" if plan.is_reversed else ""
    at_once = "one by one" if plan.batch == 1 else f"{plan.batch} at once"
    return f"{kind} {at_once}, a pause of {length_text(plan.pause_ms)}{order}"
