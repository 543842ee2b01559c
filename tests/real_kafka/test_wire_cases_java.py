"""Java's consumer, the reference, judged from outside: what it does not pass is a wrong case."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.cli.main import main
from coordinator_sim_conformance.clients.case import all_wire_cases
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION
from coordinator_sim_conformance.running import Verdict
from coordinator_sim_conformance.verdicts.results import read_result
from tests.command_line import run_here

pytestmark = pytest.mark.real_kafka

QUICK = (
    *("C-DISC-08", "C-JOIN-10", "C-SYNC-01", "C-SYNC-05", "C-HB-06", "C-HB-10", "C-LEAVE-03"),
    *("C-CONS-01.2", "C-CONS-05", "C-COMMIT-02", "C-WIRE-03", "C-WIRE-05"),
)
"""One or two of each area; the others are played each night."""


def judged(tmp_path: Path, *cases: str) -> None:
    """Play the cases on Java's consumer, and expect that all pass."""
    file = tmp_path / "java.json"
    wanted = [word for each in cases for word in ("--case", each)]
    done = run_here("clients", "--client", "java", "--result", file, *wanted, command=main)
    assert done.returncode == 0, done.stdout
    result = read_result(file)
    assert (result.target.name, result.target.version) == ("java", BROKER_VERSION)
    assert {each.verdict for each in result.endings} == {Verdict.PASSED}
    assert len(result.endings) == len(cases)


def test_java_passes_some_of_each_area(tmp_path: Path) -> None:
    """In groups side by side, each client in a JVM of its own."""
    judged(tmp_path, *QUICK)


@pytest.mark.nightly
def test_java_passes_everything(tmp_path: Path) -> None:
    """No case is wrong, and none is skipped."""
    judged(tmp_path, *(case.case_id for case in all_wire_cases()))
