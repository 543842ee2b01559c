"""The command `conformance`: the list of its commands."""

from typing import Annotated

import typer

from coordinator_sim import __version__
from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.ending import EXIT_MISUSE, run_command_line
from coordinator_sim_conformance.cli.clients import clients
from coordinator_sim_conformance.cli.differ import differ
from coordinator_sim_conformance.cli.kafka_tests import kafka_tests
from coordinator_sim_conformance.cli.matrix import matrix
from coordinator_sim_conformance.cli.museum import museum
from coordinator_sim_conformance.cli.mutants import mutants
from coordinator_sim_conformance.cli.proxy import proxy
from coordinator_sim_conformance.cli.registry import coverage, list_requirements
from coordinator_sim_conformance.cli.run import run
from coordinator_sim_conformance.cli.settings import settings

app = CommandLine(
    name="conformance",
    help="Requirements of Kafka's group coordinator, and what meets them.",
    invoke_without_command=True,
    epilog="Example: conformance list --area JOIN    (conformance list --help for more)",
)
app.command("list", short_help="List the requirements.")(list_requirements)
app.command(short_help="Play the cases on a target.")(run)
app.command(short_help="Print settings that unlock cases.")(settings)
app.command(short_help="Play requirements on a real client.")(clients)
app.command(short_help="Show results as a page.")(matrix)
app.command(short_help="Compare the requirements with catalogue files.")(coverage)
app.command(short_help="Compare with Kafka's own coordinator, at random.")(differ)
app.command("kafka-tests", short_help="Run Kafka's own tests on serve.")(kafka_tests)
app.command(short_help="Flag impossible replies of a cluster in use.")(proxy)
app.command(short_help="Break the core on purpose, see what notices.")(museum)
app.command(short_help="Change the core at random, see what notices.")(mutants)


def print_version(wanted: bool) -> None:
    """Print the version and stop, when asked to."""
    if wanted:
        typer.echo(f"conformance {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """List the requirements of Kafka's group coordinator and check what meets them."""
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(EXIT_MISUSE)


def main() -> None:
    """Run the command line: 0 is ok, 1 problems found, 2 misuse; a user sees no traceback."""
    run_command_line(app, "conformance")
