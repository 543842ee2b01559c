"""`findings`: what costs the groups of a trace most, what to change, and what that would save."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.wording import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim.replay.findings import Finding
    from coordinator_sim.replay.savings import Weighed
    from coordinator_sim.trace.events import RunInfo, TraceEvent
    from coordinator_sim_conformance.checkers import Report


def findings(
    trace: Annotated[
        Path,
        typer.Argument(help="A trace: the directory of a run or an import.", metavar="TRACE"),
    ],
    top: Annotated[
        int, typer.Option(min=1, help="How many findings to show, the most costly ones.")
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
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of the list.")
    ] = False,
) -> None:
    """List what costs the groups of a trace most, and what to change.

    What a change would save is computed by replaying the group with it, and is never more than what
    it is about. Findings of one group overlap: their costs and savings do not add up.

    With --costs the costs of rebalances themselves: they do add up.

    Example: coordinator-sim findings out/incident --top 5
    """
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.errors import ConfigError
    from coordinator_sim.replay.causes import group_named
    from coordinator_sim.replay.savings import findings_in, weigh
    from coordinator_sim.replay.work import parse_partitions
    from coordinator_sim.runs.run_directory import read_run
    from coordinator_sim_conformance.checkers import check_all

    given = parse_partitions(partitions or [])
    run = read_run(trace)
    if by is not None and not costs:
        raise ConfigError(f"--by {by} is for --costs; give both")
    if costs:
        from coordinator_sim.cli.costs import show_costs

        show_costs(run, by or "group", top=top, group=group, given=given, is_json=json)
        return
    events = list(run.events())
    if group is not None:
        group_named(group, dict.fromkeys(each.group_id for each in events if each.group_id))
        events = [each for each in events if each.group_id in {None, group}]
    found = findings_in(events, run.info.source, run.info.last_ts_us)
    with progress_bar("replaying", len(events)) as advance:
        weighed = weigh(found[:top], events, run.info, given, on_progress=advance)
    verdicts = check_all(events)
    if json:
        typer.echo(document_of(run.info, weighed, verdicts, found=len(found)))
        return
    more = f"\n{len(weighed)} of {counted(len(found), 'finding')}; --top shows more."
    shown = [*told(weighed, trace), *([more] if len(found) > len(weighed) else [])]
    typer.echo("\n".join([*shown, "", *invariant_lines(verdicts, "trace")]))


def document_of(
    info: "RunInfo", weighed: "list[Weighed]", verdicts: "Report", *, found: int
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
        }
        for rank, each in enumerate(weighed, 1)
    ]
    invariants = {each.invariant: each.verdict.name for each in verdicts.results}
    document = {
        "findings": rows,
        "found": found,
        "assumed": CONDITIONS,
        "invariants": invariants,
    }
    return msgspec.json.encode(document).decode()


def told(weighed: "list[Weighed]", trace: Path) -> list[str]:
    """The findings, line by line."""
    if not weighed:
        return [
            "Nothing to find: no group of this trace loses time in rebalances, or does work twice."
        ]
    lines: list[str] = []
    for rank, each in enumerate(weighed, 1):
        finding = each.finding
        sure = f"{100 * finding.confidence:.0f} % sure"
        if lines:
            lines.append("")
        lines.append(
            f"{rank}. {finding.group_id}: {finding.kind}, {amount(finding)} "
            f"{finding.cost_unit} ({sure})"
        )
        lines.append(f"   {finding.what}")
        lines.append(f"   change: {finding.change}")
        lines += [f"   {text}" for text in (saving(each), *assuming(finding))]
        lines.append(f"   lines: {listed(tuple(Path(ref).name for ref in finding.source_refs))}")
    helpful = [each.finding for each in weighed if (each.finding.saves_s or 0) > 0]
    if helpful:
        best = max(helpful, key=lambda finding: finding.saves_s or 0)
        words = ["coordinator-sim", "replay", str(trace), "--group", best.group_id]
        lines += [
            "",
            "Every saving assumes what a replay does; the next command lists it all.",
            f"Next: {shlex.join(words)} --set {best.setting}",
        ]
    return lines


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


def saving(each: "Weighed") -> str:
    """What the change would save, and where that comes from."""
    finding = each.finding
    if finding.setting is None:
        return "saves: not computed, no replay can try the change"
    if finding.saves_s is None:
        return f"saves: not computed, {each.not_computed}"
    more = finding.more_rebalances or 0
    other = f"; {counted(more, 'rebalance')} more than before" if more > 0 else ""
    if finding.saves_s == 0:
        return f"saves: nothing when replayed with {finding.setting}{other}"
    if finding.saves_s < 0:
        lost = f"{-finding.saves_s:.3f} {finding.cost_unit} more with {finding.setting}, replayed"
        return f"saves: nothing, {lost}{other}"
    saved = f"{finding.saves_s:.3f} of {finding.cost_s:.3f} {finding.cost_unit}"
    return f"saves: {saved}, replayed with {finding.setting}{other}"


def assuming(finding: "Finding") -> list[str]:
    """List the assumptions of a saving; those of every replay are omitted."""
    if finding.saves_s is None:
        return []
    return [f"assumes: {text}" for text in finding.assumes]
