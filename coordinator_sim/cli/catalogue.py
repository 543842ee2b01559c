"""`list` and `show`: the scenarios there are, and one of them as data."""

import textwrap
from typing import Annotated

import typer


def list_scenarios(
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array instead of a table.")
    ] = False,
) -> None:
    """List the scenarios of the catalogue, those that are written as tasks at the end.

    Example: coordinator-sim list
    """
    from rich import box
    from rich.table import Table

    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_scenarios.catalog import all_scenarios
    from coordinator_sim_scenarios.task_files import task_scenarios

    scenarios = all_scenarios() | task_scenarios()
    if json:
        import msgspec

        rows = [
            {"name": name, "title": scenario.title, "duration_ms": scenario.duration_ms}
            for name, scenario in scenarios.items()
        ]
        typer.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return
    table = Table("scenario", "virtual time", "what happens", box=box.SIMPLE_HEAD)
    for name, scenario in scenarios.items():
        table.add_row(name, f"{scenario.duration_ms // 1000} s", scenario.title)
    PrintableConsole().print(table)
    typer.echo(
        "Run one:  coordinator-sim run NAME    See it as data:  coordinator-sim show NAME --json"
    )


def show(
    scenario: Annotated[
        str, typer.Argument(help="Catalogue name, or a scenario's .json file.", metavar="SCENARIO")
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the data alone, without its story.")
    ] = False,
    tasks: Annotated[
        bool,
        typer.Option("--tasks", help="Print the data alone, with happenings as Trogdor tasks."),
    ] = False,
) -> None:
    """Show a scenario: its story, and its data as JSON that `run` takes.

    Example: coordinator-sim show rolling-bounce --json > mine.json
    """
    from coordinator_sim.cli.arguments import find_scenario
    from coordinator_sim.sim.scenario.files import scenario_to_json
    from coordinator_sim.sim.scenario.tasks import tasks_to_json
    from coordinator_sim_scenarios.task_files import task_file

    found = find_scenario(scenario)
    if tasks and (file := task_file(scenario)) is not None:
        typer.echo(file.read_text("utf-8"), nl=False)
        return
    if not (json or tasks):
        typer.echo(f"{found.name}: {found.title}\n")
        typer.echo(textwrap.fill(found.story, 100) + "\n")
    data = tasks_to_json(found) if tasks else scenario_to_json(found)
    typer.echo(data.decode(), nl=False)
