"""Where the command `coordinator-sim` begins.

`serve` is started by tests, often: it is not kept waiting for what only other commands import.
"""

import sys

import typer

from coordinator_sim.cli.ending import EXIT_INTERRUPTED, run_command_line


def main() -> None:
    """Run the command line: 0 is ok, 1 problems found, 2 misuse; a user sees no traceback."""
    try:
        _put_bugs_in(sys.argv[1:])
        app = _app(sys.argv[1:])
    except KeyboardInterrupt:  # While modules are imported.
        sys.exit(EXIT_INTERRUPTED)
    run_command_line(app, "coordinator-sim")


def _put_bugs_in(arguments: list[str]) -> None:
    """Break on purpose what `--bug` names, before it is imported."""
    if not any(argument.startswith("--bug") for argument in arguments):
        return
    from coordinator_sim.cli.bug_option import place_of
    from coordinator_sim_conformance.museum.bugs import install_early

    place = place_of(arguments[0])
    if place is not None:
        install_early(arguments[1:], place)


def _app(arguments: list[str]) -> typer.Typer:
    if arguments[:1] == ["serve"]:
        from coordinator_sim.cli.serve import app
    else:
        from coordinator_sim.cli.main import app
    return app
