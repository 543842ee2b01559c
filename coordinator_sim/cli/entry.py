"""Where the command `coordinator-sim` begins.

`serve` is started by tests, often: it is not kept waiting for what only other commands import.
"""

import sys

import typer

from coordinator_sim.cli.ending import EXIT_INTERRUPTED, run_command_line


def main() -> None:
    """Run the command line: 0 is ok, 1 problems found, 2 misuse; a user sees no traceback."""
    try:
        app = _app(sys.argv[1:])
    except KeyboardInterrupt:  # While modules are imported.
        sys.exit(EXIT_INTERRUPTED)
    run_command_line(app, "coordinator-sim")


def _app(arguments: list[str]) -> typer.Typer:
    if arguments[:1] == ["serve"]:
        from coordinator_sim.cli.serve import app
    else:
        from coordinator_sim.cli.main import app
    return app
