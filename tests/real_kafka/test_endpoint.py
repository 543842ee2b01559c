"""Apache Kafka passes what a running endpoint is graded by."""

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, OLD_BROKER_VERSION, Broker
from coordinator_sim_conformance.running import Verdict
from coordinator_sim_conformance.verdicts.results import read_result
from tests.proxied import proxied, with_aiokafka, with_librdkafka

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


# -- Random programs on real brokers and on the simulator, in wall time ------------------------


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


# -- The proxy never flags Apache Kafka, whatever real clients do ------------------------------


@pytest.mark.parametrize(
    "version", [BROKER_VERSION, pytest.param(OLD_BROKER_VERSION, marks=pytest.mark.nightly)]
)
def test_kafka_is_never_flagged(version: str, tmp_path: Path) -> None:
    """Members of two client libraries join, bounce and commit; all of them stay behind it."""
    with Broker(tmp_path / "broker", version=version) as broker, proxied(broker.bootstrap) as proxy:
        asyncio.run(with_aiokafka(proxy.address))
        with_librdkafka(proxy.address)
        code, flags, counts = proxy.ended()

    assert flags == [], flags
    assert code == 0
    assert counts["exchanges"] > 100
    assert counts["groups"] == 2
