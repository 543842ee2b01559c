"""A night of faults at a real broker: the logs tell the true first causes."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.night.__main__ import play
from coordinator_sim_conformance.real_kafka.night.judging import Verdict, judge, table

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


def test_logs_of_broker_and_clients_tell_the_causes_of_a_night(tmp_path: Path) -> None:
    """At least 95 of 100 answers are right, and at most one is confidently wrong."""
    folder = tmp_path / "night"
    play(folder, seed=5)
    counts = judge(folder)

    told = counts["folder of logs"]
    answers = (folder / "answers.txt").read_text("utf-8")
    assert told.total() >= 100
    assert told[Verdict.RIGHT] >= 0.95 * told.total(), f"{table(counts)}\n{answers}"
    assert told[Verdict.WRONG] <= 1, f"{table(counts)}\n{answers}"
