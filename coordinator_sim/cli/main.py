"""The command `coordinator-sim`: the list of its commands."""

from typing import Annotated

import typer

from coordinator_sim import __version__
from coordinator_sim.cli.assign import assign
from coordinator_sim.cli.catalogue import list_scenarios, show
from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.ctl import ctl
from coordinator_sim.cli.demo import demo
from coordinator_sim.cli.ending import EXIT_MISUSE, run_command_line
from coordinator_sim.cli.examples import examples
from coordinator_sim.cli.explain import explain
from coordinator_sim.cli.findings import findings
from coordinator_sim.cli.ingest import ingest
from coordinator_sim.cli.lines import lines
from coordinator_sim.cli.lint import lint
from coordinator_sim.cli.member import member
from coordinator_sim.cli.offsets_log import log
from coordinator_sim.cli.rehearse import rehearse
from coordinator_sim.cli.replay import replay
from coordinator_sim.cli.report import report
from coordinator_sim.cli.rollout import rollout
from coordinator_sim.cli.run import run
from coordinator_sim.cli.serve import serve
from coordinator_sim.cli.shape import shape
from coordinator_sim.cli.sweep import sweep
from coordinator_sim.cli.trogdor import trogdor
from coordinator_sim.cli.watch import watch

app = CommandLine(
    name="coordinator-sim",
    help="Simulate Kafka's group coordinator, replay production logs, compare assignors.",
    invoke_without_command=True,
    epilog="Example: coordinator-sim run rolling-bounce    (coordinator-sim run --help for more)",
)
app.command(short_help="Roll deploys under every assignor; report the churn.")(demo)
app.command(short_help="Run a scenario in virtual time.")(run)
app.command("list", short_help="List the scenarios of the catalogue.")(list_scenarios)
app.command(short_help="Show a scenario; --json: as data that `run` takes.")(show)
app.command(short_help="Write the files that the guides use.")(examples)
app.command(short_help="Describe your own topology in one line.")(shape)
app.command(short_help="Read logs of brokers and clients into a trace.")(ingest)
app.command(short_help="Drive the core from a trace; try other settings.")(replay)
app.command(short_help="Rehearse an upgrade to the consumer protocol.")(rehearse)
app.command(short_help="Report rebalances and churn of traces.")(report)
app.command(short_help="Compare protocols, assignors, membership (PySpark).")(sweep)
app.command(short_help="Find the deploy of a group that costs least (PySpark).")(rollout)
app.command(short_help="Check the settings of a consumer.")(lint)
app.command(short_help="Tell why a group rebalanced each time.")(explain)
app.command(short_help="List what rebalances cost, and what to change.")(findings)
app.command(short_help="Drive the core by JSON lines, from any language.")(lines)
app.command(short_help="Be a member of a group on a real broker.")(member)
app.command(short_help="Serve the coordinator to real Kafka clients.")(serve)
app.command(short_help="Tell of rebalances in a running cluster, read-only.")(watch)

app.add_typer(assign, name="assign", short_help="Run assignors on cases, or try them in a lab.")
app.add_typer(log, name="log")
app.add_typer(ctl, name="ctl", short_help="Operate a running serve.")
app.add_typer(trogdor, name="trogdor", short_help="Run fault and workload tasks on nodes.")


def print_version(wanted: bool) -> None:
    """Print the version and stop, when asked to."""
    if wanted:
        typer.echo(f"coordinator-sim {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Simulate Kafka's group coordinator, replay production logs, compare assignors."""
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(EXIT_MISUSE)


def main() -> None:
    """Run the command line with all commands; `entry` does so for users."""
    run_command_line(app, "coordinator-sim")
