"""`run`: one scenario in virtual time; prints the story and writes the trace."""

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim import __version__
from coordinator_sim.cli import arguments
from coordinator_sim.cli.broker_log import write_broker_log
from coordinator_sim.cli.bug_option import RunBugOption, bugs_of_command
from coordinator_sim.cli.kinds import AsOption, compare_kinds, pairs_of, parse_kinds, verdicts_of
from coordinator_sim.cli.metrics import print_metrics
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorJavaOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.cli.simulation import (
    Simulation,
    assignor_label,
    load_story,
    simulate,
    with_objective,
    with_switches,
)
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator_sim.sim.elision import Elided
    from coordinator_sim.sim.runner import RunResult
    from coordinator_sim.sim.scenario.scenario import Scenario
    from coordinator_sim.trace.events import TraceEvent
    from coordinator_sim_conformance.checkers import Report, Violation
    from coordinator_sim_conformance.museum.exhibit import Exhibit


LogDirOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the offsets log too, as a broker's segments in this folder.",
        callback=arguments.local_only,
    ),
]
LogFileOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the log that the brokers would have written.", callback=arguments.local_only
    ),
]
RequestLogOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the brokers' request log of groups, as Kafka 2.8+ does.",
        callback=arguments.local_only,
    ),
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show heartbeats and offsets too.")]
WorkOption = Annotated[
    bool,
    typer.Option("--work", help="Trace which records are processed; count duplicates and gaps."),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting by Kafka's name, such as session.timeout.ms=10000; may be repeated.",
    ),
]
VariedOption = Annotated[
    bool,
    typer.Option(
        "--varied",
        help="Draw starts, processing times, pauses and latency by the seed; times are then those "
        "of a cluster, not of an exact world in lockstep.",
    ),
]
ElideOption = Annotated[
    bool,
    typer.Option(
        "--elide",
        help="Skip idle time where that is exact: the trace lacks its heartbeats, nothing else.",
    ),
]
MetricsOption = Annotated[
    bool, typer.Option("--metrics", help="Print what each broker's metrics show at the end.")
]


ScenarioOption = Annotated[
    str,
    typer.Argument(help="Catalogue name, a .json file, or a story's .py file.", metavar="SCENARIO"),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Run directory; out/NAME/1, 2 ... by default.", callback=arguments.local_only
    ),
]
SeedOption = Annotated[
    int, typer.Option(help="Seed of all chance; the same seed gives the same trace.")
]
AssignorOption = Annotated[
    str, typer.Option(help="Assignor or Connect protocol instead of the scenario's.")
]
ClientOption = Annotated[
    str,
    typer.Option(help="Client of all consumers: java, librdkafka or franz-go."),
]
ProfileOption = Annotated[
    str, typer.Option(help="Behaviour profile instead of the scenario's, such as 4.4.")
]
ShuffleTiesOption = Annotated[
    bool, typer.Option("--shuffle-ties", help="Draw the order of simultaneous happenings.")
]
FormatOption = Annotated[arguments.TraceFormat, typer.Option("--format", help="Form of the trace.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON summary instead of the story.")
]


def run(
    scenario: ScenarioOption,
    seed: SeedOption = 0,
    set_: SettingsOption = None,
    assignor: AssignorOption = "",
    profile: ProfileOption = "",
    client: ClientOption = "",
    out: OutOption = None,
    format_: FormatOption = arguments.TraceFormat.PARQUET,
    log_dir: LogDirOption = None,
    shuffle_ties: ShuffleTiesOption = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    broker_log: LogFileOption = None,
    request_log: RequestLogOption = None,
    metrics: MetricsOption = False,
    work: WorkOption = False,
    objective_lag_ms: arguments.ObjectiveOption = None,
    varied: VariedOption = False,
    processing: arguments.ProcessingOption = "",
    processing_ms: arguments.ProcessingTimeOption = "",
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
    assignor_java: AssignorJavaOption = None,
    elide: ElideOption = False,
    bug: RunBugOption = None,
    as_: AsOption = "",
) -> None:
    """Run one scenario in virtual time: print its story, check its invariants, write its trace.

    Exit code 1 when an invariant is violated.

    Example: coordinator-sim run rolling-bounce --assignor sticky --set session.timeout.ms=10000
    """
    bugs = bugs_of_command("run", bug or ())
    register_given(assignor_from, assignor_process, assignor_java)
    kinds = parse_kinds(as_)

    def simulation_of(kind: str = "") -> Simulation:
        pairs = pairs_of(kind, kinds, set_)
        simulation = prepare(
            scenario, seed, pairs, assignor=assignor, profile=profile, client=client, kind=kind
        )
        check_whole(simulation.scenario, elide, request_log, log_dir)
        if varied or processing or processing_ms:
            simulation = with_variety(simulation, processing, processing_ms)
        simulation = with_switches(simulation, work=work, shuffle_ties=shuffle_ties, elide=elide)
        return with_objective(with_bugs(simulation, bugs), objective_lag_ms)

    if len(kinds) > 1:
        check_of_one_run(log_dir, broker_log, request_log, metrics, verbose)
        run_kinds({kind: simulation_of(kind) for kind in kinds}, bugs, out, format_, is_json=json)
        return
    simulation = simulation_of(*kinds)
    found = simulation.scenario
    if not json:
        print_head(simulation, bugs)
    with arguments.run_folder(out, Path("out") / found.name) as directory:
        events, elided = simulate_visibly(simulation, directory, format_, log_dir, request_log)
    verdicts = verdicts_of(simulation, events)
    lines = None if broker_log is None else write_broker_log(events, found.profile, broker_log)
    if json:
        print_json(simulation, events, verdicts, directory, elided)
    else:
        print_story(events, verbose)
        print_summary(simulation, events, verdicts, directory=directory, log_dir=log_dir)
        print_elided(simulation, elided)
        print_logs(broker_log, lines, request_log, directory if metrics else None)
    if verdicts.violations:
        raise typer.Exit(1)


def prepare(
    name: str,
    seed: int,
    pairs: list[str] | None,
    *,
    assignor: str,
    profile: str,
    client: str = "",
    kind: str = "",
) -> Simulation:
    """The simulation that the command line asks for.

    Raises:
        ScenarioError: The scenario is unknown or impossible.
        ConfigError: A setting, assignor or profile is unknown or out of bounds.
    """
    import msgspec

    from coordinator_sim.sim.scenario.kinds import as_kind, left_out
    from coordinator_sim.sim.scenario.scenario import with_assignor, with_client, with_settings

    settings = arguments.parse_settings(pairs or [])
    options = dict(settings)
    story = None
    if name.endswith(".py"):
        scenario, story, options["story"] = load_story(Path(arguments.local_only(name)))
    else:
        scenario = arguments.find_scenario(name)
    if kind:
        options["as"] = kind
        if names := left_out(scenario, kind):
            options["left-out"] = ",".join(names)
        scenario = as_kind(scenario, kind)
    scenario = with_settings(scenario, settings)
    if assignor:
        scenario = with_assignor(scenario, assignor)
        options["assignor"] = assignor
    if client:
        scenario = with_client(scenario, client)
        options["client"] = client
    if profile:
        scenario = msgspec.structs.replace(scenario, profile=profile)
        options["profile"] = profile
    return Simulation(
        scenario=scenario,
        seed=seed,
        assignor=assignor_label(scenario),
        options=options,
        story=story,
    )


def print_head(simulation: Simulation, bugs: "Sequence[Exhibit]") -> None:
    """Print what is simulated, and the bugs it has on purpose."""
    typer.echo(headline(simulation))
    print_bugs(bugs)
    typer.echo(f"{simulation.scenario.title}\n")


def print_logs(
    broker_log: Path | None, lines: int | None, request_log: Path | None, metrics: Path | None
) -> None:
    """Print where the brokers' logs are, and the metrics of a run, as far as the user wants them.

    Args:
        broker_log: The brokers' log.
        lines: Number of its lines; None for no such log.
        request_log: The brokers' request log.
        metrics: Directory of the run whose metrics are printed; None for none.
    """
    if lines is not None:
        typer.echo(f"broker log: {broker_log}, {lines} lines   (UTC, from 1970)")
    if request_log is not None:
        typer.echo(f"request log: {request_log}   (UTC, from 1970)")
    if metrics is not None:
        print_metrics(metrics)


_OF_ONE_RUN: Final = ("--log-dir", "--broker-log", "--request-log", "--metrics", "--verbose")


def check_of_one_run(*values: object) -> None:
    """Refuse options of a single run, in the order of `_OF_ONE_RUN`.

    Raises:
        ConfigError: One of these options is set.
    """
    for option, value in zip(_OF_ONE_RUN, values, strict=True):
        if value:
            raise ConfigError(f"{option} is for one run: give --as one of its kinds")


def run_kinds(
    simulations: dict[str, Simulation],
    bugs: "Sequence[Exhibit]",
    out: Path | None,
    trace_format: arguments.TraceFormat,
    *,
    is_json: bool,
) -> None:
    """Run a scenario as several kinds of groups, and compare them."""
    import msgspec

    first, kinds = next(iter(simulations.values())), ",".join(simulations)
    if not is_json:
        options = {**first.options, "as": kinds}
        options.pop("left-out", None)
        print_head(msgspec.structs.replace(first, options=options), bugs)

    def simulated(simulation: Simulation, directory: Path) -> "Sequence[TraceEvent]":
        return simulate_visibly(simulation, directory, trace_format, None)[0]

    with arguments.run_folder(out, Path("out") / first.scenario.name) as directory:
        compare_kinds(simulations, directory, simulated, is_json=is_json)


def simulate_visibly(
    simulation: Simulation,
    directory: Path,
    trace_format: arguments.TraceFormat,
    log_dir: Path | None,
    request_log: Path | None = None,
) -> "tuple[list[TraceEvent], Elided | None]":
    """Run the simulation behind a progress bar, and write what it leaves.

    Returns:
        The events, and what was elided.
    """
    from coordinator_sim.cli.progress import progress_bar

    results: list[RunResult] = []

    with progress_bar("simulating", simulation.scenario.duration_ms * 1000) as advance:
        events = simulate(
            simulation,
            directory,
            trace_format=trace_format.value,
            on_progress=advance,
            log_dir=log_dir,
            request_log=request_log,
            on_result=results.append,
        )
    return events, results[0].elided


def check_whole(
    scenario: "Scenario", elide: bool, request_log: Path | None, log_dir: Path | None
) -> None:
    """Refuse logs of time that is not lived through.

    Raises:
        ConfigError: Both are asked for.
    """
    if elide and request_log is not None:
        raise ConfigError(
            f"--request-log {request_log}: an elided run makes no idle requests to log; "
            "leave out --elide"
        )
    if scenario.variety is None or not scenario.variety.calm_ms:
        return
    for option, path in (("--request-log", request_log), ("--log-dir", log_dir)):
        if path is not None:
            raise ConfigError(
                f"{option} {path}: calm_ms={scenario.variety.calm_ms} in the scenario's variety "
                "leaves calm time out, and what would be logged in it; set it to 0"
            )


def print_elided(simulation: Simulation, elided: "Elided | None") -> None:
    """How much of the run was skipped, if that was asked for, and what kept the rest from it."""
    if elided is None:
        return
    share = elided.us / (simulation.scenario.duration_ms * 1_000)
    why = f"; mostly kept by: {elided.reason}" if elided.reason else ""
    beats = f", {elided.heartbeats:,} heartbeats" if elided.heartbeats else ""
    typer.echo(f"elided: {share:.1%} of the time in {elided.stretches:,} stretches{beats}{why}")


def with_bugs(simulation: Simulation, bugs: "Sequence[Exhibit]") -> Simulation:
    """The same simulation, whose trace says that it was broken on purpose."""
    import msgspec

    if not bugs:
        return simulation
    told = ",".join(bug.exhibit_id for bug in bugs)
    return msgspec.structs.replace(simulation, options={**simulation.options, "bug": told})


def print_bugs(bugs: "Sequence[Exhibit]") -> None:
    """One line a bug that the run has on purpose."""
    for bug in bugs:
        from coordinator_sim_conformance.museum.bugs import warning_of

        typer.echo(warning_of(bug))


def with_variety(simulation: Simulation, processing: str, processing_ms: str) -> Simulation:
    """The same simulation in a world drawn by its seed.

    A scenario that has a variety of its own keeps it, but for the processing asked for.

    Raises:
        ConfigError: The range of processing times cannot be read.
        ScenarioError: The shape is unknown, or a time is outside its bounds.
    """
    import msgspec

    from coordinator_sim.sim.scenario import variants

    asked = arguments.parse_variety(processing, processing_ms)
    scenario = simulation.scenario
    if scenario.variety is None:
        scenario = variants.with_variety(scenario, asked)
    else:
        own = scenario.variety
        changed = msgspec.structs.replace(
            own,
            processing=asked.processing if processing else own.processing,
            processing_ms=asked.processing_ms if processing_ms else own.processing_ms,
        )
        scenario = msgspec.structs.replace(scenario, variety=changed)
    given = {"processing": processing, "processing-ms": processing_ms}
    options = {"varied": "true", **{name: value for name, value in given.items() if value}}
    return msgspec.structs.replace(
        simulation, scenario=scenario, options={**simulation.options, **options}
    )


def headline(simulation: Simulation) -> str:
    """What would be needed to run this again: version, commit, seed, Kafka version, options."""
    options = " ".join(f"{key}={value}" for key, value in simulation.options.items()) or "none"
    return (
        f"coordinator-sim {__version__} ({git_commit()}) scenario={simulation.scenario.name} "
        f"seed={simulation.seed} kafka={simulation.scenario.profile} options: {options}"
    )


def git_commit() -> str:
    """The short commit of a checkout, or `release`."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return "release"
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or "no commit"


def print_story(events: "Sequence[TraceEvent]", verbose: bool) -> None:
    """One line an event, time first; without `verbose` the events that a reader wants."""
    from coordinator_sim.trace.story import story_line, widest_group
    from coordinator_sim_scenarios.stories import scenario_story

    if not verbose:
        for line in scenario_story(events):
            typer.echo(line)
        return
    width = widest_group(events)
    for event in events:
        typer.echo(story_line(event, group_width=width))


def print_summary(
    simulation: Simulation,
    events: "Sequence[TraceEvent]",
    verdicts: "Report",
    *,
    directory: Path,
    log_dir: Path | None,
) -> None:
    """Counts, invariants and where the trace is."""
    from coordinator_sim.cli.findings import invariant_lines, work_finding_lines
    from coordinator_sim.trace.digest import digest_of
    from coordinator_sim.trace.events import Event

    counts = Counter(event.event for event in events)
    typer.echo(
        f"\n{len(events)} events: "
        f"{counts[Event.PREPARE_REBALANCE] + counts[Event.EPOCH_BUMPED]} rebalances, "
        f"{counts[Event.GROUP_STABLE] + counts[Event.TARGET_REACHED]} generations reached Stable, "
        f"{counts[Event.HEARTBEAT]} heartbeats, {counts[Event.OFFSET_COMMIT]} commits"
    )
    for line in (
        *work_lines(events),
        *lag_lines(simulation, events),
        *work_finding_lines(events),
        *start_up_lines(events),
        *cost_lines(simulation, events),
    ):
        typer.echo(line)
    for line in invariant_lines(verdicts, "run"):
        typer.echo(line)
    for line in violation_lines(simulation, events, verdicts):
        typer.echo(line)
    typer.echo(f"digest: {digest_of(events)}")
    typer.echo(f"trace: {directory}   (coordinator-sim report {directory})")
    if log_dir is not None:
        typer.echo(f"offsets log: {log_dir}   (coordinator-sim log dump {log_dir})")


def work_lines(events: "Sequence[TraceEvent]") -> list[str]:
    """Count processed records, one line a group; empty if the trace has no work events."""
    from coordinator_sim.trace.work import count_work

    return [
        f"work of {row.connector or row.group_id}: {row.processed:,} records processed, "
        f"{row.duplicates:,} of them again, {row.gaps:,} skipped; lag at most {row.max_lag:,}, "
        f"{row.final_lag:,} at the end; run twice for {row.double_run_us / 1e6:,.1f} s"
        for row in count_work(events)
    ]


def lag_lines(simulation: Simulation, events: "Sequence[TraceEvent]") -> list[str]:
    """Lag in time, delays and cost, one line a group; empty if the trace has no lag in time."""
    from coordinator_sim.trace.lag import group_lags

    lines = []
    for row in group_lags(events, simulation.scenario.duration_ms * 1_000):
        above = hours = ""
        if row.objective_us is not None:
            above = (
                f"above {row.objective_us / 1e6:g} s for {row.above_us / 1e6:,.1f} "
                f"partition-seconds ({row.above_us / row.partition_us:.1%}), "
            )
        if row.member_us:
            hours = f"; {row.member_us / 3.6e9:,.2f} member-hours"
        lines.append(
            f"lag of {row.connector or row.group_id}: {above}at most {row.max_lag_us / 1e6:,.1f} s;"
            f" delay p50 {row.delay_p50_us / 1e6:,.3g} s, p95 {row.delay_p95_us / 1e6:,.3g} s, "
            f"p99 {row.delay_p99_us / 1e6:,.3g} s{hours}"
        )
    return lines


def cost_lines(simulation: Simulation, events: "Sequence[TraceEvent]") -> list[str]:
    """What rebalances cost each group of a varied world; the times of an exact one mislead."""
    from coordinator_sim.replay.charges import charges_in, trace_of
    from coordinator_sim.replay.cost_sums import GROUP, summed
    from coordinator_sim.trace.events import Source

    if simulation.scenario.variety is None:
        return []
    rows = summed(charges_in(trace_of(events, Source.SIM)), GROUP)
    return [
        f"cost for {row.group_id}: unowned for {row.sums.unowned_s:,.1f} partition-seconds, "
        f"members paused for {row.sums.paused_s:,.1f} member-seconds, the group stopped for "
        f"{row.sums.stopped_s:,.2f} s"
        for row in rows
        if row.sums.unowned_s is not None
    ]


def start_up_lines(events: "Sequence[TraceEvent]") -> list[str]:
    """How long each Connect worker took to start, if it had much to read."""
    from coordinator_sim.trace.start_up import start_up_line, start_ups

    return [start_up_line(found) for found in start_ups(events) if found.has_long_reading]


def violation_lines(
    simulation: Simulation, events: "Sequence[TraceEvent]", verdicts: "Report"
) -> "Iterator[str]":
    """Every violation; under the first of an invariant the smallest history that shows it."""
    slices = slices_of(simulation, events, verdicts)
    for found in verdicts.violations:
        yield f"  {violation_line(found)}"
        yield from (f"    {line}" for line in slices.pop(found.invariant, ()))


def slices_of(
    simulation: Simulation, events: "Sequence[TraceEvent]", verdicts: "Report"
) -> dict[str, list[str]]:
    """The smallest history that shows the first violation of each broken invariant, as lines."""
    from coordinator_sim_conformance.checkers import slice_lines
    from coordinator_sim_conformance.scenario_timing import circumstances_of

    known = circumstances_of(simulation.scenario, has_story=simulation.story is not None)
    firsts = [result.violations[0] for result in verdicts.results if result.violations]
    return {found.invariant: slice_lines(events, found, known) for found in firsts}


def violation_line(found: "Violation") -> str:
    """One violation: which invariant, when, where, and the events to look at."""
    at_s = found.at_us / 1e6
    evidence = ", ".join(map(str, found.evidence))
    return f"{found.invariant} at {at_s:.3f} s, {found.group_id}: {found.message} (seq {evidence})"


def print_json(
    simulation: Simulation,
    events: "Sequence[TraceEvent]",
    verdicts: "Report",
    directory: Path,
    elided: "Elided | None",
) -> None:
    """The summary for a machine."""
    import msgspec

    from coordinator_sim.trace.digest import digest_of
    from coordinator_sim.trace.lag import group_lags
    from coordinator_sim.trace.work import count_work

    counts = Counter(event.event.value for event in events)
    summary = {
        **msgspec.to_builtins(simulation.run_info()),
        "digest": digest_of(events),
        "events": dict(sorted(counts.items())),
        "work": msgspec.to_builtins(count_work(events)),
        "lag": msgspec.to_builtins(group_lags(events, simulation.scenario.duration_ms * 1_000)),
        "elided": msgspec.to_builtins(elided),
        "invariants": {each.invariant: each.verdict.name for each in verdicts.results},
        "violations": [violation_line(found) for found in verdicts.violations],
        "slices": slices_of(simulation, events, verdicts),
        "trace": str(directory),
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(summary)).decode())
