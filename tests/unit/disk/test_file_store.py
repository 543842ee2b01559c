"""A partition's log in files holds what a store in memory holds."""

from pathlib import Path

import pytest

from tests.unit.disk.segment_worlds import World


@pytest.mark.parametrize("seed", range(25))
def test_files_answer_as_memory_does(seed: int, tmp_path: Path) -> None:
    """Appends, rolls, cuts, cleanings and reopenings leave the same in files as in memory."""
    world = World(seed, tmp_path / "t-0")
    for _ in range(60):
        world.step()
        world.check()
