"""The command `coordinator-sim`: the list of commands and the one place where errors end."""

import os
import sys
from typing import Annotated, Final, cast

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
from coordinator_sim.errors import (
    CoordinatorSimError,
    DataError,
    InvariantViolation,
    WireFormatError,
)

EXIT_PROBLEMS_FOUND: Final = 1
EXIT_MISUSE: Final = 2
EXIT_INTERRUPTED: Final = 130
"""What a shell says of a command that Ctrl-C ended."""

# What typer raises for a command line it cannot read; it exports the child of that class alone.
_UsageError: Final = cast("type[typer.BadParameter]", typer.BadParameter.__base__)

app = typer.Typer(
    name="coordinator-sim",
    help="Simulate Kafka's group coordinator, replay production logs, compare assignors.",
    invoke_without_command=True,
    epilog="Example: coordinator-sim run rolling-bounce    (coordinator-sim run --help for more)",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(short_help="Roll deploys under every assignor; report the churn.")(demo)
app.command(short_help="Run a scenario in virtual time.")(run)
app.command("list", short_help="List the scenarios of the catalogue.")(list_scenarios)
app.command(short_help="Show a scenario as data that `run` takes.")(show)
app.command(short_help="Read logs of brokers and clients into a trace.")(ingest)
app.command(short_help="Drive the core from a trace; try other settings.")(replay)
app.command(short_help="Report rebalances and churn of traces (PySpark).")(report)
app.command(short_help="Tell why a group rebalanced each time.")(explain)
app.command(short_help="Run assignors on cases, or check their results.")(assign)


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
    """Run the command line: 0 is ok, 1 problems found, 2 misuse; a user sees no traceback."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except _UsageError as error:
        fail_usage(error)
    except InvariantViolation as error:
        fail(f"{error}; a bug of coordinator-sim: report it with this command", EXIT_PROBLEMS_FOUND)
    except (DataError, WireFormatError) as error:
        fail(str(error), EXIT_PROBLEMS_FOUND)
    except CoordinatorSimError as error:
        fail(str(error), EXIT_MISUSE)
    except BrokenPipeError:
        # The reader of our output went away; nothing is left to say, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_PROBLEMS_FOUND)
    except OSError as error:
        fail(f"{error.filename or 'the system'}: {error.strerror or error}", EXIT_MISUSE)
    except typer.Abort:
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code)


def fail_usage(error: typer.BadParameter) -> None:
    """Say what is wrong with the command line, and which help to read."""
    message = error.format_message().rstrip(".")
    command = "coordinator-sim" if error.ctx is None else error.ctx.command_path
    fail(f"{message[:1].lower()}{message[1:]}; see {command} --help", EXIT_MISUSE)


def fail(message: str, code: int) -> None:
    """Say what is wrong in one line and leave."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {message}", markup=False)
    sys.exit(code)
