"""Random programs on real brokers and on the simulator, in wall time."""

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, OLD_BROKER_VERSION, Broker

pytestmark = pytest.mark.real_kafka

SETTINGS: Final = {"group.min.session.timeout.ms": "100", "offsets.topic.num.partitions": "5"}


@pytest.mark.parametrize(
    ("version", "profile"),
    [(BROKER_VERSION, "4.4"), pytest.param(OLD_BROKER_VERSION, "3.9", marks=pytest.mark.nightly)],
)
def test_kafka_answers_as_the_simulator_does(version: str, profile: str, tmp_path: Path) -> None:
    """Fifteen hundred requests, in the profile that is nearest."""
    with Broker(tmp_path / "broker", SETTINGS, version=version) as broker:
        done = CliRunner().invoke(
            app,
            [
                *("differ", "--reference", broker.bootstrap, "--operations", "1500"),
                *("--out", str(tmp_path / "out")),
            ],
        )

    assert done.exit_code == 0, done.output
    assert f"{broker.bootstrap} as {profile}, seed 1: 15" in done.output
    assert "left behind" not in done.output
