"""Random programs against Kafka's own log: answers, offsets, producers, epochs, segments, bytes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.differ.building import JVM_OPTIONS, ORACLE, built
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.sides import LinesProcess
from tests.oracle.log_programs import CONFIGS, OurLog, Programs, comparable, for_kafka

PROGRAMS = int(os.environ.get("COORDINATOR_SIM_LOG_PROGRAMS", "40"))
COMMANDS = 300
SOURCES = ORACLE / "logs"
MAIN = "org.apache.kafka.storage.internals.log.LogOracle"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinesProcess]:
    """Kafka 4.3.1's log, behind JSON lines."""
    try:
        _, folder = built(REFERENCES["kafka-4.3.1"], print)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed: a JDK of 17 or later is needed")
    jars = f"{folder / 'target' / 'kafka-4.3.1' / 'lib'}/*"
    classes = tmp_path_factory.mktemp("classes")
    sources = [str(source) for source in SOURCES.rglob("*.java")]
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", str(classes), *sources], check=True)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    scratch = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path_factory.mktemp("logs")  # noqa: S108 - the program makes a folder of its own there
    command = ["java", *JVM_OPTIONS, quiet, "-cp", f"{classes}:{jars}", MAIN, str(scratch)]
    with LinesProcess(command) as process:
        yield process


def run(programs: Programs, kafka: LinesProcess, ours: OurLog) -> None:
    """Give both the same commands; the first difference fails."""
    for number, command in enumerate(programs.commands(COMMANDS)):
        kafka.send([msgspec.json.encode(for_kafka(command))])
        theirs = comparable(command, dict(kafka.receive()))
        mine = comparable(command, ours.answer(command))
        differing = [
            name for name in sorted({*theirs, *mine}) if theirs.get(name) != mine.get(name)
        ]
        told = "\n".join(
            f"{name}:\n  Kafka {theirs.get(name)}\n  ours  {mine.get(name)}" for name in differing
        )
        assert not differing, f"command {number}, {command}\n{told}"
        programs.saw(mine["state"])  # type: ignore[arg-type]


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_leave_the_log_as_kafka_does(seed: int, kafka: LinesProcess) -> None:
    """Appends, markers, reads, times, retention, cleaning, truncation, reopening."""
    run(Programs(seed, CONFIGS[seed % len(CONFIGS)]), kafka, OurLog())


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(PROGRAMS, PROGRAMS + PROGRAMS // 2))
def test_random_programs_leave_files_as_kafka_does(
    seed: int, kafka: LinesProcess, tmp_path: Path
) -> None:
    """The same over segment files, opened anew now and then."""
    run(Programs(seed, CONFIGS[seed % len(CONFIGS)]), kafka, OurLog(tmp_path))


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(PROGRAMS // 2))
@pytest.mark.parametrize("magic", [0, 1])
def test_logs_of_old_formats_take_what_kafka_takes(
    magic: int, seed: int, kafka: LinesProcess
) -> None:
    """A log of magic 0 or 1 takes batches of all formats, and converts them alike."""
    settings = {"segment.bytes": "1500"} | (
        {"compression.type": "uncompressed"} if seed % 3 else {}
    )
    if seed % 2:
        settings["message.timestamp.type"] = "LogAppendTime"
    run(Programs(seed, settings, (magic, (0, 1, 2))), kafka, OurLog())
