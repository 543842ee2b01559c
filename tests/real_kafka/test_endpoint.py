"""Apache Kafka passes what a running endpoint is graded by."""

import json
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.running import Verdict
from coordinator_sim_conformance.verdicts.results import read_result

pytestmark = pytest.mark.real_kafka

FRIENDLY: Final = {
    "group.min.session.timeout.ms": "100",
    "transaction.partition.verification.enable": "false",
}
MOST_CASES: Final = 188
"""Of those that a client can play there."""


@pytest.mark.nightly
def test_kafka_passes_everything_that_real_time_shows(tmp_path: Path) -> None:
    """The newest broker, with settings under which nearly every case can be played."""
    result = tmp_path / "result.json"
    with Broker(tmp_path / "broker", FRIENDLY) as broker:
        done = CliRunner().invoke(
            app, ["run", "--bootstrap", broker.bootstrap, "--result", str(result)]
        )
    endings = json.loads(result.read_text(encoding="utf-8"))["endings"]

    assert done.exit_code == 0, done.output
    assert sum(each["verdict"] == "passed" for each in endings) >= MOST_CASES
    assert "left behind" not in done.output


def test_an_older_kafka_is_honest_about_its_versions(tmp_path: Path) -> None:
    """Versions and frames, where the oldest versions are still offered."""
    result = tmp_path / "result.json"
    options = ("--area", "VERSION", "--area", "FRAME", "--result", str(result))
    with Broker(tmp_path / "broker", FRIENDLY, version="3.9.2") as broker:
        done = CliRunner().invoke(app, ["run", "--bootstrap", broker.bootstrap, *options])
    endings = json.loads(result.read_text(encoding="utf-8"))["endings"]

    assert done.exit_code == 0, done.output
    assert {each["verdict"] for each in endings} == {"passed"}
    assert {each["profile"] for each in endings} == {"3.9"}


@pytest.mark.nightly
@pytest.mark.parametrize(("release", "least"), [("4.4.0", 195), ("3.9.2", 199), ("2.8.2", 190)])
def test_releases_pass_what_their_variants_can_show(
    release: str, least: int, tmp_path: Path
) -> None:
    """Started by name: with the settings that cases ask for, more of them are played."""
    result = tmp_path / "result.json.gz"

    done = CliRunner().invoke(app, ["run", "--target", f"kafka:{release}", "--result", str(result)])

    assert done.exit_code == 0, done.output
    assert sum(each.verdict is Verdict.PASSED for each in read_result(result).endings) >= least


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["kfake", "librdkafka-mock"])
def test_peers_differ_by_known_deviations_alone(name: str) -> None:
    """No new one, and none that is gone."""
    done = CliRunner().invoke(app, ["run", "--target", name])

    assert done.exit_code == 0, done.output
