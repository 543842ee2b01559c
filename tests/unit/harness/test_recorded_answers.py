"""What Apache Kafka's own coordinators answered, recorded once: ours must answer the same.

`conformance differ --script FILE --record FILE` records; the name of a file names the reference.
"""

from pathlib import Path

import pytest

from coordinator_sim_conformance.differ.comparison import first_difference
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.scripts import read_recording
from coordinator_sim_conformance.differ.sides import Simulator

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_answers_are_given_again(path: Path) -> None:
    """Replies, their order and times, and appended records, command by command."""
    reference = REFERENCES[path.stem.rpartition("-")[0]]
    ours = Simulator(reference.profile, has_edge=reference.has_edge)
    for command, answer in read_recording(path):
        assert first_difference(command, ours.answer(command), answer) is None, command


def test_every_family_is_recorded() -> None:
    """Each harness that references are built with has a recording."""
    recorded = {REFERENCES[path.stem.rpartition("-")[0]].harness for path in RECORDED}
    assert recorded == {reference.harness for reference in REFERENCES.values()}
