"""The examples run, and say what the guides say they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def output_of(name: str) -> str:
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_driving_the_core_by_hand_reaches_stable() -> None:
    """Two members, one rebalance, the initial delay extended once."""
    lines = output_of("drive_the_core.py").splitlines()
    assert "GROUP_STABLE" in lines[-1]
    assert any(line.lstrip().startswith("6.001") and "JOIN_COMPLETE" in line for line in lines)


def test_static_membership_takes_the_rebalances_out_of_a_deploy() -> None:
    """Only the first start of the group rebalances."""
    dynamic, static = output_of("what_if_static.py").splitlines()
    assert dynamic.split()[1] == "17"
    assert static.split()[1] == "1"
