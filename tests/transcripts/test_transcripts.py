"""The stories of `scenarios/transcripts`, line by line; `--rewrite` writes what is observed."""

from pathlib import Path

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim_conformance.transcript import run_transcript

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "transcripts"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript_is_observed_again(path: Path, pytestconfig: pytest.Config) -> None:
    """Running a transcript's commands gives the lines it has."""
    observed = run_transcript(path.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--rewrite"):
        path.write_text(observed, encoding="utf-8")
    assert observed == path.read_text(encoding="utf-8")


def test_transcript_without_settings_has_a_broker() -> None:
    """The first command may be any; the delay is Kafka's 3 s."""
    observed = run_transcript("join g as=m version=3\n\nadvance 3s\n")
    assert "3.000  g          JOIN_RESP          m  generation 1  leader  range" in observed


def test_duration_without_a_unit_is_refused() -> None:
    """A bare number could be anything."""
    with pytest.raises(ScenarioError, match="duration '3': write 250ms, 3s or 5m"):
        run_transcript("advance 3\n")


def test_unknown_command_names_itself() -> None:
    """A command that does not exist is refused by name."""
    with pytest.raises(ScenarioError, match="unknown transcript command 'dance'"):
        run_transcript("dance g1\n")
