"""Classic consumer groups of Java's clients: they print what they print at a real broker."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import kafka
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

NO_DELAY = "group.initial.rebalance.delay.ms=0"


def story(version: str, bootstrap: str) -> list[str]:
    """What the client of a release prints."""
    done = kafka.run_java(version, str(kafka.HERE / "ClassicClient.java"), bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("broker_version", "profile", "brokers", "clients"),
    [
        (kafka.BROKER_VERSION, "4.4", 1, (kafka.BROKER_VERSION,)),
        pytest.param(
            kafka.OLD_BROKER_VERSION,
            "3.9",
            3,
            (kafka.OLD_BROKER_VERSION, kafka.TOOLS_VERSION),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_members_come_restart_and_go_as_at_a_real_broker(
    tmp_path: Path, broker_version: str, profile: str, brokers: int, clients: tuple[str, ...]
) -> None:
    """Range, cooperative and static members read every record once and in order.

    Kafka's client asserts nothing here: each line is its own account, and ours is Kafka's.
    """
    properties = {"num.partitions": "6"}
    with kafka.Broker(tmp_path, properties, broker_version) as broker:
        theirs = story(broker_version, broker.bootstrap)
    assert sum(line.endswith(" in order") for line in theirs) == 3
    for version in clients:
        settings = ("--profile", profile, "--brokers", str(brokers), "--set", NO_DELAY)
        with serving("--port", "0", "--topics", "orders:6", *settings) as ready:
            assert story(version, ready["bootstrap"]) == theirs
