"""No request costs more than linear work: every API, every array, counted and not timed.

The measure is `counted_work`: turns, calls, elements searched and bytes copied, put into the
library's own code when it is compiled. Times would need long requests, margins and luck, and a
count of Python calls sees neither `x in a_list` nor a tuple that grows piece by piece. What is
counted is exact, so that requests of 48 items tell a square from a line.

Processes of their own do it, because the library must be compiled anew for it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.kafka.releases import RELEASES
from tests.growth.counted_work import Meter, counted_code

REPO = Path(__file__).resolve().parents[2]


def found_by(*options: str) -> dict[str, Any]:
    """What `python -m tests.growth` says."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.growth", *options],
        cwd=REPO,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_newest_versions_cost_linear_work() -> None:
    """Requests of four times the items cost four times the work, in the newest Kafka."""
    found = found_by("--profile", RELEASES[-1])

    assert found["complaints"] == []
    assert found["silent"] == []
    assert found["asked"] > 500


SCALA_APIS = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "OFFSET_DELETE", "OFFSET_FETCH", "LIST_GROUPS")


@pytest.mark.parametrize("profile", ["2.8", "3.9"])
def test_scala_brokers_cost_linear_work(profile: str) -> None:
    """Requests that pass through hash maps of Scala cost linear work in the Kafkas between."""
    found = found_by("--profile", profile, *(f"--api={api}" for api in SCALA_APIS))

    assert found["complaints"] == []
    assert found["silent"] == []
    assert found["asked"]


@pytest.mark.nightly
@pytest.mark.parametrize("profile", RELEASES)
def test_all_versions_cost_linear_work(profile: str) -> None:
    """Every version of every API that a Kafka offers costs linear work."""
    found = found_by("--profile", profile, "--versions", "all")

    assert found["complaints"] == []
    assert found["silent"] == []
    assert found["asked"] > 150


def work_of(source: str, items: int) -> int:
    """The work of a function `run(items)`."""
    meter = Meter()
    module: dict[str, Any] = {"_work_": meter}
    exec(counted_code(source, "example.py"), module)  # noqa: S102 - the examples below
    meter.count = 0
    module["run"](list(range(items)))
    return meter.count


@pytest.mark.parametrize(
    "source",
    [
        "def run(items):\n    return [each for each in items if each not in items]",
        "def run(items):\n    return [each for each in items if items.count(each) > 1]",
        "def run(items):\n    found = ()\n    for each in items:\n        found = (*found, each)",
        "def run(items):\n    found = b''\n    for each in items:\n        found += b'x'",
        "def run(items):\n    found = ()\n    for each in items:\n        found = found + (each,)",
        "def run(items):\n    while items:\n        items.pop(0)",
        "def run(items):\n    while items:\n        del items[0]",
        "def run(items):\n    while items:\n        items = items[1:]",
        "def run(items):\n    return [each for each in items if each in set(items)]",
        "def run(items):\n    return [each for each in items if any(x is None for x in items)]",
        "def run(items):\n    while items:\n        _, *items = items",
        "def run(items):\n    found = {}\n    for x in items:\n        found = {**found, x: 1}",
        "def run(items):\n    text = ''\n    for each in items:\n        text = f'{text}x'",
        "def run(items):\n    return [each for each in items if list(items) == items]",
    ],
)
def test_squares_are_seen(source: str) -> None:
    """Each way to be slow that a line of Python hides counts as what it costs."""
    once, twice, four_times = (work_of(source, items) for items in (50, 100, 200))

    assert four_times - 3 * twice + 2 * once > 0.2 * 6 * 50 * 50


@pytest.mark.parametrize(
    "source",
    [
        "def run(items):\n    there = set(items)\n    return [x for x in items if x not in there]",
        "def run(items):\n    found = []\n    for each in items:\n        found += [each]",
        "def run(items):\n    return b''.join(bytes((x & 255,)) for x in sorted(items))",
        "def run(items):\n    return [x for x in items if x in range(10) or len(items) == x]",
        "def run(items):\n    while items:\n        items.pop()",
        "def run(items):\n    return (lambda each: [x + 1 for x in each])(tuple(items))",
    ],
)
def test_lines_are_not_taken_for_squares(source: str) -> None:
    """What is linear has no square at all."""
    once, twice, four_times = (work_of(source, items) for items in (50, 100, 200))

    assert four_times - 3 * twice + 2 * once == 0
