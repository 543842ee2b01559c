"""A process that writes a log directory is killed at any moment: nothing acknowledged is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("kills", "seed"), [(20, 1), pytest.param(200, 1_000, marks=pytest.mark.nightly)]
)
def test_what_was_acknowledged_is_there(kills: int, seed: int, tmp_path: Path) -> None:
    """Batches, entries of the journal and log starts; producers as a full reading has them."""
    command = [sys.executable, "-m", "tests.unit.disk.kill_loop"]
    done = subprocess.run(
        [*command, str(tmp_path / "data"), str(kills), str(seed)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["wrong"] == []
    # Three of four children live until their first acknowledgement, however slow the machine is.
    assert seen["batches"] + seen["entries"] > kills // 2
