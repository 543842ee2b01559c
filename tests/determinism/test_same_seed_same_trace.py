"""The same seed gives the same trace, whatever the hash seed of the process."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from coordinator_sim_scenarios.catalog import all_scenarios
from tests.transcripts.test_scenario_stories import NAMES

REPO = Path(__file__).resolve().parents[2]

PROGRAM = """
import json
import sys
import msgspec
from coordinator_sim.sim.scenario import NetworkSpec, Scenario, TableLatency
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_scenarios.catalog import scenario_named

def digest(scenario: Scenario, seed: int, *, shuffle: bool = False) -> str:
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder, shuffle_ties=shuffle)
    return f"{len(recorder.events)} {recorder.digest}"

def drawn(name: str) -> Scenario:
    return msgspec.structs.replace(
        scenario_named(name), network=NetworkSpec(latency=TableLatency())
    )

found = {name: digest(scenario_named(name), 1) for name in sys.argv[1:]}
for name in ("rolling-bounce", "coordinator-failover", "connect-worker-bounce"):
    found[f"{name}, latencies drawn"] = digest(drawn(name), 1)
found["rolling-bounce, ties shuffled"] = digest(drawn("rolling-bounce"), 1, shuffle=True)
found["rolling-bounce, another seed"] = digest(drawn("rolling-bounce"), 2)
print(json.dumps(found))
"""


OTHERS = tuple(name for name in all_scenarios() if name not in NAMES)
"""Those whose stories are not compared with recorded ones, in a process of any hash seed."""


@cache
def digests(hash_seed: int, names: tuple[str, ...]) -> dict[str, str]:
    """Event counts and digests of runs, made in a process with that hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        cwd=REPO,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "name", ["rolling-bounce", "coordinator-failover", "connect-worker-bounce"]
)
def test_same_seed_gives_the_same_trace_in_two_processes(name: str) -> None:
    """Two processes with different hash seeds draw the same latencies and write the same events."""
    run = f"{name}, latencies drawn"
    assert digests(0, OTHERS)[run] == digests(1, OTHERS)[run]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(OTHERS, id="without a recorded story"),
        pytest.param(tuple(all_scenarios()), id="all", marks=pytest.mark.nightly),
    ],
)
def test_scenarios_are_the_same_in_two_processes(names: tuple[str, ...]) -> None:
    """Those of the catalogue have equal digests under two hash seeds."""
    assert digests(0, names) == digests(1, names)
    assert digests(0, names).keys() > set(names)
    assert len(names) >= 15


def test_shuffled_ties_are_reproducible_too() -> None:
    """An order of simultaneous happenings that was drawn is drawn again."""
    run = "rolling-bounce, ties shuffled"
    assert (
        digests(0, OTHERS)[run]
        == digests(1, OTHERS)[run]
        != digests(0, OTHERS)["rolling-bounce, latencies drawn"]
    )


def test_another_seed_gives_another_trace() -> None:
    """Chance reaches the trace: member ids and latencies differ from seed to seed."""
    found = digests(0, OTHERS)
    assert found["rolling-bounce, latencies drawn"] != found["rolling-bounce, another seed"]
