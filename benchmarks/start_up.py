"""A Connect worker's read of its offset topic to the end: Connect's own store beside the model.

Needs Java and Maven, which brings Connect's jars. The broker runs on the same machine.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from coordinator_sim.errors import DataError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec
from coordinator_sim.sim.scenario.world import ConstantLatency, InternalTopicsSpec, NetworkSpec
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.start_up import start_ups
from coordinator_sim_conformance.real_kafka.connect import connect_jars
from coordinator_sim_conformance.real_kafka.kafka import HERE, Broker

CASES = ((1, 1_000_000, 68), (25, 2_000_000, 68), (25, 500_000, 468))
"""Partitions, records, bytes of key and value of one."""
ROUNDS = 2
TIMEOUT_S = 300
JVM = ("-Xms256m", "-Xmx2g")
"""As connect-distributed.sh starts a worker."""


def main() -> None:
    """Print the seconds of each round in Java, cold first, and those of the model."""
    print(f"{'partitions':>10}{'records':>11}{'bytes':>7}{'Java s':>16}{'model s':>9}")
    for partitions, records, size in CASES:
        measured = ", ".join(f"{wall_s:.1f}" for wall_s in _measure(partitions, records, size))
        model_s = _model(partitions, records, size)
        print(f"{partitions:>10}{records:>11,}{size:>7}{measured:>16}{model_s:>9.1f}")


def _measure(partitions: int, records: int, size: int) -> list[float]:
    numbers = map(str, (partitions, records, size, ROUNDS))
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        program = (str(HERE / "ReadToEnd.java"), broker.bootstrap, "measured")
        jars = f"{connect_jars()}{os.sep}*"
        done = subprocess.run(
            ["java", *JVM, "-cp", jars, *program, *numbers],  # noqa: S607 - java, as on the path
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    if done.returncode:
        raise DataError(f"ReadToEnd: {done.stderr.strip()[-1000:]}")
    rounds = [line for line in done.stdout.splitlines() if line.startswith("wall_ms=")]
    return [int(line.split()[0].partition("=")[2]) / 1_000 for line in rounds]


def _model(partitions: int, records: int, size: int) -> float:
    topics = InternalTopicsSpec(
        offset_partitions=partitions, offset_records=records, offset_record_bytes=size
    )
    scenario = Scenario(
        name="start-up",
        title="One worker starts",
        story="One worker starts.",
        duration_ms=60_000,
        brokers=1,
        network=NetworkSpec(latency=ConstantLatency(us=50)),
        groups=(
            ConnectGroupSpec(
                group_id="g", workers=(WorkerSpec(name="worker"),), internal_topics=topics
            ),
        ),
    )
    recorder = MemoryRecorder()
    run_scenario(scenario, recorder=recorder)
    (found,) = start_ups(recorder.events)
    return next(phase.took_us for phase in found.phases if phase.records == records) / 1e6
