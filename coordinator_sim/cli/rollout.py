"""`rollout`: which way to deploy a group leaves least without an owner, by simulation."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import DownOption, SeedsOption, find_scenario
from coordinator_sim.cli.printing import print_json
from coordinator_sim.cli.progress import job_status
from coordinator_sim.cli.uris import located, session_for_uris
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.lengths import parse_length

if TYPE_CHECKING:
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.sim.scenario.rollout import Plan, RolloutPlan, WorkloadPlan
    from coordinator_sim_reports.rollout_page import RolloutSummary

ORDERS = ("listed", "reversed")
ROLLING = ("", "maxSurge=1,maxUnavailable=0", "maxSurge=0,maxUnavailable=1", "strategy=Recreate")
USUAL = {"Deployment": (*ROLLING, "kind=StatefulSet"), "StatefulSet": ("",), "StrimziPodSet": ("",)}
"""Ways to roll out a workload of each kind that are worth trying."""


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
    str,
    typer.Option(
        help="Directory for rollout.html, sweep.html, plans/, tables/ and traces/; a URI too.",
        metavar="DIR",
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
    out: OutOption = "out/rollout",
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

    with session_for_uris([scenario, out], master) as spark:
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
        comparing = partial(compare_rollouts, asked, located(out, spark), master=master)
        summary = job_status(comparing, is_silent=json)
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

    from coordinator_sim_reports import rollout_page as page

    table = Table(box=box.SIMPLE_HEAD, padding=0)
    titles = page.plan_titles(summary)
    for title in titles:
        table.add_column(title, no_wrap=True)
    for title in page.figure_titles(summary):
        table.add_column(title, justify="right", no_wrap=True)
    for each in summary.costs:
        cells = page.plan_cells(each, summary.members)
        table.add_row(*(cells[title] for title in titles), *page.figure_cells(each))
    console.print(table)
    console.print(
        f"median of the worlds drawn (least-most where they differ); {summary.runs} runs of "
        f"{summary.members} members\nrun the first again: coordinator-sim run "
        f"{summary.costs[0].file}; page: {summary.page}",
        highlight=False,
        soft_wrap=True,
    )
    console.print_sentences([page.answer_of(summary)])
