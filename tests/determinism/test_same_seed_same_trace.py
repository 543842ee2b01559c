"""The same seed gives the same trace, whatever the hash seed of the process."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from coordinator_sim_scenarios.catalog import all_scenarios

REPO = Path(__file__).resolve().parents[2]

PROGRAM = """
import json
import msgspec
from coordinator_sim.sim.scenario import NetworkSpec, Scenario, TableLatency
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

def digest(scenario: Scenario, seed: int, *, shuffle: bool = False) -> str:
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder, shuffle_ties=shuffle)
    return f"{len(recorder.events)} {recorder.digest}"

def drawn(name: str) -> Scenario:
    return msgspec.structs.replace(
        scenario_named(name), network=NetworkSpec(latency=TableLatency())
    )

found = {name: digest(scenario, 1) for name, scenario in all_scenarios().items()}
for name in ("rolling-bounce", "coordinator-failover", "connect-worker-bounce"):
    found[f"{name}, latencies drawn"] = digest(drawn(name), 1)
found["rolling-bounce, ties shuffled"] = digest(drawn("rolling-bounce"), 1, shuffle=True)
found["rolling-bounce, another seed"] = digest(drawn("rolling-bounce"), 2)
print(json.dumps(found))
"""


@cache
def digests(hash_seed: int) -> dict[str, str]:
    """Event counts and digests of all runs, made in a process with that hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
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
    assert digests(0)[run] == digests(1)[run]


def test_every_scenario_is_the_same_in_two_processes() -> None:
    """The whole catalogue has equal digests under two hash seeds."""
    names = all_scenarios().keys()
    assert {name: digests(0)[name] for name in names} == {name: digests(1)[name] for name in names}
    assert len(names) >= 30


def test_shuffled_ties_are_reproducible_too() -> None:
    """An order of simultaneous happenings that was drawn is drawn again."""
    run = "rolling-bounce, ties shuffled"
    assert digests(0)[run] == digests(1)[run] != digests(0)["rolling-bounce, latencies drawn"]


def test_another_seed_gives_another_trace() -> None:
    """Chance reaches the trace: member ids and latencies differ from seed to seed."""
    found = digests(0)
    assert found["rolling-bounce, latencies drawn"] != found["rolling-bounce, another seed"]
