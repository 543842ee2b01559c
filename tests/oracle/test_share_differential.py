"""Random programs against Kafka's own share partition: answers, offsets, writes, records."""

import os
from collections.abc import Iterator

import msgspec
import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.differ.building import built
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.sides import LinesProcess
from tests.oracle.share_programs import OurPartition, Programs, comparable

PROGRAMS = int(os.environ.get("COORDINATOR_SIM_SHARE_PROGRAMS", "40"))
COMMANDS = 250


@pytest.fixture(scope="module", params=["kafka-4.2.1", "kafka-4.3.1", "kafka-4.4.0"])
def name(request: pytest.FixtureRequest) -> str:
    """Name of the Kafka."""
    return str(request.param)


@pytest.fixture(scope="module")
def kafka(name: str) -> Iterator[LinesProcess]:
    """Kafka's share partition, behind JSON lines."""
    reference = msgspec.structs.replace(
        REFERENCES[name], harness="shares", main_class="kafka.server.share.ShareOracle"
    )
    try:
        command, _ = built(reference, print)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with LinesProcess(command) as process:
        yield process


def run(programs: Programs, kafka: LinesProcess, ours: OurPartition) -> None:
    """Give both the same commands; the first difference fails."""
    for number, command in enumerate(programs.commands(COMMANDS)):
        kafka.send([msgspec.json.encode(command)])
        told = dict(kafka.receive())
        theirs = comparable(told)
        mine = comparable(ours.answer(command))
        differing = [
            name for name in sorted({*theirs, *mine}) if theirs.get(name) != mine.get(name)
        ]
        shown = "\n".join(
            f"{name}:\n  Kafka {theirs.get(name)}\n  ours  {mine.get(name)}" for name in differing
        )
        assert not differing, f"command {number}, {command}\n{shown}\n{told.get('why', '')}"
        programs.saw(command, mine)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_share_a_partition_as_kafka_does(
    seed: int, name: str, kafka: LinesProcess
) -> None:
    """Fetches, acknowledgements, sessions' ends, lock timeouts, late and failed writes."""
    profile = PROFILES[REFERENCES[name].profile]
    run(Programs(seed, profile), kafka, OurPartition(profile))
