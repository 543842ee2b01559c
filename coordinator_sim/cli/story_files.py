"""Scenarios in Python: a file with a SCENARIO, and a story told over it."""

import runpy
from hashlib import sha256
from inspect import isgeneratorfunction
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_sim.errors import CoordinatorSimError, ScenarioError, described

if TYPE_CHECKING:
    from simpy.events import ProcessGenerator

    from coordinator_sim.sim.scenario.scenario import Scenario
    from coordinator_sim.sim.stories import Story, StoryWorld


def load_story(path: Path) -> "tuple[Scenario, Story, str]":
    """Run a Python file; return its `SCENARIO`, its `story`, and its name with a checksum.

    Raises:
        ScenarioError: the file fails, or lacks one of the two; a failure of the story is one too.
    """
    from coordinator_sim.sim.scenario.scenario import Scenario

    if not path.is_file():
        raise ScenarioError(f"{path}: no such file")
    try:
        found = runpy.run_path(str(path), run_name=path.stem)
    except CoordinatorSimError:
        raise
    except Exception as error:
        raise ScenarioError(f"{path}: {described(error)}") from error
    scenario, story = found.get("SCENARIO"), found.get("story")
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"{path}: has no SCENARIO, the world that its story is told over")
    if not isgeneratorfunction(story):
        raise ScenarioError(f"{path}: has no story(world), a generator function")
    checksum = sha256(path.read_bytes()).hexdigest()[:8]
    return scenario, _told(path, story), f"{path.name} {checksum}"


def _told(path: Path, story: "Story") -> "Story":
    """The story, whose own mistakes are told in one line with their place in the file."""

    def told(world: "StoryWorld") -> "ProcessGenerator":
        try:
            return (yield from story(world))
        except CoordinatorSimError:
            raise
        except Exception as error:
            raise ScenarioError(f"{path}: {described(error)}") from error

    return told
