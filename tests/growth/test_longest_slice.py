"""No request, timer or path of the control surface keeps all others waiting for long.

`longest_slice` asks everything of a cluster with 1,000 of everything, and names 1,000 items in each
request. Work that is not sliced is linear (`test_linear_work`), so that ten times the items take
ten times as long.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUDGET_MS = 50.0
"""What one slice may take."""
REVIEWED_MS = {
    # Every filter is answered with every rule: 3,000,000 entries, whose 150 MB are copied at once.
    "DELETE_ACLS": 160.0
}
"""What takes longer, or nearly so, and how long it may take. Entries go; none comes."""


def slices(*options: str) -> dict[str, float]:
    """The longest slices that were found, in milliseconds."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.growth.longest_slice", *options],
        cwd=REPO,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def over_budget(found: dict[str, float]) -> dict[str, float]:
    """What took longer than it may."""
    return {
        name: slice_ms
        for name, slice_ms in found.items()
        if slice_ms > REVIEWED_MS.get(name, BUDGET_MS)
    }


def test_hard_expressions_are_matched_in_slices() -> None:
    """A single heartbeat, whatever expression it subscribes by."""
    found = slices("--only", "hard", "--size", "50")

    assert len(found) > 4
    assert over_budget(found) == {}


@pytest.mark.parametrize("kind", ["http", "timers"])
def test_control_surface_and_timers_keep_within_the_budget(kind: str) -> None:
    """Every path that is read, and whatever ends by itself."""
    found = slices("--only", kind)

    assert len(found) >= 3
    assert over_budget(found) == {}


@pytest.mark.nightly
def test_every_api_keeps_within_the_budget() -> None:
    """Every array of the newest version of every API; the reviewed list only gets shorter."""
    found = slices("--only", "apis")

    assert over_budget(found) == {}
    asked = {name for name in REVIEWED_MS if name.isupper() and " " not in name}
    assert {name for name in asked if found[name] < BUDGET_MS / 2} == set()
