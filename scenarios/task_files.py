"""The scenarios that are written as lists of Trogdor tasks, in the folder `tasks`."""

from pathlib import Path
from typing import Final

from coordinator_sim.sim.scenario import Scenario, load_scenario

FOLDER: Final = Path(__file__).parent / "tasks"


def task_scenarios() -> dict[str, Scenario]:
    """Every scenario of the folder by name, sorted by name."""
    return {path.stem: load_scenario(path) for path in sorted(FOLDER.glob("*.json"))}


def task_file(name: str) -> Path | None:
    """The file of a scenario of the folder; None without one of that name."""
    path = FOLDER / f"{name}.json"
    return path if path.parent == FOLDER and path.is_file() else None
