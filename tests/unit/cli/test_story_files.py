"""A story's file: what it must hold, and what its mistakes look like."""

from pathlib import Path

import pytest

from coordinator_sim.cli.simulation import load_story
from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.recorder import NullRecorder

WORLD = "from coordinator_sim_scenarios.catalog import scenario_named\n"
SCENARIO = f"{WORLD}SCENARIO = scenario_named('member-crash')\n"
STORY = "def story(world):\n    yield world.timeout('1s')\n"


def written(folder: Path, text: str) -> Path:
    """A file with that text."""
    path = folder / "my_story.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_its_scenario_its_story_and_a_checksum(tmp_path: Path) -> None:
    """Another text has another checksum, which keeps traces of two versions apart."""
    scenario, _, label = load_story(written(tmp_path, SCENARIO + STORY))
    _, _, other = load_story(written(tmp_path, SCENARIO + STORY + "\n"))

    assert scenario.name == "member-crash"
    assert label.startswith("my_story.py ")
    assert label != other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(STORY, "has no SCENARIO", id="no scenario"),
        pytest.param(SCENARIO, r"has no story\(world\)", id="no story"),
        pytest.param(f"{SCENARIO}def story(world): ...\n", "a generator function", id="no yield"),
        pytest.param(f"{SCENARIO}x = 1 / 0\n", r"ZeroDivisionError: .* line 3\)", id="fails"),
        pytest.param("def story(world:\n", "SyntaxError", id="no Python"),
    ],
)
def test_what_a_file_lacks_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """The line names the file, and what is missing or failed."""
    with pytest.raises(ScenarioError, match=rf"my_story\.py: .*{message}"):
        load_story(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The path is in the message."""
    with pytest.raises(ScenarioError, match=r"absent\.py: no such file"):
        load_story(tmp_path / "absent.py")


def test_a_mistake_in_a_story_is_told_with_its_line(tmp_path: Path) -> None:
    """It ends the run when it happens."""
    text = f"{SCENARIO}{STORY}    world.no_such_thing()\n"
    scenario, story, _ = load_story(written(tmp_path, text))

    with pytest.raises(ScenarioError, match=r"no_such_thing.* line 5\)"):
        run_scenario(scenario, recorder=NullRecorder(), story=story)
