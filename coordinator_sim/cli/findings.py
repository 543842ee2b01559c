"""`findings`: what costs the groups of a trace most, what to change, and what that would save."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator_sim.cli.window import (
    ANY_TIME,
    WindowOptions,
    as_document,
    echo_window,
    takes_window,
    window_in,
)
from coordinator_sim.cli.wording import counted, listed
from coordinator_sim.trace.window import ALWAYS, clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim.cli.costs import Scope
    from coordinator_sim.replay.findings import Finding
    from coordinator_sim.replay.savings import Weighed
    from coordinator_sim.replay.work import Partitions
    from coordinator_sim.runs.run_directory import RunDirectory
    from coordinator_sim.trace.events import RunInfo, TraceEvent
    from coordinator_sim.trace.window import Window
    from coordinator_sim_conformance.checkers import Report


class Order(StrEnum):
    """Which findings come first."""

    COST = "cost"
    NEWEST = "newest"


@takes_window
def findings(
    trace: Annotated[
        Path,
        typer.Argument(help="A trace: the directory of a run or an import.", metavar="TRACE"),
    ],
    top: Annotated[
        int, typer.Option(min=1, help="How many findings to show, the first ones.")
    ] = 10,
    group: Annotated[
        str | None, typer.Option(help="The only group to look at, instead of all.")
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GROUP:]TOPIC=N",
            help="Partitions of a topic where the trace does not tell them; may be repeated.",
        ),
    ] = None,
    costs: Annotated[
        bool,
        typer.Option("--costs", help="Show what rebalances cost, and storms, instead of findings."),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(help="With --costs: by group, deploy or day; by group if not given."),
    ] = None,
    sort: Annotated[
        Order, typer.Option(help="Which findings come first: the costliest, or the newest.")
    ] = Order.COST,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of the list.")
    ] = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """List what costs the groups of a trace most, and what to change.

    What a change would save is computed by replaying the group with it, and is never more than what
    it is about. Findings of one group overlap: their costs and savings do not add up.

    With --costs the costs of rebalances themselves: they do add up.

    With a window of time, rebalances that began in it count, and replays play what was before it.

    Example: coordinator-sim findings out/incident --last 12h --sort newest
    """
    from coordinator_sim.cli.costs import Scope, show_costs
    from coordinator_sim.errors import ConfigError
    from coordinator_sim.replay.work import parse_partitions
    from coordinator_sim.runs.run_directory import read_run

    given = parse_partitions(partitions or [])
    run = read_run(trace)
    window = window_in(run.info, window_options)
    if by is not None and not costs:
        raise ConfigError(f"--by {by} is for --costs; give both")
    scope = Scope(by=by or "group", top=top, group=group, window=window)
    if costs:
        show_costs(run, scope, given=given, is_json=json)
    else:
        words = None if json else [str(trace), *window_options.words]
        show_findings(run, scope, sort, given, words)


def show_findings(
    run: "RunDirectory",
    scope: "Scope",
    order: Order,
    partitions: "Partitions",
    words: list[str] | None,
) -> None:
    """Print the findings of a trace, and which invariants its groups kept.

    Args:
        run: The trace.
        scope: Which of them.
        order: Which come first.
        partitions: Partitions of groups whose assignments the trace lacks.
        words: The trace and the window as they were typed; None to print one JSON object.

    Raises:
        ConfigError: The trace has no such group.
    """
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.replay.causes import group_named
    from coordinator_sim.replay.findings import newest_first
    from coordinator_sim.replay.savings import findings_in, weigh
    from coordinator_sim_conformance.checkers import check_all

    every, group, window = list(run.events()), scope.group, scope.window
    events = every
    if group is not None:
        group_named(group, dict.fromkeys(each.group_id for each in events if each.group_id))
        events = [each for each in events if each.group_id in {None, group}]
    found = findings_in(events, run.info.source, run.info.last_ts_us, window)
    if order is Order.NEWEST:
        found = newest_first(found)
    top = found[: scope.top]
    with progress_bar("replaying", len(events)) as advance:
        weighed = weigh(top, every, run.info, partitions, window=window, on_progress=advance)
    verdicts = check_all(events)
    if words is None:
        typer.echo(document_of(run.info, weighed, verdicts, as_document(window), found=len(found)))
        return
    echo_window(run.info, window)
    lines = told(weighed, words) if weighed else [nothing_found(events, run, window)]
    if len(found) > len(weighed):
        lines.append(f"\n{len(weighed)} of {counted(len(found), 'finding')}; --top shows more.")
    typer.echo("\n".join([*lines, "", *invariant_lines(verdicts, "trace")]))


def document_of(
    info: "RunInfo",
    weighed: "list[Weighed]",
    verdicts: "Report",
    window: dict[str, Any],
    *,
    found: int,
) -> str:
    """The findings as one JSON object, with what every replay assumes."""
    import msgspec

    from coordinator_sim.replay.logs import CONDITIONS

    rows = [
        {
            "trace_id": info.trace_id,
            "cluster_id": info.cluster_id,
            "rank": rank,
            **msgspec.to_builtins(each.finding),
            "not_computed": each.not_computed,
            "printed": each.printed,
            "of_s": each.of_s,
            "coverage": msgspec.to_builtins(each.coverage),
        }
        for rank, each in enumerate(weighed, 1)
    ]
    invariants = {each.invariant: each.verdict.name for each in verdicts.results}
    document = {
        "findings": rows,
        "found": found,
        "assumed": CONDITIONS,
        "invariants": invariants,
        **window,
    }
    return msgspec.json.encode(document).decode()


def nothing_found(events: "list[TraceEvent]", run: "RunDirectory", window: "Window") -> str:
    """Why there is no finding: a rebalance whose length is not known may have cost much."""
    from coordinator_sim.replay.client_view import client_views
    from coordinator_sim.replay.logs import charges_of
    from coordinator_sim.trace.history import coordinator_events

    charges = [each for each in charges_of(events, run.info) if window.holds(each.seen_us)]
    untimed = sum(each.rebalancing_us is None for each in charges)
    where = "" if window == ALWAYS else " in this time"
    if untimed:
        return (
            f"Nothing to find{where}, but the length of {untimed} of "
            f"{counted(len(charges), 'rebalance')} is not known: the trace lacks the beginning or "
            "the end, as records of the offsets topic do. A broker's server.log has both."
        )
    is_alone = not charges and not coordinator_events(events, run.info.source)
    if is_alone and client_views(events, run.info.source, window):
        return (
            f"Nothing to find{where} in the logs of clients alone. What their groups lost in "
            "rebalances is in the log of their coordinator: ingest it, too."
        )
    return (
        f"Nothing to find: no group of this trace loses time in rebalances{where}, or does work "
        "twice."
    )


def told(weighed: "list[Weighed]", words: list[str]) -> list[str]:
    """The findings, line by line; `words` are the trace and its window, for the next command."""
    from coordinator_sim.replay.findings import unit_of

    lines: list[str] = []
    for rank, each in enumerate(weighed, 1):
        finding = each.finding
        sure = f"{100 * finding.confidence:.0f} % sure"
        if lines:
            lines.append("")
        lines.append(
            f"{rank}. {finding.group_id}: {finding.kind}, {amount(finding)} "
            f"{unit_of(finding.cost_s, finding.cost_unit)} ({sure})"
        )
        lines += [f"   {text}" for text in (finding.what, *occurring(finding))]
        lines.append(f"   change: {finding.change}")
        lines += [f"   set now: {text}" for text in each.printed]
        lines += [f"   {text}" for text in (f"saves: {each.words}", *assuming(finding))]
        lines.append(f"   lines: {listed(tuple(Path(ref).name for ref in finding.source_refs))}")
    helpful = [each.finding for each in weighed if (each.finding.saves_s or 0) > 0]
    if helpful:
        best = max(helpful, key=lambda finding: finding.saves_s or 0)
        command = ["coordinator-sim", "replay", *words, "--group", best.group_id]
        lines += [
            "",
            "Every saving assumes what a replay does; the next command lists it all.",
            f"Next: {shlex.join(command)} --set {best.setting}",
        ]
    return lines


def occurring(finding: "Finding") -> list[str]:
    """When a finding happened, first and last; empty where the trace does not tell."""
    if finding.first_us is None or finding.last_us is None:
        return []
    first, last = clock(finding.first_us // 1000), clock(finding.last_us // 1000)
    return [f"when: {first}" if first == last else f"when: from {first} to {last}"]


def work_finding_lines(events: "Sequence[TraceEvent]") -> list[str]:
    """What is wrong with the work of a run's groups, a line each; empty for nothing."""
    from coordinator_sim.replay.work_findings import work_findings_in

    return [f"found in {each.group_id}: {each.what}" for each in work_findings_in(events)]


def invariant_lines(verdicts: "Report", what: str) -> list[str]:
    """Which invariants were kept, which a run or trace does not exercise, and which are violated.

    Args:
        verdicts: What was judged.
        what: What it was: a run or a trace.
    """
    from coordinator_sim_conformance.checkers import Verdict

    kept, violated = (", ".join(verdicts.having(each)) for each in (Verdict.PASS, Verdict.FAIL))
    missed = [
        f"{each.invariant} ({each.title})"
        for each in verdicts.results
        if each.verdict is Verdict.UNKNOWN
    ]
    return [
        f"invariants kept: {kept or 'none'}",
        f"Not exercised in this {what}: {', '.join(missed) or 'none'}",
        f"invariants VIOLATED: {violated or 'none'}",
    ]


def amount(finding: "Finding") -> str:
    """The cost of a finding: a whole number, or a time with milliseconds."""
    from coordinator_sim.replay.findings import COUNTS

    decimals = 0 if finding.cost_unit in COUNTS else 3
    return f"{finding.cost_s:,.{decimals}f}"


def assuming(finding: "Finding") -> list[str]:
    """List the assumptions of a saving; those of every replay are omitted."""
    if finding.saves_s is None:
        return []
    return [f"assumes: {text}" for text in finding.assumes]
