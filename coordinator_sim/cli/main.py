"""The command `coordinator-sim`: the list of commands and the one place where errors end."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from coordinator_sim import __version__
from coordinator_sim.cli.assign import assign
from coordinator_sim.cli.catalogue import list_scenarios, show
from coordinator_sim.cli.demo import demo
from coordinator_sim.cli.explain import explain
from coordinator_sim.cli.ingest import ingest
from coordinator_sim.cli.replay import replay
from coordinator_sim.cli.report import report
from coordinator_sim.cli.run import run
from coordinator_sim.errors import CoordinatorSimError, DataError, WireFormatError

EXIT_PROBLEMS_FOUND = 1
EXIT_MISUSE = 2

app = typer.Typer(
    name="coordinator-sim",
    help="Simulate Kafka's group coordinator, replay production logs, compare assignors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(run)
app.command("list")(list_scenarios)
app.command()(show)
app.command()(ingest)
app.command()(replay)
app.command()(report)
app.command()(explain)
app.command()(assign)


def print_version(wanted: bool) -> None:
    """Print the version and stop, when asked to."""
    if wanted:
        typer.echo(f"coordinator-sim {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Simulate Kafka's group coordinator, replay production logs, compare assignors."""
    del version


def main() -> None:
    """Run the command line: 0 is ok, 1 problems found, 2 misuse; a user sees no traceback."""
    try:
        app()
    except (DataError, WireFormatError) as error:
        fail(error, EXIT_PROBLEMS_FOUND)
    except CoordinatorSimError as error:
        fail(error, EXIT_MISUSE)
    except BrokenPipeError:
        # The reader of our output went away; nothing is left to say, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_PROBLEMS_FOUND)


def fail(error: CoordinatorSimError, code: int) -> None:
    """Say what is wrong in one line and leave."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", markup=False)
    sys.exit(code)
